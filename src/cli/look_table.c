/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/look.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/units.h"

typedef unsigned long long ull; /* what printf calls a uint64_t everywhere */

static int fullest_first(const void *a, const void *b)
{
    const struct weir_name_stats *x = a, *y = b;

    if (x->percent != y->percent)
        return x->percent > y->percent ? -1 : 1;
    return strcmp(x->name, y->name);
}

struct weir_name_stats *look_sort(const struct snapshot *s)
{
    struct weir_name_stats *all = malloc((s->names + 1) * sizeof *all);

    if (all == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    for (size_t i = 0; i < s->names; i++)
        all[i] = s->name[i];
    qsort(all, s->names, sizeof *all, fullest_first);
    return all;
}

/* ---- ls --------------------------------------------------------------------------------- */

static const struct column ls_columns[] = {
    {.title = "NAME", .flexible = true},
    {.title = "HELD/LIMIT", .right = true},
    {.title = "USED", .right = true},
    {.title = "WAITING", .right = true},
    {.title = "OLDEST", .right = true, .drop = 2},
    {.title = "LONGEST", .right = true, .drop = 3},
    {.title = "GRANTED", .right = true, .drop = 4},
};
enum { LS_COLUMNS = sizeof ls_columns / sizeof *ls_columns };

/* Full is what it is for; full with somebody waiting is worth a look, as is too full. */
static enum tone tone_of(const struct weir_name_stats *n)
{
    return n->held > n->limit ? HOT : n->waiters ? WARM : PLAIN;
}

static void ls_row(struct table *t, const struct snapshot *s, const struct weir_name_stats *n)
{
    char oldest[DURATION_BYTES] = "-", longest[DURATION_BYTES];

    if (n->leases)
        print_duration(snapshot_age(s, &n->lease[0]), oldest);
    table_add(t, PLAIN, "%s", n->name);
    table_add(t, tone_of(n), "%llu/%llu", (ull)n->held, (ull)n->limit);
    table_add(t, tone_of(n), "%u%%", n->percent);
    table_add(t, n->waiters ? WARM : PLAIN, "%zu", n->waiters);
    table_add(t, PLAIN, "%s", oldest);
    table_add(t, PLAIN, "%s", print_duration(n->longest_wait_ns, longest));
    table_add(t, PLAIN, "%llu", (ull)n->granted);
}

void ls_table(const struct snapshot *s, FILE *to, const struct screen *screen)
{
    struct table t;

    if (s->names == 0) {
        fputs(screen->terminal ? "nothing is held or waited for\n" : "", to);
        return;
    }
    struct weir_name_stats *all = look_sort(s);
    table_begin(&t, ls_columns, LS_COLUMNS);
    for (size_t i = 0; i < s->names; i++)
        ls_row(&t, s, &all[i]);
    table_end(&t, to, screen, 0);
    free(all);
}

/* ---- stat ---------------------------------------------------------------------------------- */

static const struct column holder_columns[] = {
    {.title = "SLOT", .right = true},
    {.title = "PID", .right = true},
    {.title = "WEIGHT", .right = true, .dull = "1", .drop = 3},
    {.title = "AGE", .right = true, .drop = 1},
    {.title = "TTL LEFT", .right = true, .dull = "-", .drop = 2},
    {.title = "ID"},
    {.title = "LABEL", .flexible = true},
};
static const struct column waiter_columns[] = {
    {.title = "PLACE", .right = true},
    {.title = "PID", .right = true},
    {.title = "WEIGHT", .right = true, .dull = "1", .drop = 3},
    {.title = "AGE", .right = true, .drop = 1},
    {.title = "ID"},
    {.title = "LABEL", .flexible = true},
};
enum {
    HOLDER_COLUMNS = sizeof holder_columns / sizeof *holder_columns,
    WAITER_COLUMNS = sizeof waiter_columns / sizeof *waiter_columns,
    INDENT = 2,
};

/* "-" for who has none: a detached lease belongs to no process. */
static void add_pid(struct table *t, const struct weir_lease_info *info)
{
    if (info->pid)
        table_add(t, PLAIN, "%d", info->pid);
    else
        table_add(t, PLAIN, "-");
}

static void print_holders(const struct snapshot *s, const struct weir_name_stats *n, FILE *to,
                          const struct screen *screen)
{
    struct table t;

    table_begin(&t, holder_columns, HOLDER_COLUMNS);
    for (size_t i = 0; i < n->leases; i++) {
        const struct weir_lease_info *l = &n->lease[i];
        int64_t left_ns = snapshot_left(s, l);
        char age[DURATION_BYTES], left[DURATION_BYTES] = "-";

        if (left_ns != INT64_MAX)
            print_duration(left_ns, left);
        table_add(&t, PLAIN, "%u", (unsigned)l->slot);
        add_pid(&t, l);
        table_add(&t, PLAIN, "%llu", (ull)l->weight);
        table_add(&t, PLAIN, "%s", print_duration(snapshot_age(s, l), age));
        table_add(&t, PLAIN, "%s", left);
        table_add(&t, PLAIN, "%s", l->id);
        table_add(&t, PLAIN, "%s", l->label);
    }
    fputs("\n  held by\n", to);
    table_end(&t, to, screen, INDENT);
}

static void print_waiters(const struct snapshot *s, const struct weir_name_stats *n, FILE *to,
                          const struct screen *screen)
{
    struct table t;

    table_begin(&t, waiter_columns, WAITER_COLUMNS);
    for (size_t i = 0; i < n->waiters; i++) {
        const struct weir_lease_info *w = &n->waiter[i];
        char age[DURATION_BYTES];

        table_add(&t, PLAIN, "%zu", i + 1);
        add_pid(&t, w);
        table_add(&t, PLAIN, "%llu", (ull)w->weight);
        table_add(&t, PLAIN, "%s", print_duration(snapshot_age(s, w), age));
        table_add(&t, PLAIN, "%s", w->id);
        table_add(&t, PLAIN, "%s", w->label);
    }
    fputs("\n  waited for by\n", to);
    table_end(&t, to, screen, INDENT);
}

static void print_counts(const struct weir_name_stats *n, FILE *to)
{
    char longest[DURATION_BYTES];

    fprintf(to, "  held          %llu of %llu, %u%%\n", (ull)n->held, (ull)n->limit, n->percent);
    fprintf(to, "  waiting       %zu\n", n->waiters);
    fprintf(to, "  longest wait  %s\n", print_duration(n->longest_wait_ns, longest));
    fprintf(to, "  granted       %llu\n", (ull)n->granted);
    fprintf(to, "  released      %llu\n", (ull)n->released);
    fprintf(to, "  timed out     %llu\n", (ull)n->timed_out);
    fprintf(to, "  cancelled     %llu\n", (ull)n->cancelled);
    fprintf(to, "  expired       %llu\n", (ull)n->expired);
    fprintf(to, "  recovered     %llu\n", (ull)n->recovered);
    fprintf(to, "  evicted       %llu\n", (ull)n->evicted);
    fprintf(to, "  lapsed        %llu\n", (ull)n->lapsed);
}

void stat_table(const struct snapshot *s, const struct weir_name_stats *name, FILE *to,
                const struct screen *screen)
{
    char clean[TEXT_CLEAN(WEIR_NAME_MAX)];

    text_clean(name->name, clean, sizeof clean);
    if (screen->width)
        text_cut(clean, screen->width);
    fprintf(to, "%s%s%s\n", screen->colour ? "\033[1m" : "", clean,
            screen->colour ? "\033[0m" : "");
    print_counts(name, to);
    if (name->leases)
        print_holders(s, name, to, screen);
    if (name->waiters)
        print_waiters(s, name, to, screen);
}
