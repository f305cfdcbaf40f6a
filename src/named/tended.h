/* SPDX-License-Identifier: MIT */
/* tended - leases of this process that somebody has to look after.
 *
 * Most leases are nobody's business between acquire and release.  Tended are those that are
 * renewed by themselves, those whose loss somebody wants to be told of, and those that
 * belong to a task and end with it.
 *
 *     acquire --> KEPT ---- renewed, again and again ----.
 *                  |  ^                                  |
 *                  |  '----------------------------------'
 *                  |
 *                  +---- not renewed in time, or taken away ---> LOST
 *                  |                                              |
 *                  +---- released, or its task ended -------------+---> gone
 */
#ifndef WEIR_NAMED_TENDED_H
#define WEIR_NAMED_TENDED_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store.h>

#include "base/id.h"
#include "base/lock.h"
#include "named/key.h"
#include "task/timer.h"

struct tended;

/* Locking key: everything under the lock */
struct tended_leases {
    lock lock;
    struct tended **buckets; /* by id; NULL until there is one */
    uint32_t count;          /* including places that are claimed */
    uint32_t round;          /* how often all were checked        */
    struct timer_heap timers;
};

/* Does this request, from whoever calls, make a lease that is tended? */
bool tended_is_needed(const struct weir_lease_request *request);

/* Get everything that could fail before the lease is acquired. */
int tended_prepare(struct weir_store *store, const struct weir_lease_request *request,
                   struct tended **ret);

/* The lease was acquired; or was not. */
void tended_begin(struct weir_store *store, struct tended *t, const struct weir_lease *lease,
                  uint64_t limit);
void tended_discard(struct weir_store *store, struct tended *t);

/* The lease is being released: stop looking after it.  If its holder is being told of a loss
 * right now, that is waited for, except in that very call. */
void tended_end(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES]);
bool tended_is_lost(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES]);

/* It was renewed by hand. */
void tended_renewed(struct weir_store *store, const char *name, const struct weir_lease *lease,
                    int64_t ttl_ns);

/* As weir_lease_lost_fd. */
int tended_lost_fd(struct weir_store *store, const struct name_key *key,
                   const struct weir_lease *lease);

/* The keeper's work; `rung`: somebody's lease may have been taken away.  Returns when there
 * is more to do. */
int64_t tended_work(struct weir_store *store, int64_t now_ns, bool rung);

/* Forget all. */
void tended_close(struct weir_store *store, bool forked);

#endif
