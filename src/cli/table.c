/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "cli/text.h"

enum { GAP = 2, LEAST_FLEXIBLE = 8 };

static const char *const colour_of[] = {[PLAIN] = "", [WARM] = "\033[33m", [HOT] = "\033[31m"};

static void *need(void *memory)
{
    if (memory == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    return memory;
}

void table_begin(struct table *t, const struct column *column, int columns)
{
    *t = (struct table){.column = column, .columns = columns};
}

void table_add(struct table *t, enum tone tone, const char *format, ...)
{
    char *raw = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&raw, format, args) < 0)
        raw = NULL;
    va_end(args);
    need(raw);
    size_t room = TEXT_CLEAN(strlen(raw));
    char *clean = need(malloc(room));
    text_clean(raw, clean, room);
    free(raw);
    if ((t->cells & (t->cells - 1)) == 0)
        t->cell = need(realloc(t->cell, (t->cells ? 2 * t->cells : 1) * sizeof *t->cell));
    t->cell[t->cells++] = (struct cell){clean, tone};
}

/* ---- widths ----------------------------------------------------------------------------- */

static int width_of(const struct table *t, int column)
{
    int width = text_width(t->column[column].title);

    for (size_t i = (size_t)column; i < t->cells; i += (size_t)t->columns) {
        int w = text_width(t->cell[i].text);

        width = w > width ? w : width;
    }
    return width;
}

static bool is_dull(const struct table *t, int column)
{
    const char *dull = t->column[column].dull;

    for (size_t i = (size_t)column; dull && i < t->cells; i += (size_t)t->columns)
        if (strcmp(t->cell[i].text, dull) != 0)
            return false;
    return dull;
}

/* By how much it is too wide if the flexible columns give all they can. */
static int excess(const struct table *t, const int width[], int room)
{
    int sum = -GAP;

    for (int i = 0; i < t->columns; i++) {
        bool cut = t->column[i].flexible && width[i] > LEAST_FLEXIBLE;

        if (width[i])
            sum += (cut ? LEAST_FLEXIBLE : width[i]) + GAP;
    }
    return sum - room;
}

static int first_to_drop(const struct table *t, const int width[])
{
    int found = -1;

    for (int i = 0; i < t->columns; i++)
        if (width[i] && t->column[i].drop &&
            (found < 0 || t->column[i].drop > t->column[found].drop))
            found = i;
    return found;
}

static void drop_columns(const struct table *t, int width[], int room)
{
    for (int i = 0; i < t->columns && excess(t, width, room) > 0; i++)
        if (is_dull(t, i))
            width[i] = 0;
    while (excess(t, width, room) > 0) {
        int i = first_to_drop(t, width);

        if (i < 0)
            return;
        width[i] = 0;
    }
}

/* One flexible column takes what the others leave. */
static void cut_flexible(const struct table *t, int width[], int room)
{
    int sum = -GAP;

    for (int i = 0; i < t->columns; i++)
        sum += width[i] ? width[i] + GAP : 0;
    for (int i = 0; i < t->columns && sum > room; i++) {
        int less = width[i] - (sum - room);

        if (!t->column[i].flexible || width[i] <= LEAST_FLEXIBLE)
            continue;
        less = less < LEAST_FLEXIBLE ? LEAST_FLEXIBLE : less;
        sum -= width[i] - less;
        width[i] = less;
    }
}

static void set_widths(const struct table *t, int width[], const struct screen *screen, int indent)
{
    int room = screen->width - indent;

    for (int i = 0; i < t->columns; i++)
        width[i] = width_of(t, i);
    if (screen->width == 0)
        return;
    drop_columns(t, width, room);
    cut_flexible(t, width, room);
}

/* ---- printing ----------------------------------------------------------------------------- */

/* The last one is not filled up: blanks at the end of a line are in the way of who copies. */
static void print_cell(const struct table *t, const int width[], int column, char *text, FILE *to)
{
    bool last = true;

    for (int i = column + 1; i < t->columns; i++)
        last &= width[i] == 0;
    text_cut(text, width[column]);
    int fill = width[column] - text_width(text);
    fprintf(to, "%*s%s%*s", t->column[column].right ? fill : 0, "", text,
            t->column[column].right || last ? 0 : fill, "");
    if (!last)
        fprintf(to, "%*s", GAP, "");
}

static void print_titles(const struct table *t, const int width[], FILE *to, bool colour)
{
    fputs(colour ? "\033[1m" : "", to);
    for (int i = 0; i < t->columns; i++) {
        char title[32];

        snprintf(title, sizeof title, "%s", t->column[i].title);
        if (width[i])
            print_cell(t, width, i, title, to);
    }
    fputs(colour ? "\033[0m\n" : "\n", to);
}

static void print_row(const struct table *t, const int width[], struct cell *cell, FILE *to,
                      bool colour)
{
    for (int i = 0; i < t->columns; i++) {
        bool tinted = colour && cell[i].tone != PLAIN;

        if (width[i] == 0)
            continue;
        fputs(tinted ? colour_of[cell[i].tone] : "", to);
        print_cell(t, width, i, cell[i].text, to);
        fputs(tinted ? "\033[0m" : "", to);
    }
    fputc('\n', to);
}

void table_end(struct table *t, FILE *to, const struct screen *screen, int indent)
{
    int width[TABLE_COLUMNS] = {0};

    set_widths(t, width, screen, indent);
    fprintf(to, "%*s", indent, "");
    print_titles(t, width, to, screen->colour);
    for (size_t i = 0; i < t->cells; i += (size_t)t->columns) {
        fprintf(to, "%*s", indent, "");
        print_row(t, width, &t->cell[i], to, screen->colour);
    }
    for (size_t i = 0; i < t->cells; i++)
        free(t->cell[i].text);
    free(t->cell);
    *t = (struct table){.columns = 0};
}
