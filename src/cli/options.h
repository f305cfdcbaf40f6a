/* SPDX-License-Identifier: MIT */
/* options - the command line, as options.def describes it. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum command {
#define COMMAND(id, name, arguments, least, most, tail, what) CMD_##id,
#include "cli/options.def"
#undef COMMAND
    COMMANDS
};

enum option {
#define OPTION(id, letter, name, kind, argument, commands, what) OPT_##id,
#include "cli/options.def"
#undef OPTION
    OPTIONS
};

enum option_kind { FLAG, TEXT, COUNT, DURATION, SIGNAL, STATUS, CHOICE };

struct command_info {
    const char *name, *arguments, *what;
    int least, most, tail;
};

struct option_info {
    const char *name, *argument, *what;
    uint64_t commands; /* a bit for each that has it */
    enum option_kind kind;
    char letter;
};

extern const struct command_info command_table[COMMANDS];
extern const struct option_info option_table[OPTIONS];

static inline bool option_is_of(enum option o, enum command c)
{
    return option_table[o].commands >> c & 1;
}

struct option_value {
    bool given;
    const char *text; /* as it was typed */
    int64_t number;   /* a count, nanoseconds, a signal, an exit status, the index of a choice */
};

struct options {
    enum command command;
    struct option_value value[OPTIONS];
    char **arguments; /* NULL after the last */
    int count;
};

/* The whole command line; says what is wrong and ends the program if something is. */
void options_parse(int argc, char **argv, struct options *ret);

/* The nearest of some words to a mistyped one, or NULL. */
const char *nearest(const char *typed, const char *const words[], int count);

#endif
