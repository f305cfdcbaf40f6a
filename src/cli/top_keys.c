/* SPDX-License-Identifier: MIT */
#include <curses.h>
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

enum { KEY_ESCAPE = 27, KEY_CTRL_L = 12 };

/* ---- evicting ----------------------------------------------------------------------------- */

static void ask_evict(struct top *t)
{
    size_t line = t->view == VIEW_NAME ? top_selected(t) : 0;
    const struct weir_lease_info *info = t->view == VIEW_NAME ? top_info(t, line) : NULL;

    if (t->view != VIEW_NAME) {
        snprintf(t->message, sizeof t->message, "open a name first, by Enter: whom to evict?");
        return;
    }
    if (info == NULL) {
        snprintf(t->message, sizeof t->message, "there is nobody to evict");
        return;
    }
    snprintf(t->victim, sizeof t->victim, "%s", info->id);
    snprintf(t->message, sizeof t->message, "evict pid %d%s%s? y/n", info->pid,
             *info->label ? ", " : "", info->label);
    t->asks = ASKS_EVICT;
}

static void answer_evict(struct top *t, int key)
{
    t->asks = ASKS_NOTHING;
    if (key != 'y' && key != 'Y') {
        snprintf(t->message, sizeof t->message, "nobody was evicted");
        return;
    }
    int r = weir_store_evict(t->store, t->name, t->victim);
    snprintf(t->message, sizeof t->message, "%s",
             r == 0               ? "evicted"
             : r == WEIR_ENOTHELD ? "it was gone already"
             : *weir_store_why()  ? weir_store_why()
                                  : weir_strerror(r));
    t->due_ns = 0;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* A whole character, of however many bytes. */
static void shorten_filter(struct top *t)
{
    size_t length = strlen(t->filter);

    while (length > 0 && (t->filter[length - 1] & 0xc0) == 0x80)
        length--;
    t->filter[length ? length - 1 : 0] = '\0';
}

static void edit_filter(struct top *t, int key)
{
    size_t length = strlen(t->filter);

    if (key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_ESCAPE)
        t->asks = ASKS_NOTHING;
    if (key == KEY_ESCAPE)
        t->filter[0] = '\0';
    else if (key == KEY_BACKSPACE || key == 127 || key == '\b')
        shorten_filter(t);
    else if (key >= ' ' && key < 256 && length + 1 < sizeof t->filter)
        snprintf(t->filter + length, 2, "%c", key);
    top_arrange(t);
}

/* ---- moving ------------------------------------------------------------------------------------ */

static void move_by(struct top *t, long lines)
{
    long line = (long)top_selected(t) + lines;

    top_select(t, line < 0 ? 0 : (size_t)line);
}

static bool move_key(struct top *t, int key)
{
    switch (key) {
    case KEY_UP:
    case 'k':
        move_by(t, -1);
        return true;
    case KEY_DOWN:
    case 'j':
        move_by(t, 1);
        return true;
    case KEY_PPAGE:
        move_by(t, -top_page());
        return true;
    case KEY_NPAGE:
        move_by(t, top_page());
        return true;
    case KEY_HOME:
    case 'g':
        top_select(t, 0);
        return true;
    case KEY_END:
    case 'G':
        top_select(t, SIZE_MAX);
        return true;
    default:
        return false;
    }
}

/* ---- all else ------------------------------------------------------------------------------------ */

static void open_selected(struct top *t)
{
    if (t->view != VIEW_LIST || t->rows == 0)
        return;
    top_selected(t); /* the name in t->name is one of those that are listed */
    t->view = VIEW_NAME;
    t->line[VIEW_NAME] = t->top[VIEW_NAME] = 0;
    t->id[0] = '\0';
}

static void go_back(struct top *t)
{
    if (t->view == VIEW_HELP)
        t->view = t->back;
    else if (t->view == VIEW_NAME)
        t->view = VIEW_LIST;
    else
        t->filter[0] = '\0';
    top_arrange(t);
}

static void begin_filter(struct top *t)
{
    t->view = VIEW_LIST;
    t->asks = ASKS_FILTER;
}

static void show_help(struct top *t)
{
    t->back = t->view == VIEW_HELP ? t->back : t->view;
    t->view = VIEW_HELP;
}

static void command_key(struct top *t, int key)
{
    switch (key) {
    case 'q':
        t->quit = true;
        break;
    case '?':
    case 'h':
        show_help(t);
        break;
    case 's':
        t->sort = (t->sort + 1) % SORTS;
        top_arrange(t);
        break;
    case '/':
        begin_filter(t);
        break;
    case 'e':
        ask_evict(t);
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
    case KEY_RIGHT:
        open_selected(t);
        break;
    case KEY_ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
    case 127:
        go_back(t);
        break;
    case KEY_CTRL_L:
        clearok(curscr, TRUE); /* something else has written on it */
        break;
    default:
        break;
    }
}

void top_key(struct top *t, int key)
{
    if (key == KEY_RESIZE)
        return; /* drawn anew anyway, and no answer to anything */
    t->message[0] = '\0';
    if (t->asks == ASKS_FILTER)
        edit_filter(t, key);
    else if (t->asks == ASKS_EVICT)
        answer_evict(t, key);
    else if (t->view == VIEW_HELP && key != 'q')
        go_back(t);
    else if (!move_key(t, key))
        command_key(t, key);
}
