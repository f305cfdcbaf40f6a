/* SPDX-License-Identifier: MIT */
/* weir/io.h - descriptors and signals, waited for with deadlines.
 *
 *     static int echo(void *arg)
 *     {
 *         int fd = *(int *)arg;
 *         char text[4096];
 *         ssize_t n;
 *
 *         while ((n = weir_read(fd, text, sizeof text, weir_within(30 * WEIR_S))) > 0)
 *             if (weir_write(fd, text, (size_t)n, weir_within(30 * WEIR_S)) < n)
 *                 break;
 *         weir_close(fd);
 *         return 0;
 *     }
 *
 * In a task these calls let other tasks run until the descriptor is ready; on a plain
 * thread they block it; in a callback, and on a thread that has stepped a loop, they do
 * what can be done at once, and give WEIR_ECONTEXT where they would have to wait.
 *
 * Deadlines.  One in the past means: try once.  Data that is there is read, else
 * WEIR_ETIMEDOUT.
 *
 * Cancelling.  Unlike other calls of weir, these look first: in a task that was cancelled
 * they give WEIR_ECANCELED even when they would not have to wait.
 *
 * Blocking or not.  A descriptor may be non-blocking or not; no call here blocks its
 * worker for what another program may do or leave undone.  Where the kernel has no way to
 * try (a blocking terminal, named pipe, or socket to accept from), it is waited for first,
 * and then two tasks or programs that use the same descriptor can deceive each other: make
 * those non-blocking.  Files and directories are always ready, and their worker waits for
 * the disk: see weir_offload.
 *
 * Closing.  weir_close ends the waits of tasks for the descriptor, on all workers, with
 * -EBADF.  close(2) does not: whoever waits then does so until its deadline, or until
 * another descriptor of the same number is waited for on the same worker; and if the old
 * one lives on as a copy, it may be taken for the new.  Waits of plain threads are not
 * ended by either.
 *
 * Signals.  No call is ended by a signal handler (EINTR), and none raises SIGPIPE: writing
 * to what nobody reads is -EPIPE.
 *
 * Fairness.  A task that never has to wait, since there is always something to read, gives
 * way to others now and then.
 */
#ifndef WEIR_IO_H
#define WEIR_IO_H

#include <stddef.h>
#include <sys/select.h> /* sigset_t, which signal.h hides from plain C99 */
#include <sys/socket.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

enum {
    WEIR_READABLE = 1, /* POLLIN  */
    WEIR_WRITABLE = 4  /* POLLOUT */
};

/* Wait until fd is ready for any of the events, one of the above or both.  Returns those
 * it is ready for: more than 0.  An error or hang-up makes it ready for whatever was asked,
 * and the call that comes next will report it.  Or:
 *   WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_ECONTEXT
 *   WEIR_EINVAL   events are none, or others
 *   -EBADF        it is not open, or was closed meanwhile
 *   WEIR_ENOMEM */
WEIR_API int weir_fd_wait(int fd, unsigned events, struct weir_deadline deadline);

/* Read what is there, at most n bytes, waiting until there is something.  Returns how many,
 * 0 at the end, or an error: those above, or the kernel's.  For n of 0 it does not wait: it
 * returns 0, or why nothing can be read. */
WEIR_API ssize_t weir_read(int fd, void *ret_data, size_t n, struct weir_deadline deadline)
    WEIR_MUST_CHECK;

/* Write all n bytes.  Returns n; or fewer, if it was ended (deadline, cancel, error) after
 * so many had been written; or, when none had been, why.  After a short count the next call
 * says why, if that still holds. */
WEIR_API ssize_t weir_write(int fd, const void *data, size_t n, struct weir_deadline deadline)
    WEIR_MUST_CHECK;

/* Returns a connection, non-blocking and close-on-exec; or an error, those of accept(2)
 * but for EINTR, EAGAIN and ECONNABORTED.  What cannot accept is not waited for.  ret_address may be NULL; length is the room
 * there, and then the address's. */
WEIR_API int weir_accept(int fd, struct sockaddr *ret_address, socklen_t *length,
                         struct weir_deadline deadline) WEIR_MUST_CHECK;

/* Returns 0 when connected; or an error, those of connect(2) but for EINTR and
 * EINPROGRESS.  After WEIR_ETIMEDOUT or WEIR_ECANCELED the attempt goes on: call again to
 * wait for it again, or close.  A Unix socket whose listener has no room gives WEIR_EAGAIN,
 * since nobody can wait for that. */
WEIR_API int weir_connect(int fd, const struct sockaddr *address, socklen_t length,
                          struct weir_deadline deadline) WEIR_MUST_CHECK WEIR_NONNULL(2);

/* End the waits of all tasks for fd with -EBADF, and close it.  Never waits, whatever the
 * kernel may do to close a file.  Returns 0, or the kernel's error: -EBADF means that it was
 * not open, after any other it is closed. */
WEIR_API int weir_close(int fd);

/* Wait for one of the signals, and take it.  They must be blocked (pthread_sigmask) in all
 * threads of the program, before the first of them starts; weir's own block all that a
 * program may wait for.  If several tasks or threads wait, one of them gets it.  Returns
 * its number, more than 0; or WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_ECONTEXT, WEIR_EINVAL
 * (one is not blocked here), or what the kernel says to one descriptor more. */
WEIR_API int weir_signal_wait(const sigset_t *set, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

WEIR_END

#endif
