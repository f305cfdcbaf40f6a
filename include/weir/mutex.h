/* SPDX-License-Identifier: MIT */
/* weir/mutex.h - a lock that is handed over in order of arrival.
 *
 *     static struct weir_mutex lock = WEIR_MUTEX_INIT;
 *
 *     if (weir_mutex_lock(&lock, weir_within(5 * WEIR_MS)) == 0) {
 *         ...
 *         weir_mutex_unlock(&lock);
 *     }
 *
 * It is not recursive, and whoever unlocks it need not be whoever locked it.
 * Unlocking a free mutex stops the program.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_MUTEX_H
#define WEIR_MUTEX_H

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

/* Private fields; see weir/storage.h. */
struct weir_mutex {
    struct weir_waitq_ queue_;
    struct weir_cpus_ cpus_;
};

/* clang-format off */
#define WEIR_MUTEX_INIT {WEIR_WAITQ_INIT_(0), {0, 0}}
/* clang-format on */

WEIR_API void weir_mutex_init(struct weir_mutex *mutex) WEIR_NONNULL(1);

/* Returns 0 and owns the mutex, or WEIR_ETIMEDOUT, WEIR_ECANCELED or
 * WEIR_ECONTEXT. */
WEIR_API int weir_mutex_lock(struct weir_mutex *mutex, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Returns 0 and owns the mutex, or WEIR_EAGAIN. */
WEIR_API int weir_mutex_try_lock(struct weir_mutex *mutex) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Hand the mutex to whoever waits longest, or free it.  Never waits. */
WEIR_API void weir_mutex_unlock(struct weir_mutex *mutex) WEIR_NONNULL(1);

WEIR_END

#endif
