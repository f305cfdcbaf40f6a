/* SPDX-License-Identifier: MIT */
#include "cli/map_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"

void *must_resize(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes);
    if (memory == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    return memory;
}

void buffer_reserve(struct buffer *b, size_t more)
{
    if (b->capacity - b->length >= more)
        return;
    size_t wanted = b->capacity ? b->capacity * 2 : 128;
    while (wanted - b->length < more)
        wanted *= 2;
    b->at = must_resize(b->at, wanted);
    b->capacity = wanted;
}

void buffer_add(struct buffer *b, const void *bytes, size_t length)
{
    buffer_reserve(b, length);
    if (length)
        memcpy(b->at + b->length, bytes, length);
    b->length += length;
}

void buffer_add_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

void buffer_add_byte(struct buffer *b, char byte)
{
    buffer_add(b, &byte, 1);
}

void buffer_add_number(struct buffer *b, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    buffer_add(b, digits + at, sizeof digits - at);
}

static bool needs_no_quotes(const char *text, size_t length)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_@%+:,./-";
    static bool is_plain[256];

    if (!is_plain['a'])
        for (const char *at = plain; *at; at++)
            is_plain[(unsigned char)*at] = true;
    for (size_t i = 0; i < length; i++)
        if (!is_plain[(unsigned char)text[i]])
            return false;
    return length > 0;
}

void buffer_add_quoted(struct buffer *b, const char *text, size_t length)
{
    if (needs_no_quotes(text, length)) {
        buffer_add(b, text, length);
        return;
    }
    buffer_add_byte(b, '\'');
    for (const char *end = text + length, *quote; text < end; text = quote + 1) {
        quote = memchr(text, '\'', (size_t)(end - text));
        if (quote == NULL) {
            buffer_add(b, text, (size_t)(end - text));
            break;
        }
        buffer_add(b, text, (size_t)(quote - text));
        buffer_add_text(b, "'\\''");
    }
    buffer_add_byte(b, '\'');
}
