/* SPDX-License-Identifier: MIT */
/* weir/latch.h - a gate that opens once, when enough have arrived.
 *
 *     struct weir_latch all_started;
 *     weir_latch_init(&all_started, 8);
 *
 *     r = weir_latch_wait(&all_started, WEIR_FOREVER); // arrive and wait: the workers
 *     weir_latch_arrive(&all_started, 1);              // only arrive
 *
 * Once open it stays open: every wait returns 0 at once, and it can no longer break.
 *
 * Breaking.  If one of those expected gives up, the others must not wait for ever.
 * So a latch that is not yet open breaks when a wait on it fails (deadline or
 * cancel) or someone calls abort: everyone waiting, now and later, gets
 * WEIR_EBROKEN.  The wait that failed reports its own reason.  With a deadline
 * already past, the last to arrive opens the latch; anyone else breaks it.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_LATCH_H
#define WEIR_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

/* clang-format off */
struct weir_latch { struct weir_waitq_ queue_; };

/* Closed, with `parties` missing, 1 to UINT32_MAX.  For 0 it is open; for more, broken. */
#define WEIR_LATCH_INIT(parties) \
    {WEIR_WAITQ_INIT_(WEIR_COUNT_OR_(parties, UINT32_MAX, UINT64_C(1) << 32))}
/* clang-format on */

/* Returns 0, or WEIR_EINVAL for 0 parties. */
WEIR_API int weir_latch_init(struct weir_latch *latch, uint32_t parties) WEIR_NONNULL(1);

/* Arrive n times without waiting.  Returns 0, WEIR_EBROKEN, or WEIR_EOVERFLOW if
 * fewer than n are missing; nothing is changed then. */
WEIR_API int weir_latch_arrive(struct weir_latch *latch, uint32_t n) WEIR_NONNULL(1);

/* Arrive, and wait until the latch opens; if it is open already, only return 0.
 * Returns 0, WEIR_EBROKEN, WEIR_ETIMEDOUT or WEIR_ECANCELED (both break it), or
 * WEIR_ECONTEXT (which changes nothing). */
WEIR_API int weir_latch_wait(struct weir_latch *latch, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Break it, unless it is open. */
WEIR_API void weir_latch_abort(struct weir_latch *latch) WEIR_NONNULL(1);
WEIR_API bool weir_latch_is_broken(const struct weir_latch *latch) WEIR_NONNULL(1);

WEIR_END

#endif
