/* SPDX-License-Identifier: MIT */
/* owner - the leases of a task, which end with it. */
#ifndef WEIR_NAMED_OWNER_H
#define WEIR_NAMED_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"

struct owner;
struct weir_store;

/* Part of a tended lease.  Under one lock for the whole process. */
struct owned {
    struct owned *next, *prev;
    struct owner *owner; /* NULL: of nobody, or no longer */
    struct weir_store *store;
    const char *name;
    const uint8_t *id;
    bool linked;
};

/* Is the caller a task? */
bool owner_is_task(void);

/* Make the calling task ready to own something.  Returns 0 or an error. */
int owner_prepare(struct owned *o);
void owner_add(struct owned *o, struct weir_store *store, const char *name, const uint8_t *id);

/* Does nothing if it is of nobody. */
void owner_remove(struct owned *o);

#endif
