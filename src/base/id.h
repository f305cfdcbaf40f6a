/* SPDX-License-Identifier: MIT */
/* Numbers that nobody else has.  Unique, not secret. */
#ifndef WEIR_BASE_ID_H
#define WEIR_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { ID_BYTES = 16, ID_DIGITS = 32 };

/* 64 random bits, in a few nanoseconds; never the same in a process and its forked child. */
uint64_t id_random(void);

void id_make(uint8_t id[ID_BYTES]);

/* Hexadecimal, small letters. */
void id_print(const uint8_t id[ID_BYTES], char text[ID_DIGITS + 1]);

/* False unless it is 32 hexadecimal digits. */
bool id_parse(const char *text, uint8_t id[ID_BYTES]);

#endif
