/* SPDX-License-Identifier: MIT */
/* sched - workers: threads that run tasks in turn.
 *
 * Order.  A worker runs what is ready in the order in which it became ready.  Started
 * and unstarted tasks stand in two queues, since others may take from the second, and
 * each carries its place in the common order, so that together they are one queue.
 *
 * Taking over.  Idle workers take unstarted tasks from others, half of a queue at a
 * time, and only from one that does not get on with them: its tick stood still between
 * two looks, or hundreds are waiting.  Eager stealing made spawn and join nine times
 * slower and tore pairs apart that talk to each other.  Started tasks stay: compilers
 * keep addresses of thread-local variables across calls.
 *
 * Sleeping.  A worker with nothing to run looks around for some 40 us, which is what
 * waking it from the kernel would cost, one worker at a time, and then sleeps in epoll
 * until a descriptor, its next timer, or a write to its eventfd.  The handshake: it says
 * `asleep` and then looks at its inbox once more; whoever fills the inbox then looks at
 * `asleep`. */
#ifndef WEIR_TASK_SCHED_H
#define WEIR_TASK_SCHED_H

#include <pthread.h>

#include <weir/event.h>

#include "base/lock.h"
#include "task/poll.h"
#include "task/task.h"

struct task_queue {
    task *first, *last;
};

static inline void queue_push(struct task_queue *q, task *t)
{
    t->next = NULL;
    if (q->first)
        q->last->next = t;
    else
        q->first = t;
    q->last = t;
}

static inline task *queue_pop(struct task_queue *q)
{
    task *t = q->first;

    if (t)
        q->first = t->next;
    return t;
}

/* What it costs to be woken from the kernel, so what may be spent on not sleeping. */
#define SEARCH_NS (40 * WEIR_US)

/* Locking key: (w) this worker only  (a) atomic  (w,a) written by it, read by anyone
 *              (f) under fresh_lock  (c) constant */
struct worker {
    struct weir_runtime *runtime; /* (c)                                              */
    task *current;                /* (w) NULL while the scheduler itself runs         */
    struct task_queue ready;      /* (w) started                                      */
    uint32_t order;               /* (w,a) of the next to join a queue                  */
    uint32_t started;             /* (w) how many bodies there are                    */
    uint32_t due;                 /* (w) tick at which there is more to do than switch */
    uint32_t limit;               /* (w) tick at which to return to the host          */
    bool limited;                 /* (w) whether there is such                        */
    int64_t now_ns;               /* (w) the clock, some switches ago                 */
    struct context scheduler;     /* (w)                                              */
    struct timer_heap timers;     /* (w)                                              */
    struct stack_pool stacks;     /* (w)                                              */
    struct poller poller;         /* (w) but for its eventfd                          */
    task *spares;                 /* (w) free records                                 */
    uint32_t spare_count;         /* (w) how many, at most                            */
    uint64_t random;              /* (w) state of the seeded order, 0 for none        */
    uint32_t *looked;             /* (w) ticks of the others when it last looked      */
    parker *outside;              /* (c) parker_current while no task runs            */
    pthread_t thread;             /* (c)                                              */

    /* What others read or write. */
    _Alignas(64) task *inbox; /* (a) unparked or spawned from outside, newest first */
    task *pokes;              /* (a) cancelled from outside                       */
    uint32_t asleep;          /* (a) must be woken by its eventfd                 */
    lock fresh_lock;          /*     taken only when there are several workers    */
    struct task_queue fresh;  /* (f) unstarted                                    */
    uint32_t fresh_count;     /* (f,a)                                            */
    uint32_t tick;            /* (w,a) counts switches                            */
    uint64_t spawned, ended;  /* (w,a)                                            */
    uint32_t ending;          /* (w,a) between counting an end and having told it */
    uint64_t stolen, sleeps;  /* (w,a)                                            */
};

struct offload_pool;

struct weir_runtime {
    struct worker *workers;       /* (c)                                              */
    uint32_t worker_count;        /* (c)                                              */
    uint32_t flags;               /* (c) of the options                               */
    uint64_t max_tasks;           /* (c) UINT64_MAX for none                          */
    uint32_t max_offload;         /* (c)                                              */
    uint32_t next_worker;         /* (a) for spawns from outside                      */
    uint64_t spawned_outside;     /* (a)                                              */
    uint64_t counted;             /* (a) live tasks, while max_tasks limits them      */
    uint32_t cancelling;          /* (a) what is spawned from now on is cancelled     */
    uint32_t visitors;            /* (a) calls from outside that are on a worker      */
    uint32_t searching;           /* (a) workers that look for something to take over */
    uint32_t sleeping;            /* (a) workers asleep                               */
    uint32_t closing;             /* (a) to end when no task is left                  */
    uint32_t stop;                /* (a) no task is left                              */
    struct weir_event all_ended;  /*     told when it stops                           */
    struct offload_pool *offload; /* (a) made when first needed                       */
    uint32_t offloading;          /* (a) calls that run on its threads                */
};

extern __thread struct worker *worker_current; /* the worker that this thread is, or NULL */

/* ---- running ------------------------------------------------------------------- */

/* Give t, which is to run on w, a stack.  False if there is none to be had. */
bool worker_start(struct worker *w, task *t);

/* Make it one that can be queued although it has not run: its start is what it goes on with. */
void worker_prepare(task *t);

/* Append a started task of w's to its run queue. */
static inline void worker_make_ready(struct worker *w, task *t)
{
    t->order = w->order;
    atomic_poke(&w->order, w->order + 1);
    queue_push(&w->ready, t);
}

/* Read the clock. */
int64_t worker_now(struct worker *w);

/* Wake those whose time has come. */
void worker_run_timers(struct worker *w);

/* Run tasks until the runtime stops. */
void worker_run(struct worker *w);

/* Run what can run now, at most `most` switches.  True if something is left. */
bool worker_step(struct worker *w, uint32_t most);

/* Nothing can run: look for something, sleep, or end. */
void worker_idle(struct worker *w);

/* Under the virtual clock, with nothing to run: go on to the next timer.  True if so. */
bool worker_time_jumps(struct worker *w);

/* Has something come from elsewhere? */
bool worker_has_mail(const struct worker *w);

/* ---- between workers (share.c) --------------------------------------------------- */

/* Wake it if it sleeps. */
void worker_wake(struct worker *w);

/* Hand a task to another worker: unparked, or new. */
void worker_post(struct worker *w, task *t);

/* Have w look whether t, which the caller holds a reference to, was cancelled. */
void worker_poke(struct worker *w, task *t);

/* See to what was posted (true if anything was) and poked. */
bool worker_take_inbox(struct worker *w);
void worker_take_pokes(struct worker *w);

/* Queue an unstarted task of the current worker, and see that it is not left lying. */
void worker_queue_fresh(struct worker *w, task *t);

/* Queue one from outside the runtime, where any of its workers can take it. */
void worker_give_fresh(struct worker *w, task *t);

void worker_push_fresh(struct worker *w, task *t);
void worker_push_back_fresh(struct worker *w, task *t); /* it was popped before */

/* The oldest unstarted task, if it came before `ready` (or that is NULL); or NULL. */
task *worker_pop_fresh(struct worker *w, const task *ready);

/* There are unstarted tasks here: see that somebody comes for them if we do not get to it. */
void worker_share(struct worker *w);

/* Take unstarted tasks over from a worker that does not get on.  True if any. */
bool worker_take_over(struct worker *w);

/* ---- runtimes (runtime.c) ------------------------------------------------------- */

/* Workers and all, nothing running yet. */
int runtime_new(const struct weir_run_options *options, struct weir_runtime **ret_runtime);
void runtime_free(struct weir_runtime *rt);

uint64_t runtime_live(const struct weir_runtime *rt);

/* A task has ended: its place under max_tasks is free. */
void runtime_count_out(struct weir_runtime *rt);

/* Spawn into rt, on this worker if it is one of its own. */
int runtime_spawn(struct weir_runtime *rt, weir_fn *fn, void *arg, task_ended_fn *ended,
                  struct weir_task *ret_task);

/* From now on, stop when no task is left. */
void runtime_begin_close(struct weir_runtime *rt);

/* If closing and nothing is left, stop.  Called by workers with nothing to do. */
void runtime_stop_if_done(struct weir_runtime *rt);

void runtime_cancel_all(struct weir_runtime *rt);

#endif
