/* SPDX-License-Identifier: MIT */
/* revent - a pause button: clear stops the worker at its next step, set lets it go on. */
#include "example.h"

static atomic_int steps;
static atomic_bool over;

// [begin]
static struct weir_revent go = WEIR_REVENT_INIT; // clear: paused

static void *worker(void *arg)
{
    (void)arg;
    while (weir_revent_wait(&go, WEIR_FOREVER) == 0 && !over)
        steps++;
    return NULL;
}
// [end]

int main(void)
{
    pthread_t thread = start(worker, NULL);
    int paused_at;

    MUST(steps == 0);
    weir_revent_set(&go);
    UNTIL(steps >= 3);
    puts("going");

    weir_revent_clear(&go);
    paused_at = steps;
    MUST(weir_revent_wait(&go, WEIR_NO_WAIT) == WEIR_ETIMEDOUT);
    MUST(steps <= paused_at + 1); // the one step that had begun
    puts("paused");

    weir_revent_set(&go);
    UNTIL(steps >= paused_at + 3);
    puts("going on");
    over = true;
    finish(thread);
    return 0;
}
