/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "locks.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <unistd.h>

#include "bench.h"
#include "processes.h"

/* ---- weir ------------------------------------------------------------------------ */

static void weir_open(struct lock *lock)
{
    char uri[128];

    snprintf(uri, sizeof uri, "shm:%s", own_directory());
    BENCH_CHECK(weir_store_open(uri, NULL, &lock->store) == 0);
}

static inline void weir_acquire_for(struct lock *lock, int64_t ttl_ns)
{
    struct weir_lease_request ask = {.name = "lock", .limit = 1, .ttl_ns = ttl_ns};

    BENCH_CHECK(weir_lease_acquire(lock->store, &ask, WEIR_FOREVER, &lock->lease) == 0);
}

static void weir_acquire(struct lock *lock)
{
    weir_acquire_for(lock, 0);
}

static void weir_acquire_ttl(struct lock *lock)
{
    weir_acquire_for(lock, 60 * WEIR_S);
}

static void weir_release(struct lock *lock)
{
    BENCH_CHECK(weir_lease_release(lock->store, "lock", lock->lease.id) == 0);
}

static void weir_close(struct lock *lock)
{
    weir_store_close(lock->store);
}

const struct lock_kind weir_lock = {
    .open = weir_open,
    .acquire = weir_acquire,
    .release = weir_release,
    .close = weir_close,
};

const struct lock_kind weir_ttl_lock = {
    .open = weir_open,
    .acquire = weir_acquire_ttl,
    .release = weir_release,
    .close = weir_close,
};

/* ---- locks on a file --------------------------------------------------------------- */

static void file_open(struct lock *lock)
{
    char path[128];

    snprintf(path, sizeof path, "%s/lock", own_directory());
    lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    BENCH_CHECK(lock->fd >= 0);
}

static void file_close(struct lock *lock)
{
    close(lock->fd);
}

static void flock_acquire(struct lock *lock)
{
    BENCH_CHECK(flock(lock->fd, LOCK_EX) == 0);
}

static void flock_release(struct lock *lock)
{
    BENCH_CHECK(flock(lock->fd, LOCK_UN) == 0);
}

const struct lock_kind flock_lock = {
    .open = file_open,
    .acquire = flock_acquire,
    .release = flock_release,
    .close = file_close,
};

static void ofd_set(struct lock *lock, int command, short type)
{
    struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    BENCH_CHECK(fcntl(lock->fd, command, &byte) == 0);
}

static void ofd_acquire(struct lock *lock)
{
    ofd_set(lock, F_OFD_SETLKW, F_WRLCK);
}

static void ofd_release(struct lock *lock)
{
    ofd_set(lock, F_OFD_SETLK, F_UNLCK);
}

const struct lock_kind ofd_lock = {
    .open = file_open,
    .acquire = ofd_acquire,
    .release = ofd_release,
    .close = file_close,
};

/* ---- semaphores -------------------------------------------------------------------- */

static void sysv_add(struct lock *lock, short permits)
{
    struct sembuf change = {.sem_num = 0, .sem_op = permits, .sem_flg = SEM_UNDO};

    BENCH_CHECK(semop(lock->sem_id, &change, 1) == 0);
}

/* The permit is put in by hand: one given with SEM_UNDO would go when its giver ends. */
static void sysv_make(struct lock *lock)
{
    lock->sem_id = semget(IPC_PRIVATE, 1, 0600);
    BENCH_CHECK(lock->sem_id >= 0 && semctl(lock->sem_id, 0, SETVAL, 1) == 0);
}

static void sysv_acquire(struct lock *lock)
{
    sysv_add(lock, -1);
}

static void sysv_release(struct lock *lock)
{
    sysv_add(lock, 1);
}

static void sysv_unmake(struct lock *lock)
{
    BENCH_CHECK(semctl(lock->sem_id, 0, IPC_RMID) == 0);
}

const struct lock_kind sysv_lock = {
    .make = sysv_make,
    .acquire = sysv_acquire,
    .release = sysv_release,
    .unmake = sysv_unmake,
};

/* Processes started later have it mapped, and need no name. */
static void posix_make(struct lock *lock)
{
    char name[64];

    snprintf(name, sizeof name, "/weir-bench-%d", (int)getpid());
    lock->sem = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    BENCH_CHECK(lock->sem != SEM_FAILED && sem_unlink(name) == 0);
}

static void posix_acquire(struct lock *lock)
{
    BENCH_CHECK(sem_wait(lock->sem) == 0);
}

static void posix_release(struct lock *lock)
{
    BENCH_CHECK(sem_post(lock->sem) == 0);
}

static void posix_unmake(struct lock *lock)
{
    sem_close(lock->sem);
}

const struct lock_kind posix_lock = {
    .make = posix_make,
    .acquire = posix_acquire,
    .release = posix_release,
    .unmake = posix_unmake,
};

/* ---- any of them --------------------------------------------------------------------- */

void lock_make(struct lock *lock, const struct lock_kind *kind)
{
    *lock = (struct lock){.kind = kind};
    own_directory(); /* this process's, not that of the first to use it */
    if (kind->make)
        kind->make(lock);
}

void lock_open(struct lock *lock)
{
    if (lock->kind->open)
        lock->kind->open(lock);
}

void lock_close(struct lock *lock)
{
    if (lock->kind->close)
        lock->kind->close(lock);
}

void lock_unmake(struct lock *lock)
{
    if (lock->kind->unmake)
        lock->kind->unmake(lock);
}
