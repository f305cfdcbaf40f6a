/* SPDX-License-Identifier: MIT */
#include "core/op.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/cpu.h"

_Static_assert(sizeof(struct weir_op) <= 96, "weir_op is part of the ABI");

/* Ops whose turn to be called came while another callback was running here. */
static __thread batch deferred;

static struct weir_op *op_of(waiter *w)
{
    return container_of(w, struct weir_op, waiter_);
}

static int callback_refusal(parker *self, struct weir_deadline deadline)
{
    (void)self;
    return clock_has_passed(deadline.at_ns) ? WEIR_ETIMEDOUT : WEIR_ECONTEXT;
}

static int callback_park(parker *self, sleeper *s, struct weir_deadline deadline)
{
    (void)self;
    (void)s;
    (void)deadline;
    BUG("a callback cannot sleep");
}

/* It is ended by this or taken off the queue, so there is nobody to be quicker than. */
static uint8_t callback_done(parker *self, sleeper *s)
{
    struct weir_op *op = op_of(container_of(s, waiter, sleeper));

    (void)self;
    atomic_put(&s->state, DONE);
    if (op->inbox)
        inbox_post(op->inbox, op);
    else
        op_call(op);
    return 0;
}

static void callback_give_way(parker *self)
{
    (void)self;
}

static const struct parker_ops callback_ops = {
    .begins = ASLEEP,
    .refusal = callback_refusal,
    .park = callback_park,
    .done = callback_done,
    .give_way = callback_give_way,
};

static parker parker_callback = {&callback_ops};

parker *callback_begin(void)
{
    parker *outer = parker_current;

    parker_current = &parker_callback;
    return outer;
}

void callback_end(parker *outer)
{
    parker_current = outer;
}

static waiter *deferred_pop(void)
{
    waiter *w = deferred.first;

    if (w) {
        deferred.first = w->next;
        if (deferred.first == NULL)
            deferred.last = NULL;
    }
    return w;
}

void op_call(struct weir_op *op)
{
    waiter *w = &op->waiter_;
    parker *outer = parker_current;

    if (outer == &parker_callback) {
        batch_add(&deferred, w);
        return;
    }
    parker_current = &parker_callback;
    do {
        op = op_of(w);
        op->done_(op, w->result); /* our last access to it */
    } while ((w = deferred_pop()));
    parker_current = outer;
}

bool op_is_calling(void)
{
    return parker_current == &parker_callback;
}

int op_start(struct weir_op *op, waitq *q, const wait_kind *kind, uint64_t want, weir_done *done)
{
    op->done_ = done;
    op->waiter_ = (waiter){
        .want = want,
        .kind = kind,
        .sleeper = {.parker = &parker_callback, .state = ASLEEP, .cpu = cpu_here()},
    };
    int r = kind->join(q, &op->waiter_);

    return r > 0 ? 1 : r;
}

void weir_op_init(struct weir_op *op)
{
    *op = (struct weir_op)WEIR_OP_INIT;
}

int weir_op_cancel(struct weir_op *op)
{
    waiter *w = &op->waiter_;
    waitq *q = atomic_peek(&w->queue);

    /* Once DONE the queue may be gone, and the record still name it. */
    if (q == NULL || atomic_get(&w->sleeper.state) == DONE)
        return 0;
    return waitq_leave(q, w);
}
