/* SPDX-License-Identifier: MIT */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/time.h>

#include "base/atomic.h"

/* What is passed on.  SIGCHLD is for us, and WAKE for child_stop. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

static sigset_t ours, before;

static struct {
    int signo; /* (a) 0: nobody asked */
    int64_t grace_ns;
} stop;

static int wake_signal(void)
{
    return SIGRTMIN;
}

/* ---- the terminal -------------------------------------------------------------------- */

static bool is_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* A process of a background group is stopped when it does that, unless it blocks the signal. */
static void give_terminal(pid_t group)
{
    sigset_t ttou, old;

    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    sigprocmask(SIG_BLOCK, &ttou, &old);
    tcsetpgrp(STDIN_FILENO, group);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* ---- starting --------------------------------------------------------------------------- */

void child_prepare(void)
{
    sigemptyset(&ours);
    for (int i = 0; i < FORWARDED; i++)
        sigaddset(&ours, forwarded[i]);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, wake_signal());
    sigprocmask(SIG_BLOCK, &ours, &before);
}

/* In the child, whose memory is the parent's until it executes. */
static _Noreturn void become(char *const argv[], bool terminal, pid_t parent, volatile int *error)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before we asked to be told */
    setpgid(0, 0);
    if (terminal)
        give_terminal(getpid());
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(argv[0], argv);
    *error = errno;
    _exit(127);
}

/* vfork: the parent waits until the program is executed, and no page is copied. */
__attribute__((noinline)) static pid_t start(char *const argv[], bool terminal, volatile int *error)
{
    pid_t parent = getpid();
    pid_t pid = vfork();

    if (pid == 0)
        become(argv, terminal, parent, error);
    if (pid < 0)
        *error = errno;
    return pid;
}

int child_start(struct child *c, char *const argv[], int keep_fd)
{
    volatile int error = 0;
    int ends[2];

    c->terminal = isatty(STDIN_FILENO) && is_foreground();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fcntl(ends[1], F_SETFD, 0);
    if (keep_fd >= 0)
        fcntl(keep_fd, F_SETFD, 0);
    c->pid = start(argv, c->terminal, &error);
    close(ends[1]);
    if (keep_fd >= 0)
        fcntl(keep_fd, F_SETFD, FD_CLOEXEC);
    c->others_fd = ends[0];
    if (error) {
        if (c->pid > 0)
            waitpid(c->pid, NULL, 0);
        if (c->terminal)
            give_terminal(getpgrp());
        close(ends[0]);
        return -error;
    }
    return 0;
}

/* ---- while it runs ------------------------------------------------------------------------ */

void child_stop(int signo, int64_t grace_ns)
{
    stop.grace_ns = grace_ns;
    atomic_put(&stop.signo, signo);
    kill(getpid(), wake_signal());
}

static void to_group(const struct child *c, int signo)
{
    kill(-c->pid, signo);
}

/* The command was stopped, by Ctrl-Z perhaps: the shell has to see that we are. */
static void stop_with_it(const struct child *c)
{
    if (c->terminal)
        give_terminal(getpgrp());
    raise(SIGSTOP);
    if (c->terminal && is_foreground())
        give_terminal(c->pid);
    to_group(c, SIGCONT);
}

/* True when it has ended. */
static bool has_ended(const struct child *c, int *ret_status)
{
    int status;

    while (waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid) {
        if (!WIFSTOPPED(status)) {
            *ret_status = status;
            return true;
        }
        stop_with_it(c);
    }
    return false;
}

static int next_signal(int64_t until_ns)
{
    int64_t left_ns = until_ns == INT64_MAX ? WEIR_S * 3600 : until_ns - weir_now_ns();
    struct timespec left = {left_ns > 0 ? left_ns / WEIR_S : 0, left_ns > 0 ? left_ns % WEIR_S : 0};

    return sigtimedwait(&ours, NULL, &left);
}

int child_wait(struct child *c, bool *ret_stopped)
{
    int64_t kill_at_ns = INT64_MAX;
    int status = 0;

    *ret_stopped = false;
    while (!has_ended(c, &status)) {
        int signo = next_signal(kill_at_ns);

        if (signo == wake_signal() && !*ret_stopped) {
            *ret_stopped = true;
            kill_at_ns = weir_within(stop.grace_ns).at_ns;
            to_group(c, atomic_get(&stop.signo));
            to_group(c, SIGCONT); /* so that one that is stopped gets it */
        } else if (signo < 0 && weir_now_ns() >= kill_at_ns) {
            to_group(c, SIGKILL);
            kill_at_ns = INT64_MAX;
        } else if (signo > 0 && signo != SIGCHLD && signo != wake_signal()) {
            to_group(c, signo);
        }
    }
    if (c->terminal)
        give_terminal(getpgrp());
    if (*ret_stopped)
        to_group(c, SIGKILL); /* whoever it left behind in its group */
    return status;
}

bool child_left_others(const struct child *c)
{
    struct pollfd end = {.fd = c->others_fd};

    return poll(&end, 1, 0) == 0; /* POLLHUP: nobody has the other end */
}
