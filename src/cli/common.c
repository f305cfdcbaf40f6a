/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/notice.h"
#include "cli/say.h"
#include "cli/units.h"

const char *store_uri(const struct options *o)
{
    const char *uri = o->value[OPT_STORE].text;

    if (uri == NULL)
        uri = getenv("WEIR_STORE");
    return uri && *uri ? uri : "shm:";
}

struct weir_store *open_store(const struct options *o)
{
    struct weir_store *store;
    int r = weir_store_open(store_uri(o), NULL, &store);

    if (r < 0)
        fail_store(r, "");
    return store;
}

struct weir_lease_request lease_request(const struct options *o, const char *label)
{
    const struct option_value *v = o->value;
    struct weir_lease_request request = {
        .name = o->arguments[0],
        .limit = (uint64_t)v[OPT_LIMIT].number,
        .weight = (uint64_t)v[OPT_WEIGHT].number,
        .ttl_ns = v[OPT_TTL].number,
        .flags = v[OPT_RESIZE].given ? WEIR_LEASE_RESIZE : 0,
        .id = v[OPT_ID].text,
        .label = v[OPT_LABEL].given ? v[OPT_LABEL].text : label,
    };

    if (v[OPT_TTL].given && request.ttl_ns < 100 * WEIR_MS)
        fail(EXIT_WEIR, "a TTL below 100ms cannot be kept up from a shell");
    if (v[OPT_RESIZE].given && !v[OPT_LIMIT].given)
        fail(EXIT_WEIR, "--resize says to what by -n");
    if (v[OPT_TRY].given && v[OPT_WAIT].given)
        fail(EXIT_WEIR, "--try does not wait, and --wait does: which?");
    return request;
}

/* At once if that is possible, so that nobody is told anything; then in line. */
static int acquire(struct weir_store *store, const struct options *o,
                   struct weir_lease_request *request, struct weir_lease *ret)
{
    const struct option_value *wait = &o->value[OPT_WAIT];
    struct weir_deadline deadline = wait->given ? weir_within(wait->number) : WEIR_FOREVER;
    int r = weir_lease_acquire(store, request, WEIR_NO_WAIT, ret);

    if (r != WEIR_ETIMEDOUT || o->value[OPT_TRY].given)
        return r;
    if (!o->value[OPT_QUIET].given && isatty(STDERR_FILENO))
        notice_begin(store, request->name);
    r = weir_lease_acquire(store, request, deadline, ret);
    notice_end();
    return r;
}

static _Noreturn void fail_busy(const struct options *o, const char *name)
{
    char text[DURATION_BYTES];
    int status = o->value[OPT_STATUS].given ? (int)o->value[OPT_STATUS].number : EXIT_BUSY;

    if (o->value[OPT_WAIT].given)
        fail(status, "no slot of \"%s\" was free within %s", name,
             print_duration(o->value[OPT_WAIT].number, text));
    fail(status, "no slot of \"%s\" is free", name);
}

void acquire_or_fail(struct weir_store *store, const struct options *o,
                     struct weir_lease_request *request, struct weir_lease *ret)
{
    uint64_t limit = 0, *wanted = request->ret_limit;

    request->ret_limit = &limit;
    int r = acquire(store, o, request, ret);
    if (r == WEIR_EMISMATCH)
        fail(EXIT_MISMATCH,
             "\"%s\" is in use with a limit of %llu, not %llu: leave -n out, or add --resize",
             request->name, (unsigned long long)limit, (unsigned long long)request->limit);
    if (r == WEIR_ETIMEDOUT)
        fail_busy(o, request->name);
    if (r == WEIR_ECANCELED)
        fail(EXIT_BUSY, "somebody evicted us from the queue of \"%s\"", request->name);
    if (r == WEIR_EINVAL && request->weight > 1 && !*weir_store_why())
        fail(EXIT_WEIR, "a weight of %llu is more than the limit of \"%s\"",
             (unsigned long long)request->weight, request->name);
    if (r < 0)
        fail_store(r, request->name);
    if (wanted)
        *wanted = limit;
    request->ret_limit = wanted;
}

struct owner_search {
    const char *name, *id;
    bool found;
};

static int look_for_owner(const struct weir_name_stats *stats, void *arg)
{
    struct owner_search *search = arg;

    if (strcmp(stats->name, search->name) != 0)
        return 0;
    for (size_t i = 0; i < stats->leases; i++)
        if (strcmp(stats->lease[i].id, search->id) == 0)
            search->found = stats->lease[i].pid == getpid();
    return 1;
}

bool lease_is_ours(struct weir_store *store, const char *name, const struct weir_lease *lease)
{
    struct owner_search search = {.name = name, .id = lease->id};

    weir_store_visit(store, look_for_owner, &search);
    return search.found;
}
