/* SPDX-License-Identifier: MIT */
#include "cli/map_input.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/map_bar.h"
#include "cli/say.h"

static char buffer[INPUT_BYTES];

void input_open(struct input *in, char **words, char delimiter, bool stdin_closed)
{
    struct stat info;

    *in = (struct input){.words = words, .delimiter = delimiter};
    if (words) {
        in->ended = true;
        while (words[in->left])
            in->left++;
        return;
    }
    if (stdin_closed || fstat(STDIN_FILENO, &info) < 0)
        fail(EXIT_WEIR, "standard input is closed: give the items there, or after :::");
    if (S_ISDIR(info.st_mode))
        fail(EXIT_WEIR, "standard input is a directory: give items there, or after :::");
    in->is_file = S_ISREG(info.st_mode);
}

/* ---- reading ------------------------------------------------------------------------- */

bool input_has_room(const struct input *in)
{
    return !in->ended && in->end - in->begin <= INPUT_BYTES / 2;
}

static void count_left(struct input *in)
{
    const char *at = buffer + in->begin, *end = buffer + in->end;

    for (const char *found; at < end; at = found + 1) {
        in->left++;
        found = memchr(at, in->delimiter, (size_t)(end - at));
        if (found == NULL)
            break;
    }
}

void input_read(struct input *in)
{
    if (!input_has_room(in))
        return;
    if (INPUT_BYTES - in->end < INPUT_BYTES / 2) {
        memmove(buffer, buffer + in->begin, in->end - in->begin);
        in->end -= in->begin;
        in->looked_at -= in->begin;
        in->begin = 0;
    }
    ssize_t got = read(STDIN_FILENO, buffer + in->end, INPUT_BYTES / 2);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
        fail(EXIT_WEIR, "cannot read standard input: %s", strerror(errno));
    if (got > 0)
        in->end += (size_t)got;
    in->ended = got == 0;
    if (in->ended)
        count_left(in);
}

/* ---- taking --------------------------------------------------------------------------- */

static enum input_answer next_word(struct input *in, const char **ret_item, size_t *ret_length)
{
    if (*in->words == NULL)
        return INPUT_END;
    *ret_item = *in->words++;
    *ret_length = strlen(*ret_item);
    in->taken++;
    in->left--;
    return INPUT_ITEM;
}

static void check_item(const struct input *in, const char *item, size_t length)
{
    bool has_zero = in->delimiter && memchr(item, '\0', length);

    if (length <= INPUT_ITEM_MAX && !has_zero)
        return;
    bar_hide();
    if (length > INPUT_ITEM_MAX)
        fail(EXIT_WEIR, "item %llu is longer than an argument can be, 128 KiB",
             (unsigned long long)in->taken + 1);
    fail(EXIT_WEIR, "item %llu has a zero byte in it: is the input meant for -0?",
         (unsigned long long)in->taken + 1);
}

enum input_answer input_next(struct input *in, const char **ret_item, size_t *ret_length)
{
    if (in->words)
        return next_word(in, ret_item, ret_length);
    const char *item = buffer + in->begin;
    const char *end = memchr(buffer + in->looked_at, in->delimiter, in->end - in->looked_at);
    size_t length = (end ? (size_t)(end - buffer) : in->end) - in->begin;

    if (end || length > INPUT_ITEM_MAX || (in->ended && length))
        check_item(in, item, length);
    if (!end && !in->ended) {
        in->looked_at = in->end;
        return INPUT_EMPTY;
    }
    if (!end && length == 0)
        return INPUT_END;
    in->begin += length + (end != NULL);
    in->looked_at = in->begin;
    in->taken++;
    in->left -= in->ended;
    *ret_item = item;
    *ret_length = length;
    return INPUT_ITEM;
}
