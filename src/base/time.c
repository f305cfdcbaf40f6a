/* SPDX-License-Identifier: MIT */
#include <weir/time.h>

#include "base/clock.h"

int64_t clock_virtual_ns;

int64_t weir_now_ns(void)
{
    return clock_now_ns();
}

struct weir_deadline weir_within(int64_t duration_ns)
{
    int64_t now_ns = clock_now_ns();

    if (duration_ns <= 0)
        return WEIR_NO_WAIT;
    if (duration_ns > INT64_MAX - now_ns)
        return WEIR_FOREVER;
    return (struct weir_deadline){now_ns + duration_ns};
}
