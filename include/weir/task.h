/* SPDX-License-Identifier: MIT */
/* weir/task.h - lightweight tasks: functions that wait without holding a thread.
 *
 *     static int fetch(void *url) { ... weir_sem_acquire(&slots, 1, WEIR_FOREVER); ... }
 *
 *     static int program(void *arg)
 *     {
 *         struct weir_task task;
 *         int result;
 *
 *         weir_task_spawn(fetch, "one", &task);
 *         fetch("two");
 *         return weir_task_join(task, WEIR_FOREVER, &result);
 *     }
 *
 *     int main(void) { return weir_run(NULL, program, NULL) < 0; }
 *
 * A task has a stack of its own and runs until it waits: for anything in weir, for a
 * descriptor, a process, a signal, the clock.  Then its worker, a thread, runs another.
 * Every primitive serves tasks, threads and callbacks in one queue; a blocking call
 * finds out by itself whether it runs inside a task.
 *
 * Threads.  A started task never changes its thread, so errno and thread-local
 * variables are safe to use.  One worker is the default; with more, idle ones take over
 * tasks that have not started.  There is no preemption: a task that computes keeps its
 * worker, and one that calls a blocking system function blocks it (see weir_offload).
 *
 * Cancelling is level-triggered: after weir_task_cancel the task's current wait returns
 * WEIR_ECANCELED, and so does every later call that would have to wait, until the task
 * ends.  Calls that need not wait succeed as usual; yield, sleep and I/O always look.
 * Clean-up code that has to wait does so inside a shield.
 *
 * Handles are plain values.  One that was joined is stale, and so is a detached one when
 * its task has ended: every call with it is WEIR_EINVAL, also when another task has
 * taken its place.
 */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/op.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

struct weir_runtime;
struct weir_task_;

/* What a task runs.  A negative result is a failure. */
typedef int weir_fn(void *arg);

struct weir_task {
    struct weir_task_ *slot_;
    uint64_t generation_;
};

/* ---- a program of tasks ------------------------------------------------------ */

/* Zero means default. */
struct weir_run_options {
    uint32_t workers;     /* threads that run tasks; default 1                          */
    uint32_t flags;       /* WEIR_RUN_...                                               */
    size_t stack_bytes;   /* of each task; default 64 KiB, at least 16 KiB              */
    uint64_t max_tasks;   /* that may exist at once; default no limit                   */
    uint32_t max_offload; /* threads for weir_offload; default 16                       */
};

enum {
    /* While the runtime is open, say which task overflowed its stack before the program
     * dies of it.  Sets a handler for SIGSEGV and SIGBUS. */
    WEIR_RUN_CATCH_OVERFLOW = 1,
};

/* Run fn(arg) as the first task, on this thread and as many others as there are more
 * workers, until it and every task has ended.  Returns fn's result; or WEIR_EINVAL for
 * options that cannot be, WEIR_ENOMEM, WEIR_ECONTEXT inside a task or callback. */
WEIR_API int weir_run(const struct weir_run_options *options, weir_fn *fn, void *arg)
    WEIR_NONNULL(2);

/* A runtime beside the program's own threads, with threads of its own. */
WEIR_API int weir_runtime_open(const struct weir_run_options *options,
                               struct weir_runtime **ret_runtime) WEIR_MUST_CHECK WEIR_NONNULL(2);

/* Wait for all tasks to end, and close.  When the deadline passes, those left are
 * cancelled and then waited for.  Returns 0, or WEIR_ETIMEDOUT if some were cancelled;
 * closed in both cases.  WEIR_ECONTEXT, and nothing happens, inside a task or callback, and
 * in a call that a task of this runtime has off-loaded. */
WEIR_API int weir_runtime_close(struct weir_runtime *runtime, struct weir_deadline deadline)
    WEIR_NONNULL(1);

/* Start fn(arg) as a task of the runtime, from any thread.  ret_task as below.
 * Returns 0, WEIR_ENOMEM, WEIR_ENOSPC beyond max_tasks, or WEIR_ECLOSED when its last task
 * has ended after a close began (from then on only its own tasks should spawn). */
WEIR_API int weir_runtime_spawn(struct weir_runtime *runtime, weir_fn *fn, void *arg,
                                struct weir_task *ret_task) WEIR_NONNULL(1, 2);

struct weir_runtime_stats {
    uint64_t live;             /* tasks that exist                                  */
    uint64_t spawned, ended;   /* since the runtime was opened                      */
    uint64_t switches;         /* times a worker went on to another task            */
    uint64_t stolen;           /* tasks an idle worker took over before their start */
    uint64_t sleeps;           /* times a worker went to sleep                      */
    uint64_t stacks;           /* stacks that exist, in use or pooled               */
    uint64_t stacks_unguarded; /* of them, those whose overflow is noticed late     */
    size_t stack_bytes;        /* of each                                           */
};

WEIR_API void weir_runtime_stats(struct weir_runtime *runtime, struct weir_runtime_stats *ret_stats)
    WEIR_NONNULL(1, 2);

/* The most bytes that any task's stack has ever used.  Reads all stacks: for tests and
 * for choosing stack_bytes, not for every second. */
WEIR_API size_t weir_runtime_stack_high_water(struct weir_runtime *runtime) WEIR_NONNULL(1);

/* The runtime that the caller is a task of, or NULL. */
WEIR_API struct weir_runtime *weir_runtime_self(void);

/* ---- tasks ------------------------------------------------------------------- */

/* Start fn(arg) as a task of the runtime that the caller runs in; it begins to run when
 * the caller waits or yields.  With ret_task NULL it is detached, else it must be joined
 * or detached.  Returns 0, WEIR_ENOMEM, WEIR_ENOSPC beyond max_tasks, or WEIR_ECONTEXT
 * outside a runtime. */
WEIR_API int weir_task_spawn(weir_fn *fn, void *arg, struct weir_task *ret_task) WEIR_NONNULL(1);

/* Wait for the task to end, from a task or a thread.  Returns 0 and its result
 * (ret_result may be NULL), and the handle is stale; or, and it is not:
 *   WEIR_EINVAL     the handle is stale, or somebody else is joining it
 *   WEIR_ECONTEXT   it is the caller itself, or the caller may not wait
 *   WEIR_ETIMEDOUT  the deadline passed
 *   WEIR_ECANCELED  the caller was cancelled
 * A task that could not be given a stack has the result WEIR_ENOMEM. */
WEIR_API int weir_task_join(struct weir_task task, struct weir_deadline deadline, int *ret_result)
    WEIR_MUST_CHECK;

/* Be called when the task has ended (see weir/op.h), to join it then without waiting.
 * Returns 1 if it has, 0 if `done` will be called, or WEIR_EINVAL.  Until then, or until
 * the op is cancelled, do not join or detach the task. */
WEIR_API int weir_task_join_async(struct weir_task task, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(2, 3);

/* Nobody will join it.  Returns 0, or WEIR_EINVAL: stale, or detached before, or
 * somebody is joining it. */
WEIR_API int weir_task_detach(struct weir_task task);

/* Ask the task to end, from anywhere.  Never waits.  Returns 0 (also when it has ended
 * or was cancelled before) or WEIR_EINVAL. */
WEIR_API int weir_task_cancel(struct weir_task task);

/* The running task, or, outside of one, a handle that is stale. */
WEIR_API struct weir_task weir_task_self(void);

/* Let every other task that could run do so first.  Returns 0 or WEIR_ECANCELED; on a
 * plain thread, 0. */
WEIR_API int weir_task_yield(void);

/* Returns 0 at that time, WEIR_ECANCELED, or WEIR_ECONTEXT in a callback.  Sleeps on a
 * plain thread, too. */
WEIR_API int weir_task_sleep(struct weir_deadline until);

/* For messages and dumps; cut after 31 bytes; may be a part of the old one.  Returns 0, or WEIR_ECONTEXT outside. */
WEIR_API int weir_task_set_name(const char *name) WEIR_NONNULL(1);

/* The running task's name, "" if it has none. */
WEIR_API const char *weir_task_name(void);

/* ---- shields ----------------------------------------------------------------- */

/* Private fields. */
struct weir_shield {
    struct weir_shield *outer_;
    struct weir_deadline until_;
    struct weir_task_ *task_;
};

/* Between begin and end the running task's waits are not struck by a cancel, until
 * `grace` has passed.  They nest; the innermost counts.  Outside tasks they do nothing.
 *
 *     struct weir_shield shield;
 *
 *     weir_shield_begin(&shield, weir_within(WEIR_S));
 *     say_goodbye();
 *     weir_shield_end(&shield); */
WEIR_API void weir_shield_begin(struct weir_shield *shield, struct weir_deadline grace)
    WEIR_NONNULL(1);
WEIR_API void weir_shield_end(struct weir_shield *shield) WEIR_NONNULL(1);

/* ---- task-local values --------------------------------------------------------- */

struct weir_key {
    uint32_t index_; /* from 1 */
};

enum { WEIR_KEYS_MAX = 64 };

/* A value for each task, and for each thread outside tasks.  When a task or thread ends,
 * `destroy` (unless NULL) is called with its value if that is not NULL.  Keys are for
 * good: returns 0, or WEIR_ENOSPC after WEIR_KEYS_MAX. */
WEIR_API int weir_key_create(struct weir_key *ret_key, void (*destroy)(void *value))
    WEIR_MUST_CHECK WEIR_NONNULL(1);
WEIR_API void *weir_key_get(struct weir_key key);

/* Returns 0, WEIR_EINVAL for a key that was not created, or WEIR_ENOMEM. */
WEIR_API int weir_key_set(struct weir_key key, void *value);

/* ---- blocking code ------------------------------------------------------------- */

/* Run fn(arg), which blocks in something that weir does not know, on another thread, and
 * wait for it without holding up the worker.  At most max_offload run at once; deadline
 * and cancel count until it has started, and then it is waited for.  Returns fn's result,
 * or WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_ENOMEM or WEIR_EAGAIN (no thread to be had),
 * and fn was not called.  On a plain thread fn is called directly; in a callback, and on one
 * that has stepped a loop, it is WEIR_ECONTEXT whatever the deadline. */
WEIR_API int weir_offload(weir_fn *fn, void *arg, struct weir_deadline deadline) WEIR_NONNULL(1);

WEIR_END

#endif
