/* SPDX-License-Identifier: MIT */
/* weir/time.h - one clock, one unit, one way to say "until when". */
#ifndef WEIR_TIME_H
#define WEIR_TIME_H

#include <stdint.h>

#include <weir/visibility.h>

WEIR_BEGIN

#define WEIR_US INT64_C(1000) /* nanoseconds in a microsecond */
#define WEIR_MS (1000 * WEIR_US)
#define WEIR_S  (1000 * WEIR_MS)

/* A point on the monotonic clock after which a wait gives up.  It is a struct,
 * not a number, so that a duration cannot be passed where a deadline is meant.
 * Deadlines are absolute: a wait that restarts does not get extra time.
 *
 * A deadline in the past means "try once, do not wait": what is free is taken,
 * anything else is WEIR_ETIMEDOUT, and the caller never sleeps. */
struct weir_deadline {
    int64_t at_ns; /* CLOCK_MONOTONIC; 0 = do not wait, INT64_MAX = wait for ever */
};

#ifdef __cplusplus
#define WEIR_NO_WAIT (weir_deadline{0})
#define WEIR_FOREVER (weir_deadline{INT64_MAX})
#else
#define WEIR_NO_WAIT ((struct weir_deadline){0})
#define WEIR_FOREVER ((struct weir_deadline){INT64_MAX})
#endif

/* The monotonic clock, in nanoseconds. */
WEIR_API int64_t weir_now_ns(void);

/* The deadline duration_ns from now: weir_within(250 * WEIR_MS).  A duration of
 * zero or less is WEIR_NO_WAIT; one too long to be told is WEIR_FOREVER. */
WEIR_API struct weir_deadline weir_within(int64_t duration_ns);

WEIR_END

#endif
