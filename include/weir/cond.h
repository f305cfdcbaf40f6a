/* SPDX-License-Identifier: MIT */
/* weir/cond.h - wait, outside a mutex, for something that it guards to change.
 *
 *     r = weir_mutex_lock(&m, WEIR_FOREVER);
 *     while (r == 0 && !ready)
 *         r = weir_cond_wait(&changed, &m, deadline);
 *     ...                                   // m is ours here, whatever r says
 *     weir_mutex_unlock(&m);
 *
 * A waiter owns the mutex again when wait returns, whatever it returns.  There are
 * no spurious wake-ups, but others may have held the mutex in between: test again.
 *
 * A signal does not wake a waiter to collide on the mutex: it moves the waiter to
 * the mutex's queue, where it is handed the mutex in its turn.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_COND_H
#define WEIR_COND_H

#include <stdint.h>

#include <weir/mutex.h>

WEIR_BEGIN

/* clang-format off */
struct weir_cond { struct weir_waitq_ queue_; };

#define WEIR_COND_INIT {WEIR_WAITQ_INIT_(0)}
/* clang-format on */

WEIR_API void weir_cond_init(struct weir_cond *cond) WEIR_NONNULL(1);

/* Unlock the mutex, wait for a signal, and own the mutex again.  Returns 0 if
 * signalled, or WEIR_ETIMEDOUT, WEIR_ECANCELED or WEIR_ECONTEXT.  A deadline
 * already past, or a cancelled task, returns without letting go of the mutex. */
WEIR_API int weir_cond_wait(struct weir_cond *cond, struct weir_mutex *mutex,
                            struct weir_deadline deadline) WEIR_MUST_CHECK WEIR_NONNULL(1, 2);

/* Let up to n waiters go on, oldest first.  With or without the mutex. */
WEIR_API void weir_cond_signal(struct weir_cond *cond, uint32_t n) WEIR_NONNULL(1);
WEIR_API void weir_cond_broadcast(struct weir_cond *cond) WEIR_NONNULL(1);

WEIR_END

#endif
