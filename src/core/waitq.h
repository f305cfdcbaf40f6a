/* SPDX-License-Identifier: MIT */
/* waitq - the one queue every weir primitive waits on.
 *
 * A primitive is a state word and a queue.  The word's upper 61 bits are a value that
 * belongs to the primitive (free permits, a count, a flag); the lower three are ours:
 *
 *     63                                3    2        1      0
 *     +---------------------------------+---------+------+--------+
 *     |  value, signed if it likes      | SLEEPER | BUSY | LOCKED |
 *     +---------------------------------+---------+------+--------+
 *
 *   LOCKED   somebody is inside.  Nobody else changes value or queue.
 *   BUSY     somebody waits, or the queue is shut.  A change of the value may have to
 *            be answered by serving the queue, so it takes the lock.
 *   SLEEPER  somebody sleeps until the lock is free; only ever set while LOCKED.
 *
 * While all three are clear, a primitive may change the value with a single cas: that
 * is the fast path, one atomic operation, and it can never slip past a waiter.
 *
 * A waiter is a record on the stack of whoever waits, or inside a struct weir_op:
 *
 *             kind->join()              waitq_grant()               waitq_deliver()
 *     (new) --------------> queued ----------------------> granted -----------------> done
 *                             |     or waitq_detach():                waker, lock free
 *                             |     waker, under the lock
 *                             +--> gone, by deadline or cancel: waitq_leave(), by the
 *                                  waiter, under the lock
 *
 * Invariants
 *   1. Decisions are made under the lock; wake-ups happen after it is dropped.
 *   2. What is granted is accounted for at once: a granted waiter succeeds, however
 *      late it notices, and can no longer leave.
 *   3. A waker's last access to the queue (and the object around it) is the swap that
 *      unlocks it; its last access to a waiter is the swap that ends its sleep.
 *      Either may be freed memory the next instant.
 *   4. BUSY is set exactly when the queue is not empty, or shut, whenever LOCKED is
 *      clear.
 *   5. A queued waiter names its queue and the queue's epoch.  waitq_detach() takes
 *      all of them in O(1) by starting a new epoch; the walk happens outside the lock.
 *
 * The lock is held for a handful of loads and stores: no allocation, no system call,
 * no callback, no wake-up under it.  No thread ever holds two.
 *
 * waitq knows nothing of permits, events or barriers (a primitive says what waiting
 * means in a wait_kind), and nothing of threads or tasks (see park.h).
 */
#ifndef WEIR_CORE_WAITQ_H
#define WEIR_CORE_WAITQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/storage.h>
#include <weir/time.h>

#include "base/annotate.h"
#include "core/park.h"

enum { WORD_LOCKED = 1, WORD_BUSY = 2, WORD_SLEEPER = 4, WORD_FLAGS = 7, WORD_SHIFT = 3 };

static inline uint64_t word_of(uint64_t value)
{
    return value << WORD_SHIFT;
}

static inline uint64_t word_value(uint64_t word)
{
    return word >> WORD_SHIFT;
}

/* Locking key: (a) atomic  (l) under LOCKED  (l,a) written under it, read by anyone
 *              (c) constant once queued      (w) the waker that was granted it     */
typedef struct weir_waitq_ waitq;
/*  uint64_t word;       (a)   as above
 *  waiter *newest;      (l)   circular: newest->next is the oldest; NULL when empty
 *  uint32_t length;     (l,a) how many are queued
 *  uint32_t epoch : 31; (l)   how often all were taken at once
 *  uint32_t shut : 1;   (l)   the fast path stays closed even when nobody waits  */

typedef struct weir_waiter_ waiter;
/*  waiter *next, *prev;           (l) place in the queue, then (w) in a batch; the
 *                                 oldest's prev says nothing
 *  waitq *queue;                  (l,a) where it is queued; NULL when granted or gone
 *  uint64_t want;                 (c) what it asks for; the primitive's business
 *  const wait_kind *kind;  (c)
 *  sleeper sleeper;               see park.h
 *  uint32_t epoch;                (c) of the queue when it joined
 *  int32_t result;                until queued: why it may not wait, or 0;
 *                                 queued: what it gets when served;
 *                                 done: what its wait returns                    */

/* Waiters that are no longer queued and have yet to be told. */
typedef struct weir_batch_ batch;
struct weir_batch_ {
    waiter *first, *last;
    int result; /* for all of them; 0 keeps what each one's record says */
};

/* What waiting means to a primitive. */
typedef struct weir_wait_kind_ wait_kind;
struct weir_wait_kind_ {
    const char *name; /* of what is waited for, for whoever debugs */

    /* Take what w wants (1 + what its wait returns), join the queue (0), or say why
     * neither (an error).  Takes the lock itself. */
    int (*join)(waitq *q, waiter *w);

    /* w has just left the queue unserved.  What becomes of the others?  Called under the
     * lock; returns the new word.  NULL: nothing. */
    uint64_t (*left)(waitq *q, uint64_t word, waiter *w, batch *others);
};

/* ---- the lock ------------------------------------------------------------------- */

uint64_t waitq_lock_slowly(waitq *q);
void waitq_wake_sleeper(waitq *q); /* one of those who sleep until the lock is free */

/* Returns the word without its flags. */
UNCHECKED static inline uint64_t waitq_lock(waitq *q) ACQUIRES(*q)
{
    uint64_t word = atomic_peek(&q->word);

    if (!(word & WORD_LOCKED) && atomic_cas(&q->word, &word, word | WORD_LOCKED))
        return word & ~(uint64_t)WORD_FLAGS;
    return waitq_lock_slowly(q);
}

UNCHECKED static inline void waitq_unlock(waitq *q, uint64_t word) RELEASES(*q)
{
    if (q->newest || q->shut)
        word |= WORD_BUSY; /* invariant 4 */

    /* A swap and not a store, to learn of sleepers.  They are calls in progress, so
     * the object outlives this one (invariant 3). */
    if (atomic_swap(&q->word, word) & WORD_SLEEPER)
        waitq_wake_sleeper(q);
}

/* ---- the queue ------------------------------------------------------------------ */

/* The oldest waiter, or NULL. */
static inline waiter *waitq_first(const waitq *q) REQUIRES(*q)
{
    return q->newest ? q->newest->next : NULL;
}

static inline void waitq_link(waitq *q, waiter *w) REQUIRES(*q)
{
    waiter *newest = q->newest;

    w->prev = newest;
    if (newest) {
        w->next = newest->next;
        newest->next = w;
    } else {
        w->next = w;
    }
    q->newest = w;
    atomic_poke(&q->length, q->length + 1);
    atomic_poke(&w->queue, q);
}

static inline void waitq_unlink(waitq *q, waiter *w) REQUIRES(*q)
{
    waiter *oldest = q->newest->next;

    if (w->next == w) {
        q->newest = NULL;
    } else if (w == oldest) {
        q->newest->next = w->next; /* which is not touched: it may be far away */
    } else {
        w->prev->next = w->next;
        w->next->prev = w->prev;
        if (q->newest == w)
            q->newest = w->prev;
    }
    atomic_poke(&q->length, q->length - 1);
    atomic_poke(&w->queue, NULL);
}

/* Join the queue behind everyone else; or, if the waiter may not wait, say why. */
static inline int waitq_push(waitq *q, waiter *w) REQUIRES(*q)
{
    if (w->result < 0)
        return w->result;
    w->epoch = q->epoch;
    w->sleeper.flags |= SLEEP_QUEUED;
    waitq_link(q, w);
    return 0;
}

/* The same for those who will all be woken together. */
int waitq_push_crowd(waitq *q, waiter *w) REQUIRES(*q);

/* Queue a waiter that was granted by another queue.  It cannot leave this one: to
 * itself it has been granted. */
void waitq_push_granted(waitq *q, waiter *w) REQUIRES(*q);

static inline void batch_add(batch *b, waiter *w)
{
    w->next = NULL;
    if (b->last)
        b->last->next = w;
    else
        b->first = w;
    b->last = w;
}

/* Move a waiter from the queue to a batch: it has what it wants, though it does not
 * know it yet. */
static inline void waitq_grant(waitq *q, waiter *w, batch *b) REQUIRES(*q)
{
    __builtin_prefetch(w->next, 1); /* the next to be served */
    waitq_unlink(q, w);
    batch_add(b, w);
}

/* Move everyone to an empty batch, in O(1). */
void waitq_detach(waitq *q, batch *b) REQUIRES(*q);

/* Tell everyone in the batch.  Call with no lock held. */
void waitq_deliver(batch *b);

/* Leave the queue, in O(1).  False if it is too late: granted already. */
bool waitq_leave(waitq *q, waiter *w);

/* The sleep of a queued waiter has ended before it was served.  Returns why, or its result
 * if it is too late. */
int waitq_give_up(waitq *q, waiter *w, int why);

/* Sleep until the queued waiter is served or gives up.  Returns its result. */
static inline int waitq_wait(waitq *q, waiter *w, struct weir_deadline deadline)
{
    int r = park(&w->sleeper, deadline);

    return r < 0 ? waitq_give_up(q, w, r) : w->result;
}

/* The whole of a blocking call: take, or join the queue and sleep. */
int waitq_block(waitq *q, const wait_kind *kind, uint64_t want, struct weir_deadline deadline);

#endif
