/* SPDX-License-Identifier: MIT */
/* top - the live view: a list of names, and one name opened.
 *
 *   top_rows.c  what there is to show, in order, and which of it is selected
 *   top_draw.c  the screen, made anew from that each time
 *   top_keys.c  what a key changes
 *   top.c       the terminal, and the loop around all
 *
 * What is selected is known by its name or id and not by its line, so that the choice
 * stays with it when lines move: who is about to evict somebody must not hit another. */
#ifndef WEIR_CLI_TOP_H
#define WEIR_CLI_TOP_H

#include <stdbool.h>

#include "cli/snapshot.h"

enum top_view { VIEW_LIST, VIEW_NAME, VIEW_HELP, VIEWS };
enum top_sort { SORT_USED, SORT_NAME, SORT_WAITING, SORT_RATE, SORT_OLDEST, SORTS };

/* What the keys mean just now. */
enum top_asks { ASKS_NOTHING, ASKS_FILTER, ASKS_EVICT };

struct top_row {
    const struct weir_name_stats *name;
    double rate;       /* grants a second; below 0: not known yet */
    int64_t oldest_ns; /* -1: nobody holds it                     */
};

struct top {
    struct weir_store *store;
    const char *uri;
    int64_t every_ns, due_ns; /* when to look again */
    bool quit;

    struct snapshot now;
    double *rate;        /* of each of now.name                                */
    struct top_row *row; /* those that the filter lets through, in order; rows */
    size_t rows;

    enum top_view view, back; /* back: where help was asked for */
    enum top_sort sort;
    enum top_asks asks;
    char filter[64];
    char name[WEIR_NAME_MAX + 1];    /* selected in the list, and the one that is open */
    char id[WEIR_ID_LENGTH + 1];     /* selected in the open name                      */
    size_t line[VIEWS], top[VIEWS];  /* where the selected was last; the first on the screen */
    char victim[WEIR_ID_LENGTH + 1]; /* whom the question is about */
    char message[256];               /* until the next key         */
};

extern const char *const top_sort_names[SORTS];

/* Look at the store.  Says in the message what went wrong, and keeps what it had. */
void top_take(struct top *t);
void top_arrange(struct top *t); /* again, after the filter or the order was changed */

/* Of what the view lists, from 0. */
size_t top_count(const struct top *t);
size_t top_selected(struct top *t);
void top_select(struct top *t, size_t line);

/* NULL: it is gone. */
const struct weir_name_stats *top_open_name(const struct top *t);
const struct weir_lease_info *top_info(const struct top *t, size_t line);

void top_draw(struct top *t);
int top_page(void); /* lines of a list that the screen has room for */

void top_key(struct top *t, int key);

#endif
