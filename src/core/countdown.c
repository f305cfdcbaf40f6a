/* SPDX-License-Identifier: MIT */
/* The word's value is the count.  Waiters care about zero alone, so every other change
 * may be made past them with a cas, as long as nobody is inside. */
#include <weir/countdown.h>

#include "core/op.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_countdown) <= 32, "weir_countdown is part of the ABI");

static int countdown_join(waitq *q, waiter *w)
{
    uint64_t word = waitq_lock(q);
    int r = word == 0 ? 1 : waitq_push_crowd(q, w);

    waitq_unlock(q, word);
    return r;
}

static const wait_kind waiting = {.name = "countdown", .join = countdown_join};

static int up_locked(struct weir_countdown *countdown, uint64_t n)
{
    uint64_t word = waitq_lock(&countdown->queue_);
    bool fits = n <= WEIR_COUNTDOWN_MAX - word_value(word);

    waitq_unlock(&countdown->queue_, fits ? word + word_of(n) : word);
    return fits ? 0 : WEIR_EOVERFLOW;
}

static int down_locked(struct weir_countdown *countdown, uint64_t n)
{
    batch all = {0};
    uint64_t word = waitq_lock(&countdown->queue_);
    bool fits = n <= word_value(word);

    if (fits)
        word -= word_of(n);
    if (word == 0)
        waitq_detach(&countdown->queue_, &all);
    waitq_unlock(&countdown->queue_, word);
    waitq_deliver(&all);
    return fits ? 0 : WEIR_EOVERFLOW;
}

int weir_countdown_init(struct weir_countdown *countdown, uint64_t value)
{
    if (value > WEIR_COUNTDOWN_MAX)
        return WEIR_EINVAL;
    *countdown = (struct weir_countdown)WEIR_COUNTDOWN_INIT(value);
    return 0;
}

int weir_countdown_up(struct weir_countdown *countdown, uint64_t n)
{
    uint64_t word = atomic_peek(&countdown->queue_.word);

    do {
        if (word & WORD_LOCKED)
            return up_locked(countdown, n);
        if (n > WEIR_COUNTDOWN_MAX - word_value(word))
            return WEIR_EOVERFLOW;
    } while (!atomic_cas(&countdown->queue_.word, &word, word + word_of(n)));
    return 0;
}

int weir_countdown_down(struct weir_countdown *countdown, uint64_t n)
{
    uint64_t word = atomic_peek(&countdown->queue_.word);

    do {
        bool wakes = (word & WORD_BUSY) && word_value(word) == n;

        if ((word & WORD_LOCKED) || wakes)
            return down_locked(countdown, n);
        if (n > word_value(word))
            return WEIR_EOVERFLOW;
    } while (!atomic_cas(&countdown->queue_.word, &word, word - word_of(n)));
    return 0;
}

uint64_t weir_countdown_value(const struct weir_countdown *countdown)
{
    return word_value(atomic_get(&countdown->queue_.word));
}

void weir_countdown_clear(struct weir_countdown *countdown)
{
    batch all = {0};

    if (weir_countdown_value(countdown) == 0)
        return;
    waitq_lock(&countdown->queue_);
    waitq_detach(&countdown->queue_, &all);
    waitq_unlock(&countdown->queue_, 0);
    waitq_deliver(&all);
}

int weir_countdown_wait(struct weir_countdown *countdown, struct weir_deadline deadline)
{
    if (weir_countdown_value(countdown) == 0)
        return 0;
    return waitq_block(&countdown->queue_, &waiting, 0, deadline);
}

int weir_countdown_wait_async(struct weir_countdown *countdown, struct weir_op *op, weir_done *done)
{
    return op_start(op, &countdown->queue_, &waiting, 0, done);
}
