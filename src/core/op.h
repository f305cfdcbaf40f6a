/* SPDX-License-Identifier: MIT */
/* op - waits that end in a callback; see weir/op.h.
 *
 * To the queue an op is a waiter like any other, whose parker sleeps from the start
 * and calls back when it is unparked.  While a callback runs, that parker is the
 * thread's current one, and it refuses to wait: WEIR_ECONTEXT. */
#ifndef WEIR_CORE_OP_H
#define WEIR_CORE_OP_H

#include <weir/op.h>

#include "core/waitq.h"

/* The whole of an asynchronous call.  Returns 1 when had at once, 0 when queued. */
int op_start(struct weir_op *op, waitq *q, const wait_kind *kind, uint64_t want, weir_done *done);

/* Call back now, or, from inside a callback of this thread, as soon as it returns. */
void op_call(struct weir_op *op);

/* Other callbacks than those of ops: what is called in between may not wait. */
parker *callback_begin(void);
void callback_end(parker *outer);

/* Does a callback run on this thread? */
bool op_is_calling(void);

/* Leave the op to whoever drains the inbox. */
void inbox_post(struct weir_inbox *inbox, struct weir_op *op);

#endif
