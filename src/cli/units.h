/* SPDX-License-Identifier: MIT */
/* units - numbers as people write them. */
#ifndef WEIR_CLI_UNITS_H
#define WEIR_CLI_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool parse_number(const char *text, int64_t least, int64_t most, int64_t *ret);
bool parse_count(const char *text, int64_t *ret); /* from 1 to the largest limit */

/* 250ms, 30s, 1.5m, 2h, 1d, 100us; a bare number is seconds.  Nanoseconds, not negative. */
bool parse_duration(const char *text, int64_t *ret_ns);

/* TERM, SIGTERM or 15 */
bool parse_signal(const char *text, int64_t *ret);

/* 3 significant digits and a unit: 250ms, 4.2s, 3m10s, 2h05m, 3d04h. */
enum { DURATION_BYTES = 24 };
const char *print_duration(int64_t ns, char text[DURATION_BYTES]);

#endif
