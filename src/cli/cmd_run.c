/* SPDX-License-Identifier: MIT */
/* weir run: a command that has a slot for as long as it lives. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/commands.h"
#include "cli/say.h"

static const int64_t SHORT_NS = 20 * WEIR_MS;

/* ---- what the command is told ---------------------------------------------------------- */

static void set_number(const char *variable, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    setenv(variable, text, 1);
}

static void set_environment(const char *name, const struct weir_lease *lease, uint64_t limit)
{
    setenv("WEIR_NAME", name, 1);
    setenv("WEIR_LEASE", lease->id, 1);
    set_number("WEIR_SLOT", lease->slot);
    set_number("WEIR_TOKEN", lease->token);
    set_number("WEIR_LIMIT", limit);
}

/* The command itself, as far as there is room. */
static const char *label_of(char *const argv[], char label[WEIR_LABEL_MAX + 1])
{
    size_t at = 0;

    for (int i = 0; argv[i] && at < WEIR_LABEL_MAX; i++)
        at += (size_t)snprintf(label + at, WEIR_LABEL_MAX + 1 - at, "%s%s", i ? " " : "", argv[i]);
    return label;
}

/* ---- running ------------------------------------------------------------------------------ */

static _Noreturn void fail_exec(const char *command, int error)
{
    if (error == ENOENT)
        fail(EXIT_NOT_FOUND, "there is no command \"%s\"", command);
    fail(EXIT_CANNOT_RUN, "cannot run \"%s\": %s", command, strerror(error));
}

static int status_of(int waited)
{
    return WIFSIGNALED(waited) ? EXIT_SIGNAL + WTERMSIG(waited) : WEXITSTATUS(waited);
}

static _Noreturn void become(struct weir_store *store, char *const argv[])
{
    int fd = weir_store_fd(store);

    if (fd >= 0)
        fcntl(fd, F_SETFD, 0);
    execvp(argv[0], argv);
    fail_exec(argv[0], errno);
}

/* First what -s says, then what cannot be refused. */
static void stop_command(struct child *child, const struct option_value *v, int *ret_waited)
{
    int64_t grace_ns = v[OPT_GRACE].given ? v[OPT_GRACE].number : 5 * WEIR_S;

    child_signal(child, v[OPT_SIGNAL].given ? (int)v[OPT_SIGNAL].number : SIGTERM);
    child_signal(child, SIGCONT); /* so that one that is stopped gets it */
    if (child_wait(child, -1, weir_within(grace_ns), ret_waited) != CHILD_ENDED) {
        child_signal(child, SIGKILL);
        child_wait(child, -1, WEIR_FOREVER, ret_waited);
    }
    if (child->group != CHILD_SHARED)
        child_signal(child, SIGKILL); /* whoever it left behind in its group */
}

/* Readable when the lease is lost; -1 if that cannot be known. */
static int watch_lease(struct weir_store *store, const char *name, const struct weir_lease *lease,
                       bool *ret_lost)
{
    int fd = weir_lease_lost_fd(store, name, lease);

    *ret_lost = fd == WEIR_ENOTHELD;
    return fd < 0 ? -1 : fd;
}

/* True if the command was stopped because the lease was lost.  A short command ends before
 * anybody can take its lease away, and does not pay for the thread that would notice. */
static bool wait_with_lease(struct child *child, struct weir_store *store, const struct options *o,
                            const struct weir_lease *lease, int *ret_waited)
{
    const char *name = o->arguments[0];
    bool kills = o->value[OPT_ON_LOST].number == 0, lost;

    if (child_wait(child, -1, weir_within(SHORT_NS), ret_waited) == CHILD_ENDED)
        return false;
    int fd = watch_lease(store, name, lease, &lost);
    if (!lost && child_wait(child, fd, WEIR_FOREVER, ret_waited) == CHILD_ENDED)
        return false;
    say("the lease of \"%s\" was lost%s", name, kills ? "; stopping the command" : "");
    if (kills)
        stop_command(child, o->value, ret_waited);
    else
        child_wait(child, -1, WEIR_FOREVER, ret_waited);
    return kills;
}

static int run(struct weir_store *store, const struct options *o, const struct weir_lease *lease,
               bool ours)
{
    char *const *argv = o->arguments + 1;
    const char *name = o->arguments[0];
    bool stopped = false;
    struct child child;
    int waited, r = child_start(&child, argv, weir_store_fd(store));

    if (r < 0) {
        if (ours)
            weir_lease_release(store, name, lease->id);
        fail_exec(argv[0], -r);
    }
    if (ours)
        stopped = wait_with_lease(&child, store, o, lease, &waited);
    else
        child_wait(&child, -1, WEIR_FOREVER, &waited);
    if (ours && !child_left_others(&child))
        weir_lease_release(store, name, lease->id);
    /* else the slot is theirs until they are gone: we leave without giving it back */
    if (stopped)
        return EXIT_LOST;
    child_die_alike(&child, waited);
    return status_of(waited);
}

static void check(const struct options *o)
{
    const struct option_value *v = o->value;

    if (v[OPT_EXEC].given && v[OPT_TTL].given)
        fail(EXIT_WEIR, "--exec leaves nobody to renew a TTL: leave one of the two out");
    if (v[OPT_NO_RENEW].given && !v[OPT_TTL].given)
        fail(EXIT_WEIR, "--no-renew is about a TTL, and there is none: add -t");
}

int cmd_run(const struct options *o)
{
    char *const *argv = o->arguments + 1;
    char label[WEIR_LABEL_MAX + 1];
    struct weir_lease lease;
    uint64_t limit = 0;

    check(o);
    struct weir_store *store = open_store(o);
    struct weir_lease_request request = lease_request(o, label_of(argv, label));
    request.ret_limit = &limit;
    if (request.ttl_ns && !o->value[OPT_NO_RENEW].given)
        request.flags |= WEIR_LEASE_RENEW;
    acquire_or_fail(store, o, &request, &lease);
    set_environment(request.name, &lease, limit);
    if (o->value[OPT_EXEC].given)
        become(store, argv);
    child_prepare();
    return run(store, o, &lease, !request.id || lease_is_ours(store, request.name, &lease));
}
