/* SPDX-License-Identifier: MIT */
/* map_template - from what was typed and some items to what is executed.
 *
 * Several words are executed as they are, and a word that has an item in it is there once for
 * each item.  A single word that is more than a name is for sh, and items in it are quoted.
 * Where no placeholder is, the items come last.
 *
 *     {}   the item              {/}  without its directories   {#}  the number of the job
 *     {.}  without extension     {//} its directory             {%}  the number of the slot
 *                                {/.} {/} without extension                                  */
#ifndef WEIR_CLI_MAP_TEMPLATE_H
#define WEIR_CLI_MAP_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/map_buffer.h"

struct word; /* of a template */

struct template
{
    struct word *words;
    size_t count;
    bool shell;       /* words[0] is a line for sh                                     */
    bool by_slot;     /* {%} is in it: the same job is another command in another slot */
    const char *path; /* what to execute; NULL: it depends on the item                 */
};

/* Strings, each with its zero, one after the other. */
struct items {
    struct buffer text;
    size_t count;
};

/* What is executed.  argv[-1] is there as well, for what has to be put in front. */
struct command_line {
    struct buffer text;
    char **argv;
    size_t argc, capacity;
};

/* Ends the program if there is no such command. */
void template_parse(struct template *ret, char **words, size_t count);

void template_render(const struct template *t, const struct items *items, uint64_t job,
                     unsigned slot, struct command_line *ret);

/* For people, on one line, and such that a shell would understand it. */
void command_print(const struct template *t, const struct command_line *c, struct buffer *to);

/* Where a program is, as execvp(3) looks for it.  Returns 0, or ENOENT or EACCES. */
int find_program(const char *name, struct buffer *ret_path);

#endif
