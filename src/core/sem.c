/* SPDX-License-Identifier: MIT */
/* The word's value is the number of free permits, negative while a shrink has not been
 * paid for.  What is held is therefore capacity - value, whatever the capacity is. */
#include <weir/sem.h>

#include <weir/op.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/cpu.h"
#include "core/op.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_sem) <= 40, "weir_sem is part of the ABI");

enum { WANT_IDLE = 0 }; /* takes no permit, waits until nobody has one */

static struct weir_sem *sem_of(waitq *q)
{
    return container_of(q, struct weir_sem, queue_);
}

static bool is_count(uint64_t n)
{
    return n - 1 < WEIR_SEM_MAX; /* 1 to WEIR_SEM_MAX; 0 wraps around */
}

static int64_t free_permits(uint64_t word)
{
    return (int64_t)word >> WORD_SHIFT;
}

static uint64_t held_permits(const struct weir_sem *sem, uint64_t word) REQUIRES(sem->queue_)
{
    return sem->capacity_ - (uint64_t)free_permits(word);
}

static bool fits(const struct weir_sem *sem, uint64_t word, uint64_t want) REQUIRES(sem->queue_)
{
    return want == WANT_IDLE ? held_permits(sem, word) == 0 : free_permits(word) >= (int64_t)want;
}

/* ---- under the lock --------------------------------------------------------- */

/* Serve the queue from its head for as long as the head fits.  Stop at the first
 * waiter that does not fit, even if a later one would: that is what keeps a
 * large request from starving. */
static uint64_t serve(struct weir_sem *sem, uint64_t word, batch *granted) REQUIRES(sem->queue_)
{
    waiter *w;

    while ((w = waitq_first(&sem->queue_)) && fits(sem, word, w->want)) {
        word -= word_of(w->want);
        sem->idlers_ -= w->want == WANT_IDLE;
        sem->cpus_.taker = w->sleeper.cpu;
        waitq_grant(&sem->queue_, w, granted);
    }
    return word;
}

/* Take all waiters out that `hopeless` says can never be served. */
static void weed(struct weir_sem *sem, bool (*hopeless)(const struct weir_sem *, const waiter *),
                 batch *failed) REQUIRES(sem->queue_)
{
    waiter *next = waitq_first(&sem->queue_);

    for (uint32_t n = sem->queue_.length; n > 0; n--) {
        waiter *w = next;

        next = w->next;
        if (hopeless(sem, w))
            waitq_grant(&sem->queue_, w, failed);
    }
}

static bool is_too_large(const struct weir_sem *sem, const waiter *w)
{
    return w->want > sem->capacity_;
}

static bool is_acquiring(const struct weir_sem *sem, const waiter *w)
{
    (void)sem;
    return w->want != WANT_IDLE;
}

static int take_or_queue(struct weir_sem *sem, uint64_t *word, waiter *w) REQUIRES(sem->queue_)
{
    if (w->want > sem->capacity_)
        return WEIR_EINVAL;
    if (sem->queue_.shut && w->want != WANT_IDLE)
        return WEIR_ECLOSED;
    if (waitq_first(&sem->queue_) == NULL && fits(sem, *word, w->want)) {
        *word -= word_of(w->want);
        return 1;
    }

    if (sleeper_should_spin(&w->sleeper, &sem->cpus_, sem->queue_.length))
        w->sleeper.flags |= SLEEP_SPIN;
    int r = waitq_push(&sem->queue_, w);
    sem->idlers_ += r == 0 && w->want == WANT_IDLE;
    return r;
}

/* ---- what waiting means ----------------------------------------------------- */

static int sem_join(waitq *q, waiter *w)
{
    struct weir_sem *sem = sem_of(q);
    uint64_t word = waitq_lock(&sem->queue_);
    int r = take_or_queue(sem, &word, w);

    waitq_unlock(&sem->queue_, word);
    return r;
}

/* Whoever left may have been the large request that held up the rest. */
UNCHECKED static uint64_t sem_left(waitq *q, uint64_t word, waiter *w, batch *granted)
{
    struct weir_sem *sem = sem_of(q);

    sem->idlers_ -= w->want == WANT_IDLE;
    return serve(sem, word, granted);
}

static const wait_kind acquiring = {.name = "semaphore", .join = sem_join, .left = sem_left};

/* ---- the fast path ---------------------------------------------------------- */

enum { TAKEN, TOO_FEW, UNKNOWN };

static inline int take_at_once(struct weir_sem *sem, uint64_t n)
{
    uint64_t word = atomic_peek(&sem->queue_.word);

    while (!(word & WORD_FLAGS)) {
        if (free_permits(word) < (int64_t)n)
            return TOO_FEW;
        if (atomic_cas(&sem->queue_.word, &word, word - word_of(n)))
            return TAKEN;
    }
    return UNKNOWN;
}

/* Too many are refused only under the lock: a resize may be changing the capacity.
 * The other way round a stale capacity does no harm, since whoever really holds n
 * permits may always give them back. */
static inline bool give_at_once(struct weir_sem *sem, uint64_t n)
{
    uint64_t word = atomic_peek(&sem->queue_.word);

    while (!(word & WORD_FLAGS) &&
           free_permits(word) <= (int64_t)(atomic_peek(&sem->capacity_) - n)) {
        if (atomic_cas(&sem->queue_.word, &word, word + word_of(n)))
            return true;
    }
    return false;
}

__attribute__((noinline)) static int give_and_serve(struct weir_sem *sem, uint64_t n)
{
    batch granted = {0};
    uint64_t word = waitq_lock(&sem->queue_);

    if (n > held_permits(sem, word)) {
        waitq_unlock(&sem->queue_, word);
        return WEIR_EOVERFLOW;
    }
    sem->cpus_.giver = cpu_here();
    word = serve(sem, word + word_of(n), &granted);
    waitq_unlock(&sem->queue_, word);
    waitq_deliver(&granted);
    return 0;
}

/* ---- public ----------------------------------------------------------------- */

int weir_sem_init(struct weir_sem *sem, uint64_t permits)
{
    if (!is_count(permits))
        return WEIR_EINVAL;
    *sem = (struct weir_sem)WEIR_SEM_INIT(permits);
    return 0;
}

/* A wait for one permit whose deadline is long past is refused as the queue would do it, but
 * without its lock.  Not for several: whether so many can ever fit is for the capacity to
 * say, and a resize may come between the two looks. */
__attribute__((noinline)) static int wait_for_one(struct weir_sem *sem,
                                                  struct weir_deadline deadline)
{
    if (clock_long_passed(deadline.at_ns) && atomic_peek(&sem->capacity_) > 0)
        return WEIR_ETIMEDOUT;
    return waitq_block(&sem->queue_, &acquiring, 1, deadline);
}

int weir_sem_acquire(struct weir_sem *sem, uint64_t n, struct weir_deadline deadline)
{
    if (!is_count(n))
        return WEIR_EINVAL;
    int r = take_at_once(sem, n);
    if (r == TAKEN)
        return 0;
    if (r == TOO_FEW && n == 1 && parker_current == NULL)
        return wait_for_one(sem, deadline);
    return waitq_block(&sem->queue_, &acquiring, n, deadline);
}

int weir_sem_try_acquire(struct weir_sem *sem, uint64_t n)
{
    int r = weir_sem_acquire(sem, n, WEIR_NO_WAIT);

    return r == WEIR_ETIMEDOUT ? WEIR_EAGAIN : r;
}

int weir_sem_acquire_async(struct weir_sem *sem, uint64_t n, struct weir_op *op, weir_done *done)
{
    if (!is_count(n))
        return WEIR_EINVAL;
    return op_start(op, &sem->queue_, &acquiring, n, done);
}

int weir_sem_release(struct weir_sem *sem, uint64_t n)
{
    if (!is_count(n))
        return WEIR_EINVAL;
    return give_at_once(sem, n) ? 0 : give_and_serve(sem, n);
}

int weir_sem_wait_idle(struct weir_sem *sem, struct weir_deadline deadline)
{
    return waitq_block(&sem->queue_, &acquiring, WANT_IDLE, deadline);
}

int weir_sem_wait_idle_async(struct weir_sem *sem, struct weir_op *op, weir_done *done)
{
    return op_start(op, &sem->queue_, &acquiring, WANT_IDLE, done);
}

int weir_sem_resize(struct weir_sem *sem, uint64_t permits)
{
    batch failed = {.result = WEIR_EINVAL}, granted = {0};

    if (!is_count(permits))
        return WEIR_EINVAL;

    uint64_t word = waitq_lock(&sem->queue_);
    bool shrinks = permits < sem->capacity_;
    word += word_of(permits - sem->capacity_); /* modulo 2^64: it may go down, and into debt */
    atomic_poke(&sem->capacity_, permits);
    if (shrinks)
        weed(sem, is_too_large, &failed);
    word = serve(sem, word, &granted);
    waitq_unlock(&sem->queue_, word);

    waitq_deliver(&failed);
    waitq_deliver(&granted);
    return 0;
}

void weir_sem_close(struct weir_sem *sem)
{
    batch failed = {.result = WEIR_ECLOSED};
    uint64_t word = waitq_lock(&sem->queue_);

    sem->queue_.shut = 1;
    if (sem->idlers_ > 0)
        weed(sem, is_acquiring, &failed); /* those who wait for idleness wait on */
    else
        waitq_detach(&sem->queue_, &failed);
    waitq_unlock(&sem->queue_, word);
    waitq_deliver(&failed);
}

uint64_t weir_sem_capacity(const struct weir_sem *sem)
{
    return atomic_peek(&sem->capacity_);
}

uint64_t weir_sem_available(const struct weir_sem *sem)
{
    int64_t n = free_permits(atomic_peek(&sem->queue_.word));

    return n > 0 ? (uint64_t)n : 0;
}

uint64_t weir_sem_waiting(const struct weir_sem *sem)
{
    return atomic_peek(&sem->queue_.length);
}
