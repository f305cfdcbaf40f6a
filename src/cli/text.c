/* SPDX-License-Identifier: MIT */
#include "cli/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

/* Controls, and what changes the direction or the look of other characters: shown as it
 * is, a name could look like another. */
static const struct range hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x200b, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0x10ffff},
};
static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool within(uint32_t c, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}
#define IN(c, ranges) within(c, ranges, sizeof(ranges) / sizeof *(ranges))

/* A byte that begins a sequence says how long it is. */
static int sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int utf8_char(const char *at, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)at;
    int length = sequence_length(byte[0]);

    if (length <= 1) {
        *ret = byte[0];
        return length;
    }
    uint32_t c = byte[0] & (0x7fU >> length);
    for (int i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (byte[i] & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *ret = c;
    return length;
}

void text_clean(const char *raw, char *out, size_t room)
{
    char *end = out + room - 1;

    while (*raw) {
        uint32_t c = 0;
        int length = utf8_char(raw, &c), bytes = length ? length : 1;
        bool shown = length && !IN(c, hidden);

        if (out + (shown ? bytes : 4 * bytes) > end)
            break;
        for (; bytes; bytes--, raw++) {
            if (shown)
                *out++ = *raw;
            else
                out += snprintf(out, 5, "\\x%02x", (unsigned char)*raw);
        }
    }
    *out = '\0';
}

static int char_width(uint32_t c)
{
    return IN(c, combining) ? 0 : IN(c, wide) ? 2 : 1;
}

/* How many bytes of it fit; all of it takes *ret_width. */
static size_t fitting(const char *clean, int width, int *ret_width)
{
    const char *at = clean;
    size_t fit = 0;
    int taken = 0;

    while (*at) {
        uint32_t c = 0;
        int length = utf8_char(at, &c);

        taken += char_width(c);
        at += length ? length : 1;
        if (taken <= width)
            fit = (size_t)(at - clean);
    }
    *ret_width = taken;
    return fit;
}

int text_width(const char *clean)
{
    int width;

    fitting(clean, 0, &width);
    return width;
}

void text_cut(char *clean, int width)
{
    const char *mark = width > 5 ? "..." : "";
    int taken;

    if (width < 0)
        width = 0;
    fitting(clean, width, &taken);
    if (taken <= width)
        return;
    size_t fit = fitting(clean, width - (int)strlen(mark), &taken);
    memmove(clean + fit, mark, strlen(mark) + 1); /* in place: what is cut was no shorter */
}
