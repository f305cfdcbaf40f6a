/* SPDX-License-Identifier: MIT */
/* weir top, in the full executable only. */
#include "cli/top.h"

#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/say.h"
#include "cli/screen.h"

/* ---- the terminal ------------------------------------------------------------------------- */

/* However we end, but for SIGKILL: signals come back to the loop, and errors go by exit. */
static void leave_terminal(void)
{
    if (!isendwin())
        endwin();
}

static void choose_colours(void)
{
    if (!colour_is_wanted() || !has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(1, COLOR_GREEN, -1);
    init_pair(2, COLOR_YELLOW, -1);
    init_pair(3, COLOR_RED, -1);
}

/* Asked for beforehand, since newterm leaves memory behind when it fails. */
static bool terminal_is_known(void)
{
    int answer;

    if (setupterm(NULL, STDOUT_FILENO, &answer) == ERR)
        return false;
    del_curterm(cur_term);
    return true;
}

static void enter_terminal(void)
{
    const char *term = getenv("TERM");

    /* Over ssh the locale is often not set, and the terminal still shows UTF-8. */
    setlocale(LC_ALL, "");
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    if (!terminal_is_known() || newterm(NULL, stdout, stdin) == NULL)
        fail(EXIT_WEIR, "top cannot draw on this terminal (TERM=%s); \"weir ls --watch 1s\" can",
             term ? term : "");
    atexit(leave_terminal);
    set_escdelay(100);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    choose_colours();
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void read_keys(struct top *t)
{
    for (int key = getch(); key != ERR && !t->quit; key = getch())
        top_key(t, key);
}

static void run_top(struct top *t)
{
    while (!t->quit) {
        if (weir_now_ns() >= t->due_ns) {
            t->due_ns = weir_within(t->every_ns).at_ns;
            top_take(t);
        }
        top_draw(t);
        enum screen_event event = screen_wait(STDIN_FILENO, t->due_ns);
        if (event == SCREEN_OVER)
            return;
        if (event == SCREEN_INPUT)
            read_keys(t);
    }
}

int cmd_top(const struct options *o)
{
    const struct option_value *every = &o->value[OPT_WATCH];
    struct top t = {.uri = store_uri(o), .every_ns = every->given ? every->number : WEIR_S};

    if (t.every_ns < 10 * WEIR_MS)
        fail(EXIT_WEIR, "--watch needs a time of 10ms or more");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        fail(EXIT_WEIR, "top needs a terminal; \"weir ls --watch 1s\" does without");
    t.store = open_store(o);
    screen_watch(); /* before ncurses, which leaves alone what is caught */
    enter_terminal();
    run_top(&t);
    leave_terminal();
    snapshot_free(&t.now);
    free(t.rate);
    free(t.row);
    weir_store_close(t.store);
    return 0;
}
