/* SPDX-License-Identifier: MIT */
/* The word's value is how many have arrived in this phase; or BROKEN. */
#include <weir/barrier.h>

#include "base/container.h"
#include "base/cpu.h"
#include "core/op.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_barrier) <= 32, "weir_barrier is part of the ABI");

static const uint64_t EMPTY = 0;
static const uint64_t ONE = UINT64_C(1) << WORD_SHIFT;
static const uint64_t BROKEN = UINT64_C(1) << (WORD_SHIFT + 32);

static struct weir_barrier *barrier_of(waitq *q)
{
    return container_of(q, struct weir_barrier, queue_);
}

/* Send everyone away who waits: 0 keeps the index that each was given on arrival. */
static void dismiss(struct weir_barrier *barrier, int result, batch *all) REQUIRES(barrier->queue_)
{
    all->result = result;
    waitq_detach(&barrier->queue_, all);
}

static int queue_up(struct weir_barrier *barrier, waiter *w, int index) REQUIRES(barrier->queue_)
{
    int r = waitq_push_crowd(&barrier->queue_, w);

    if (r < 0)
        return r;
    w->result = index;
    /* The queue's own rule would let the first few spin; but who waits at a barrier waits
     * for all, so spin only if all can be running. */
    w->sleeper.flags &= (uint8_t)~SLEEP_SPIN;
    if (sleeper_should_spin(&w->sleeper, &barrier->cpus_, barrier->parties_ - 2))
        w->sleeper.flags |= SLEEP_SPIN;
    return 0;
}

static int arrive(struct weir_barrier *barrier, uint64_t *word, waiter *w, batch *all)
    REQUIRES(barrier->queue_)
{
    uint64_t index = word_value(*word);

    if (barrier->parties_ - 1 >= WEIR_BARRIER_MAX)
        return WEIR_EINVAL; /* a static initialiser with a bad number */
    if (*word == BROKEN)
        return WEIR_EBROKEN;
    if (index + 1 == barrier->parties_) {
        *word = EMPTY;
        barrier->cpus_.giver = w->sleeper.cpu;
        dismiss(barrier, 0, all);
        return 1 + (int)index;
    }

    int r = queue_up(barrier, w, (int)index);
    if (r == 0) {
        *word += ONE;
        barrier->cpus_.taker = w->sleeper.cpu;
    } else if (r != WEIR_ECONTEXT) {
        *word = BROKEN; /* it will not come back to wait */
        dismiss(barrier, WEIR_EBROKEN, all);
    }
    return r;
}

static int barrier_join(waitq *q, waiter *w)
{
    struct weir_barrier *barrier = barrier_of(q);
    batch all = {0};
    uint64_t word = waitq_lock(&barrier->queue_);
    int r = arrive(barrier, &word, w, &all);

    waitq_unlock(&barrier->queue_, word);
    waitq_deliver(&all);
    return r;
}

UNCHECKED static uint64_t barrier_left(waitq *q, uint64_t word, waiter *w, batch *others)
{
    struct weir_barrier *barrier = barrier_of(q);

    (void)word;
    (void)w;
    dismiss(barrier, WEIR_EBROKEN, others);
    return BROKEN;
}

static const wait_kind waiting = {.name = "barrier", .join = barrier_join, .left = barrier_left};

/* Send everyone away and go on from `word`. */
static void start_over(struct weir_barrier *barrier, uint64_t word)
{
    batch all = {0};

    waitq_lock(&barrier->queue_);
    dismiss(barrier, WEIR_EBROKEN, &all);
    waitq_unlock(&barrier->queue_, word);
    waitq_deliver(&all);
}

int weir_barrier_init(struct weir_barrier *barrier, uint32_t parties)
{
    if (parties - 1 >= WEIR_BARRIER_MAX)
        return WEIR_EINVAL;
    *barrier = (struct weir_barrier)WEIR_BARRIER_INIT(parties);
    return 0;
}

int weir_barrier_wait(struct weir_barrier *barrier, struct weir_deadline deadline,
                      uint32_t *ret_index)
{
    uint32_t last = barrier->parties_ - 1; /* the barrier may be gone when we return */
    int r = waitq_block(&barrier->queue_, &waiting, 0, deadline);

    if (r < 0)
        return r;
    if (ret_index)
        *ret_index = (uint32_t)r;
    if ((uint32_t)r == last)
        park_give_way(); /* the last to arrive runs last */
    return 0;
}

int weir_barrier_wait_async(struct weir_barrier *barrier, struct weir_op *op, weir_done *done)
{
    return op_start(op, &barrier->queue_, &waiting, 0, done);
}

int weir_barrier_enter(struct weir_barrier *barrier, struct weir_deadline deadline,
                       uint32_t *ret_index)
{
    return weir_barrier_wait(barrier, deadline, ret_index);
}

void weir_barrier_leave(struct weir_barrier *barrier, bool succeeded)
{
    if (!succeeded)
        weir_barrier_abort(barrier);
}

void weir_barrier_abort(struct weir_barrier *barrier)
{
    start_over(barrier, BROKEN);
}

void weir_barrier_reset(struct weir_barrier *barrier)
{
    start_over(barrier, EMPTY);
}

bool weir_barrier_is_broken(const struct weir_barrier *barrier)
{
    return (atomic_get(&barrier->queue_.word) & BROKEN) != 0;
}

uint32_t weir_barrier_waiting(const struct weir_barrier *barrier)
{
    return atomic_peek(&barrier->queue_.length);
}
