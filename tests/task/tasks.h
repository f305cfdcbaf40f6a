/* SPDX-License-Identifier: MIT */
/* For tests of tasks: a test that is one, what tasks say in turn, and every way to wait
 * in one table. */
#ifndef WEIR_TESTS_TASK_TASKS_H
#define WEIR_TESTS_TASK_TASKS_H

#include <weir/weir.h>

#include <string.h>

#include "core/waiting.h"
#include "harness/test.h"

/* ---- a test that is a task ------------------------------------------------------ */

static inline int call_test(void *test)
{
    (*(void (**)(void))test)();
    return 0;
}

static inline void run_as_task(void (*test)(void))
{
    CHECK_EQ(weir_run(NULL, call_test, &test), 0);
}

/* First in a test: the rest of it is a task, the first of a runtime of one worker. */
#define AS_TASK(test)                  \
    if (weir_runtime_self() == NULL) { \
        run_as_task(test);             \
        return;                        \
    }                                  \
    (void)0

/* The same under the virtual clock. */
#define AS_TASK_IN_NO_TIME(test)       \
    if (weir_runtime_self() == NULL) { \
        weir_testing_clock_start();    \
        run_as_task(test);             \
        weir_testing_clock_stop();     \
        return;                        \
    }                                  \
    (void)0

/* ---- tasks ---------------------------------------------------------------------- */

static inline struct weir_task start(weir_fn *fn, void *arg)
{
    struct weir_task task;

    CHECK_EQ(weir_task_spawn(fn, arg, &task), 0);
    return task;
}

static inline struct weir_task start_in(struct weir_runtime *runtime, weir_fn *fn, void *arg)
{
    struct weir_task task;

    CHECK_EQ(weir_runtime_spawn(runtime, fn, arg, &task), 0);
    return task;
}

static inline int finish(struct weir_task task)
{
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
    return result;
}

/* A runtime of one worker with a thread of its own. */
static inline struct weir_runtime *open_runtime(uint32_t workers)
{
    struct weir_run_options options = {.workers = workers};
    struct weir_runtime *runtime;

    CHECK_EQ(weir_runtime_open(&options, &runtime), 0);
    return runtime;
}

static inline void close_runtime(struct weir_runtime *runtime)
{
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
}

/* Let other tasks run until it holds; EVENTUALLY would keep the worker from them. */
#define YIELD_UNTIL(cond) \
    while (!(cond))       \
    CHECK_EQ(weir_task_yield(), 0)

/* Let every other task run until it waits for something or has ended. */
static inline void let_others_run(void)
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(weir_task_yield(), 0);
}

static inline uint64_t live_tasks(struct weir_runtime *runtime)
{
    struct weir_runtime_stats stats;

    weir_runtime_stats(runtime, &stats);
    return stats.live;
}

/* ---- what was said, in order ----------------------------------------------------- */

static char said[4096];
static int said_begun, said_length;

static inline void say(char c)
{
    int i = __atomic_fetch_add(&said_begun, 1, __ATOMIC_RELAXED);

    CHECK(i < (int)sizeof said - 1);
    said[i] = c;
    __atomic_add_fetch(&said_length, 1, __ATOMIC_ACQ_REL);
}

static inline int how_much_was_said(void)
{
    return __atomic_load_n(&said_length, __ATOMIC_ACQUIRE);
}

static inline void forget_what_was_said(void)
{
    memset(said, 0, sizeof said);
    said_begun = said_length = 0;
}

/* As a task: say the first letter of the argument. */
static inline int say_it(void *arg)
{
    say(*(const char *)arg);
    return 0;
}

/* ---- every way to wait ------------------------------------------------------------ */

/* One object of each kind, in a state in which waiting for it takes long. */
struct things {
    struct weir_sem sem;
    struct weir_event event;
    struct weir_revent revent;
    struct weir_countdown countdown;
    struct weir_latch latch;
    struct weir_barrier barrier;
    struct weir_mutex mutex;
    struct weir_cond cond;
    struct weir_mutex cond_mutex;
};

static inline void things_init(struct things *t)
{
    *t = (struct things){.sem = WEIR_SEM_INIT(1),
                         .countdown = WEIR_COUNTDOWN_INIT(1),
                         .latch = WEIR_LATCH_INIT(2),
                         .barrier = WEIR_BARRIER_INIT(2)};
    CHECK_EQ(weir_sem_try_acquire(&t->sem, 1), 0);
    CHECK_EQ(weir_mutex_try_lock(&t->mutex), 0);
}

static inline int wait_sem(struct things *t, struct weir_deadline deadline)
{
    return weir_sem_acquire(&t->sem, 1, deadline);
}

static inline int wait_idle(struct things *t, struct weir_deadline deadline)
{
    return weir_sem_wait_idle(&t->sem, deadline);
}

static inline int wait_event(struct things *t, struct weir_deadline deadline)
{
    return weir_event_wait(&t->event, deadline);
}

static inline int wait_revent(struct things *t, struct weir_deadline deadline)
{
    return weir_revent_wait(&t->revent, deadline);
}

static inline int wait_countdown(struct things *t, struct weir_deadline deadline)
{
    return weir_countdown_wait(&t->countdown, deadline);
}

static inline int wait_latch(struct things *t, struct weir_deadline deadline)
{
    return weir_latch_wait(&t->latch, deadline);
}

static inline int wait_barrier(struct things *t, struct weir_deadline deadline)
{
    return weir_barrier_wait(&t->barrier, deadline, NULL);
}

static inline int wait_mutex(struct things *t, struct weir_deadline deadline)
{
    return weir_mutex_lock(&t->mutex, deadline);
}

static inline int wait_cond(struct things *t, struct weir_deadline deadline)
{
    /* Who came before is in the queue, but may not have let go of the mutex yet. */
    CHECK_EQ(weir_mutex_lock(&t->cond_mutex, WEIR_FOREVER), 0);
    int r = weir_cond_wait(&t->cond, &t->cond_mutex, deadline);
    weir_mutex_unlock(&t->cond_mutex);
    return r;
}

static inline void end_sem(struct things *t)
{
    CHECK_EQ(weir_sem_release(&t->sem, 1), 0);
}

static inline void end_event(struct things *t)
{
    weir_event_set(&t->event);
}

static inline void end_revent(struct things *t)
{
    weir_revent_set(&t->revent);
}

static inline void end_countdown(struct things *t)
{
    CHECK_EQ(weir_countdown_down(&t->countdown, 1), 0);
}

static inline void end_latch(struct things *t)
{
    CHECK_EQ(weir_latch_arrive(&t->latch, 1), 0);
}

/* Whoever completes the phase need not wait. */
static inline void end_barrier(struct things *t)
{
    CHECK_EQ(weir_barrier_wait(&t->barrier, WEIR_NO_WAIT, NULL), 0);
}

static inline void end_mutex(struct things *t)
{
    weir_mutex_unlock(&t->mutex);
}

static inline void end_cond(struct things *t)
{
    weir_cond_signal(&t->cond, 1);
}

struct way_to_wait {
    const char *name; /* as in a dump of tasks */
    int (*wait)(struct things *t, struct weir_deadline deadline);
    void (*end)(struct things *t); /* what such a wait waits for */
    size_t offset;                 /* of the object */
    bool lasts;                    /* what `end` has done is still there for who comes later */
    bool breaks;                   /* a wait that fails breaks it */
};

#define THING(member) offsetof(struct things, member)

static const struct way_to_wait ways_to_wait[] = {
    {"semaphore", wait_sem, end_sem, THING(sem), true, false},
    {"semaphore", wait_idle, end_sem, THING(sem), true, false},
    {"event", wait_event, end_event, THING(event), true, false},
    {"event", wait_revent, end_revent, THING(revent), true, false},
    {"countdown", wait_countdown, end_countdown, THING(countdown), true, false},
    {"latch", wait_latch, end_latch, THING(latch), true, true},
    {"barrier", wait_barrier, end_barrier, THING(barrier), false, true},
    {"mutex", wait_mutex, end_mutex, THING(mutex), true, false},
    {"condition", wait_cond, end_cond, THING(cond), false, false},
};

enum { WAYS_TO_WAIT = sizeof ways_to_wait / sizeof *ways_to_wait };

static inline void *thing_of(const struct way_to_wait *way, struct things *t)
{
    return (char *)t + way->offset;
}

/* CHECK_EQ that says which way it was. */
#define CHECK_WAY(way, got, want)                                                                 \
    do {                                                                                          \
        long long got_ = (long long)(got), want_ = (long long)(want);                             \
        if (got_ != want_)                                                                        \
            test_fail(__FILE__, __LINE__, "%s (number %d): %s: got %lld, want %lld", (way)->name, \
                      (int)((way)-ways_to_wait), #got, got_, want_);                              \
    } while (0)

/* A wait of a task. */
struct waiting {
    const struct way_to_wait *way;
    struct things *things;
    struct weir_deadline deadline;
    int result; /* NOT_YET until it has returned */
    int next;   /* what a sleep after it returned */
};

static inline int wait_as_told(void *arg)
{
    struct waiting *w = arg;
    int r = w->way->wait(w->things, w->deadline);

    w->next = weir_task_sleep(weir_within(WEIR_MS));
    __atomic_store_n(&w->result, r, __ATOMIC_RELEASE);
    return r;
}

static inline int waiting_result(const struct waiting *w)
{
    return __atomic_load_n(&w->result, __ATOMIC_ACQUIRE);
}

#endif
