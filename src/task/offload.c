/* SPDX-License-Identifier: MIT */
/* The off-load pool: a semaphore that says how many calls may run, a list of those that
 * may and have not begun, and threads that take from it.
 *
 * Whoever has a slot may count on a thread.  A thread is made when there are more open
 * calls than threads, before the call is handed over; so a call that was handed over
 * begins at once, and all that its caller can wait for with a deadline is the slot. */
#include "task/offload.h"

#include <weir/event.h>
#include <weir/sem.h>
#include <weir/task.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/thread.h"
#include "task/sched.h"

/* On the stack of the task that waits for it. */
struct job {
    struct job *next;
    weir_fn *fn;
    void *arg;
    int result; /* before `ended` is set */
    struct weir_event ended;
};

struct offload_thread {
    struct offload_thread *next;
    struct offload_pool *pool;
    pthread_t id;
};

/* Locking key: (l) under lock */
struct offload_pool {
    struct weir_sem slots; /*     calls that may be open                             */
    struct weir_sem jobs;  /*     as many are free as there are jobs in the list     */
    lock lock;
    uint32_t open;                  /* (l) calls that have a slot and have not ended */
    uint32_t threads;               /* (l) at least as many, once they are made      */
    struct job *first, *last;       /* (l) to be begun, oldest first                 */
    struct offload_thread *started; /* (l)                                           */
};

static __thread const struct offload_pool *pool_here; /* that this thread is of, or NULL */

/* ---- threads ----------------------------------------------------------------- */

static struct job *pop_job(struct offload_pool *pool)
{
    lock_take(&pool->lock);
    struct job *job = pool->first;
    pool->first = job->next;
    lock_drop(&pool->lock);
    return job;
}

/* The thread counts as free before the caller learns that the call has ended, for then
 * its slot is somebody else's, who counts on a thread. */
static void run_job(struct offload_pool *pool, struct job *job)
{
    job->result = job->fn(job->arg);
    lock_take(&pool->lock);
    pool->open--;
    lock_drop(&pool->lock);
    weir_event_set(&job->ended); /* our last access to it */
}

static void *thread_main(void *arg)
{
    struct offload_thread *self = arg;

    pool_here = self->pool;
    while (weir_sem_acquire(&self->pool->jobs, 1, WEIR_FOREVER) == 0)
        run_job(self->pool, pop_job(self->pool));
    return NULL; /* closed */
}

static int start_thread(struct offload_pool *pool)
{
    struct offload_thread *thread = mem_alloc(sizeof *thread);

    if (thread == NULL)
        return WEIR_ENOMEM;
    thread->pool = pool;
    int r = thread_start(&thread->id, thread_main, thread);
    if (r < 0) {
        mem_free(thread);
        return r;
    }
    lock_take(&pool->lock);
    thread->next = pool->started;
    pool->started = thread;
    lock_drop(&pool->lock);
    return 0;
}

/* ---- the pool ---------------------------------------------------------------- */

static struct offload_pool *pool_new(uint32_t slots)
{
    struct offload_pool *pool = mem_alloc(sizeof *pool);

    if (pool == NULL)
        return NULL;
    weir_sem_init(&pool->slots, slots);
    weir_sem_init(&pool->jobs, slots); /* the list holds at most one for each slot, */
    if (weir_sem_try_acquire(&pool->jobs, slots) < 0) { /* and none yet             */
        mem_free(pool);
        return NULL;
    }
    return pool;
}

static struct offload_pool *pool_of(struct weir_runtime *rt)
{
    struct offload_pool *pool = atomic_get(&rt->offload), *nobodys = NULL;

    if (pool)
        return pool;
    pool = pool_new(rt->max_offload);
    if (pool && !atomic_cas(&rt->offload, &nobodys, pool)) {
        mem_free(pool); /* another worker was first */
        pool = nobodys;
    }
    return pool;
}

bool offload_is_of(const struct weir_runtime *rt)
{
    return pool_here && atomic_get(&rt->offload) == pool_here;
}

void offload_close(struct weir_runtime *rt)
{
    struct offload_pool *pool = atomic_get(&rt->offload);
    struct offload_thread *thread;

    if (pool == NULL)
        return;
    weir_sem_close(&pool->jobs);
    while ((thread = pool->started)) {
        pool->started = thread->next;
        pthread_join(thread->id, NULL);
        mem_free(thread);
    }
    mem_free(pool);
    atomic_put(&rt->offload, NULL);
}

/* ---- one call ---------------------------------------------------------------- */

/* One more call is open: see to it that there is a thread for it. */
static int reserve_thread(struct offload_pool *pool)
{
    lock_take(&pool->lock);
    bool missing = ++pool->open > pool->threads;
    if (missing)
        pool->threads++;
    lock_drop(&pool->lock);

    int r = missing ? start_thread(pool) : 0;
    if (r < 0) {
        lock_take(&pool->lock);
        pool->open--;
        pool->threads--;
        lock_drop(&pool->lock);
    }
    return r;
}

static void hand_over(struct offload_pool *pool, struct job *job)
{
    lock_take(&pool->lock);
    if (pool->first)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
    lock_drop(&pool->lock);
    weir_sem_release(&pool->jobs, 1);
}

/* The job is on our stack: nothing but its end lets us go. */
static int wait_firmly(struct job *job)
{
    struct weir_shield shield;

    weir_shield_begin(&shield, WEIR_FOREVER);
    int r = weir_event_wait(&job->ended, WEIR_FOREVER);
    weir_shield_end(&shield);
    return r < 0 ? r : job->result;
}

static int run_elsewhere(struct weir_runtime *rt, struct offload_pool *pool, struct job *job)
{
    int r = reserve_thread(pool);

    if (r < 0)
        return r;
    atomic_add(&rt->offloading, 1);
    hand_over(pool, job);
    r = wait_firmly(job);
    atomic_add(&rt->offloading, (uint32_t)-1);
    return r;
}

int weir_offload(weir_fn *fn, void *arg, struct weir_deadline deadline)
{
    task *t = task_current();
    struct job job = {.fn = fn, .arg = arg, .ended = WEIR_EVENT_INIT};

    if (t == NULL) {
        int r = park_refusal(WEIR_FOREVER);

        return r < 0 ? r : fn(arg); /* a thread may block, a callback may not */
    }
    if (task_is_struck(t))
        return WEIR_ECANCELED; /* there will be something to wait for */
    struct weir_runtime *rt = t->home->runtime;
    struct offload_pool *pool = pool_of(rt);
    if (pool == NULL)
        return WEIR_ENOMEM;
    int r = weir_sem_acquire(&pool->slots, 1, deadline);
    if (r < 0)
        return r;
    r = run_elsewhere(rt, pool, &job);
    weir_sem_release(&pool->slots, 1);
    return r;
}
