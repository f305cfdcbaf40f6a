/* SPDX-License-Identifier: MIT */
/* clock - a test of an hour's patience that takes no hour. */
#include <time.h>

#include "example.h"

static struct weir_event answer = WEIR_EVENT_INIT; // which nobody sets

/* What is to be tested: asks three times, and rests in between. */
static int ask(void)
{
    int r = WEIR_ETIMEDOUT;

    for (int i = 0; i < 3 && r == WEIR_ETIMEDOUT; i++) {
        r = weir_event_wait(&answer, weir_within(3600 * WEIR_S));
        if (r == WEIR_ETIMEDOUT && weir_task_sleep(weir_within(60 * WEIR_S)) < 0)
            return WEIR_ECANCELED;
    }
    return r;
}

// [begin]
static int test(void *arg)
{
    int64_t asked;

    (void)arg;
    weir_testing_clock_start();
    asked = weir_now_ns();
    MUST(ask() == WEIR_ETIMEDOUT); // three hours and three minutes
    MUST(weir_now_ns() - asked == 3 * (3600 + 60) * WEIR_S);
    weir_testing_clock_stop();
    return 0;
}
// [end]

int main(void)
{
    time_t began = time(NULL);

    MUST(weir_run(NULL, test, NULL) == 0);
    MUST(time(NULL) - began < 20);
    puts("three hours later, and no time has passed");
    return 0;
}
