/* SPDX-License-Identifier: MIT */
#include "named/key.h"

#include <string.h>

#include <weir/store.h>

#include "named/why.h"

/* FNV-1a, finished with a multiplication that spreads it over the upper bits. */
int name_key(const char *text, struct name_key *ret)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    uint32_t length = 0;

    for (; text[length] && length <= WEIR_NAME_MAX; length++)
        hash = (hash ^ (uint8_t)text[length]) * UINT64_C(0x100000001B3);
    if (length == 0 || length > WEIR_NAME_MAX)
        return why(WEIR_EINVAL, "a name has 1 to %d bytes", WEIR_NAME_MAX);
    *ret = (struct name_key){
        .text = text,
        .length = length,
        .hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15),
    };
    return 0;
}

void name_copy(char *to, const char *text)
{
    memcpy(to, text, strnlen(text, WEIR_NAME_MAX) + 1);
}
