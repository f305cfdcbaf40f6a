/* SPDX-License-Identifier: MIT */
/* shm - ledgers in files that processes map, one for each name.
 *
 *     page 0   what it is, its lock, the name, the head of the ledger
 *     page 1   (d) the index by id
 *     page 2   (d) the map of slots
 *     page 3.. entries; the file grows when there are more
 *
 * Everybody maps room for as many as there can be, so that nothing moves when it grows. */
#ifndef WEIR_NAMED_BACKEND_SHM_H
#define WEIR_NAMED_BACKEND_SHM_H

#include <sys/types.h>

#include "named/backend/shm_client.h"
#include "named/backend/shm_file.h"
#include "named/backend/shm_lock.h"
#include "named/local.h"

enum {
    SHM_PAGE = 4096,
    SHM_BUCKETS = SHM_PAGE / sizeof(uint32_t),
    SHM_FIRST_ENTRIES = 64,
    SHM_MAX_ENTRIES = 16384,
};

struct shm_segment {
    struct shm_start start;
    struct shm_lock lock;
    int32_t inside; /* the process that took the lock last, for people */
    char name[WEIR_NAME_MAX + 1];
    struct ledger_head head;
    _Alignas(SHM_PAGE) uint32_t buckets[SHM_BUCKETS];
    _Alignas(SHM_PAGE) uint64_t slots[SHM_MAX_ENTRIES / 64];
    _Alignas(SHM_PAGE) struct entry entries[SHM_MAX_ENTRIES];
};

struct shm {
    struct local local;
    struct shm_client client;
    int64_t patience_ns; /* the keeper's; see shm_wait.c */
};

struct shm_name {
    struct name name;
    struct shm_segment *segment;
    struct shm *shm;
    ino_t inode;      /* of the file                                    */
    bool token_is_up; /* its tokens are above those of forgotten names   */
};

static inline struct shm *shm_of(struct local *local)
{
    return (struct shm *)(void *)local; /* its first member */
}

static inline struct shm_name *shm_name_of(const struct name *n)
{
    return (struct shm_name *)(void *)(uintptr_t)n; /* its first member */
}

/* ---- waiting (shm_wait.c) ---------------------------------------------------------- */

int shm_sleep(struct local *local, struct name *n, struct call *c, struct weir_deadline deadline);
void shm_wake(struct local *local, struct name *n, const struct news *news);

/* backend_ops, for the keeper */
int64_t shm_tend(struct backend *b, int64_t now_ns);
void shm_rest(struct backend *b, uint32_t seen, int64_t until_ns);

/* ---- segments (shm_segment.c) -------------------------------------------------------- */

extern const struct local_ops shm_local_ops;

/* A file of the directory as a name that is in no table.  -ENOENT: it is gone. */
int shm_name_open(struct shm *shm, const char *file, struct shm_name **ret);
void shm_unmake(struct local *local, struct name *n);

#endif
