/* SPDX-License-Identifier: MIT */
/* weir/countdown.h - wait until a number of things have come to an end.
 *
 *     struct weir_countdown running = WEIR_COUNTDOWN_INIT(0);
 *
 *     weir_countdown_up(&running, 1);                  // before a worker starts
 *     weir_countdown_down(&running, 1);                // when it ends
 *     r = weir_countdown_wait(&running, WEIR_FOREVER); // until all have
 *
 * Waits return when the value is zero, so on a new countdown at once.  The value
 * may rise and fall any number of times, also while others wait; each time it
 * reaches zero, exactly those who wait at that moment are woken.
 *
 * It takes 24 bytes whatever the value, so that m waiters joining n workers cost
 * O(m + n).  up and down are one atomic operation each, unless they wake somebody.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_COUNTDOWN_H
#define WEIR_COUNTDOWN_H

#include <stdint.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

#define WEIR_COUNTDOWN_MAX ((UINT64_C(1) << 60) - 1) /* the largest value */

/* clang-format off */
struct weir_countdown { struct weir_waitq_ queue_; };

/* With a value above WEIR_COUNTDOWN_MAX it starts at that. */
#define WEIR_COUNTDOWN_INIT(value) \
    {WEIR_WAITQ_INIT_(WEIR_COUNT_OR_(value, WEIR_COUNTDOWN_MAX, WEIR_COUNTDOWN_MAX))}
/* clang-format on */

/* Returns 0, or WEIR_EINVAL for a value above WEIR_COUNTDOWN_MAX. */
WEIR_API int weir_countdown_init(struct weir_countdown *countdown, uint64_t value) WEIR_NONNULL(1);

/* Add n to the value.  Returns 0, or WEIR_EOVERFLOW beyond WEIR_COUNTDOWN_MAX. */
WEIR_API int weir_countdown_up(struct weir_countdown *countdown, uint64_t n) WEIR_NONNULL(1);

/* Take n off the value; at zero everyone is woken.  Returns 0, or WEIR_EOVERFLOW
 * if the value is less than n; it is then left as it was. */
WEIR_API int weir_countdown_down(struct weir_countdown *countdown, uint64_t n) WEIR_NONNULL(1);

WEIR_API uint64_t weir_countdown_value(const struct weir_countdown *countdown) WEIR_NONNULL(1);

/* Make the value zero and wake everyone. */
WEIR_API void weir_countdown_clear(struct weir_countdown *countdown) WEIR_NONNULL(1);

/* Returns 0 once the value is or was zero, or WEIR_ETIMEDOUT, WEIR_ECANCELED or
 * WEIR_ECONTEXT. */
WEIR_API int weir_countdown_wait(struct weir_countdown *countdown, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

WEIR_END

#endif
