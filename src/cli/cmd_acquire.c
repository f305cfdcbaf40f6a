/* SPDX-License-Identifier: MIT */
/* weir acquire: a lease for a script.
 *
 * A lease belongs to a process, and ours ends at once; so a child, the keeper, acquires it
 * and stays.  While it waits it is a part of us: the same terminal and process group, so
 * that Ctrl-C ends both, and it dies with us.  When it has the lease it lets go of all that,
 * tells us what it has, and stays only if we say that this was printed.
 *
 *     weir acquire           keeper
 *         | ------ fork ------> |  wait; fail as any command would
 *         | <----- report ----- |  detached from the terminal, and holding
 *     print the id              |
 *         | ------ a byte ----> |  until the shell ends, or the lease is gone
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/say.h"

/* What the keeper tells; on the same machine, in the same program. */
struct report {
    struct weir_lease lease;
    uint64_t limit;
};

/* ---- the process that it is held for ---------------------------------------------------- */

static pid_t whom_for(const struct options *o)
{
    const struct option_value *given = &o->value[OPT_WHILE];
    pid_t pid = given->given ? (pid_t)given->number : caller_find();

    if (pid <= 0)
        fail(EXIT_WEIR, "the calling shell cannot be seen from here: say --while PID");
    return pid;
}

/* Readable when it has ended. */
static int open_process(const struct options *o, pid_t *ret_pid)
{
    int fd;

    do { /* a number that is still the caller's after it was opened is no other's */
        *ret_pid = whom_for(o);
        fd = pidfd_open(*ret_pid, 0);
        if (fd < 0 && (errno != ESRCH || o->value[OPT_WHILE].given))
            fail(EXIT_WEIR, "cannot wait for the end of process %d: %s", (int)*ret_pid,
                 strerror(errno));
    } while (fd < 0 || whom_for(o) != *ret_pid);
    return fd;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Whatever else the script has open is not ours to keep open. */
static void close_all_but(int one, int other)
{
    unsigned low = (unsigned)(one < other ? one : other);
    unsigned high = (unsigned)(one < other ? other : one);

    if (low > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
}

static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
    if (chdir("/") < 0)
        return; /* a directory that cannot be unmounted meanwhile, no more */
}

static bool is_wanted(int parent_fd, const struct report *report)
{
    char yes;

    return send(parent_fd, report, sizeof *report, MSG_NOSIGNAL) == (ssize_t)sizeof *report &&
           read(parent_fd, &yes, 1) == 1;
}

static void hold(struct weir_store *store, const char *name, const struct weir_lease *lease,
                 int process_fd)
{
    struct pollfd ends[] = {
        {.fd = process_fd, .events = POLLIN},
        {.fd = weir_lease_lost_fd(store, name, lease), .events = POLLIN},
    };

    if (ends[1].fd == WEIR_ENOTHELD)
        return;
    while (poll(ends, 2, -1) < 0)
        ;
    if (!ends[1].revents)
        weir_lease_release(store, name, lease->id);
}

static _Noreturn void keep(const struct options *o, const char *label, int parent_fd,
                           int process_fd)
{
    struct report report = {.limit = 0};

    close_all_but(parent_fd, process_fd);
    struct weir_store *store = open_store(o);
    struct weir_lease_request request = lease_request(o, label);
    request.ret_limit = &report.limit;
    request.flags |= request.ttl_ns ? WEIR_LEASE_RENEW : 0;
    acquire_or_fail(store, o, &request, &report.lease);
    leave_terminal();
    prctl(PR_SET_PDEATHSIG, 0);
    bool ours = request.id == NULL || lease_is_ours(store, request.name, &report.lease);
    if (is_wanted(parent_fd, &report) && ours) {
        close(parent_fd);
        hold(store, request.name, &report.lease, process_fd);
    }
    _exit(0); /* and whatever is still held is free */
}

/* ---- the command ------------------------------------------------------------------------------- */

static bool print(const struct options *o, const struct report *report)
{
    struct json j = {.to = stdout};
    char token[24];

    snprintf(token, sizeof token, "%llu", (unsigned long long)report->lease.token);
    if (o->value[OPT_JSON].given) {
        json_open(&j, NULL, '{');
        json_text(&j, "id", report->lease.id);
        json_count(&j, "slot", report->lease.slot);
        json_text(&j, "token", token); /* as text: it may have more digits than a double */
        json_text(&j, "name", o->arguments[0]);
        json_count(&j, "limit", report->limit);
        json_close(&j, '}');
        putchar('\n');
    } else {
        puts(report->lease.id);
    }
    return fflush(stdout) == 0;
}

static _Noreturn void fail_print(void)
{
    fail(EXIT_WEIR, "the id cannot be printed, so the lease was given back: %s", strerror(errno));
}

/* It has said why. */
static int status_of(pid_t keeper)
{
    int waited = 0;

    while (waitpid(keeper, &waited, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(waited) ? EXIT_SIGNAL + WTERMSIG(waited) : WEXITSTATUS(waited);
}

static int acquire_kept(const struct options *o)
{
    char label[WEIR_LABEL_MAX + 1];
    struct report report;
    pid_t holder, self = getpid();
    int ends[2], process_fd = open_process(o, &holder);

    caller_name(holder, label, sizeof label);
    signal(SIGCHLD, SIG_DFL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        fail(EXIT_WEIR, "no pipe to be had: %s", strerror(errno));
    pid_t keeper = fork();
    if (keeper < 0)
        fail(EXIT_WEIR, "no process to be had to keep the lease: %s", strerror(errno));
    if (keeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        keep(o, label, ends[1], process_fd);
    }
    close(ends[1]);
    if (read(ends[0], &report, sizeof report) != (ssize_t)sizeof report)
        return status_of(keeper);
    if (!print(o, &report))
        fail_print();
    return send(ends[0], "", 1, MSG_NOSIGNAL) == 1 ? 0 : status_of(keeper);
}

static int acquire_detached(const struct options *o)
{
    struct report report = {.limit = 0};
    char label[WEIR_LABEL_MAX + 1];

    if (!o->value[OPT_TTL].given)
        fail(EXIT_WEIR, "--detach leaves nobody to hold the lease: say by -t how long it lasts");
    if (o->value[OPT_WHILE].given)
        fail(EXIT_WEIR, "--detach leaves nobody to wait for --while: leave one of the two out");
    caller_name(caller_find(), label, sizeof label);
    struct weir_store *store = open_store(o);
    struct weir_lease_request request = lease_request(o, label);
    request.ret_limit = &report.limit;
    request.flags |= WEIR_LEASE_DETACHED;
    acquire_or_fail(store, o, &request, &report.lease);
    if (!print(o, &report)) {
        weir_lease_release(store, request.name, report.lease.id);
        fail_print();
    }
    return 0;
}

int cmd_acquire(const struct options *o)
{
    if (strcmp(store_uri(o), "mem:") == 0)
        fail(EXIT_WEIR, "a lease of mem: ends with the process that has it; acquire needs shm:");
    return o->value[OPT_DETACH].given ? acquire_detached(o) : acquire_kept(o);
}
