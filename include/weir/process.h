/* SPDX-License-Identifier: MIT */
/* weir/process.h - child processes.
 *
 *     struct weir_process_options how = {0};
 *     const char *argv[] = {"sort", "-u", NULL};
 *     struct weir_process_fd fds[] = {{in, 0}, {out, 1}, {-1, 2}};
 *     struct weir_process child;
 *     int status;
 *
 *     how.argv = argv;
 *     how.fds = fds;
 *     how.fd_count = 3;
 *     r = weir_process_spawn(&how, &child);
 *     if (r < 0)
 *         return r;
 *     r = weir_process_wait(&child, weir_within(5 * WEIR_S), &status);
 *     if (r == WEIR_ETIMEDOUT) {
 *         weir_process_signal(&child, SIGKILL);
 *         r = weir_process_wait(&child, WEIR_FOREVER, &status);
 *     }
 *     weir_process_release(&child);
 *
 * Spawning takes the same time from a program of any size: nothing of it is copied.  The
 * child begins with all signals unblocked and at their defaults, and with the descriptors
 * 0, 1 and 2, those it was given, and no others.  It leads a process group of its own, so
 * that it can be signalled together with its children.
 *
 * A process is waited for by a descriptor.  SIGCHLD is not used, and its handler, if the
 * program has one, not touched; but a program that ignores it, or that calls wait(2) for
 * any child, takes the status away, and then weir_process_wait gives -ECHILD.
 *
 * A child that has ended stays a zombie until it has been waited for, so wait for each one.
 */
#ifndef WEIR_PROCESS_H
#define WEIR_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

/* Plain data.  The pidfd is readable once the process has ended: weir_fd_wait it, to look
 * at what is left of its group while nobody else can get its number. */
struct weir_process {
    pid_t pid; /* and of its group, if it leads one */
    int pidfd; /* -1 once released                  */
    uint32_t flags_;
};

/* The child's descriptor `child` is to be the caller's `parent`; -1 is /dev/null. */
struct weir_process_fd {
    int parent;
    int child;
};

/* RLIMIT_..., both soft and hard. */
struct weir_process_limit {
    int resource;
    uint64_t value; /* RLIM_INFINITY: none */
};

/* Zero means default, but for argv. */
struct weir_process_options {
    const char *const *argv;                 /* up to NULL; argv[0] is looked for in PATH if it
                                                has no slash                                  */
    const char *const *envp;                 /* up to NULL; default the caller's              */
    const char *cwd;                         /* default the caller's                          */
    const struct weir_process_fd *fds;       /* as if all were given at once: swaps work      */
    size_t fd_count;                         /*                                               */
    const struct weir_process_limit *limits; /* see below                                     */
    size_t limit_count;
    uint32_t flags; /* WEIR_PROCESS_... */
};

enum {
    /* Stay in the caller's process group: weir_process_signal then reaches it alone. */
    WEIR_PROCESS_SAME_GROUP = 1
};

/* Start a program.  Limits are set right after it was started, so that it may have run a
 * little before; where that matters, let a program that sets its own start it.
 *
 * Returns 0, or, and nothing was started, or it was killed again:
 *   -ENOENT, -EACCES  there is no such program, or directory to start it in; not allowed
 *   -EBADF            a descriptor to be given is not open
 *   WEIR_EINVAL       no argv, a child's descriptor that is given twice or is not from 0 to
 *                     1023, unknown limits or flags
 *   WEIR_EPERM        a limit may not be raised
 *   others            what the kernel said */
WEIR_API int weir_process_spawn(const struct weir_process_options *options,
                                struct weir_process *ret_process)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2);

/* Wait until it has ended.  Returns 0 and its status, to be looked at with WIFEXITED and the
 * like (ret_status may be NULL), and no zombie is left; or WEIR_ETIMEDOUT, WEIR_ECANCELED,
 * WEIR_ECONTEXT, -ECHILD: it was waited for before, or -EBADF: it was released. */
WEIR_API int weir_process_wait(struct weir_process *process, struct weir_deadline deadline,
                               int *ret_status) WEIR_MUST_CHECK WEIR_NONNULL(1);

/* Send a signal to its whole group, whoever of it is left.  Never hits a stranger that was
 * given the same number later.  Returns 0, -ESRCH if nobody is left, -EBADF after release, or
 * the kernel's error.
 * Before Linux 6.9 it is -ESRCH once the process was waited for. */
WEIR_API int weir_process_signal(const struct weir_process *process, int signo) WEIR_NONNULL(1);

/* Close the pidfd.  Does nothing to the process.  Allowed twice, and for a record of zeroes,
 * which counts as released. */
WEIR_API void weir_process_release(struct weir_process *process) WEIR_NONNULL(1);

WEIR_END

#endif
