/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/atomic.h"

/* While not 0: the time, which stands still until a test moves it. */
extern int64_t clock_virtual_ns;

static inline int64_t clock_real_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t clock_now_ns(void)
{
    int64_t virtual_ns = atomic_peek(&clock_virtual_ns);

    return virtual_ns ? virtual_ns : clock_real_ns();
}

/* Has the moment come?  The two ends of time need no look at the clock, which
 * costs as much as five hand-offs of a cache line. */
static inline int clock_has_passed(int64_t at_ns)
{
    return at_ns <= 0 || (at_ns != INT64_MAX && at_ns <= clock_now_ns());
}

#endif
