/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/top.h"

const char *const top_sort_names[SORTS] = {"used", "name", "waiting", "rate", "oldest"};

/* ---- looking ------------------------------------------------------------------------------- */

static void *need(void *memory)
{
    if (memory == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    return memory;
}

/* Of grants between two snapshots. */
static double rate_of(const struct snapshot *before, const struct snapshot *now, size_t i)
{
    const struct weir_name_stats *n = &now->name[i], *was = snapshot_find(before, n->name);
    double s = (double)(now->at_ns - before->at_ns) / (double)WEIR_S;

    if (before->at_ns == 0 || s <= 0)
        return -1;
    /* Forgotten and made again meanwhile, it counts from 0. */
    uint64_t from = was && was->granted <= n->granted ? was->granted : 0;
    return (double)(n->granted - from) / s;
}

void top_take(struct top *t)
{
    struct snapshot now;
    int r = snapshot_take(t->store, &now);

    if (r < 0) {
        const char *why = weir_store_why();

        snprintf(t->message, sizeof t->message, "%s", *why ? why : weir_strerror(r));
        return;
    }
    t->rate = need(realloc(t->rate, (now.names + 1) * sizeof *t->rate));
    for (size_t i = 0; i < now.names; i++)
        t->rate[i] = rate_of(&t->now, &now, i);
    snapshot_free(&t->now);
    t->now = now;
    top_arrange(t);
}

/* ---- order ---------------------------------------------------------------------------------- */

#define COMPARE(x, y) ((x) > (y) ? -1 : (x) < (y)) /* the largest first */

static int by_use(const struct top_row *x, const struct top_row *y)
{
    return COMPARE(x->name->percent, y->name->percent);
}

static int by_waiting(const struct top_row *x, const struct top_row *y)
{
    return COMPARE(x->name->waiters, y->name->waiters);
}

static int by_rate(const struct top_row *x, const struct top_row *y)
{
    return COMPARE(x->rate, y->rate);
}

static int by_oldest(const struct top_row *x, const struct top_row *y)
{
    return COMPARE(x->oldest_ns, y->oldest_ns);
}

static int by_nothing(const struct top_row *x, const struct top_row *y)
{
    (void)x;
    (void)y;
    return 0;
}

/* What is equal in this order stays in that of names. */
static int compare_rows(const void *a, const void *b, void *arg)
{
    static int (*const orders[SORTS])(const struct top_row *, const struct top_row *) = {
        by_use, by_nothing, by_waiting, by_rate, by_oldest};
    const struct top_row *x = a, *y = b;
    int order = orders[*(const enum top_sort *)arg](x, y);

    return order ? order : strcmp(x->name->name, y->name->name);
}

void top_arrange(struct top *t)
{
    t->row = need(realloc(t->row, (t->now.names + 1) * sizeof *t->row));
    t->rows = 0;
    for (size_t i = 0; i < t->now.names; i++) {
        const struct weir_name_stats *n = &t->now.name[i];

        if (strcasestr(n->name, t->filter))
            t->row[t->rows++] = (struct top_row){
                n, t->rate[i], n->leases ? snapshot_age(&t->now, &n->lease[0]) : -1};
    }
    qsort_r(t->row, t->rows, sizeof *t->row, compare_rows, &t->sort);
}

/* ---- what is selected -------------------------------------------------------------------------- */

const struct weir_name_stats *top_open_name(const struct top *t)
{
    return snapshot_find(&t->now, t->name);
}

const struct weir_lease_info *top_info(const struct top *t, size_t line)
{
    const struct weir_name_stats *n = top_open_name(t);

    if (n == NULL || line >= n->leases + n->waiters)
        return NULL;
    return line < n->leases ? &n->lease[line] : &n->waiter[line - n->leases];
}

size_t top_count(const struct top *t)
{
    const struct weir_name_stats *n = top_open_name(t);

    if (t->view == VIEW_LIST)
        return t->rows;
    return n ? n->leases + n->waiters : 0;
}

static bool is_selected(const struct top *t, size_t line)
{
    if (t->view == VIEW_LIST)
        return strcmp(t->row[line].name->name, t->name) == 0;
    const struct weir_lease_info *info = top_info(t, line);
    return info && strcmp(info->id, t->id) == 0;
}

size_t top_selected(struct top *t)
{
    for (size_t i = 0; i < top_count(t); i++)
        if (is_selected(t, i)) {
            t->line[t->view] = i;
            return i;
        }
    top_select(t, t->line[t->view]); /* it is gone: what stands there now */
    return t->line[t->view];
}

void top_select(struct top *t, size_t line)
{
    size_t count = top_count(t);

    if (line >= count)
        line = count ? count - 1 : 0;
    t->line[t->view] = line;
    const struct weir_lease_info *info = top_info(t, line);
    if (t->view == VIEW_LIST && count)
        snprintf(t->name, sizeof t->name, "%s", t->row[line].name->name);
    else if (t->view == VIEW_NAME && info)
        snprintf(t->id, sizeof t->id, "%s", info->id);
}
