/* SPDX-License-Identifier: MIT */
/* Runtimes: their workers, how they begin and how they end. */
#include <stdlib.h>

#include <weir/error.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/thread.h"
#include "core/park.h"
#include "task/offload.h"
#include "task/overflow.h"
#include "task/sched.h"

enum { MAX_WORKERS = 1024, MAX_STACK = 1 << 30, DEFAULT_OFFLOAD = 16 };

/* ---- counting --------------------------------------------------------------- */

/* First what has ended, then what was spawned: the other way round, a task that is
 * spawned and ends in between could make up for one that still runs. */
uint64_t runtime_live(const struct weir_runtime *rt)
{
    uint64_t ended = 0, spawned = 0;

    for (uint32_t i = 0; i < rt->worker_count; i++)
        ended += atomic_get(&rt->workers[i].ended);
    for (uint32_t i = 0; i < rt->worker_count; i++)
        spawned += atomic_get(&rt->workers[i].spawned);
    return spawned + atomic_get(&rt->spawned_outside) - ended;
}

/* A task that has been counted out may still be telling so, by callbacks that can spawn. */
static bool is_ending(const struct weir_runtime *rt)
{
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        if (atomic_get(&rt->workers[i].ending))
            return true;
    }
    return false;
}

void runtime_stop_if_done(struct weir_runtime *rt)
{
    if (!atomic_get(&rt->closing) || runtime_live(rt) > 0 || is_ending(rt) || runtime_live(rt) > 0)
        return;
    if (atomic_swap(&rt->stop, 1))
        return;
    for (uint32_t i = 0; i < rt->worker_count; i++)
        worker_wake(&rt->workers[i]);
    weir_event_set(&rt->all_ended); /* whoever waits for that joins the workers next */
}

void runtime_begin_close(struct weir_runtime *rt)
{
    atomic_swap(&rt->closing, 1);
    for (uint32_t i = 0; i < rt->worker_count; i++)
        worker_wake(&rt->workers[i]);
}

static void cancel_if_of(task *t, void *arg)
{
    struct worker *home = atomic_get(&t->home);

    if (home && home->runtime == arg)
        weir_task_cancel(task_handle(t));
}

void runtime_cancel_all(struct weir_runtime *rt)
{
    atomic_swap(&rt->cancelling, 1);
    task_visit(cancel_if_of, rt);
}

/* ---- spawning --------------------------------------------------------------- */

/* Take a place under the limit, if there is one. */
static bool count_in(struct weir_runtime *rt)
{
    if (rt->max_tasks == UINT64_MAX || atomic_add(&rt->counted, 1) <= rt->max_tasks)
        return true;
    runtime_count_out(rt);
    return false;
}

void runtime_count_out(struct weir_runtime *rt)
{
    if (rt->max_tasks != UINT64_MAX)
        atomic_add(&rt->counted, (uint64_t)-1);
}

static void hand_out(struct weir_runtime *rt, task *t)
{
    uint32_t i = atomic_add(&rt->next_worker, 1) % rt->worker_count;

    atomic_add(&rt->spawned_outside, 1);
    worker_give_fresh(&rt->workers[i], t);
}

int runtime_spawn(struct weir_runtime *rt, weir_fn *fn, void *arg, task_ended_fn *ended,
                  struct weir_task *ret_task)
{
    struct worker *here = worker_current;

    if (atomic_get(&rt->stop))
        return WEIR_ECLOSED;
    if (!count_in(rt))
        return WEIR_ENOSPC;
    task *t = task_new(here, fn, arg, ended);
    if (t == NULL) {
        runtime_count_out(rt);
        return WEIR_ENOMEM;
    }
    if (atomic_get(&rt->cancelling))
        atomic_swap(&t->cancelled, 1); /* it will find out by itself */

    if (ret_task)
        *ret_task = task_handle(t);
    else
        weir_task_detach(task_handle(t));
    if (here && here->runtime == rt) {
        atomic_put(&here->spawned, here->spawned + 1);
        worker_queue_fresh(here, t);
    } else {
        hand_out(rt, t);
    }
    return 0;
}

/* ---- beginning and end ------------------------------------------------------- */

static uint64_t seed_from_environment(void)
{
    const char *text = getenv("WEIR_SCHED_SEED");

    return text ? strtoull(text, NULL, 10) | 1 : 0;
}

static int worker_init(struct worker *w, struct weir_runtime *rt, size_t stack_bytes)
{
    *w = (struct worker){.runtime = rt, .random = seed_from_environment()};
    stack_pool_init(&w->stacks, stack_bytes);
    w->looked = mem_alloc(rt->worker_count * sizeof *w->looked);
    int r = poller_init(&w->poller);
    return r < 0 ? r : w->looked ? 0 : WEIR_ENOMEM;
}

static void worker_fini(struct worker *w)
{
    task_spares_return(w);
    poller_fini(&w->poller);
    timer_heap_fini(&w->timers);
    stack_pool_fini(&w->stacks);
    mem_free(w->looked);
}

static bool are_possible(const struct weir_run_options *o)
{
    return o->workers <= MAX_WORKERS && o->stack_bytes <= MAX_STACK &&
           (o->stack_bytes == 0 || o->stack_bytes >= STACK_MIN) &&
           (o->flags & ~(uint32_t)WEIR_RUN_CATCH_OVERFLOW) == 0;
}

int runtime_new(const struct weir_run_options *options, struct weir_runtime **ret_runtime)
{
    struct weir_run_options o = options ? *options : (struct weir_run_options){0};

    if (!are_possible(&o))
        return WEIR_EINVAL;
    struct weir_runtime *rt = mem_alloc(sizeof *rt);
    if (rt == NULL)
        return WEIR_ENOMEM;
    rt->worker_count = o.workers ? o.workers : 1;
    rt->flags = o.flags;
    rt->max_tasks = o.max_tasks ? o.max_tasks : UINT64_MAX;
    rt->max_offload = o.max_offload ? o.max_offload : DEFAULT_OFFLOAD;
    rt->workers = mem_alloc_aligned(64, rt->worker_count * sizeof *rt->workers);
    if (rt->workers == NULL) {
        mem_free(rt);
        return WEIR_ENOMEM;
    }

    if (rt->flags & WEIR_RUN_CATCH_OVERFLOW)
        overflow_catch();
    size_t stack_bytes = o.stack_bytes ? o.stack_bytes : STACK_DEFAULT;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        int r = worker_init(&rt->workers[i], rt, stack_bytes);

        if (r < 0) {
            rt->worker_count = i + 1;
            runtime_free(rt);
            return r;
        }
    }
    *ret_runtime = rt;
    return 0;
}

void runtime_free(struct weir_runtime *rt)
{
    offload_close(rt);
    task_await_visitors();
    while (atomic_get(&rt->visitors) > 0)
        cpu_yield();
    for (uint32_t i = 0; i < rt->worker_count; i++)
        worker_take_pokes(&rt->workers[i]); /* those that came too late */
    for (uint32_t i = 0; i < rt->worker_count; i++)
        worker_fini(&rt->workers[i]);
    if (rt->flags & WEIR_RUN_CATCH_OVERFLOW)
        overflow_release();
    mem_free(rt->workers);
    mem_free(rt);
}

static void *worker_thread(void *arg)
{
    struct worker *w = arg;
    void *alternate = w->runtime->flags & WEIR_RUN_CATCH_OVERFLOW ? overflow_stack() : NULL;

    worker_run(w);
    overflow_stack_free(alternate);
    return NULL;
}

/* Threads for the workers from `first` on. */
static int start_workers(struct weir_runtime *rt, uint32_t first)
{
    int r = 0;

    for (uint32_t i = first; i < rt->worker_count && r == 0; i++) {
        r = thread_start(&rt->workers[i].thread, worker_thread, &rt->workers[i]);
        if (r < 0) { /* those that run have nothing to do yet, and end */
            atomic_swap(&rt->stop, 1);
            for (uint32_t k = first; k < i; k++) {
                worker_wake(&rt->workers[k]);
                pthread_join(rt->workers[k].thread, NULL);
            }
        }
    }
    return r;
}

static void join_workers(struct weir_runtime *rt, uint32_t first)
{
    for (uint32_t i = first; i < rt->worker_count; i++)
        pthread_join(rt->workers[i].thread, NULL);
}

/* ---- public ----------------------------------------------------------------- */

struct root {
    weir_fn *fn;
    void *arg;
    int result;
};

static int root_main(void *arg)
{
    struct root *root = arg;

    return root->result = root->fn(root->arg);
}

/* With a stack of the first worker from the start: so it runs on this thread and no other. */
static int spawn_root(struct weir_runtime *rt, struct root *root)
{
    struct worker *w = &rt->workers[0];
    task *t = task_new(NULL, root_main, root, NULL);

    if (t == NULL)
        return WEIR_ENOMEM;
    weir_task_detach(task_handle(t));
    if (!worker_start(w, t)) {
        task_drop(t);
        return WEIR_ENOMEM;
    }
    worker_prepare(t);
    atomic_put(&t->home, w);
    count_in(rt); /* a limit is at least one */
    atomic_add(&rt->spawned_outside, 1);
    worker_make_ready(w, t);
    return 0;
}

/* Be the first worker, until no task is left. */
static void run_here(struct weir_runtime *rt)
{
    void *alternate = rt->flags & WEIR_RUN_CATCH_OVERFLOW ? overflow_stack() : NULL;

    worker_run(&rt->workers[0]);
    overflow_stack_free(alternate);
}

int weir_run(const struct weir_run_options *options, weir_fn *fn, void *arg)
{
    struct root root = {.fn = fn, .arg = arg, .result = WEIR_ENOMEM};
    struct weir_runtime *rt;

    if (parker_current || worker_current)
        return WEIR_ECONTEXT;
    int r = runtime_new(options, &rt);
    if (r < 0)
        return r;
    r = start_workers(rt, 1);
    if (r == 0) {
        r = spawn_root(rt, &root);
        runtime_begin_close(rt); /* it ends with the last task, the root or another */
        if (r == 0)
            run_here(rt);
        join_workers(rt, 1);
        r = r < 0 ? r : root.result;
    }
    runtime_free(rt);
    return r;
}

int weir_runtime_open(const struct weir_run_options *options, struct weir_runtime **ret_runtime)
{
    struct weir_runtime *rt;
    int r = runtime_new(options, &rt);

    if (r < 0)
        return r;
    r = start_workers(rt, 0);
    if (r < 0) {
        runtime_free(rt);
        return r;
    }
    *ret_runtime = rt;
    return 0;
}

/* Wait until the workers have seen that no task is left.  At the deadline whatever is left
 * then is cancelled, again and again, for a task that was being spawned while we looked. */
static int await_end(struct weir_runtime *rt, struct weir_deadline deadline)
{
    int r = 0;

    while (weir_event_wait(&rt->all_ended, deadline) < 0) {
        if (runtime_live(rt) > 0) {
            runtime_cancel_all(rt);
            r = WEIR_ETIMEDOUT;
        }
        deadline = weir_within(10 * WEIR_MS);
    }
    return r;
}

int weir_runtime_close(struct weir_runtime *rt, struct weir_deadline deadline)
{
    if (parker_current || worker_current || offload_is_of(rt))
        return WEIR_ECONTEXT;
    runtime_begin_close(rt);
    int r = await_end(rt, deadline);
    join_workers(rt, 0);
    runtime_free(rt);
    return r;
}

int weir_runtime_spawn(struct weir_runtime *runtime, weir_fn *fn, void *arg,
                       struct weir_task *ret_task)
{
    return runtime_spawn(runtime, fn, arg, NULL, ret_task);
}

struct weir_runtime *weir_runtime_self(void)
{
    return worker_current ? worker_current->runtime : NULL;
}

void weir_runtime_stats(struct weir_runtime *rt, struct weir_runtime_stats *ret_stats)
{
    struct weir_runtime_stats s = {
        .live = runtime_live(rt),
        .spawned = atomic_peek(&rt->spawned_outside),
        .stack_bytes = rt->workers[0].stacks.stack_bytes,
    };

    for (uint32_t i = 0; i < rt->worker_count; i++) {
        const struct worker *w = &rt->workers[i];

        s.spawned += atomic_peek(&w->spawned);
        s.ended += atomic_peek(&w->ended);
        s.switches += atomic_peek(&w->tick);
        s.stolen += atomic_peek(&w->stolen);
        s.sleeps += atomic_peek(&w->sleeps);
        s.stacks += atomic_peek(&w->stacks.count);
        s.stacks_unguarded += atomic_peek(&w->stacks.unguarded);
    }
    *ret_stats = s;
}

size_t weir_runtime_stack_high_water(struct weir_runtime *rt)
{
    size_t most = 0;

    for (uint32_t i = 0; i < rt->worker_count; i++) {
        size_t used = stack_high_water(&rt->workers[i].stacks);

        most = used > most ? used : most;
    }
    return most;
}
