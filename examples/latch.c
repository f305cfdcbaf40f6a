/* SPDX-License-Identifier: MIT */
/* latch - start together: nobody runs before everybody is there. */
#include "example.h"

static atomic_int warmed_up, started;

// [begin]
// Four runners, and the referee, who only arrives.
static struct weir_latch start_line = WEIR_LATCH_INIT(5);

static void *runner(void *arg)
{
    (void)arg;
    warmed_up++;
    if (weir_latch_wait(&start_line, weir_within(10 * WEIR_S)) < 0)
        return NULL; // somebody gave up: no race today
    MUST(warmed_up == 4);
    started++;
    return NULL;
}
// [end]

static void *referee(void *arg)
{
    (void)arg;
    UNTIL(warmed_up == 4);
    MUST(started == 0);
    MUST(weir_latch_arrive(&start_line, 1) == 0); // arrives, but does not run
    return NULL;
}

static void *everyone(void *arg)
{
    return *(int *)arg == 0 ? referee(arg) : runner(arg);
}

int main(void)
{
    run_threads(5, everyone);
    printf("%d started, none before the last was there\n", started);
    return 0;
}
