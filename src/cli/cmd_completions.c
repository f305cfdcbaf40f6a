/* SPDX-License-Identifier: MIT */
/* weir completions: scripts for shells, made from options.def; and, for these scripts,
 * "weir completions names" and "weir completions ids NAME", which nobody else is told of. */
#include "cli/completions.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/say.h"

/* ---- what stands where --------------------------------------------------------------- */

static const struct {
    const char *argument, *action;
} known[] = {
    {"NAME", "names"},          {"NAME...", "names"}, {"ID", "ids"},     {"[COMMAND]", "commands"},
    {"COMMAND...", "programs"}, {"URI", "stores"},    {"FILE", "files"}, {"DIR", "dirs"},
    {"SIG", "signals"},
};

static const char *action_of(const char *argument)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].argument, argument) == 0)
            return known[i].action;
    return strchr(argument, '|') ? argument : "none";
}

const char *option_action(enum option o)
{
    return option_table[o].kind == FLAG ? "" : action_of(option_table[o].argument);
}

int argument_actions(enum command c, char actions[PLACES_MAX][ACTION_BYTES])
{
    char words[64], *rest = words, *word;
    int count = 0;

    snprintf(words, sizeof words, "%s", command_table[c].arguments);
    while (count < PLACES_MAX && (word = strsep(&rest, " "))) {
        if (*word == '\0' || strcmp(word, "[--]") == 0)
            continue;
        snprintf(actions[count++], ACTION_BYTES, "%s", action_of(word));
        if (strstr(word, "..."))
            break; /* what follows is like it */
    }
    return count;
}

/* ---- what there is at the moment ------------------------------------------------------------ */

/* A line is a word for the shell. */
static void print_word(const char *word)
{
    for (const char *at = word; *at; at++)
        if ((unsigned char)*at < ' ')
            return;
    puts(word);
}

static int print_name(const struct weir_name_stats *stats, void *arg)
{
    (void)arg;
    print_word(stats->name);
    return 0;
}

static int print_ids(const struct weir_name_stats *stats, void *arg)
{
    if (strcmp(stats->name, arg) != 0)
        return 0;
    for (size_t i = 0; i < stats->leases; i++)
        puts(stats->lease[i].id);
    for (size_t i = 0; i < stats->waiters; i++)
        puts(stats->waiter[i].id);
    return 1;
}

static int print_now(const struct options *o)
{
    struct weir_store *store = open_store(o);

    weir_store_visit(store, o->count == 2 ? print_ids : print_name, o->arguments[1]);
    return 0;
}

int cmd_completions(const struct options *o)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *asked = o->arguments[0];

    if (strcmp(asked, o->count == 2 ? "ids" : "names") == 0)
        return print_now(o);
    if (o->count == 2)
        fail(EXIT_WEIR, "\"%s\" is one too many: weir completions %s", o->arguments[1],
             command_table[CMD_COMPLETIONS].arguments);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(asked, shells[i].name) == 0) {
            shells[i].print();
            return 0;
        }
    }
    fail(EXIT_WEIR, "weir has no completions for \"%s\", but for bash, zsh and fish", asked);
}
