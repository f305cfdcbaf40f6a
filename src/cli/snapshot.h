/* SPDX-License-Identifier: MIT */
/* snapshot - all names of a store as they were, to be sorted and shown at leisure. */
#ifndef WEIR_CLI_SNAPSHOT_H
#define WEIR_CLI_SNAPSHOT_H

#include <weir/store.h>

struct snapshot {
    struct weir_name_stats *name; /* by name; copies, the pointers in them as well */
    size_t names;
    int64_t at_ns;
};

/* Returns 0 or an error of weir_store_visit. */
int snapshot_take(struct weir_store *store, struct snapshot *ret);
void snapshot_free(struct snapshot *s);

/* NULL: there is no such name. */
const struct weir_name_stats *snapshot_find(const struct snapshot *s, const char *name);

/* For how long that lease is held or waited for, and how long it has left: INT64_MAX for
 * one without a TTL. */
int64_t snapshot_age(const struct snapshot *s, const struct weir_lease_info *info);
int64_t snapshot_left(const struct snapshot *s, const struct weir_lease_info *info);

#endif
