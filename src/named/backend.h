/* SPDX-License-Identifier: MIT */
/* backend - the narrow door between what a lease means and where it is kept.
 *
 * Above it stand arguments, ownership, renewal and telling of losses, written once; below
 * it one store each.  A backend is told nothing about tasks: whether the caller may wait,
 * and how, is park.h's business. */
#ifndef WEIR_NAMED_BACKEND_H
#define WEIR_NAMED_BACKEND_H

#include <weir/store.h>

#include "named/key.h"
#include "named/ledger.h"

/* What a successful acquire gave. */
struct grant {
    uint32_t slot;
    uint64_t token, limit;    /* also when it failed with WEIR_EMISMATCH: the limit */
    int64_t expires_at_ns;    /* for its holder     */
    int64_t taken_back_at_ns; /* by the store       */
    int64_t waited_ns;
    bool joined; /* somebody else asked first, with this id */
};

struct backend {
    const struct backend_ops *ops;
    struct keeper *keeper; /* whom to tell that there is something to do later     */
    bool needs_keeper;     /* nobody else takes back what has expired              */
};

/* Names, ids and numbers have been checked. */
struct backend_ops {
    int (*acquire)(struct backend *b, const struct name_key *key, struct ask *ask,
                   struct weir_deadline deadline, struct grant *ret);
    int (*renew)(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                 int64_t ttl_ns, int64_t *ret_expires_at_ns);
    /* *ret: what was released, for the observer. */
    int (*release)(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                   struct item *ret);
    int (*evict)(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES]);
    int (*resize)(struct backend *b, const struct name_key *key, uint64_t limit);
    int (*visit)(struct backend *b, int (*each)(const struct weir_name_stats *, void *), void *arg);
    /* Is it held, and until when may its holder count on it?  0, and the bell will be rung when
     * it changes; or WEIR_ENOTHELD. */
    int (*watch)(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                 int64_t *ret_expires_at_ns);

    /* For the keeper's thread: do what is due, and say when to come back (INT64_MAX: not by
     * itself); and sleep until then, or until the bell has changed from `seen`. */
    int64_t (*tend)(struct backend *b, int64_t now_ns);
    void (*rest)(struct backend *b, uint32_t seen, int64_t until_ns);
    uint32_t *(*bell)(struct backend *b);

    /* The descriptor that leases live by.  NULL: they have none. */
    int (*fd)(struct backend *b);

    /* Give back what is not detached, and all memory; in the child of a fork only that. */
    void (*close)(struct backend *b, bool forked);
};

int mem_open(const struct weir_store_options *options, struct backend **ret);
int shm_open_store(const char *directory, const struct weir_store_options *options,
                   struct backend **ret);

#endif
