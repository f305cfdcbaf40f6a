/* SPDX-License-Identifier: MIT */
/* look - what ls and stat show of a snapshot: tables for people, JSON for programs. */
#ifndef WEIR_CLI_LOOK_H
#define WEIR_CLI_LOOK_H

#include <stdio.h>

#include "cli/screen.h"
#include "cli/snapshot.h"

void ls_table(const struct snapshot *s, FILE *to, const struct screen *screen);
void ls_json(const struct snapshot *s, FILE *to); /* one array */

void stat_table(const struct snapshot *s, const struct weir_name_stats *name, FILE *to,
                const struct screen *screen);
void stat_json(const struct snapshot *s, const struct weir_name_stats *name, FILE *to);

/* The fullest first, then by name; an array of s->names, to be freed.  What they point to
 * remains the snapshot's. */
struct weir_name_stats *look_sort(const struct snapshot *s);

#endif
