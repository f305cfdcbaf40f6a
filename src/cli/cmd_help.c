/* SPDX-License-Identifier: MIT */
/* weir help and version, made from options.def. */
#include <stdio.h>
#include <string.h>

#include <weir/version.h>

#include "cli/commands.h"
#include "cli/say.h"

static void print_commands(void)
{
    printf("weir runs commands when there is room for them.\n\n"
           "    weir run db -n 4 -- psql -f report.sql    at most 4 of these at once\n\n"
           "usage: weir COMMAND [OPTIONS] [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-12s %s\n", command_table[i].name, command_table[i].what);
    printf("\n\"weir help COMMAND\" has the options of one; weir(1) has examples and exit "
           "statuses.\n");
}

static void print_option(const struct option_info *info)
{
    char left[48];

    snprintf(left, sizeof left, "%s%.1s%s--%s%s%s", info->letter ? "-" : "  ",
             info->letter ? &info->letter : "", info->letter ? ", " : "  ", info->name,
             *info->argument ? " " : "", info->argument);
    printf("  %-26s %s\n", left, info->what);
}

static void print_command(enum command c)
{
    const struct command_info *info = &command_table[c];

    printf("usage: weir %s [OPTIONS]%s%s\n\n%s\n\n", info->name, *info->arguments ? " " : "",
           info->arguments, info->what);
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c))
            print_option(&option_table[i]);
}

static int help_on(const char *name)
{
    const char *names[COMMANDS];

    for (int i = 0; i < COMMANDS; i++) {
        names[i] = command_table[i].name;
        if (strcmp(name, names[i]) == 0) {
            print_command((enum command)i);
            return 0;
        }
    }
    const char *near = nearest(name, names, COMMANDS);
    fail(EXIT_WEIR, "there is no command \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
         near ? near : "", near ? "\"?" : "");
}

int cmd_help(const struct options *o)
{
    if (o->command != CMD_HELP || o->value[OPT_HELP].given)
        print_command(o->command);
    else if (o->count)
        return help_on(o->arguments[0]);
    else
        print_commands();
    return 0;
}

int cmd_version(const struct options *o)
{
    if (o->value[OPT_JSON].given)
        printf("{\"version\":\"%s\"}\n", weir_version());
    else
        printf("weir %s\n", weir_version());
    return 0;
}
