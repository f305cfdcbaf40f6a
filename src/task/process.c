/* SPDX-License-Identifier: MIT */
/* Child processes: posix_spawn, which borrows the caller's memory until the child has begun
 * its program (0.14 ms from any caller, where fork took 38 from one of 1 GiB), and a pidfd
 * to wait for it and to signal it by. */
#include <weir/process.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/io.h>

#include "base/alloc.h"

/* Linux 6.9; may be missing in the headers. */
enum { PIDFD_GROUP = 1 << 2 };

static const uint32_t IS_REAPED = UINT32_C(1) << 31; /* in flags_, beside the options' */

/* A child's descriptors; the gaps between them are closed one by one. */
enum { CHILD_FDS = 1024 };

/* What is to be undone after a spawn, whichever way it went. */
struct plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int *copies; /* by index of options->fds: of a descriptor that is in the way, or -1 */
    size_t copy_count;
};

/* ---- descriptors ------------------------------------------------------------- */

static bool is_target(const struct weir_process_options *o, int fd)
{
    for (size_t i = 0; i < o->fd_count; i++)
        if (o->fds[i].child == fd)
            return true;
    return false;
}

static int highest_target(const struct weir_process_options *o)
{
    int highest = STDERR_FILENO;

    for (size_t i = 0; i < o->fd_count; i++)
        if (o->fds[i].child > highest)
            highest = o->fds[i].child;
    return highest;
}

static bool are_possible(const struct weir_process_options *o)
{
    for (size_t i = 0; i < o->fd_count; i++) {
        if (o->fds[i].child < 0 || o->fds[i].child >= CHILD_FDS)
            return false;
        for (size_t k = 0; k < i; k++)
            if (o->fds[k].child == o->fds[i].child)
                return false;
    }
    return o->argv && o->argv[0] && (o->flags & ~(uint32_t)WEIR_PROCESS_SAME_GROUP) == 0;
}

/* A descriptor whose number is to become another one is copied out of the way first, by us:
 * the kernel knows which numbers are free. */
static int make_copies(struct plan *plan, const struct weir_process_options *o)
{
    int above = highest_target(o) + 1;

    plan->copies = o->fd_count ? mem_alloc(o->fd_count * sizeof *plan->copies) : NULL;
    if (o->fd_count && plan->copies == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < o->fd_count; i++, plan->copy_count++) {
        const struct weir_process_fd *fd = &o->fds[i];

        plan->copies[i] = -1;
        if (fd->parent == fd->child || !is_target(o, fd->parent))
            continue;
        plan->copies[i] = fcntl(fd->parent, F_DUPFD_CLOEXEC, above);
        if (plan->copies[i] < 0)
            return -errno;
    }
    return 0;
}

static int add_descriptor(struct plan *plan, const struct weir_process_fd *fd, int copy)
{
    if (fd->parent == -1)
        return -posix_spawn_file_actions_addopen(&plan->actions, fd->child, "/dev/null", O_RDWR, 0);
    return -posix_spawn_file_actions_adddup2(&plan->actions, copy >= 0 ? copy : fd->parent,
                                             fd->child);
}

/* Everything else is closed, whatever its close-on-exec flag says. */
static int add_actions(struct plan *plan, const struct weir_process_options *o)
{
    int highest = highest_target(o), r = 0;

    if (o->cwd)
        r = -posix_spawn_file_actions_addchdir_np(&plan->actions, o->cwd);
    for (size_t i = 0; i < o->fd_count && r == 0; i++)
        r = add_descriptor(plan, &o->fds[i], plan->copies[i]);
    for (int fd = STDERR_FILENO + 1; fd < highest && r == 0; fd++)
        if (!is_target(o, fd))
            r = -posix_spawn_file_actions_addclose(&plan->actions, fd);
    return r < 0 ? r : -posix_spawn_file_actions_addclosefrom_np(&plan->actions, highest + 1);
}

/* ---- spawning ---------------------------------------------------------------- */

/* The threads of a runtime block signals, which a program does not expect to begin with. */
static void set_attributes(struct plan *plan, const struct weir_process_options *o)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&plan->attributes, &none);
    posix_spawnattr_setsigdefault(&plan->attributes, &all);
    if (!(o->flags & WEIR_PROCESS_SAME_GROUP)) {
        flags |= POSIX_SPAWN_SETPGROUP;
        posix_spawnattr_setpgroup(&plan->attributes, 0);
    }
    posix_spawnattr_setflags(&plan->attributes, flags);
}

static int plan_make(struct plan *plan, const struct weir_process_options *o)
{
    int r = -posix_spawn_file_actions_init(&plan->actions);

    if (r == 0)
        r = -posix_spawnattr_init(&plan->attributes);
    if (r == 0)
        r = make_copies(plan, o);
    if (r == 0)
        r = add_actions(plan, o);
    if (r == 0)
        set_attributes(plan, o);
    return r;
}

static void plan_end(struct plan *plan)
{
    for (size_t i = 0; i < plan->copy_count; i++)
        if (plan->copies[i] >= 0)
            close(plan->copies[i]);
    mem_free(plan->copies);
    posix_spawnattr_destroy(&plan->attributes);
    posix_spawn_file_actions_destroy(&plan->actions);
}

static int set_limits(pid_t pid, const struct weir_process_options *o)
{
    for (size_t i = 0; i < o->limit_count; i++) {
        rlim_t value = o->limits[i].value;
        struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

        if (prlimit(pid, (__rlimit_resource_t)o->limits[i].resource, &limit, NULL) < 0)
            return -errno;
    }
    return 0;
}

/* It was started in vain.  If it had time to start others, they die with it. */
static void kill_and_reap(pid_t pid, const struct weir_process_options *o)
{
    siginfo_t info;

    kill(o->flags & WEIR_PROCESS_SAME_GROUP ? pid : -pid, SIGKILL);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
}

int weir_process_spawn(const struct weir_process_options *options, struct weir_process *ret_process)
{
    struct plan plan = {0};
    pid_t pid = -1;

    if (!are_possible(options))
        return WEIR_EINVAL;
    int r = plan_make(&plan, options);
    if (r == 0)
        r = -posix_spawnp(&pid, options->argv[0], &plan.actions, &plan.attributes,
                          (char *const *)options->argv,
                          options->envp ? (char *const *)options->envp : environ);
    plan_end(&plan);
    if (r < 0)
        return r;

    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    r = pidfd < 0 ? -errno : set_limits(pid, options);
    if (r < 0) {
        kill_and_reap(pid, options);
        weir_close(pidfd);
        return r;
    }
    *ret_process = (struct weir_process){.pid = pid, .pidfd = pidfd, .flags_ = options->flags};
    return 0;
}

/* ---- waiting and signalling ------------------------------------------------------ */

/* As waitpid would have put it. */
static int status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return W_EXITCODE(info->si_status & 0xff, 0);
    return info->si_status | (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

/* A record of zeroes names no process, though 0 is a descriptor: somebody else's. */
static int pidfd_of(const struct weir_process *process)
{
    return process->pid > 0 ? process->pidfd : -1;
}

int weir_process_wait(struct weir_process *process, struct weir_deadline deadline, int *ret_status)
{
    siginfo_t info = {0};

    while (info.si_pid == 0) { /* it has ended, and whoever debugs it may have it first */
        int r = weir_fd_wait(pidfd_of(process), WEIR_READABLE, deadline);

        if (r < 0)
            return r;
        if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) < 0)
            return -errno;
    }
    process->flags_ |= IS_REAPED;
    if (ret_status)
        *ret_status = status_of(&info);
    return 0;
}

static int send_by_pidfd(const struct weir_process *process, int signo, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, process->pidfd, signo, NULL, flags) < 0 ? -errno : 0;
}

int weir_process_signal(const struct weir_process *process, int signo)
{
    if (pidfd_of(process) < 0)
        return -EBADF;
    if (process->flags_ & WEIR_PROCESS_SAME_GROUP)
        return send_by_pidfd(process, signo, 0);
    int r = send_by_pidfd(process, signo, PIDFD_GROUP);
    if (r != -EINVAL)
        return r;

    /* An older kernel, or no such signal.  Until it is reaped, its number is its own. */
    if (process->flags_ & IS_REAPED)
        return -ESRCH;
    return kill(-process->pid, signo) < 0 ? -errno : 0;
}

void weir_process_release(struct weir_process *process)
{
    if (pidfd_of(process) >= 0)
        weir_close(process->pidfd);
    process->pidfd = -1;
}
