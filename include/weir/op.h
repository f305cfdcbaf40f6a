/* SPDX-License-Identifier: MIT */
/* weir/op.h - waiting without blocking: callbacks, and one descriptor for a loop.
 *
 * Every wait on a primitive but a condition, and the join of a task, has an asynchronous
 * form.  The caller provides the record of it, a
 * struct weir_op, usually inside a struct of its own:
 *
 *     struct request { struct weir_op op; ... };
 *
 *     static void have_slot(struct weir_op *op, int result) { ... }
 *
 *     int r = weir_sem_acquire_async(&slots, 1, &request->op, have_slot);
 *     if (r == 1)
 *         ...                      // had at once; have_slot will not be called
 *     else if (r == 0)
 *         ...                      // queued; have_slot(op, result) will be called
 *     else
 *         ...                      // r says why not; nothing was queued
 *
 * A queued op stands in the same queue as threads and tasks.  Its callback is
 * called exactly once, with what the blocking call would have returned (a barrier
 * gives the index), with no lock held, and never from inside another callback: if
 * one releases, those it serves are called after it has returned.  The record is
 * not touched once the callback is called, which may free it or queue it again.
 *
 * Waiting inside a callback is not allowed: a blocking call that would have to
 * wait returns WEIR_ECONTEXT there.
 *
 * Who calls it.  With op.inbox NULL, whoever ended the wait (a release, a set, a
 * cancel of another) from inside that call.  With an inbox, weir_inbox_drain, so on
 * the thread of the loop that watches the inbox's descriptor:
 *
 *     weir_inbox_open(&inbox);
 *     watch(weir_inbox_fd(inbox), READABLE, on_readable);   // epoll, libuv, ...
 *     static void on_readable(...) { weir_inbox_drain(inbox); }
 *
 * Deadlines are the loop's own timers: let one call weir_op_cancel.
 */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <stdint.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/visibility.h>

WEIR_BEGIN

struct weir_op;
struct weir_inbox;
struct weir_sem;
struct weir_event;
struct weir_revent;
struct weir_countdown;
struct weir_latch;
struct weir_barrier;
struct weir_mutex;

typedef void weir_done(struct weir_op *op, int result);

struct weir_op {
    struct weir_inbox *inbox; /* yours: who calls back; NULL is whoever ends the wait */
    weir_done *done_;
    struct weir_waiter_ waiter_;
};

/* clang-format off */
/* No inbox, not queued. */
#define WEIR_OP_INIT {0, 0, {0, 0, 0, 0, 0, {0, 0, 0, 0, 0}, 0, 0}}
/* clang-format on */

WEIR_API void weir_op_init(struct weir_op *op) WEIR_NONNULL(1);

/* Each returns 1 when it was had at once, 0 when `done` will be called, or the
 * error that the blocking call would have given at once.  The barrier's index is
 * `parties - 1` when it was had at once. */
WEIR_API int weir_sem_acquire_async(struct weir_sem *sem, uint64_t n, struct weir_op *op,
                                    weir_done *done) WEIR_MUST_CHECK WEIR_NONNULL(1, 3, 4);
WEIR_API int weir_sem_wait_idle_async(struct weir_sem *sem, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_event_wait_async(struct weir_event *event, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_revent_wait_async(struct weir_revent *event, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_countdown_wait_async(struct weir_countdown *countdown, struct weir_op *op,
                                       weir_done *done) WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_latch_wait_async(struct weir_latch *latch, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_barrier_wait_async(struct weir_barrier *barrier, struct weir_op *op,
                                     weir_done *done) WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);
WEIR_API int weir_mutex_lock_async(struct weir_mutex *mutex, struct weir_op *op, weir_done *done)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 3);

/* Take a queued op back, in O(1).
 *
 * Returns 1: it left the queue and holds nothing; done will never be called.  Those
 * behind it move up; on a barrier or latch this is a wait that failed, and breaks it.
 * Returns 0: too late (or never queued); done was called, or will be. */
WEIR_API int weir_op_cancel(struct weir_op *op) WEIR_NONNULL(1);

/* ---- inbox ------------------------------------------------------------------- */

/* Returns 0, WEIR_ENOMEM, or what the kernel said to one descriptor more. */
WEIR_API int weir_inbox_open(struct weir_inbox **ret_inbox) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Readable when there is something to drain. */
WEIR_API int weir_inbox_fd(const struct weir_inbox *inbox) WEIR_NONNULL(1);

/* Call back everyone who has arrived, in order of arrival.  Never blocks.  Returns
 * how many, or WEIR_ECONTEXT inside a callback. */
WEIR_API int weir_inbox_drain(struct weir_inbox *inbox) WEIR_NONNULL(1);

/* Drain once more, then close.  No op that names it may still be queued.  Inside a
 * callback those it drains are called when that one has returned.  NULL is allowed. */
WEIR_API void weir_inbox_close(struct weir_inbox *inbox);

WEIR_END

#endif
