/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <string.h>

#include "cli/say.h"
#include "cli/units.h"

/* Used by options.def. */
#define C(id)          (UINT64_C(1) << CMD_##id)
#define ALL_COMMANDS   ((UINT64_C(1) << COMMANDS) - 1)
#define LEASE_COMMANDS (C(RUN) | C(ACQUIRE))
#define LOOK_COMMANDS  (C(ACQUIRE) | C(DOCTOR) | C(LS) | C(STAT) | C(GC) | C(VERSION))
#define STORE_COMMANDS (ALL_COMMANDS & ~(C(COMPLETIONS) | C(HELP) | C(VERSION)))

const struct command_info command_table[COMMANDS] = {
#define COMMAND(id, name, arguments, least, most, tail, what) \
    [CMD_##id] = {name, arguments, what, least, most, tail},
#include "cli/options.def"
#undef COMMAND
};

const struct option_info option_table[OPTIONS] = {
#define OPTION(id, letter, name, kind, argument, commands, what) \
    [OPT_##id] = {name, argument, what, commands, kind, letter},
#include "cli/options.def"
#undef OPTION
};

/* ---- mistyped --------------------------------------------------------------------- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* How many letters must be put in, left out, exchanged or swapped; up to some length. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 24 };
    int rows[3][LONGEST + 1];
    size_t length_a = strlen(a), length_b = strlen(b);

    if (length_a > LONGEST || length_b > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];

        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];

            row[j] =
                least(least(before[j], row[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (swapped)
                row[j] = least(row[j], two_before[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

const char *nearest(const char *typed, const char *const words[], int count)
{
    const char *found = NULL;
    int best = (int)strlen(typed) / 3 + 2; /* further off, it is another word */

    for (int i = 0; i < count; i++) {
        int d = distance(typed, words[i]);

        if (d < best) {
            best = d;
            found = words[i];
        }
    }
    return found;
}

static _Noreturn void unknown_command(const char *typed)
{
    const char *names[COMMANDS];

    for (int i = 0; i < COMMANDS; i++)
        names[i] = command_table[i].name;
    const char *near = nearest(typed, names, COMMANDS);
    if (near)
        fail(EXIT_WEIR, "there is no command \"%s\"; did you mean \"%s\"?", typed, near);
    fail(EXIT_WEIR, "there is no command \"%s\"; \"weir help\" lists them", typed);
}

static _Noreturn void unknown_option(enum command c, const char *typed)
{
    const char *names[OPTIONS], *near = NULL;
    int count = 0;

    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c))
            names[count++] = option_table[i].name;
    if (strncmp(typed, "--", 2) == 0)
        near = nearest(typed + 2, names, count);
    if (near)
        fail(EXIT_WEIR, "%s has no option %s; did you mean --%s?", command_table[c].name, typed,
             near);
    fail(EXIT_WEIR, "%s has no option %s; \"weir help %s\" lists them", command_table[c].name,
         typed, command_table[c].name);
}

/* ---- values --------------------------------------------------------------------------- */

static int64_t choice_of(enum option o, const char *text)
{
    const char *choices = option_table[o].argument, *at = choices;
    size_t length = strlen(text);

    for (int64_t i = 0; at; i++) {
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || at[length] == '\0') && length)
            return i;
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    fail(EXIT_WEIR, "--%s is %s, not \"%s\"", option_table[o].name, choices, text);
}

static int64_t value_of(enum option o, const char *text)
{
    const char *name = option_table[o].name;
    int64_t number = 0;

    switch (option_table[o].kind) {
    case FLAG:
    case TEXT:
        break;
    case COUNT:
        if (!parse_count(text, &number))
            fail(EXIT_WEIR, "--%s is a number from 1 on, not \"%s\"", name, text);
        break;
    case DURATION:
        if (!parse_duration(text, &number))
            fail(EXIT_WEIR, "--%s is a time such as 250ms, 30s, 5m or 2h, not \"%s\"", name, text);
        break;
    case SIGNAL:
        if (!parse_signal(text, &number))
            fail(EXIT_WEIR, "--%s is a signal such as TERM, INT or 15, not \"%s\"", name, text);
        break;
    case STATUS:
        if (!parse_number(text, 0, 255, &number))
            fail(EXIT_WEIR, "--%s is an exit status, 0 to 255, not \"%s\"", name, text);
        break;
    case CHOICE:
        number = choice_of(o, text);
        break;
    }
    return number;
}

static void set(struct options *ret, enum option o, const char *text)
{
    ret->value[o] = (struct option_value){.given = true, .text = text, .number = value_of(o, text)};
}

/* ---- words -------------------------------------------------------------------------------- */

static enum option long_option(enum command c, const char *word, size_t length)
{
    for (int i = 0; i < OPTIONS; i++) {
        const char *name = option_table[i].name;

        if (option_is_of((enum option)i, c) && strlen(name) == length &&
            strncmp(name, word + 2, length) == 0)
            return (enum option)i;
    }
    unknown_option(c, word);
}

static enum option short_option(enum command c, const char *word, char letter)
{
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c) && option_table[i].letter == letter)
            return (enum option)i;
    unknown_option(c, word);
}

static const char *next_word(enum option o, char ***at)
{
    if ((*at)[1] == NULL)
        fail(EXIT_WEIR, "--%s needs %s after it", option_table[o].name, option_table[o].argument);
    return *++*at;
}

static void parse_long(struct options *ret, char ***at)
{
    const char *word = **at, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    enum option o = long_option(ret->command, word, length);

    if (option_table[o].kind == FLAG && equals)
        fail(EXIT_WEIR, "--%s takes nothing after it", option_table[o].name);
    if (option_table[o].kind == FLAG)
        set(ret, o, "");
    else
        set(ret, o, equals ? equals + 1 : next_word(o, at));
}

/* One word may be several flags, and end in an option with its value. */
static void parse_short(struct options *ret, char ***at)
{
    const char *word = **at;

    for (const char *letter = word + 1; *letter; letter++) {
        enum option o = short_option(ret->command, word, *letter);

        if (option_table[o].kind == FLAG) {
            set(ret, o, "");
            continue;
        }
        set(ret, o, letter[1] ? letter + 1 : next_word(o, at));
        return;
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static enum command command_of(const char *word)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_table[i].name, word) == 0)
            return (enum command)i;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return CMD_HELP;
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return CMD_VERSION;
    unknown_command(word);
}

static void check_count(const struct options *o)
{
    const struct command_info *info = &command_table[o->command];

    if (o->value[OPT_HELP].given)
        return;
    if (o->count < info->least)
        fail(EXIT_WEIR, "something is missing: weir %s %s", info->name, info->arguments);
    if (info->most >= 0 && o->count > info->most)
        fail(EXIT_WEIR, "\"%s\" is one too many: weir %s %s", o->arguments[info->most], info->name,
             info->arguments);
}

void options_parse(int argc, char **argv, struct options *ret)
{
    *ret = (struct options){.command = CMD_HELP, .arguments = argv + argc};
    if (argc < 2)
        return;
    ret->command = command_of(argv[1]);
    ret->arguments = argv + 1; /* collected in place: there are no more than words */
    const struct command_info *info = &command_table[ret->command];
    bool verbatim = false;

    for (char **at = argv + 2; *at; at++) {
        if (!verbatim && strcmp(*at, "--") == 0) {
            verbatim = true;
        } else if (verbatim || **at != '-' || (*at)[1] == '\0') {
            ret->arguments[ret->count++] = *at;
            verbatim |= ret->count == info->tail;
        } else if ((*at)[1] == '-') {
            parse_long(ret, &at);
        } else {
            parse_short(ret, &at);
        }
    }
    ret->arguments[ret->count] = NULL;
    check_count(ret);
}
