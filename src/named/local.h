/* SPDX-License-Identifier: MIT */
/* local - what the stores have in common whose ledgers are in our own memory.
 *
 * Every verb is the same: pin the name, take its lock, let the ledger do it, drop the lock,
 * deliver the news.  `mem:` and `shm:` differ in where a ledger lies, what its lock is, and
 * how somebody who sleeps is woken. */
#ifndef WEIR_NAMED_LOCAL_H
#define WEIR_NAMED_LOCAL_H

#include "named/backend.h"
#include "named/names.h"

struct local;

struct local_ops {
    /* Make what there is to know of a name.  `limit` is for a new ledger; 0: make none, and
     * say WEIR_ENOTHELD if there is none. */
    int (*make)(struct local *local, const struct name_key *key, uint64_t limit, struct name **ret);
    void (*unmake)(struct local *local, struct name *n);

    /* 0, or WEIR_EBUSY: somebody in there does not come out. */
    int (*lock)(struct local *local, struct name *n);
    bool (*try_lock)(struct local *local, struct name *n);
    void (*unlock)(struct local *local, struct name *n);

    /* Nobody has used the name for long: mark it gone, and see to it that nobody finds this
     * ledger again.  Under the lock; may be done twice. */
    void (*forget)(struct local *local, struct name *n);

    /* A thread sleeps until its entry may have changed, 0, or the deadline has passed.
     * NULL: it waits for the call's event, as tasks do. */
    int (*sleep)(struct local *local, struct name *n, struct call *c,
                 struct weir_deadline deadline);

    /* Wake those who sleep by `sleep`, here or elsewhere.  NULL: there are none. */
    void (*wake)(struct local *local, struct name *n, const struct news *news);
};

struct local {
    struct backend backend;
    const struct local_ops *ops;
    struct names names;
    int64_t forget_after_ns;
    uint32_t crowd; /* (a) how many names there may be before we look for unused ones */
};

void local_init(struct local *local, const struct local_ops *ops,
                const struct weir_store_options *options);

/* backend_ops, all of them */
int local_acquire(struct backend *b, const struct name_key *key, struct ask *ask,
                  struct weir_deadline deadline, struct grant *ret);
int local_renew(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                int64_t ttl_ns, int64_t *ret_expires_at_ns);
int local_release(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                  struct item *ret);
int local_evict(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES]);
int local_resize(struct backend *b, const struct name_key *key, uint64_t limit);
int local_watch(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                int64_t *ret_expires_at_ns);

/* ---- for the stores themselves ---------------------------------------------------------- */

/* The name, locked.  `limit` as for make.  (local_names.c) */
int local_enter(struct local *local, const struct name_key *key, uint64_t limit, struct name **ret);

/* For a new name: above `floor`, the highest of all that were forgotten. */
uint64_t local_first_token(uint64_t floor);

/* Drop the lock and deliver the news, again and again until there is no more. */
void local_finish(struct local *local, struct name *n, struct news *news);

/* Do what is due for a pinned name.  Returns when there is more. */
int64_t local_tend_name(struct local *local, struct name *n, int64_t now_ns);

/* Tell the calls of this process whose entries are no longer waiting. */
void local_tell_calls(struct local *local, struct name *n);

/* Let go of names that have been idle for long: of a pinned one, of all. */
void local_forget_if_idle(struct local *local, struct name *n);
void local_forget(struct local *local);

/* Copy what there is to say of a pinned name, and say it; a name that is gone or about to be
 * is passed over.  (visit.c) */
struct visit {
    int (*each)(const struct weir_name_stats *stats, void *arg);
    void *arg;
    struct weir_lease_info *room; /* for leases and waiters, reused from name to name */
    size_t rooms;
};
int local_visit_name(struct local *local, struct name *n, struct visit *visit);

/* Every name in the table. */
int local_visit_table(struct local *local, struct visit *visit);

#endif
