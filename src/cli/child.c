/* SPDX-License-Identifier: MIT */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is passed on; SIGCHLD is for us. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

static sigset_t ours, before;

/* ---- the terminal -------------------------------------------------------------------- */

/* Ours, by whichever descriptor. */
static int open_terminal(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (tcgetpgrp(fd) >= 0)
            return fd;
    return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

static bool is_foreground(const struct child *c)
{
    return c->tty >= 0 && tcgetpgrp(c->tty) == getpgrp();
}

static bool is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static enum child_group choose_group(const struct child *c)
{
    if (!is_foreground(c))
        return CHILD_ALONE;
    return isatty(STDIN_FILENO) && !is_pipe(STDOUT_FILENO) ? CHILD_FOREGROUND : CHILD_SHARED;
}

/* A process of a background group is stopped when it does that, unless it blocks the signal. */
static void give_terminal(int tty, pid_t group)
{
    sigset_t ttou, old;

    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    sigprocmask(SIG_BLOCK, &ttou, &old);
    tcsetpgrp(tty, group);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Unless somebody else who lives has got it meanwhile: another weir of the same script. */
static void take_terminal_back(const struct child *c)
{
    pid_t group = c->group == CHILD_FOREGROUND ? tcgetpgrp(c->tty) : 0;

    if (group > 0 && (group == c->pid || (kill(-group, 0) < 0 && errno == ESRCH)))
        give_terminal(c->tty, getpgrp());
}

/* ---- starting --------------------------------------------------------------------------- */

void child_prepare(void)
{
    sigemptyset(&ours);
    for (int i = 0; i < FORWARDED; i++)
        sigaddset(&ours, forwarded[i]);
    sigaddset(&ours, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ours, &before);
    signal(SIGCHLD, SIG_DFL); /* if it was ignored, nobody could be waited for */
}

/* In the child, whose memory is the parent's until it executes. */
static _Noreturn void become(const struct child *c, char *const argv[], pid_t parent,
                             volatile int *error)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before we asked to be told */
    if (c->group != CHILD_SHARED)
        setpgid(0, 0);
    if (c->group == CHILD_FOREGROUND)
        give_terminal(c->tty, getpid());
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(argv[0], argv);
    *error = errno;
    _exit(127);
}

/* vfork: the parent waits until the program is executed, and no page is copied. */
__attribute__((noinline)) static pid_t start(const struct child *c, char *const argv[],
                                             volatile int *error)
{
    pid_t parent = getpid();
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

    if (pid == 0)
        become(c, argv, parent, error); /* NOLINT(clang-analyzer-unix.Vfork): no frame is left */
    if (pid < 0)
        *error = errno;
    return pid;
}

/* Returns 0, or what went wrong. */
static int start_with(struct child *c, char *const argv[], int others_fd, int keep_fd)
{
    volatile int error = 0;

    fcntl(others_fd, F_SETFD, 0);
    if (keep_fd >= 0)
        fcntl(keep_fd, F_SETFD, 0);
    c->pid = start(c, argv, &error);
    close(others_fd);
    if (keep_fd >= 0)
        fcntl(keep_fd, F_SETFD, FD_CLOEXEC);
    if (error && c->pid > 0) {
        waitpid(c->pid, NULL, 0);
        take_terminal_back(c);
    }
    return -error;
}

int child_start(struct child *c, char *const argv[], int keep_fd)
{
    int ends[2];

    c->tty = open_terminal();
    c->group = choose_group(c);
    c->signals_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    c->others_fd = ends[0];
    return start_with(c, argv, ends[1], keep_fd);
}

/* ---- while it runs ------------------------------------------------------------------------ */

void child_signal(const struct child *c, int signo)
{
    kill(c->group == CHILD_SHARED ? c->pid : -c->pid, signo);
}

/* A signal that is blocked, as it is by default: to our whole group, or to us alone. */
static void let_through(int signo, pid_t to)
{
    sigset_t one, old;

    sigemptyset(&one);
    sigaddset(&one, signo);
    signal(signo, SIG_DFL);
    kill(to, signo);
    sigprocmask(SIG_UNBLOCK, &one, &old);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The shell has to see that we are stopped.  If it was by a key, or by reading the terminal
 * in the background, then whoever is in our group, such as the script that runs us, has to
 * stop as well; the kernel spares a group that nobody could continue. */
static void stop_with_it(struct child *c, int signo)
{
    bool by_key = signo == SIGTSTP && c->group == CHILD_FOREGROUND;
    bool by_use = (signo == SIGTTIN || signo == SIGTTOU) && c->group != CHILD_SHARED;

    take_terminal_back(c);
    if (by_key || by_use)
        let_through(signo, 0);
    if (!by_key && !(by_use && is_foreground(c)))
        raise(SIGSTOP);
    if (c->group != CHILD_SHARED && is_foreground(c)) {
        c->group = CHILD_FOREGROUND;
        give_terminal(c->tty, c->pid);
    }
    child_signal(c, SIGCONT);
}

/* True when it has ended. */
static bool has_ended(struct child *c, int *ret_waited)
{
    int waited;

    while (waitpid(c->pid, &waited, WNOHANG | WUNTRACED) == c->pid) {
        if (!WIFSTOPPED(waited)) {
            *ret_waited = waited;
            take_terminal_back(c);
            return true;
        }
        stop_with_it(c, WSTOPSIG(waited));
    }
    return false;
}

/* What the terminal sent to our group has reached a command that shares it. */
static void pass_on(const struct child *c)
{
    struct signalfd_siginfo info;

    while (read(c->signals_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && !(c->group == CHILD_SHARED && info.ssi_code == SI_KERNEL))
            child_signal(c, (int)info.ssi_signo);
}

static int wait_until(struct pollfd ends[2], struct weir_deadline deadline)
{
    int64_t left_ns = deadline.at_ns == INT64_MAX ? 0 : deadline.at_ns - weir_now_ns();
    struct timespec left = {left_ns > 0 ? left_ns / WEIR_S : 0, left_ns > 0 ? left_ns % WEIR_S : 0};

    return ppoll(ends, 2, deadline.at_ns == INT64_MAX ? NULL : &left, NULL);
}

int child_wait(struct child *c, int fd, struct weir_deadline deadline, int *ret_waited)
{
    struct pollfd ends[2] = {
        {.fd = c->signals_fd, .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };

    while (!has_ended(c, ret_waited)) {
        if (wait_until(ends, deadline) == 0)
            return CHILD_LATE;
        if (ends[1].revents)
            return CHILD_READABLE;
        pass_on(c);
    }
    return CHILD_ENDED;
}

/* ---- afterwards -------------------------------------------------------------------------------- */

bool child_left_others(const struct child *c)
{
    struct pollfd end = {.fd = c->others_fd};

    return poll(&end, 1, 0) == 0; /* POLLHUP: nobody has the other end */
}

void child_die_alike(const struct child *c, int waited)
{
    int signo = WIFSIGNALED(waited) ? WTERMSIG(waited) : 0;

    if (c->group == CHILD_ALONE || (signo != SIGINT && signo != SIGQUIT))
        return;
    prctl(PR_SET_DUMPABLE, 0); /* its core is enough */
    let_through(signo, c->group == CHILD_SHARED ? getpid() : 0);
}
