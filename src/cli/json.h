/* SPDX-License-Identifier: MIT */
/* json - what programs read.  Commas are put by themselves; a key of NULL is for the
 * elements of an array. */
#ifndef WEIR_CLI_JSON_H
#define WEIR_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *to;
    bool comma; /* something stands before what comes next */
};

void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);

/* What is not UTF-8 becomes U+FFFD: JSON has no bytes.  json_hex has. */
void json_text(struct json *j, const char *key, const char *text);
void json_hex(struct json *j, const char *key, const char *bytes);
void json_count(struct json *j, const char *key, uint64_t number);

/* Seconds; null for INT64_MAX, which is never. */
void json_time(struct json *j, const char *key, int64_t ns);

bool json_is_text(const char *bytes);

#endif
