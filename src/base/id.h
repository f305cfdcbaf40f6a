/* SPDX-License-Identifier: MIT */
/* Numbers that nobody else has.  Unique, not secret. */
#ifndef WEIR_BASE_ID_H
#define WEIR_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ID_BYTES = 16, ID_DIGITS = 32 };

/* 64 random bits, in a few nanoseconds; never the same in a process and its forked child. */
uint64_t id_random(void);

void id_make(uint8_t id[ID_BYTES]);

/* To find it by; ids may have been chosen by people, and be alike. */
static inline uint32_t id_hash(const uint8_t id[ID_BYTES])
{
    uint64_t half[2];

    memcpy(half, id, ID_BYTES);
    return (uint32_t)((half[0] ^ half[1]) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Hexadecimal, small letters. */
void id_print(const uint8_t id[ID_BYTES], char text[ID_DIGITS + 1]);

/* False unless it is 32 hexadecimal digits. */
bool id_parse(const char *text, uint8_t id[ID_BYTES]);

#endif
