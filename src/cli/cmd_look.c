/* SPDX-License-Identifier: MIT */
/* weir ls and stat: once, or again and again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/look.h"
#include "cli/say.h"
#include "cli/text.h"

/* Shows a snapshot, and returns the exit status. */
typedef int show_fn(const struct options *o, const struct snapshot *s, FILE *to,
                    const struct screen *screen);

/* ---- what is shown ------------------------------------------------------------------------ */

static int show_ls(const struct options *o, const struct snapshot *s, FILE *to,
                   const struct screen *screen)
{
    if (o->value[OPT_JSON].given)
        ls_json(s, to);
    else
        ls_table(s, to, screen);
    return 0;
}

static const char *nearest_name(const char *name, const struct snapshot *s)
{
    const char **names = malloc((s->names + 1) * sizeof *names);

    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < s->names; i++)
        names[i] = s->name[i].name;
    const char *near = nearest(name, names, (int)s->names);
    free(names);
    return near;
}

static void say_unknown(const char *name, const struct snapshot *s)
{
    const char *near = nearest_name(name, s);
    char clean[TEXT_CLEAN(WEIR_NAME_MAX)], clean_near[TEXT_CLEAN(WEIR_NAME_MAX)];

    text_clean(name, clean, sizeof clean);
    if (near == NULL) {
        say("nobody holds or waits for \"%s\"; \"weir ls\" lists the names", clean);
        return;
    }
    text_clean(near, clean_near, sizeof clean_near);
    say("nobody holds or waits for \"%s\"; did you mean \"%s\"?", clean, clean_near);
}

/* Who watches a name may do so before it is used: then it is part of the picture. */
static void show_unknown(const struct options *o, const char *name, const struct snapshot *s,
                         FILE *to)
{
    char clean[TEXT_CLEAN(WEIR_NAME_MAX)];

    if (!o->value[OPT_WATCH].given) {
        say_unknown(name, s);
    } else if (!o->value[OPT_JSON].given) {
        text_clean(name, clean, sizeof clean);
        fprintf(to, "%s\n  nobody holds or waits for it\n", clean);
    }
}

static int show_stat(const struct options *o, const struct snapshot *s, FILE *to,
                     const struct screen *screen)
{
    bool json = o->value[OPT_JSON].given;
    int status = 0, shown = 0;

    for (int i = 0; i < o->count; i++) {
        const struct weir_name_stats *name = snapshot_find(s, o->arguments[i]);

        if (name == NULL) {
            show_unknown(o, o->arguments[i], s, to);
            status = EXIT_WEIR;
        } else if (json) {
            stat_json(s, name, to);
        } else {
            fputs(shown++ ? "\n" : "", to);
            stat_table(s, name, to, screen);
        }
    }
    return status;
}

/* ---- once ---------------------------------------------------------------------------------- */

static void flush_or_fail(void)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && !screen_is_over())
        fail(EXIT_WEIR, "cannot write: %s", strerror(errno));
}

static struct snapshot take_or_fail(struct weir_store *store)
{
    struct snapshot s;
    int r = snapshot_take(store, &s);

    if (r < 0)
        fail_store(r, "");
    return s;
}

static int look_once(const struct options *o, struct weir_store *store, show_fn *show)
{
    struct snapshot s = take_or_fail(store);
    struct screen screen = screen_now();
    int status = show(o, &s, stdout, &screen);

    flush_or_fail();
    snapshot_free(&s);
    return status;
}

/* ---- again and again -------------------------------------------------------------------------- */

/* As many lines as there are on the screen: the top of it is what matters. */
static size_t bytes_of_lines(const char *text, int lines)
{
    const char *at = text;

    for (; lines > 0 && *at; lines--) {
        const char *end = strchr(at, '\n');

        at = end ? end + 1 : at + strlen(at);
    }
    return (size_t)(at - text);
}

/* All of it in one write, so that the screen does not flicker. */
static void put_frame(const struct options *o, const char *text, const struct screen *screen)
{
    if (screen->terminal)
        printf("\033[H\033[2J%.*s", (int)bytes_of_lines(text, screen->height - 1), text);
    else
        printf("%s%s", text, o->value[OPT_JSON].given || *text == '\0' ? "" : "\n");
    flush_or_fail();
}

static void show_frame(const struct options *o, struct weir_store *store, show_fn *show)
{
    struct snapshot s = take_or_fail(store);
    struct screen screen = screen_now();
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    if (to == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    show(o, &s, to, &screen);
    if (fclose(to) != 0)
        fail(EXIT_WEIR, "there is no memory left");
    put_frame(o, text, &screen);
    free(text);
    snapshot_free(&s);
}

static int look(const struct options *o, show_fn *show)
{
    const struct option_value *every = &o->value[OPT_WATCH];

    if (every->given && every->number < 10 * WEIR_MS)
        fail(EXIT_WEIR, "--watch needs a time of 10ms or more");
    struct weir_store *store = open_store(o);
    if (!every->given)
        return look_once(o, store, show);
    screen_watch();
    do {
        show_frame(o, store, show);
    } while (!screen_is_over() && screen_wait(-1, weir_within(every->number).at_ns) != SCREEN_OVER);
    return 0;
}

int cmd_ls(const struct options *o)
{
    return look(o, show_ls);
}

int cmd_stat(const struct options *o)
{
    return look(o, show_stat);
}
