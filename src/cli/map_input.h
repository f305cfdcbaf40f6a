/* SPDX-License-Identifier: MIT */
/* map_input - items, from standard input or from the command line.
 *
 * Standard input is read when an item is wanted and there is something to read, never
 * further ahead than the buffer, so that millions of lines take no memory, and the first one
 * runs before the last one was written.  An item ends at its delimiter; the last may end with
 * the input. */
#ifndef WEIR_CLI_MAP_INPUT_H
#define WEIR_CLI_MAP_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INPUT_ITEM_MAX = 128 * 1024 - 1, /* bytes: what the kernel takes as one argument */
    INPUT_BYTES = 4 * (INPUT_ITEM_MAX + 1),
};

enum input_answer { INPUT_ITEM, INPUT_EMPTY, INPUT_END };

struct input {
    char **words; /* the items, up to NULL; NULL: standard input is read      */
    char delimiter;
    bool ended;        /* nothing is left to be read, but perhaps in the buffer    */
    bool is_file;      /* reading it never waits                                   */
    uint64_t taken;    /* items so far                                             */
    uint64_t left;     /* items in the buffer, once ended                          */
    size_t begin, end; /* what of the buffer is not taken yet                      */
    size_t looked_at;  /* up to here there is no delimiter                         */
};

/* Standard input may have been closed: then it is an error to read it. */
void input_open(struct input *in, char **words, char delimiter, bool stdin_closed);

/* The next item, good until the next call; INPUT_EMPTY: read first. */
enum input_answer input_next(struct input *in, const char **ret_item, size_t *ret_length);

/* One read(2), if there is room. */
void input_read(struct input *in);
bool input_has_room(const struct input *in);

#endif
