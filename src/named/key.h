/* SPDX-License-Identifier: MIT */
/* key - a name to be looked for: measured, checked and hashed in one pass. */
#ifndef WEIR_NAMED_KEY_H
#define WEIR_NAMED_KEY_H

#include <stdint.h>

struct name_key {
    const char *text;
    uint32_t length;
    uint64_t hash;
};

/* 0, or WEIR_EINVAL and its sentence: a name has 1 to WEIR_NAME_MAX bytes. */
int name_key(const char *text, struct name_key *ret);

/* One that has been checked. */
void name_copy(char *to, const char *text);

#endif
