/* SPDX-License-Identifier: MIT */
/* weir/scope.h - tasks that end before the block that started them does.
 *
 *     struct weir_scope scope;
 *
 *     weir_scope_open(&scope, weir_within(5 * WEIR_S));
 *     weir_scope_spawn(&scope, fetch, "one");
 *     weir_scope_spawn(&scope, fetch, "two");
 *     r = weir_scope_close(&scope);            // both have ended here
 *
 * A scope lives on the stack of a task.  Its children, and what they spawn into it in
 * turn, are joined by close, whatever happens.  The first child that fails (a negative
 * result) cancels the others, and close returns that result.  If the deadline passes, or
 * the task that closes is cancelled, that is passed on to the children, and they are
 * joined all the same.
 */
#ifndef WEIR_SCOPE_H
#define WEIR_SCOPE_H

#include <weir/countdown.h>
#include <weir/task.h>

WEIR_BEGIN

struct weir_scope_child_;

/* Private fields. */
struct weir_scope {
    struct weir_countdown running_;
    struct weir_scope_child_ *children_;
    struct weir_deadline deadline_;
    uint32_t lock_;
    int failure_;
    uint32_t cancelled_;
    uint32_t closed_;
};

/* The deadline counts for close. */
WEIR_API void weir_scope_open(struct weir_scope *scope, struct weir_deadline deadline)
    WEIR_NONNULL(1);

/* Start fn(arg) as a task of the scope.  Returns 0, WEIR_ECLOSED after close, WEIR_ENOMEM,
 * WEIR_ENOSPC beyond max_tasks, or WEIR_ECONTEXT outside a runtime. */
WEIR_API int weir_scope_spawn(struct weir_scope *scope, weir_fn *fn, void *arg) WEIR_NONNULL(1, 2);

/* Cancel all children, those to come included.  That they then end with WEIR_ECANCELED is
 * no failure. */
WEIR_API void weir_scope_cancel(struct weir_scope *scope) WEIR_NONNULL(1);

/* Join all children.  Returns 0, the first failure, WEIR_ETIMEDOUT or WEIR_ECANCELED.
 * WEIR_ECONTEXT, and nothing happens, in one of its own children; and, if there is anyone to
 * wait for, where the caller may not wait: in a callback, on a thread that has stepped a loop. */
WEIR_API int weir_scope_close(struct weir_scope *scope) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Run fn(args[i]) for each of n arguments (fn(NULL) when args is NULL) as tasks of their
 * own and join them all; results[i] is what the i-th returned (results may be NULL).
 * Returns 0, or the first negative result in order of the arguments.  If the deadline
 * passes or the caller is cancelled, so are the tasks, and that is returned. */
WEIR_API int weir_gather(size_t n, weir_fn *fn, void *const args[], int results[],
                         struct weir_deadline deadline) WEIR_MUST_CHECK WEIR_NONNULL(2);

WEIR_END

#endif
