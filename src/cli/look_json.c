/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "cli/json.h"
#include "cli/look.h"

/* A name that is not text cannot be given back to weir as it stands in JSON: then its bytes
 * are there as well. */
static void put_name(struct json *j, const char *name)
{
    json_text(j, "name", name);
    if (!json_is_text(name))
        json_hex(j, "name_hex", name);
}

static void put_use(struct json *j, const struct snapshot *s, const struct weir_name_stats *n)
{
    put_name(j, n->name);
    json_count(j, "held", n->held);
    json_count(j, "limit", n->limit);
    json_count(j, "percent", n->percent);
    json_count(j, "waiting", n->waiters);
    json_time(j, "oldest_s", n->leases ? snapshot_age(s, &n->lease[0]) : INT64_MAX);
    json_time(j, "longest_wait_s", n->longest_wait_ns);
    json_count(j, "granted", n->granted);
}

void ls_json(const struct snapshot *s, FILE *to)
{
    struct weir_name_stats *all = look_sort(s);
    struct json j = {.to = to};

    json_open(&j, NULL, '[');
    for (size_t i = 0; i < s->names; i++) {
        json_open(&j, NULL, '{');
        put_use(&j, s, &all[i]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    fputc('\n', to);
    free(all);
}

/* ---- stat ------------------------------------------------------------------------------- */

static void put_who(struct json *j, const struct snapshot *s, const struct weir_lease_info *info)
{
    json_text(j, "id", info->id);
    json_count(j, "pid", (uint64_t)info->pid);
    json_text(j, "label", info->label);
    json_count(j, "weight", info->weight);
    json_time(j, "age_s", snapshot_age(s, info));
}

static void put_holder(struct json *j, const struct snapshot *s, const struct weir_lease_info *info)
{
    json_open(j, NULL, '{');
    put_who(j, s, info);
    json_count(j, "slot", info->slot);
    json_count(j, "token", info->token); /* microseconds of the clock: below 2^53 for long */
    json_time(j, "ttl_left_s", snapshot_left(s, info));
    json_close(j, '}');
}

static void put_waiter(struct json *j, const struct snapshot *s, const struct weir_lease_info *info)
{
    json_open(j, NULL, '{');
    put_who(j, s, info);
    json_close(j, '}');
}

static void put_counts(struct json *j, const struct weir_name_stats *n)
{
    json_count(j, "released", n->released);
    json_count(j, "timed_out", n->timed_out);
    json_count(j, "cancelled", n->cancelled);
    json_count(j, "expired", n->expired);
    json_count(j, "recovered", n->recovered);
    json_count(j, "evicted", n->evicted);
    json_count(j, "lapsed", n->lapsed);
}

void stat_json(const struct snapshot *s, const struct weir_name_stats *name, FILE *to)
{
    struct json j = {.to = to};

    json_open(&j, NULL, '{');
    put_use(&j, s, name);
    put_counts(&j, name);
    json_open(&j, "holders", '[');
    for (size_t i = 0; i < name->leases; i++)
        put_holder(&j, s, &name->lease[i]);
    json_close(&j, ']');
    json_open(&j, "waiters", '[');
    for (size_t i = 0; i < name->waiters; i++)
        put_waiter(&j, s, &name->waiter[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    fputc('\n', to);
}
