/* SPDX-License-Identifier: MIT */
/* arena - a store of the test's own, where processes are killed, and what must be true
 * of it afterwards. */
#ifndef WEIR_CRASH_ARENA_H
#define WEIR_CRASH_ARENA_H

#include <sys/types.h>

#include <weir/store.h>

#include "harness/test.h"
#include "named/ledger.h"

struct arena {
    char uri[64];
    struct weir_store *store; /* the survivor's                              */
    uint64_t last_token;      /* of all that were seen: the next is higher   */
};

/* A new directory in /dev/shm.  It is removed at the end, and left there by a test that
 * fails. */
void arena_begin(struct arena *a);
void arena_end(struct arena *a);
const char *arena_directory(const struct arena *a);

struct weir_store *arena_open(const struct arena *a);

/* The same, forgetting whatever nobody uses as soon as it is looked at. */
struct weir_store *arena_open_forgetful(const struct arena *a);

/* Look at every name, to that end or to none. */
void arena_visit(struct weir_store *store);
int arena_files(const struct arena *a); /* how many names have one */

/* ---- leases ------------------------------------------------------------------------- */

/* It is there, at the latest in a few seconds.  Its token is higher than any before. */
struct weir_lease arena_take(struct arena *a, struct weir_store *store, const char *name,
                             uint64_t limit);

/* All permits can be had by the survivor, each once; nobody waits; all invariants hold. */
void arena_check(struct arena *a, const char *name, uint64_t limit);

/* ---- ledgers, from within ------------------------------------------------------------- */

/* The ledger of a name that this store has used, locked. */
ledger *arena_lock(struct weir_store *store, const char *name);
void arena_unlock(struct weir_store *store, const char *name);

uint32_t arena_waiting(struct weir_store *store, const char *name);

/* What others see of this store. */
struct shm_client;
struct shm_client *arena_client(struct weir_store *store);

/* All invariants hold, once the lock has been taken. */
void arena_prove(struct weir_store *store, const char *name);

/* Does somebody sleep until the lock of a name is free? */
bool arena_lock_is_wanted(struct weir_store *store, const char *name);

/* Did the last one who had the lock die with it?  Nobody has taken it since. */
bool arena_lock_is_orphaned(struct weir_store *store, const char *name);

/* ---- processes --------------------------------------------------------------------------- */

/* A child that does this and ends; it dies with us.  To be started by the test's first
 * thread. */
pid_t arena_start(void (*fn)(void *arg), void *arg);
void arena_join(pid_t pid); /* it has ended well */
void arena_kill(pid_t pid);

/* Zeroed memory that those children share with us. */
void *arena_share(size_t bytes);

#endif
