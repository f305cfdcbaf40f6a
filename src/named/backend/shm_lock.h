/* SPDX-License-Identifier: MIT */
/* shm_lock - a lock in a file that survives its owner.
 *
 *     31        30 .. 16       15 .. 0
 *     +---------+--------------+----------------+
 *     | SLEEPER | life, mod 2^15 | client + 1   |      0: free
 *     +---------+--------------+----------------+
 *
 * The word names the client that is inside.  Who finds it taken watches that client as well
 * as the word, and when the client is dead takes the lock over from it.  (The thread
 * library's robust mutexes name a thread by a number that is unique in its pid namespace
 * only: one that was killed while it waited for the lock freed it if the owner, in another
 * container, had the same number.) */
#ifndef WEIR_NAMED_BACKEND_SHM_LOCK_H
#define WEIR_NAMED_BACKEND_SHM_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "named/backend/shm_client.h"

struct shm_lock {
    uint32_t word;
};

enum { SHM_LOCKED = 0, SHM_ORPHANED = 1 };

/* SHM_LOCKED; SHM_ORPHANED: locked, and the former owner died inside; or WEIR_EBUSY, when the
 * owner neither comes out nor dies for two seconds. */
int shm_lock_take(struct shm_lock *lock, const struct shm_client *self);

/* Without waiting: as above, or WEIR_EAGAIN. */
int shm_lock_try(struct shm_lock *lock, const struct shm_client *self);

void shm_lock_drop(struct shm_lock *lock);

/* Did somebody die inside, and nobody has taken it over yet? */
bool shm_lock_is_orphaned(const struct shm_lock *lock, const struct shm_client *self);

#endif
