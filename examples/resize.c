/* SPDX-License-Identifier: MIT */
/* resize - change the limit while it is in use. */
#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(1);
static struct weir_event finish_up = WEIR_EVENT_INIT;
static struct weir_countdown missing = WEIR_COUNTDOWN_INIT(3);

static void *client(void *arg)
{
    (void)arg;
    MUST(weir_sem_acquire(&slots, 1, WEIR_FOREVER) == 0);
    weir_countdown_down(&missing, 1);
    MUST(weir_event_wait(&finish_up, WEIR_FOREVER) == 0);
    weir_sem_release(&slots, 1);
    return NULL;
}

static void show(const char *when)
{
    printf("%s: capacity %d, free %d, waiting %d\n", when, (int)weir_sem_capacity(&slots),
           (int)weir_sem_available(&slots), (int)weir_sem_waiting(&slots));
}

int main(void)
{
    pthread_t clients[3];

    for (int i = 0; i < 3; i++)
        clients[i] = start(client, NULL);
    UNTIL(weir_sem_waiting(&slots) == 2);
    show("one permit, three clients");

    // [begin]
    weir_sem_resize(&slots, 4); // those who wait are let in at once
    show("grown to 4");

    weir_sem_resize(&slots, 2); // takes nothing from those inside
    show("shrunk to 2");
    // [end]

    MUST(weir_countdown_wait(&missing, WEIR_FOREVER) == 0);
    weir_event_set(&finish_up);
    for (int i = 0; i < 3; i++)
        finish(clients[i]);
    show("all gone");
    return 0;
}
