/* SPDX-License-Identifier: MIT */
/* map_buffer - bytes that grow.  Where there is no memory, the program ends. */
#ifndef WEIR_CLI_MAP_BUFFER_H
#define WEIR_CLI_MAP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *at;
    size_t length, capacity;
};

void *must_resize(void *memory, size_t bytes); /* realloc */

void buffer_reserve(struct buffer *b, size_t more);
void buffer_add(struct buffer *b, const void *bytes, size_t length);
void buffer_add_text(struct buffer *b, const char *text);
void buffer_add_number(struct buffer *b, uint64_t number);
void buffer_add_byte(struct buffer *b, char byte);

/* As one word of a shell: as it is, or in single quotes. */
void buffer_add_quoted(struct buffer *b, const char *text, size_t length);

#endif
