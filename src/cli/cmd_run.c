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

static const struct options *options; /* for the thread that is told of a loss */

/* ---- loss --------------------------------------------------------------------------- */

static void on_lost(const char *name, const struct weir_lease *lease, void *arg)
{
    const struct option_value *v = options->value;
    bool kills = v[OPT_ON_LOST].number == 0;

    (void)lease;
    (void)arg;
    say("the lease of \"%s\" was lost%s", name, kills ? "; stopping the command" : "");
    if (kills)
        child_stop(v[OPT_SIGNAL].given ? (int)v[OPT_SIGNAL].number : SIGTERM,
                   v[OPT_GRACE].given ? v[OPT_GRACE].number : 5 * WEIR_S);
}

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

static int run(struct weir_store *store, const char *name, const struct weir_lease *lease,
               char *const argv[])
{
    struct child child;
    bool stopped;
    int fd = weir_store_fd(store);
    int r = child_start(&child, argv, fd);

    if (r < 0) {
        weir_lease_release(store, name, lease->id);
        fail_exec(argv[0], -r);
    }
    int waited = child_wait(&child, &stopped);
    if (!child_left_others(&child))
        weir_lease_release(store, name, lease->id);
    /* else the slot is theirs until they are gone: we leave without giving it back */
    return stopped ? EXIT_LOST : status_of(waited);
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

    options = o;
    check(o);
    struct weir_store *store = open_store(o);
    struct weir_lease_request request = lease_request(o, label_of(argv, label));
    request.ret_limit = &limit;
    if (request.ttl_ns) {
        request.flags |= o->value[OPT_NO_RENEW].given ? 0 : WEIR_LEASE_RENEW;
        request.on_lost = on_lost;
    }
    acquire_or_fail(store, o, &request, &lease);
    set_environment(request.name, &lease, limit);
    if (o->value[OPT_EXEC].given)
        become(store, argv);
    child_prepare();
    return run(store, request.name, &lease, argv);
}
