/* SPDX-License-Identifier: MIT */
#include "named/backend/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/testpoint.h"
#include "named/why.h"

static size_t bytes_for(uint32_t entries)
{
    return offsetof(struct shm_segment, entries) + entries * sizeof(struct entry);
}

/* ---- files -------------------------------------------------------------------------- */

/* A name may be anything, a file's name may not: 128 bits of hash; the file itself says what
 * name it is for. */
static void file_of(const char *text, uint64_t hash, char file[40])
{
    uint64_t second = 0;

    for (const char *c = text; *c; c++)
        second = (second + (uint8_t)*c + 1) * UINT64_C(0xD6E8FEB86659FD93);
    snprintf(file, 40, "n-%016llx%016llx", (unsigned long long)hash, (unsigned long long)second);
}

/* What a new segment starts with. */
struct birth {
    const char *text;
    uint64_t limit, token;
};

static void segment_fill(void *memory, const void *arg)
{
    struct shm_segment *segment = memory;
    const struct birth *birth = arg;

    name_copy(segment->name, birth->text);
    segment->head.limit = birth->limit;
    segment->head.last_token = birth->token;
    segment->head.capacity = SHM_FIRST_ENTRIES;
    segment->head.used_at_ns = clock_real_ns();
}

static const struct shm_format segment_format = {
    .magic = 0x656D616E72696577, /* "weirname" */
    .version = 1,
    .bytes = offsetof(struct shm_segment, entries) + SHM_FIRST_ENTRIES * sizeof(struct entry),
    .fill = segment_fill,
};

static int open_segment(struct shm *shm, const char *file, const struct birth *birth,
                        struct shm_segment **ret, ino_t *ret_inode)
{
    int fd = shm_file_open(shm_client_directory(&shm->client), file, &segment_format, birth);
    struct stat st = {.st_size = 0};

    if (fd < 0)
        return fd;
    struct shm_segment *segment = shm_file_map(fd, sizeof *segment);
    /* In this order: it may be growing right now. */
    size_t bytes = segment ? bytes_for(atomic_get(&segment->head.capacity)) : 0;
    fstat(fd, &st);
    close(fd);
    if (segment == NULL)
        return WEIR_ENOMEM;
    if ((size_t)st.st_size < bytes) {
        munmap(segment, sizeof *segment);
        why(WEIR_EPROTO, "%s in the store's directory has been cut short", file);
        return WEIR_EPROTO;
    }
    *ret = segment;
    *ret_inode = st.st_ino;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------- */

static struct shm_name *name_of_ledger(const ledger *l)
{
    return container_of(l, struct shm_name, name.ledger);
}

/* Somebody may have removed or replaced what we have mapped. */
static bool is_of(int fd, const struct shm_name *n)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_ino == n->inode;
}

/* Under the lock, and before the head says so. */
static int segment_grow(ledger *l)
{
    struct shm_name *n = name_of_ledger(l);
    uint32_t capacity = l->head->capacity * 2;
    char file[40];

    if (capacity > SHM_MAX_ENTRIES)
        return why(WEIR_ENOSPC, "%d hold or wait for \"%.100s\": no more can", SHM_MAX_ENTRIES - 1,
                   n->name.text);
    file_of(n->name.text, n->name.hash, file);
    int fd = openat(shm_client_directory(&n->shm->client), file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return why(-errno, "cannot open the file of \"%.100s\": %s", n->name.text, strerror(errno));
    bool ours = is_of(fd, n);
    int failed = ours ? posix_fallocate(fd, 0, (off_t)bytes_for(capacity)) : ENOENT;
    close(fd);
    if (!ours)
        return why(-ENOENT, "the file of \"%.100s\" was removed and made anew", n->name.text);
    if (failed)
        return why(-failed, "no room for more that wait for \"%.100s\": %s", n->name.text,
                   strerror(failed));
    atomic_put(&l->head->capacity, capacity);
    return 0;
}

static bool entry_is_dead(const ledger *l, const struct entry *e)
{
    return shm_is_dead(&name_of_ledger(l)->shm->client, e->client, e->life);
}

static const struct ledger_ops segment_ops = {.grow = segment_grow, .is_dead = entry_is_dead};

static int name_new(struct shm *shm, struct shm_segment *segment, ino_t inode,
                    struct shm_name **ret)
{
    struct shm_name *n = mem_alloc(sizeof *n);

    if (n == NULL) {
        munmap(segment, sizeof *segment);
        return WEIR_ENOMEM;
    }
    n->shm = shm;
    n->segment = segment;
    n->inode = inode;
    n->name.ledger = (ledger){
        .head = &segment->head,
        .entries = segment->entries,
        .buckets = segment->buckets,
        .bucket_mask = SHM_BUCKETS - 1,
        .slots = segment->slots,
        .ops = &segment_ops,
    };
    memcpy(n->name.text, segment->name, sizeof n->name.text);
    n->name.text[WEIR_NAME_MAX] = '\0';
    *ret = n;
    return 0;
}

int shm_name_open(struct shm *shm, const char *file, struct shm_name **ret)
{
    struct shm_segment *segment;
    ino_t inode;
    int r = open_segment(shm, file, NULL, &segment, &inode);

    return r != 0 ? r : name_new(shm, segment, inode, ret);
}

void shm_unmake(struct local *local, struct name *n)
{
    struct shm_name *name = shm_name_of(n);

    (void)local;
    munmap(name->segment, sizeof *name->segment);
    mem_free(name);
}

static int shm_make(struct local *local, const struct name_key *key, uint64_t limit,
                    struct name **ret)
{
    struct shm *shm = shm_of(local);
    struct birth birth = {key->text, limit,
                          limit ? local_first_token(shm_token_floor(&shm->client)) : 0};
    struct shm_segment *segment;
    struct shm_name *n;
    ino_t inode;
    char file[40];

    file_of(key->text, key->hash, file);
    int r = open_segment(shm, file, limit ? &birth : NULL, &segment, &inode);
    if (r != 0)
        return r == -ENOENT && limit == 0 ? WEIR_ENOTHELD : r;
    r = name_new(shm, segment, inode, &n);
    if (r != 0)
        return r;
    if (strcmp(n->name.text, key->text) != 0) {
        shm_unmake(local, &n->name);
        return why(WEIR_EPROTO, "%s in the store's directory is for another name", file);
    }
    *ret = &n->name;
    return 0;
}

/* ---- the lock ------------------------------------------------------------------------------ */

/* While a file was being made, the name may have come and gone under another one. */
static void raise_token(struct shm *shm, struct name *n)
{
    uint64_t floor = shm_token_floor(&shm->client);

    if (n->ledger.head->last_token < floor)
        n->ledger.head->last_token = floor;
    shm_name_of(n)->token_is_up = true;
}

/* Now that it is locked, or orphaned, or why not. */
static int locked(struct shm *shm, struct name *n, int r)
{
    struct shm_segment *segment = shm_name_of(n)->segment;

    if (r < 0)
        return why(r, "process %d is stopped while it changes \"%.100s\": continue or kill it",
                   (int)segment->inside, n->text);
    if (r == SHM_ORPHANED)
        ledger_repair(&n->ledger);
    segment->inside = shm->client.pid;
    if (!shm_name_of(n)->token_is_up)
        raise_token(shm, n);
    shm_client_rearm(&shm->client);
    return 0;
}

static int shm_lock(struct local *local, struct name *n)
{
    struct shm *shm = shm_of(local);

    return locked(shm, n, shm_lock_take(&shm_name_of(n)->segment->lock, &shm->client));
}

static bool shm_try_lock(struct local *local, struct name *n)
{
    struct shm *shm = shm_of(local);
    int r = shm_lock_try(&shm_name_of(n)->segment->lock, &shm->client);

    return r >= 0 && locked(shm, n, r) == 0;
}

static void shm_unlock(struct local *local, struct name *n)
{
    (void)local;
    shm_lock_drop(&shm_name_of(n)->segment->lock);
}

/* First the mark, then the file: whoever dies between the two leaves a file that everybody
 * can see is nobody's, and the next one to meet it removes it.  Only who has the lock of a
 * file removes it, so it cannot become another between the look and the removal. */
static void shm_forget(struct local *local, struct name *n)
{
    int directory = shm_client_directory(&shm_of(local)->client);
    struct ledger_head *head = n->ledger.head;
    struct stat st;
    char file[40];

    shm_raise_token_floor(&shm_of(local)->client, head->last_token);
    atomic_put(&head->gone, 1);
    TESTPOINT("shm: gone, and still in the directory");
    file_of(n->text, n->hash, file);
    if (fstatat(directory, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_ino == shm_name_of(n)->inode)
        unlinkat(directory, file, 0);
}

const struct local_ops shm_local_ops = {
    .make = shm_make,
    .unmake = shm_unmake,
    .lock = shm_lock,
    .try_lock = shm_try_lock,
    .unlock = shm_unlock,
    .forget = shm_forget,
    .sleep = shm_sleep,
    .wake = shm_wake,
};
