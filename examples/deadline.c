/* SPDX-License-Identifier: MIT */
/* deadline - give up in time: one deadline for all the waits of a request. */
#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(2);
static struct weir_event answer = WEIR_EVENT_INIT; // which nobody sets

// [begin]
static int ask(int64_t patience_ns)
{
    struct weir_deadline deadline = weir_within(patience_ns);

    int r = weir_sem_acquire(&slots, 1, deadline);
    if (r < 0)
        return r; // no slot in time, and none held

    r = weir_event_wait(&answer, deadline); // in the time left
    weir_sem_release(&slots, 1);
    return r;
}
// [end]

int main(void)
{
    int64_t asked = weir_now_ns();

    MUST(ask(30 * WEIR_MS) == WEIR_ETIMEDOUT);
    MUST(weir_now_ns() - asked >= 30 * WEIR_MS);
    puts("no answer in time");
    printf("%d slots free\n", (int)weir_sem_available(&slots));
    return 0;
}
