/* SPDX-License-Identifier: MIT */
/* Signals as something to wait for.  A thread has sigtimedwait; a task waits for a
 * descriptor that stands for them. */
#include <weir/io.h>

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "task/io.h"
#include "task/task.h"

/* One that is not blocked would do what it does by default, or call a handler, instead of
 * being waited for; SIGKILL and SIGSTOP are never blocked. */
static bool are_blocked(const sigset_t *set)
{
    sigset_t blocked;

    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (int signo = 1; signo <= SIGRTMAX; signo++)
        if (sigismember(set, signo) == 1 && sigismember(&blocked, signo) != 1)
            return false;
    return true;
}

/* Take one that has come until at_ns, 0 to only look.  Returns its number, or 0. */
static int take_until(const sigset_t *set, int64_t at_ns)
{
    struct timespec left = io_left(at_ns);
    int signo = sigtimedwait(set, NULL, at_ns == INT64_MAX ? NULL : &left);

    return signo > 0 ? signo : 0; /* EAGAIN, or EINTR: by another one */
}

static int thread_wait(const sigset_t *set, struct weir_deadline deadline)
{
    int signo;

    while ((signo = take_until(set, deadline.at_ns)) == 0)
        if (clock_has_passed(deadline.at_ns))
            return WEIR_ETIMEDOUT;
    return signo;
}

/* Readable or not, another task may have taken what there was: hence non-blocking. */
static int task_wait(const sigset_t *set, struct weir_deadline deadline)
{
    struct signalfd_siginfo info;
    int fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC), r;

    if (fd < 0)
        return -errno;
    do {
        r = weir_fd_wait(fd, WEIR_READABLE, deadline);
        if (r > 0)
            r = read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
    } while (r == 0);
    weir_close(fd);
    return r;
}

int weir_signal_wait(const sigset_t *set, struct weir_deadline deadline)
{
    if (!are_blocked(set))
        return WEIR_EINVAL;
    if (io_begin() < 0)
        return WEIR_ECANCELED;
    int signo = take_until(set, 0);
    if (signo > 0)
        return signo;
    int r = park_refusal(deadline);
    if (r < 0)
        return r;
    return task_current() ? task_wait(set, deadline) : thread_wait(set, deadline);
}
