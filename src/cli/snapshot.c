/* SPDX-License-Identifier: MIT */
#include "cli/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "cli/text.h"

/* A label that was too long was cut between two bytes, perhaps in the middle of a
 * character, which is nobody's mistake and not to be seen. */
static void mend_cut_label(char *label)
{
    size_t length = strlen(label), at = length;
    uint32_t c;

    if (length < WEIR_LABEL_MAX)
        return;
    while (at > 0 && length - at < 3 && (label[at - 1] & 0xc0) == 0x80)
        at--;
    if (at > 0 && (label[at - 1] & 0xc0) == 0xc0 && !utf8_char(label + at - 1, &c))
        label[at - 1] = '\0';
}

static int copy_name(const struct weir_name_stats *from, struct weir_name_stats *to)
{
    size_t count = from->leases + from->waiters;
    struct weir_lease_info *all = malloc((count + 1) * sizeof *all);
    char *name = strdup(from->name);

    if (all == NULL || name == NULL) {
        free(all);
        free(name);
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        all[i] = i < from->leases ? from->lease[i] : from->waiter[i - from->leases];
        mend_cut_label(all[i].label);
    }
    *to = *from;
    to->name = name;
    to->lease = all;
    to->waiter = all + from->leases;
    return 0;
}

static int add_name(const struct weir_name_stats *stats, void *arg)
{
    struct snapshot *s = arg;

    if ((s->names & (s->names - 1)) == 0) { /* it doubles at each power of two */
        size_t room = s->names ? 2 * s->names : 1;
        struct weir_name_stats *more = realloc(s->name, room * sizeof *more);

        if (more == NULL)
            return WEIR_ENOMEM;
        s->name = more;
    }
    int r = copy_name(stats, &s->name[s->names]);
    if (r == 0)
        s->names++;
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct weir_name_stats *x = a, *y = b;

    return strcmp(x->name, y->name);
}

int snapshot_take(struct weir_store *store, struct snapshot *ret)
{
    struct snapshot s = {.names = 0};
    int r = weir_store_visit(store, add_name, &s);

    if (r < 0) {
        snapshot_free(&s);
        return r;
    }
    if (s.names)
        qsort(s.name, s.names, sizeof *s.name, by_name);
    s.at_ns = weir_now_ns();
    *ret = s;
    return 0;
}

void snapshot_free(struct snapshot *s)
{
    for (size_t i = 0; i < s->names; i++) {
        free((void *)s->name[i].lease);
        free((void *)s->name[i].name);
    }
    free(s->name);
    *s = (struct snapshot){.names = 0};
}

const struct weir_name_stats *snapshot_find(const struct snapshot *s, const char *name)
{
    struct weir_name_stats key = {.name = name};

    return s->names ? bsearch(&key, s->name, s->names, sizeof key, by_name) : NULL;
}

int64_t snapshot_age(const struct snapshot *s, const struct weir_lease_info *info)
{
    return s->at_ns > info->since_ns ? s->at_ns - info->since_ns : 0;
}

int64_t snapshot_left(const struct snapshot *s, const struct weir_lease_info *info)
{
    if (info->expires_at_ns == INT64_MAX)
        return INT64_MAX;
    return info->expires_at_ns > s->at_ns ? info->expires_at_ns - s->at_ns : 0;
}
