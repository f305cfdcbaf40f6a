/* SPDX-License-Identifier: MIT */
/* The word's value is 1 when set.  Both kinds of event are the same thing; one of them
 * has no way back. */
#include <weir/event.h>

#include "core/op.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_event) <= 32, "weir_event is part of the ABI");
_Static_assert(sizeof(struct weir_revent) <= 32, "weir_revent is part of the ABI");

static const uint64_t SET = UINT64_C(1) << WORD_SHIFT;

static bool is_set(const waitq *q)
{
    return (atomic_get(&q->word) & SET) != 0;
}

static int event_join(waitq *q, waiter *w)
{
    uint64_t word = waitq_lock(q);
    int r = word == SET ? 1 : waitq_push_crowd(q, w);

    waitq_unlock(q, word);
    return r;
}

static const wait_kind waiting = {.name = "event", .join = event_join};

static void event_set(waitq *q)
{
    batch all = {0};
    uint64_t word = atomic_get(&q->word);

    if ((word & SET) || (word == 0 && atomic_cas(&q->word, &word, SET)))
        return;
    waitq_lock(q);
    waitq_detach(q, &all);
    waitq_unlock(q, SET);
    waitq_deliver(&all);
}

static int event_wait(waitq *q, struct weir_deadline deadline)
{
    return is_set(q) ? 0 : waitq_block(q, &waiting, 0, deadline);
}

static int event_wait_async(waitq *q, struct weir_op *op, weir_done *done)
{
    return op_start(op, q, &waiting, 0, done);
}

/* ---- set once --------------------------------------------------------------- */

void weir_event_init(struct weir_event *event)
{
    *event = (struct weir_event)WEIR_EVENT_INIT;
}

void weir_event_set(struct weir_event *event)
{
    event_set(&event->queue_);
}

bool weir_event_is_set(const struct weir_event *event)
{
    return is_set(&event->queue_);
}

int weir_event_wait(struct weir_event *event, struct weir_deadline deadline)
{
    return event_wait(&event->queue_, deadline);
}

int weir_event_wait_async(struct weir_event *event, struct weir_op *op, weir_done *done)
{
    return event_wait_async(&event->queue_, op, done);
}

/* ---- set and cleared -------------------------------------------------------- */

void weir_revent_init(struct weir_revent *event)
{
    *event = (struct weir_revent)WEIR_REVENT_INIT;
}

void weir_revent_set(struct weir_revent *event)
{
    event_set(&event->queue_);
}

void weir_revent_clear(struct weir_revent *event)
{
    uint64_t word = SET;

    if (!is_set(&event->queue_) || atomic_cas(&event->queue_.word, &word, 0))
        return;
    waitq_lock(&event->queue_); /* somebody is inside; nobody waits for what is set */
    waitq_unlock(&event->queue_, 0);
}

bool weir_revent_is_set(const struct weir_revent *event)
{
    return is_set(&event->queue_);
}

int weir_revent_wait(struct weir_revent *event, struct weir_deadline deadline)
{
    return event_wait(&event->queue_, deadline);
}

int weir_revent_wait_async(struct weir_revent *event, struct weir_op *op, weir_done *done)
{
    return event_wait_async(&event->queue_, op, done);
}
