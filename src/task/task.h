/* SPDX-License-Identifier: MIT */
/* task - what a task is made of.
 *
 * A task is two records.  The small one, struct weir_task_, exists from spawn until it
 * has ended and been joined or detached; it lives in memory that is never returned, so
 * that a stale handle can be told from a valid one by looking at it.  The body exists
 * while the task runs: it sits on top of the task's stack.
 *
 *             spawn            picked by a worker                fn returns
 *     (new) --------> unstarted ----------------> started -----------------> ended
 *                     no stack, any                pinned to its home          |
 *                     worker may take it           worker, in turns running,   v
 *                                                  ready or parked          joined or
 *                                                                           detached
 *
 * Ownership.  The record is counted: the running side holds one reference, the handle
 * another, and so does everyone who looks at it from outside for as long as that takes.
 * Whoever drops the last one frees it, which makes every handle to it stale.
 *
 * Invariants
 *   1. A started task is touched (its body, its place in a run queue) by its home worker
 *      alone.  Others go through the worker's inbox, `post` for who was granted what it
 *      waits for, `poke` for who is to look whether it was cancelled.
 *   2. A task is in at most one of: a run queue, an inbox, parked, running.
 *   3. parker_current is &t->parker exactly while t runs and no callback does.
 */
#ifndef WEIR_TASK_TASK_H
#define WEIR_TASK_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/task.h>

#include "core/waitq.h"
#include "task/stack.h"
#include "task/timer.h"

struct worker;

/* Told of a task's end, also if it never began. */
typedef void task_ended_fn(void *arg, int result);

/* Locking key: (a) atomic  (c) constant after spawn  (h) home worker only
 *              (q) whoever has it in a queue          (e) before it is ENDED */
typedef struct weir_task_ task;
struct weir_task_ {
    parker parker;        /* (c) how it sleeps                                          */
    task *next;           /* (q) in a run queue, inbox or free list                     */
    struct worker *home;  /* (a) where it runs, or is to run; NULL if it has ended, or
                            *     the record is free                                     */
    struct body *body;    /* (h,a) NULL until it is started                             */
    uint32_t order;       /* (q) when it joined its run queue                           */
    int32_t result;       /* (e,a)                                                      */
    uint8_t cancelled;    /* (a) asked to end                                           */
    uint8_t poked;        /* (a) in a list of pokes                                     */
    weir_fn *fn;          /* (c)                                                        */
    void *arg;            /* (c)                                                        */
    task_ended_fn *ended; /* (c) or NULL                                                */
    waitq queue;          /*     who joins it; its word is the task's life, see task.c  */
    task *next_poked;     /* (q) in its home's list of pokes                            */
};

enum { TASK_NAME_BYTES = 32 };

/* What a task has once it is started; (h) throughout, but for what dumps read.  It ends
 * where the stack's own record begins, so neither need be looked up from the other, and
 * what a switch touches is one cache line of each. */
struct body {
    char name[TASK_NAME_BYTES]; /* written under a lock in name.c                     */
    task *task;
    sleeper *sleeper;           /* while parked                                       */
    int why;                    /* what ended the sleep, if not DONE                  */
    struct timer timer;         /* armed while parked with a deadline                 */
    int64_t deadline_ns;        /* of the wait itself; the shield's may come earlier  */
    int64_t parked_at_ns;       /* (a) 0 while not parked                             */
    const char *waits_for;      /* (a) while parked; NULL is time                     */
    struct weir_shield *shield; /* innermost                                          */
    void **values;              /* task-local, by key; NULL until one is set          */
};

static inline struct stack *body_stack(const struct body *b)
{
    return (struct stack *)(void *)(b + 1);
}

static inline struct body *body_on(struct stack *stack)
{
    return (struct body *)(void *)stack - 1;
}

/* ---- lives (task.c) ---------------------------------------------------------- */

/* A new record with two references, or NULL.  Its parts are passed one by one: a struct of
 * them goes through memory, and is read in other portions than it was written in. */
task *task_new(struct worker *here, weir_fn *fn, void *arg, task_ended_fn *ended);

/* One more reference to whatever the handle names; NULL when it is stale. */
task *task_hold(struct weir_task handle);
void task_hold_again(task *t); /* one more; the caller has one */
void task_drop(task *t);

struct weir_task task_handle(const task *t);

/* The word of a record that is free, and of a task that was just spawned. */
uint64_t life_begun(uint32_t generation);

/* t ended by itself: tell those who join, and drop the running side's reference. */
void task_finish(task *t, int result);

/* The task that runs now and may wait, or NULL. */
task *task_current(void);

/* ---- records (record.c) ------------------------------------------------------- */

/* A free one, from the worker's own if there is one; NULL when there is no memory. */
task *record_take(struct worker *here);
void record_free(task *t);

/* Give a worker's spare records to everybody, when it ends. */
void task_spares_return(struct worker *w);

/* Between the two, a call goes from a record to its worker, which may end meanwhile. */
void task_visitor_comes(void);
void task_visitor_goes(void);

/* No task of some workers is left.  Wait until nobody is on the way from a record to one
 * of them, so that they can be freed. */
void task_await_visitors(void);

/* Look at every task that exists.  Those of other workers are moving targets. */
void task_visit(void (*each)(task *t, void *arg), void *arg);

/* ---- waiting (park_task.c) ----------------------------------------------------- */

extern const struct parker_ops task_parker_ops;

static inline task *task_of(parker *p)
{
    return (task *)(void *)p; /* the parker is its first member */
}

/* Is it to be struck by a cancel now? */
bool task_is_struck(const task *t);

/* A timer of t's has come.  Home worker only. */
void body_on_timer(struct worker *w, struct body *b);

/* t was cancelled: end its wait if that can be ended.  Home worker only. */
void task_on_poke(struct worker *w, task *t);

void body_clear_name(struct body *b);
void body_copy_name(const struct body *b, char to[TASK_NAME_BYTES]);

/* ---- the end of a body --------------------------------------------------------- */

/* Task-local values are destroyed (key.c). */
void body_destroy_values(struct body *b);

#endif
