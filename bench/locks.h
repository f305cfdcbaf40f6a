/* SPDX-License-Identifier: MIT */
/* locks.h - one permit between processes, in all the ways there are, behind one door.
 *
 * All but sem_open's come back when their holder is killed.  Only the semaphores could have
 * more than one permit, and only weir's and SysV's are handed to who waited first. */
#ifndef BENCH_LOCKS_H
#define BENCH_LOCKS_H

#include <semaphore.h>

#include <weir/store.h>

struct lock {
    const struct lock_kind *kind;
    struct weir_store *store;
    struct weir_lease lease;
    sem_t *sem;
    int fd, sem_id;
};

struct lock_kind {
    void (*make)(struct lock *lock);    /* once, before the processes that share it; or NULL */
    void (*open)(struct lock *lock);    /* in each of them; or NULL */
    void (*acquire)(struct lock *lock); /* waits */
    void (*release)(struct lock *lock);
    void (*close)(struct lock *lock);  /* or NULL */
    void (*unmake)(struct lock *lock); /* or NULL */
};

extern const struct lock_kind weir_lock, weir_ttl_lock; /* a lease; one with a TTL of a minute */
extern const struct lock_kind flock_lock;               /* flock(2) */
extern const struct lock_kind ofd_lock;                 /* fcntl(2): a byte, of an open file */
extern const struct lock_kind sysv_lock;                /* semop(2) with SEM_UNDO */
extern const struct lock_kind posix_lock;               /* sem_open(3) */

void lock_make(struct lock *lock, const struct lock_kind *kind);
void lock_open(struct lock *lock);
void lock_close(struct lock *lock);
void lock_unmake(struct lock *lock);

#endif
