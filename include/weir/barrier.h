/* SPDX-License-Identifier: MIT */
/* weir/barrier.h - a meeting point, used again and again.
 *
 *     struct weir_barrier step;
 *     weir_barrier_init(&step, 4);
 *
 *     uint32_t index;
 *     r = weir_barrier_wait(&step, WEIR_FOREVER, &index); // each of the four
 *     if (r == 0 && index == 0)
 *         swap_buffers();                                 // exactly one of them
 *
 * Each phase takes `parties` arrivals.  The last one completes it: everyone is
 * given their index, 0 to parties - 1 in order of arrival, and is made runnable in
 * that order (threads asleep together in the order in which they fell asleep)
 * before the last arriver's call returns.  If more than `parties` come, they form
 * phases, first come first.
 *
 * Breaking.  A barrier breaks when a wait fails (deadline or cancel) or someone
 * calls abort: everyone waiting, now and later, gets WEIR_EBROKEN.  The wait that
 * failed reports its own reason.  With a deadline already past, the last to arrive
 * completes the phase; anyone else breaks it.  A phase that was complete is never
 * touched: its members all succeed.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_BARRIER_H
#define WEIR_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

#define WEIR_BARRIER_MAX INT32_MAX /* the most parties; an index is an int */

/* Private fields; see weir/storage.h. */
struct weir_barrier {
    struct weir_waitq_ queue_;
    uint32_t parties_;
    struct weir_cpus_ cpus_;
};

/* clang-format off */
/* Empty and whole, for 1 to WEIR_BARRIER_MAX parties. */
#define WEIR_BARRIER_INIT(parties) {WEIR_WAITQ_INIT_(0), (parties), {0, 0}}
/* clang-format on */

/* Returns 0, or WEIR_EINVAL for 0 parties or too many. */
WEIR_API int weir_barrier_init(struct weir_barrier *barrier, uint32_t parties) WEIR_NONNULL(1);

/* Arrive, and wait for the phase to be complete.  Returns 0 and writes the index
 * (ret_index may be NULL); or WEIR_EBROKEN, WEIR_ETIMEDOUT or WEIR_ECANCELED (both
 * break it), or WEIR_ECONTEXT (which changes nothing). */
WEIR_API int weir_barrier_wait(struct weir_barrier *barrier, struct weir_deadline deadline,
                               uint32_t *ret_index) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* The work after a phase as a block: enter waits like weir_barrier_wait, leave
 * aborts unless the work succeeded, so that one worker's error cannot leave the
 * others waiting for it.
 *
 *     r = weir_barrier_enter(&step, WEIR_FOREVER, NULL);
 *     if (r == 0)
 *         weir_barrier_leave(&step, do_my_share() == 0); */
WEIR_API int weir_barrier_enter(struct weir_barrier *barrier, struct weir_deadline deadline,
                                uint32_t *ret_index) WEIR_MUST_CHECK WEIR_NONNULL(1);
WEIR_API void weir_barrier_leave(struct weir_barrier *barrier, bool succeeded) WEIR_NONNULL(1);

/* Break it.  Those waiting get WEIR_EBROKEN, and so does everyone until a reset. */
WEIR_API void weir_barrier_abort(struct weir_barrier *barrier) WEIR_NONNULL(1);

/* Give those waiting WEIR_EBROKEN and leave the barrier empty and whole. */
WEIR_API void weir_barrier_reset(struct weir_barrier *barrier) WEIR_NONNULL(1);

WEIR_API bool weir_barrier_is_broken(const struct weir_barrier *barrier) WEIR_NONNULL(1);

/* How many have arrived in the phase that is not complete. */
WEIR_API uint32_t weir_barrier_waiting(const struct weir_barrier *barrier) WEIR_NONNULL(1);

WEIR_END

#endif
