/* SPDX-License-Identifier: MIT */
/* weir renew, release, resize, evict, gc: one call to the store each. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/say.h"
#include "cli/units.h"

int cmd_renew(const struct options *o)
{
    struct weir_store *store = open_store(o);
    struct weir_lease lease = {.slot = 0};

    if (!o->value[OPT_TTL].given)
        fail(EXIT_WEIR, "for how long? say -t TIME");
    if (o->value[OPT_TTL].number < 100 * WEIR_MS)
        fail(EXIT_WEIR, "a TTL below 100ms cannot be kept up from a shell");
    snprintf(lease.id, sizeof lease.id, "%s", o->arguments[1]);
    int r = weir_lease_renew(store, o->arguments[0], &lease, o->value[OPT_TTL].number);
    if (r < 0)
        fail_store(r, o->arguments[0]);
    return 0;
}

int cmd_release(const struct options *o)
{
    int r = weir_lease_release(open_store(o), o->arguments[0], o->arguments[1]);

    if (r < 0)
        fail_store(r, o->arguments[0]);
    return 0;
}

int cmd_resize(const struct options *o)
{
    int64_t limit;

    if (!parse_count(o->arguments[1], &limit))
        fail(EXIT_WEIR, "a limit is a number from 1 on, not \"%s\"", o->arguments[1]);
    int r = weir_store_resize(open_store(o), o->arguments[0], (uint64_t)limit);
    if (r < 0)
        fail_store(r, o->arguments[0]);
    return 0;
}

int cmd_evict(const struct options *o)
{
    int r = weir_store_evict(open_store(o), o->arguments[0], o->arguments[1]);

    if (r < 0)
        fail_store(r, o->arguments[0]);
    return 0;
}

static int count_name(const struct weir_name_stats *stats, void *arg)
{
    int *names = arg;

    (void)stats;
    ++*names;
    return 0;
}

/* To visit is to take back what the dead held and to forget what is unused. */
int cmd_gc(const struct options *o)
{
    int names = 0, r = weir_store_visit(open_store(o), count_name, &names);

    if (r < 0)
        fail_store(r, "");
    if (o->value[OPT_JSON].given)
        printf("{\"names\":%d}\n", names);
    else
        printf("%d name%s in use\n", names, names == 1 ? "" : "s");
    return 0;
}
