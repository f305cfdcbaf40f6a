/* SPDX-License-Identifier: MIT */
/* table - rows of cells under titles, aligned, and as wide as the screen at most.
 *
 * What is too wide loses columns in which every row says the same uninteresting thing; then
 * those with the highest `drop`; then the flexible one is cut.  What can still not be had
 * is left to the terminal to wrap. */
#ifndef WEIR_CLI_TABLE_H
#define WEIR_CLI_TABLE_H

#include <stdio.h>

#include "cli/screen.h"

enum { TABLE_COLUMNS = 8 };

struct column {
    const char *title;
    const char *dull; /* a text that says nothing; NULL: every one does */
    int drop;         /* which to leave out first; 0: never             */
    bool right, flexible;
};

enum tone { PLAIN, WARM, HOT };

struct cell {
    char *text;
    enum tone tone;
};

struct table {
    const struct column *column;
    int columns;
    struct cell *cell;
    size_t cells;
};

/* Cells are added from left to right, row by row, and made clean. */
void table_begin(struct table *t, const struct column *column, int columns);
void table_add(struct table *t, enum tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print it, and give it back. */
void table_end(struct table *t, FILE *to, const struct screen *screen, int indent);

#endif
