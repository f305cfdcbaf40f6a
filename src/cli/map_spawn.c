/* SPDX-License-Identifier: MIT */
#include "cli/map_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/say.h"

/* Shared with the warden.  Written by us, but for a job's own group, which it writes. */
static volatile struct {
    unsigned used;          /* slots, so far */
    pid_t group[SLOTS_MAX]; /* 0: none       */
} * table;

static pid_t warden, self;
static sigset_t job_mask;
static int null_fd;
static struct rlimit files_before, files_now;

/* ---- the warden ------------------------------------------------------------------------ */

static void kill_groups(void)
{
    for (unsigned i = 0; i < table->used; i++)
        if (table->group[i])
            kill(-table->group[i], SIGKILL);
}

/* Blocked signals do not end it: it has to outlive us, by a moment. */
static _Noreturn void warden_main(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    prctl(PR_SET_NAME, "weir-warden");
    close_range(0, ~0U, 0);
    while (getppid() == self)
        sigwaitinfo(&all, NULL);
    kill_groups();
    _exit(0);
}

/* Two pipe ends and two files of results for each job. */
static void allow_files(unsigned slots)
{
    getrlimit(RLIMIT_NOFILE, &files_before);
    files_now = files_before;
    if (files_now.rlim_cur >= (rlim_t)slots * 4 + 64)
        return;
    files_now.rlim_cur = (rlim_t)slots * 4 + 64;
    if (files_now.rlim_cur > files_now.rlim_max)
        files_now.rlim_cur = files_now.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files_now);
}

void spawn_begin(const sigset_t *mask, unsigned slots)
{
    job_mask = *mask;
    self = getpid();
    allow_files(slots);
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (null_fd < 0 || table == MAP_FAILED)
        fail(EXIT_WEIR, "cannot begin: %s", strerror(errno));
    warden = fork();
    if (warden == 0)
        warden_main();
    if (warden < 0)
        fail(EXIT_WEIR, "cannot start a process: %s", strerror(errno));
    atexit(spawn_end);
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* In the child, whose memory is the parent's until it executes. */
static _Noreturn void become(const struct spawn *s, volatile int *error)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self)
        _exit(1); /* it died before we asked to be told */
    setpgid(0, 0);
    table->group[s->slot] = getpid();
    dup2(null_fd, STDIN_FILENO);
    dup2(s->output[0], STDOUT_FILENO);
    dup2(s->output[1], STDERR_FILENO);
    if (s->keep_fd >= 0)
        fcntl(s->keep_fd, F_SETFD, 0);
    if (files_now.rlim_cur != files_before.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &files_before);
    sigprocmask(SIG_SETMASK, &job_mask, NULL);
    execve(s->path, s->argv, s->envp);
    *error = errno;
    _exit(127);
}

/* vfork: the parent waits until the program is executed, and no page is copied.  posix_spawn
 * cannot do all that become does, and fork costs a job half as much again. */
__attribute__((noinline)) static pid_t start(const struct spawn *s, volatile int *error)
{
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

    if (pid == 0)
        become(s, error); /* NOLINT(clang-analyzer-unix.Vfork): no frame of ours is left */
    if (pid < 0)
        *error = errno;
    return pid;
}

/* A script that does not say what runs it is for sh, as in every shell. */
static void put_sh_in_front(struct spawn *s)
{
    char **argv = (char **)(uintptr_t)s->argv;

    argv[0] = (char *)(uintptr_t)s->path;
    argv[-1] = (char *)(uintptr_t) "sh";
    s->argv = argv - 1;
    s->path = "/bin/sh";
}

int spawn_start(const struct spawn *s, pid_t *ret_pid)
{
    struct spawn again = *s;

    if (s->slot >= table->used)
        table->used = s->slot + 1;
    for (;;) {
        volatile int error = 0;
        pid_t pid = start(&again, &error);

        if (error == 0) {
            *ret_pid = pid;
            return 0;
        }
        table->group[s->slot] = 0;
        if (pid > 0)
            waitpid(pid, NULL, 0);
        if (error != ENOEXEC || again.argv != s->argv)
            return error;
        put_sh_in_front(&again);
    }
}

void spawn_signal(pid_t pid, int signo)
{
    kill(-pid, signo);
}

bool spawn_has_ended(pid_t pid, unsigned slot, int *ret_status)
{
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return false;
    kill(-pid, SIGKILL);
    table->group[slot] = 0;
    waitpid(pid, ret_status, 0);
    return true;
}

void spawn_end(void)
{
    if (getpid() != self || warden == 0)
        return;
    kill_groups();
    for (unsigned i = 0; i < table->used; i++) {
        if (table->group[i])
            waitpid(table->group[i], NULL, 0);
        table->group[i] = 0;
    }
    kill(warden, SIGKILL);
    waitpid(warden, NULL, 0);
    warden = 0;
}
