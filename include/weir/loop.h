/* SPDX-License-Identifier: MIT */
/* weir/loop.h - tasks inside an event loop that is not weir's.
 *
 *     weir_loop_open(NULL, &loop);
 *     watch(weir_loop_fd(loop), READABLE, on_readable);     // libuv, libevent, epoll, ...
 *     static void on_readable(...) { weir_loop_step(loop); }
 *
 *     weir_runtime_spawn(weir_loop_runtime(loop), fn, arg, NULL);
 *
 * The descriptor is readable exactly when there is something to do, timers included.  A
 * loop belongs to the thread that steps it; spawning, cancelling and waking its tasks is
 * allowed from any.  On a thread that has stepped a loop, outside its tasks, a blocking call that
 * would have to wait returns WEIR_ECONTEXT: it would stop the host.
 */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

#include <weir/task.h>

WEIR_BEGIN

struct weir_loop;

/* Options as for weir_run, but for workers: there is one.  Returns 0, WEIR_EINVAL,
 * WEIR_ENOMEM, or what the kernel said. */
WEIR_API int weir_loop_open(const struct weir_run_options *options, struct weir_loop **ret_loop)
    WEIR_MUST_CHECK WEIR_NONNULL(2);

WEIR_API int weir_loop_fd(const struct weir_loop *loop) WEIR_NONNULL(1);

/* Run the tasks that can run now, but not for ever: after some turns it returns 1, with
 * the descriptor still readable; else 0.  WEIR_ECONTEXT inside a task or callback. */
WEIR_API int weir_loop_step(struct weir_loop *loop) WEIR_NONNULL(1);

/* To spawn into, and to ask for statistics.  Never close it. */
WEIR_API struct weir_runtime *weir_loop_runtime(struct weir_loop *loop) WEIR_NONNULL(1);

/* Cancel all tasks, run them to their end, and close.  Returns 0; or WEIR_ECONTEXT, and
 * nothing happens, inside a task or callback.  NULL is allowed. */
WEIR_API int weir_loop_close(struct weir_loop *loop);

WEIR_END

#endif
