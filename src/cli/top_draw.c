/* SPDX-License-Identifier: MIT */
#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "cli/top.h"
#include "cli/units.h"

typedef unsigned long long ull;

enum { HEAD_LINES = 3, FOOT_LINES = 1 }; /* above and below a list */
enum { GREEN = 1, YELLOW = 2, RED = 3 }; /* colour pairs, see top.c */

int top_page(void)
{
    int lines = LINES - HEAD_LINES - FOOT_LINES;

    return lines > 1 ? lines : 1;
}

/* ---- cells ------------------------------------------------------------------------------- */

/* Where the next cell of a line begins. */
struct pen {
    int y, x;
};

enum align { LEFT, RIGHT };

/* A cell of that width; nothing outside of it is touched. */
static void put(struct pen *pen, int width, enum align align, const char *raw)
{
    char clean[TEXT_CLEAN(256)];
    int x = pen->x;

    pen->x += width;
    if (width <= 0 || pen->y < 0 || pen->y >= LINES)
        return;
    text_clean(raw, clean, sizeof clean);
    text_cut(clean, width);
    mvaddstr(pen->y, align == RIGHT ? x + width - text_width(clean) : x, clean);
}

static void put_line(int y, int x, const char *raw)
{
    struct pen pen = {y, x};

    put(&pen, COLS - x, LEFT, raw);
}

static void put_number(struct pen *pen, int width, ull number)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", number);
    put(pen, width, RIGHT, text);
}

static void put_time(struct pen *pen, int width, int64_t ns)
{
    char text[DURATION_BYTES];

    put(pen, width, RIGHT, ns < 0 || ns == INT64_MAX ? "-" : print_duration(ns, text));
}

/* [|||||     ] in ASCII: it looks the same on each terminal and in each font. */
static void put_bar(struct pen *pen, int width, const struct weir_name_stats *n)
{
    int inside = width - 2;
    unsigned percent = n->percent > 100 ? 100 : n->percent;
    int colour = n->held > n->limit ? RED : n->waiters ? YELLOW : GREEN;

    if (inside >= 1) {
        int full = (inside * (int)percent + 99) / 100; /* a little is more than nothing */

        mvaddch(pen->y, pen->x, '[');
        attron(COLOR_PAIR(colour));
        for (int i = 0; i < inside; i++)
            addch(i < full ? '|' : ' ');
        attroff(COLOR_PAIR(colour));
        addch(']');
    }
    pen->x += width;
}

static void emphasise(int y, attr_t how)
{
    mvchgat(y, 0, -1, how, 0, NULL);
}

/* ---- the list ---------------------------------------------------------------------------------- */

/* Widths, each with a blank to its left; 0 for what there is no room for. */
struct layout {
    int name, bar, held, used, waiting, rate, oldest;
};

static struct layout lay_out(void)
{
    struct layout l = {.held = 12, .used = 6, .waiting = 8};

    l.oldest = COLS >= 50 ? 8 : 0;
    l.rate = COLS >= 58 ? 9 : 0;
    int left = COLS - l.held - l.used - l.waiting - l.oldest - l.rate;
    l.bar = COLS >= 70 ? left / 3 : 0;
    l.name = left - l.bar;
    return l;
}

static void draw_list_titles(int y, const struct layout *l)
{
    struct pen pen = {y, 0};

    put(&pen, l->name, LEFT, "NAME");
    put(&pen, l->bar, LEFT, "");
    put(&pen, l->held, RIGHT, "HELD/LIMIT");
    put(&pen, l->used, RIGHT, "USED");
    put(&pen, l->waiting, RIGHT, "WAITING");
    put(&pen, l->rate, RIGHT, "GRANTS/S");
    put(&pen, l->oldest, RIGHT, "OLDEST");
    emphasise(y, A_BOLD | A_UNDERLINE);
}

static void draw_row(int y, const struct layout *l, const struct top_row *row)
{
    const struct weir_name_stats *n = row->name;
    char held[48], used[16], rate[32] = "-";
    struct pen pen = {y, 0};

    snprintf(held, sizeof held, "%llu/%llu", (ull)n->held, (ull)n->limit);
    snprintf(used, sizeof used, "%u%%", n->percent);
    if (row->rate >= 0)
        snprintf(rate, sizeof rate, "%.1f", row->rate);
    put(&pen, l->name - 1, LEFT, n->name);
    put(&pen, 1, LEFT, "");
    put_bar(&pen, l->bar, n);
    put(&pen, l->held, RIGHT, held);
    put(&pen, l->used, RIGHT, used);
    put_number(&pen, l->waiting, n->waiters);
    put(&pen, l->rate, RIGHT, rate);
    put_time(&pen, l->oldest, row->oldest_ns);
}

/* So that the selected line is on the screen. */
static size_t scroll_to(struct top *t, size_t selected)
{
    size_t *top = &t->top[t->view], page = (size_t)top_page();

    if (selected < *top)
        *top = selected;
    if (selected >= *top + page)
        *top = selected - page + 1;
    if (*top + page > top_count(t))
        *top = top_count(t) > page ? top_count(t) - page : 0;
    return *top;
}

static void draw_list(struct top *t)
{
    struct layout l = lay_out();
    size_t selected = top_selected(t), top = scroll_to(t, selected);
    ull held = 0, waiting = 0;
    char head[160];

    for (size_t i = 0; i < t->now.names; i++) {
        held += t->now.name[i].leases;
        waiting += t->now.name[i].waiters;
    }
    snprintf(head, sizeof head, "weir top  %.60s  names %zu  holders %llu  waiters %llu", t->uri,
             t->now.names, held, waiting);
    put_line(0, 0, head);
    draw_list_titles(2, &l);
    if (t->rows == 0)
        put_line(HEAD_LINES, 0,
                 t->filter[0] ? "no name matches the filter" : "nothing is held or waited for");
    for (size_t i = top; i < t->rows && i - top < (size_t)top_page(); i++) {
        int y = HEAD_LINES + (int)(i - top);

        draw_row(y, &l, &t->row[i]);
        if (i == selected)
            emphasise(y, A_REVERSE);
    }
}

/* ---- one name ------------------------------------------------------------------------------------ */

/* Widths; the label has what is left. */
enum { WHERE = 9, PID = 9, WEIGHT = 8, AGE = 8, TTL = 10, GAP = 2 };

static int id_width(void)
{
    return COLS >= 110 ? WEIR_ID_LENGTH + 1 : COLS >= 70 ? 9 : 0;
}

static void draw_name_titles(int y)
{
    struct pen pen = {y, 0};

    put(&pen, WHERE, LEFT, "WHERE");
    put(&pen, PID, RIGHT, "PID");
    put(&pen, WEIGHT, RIGHT, "WEIGHT");
    put(&pen, AGE, RIGHT, "AGE");
    put(&pen, TTL, RIGHT, "TTL LEFT");
    put(&pen, GAP, LEFT, "");
    put(&pen, id_width(), LEFT, "ID");
    put(&pen, COLS - pen.x, LEFT, "LABEL");
    emphasise(y, A_BOLD | A_UNDERLINE);
}

static void draw_info(int y, const struct top *t, const struct weir_lease_info *info,
                      const char *where)
{
    char id[WEIR_ID_LENGTH + 1];
    struct pen pen = {y, 0};

    snprintf(id, sizeof id, "%.*s", id_width() > 0 ? id_width() - 1 : 0, info->id);
    put(&pen, WHERE, LEFT, where);
    put_number(&pen, PID, (ull)info->pid);
    put_number(&pen, WEIGHT, (ull)info->weight);
    put_time(&pen, AGE, snapshot_age(&t->now, info));
    put_time(&pen, TTL, snapshot_left(&t->now, info));
    put(&pen, GAP, LEFT, "");
    put(&pen, id_width(), LEFT, id);
    put(&pen, COLS - pen.x, LEFT, info->label);
}

/* A holder, or one who waits. */
static void draw_one(int y, const struct top *t, const struct weir_name_stats *n, size_t line)
{
    const struct weir_lease_info *info = top_info(t, line);
    char where[32];

    if (line < n->leases)
        snprintf(where, sizeof where, "slot %u", (unsigned)n->lease[line].slot);
    else
        snprintf(where, sizeof where, "line %zu", line - n->leases + 1);
    if (info)
        draw_info(y, t, info, where);
}

static void draw_name_head(const struct weir_name_stats *n)
{
    char longest[DURATION_BYTES], head[256];

    put_line(0, 0, n->name);
    emphasise(0, A_BOLD);
    snprintf(head, sizeof head,
             "held %llu of %llu  waiting %zu  longest wait %s  granted %llu  timed out %llu  "
             "expired %llu  recovered %llu  evicted %llu",
             (ull)n->held, (ull)n->limit, n->waiters, print_duration(n->longest_wait_ns, longest),
             (ull)n->granted, (ull)n->timed_out, (ull)n->expired, (ull)n->recovered,
             (ull)n->evicted);
    put_line(1, 0, head);
}

static void draw_name(struct top *t)
{
    const struct weir_name_stats *n = top_open_name(t);

    if (n == NULL) {
        put_line(0, 0, t->name);
        put_line(1, 0, "nobody holds or waits for it any more");
        return;
    }
    size_t selected = top_selected(t), top = scroll_to(t, selected);
    draw_name_head(n);
    draw_name_titles(2);
    for (size_t i = top; i < top_count(t) && i - top < (size_t)top_page(); i++) {
        int y = HEAD_LINES + (int)(i - top);

        draw_one(y, t, n, i);
        if (i == selected)
            emphasise(y, A_REVERSE);
    }
}

/* ---- help, and the last line ----------------------------------------------------------------------- */

static void draw_help(void)
{
    static const char *const lines[] = {
        "arrows, j, k     one up or down; also PgUp, PgDn, Home, End",
        "Enter            open a name: who holds it, and who waits",
        "Esc, left        back to the list",
        "s                sort by: used, name, waiting, rate, oldest",
        "/                show only names with this in them; Esc: all again",
        "e                in a name: evict the selected one, after a question",
        "?                this",
        "q                quit",
    };

    put_line(0, 0, "Keys");
    emphasise(0, A_BOLD);
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++)
        put_line(i + 2, 2, lines[i]);
}

static void draw_foot(const struct top *t)
{
    char text[256];

    if (t->asks == ASKS_FILTER)
        snprintf(text, sizeof text, "filter: %s_", t->filter);
    else if (t->message[0])
        snprintf(text, sizeof text, "%s", t->message);
    else if (t->view == VIEW_HELP)
        snprintf(text, sizeof text, "any key goes back");
    else if (t->view == VIEW_NAME)
        snprintf(text, sizeof text, "Esc back  e evict  ? help  q quit");
    else
        snprintf(text, sizeof text, "Enter open  s sort: %s  / filter%s%s  ? help  q quit",
                 top_sort_names[t->sort], t->filter[0] ? ": " : "", t->filter);
    put_line(LINES - 1, 0, text);
    if (t->asks != ASKS_NOTHING)
        emphasise(LINES - 1, A_BOLD);
}

void top_draw(struct top *t)
{
    erase();
    if (t->view == VIEW_LIST)
        draw_list(t);
    else if (t->view == VIEW_NAME)
        draw_name(t);
    else
        draw_help();
    draw_foot(t);
    refresh();
}
