/* SPDX-License-Identifier: MIT */
#include "core/waitq.h"

#include "base/container.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/testpoint.h"

_Static_assert(sizeof(waitq) == 24, "embedded in every primitive");
_Static_assert(sizeof(waiter) == 64, "one cache line, and part of weir_op");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the futex is the word's lower half");

/* ---- the lock --------------------------------------------------------------- */

/* Those inside leave within a hundred instructions, so look again a few times, then
 * let others run, since the owner may be among them, and then sleep: a thread of high
 * priority that kept yielding would never let its owner finish. */
enum { LOCK_PAUSES = 64, LOCK_YIELDS = 8 };

static uint32_t *futex_of(waitq *q)
{
    return (uint32_t *)(void *)&q->word;
}

/* Wait until the lock may be free.  Returns the flag with which it must be taken:
 * after a sleep there may be other sleepers, whom the mark we slept under stood for. */
static uint64_t lock_wait(waitq *q, int attempt)
{
    if (attempt < LOCK_PAUSES) {
        cpu_pause();
        return 0;
    }
    if (attempt < LOCK_PAUSES + LOCK_YIELDS) {
        cpu_yield();
        return 0;
    }

    uint64_t word = atomic_peek(&q->word);
    if ((word & WORD_LOCKED) && atomic_cas(&q->word, &word, word | WORD_SLEEPER))
        futex_wait(futex_of(q), (uint32_t)word | WORD_SLEEPER, INT64_MAX);
    return WORD_SLEEPER;
}

UNCHECKED uint64_t waitq_lock_slowly(waitq *q)
{
    uint64_t mark = 0;

    for (int attempt = 0;; attempt++) {
        uint64_t word = atomic_peek(&q->word);

        if (!(word & WORD_LOCKED) && atomic_cas(&q->word, &word, word | WORD_LOCKED | mark))
            return word & ~(uint64_t)WORD_FLAGS;
        mark |= lock_wait(q, attempt);
    }
}

void waitq_wake_sleeper(waitq *q)
{
    futex_wake(futex_of(q), 1);
}

/* ---- the queue -------------------------------------------------------------- */

static bool is_queued(const waitq *q, const waiter *w) REQUIRES(*q);
static bool is_queued(const waitq *q, const waiter *w)
{
    return atomic_peek(&w->queue) == q && w->epoch == q->epoch; /* invariant 5 */
}

int waitq_push_crowd(waitq *q, waiter *w)
{
    if (q->length + 1 < cpu_count())
        w->sleeper.flags |= SLEEP_SPIN;
    sleeper_join_crowd(&w->sleeper, q);
    return waitq_push(q, w);
}

void waitq_push_granted(waitq *q, waiter *w)
{
    /* The epoch stays that of its first queue, which may be comparing it right now to
     * find out whether w can still leave. */
    waitq_link(q, w);
}

void waitq_detach(waitq *q, batch *b)
{
    if (q->newest == NULL)
        return;
    b->first = q->newest->next;
    b->last = q->newest;
    b->last->next = NULL;
    q->newest = NULL;
    q->epoch++;
    atomic_poke(&q->length, 0);
}

void waitq_deliver(batch *b)
{
    uint8_t crowd = 0;
    waiter *next;

    if (b->first == NULL)
        return;
    TESTPOINT("waitq: granted, not delivered");
    for (waiter *w = b->first; w; w = next) {
        next = w->next;
        if (b->result < 0)
            w->result = b->result;
        crowd |= sleeper_done(&w->sleeper); /* all of one queue share one crowd */
    }
    if (crowd)
        crowd_wake(crowd);
}

/* ---- waiting ---------------------------------------------------------------- */

const char *sleeper_waits_for(const sleeper *s)
{
    if (s->flags & SLEEP_QUEUED)
        return container_of(s, const waiter, sleeper)->kind->name;
    return s->flags & SLEEP_FD ? "descriptor" : NULL;
}

bool waitq_leave(waitq *q, waiter *w)
{
    batch others = {0};

    TESTPOINT("waitq: about to leave");
    uint64_t word = waitq_lock(q);
    bool left = is_queued(q, w);
    if (left) {
        waitq_unlink(q, w);
        if (w->kind->left)
            word = w->kind->left(q, word, w, &others);
    }
    waitq_unlock(q, word);
    waitq_deliver(&others);
    return left;
}

int waitq_give_up(waitq *q, waiter *w, int why)
{
    if (waitq_leave(q, w))
        return why;
    /* Granted: the wake-up is only instructions away, and to return now would leak what we
     * were granted (invariant 2). */
    w->sleeper.flags = SLEEP_QUEUED | SLEEP_FIRM | SLEEP_AGAIN;
    park(&w->sleeper, WEIR_FOREVER);
    return w->result;
}

/* Never inlined: its callers' fast paths need no stack frame. */
__attribute__((noinline)) int waitq_block(waitq *q, const wait_kind *kind, uint64_t want,
                                          struct weir_deadline deadline)
{
    /* On a cache line of its own: a hand-off to another CPU moves one, not two. */
    _Alignas(64) waiter w = {
        .want = want,
        .kind = kind,
        .sleeper = sleeper_self(),
    };

    w.result = w.sleeper.parker->ops->refusal(w.sleeper.parker, deadline);
    int r = kind->join(q, &w);

    if (r > 0)
        return r - 1;
    return r == 0 ? waitq_wait(q, &w, deadline) : r;
}
