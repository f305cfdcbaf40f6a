/* SPDX-License-Identifier: MIT */
/* weir/sem.h - a weighted semaphore that serves its waiters in order.
 *
 * A semaphore guards a number of permits.  acquire(n) takes n of them, waiting if
 * it must; release(n) gives n back.  Threads, weir tasks and callbacks (weir/op.h)
 * may use the same semaphore at the same time, and stand in one queue.
 *
 *     static struct weir_sem slots = WEIR_SEM_INIT(8);
 *
 *     int r = weir_sem_acquire(&slots, 1, weir_within(250 * WEIR_MS));
 *     if (r < 0)
 *         return r;                        // nothing was taken
 *     run_query();
 *     weir_sem_release(&slots, 1);
 *
 * Order.  Waiters are served strictly first come, first served.  A caller that
 * arrives while others wait goes behind them even if it asks for few permits,
 * so a large request is never starved by a stream of small ones.
 *
 * Hand-off.  A released permit belongs to the waiter at the head of the queue
 * before release() returns; nobody can snatch it in between.
 *
 * Giving up.  A wait that ends by deadline or cancellation holds nothing, and if
 * it stood in the way of others, they are served at once.  If the permits were
 * already on their way to it, the wait succeeds instead.
 *
 * Cost.  An uncontended acquire is one atomic operation, and so is a release;
 * neither takes a lock, allocates or enters the kernel.
 *
 * End of life.  A semaphore needs no destructor.  Its memory may be reused as soon
 * as its last wait has returned and no other call is running on it but the one
 * that ended that wait.  In the child of a fork, initialise it again before use.
 */
#ifndef WEIR_SEM_H
#define WEIR_SEM_H

#include <stdint.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

#define WEIR_SEM_MAX ((UINT64_C(1) << 60) - 1) /* the largest capacity */

/* Private fields; see weir/storage.h. */
struct weir_sem {
    struct weir_waitq_ queue_;
    uint64_t capacity_;
    struct weir_cpus_ cpus_;
    uint32_t idlers_;
};

/* clang-format off */
/* A semaphore of `permits` free permits, 1 to WEIR_SEM_MAX.  With any other number it has
 * none, and every acquire gives WEIR_EINVAL. */
#define WEIR_SEM_INIT(permits) WEIR_SEM_INIT_(WEIR_COUNT_OR_(permits, WEIR_SEM_MAX, 0))
#define WEIR_SEM_INIT_(count)  {WEIR_WAITQ_INIT_(count), (count), {0, 0}, 0}
/* clang-format on */

/* The same at run time.  Returns 0, or WEIR_EINVAL for 0 permits or too many. */
WEIR_API int weir_sem_init(struct weir_sem *sem, uint64_t permits) WEIR_NONNULL(1);

/* Take n permits, waiting for them until `deadline`.
 *
 * Returns 0 and holds n permits, or, holding nothing:
 *   WEIR_EINVAL     n is 0 or above the capacity (or came to be, by a resize)
 *   WEIR_ETIMEDOUT  the deadline passed first
 *   WEIR_ECANCELED  the calling task was cancelled
 *   WEIR_ECLOSED    the semaphore is closed
 *   WEIR_ECONTEXT   it would have to wait where waiting is not allowed */
WEIR_API int weir_sem_acquire(struct weir_sem *sem, uint64_t n, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Like acquire, but WEIR_EAGAIN instead of waiting.  It also declines when
 * others are already queued: it never overtakes. */
WEIR_API int weir_sem_try_acquire(struct weir_sem *sem, uint64_t n) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Give n permits back and hand them to as many waiters as they satisfy, oldest
 * first.  Never waits.  Any thread or task may release, not only the one that
 * acquired; permits may also be released after a close.
 *
 * Returns 0, WEIR_EINVAL for n = 0, or WEIR_EOVERFLOW if fewer than n permits are
 * held; the semaphore is then left as it was. */
WEIR_API int weir_sem_release(struct weir_sem *sem, uint64_t n) WEIR_NONNULL(1);

/* Wait in the queue like everyone else, until nothing is held.  Takes nothing.
 * Works whatever the capacity is resized to, and on a closed semaphore.
 *
 * Returns 0, WEIR_ETIMEDOUT, WEIR_ECANCELED or WEIR_ECONTEXT. */
WEIR_API int weir_sem_wait_idle(struct weir_sem *sem, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Change the capacity while in use.  Growing serves waiters at once.  Shrinking
 * revokes nothing: it takes effect as permits come back.  Queued requests that
 * can never fit any more get WEIR_EINVAL.
 *
 * Returns 0, or WEIR_EINVAL for 0 permits or too many. */
WEIR_API int weir_sem_resize(struct weir_sem *sem, uint64_t permits) WEIR_NONNULL(1);

/* For ever after, acquiring gives WEIR_ECLOSED, also to those who wait now. */
WEIR_API void weir_sem_close(struct weir_sem *sem) WEIR_NONNULL(1);

/* Snapshots for dashboards and tests; out of date by the time you read them.
 * After a shrink, available reads 0 until enough has come back. */
WEIR_API uint64_t weir_sem_capacity(const struct weir_sem *sem) WEIR_NONNULL(1);
WEIR_API uint64_t weir_sem_available(const struct weir_sem *sem) WEIR_NONNULL(1);
WEIR_API uint64_t weir_sem_waiting(const struct weir_sem *sem) WEIR_NONNULL(1);

/* ---- WEIR_HOLD: permits for the length of a block -------------------------- */

struct weir_hold_ {
    struct weir_sem *sem;
    uint64_t n;
    int entered;
};

static inline struct weir_hold_ weir_hold_begin_(struct weir_sem *sem, uint64_t n)
{
    struct weir_hold_ hold = {sem, n, 0};

    if (weir_sem_acquire(sem, n, WEIR_FOREVER) < 0)
        hold.sem = 0;
    return hold;
}

static inline void weir_hold_end_(struct weir_hold_ *hold)
{
    if (hold->sem)
        weir_sem_release(hold->sem, hold->n);
}

/* Run the block that follows while holding n permits, and give them back however
 * it is left: at its end, by break, return or goto.
 *
 *     WEIR_HOLD(&slots, 1) {
 *         if (!connect())
 *             return -1;                   // released here too
 *         run_query();
 *     }
 *
 * It waits for ever.  When it cannot have the permits (cancelled, closed, n out of
 * range) the block is not run; where that matters, call weir_sem_acquire. */
#define WEIR_HOLD(sem, n) WEIR_HOLD_AS_(WEIR_HOLD_NAME_(__LINE__), (sem), (n))

/* A name of its own for each line, so that holds can be nested. */
#define WEIR_HOLD_NAME_(line)  WEIR_HOLD_PASTE_(line)
#define WEIR_HOLD_PASTE_(line) weir_hold_##line##_
#define WEIR_HOLD_AS_(hold, of, n)                                               \
    for (struct weir_hold_ hold                                                  \
         __attribute__((cleanup(weir_hold_end_))) = weir_hold_begin_((of), (n)); \
         hold.sem && !hold.entered; hold.entered = 1)

WEIR_END

#endif
