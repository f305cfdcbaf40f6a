/* SPDX-License-Identifier: MIT */
/* text - names and labels, which may have any bytes, as a terminal can show them.
 *
 * Widths are those of a UTF-8 terminal and come from a small table here, not from the
 * locale: a static program has to look one up in files, and over ssh it is often missing. */
#ifndef WEIR_CLI_TEXT_H
#define WEIR_CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The character at `at`, which is not at the end.  Returns its bytes; 0: not UTF-8. */
int utf8_char(const char *at, uint32_t *ret);

/* Room for any text of so many bytes when it is clean. */
#define TEXT_CLEAN(bytes) (4 * (bytes) + 1)

/* Write what can be shown as it is, and each byte of all else as \xNN: no name may move
 * the cursor.  What has no room is left out. */
void text_clean(const char *raw, char *out, size_t room);

/* Columns that a clean text takes. */
int text_width(const char *clean);

/* Shorten a clean text in place until it takes at most `width`; "..." says so. */
void text_cut(char *clean, int width);

#endif
