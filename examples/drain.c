/* SPDX-License-Identifier: MIT */
/* drain - stop in good order: let nobody in any more, and wait for those inside. */
#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(2);
static atomic_int served, turned_away;

/* Takes until the door is closed, to show who is waited for. */
static void serve(void)
{
    UNTIL(turned_away == 3);
    served++;
}

// [begin]
static void *client(void *arg)
{
    (void)arg;
    if (weir_sem_acquire(&slots, 1, WEIR_FOREVER) == WEIR_ECLOSED) {
        turned_away++;
        return NULL;
    }
    serve();
    weir_sem_release(&slots, 1); // works after the close, too
    return NULL;
}

static int shut_down(void)
{
    weir_sem_close(&slots); // nobody gets in any more
    return weir_sem_wait_idle(&slots, weir_within(10 * WEIR_S));
}
// [end]

int main(void)
{
    pthread_t clients[5];

    for (int i = 0; i < 5; i++)
        clients[i] = start(client, NULL);
    UNTIL(weir_sem_waiting(&slots) == 3); // two are inside
    MUST(shut_down() == 0);
    printf("%d served, %d turned away\n", served, turned_away);
    for (int i = 0; i < 5; i++)
        finish(clients[i]);
    return 0;
}
