/* SPDX-License-Identifier: MIT */
/* The world that all scenarios share: one of each object, what became of the flows, and
 * the few things that flows do again and again. */
#ifndef WEIR_MODEL_WORLD_H
#define WEIR_MODEL_WORLD_H

#include <weir/weir.h>

#include "base/lock.h"
#include "model.h"

/* A callback that takes note. */
struct note {
    struct weir_op op;
    int calls, result;
    int turn; /* it was the turn-th callback of all, from 1 */
};

struct world {
    struct weir_sem sem;
    struct weir_event event;
    struct weir_revent revent;
    struct weir_countdown countdown;
    struct weir_latch latch;
    struct weir_barrier barrier;
    struct weir_mutex mutex;
    struct weir_cond cond;
    struct weir_inbox *inbox;
    struct note note[3];
    int result[FLOWS_MAX]; /* of each flow's wait */
    int cancelled[FLOWS_MAX];
    uint64_t held; /* permits, by count of those who have them; see holds() */
    int turns;     /* callbacks so far */
    int value;     /* plain: whoever reads or writes it must be in order */
    uint32_t flag; /* atomic */
    struct weir_waitq_ queue;
    lock small_lock;
    struct weir_sleeper_ *sleeper[2]; /* atomic */
};

extern struct world the;

/* What no wait returns, nor a cancel: they have not come to an end. */
enum { NOTHING_YET = 1000 };

/* A deadline that passes when the search lets it, and one after that. */
static const struct weir_deadline SOON = {1000}, LATER = {2000};

/* The flow that calls has n permits more (or less): are they all there? */
void holds(int64_t n, uint64_t of);

/* Everything that semaphores promise about numbers, when all is quiet. */
void check_permits(uint64_t capacity, uint64_t held);

/* Callbacks that fill in `the.note`. */
void take_note(struct weir_op *op, int result);
bool was_called(int i, int result); /* exactly once, with that */
bool was_not_called(int i);
bool is_queued(int i); /* no step: nobody notices that we look */

/* Put note i into the semaphore's queue; it must have to wait. */
void queue_note(int i, uint64_t n);

/* Take note i back and remember, as this flow's, what came of it. */
void cancel_note(int i);

#endif
