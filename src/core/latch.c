/* SPDX-License-Identifier: MIT */
/* The word's value is how many are missing, and 0 is open; or BROKEN. */
#include <weir/latch.h>

#include "core/op.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_latch) <= 32, "weir_latch is part of the ABI");

static const uint64_t OPEN = 0;
static const uint64_t ONE = UINT64_C(1) << WORD_SHIFT;
static const uint64_t BROKEN = UINT64_C(1) << (WORD_SHIFT + 32);

/* What a wait gets, besides 0, if it was the one that all were waiting for. */
enum { OPENED_IT = 1 };

/* Open it or break it, and take everyone who waits. */
static uint64_t settle(waitq *q, uint64_t outcome, batch *all) REQUIRES(*q)
{
    all->result = outcome == BROKEN ? WEIR_EBROKEN : 0;
    waitq_detach(q, all);
    return outcome;
}

static int arrive_and_queue(waitq *q, uint64_t *word, waiter *w, batch *all) REQUIRES(*q)
{
    if (*word == BROKEN)
        return WEIR_EBROKEN;
    if (*word == OPEN)
        return 1;
    if (*word == ONE) {
        *word = settle(q, OPEN, all);
        return 1 + OPENED_IT;
    }

    int r = waitq_push_crowd(q, w);
    if (r == 0)
        *word -= ONE;
    else if (r != WEIR_ECONTEXT)
        *word = settle(q, BROKEN, all); /* it will not come back to wait */
    return r;
}

static int latch_join(waitq *q, waiter *w)
{
    batch all = {0};
    uint64_t word = waitq_lock(q);
    int r = arrive_and_queue(q, &word, w, &all);

    waitq_unlock(q, word);
    waitq_deliver(&all);
    return r;
}

static uint64_t latch_left(waitq *q, uint64_t word, waiter *w, batch *others) REQUIRES(*q)
{
    (void)word;
    (void)w;
    return settle(q, BROKEN, others);
}

static const wait_kind waiting = {.name = "latch", .join = latch_join, .left = latch_left};

static int arrive_locked(struct weir_latch *latch, uint32_t n)
{
    batch all = {0};
    int r = 0;
    uint64_t word = waitq_lock(&latch->queue_);

    if (word == BROKEN)
        r = WEIR_EBROKEN;
    else if (word < word_of(n))
        r = WEIR_EOVERFLOW;
    else if (word == word_of(n))
        word = settle(&latch->queue_, OPEN, &all);
    else
        word -= word_of(n);
    waitq_unlock(&latch->queue_, word);
    waitq_deliver(&all);
    return r;
}

int weir_latch_init(struct weir_latch *latch, uint32_t parties)
{
    if (parties == 0)
        return WEIR_EINVAL;
    *latch = (struct weir_latch)WEIR_LATCH_INIT(parties);
    return 0;
}

int weir_latch_arrive(struct weir_latch *latch, uint32_t n)
{
    uint64_t word = atomic_peek(&latch->queue_.word);

    /* Nobody inside and nobody to be told: one atomic operation. */
    while (!(word & WORD_FLAGS) && word != BROKEN && word >= word_of(n)) {
        if (atomic_cas(&latch->queue_.word, &word, word - word_of(n)))
            return 0;
    }
    return arrive_locked(latch, n);
}

int weir_latch_wait(struct weir_latch *latch, struct weir_deadline deadline)
{
    if (atomic_get(&latch->queue_.word) == OPEN)
        return 0;

    int r = waitq_block(&latch->queue_, &waiting, 0, deadline);
    if (r != OPENED_IT)
        return r;
    park_give_way(); /* the last to arrive runs last */
    return 0;
}

int weir_latch_wait_async(struct weir_latch *latch, struct weir_op *op, weir_done *done)
{
    return op_start(op, &latch->queue_, &waiting, 0, done);
}

void weir_latch_abort(struct weir_latch *latch)
{
    batch all = {0};
    uint64_t word = waitq_lock(&latch->queue_);

    if (word != OPEN)
        word = settle(&latch->queue_, BROKEN, &all);
    waitq_unlock(&latch->queue_, word);
    waitq_deliver(&all);
}

bool weir_latch_is_broken(const struct weir_latch *latch)
{
    return (atomic_get(&latch->queue_.word) & BROKEN) != 0;
}
