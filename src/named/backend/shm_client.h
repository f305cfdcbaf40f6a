/* SPDX-License-Identifier: MIT */
/* shm_client - who is alive, of those who use a store's directory.
 *
 * The file `clients` has a record for each store that is open in some process.  Two things
 * say whether a client lives:
 *
 *   - a lock on a byte of the file, held through a descriptor of the client's own.  The
 *     kernel drops it when the last copy of that descriptor is closed, however that comes
 *     about.  This is the truth; it survives exec, and is shared with children that were
 *     given the descriptor.
 *   - a robust mutex that a thread of the client holds for as long as it lives.  The kernel
 *     marks it when the thread ends, and wakes one who waits.  This is a hint that costs a
 *     load to look at, and that can be waited for: a marked one makes us ask for the byte.
 *
 * A record is used again for another client only when both are gone; its `life` grows then,
 * and whatever still names the former life is dead.
 *
 * The mapping is never undone: the thread library's list of a thread's robust mutexes goes
 * through it, and a thread that opened a store may live longer than the store. */
#ifndef WEIR_NAMED_BACKEND_SHM_CLIENT_H
#define WEIR_NAMED_BACKEND_SHM_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/futex.h"

struct shm_record;
struct shm_registry;

/* One client: this store, in this process. */
struct shm_client {
    struct shm_registry *registry;
    struct shm_record *record;
    uint32_t index, life;
    int32_t pid;
    int fd; /* the byte is locked through it */
    struct shm_client *next_open;
};

/* Returns 0, or an error and its sentence. */
int shm_client_join(const char *directory, struct shm_client *client);
void shm_client_leave(struct shm_client *client, bool forked);

/* The store's directory; good for ever. */
int shm_client_directory(const struct shm_client *client);

/* If the thread that held our mutex has ended, hold it from this one. */
void shm_client_rearm(struct shm_client *client);

/* The present life of a record; 0: it never had one. */
uint32_t shm_life_of(const struct shm_client *self, uint32_t index);

bool shm_is_dead(const struct shm_client *self, uint32_t index, uint32_t life);

/* What to watch so as to be woken when the other dies.  False: it cannot be watched, look
 * again soon. */
bool shm_watch_death(const struct shm_client *self, uint32_t index, uint32_t life,
                     struct futex_watch *ret);

/* After a sleep: the kernel wakes only one of those who watch a death.  Wake the others. */
void shm_spread_death(const struct futex_watch *watches, uint32_t count);

uint32_t *shm_bell(const struct shm_client *self);
void shm_ring(const struct shm_client *self, uint32_t index, uint32_t life);

/* The highest token of all names that were forgotten. */
uint64_t shm_token_floor(const struct shm_client *self);
void shm_raise_token_floor(const struct shm_client *self, uint64_t token);

#endif
