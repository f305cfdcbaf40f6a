/* SPDX-License-Identifier: MIT */
/* For tests of what a call does wherever it is made: in a task, on a plain thread, in a
 * callback, on a thread that has stepped a loop. */
#ifndef WEIR_TESTS_TASK_CONTEXTS_H
#define WEIR_TESTS_TASK_CONTEXTS_H

#include <weir/loop.h>

#include "task/tasks.h"

static const struct weir_deadline past[] = {{0}, {1}, {-1}, {INT64_MIN}};
enum { PASTS = sizeof past / sizeof *past };

struct inside {
    struct weir_op op;
    void (*fn)(void);
    int times;
};

static inline void call_inside(struct weir_op *op, int result)
{
    struct inside *i = (struct inside *)(void *)op;

    CHECK_EQ(result, 0);
    i->fn();
    i->times++;
}

static inline void in_a_callback(void (*fn)(void))
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct inside i = {.op = WEIR_OP_INIT, .fn = fn};

    CHECK_EQ(weir_event_wait_async(&event, &i.op, call_inside), 0);
    weir_event_set(&event);
    CHECK_EQ(i.times, 1);
}

static inline void on_a_host(void (*fn)(void))
{
    struct weir_loop *loop;

    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    fn();
    weir_loop_close(loop);
}

/* Where nobody may wait, and no task is the caller. */
static inline void where_one_may_not_wait(void (*fn)(void))
{
    in_a_callback(fn);
    on_a_host(fn);
}

static inline void outside_tasks(void (*fn)(void))
{
    fn();
    where_one_may_not_wait(fn);
}

static inline void everywhere(void (*fn)(void))
{
    run_as_task(fn);
    outside_tasks(fn);
}

/* As a task, or an item: the call that was to start it was refused. */
static inline int must_not_run(void *arg)
{
    (void)arg;
    CHECK(false);
    return 0;
}

static inline void must_not_be_called(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, NOT_YET); /* which it never is */
}

/* As a task: wait for the event, for ever. */
static inline int wait_for(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

#endif
