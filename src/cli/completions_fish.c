/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cli/completions.h"

static const char head[] =
    "# weir's words for fish, made by \"weir completions fish\".\n"
    "\n"
    "# __weir_given COMMAND VALUES - after COMMAND, print the arguments that are given so far;\n"
    "# VALUES are the options that take one.\n"
    "function __weir_given\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]; or return 1\n"
    "    set -l skip 0\n"
    "    for word in $words[3..-1]\n"
    "        if test $skip = 1\n"
    "            set skip 0\n"
    "        else if contains -- $word $argv[2..-1]\n"
    "            set skip 1\n"
    "        else if not string match -q -- '-*' $word\n"
    "            echo $word\n"
    "        end\n"
    "    end\n"
    "end\n"
    "\n"
    "# __weir_at COMMAND LOW HIGH VALUES - are so many arguments given?\n"
    "function __weir_at\n"
    "    set -l given (__weir_given $argv[1] $argv[4..-1]); or return 1\n"
    "    test (count $given) -ge $argv[2]; and test (count $given) -le $argv[3]\n"
    "end\n"
    "\n"
    "complete -c weir -f\n";

/* Inside '...'. */
static void print_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

/* What `complete -a` is to be told; the name before an id is the first that was given. */
static void print_words(enum command c, const char *action)
{
    if (strcmp(action, "names") == 0)
        fputs("(weir completions names 2>/dev/null)", stdout);
    else if (strcmp(action, "ids") == 0)
        printf("(weir completions ids (__weir_given %s)[1] 2>/dev/null)", command_table[c].name);
    else if (strcmp(action, "stores") == 0)
        fputs("shm: mem:", stdout);
    else if (strcmp(action, "dirs") == 0)
        fputs("(__fish_complete_directories)", stdout);
    else if (strcmp(action, "signals") == 0)
        fputs("HUP INT QUIT KILL USR1 USR2 ALRM TERM", stdout);
    else if (strcmp(action, "programs") == 0)
        fputs("(__fish_complete_command)", stdout);
    else if (strcmp(action, "commands") == 0)
        for (int i = 0; i < COMMANDS; i++)
            printf("%s ", command_table[i].name);
    else
        for (; *action; action++)
            putchar(*action == '|' ? ' ' : *action);
}

static bool has_words(const char *action)
{
    return *action && strcmp(action, "none") != 0 && strcmp(action, "files") != 0;
}

static void print_option(enum command c, enum option o)
{
    const struct option_info *info = &option_table[o];
    const char *action = option_action(o);

    printf("complete -c weir -n '__weir_given %s >/dev/null' -l %s", command_table[c].name,
           info->name);
    if (info->letter)
        printf(" -s %c", info->letter);
    if (info->kind != FLAG)
        fputs(strcmp(action, "files") == 0 ? " -r -F" : " -x", stdout);
    if (has_words(action)) {
        printf(" -a '");
        print_words(c, action);
        putchar('\'');
    }
    printf(" -d '");
    print_quoted(info->what);
    printf("'\n");
}

static void print_values(enum command c)
{
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_info *info = &option_table[i];

        if (!option_is_of((enum option)i, c) || info->kind == FLAG)
            continue;
        printf(" --%s", info->name);
        if (info->letter)
            printf(" -%c", info->letter);
    }
}

static void print_argument(enum command c, int place, bool last, const char *action)
{
    if (!has_words(action))
        return;
    printf("complete -c weir -n '__weir_at %s %d %d", command_table[c].name, place,
           last && command_table[c].most < 0 ? 1000000 : place);
    print_values(c);
    printf("' -a '");
    print_words(c, action);
    printf("'\n");
}

static void print_command(enum command c)
{
    char actions[PLACES_MAX][ACTION_BYTES];
    int count = argument_actions(c, actions);

    printf("complete -c weir -n 'test (count (commandline -opc)) -eq 1' -a %s -d '",
           command_table[c].name);
    print_quoted(command_table[c].what);
    printf("'\n");
    for (int i = 0; i < count; i++)
        print_argument(c, i, i == count - 1, actions[i]);
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c))
            print_option(c, (enum option)i);
}

void print_fish(void)
{
    fputs(head, stdout);
    for (int c = 0; c < COMMANDS; c++)
        print_command((enum command)c);
}
