/* SPDX-License-Identifier: MIT */
#include "named/backend/shm_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/time.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/testpoint.h"
#include "named/backend/shm_file.h"
#include "named/why.h"

enum { PAGE = 4096, FIRST_RECORDS = 192, MAX_RECORDS = 65535 };

/* Locking key: (r) the registry's lock  (a) atomic */
struct shm_record {
    pthread_mutex_t live; /* held by a thread of the client, as long as that lives */
    uint32_t life;        /* (r,a) how many clients have had this record          */
    uint32_t taken;       /* (r,a) 0: free                                        */
    uint32_t bell;        /* (a) rung when something of this client's changed     */
    int32_t pid;          /* (r) for people                                       */
};

struct shm_clients {
    struct shm_start start;
    uint64_t token_floor; /* (a) */
    uint32_t used;        /* (r,a) records before this one have been used */
    uint32_t capacity;    /* (r) records there is room for                */
    int32_t inside;       /* (r) the process that took the lock last      */
};

/* A directory as this process knows it; never freed. */
struct shm_registry {
    struct shm_registry *next;
    dev_t device;
    ino_t inode;
    int directory;
    struct shm_clients *clients;
    struct shm_record *records;
};

_Static_assert(sizeof(struct shm_record) <= 64 && sizeof(struct shm_clients) <= PAGE, "format");
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the futex is the first word");

enum { RECORD_BYTES = 64 };

/* ---- the file --------------------------------------------------------------------- */

static struct shm_record *record_at(const struct shm_registry *r, uint32_t index)
{
    return (struct shm_record *)(void *)((char *)r->records + (size_t)index * RECORD_BYTES);
}

static uint32_t *live_word(struct shm_record *record)
{
    return (uint32_t *)(void *)&record->live;
}

static int mutex_make(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int r = -pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return r;
}

static void clients_fill(void *memory, const void *arg)
{
    struct shm_clients *clients = memory;

    (void)arg;
    clients->capacity = FIRST_RECORDS;
}

static const struct shm_format clients_format = {
    .magic = 0x73746E65696C6377, /* "wclients" */
    .version = 1,
    .bytes = PAGE + FIRST_RECORDS * RECORD_BYTES,
    .fill = clients_fill,
};

static int open_clients(int directory)
{
    return shm_file_open(directory, "clients", &clients_format, "");
}

/* ---- bytes ---------------------------------------------------------------------------- */

/* Beyond the end of the file: a byte for each record, and one more for the list. */
static int byte_lock(int fd, int command, uint32_t index, short type, struct flock *ret)
{
    *ret = (struct flock){
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = ((off_t)1 << 40) + index,
        .l_len = 1,
    };
    return fcntl(fd, command, ret);
}

/* The list's own lock, for joining and leaving: a byte of the file, so that the kernel drops
 * it when we die.  There is nothing to repair in here: a record counts from when it is
 * `taken`.  It is held for microseconds; whoever finds it taken looks again, less and less
 * often. */
static int registry_lock(const struct shm_client *c)
{
    struct shm_clients *clients = c->registry->clients;
    int64_t until_ns = clock_real_ns() + 2 * WEIR_S, pause_ns = 20 * WEIR_US;
    struct flock ignored;

    while (byte_lock(c->fd, F_OFD_SETLK, MAX_RECORDS, F_WRLCK, &ignored) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return why(-errno, "cannot lock the store's list of clients: %s", strerror(errno));
        if (clock_real_ns() >= until_ns)
            return why(WEIR_EBUSY,
                       "process %d is stopped while it opens the store: continue or kill it",
                       (int)clients->inside);
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 5 * WEIR_MS ? pause_ns * 2 : pause_ns;
    }
    clients->inside = c->pid;
    return 0;
}

static void registry_unlock(const struct shm_client *c)
{
    struct flock ignored;

    byte_lock(c->fd, F_OFD_SETLK, MAX_RECORDS, F_UNLCK, &ignored);
}

/* ---- registries of this process -------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    struct shm_registry *first;
    struct shm_client *open; /* whose descriptors a forked child must not keep */
} here = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int registry_make(int directory, const struct stat *st, struct shm_registry **ret)
{
    struct shm_registry *r = mem_alloc(sizeof *r);
    int fd = r ? open_clients(directory) : WEIR_ENOMEM;
    size_t bytes = PAGE + (size_t)MAX_RECORDS * RECORD_BYTES;
    void *memory = fd >= 0 ? shm_file_map(fd, bytes) : NULL;

    if (fd >= 0)
        close(fd);
    if (memory == NULL) {
        mem_free(r);
        return fd < 0 ? fd : WEIR_ENOMEM;
    }
    *r = (struct shm_registry){
        .next = here.first,
        .device = st->st_dev,
        .inode = st->st_ino,
        .directory = directory,
        .clients = memory,
        .records = (struct shm_record *)(void *)((char *)memory + PAGE),
    };
    here.first = *ret = r;
    return 0;
}

/* Takes over the descriptor if it is the first of its directory. */
static int registry_of(int directory, struct shm_registry **ret)
{
    struct stat st;

    if (fstat(directory, &st) < 0)
        return -errno;
    for (struct shm_registry *r = here.first; r; r = r->next) {
        if (r->device == st.st_dev && r->inode == st.st_ino) {
            close(directory);
            *ret = r;
            return 0;
        }
    }
    return registry_make(directory, &st, ret);
}

static int registry_find(const char *path, struct shm_registry **ret)
{
    int directory = shm_directory_open(path);

    if (directory < 0)
        return directory;
    pthread_mutex_lock(&here.lock);
    int r = registry_of(directory, ret);
    pthread_mutex_unlock(&here.lock);
    if (r < 0)
        close(directory);
    return r;
}

/* A child shares the lock on our byte for as long as it has the descriptor, and would keep
 * us alive beyond our death. */
static void close_in_child(void)
{
    for (struct shm_client *c = here.open; c; c = c->next_open) {
        close(c->fd);
        c->fd = -1;
    }
    here.open = NULL;
    pthread_mutex_init(&here.lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, close_in_child);
}

/* ---- joining ------------------------------------------------------------------------------ */

/* A record that looks free: nobody holds its byte, and no thread's list goes through it. */
static bool claim(const struct shm_client *c, uint32_t index)
{
    struct shm_record *record = record_at(c->registry, index);
    uint32_t word = atomic_get(live_word(record));
    struct flock ignored;

    if (atomic_get(&record->taken) && word != 0 && !(word & FUTEX_OWNER_DIED))
        return false;
    return byte_lock(c->fd, F_OFD_SETLK, index, F_WRLCK, &ignored) == 0;
}

static int grow(struct shm_registry *r, int fd)
{
    uint32_t capacity = r->clients->capacity * 2;

    if (capacity > MAX_RECORDS)
        return why(WEIR_ENOSPC, "too many processes use the store");
    int failed = posix_fallocate(fd, 0, PAGE + (off_t)capacity * RECORD_BYTES);
    if (failed)
        return why(-failed, "no room for another client of the store: %s", strerror(failed));
    r->clients->capacity = capacity;
    return 0;
}

/* The byte first, the mutex second, and last what makes it count. */
static int settle(struct shm_client *c, uint32_t index)
{
    struct shm_record *record = record_at(c->registry, index);

    atomic_put(&record->taken, 0);
    c->life = record->life + 1;
    atomic_put(&record->life, c->life);
    int r = mutex_make(&record->live);
    if (r == 0)
        r = -pthread_mutex_lock(&record->live);
    if (r < 0)
        return r;
    record->pid = c->pid;
    atomic_put(&record->bell, 0);
    atomic_put(&record->taken, 1);
    c->index = index;
    c->record = record;
    return 0;
}

static int find_record(struct shm_client *c)
{
    struct shm_clients *clients = c->registry->clients;
    uint32_t index = 0;

    while (index < clients->used && !claim(c, index))
        index++;
    if (index == clients->used) {
        int r = clients->used < clients->capacity ? 0 : grow(c->registry, c->fd);
        if (r < 0)
            return r;
        if (!claim(c, index))
            return why(WEIR_EBUSY, "somebody else locks the store's list of clients");
        atomic_put(&clients->used, clients->used + 1);
    }
    return settle(c, index);
}

int shm_client_join(const char *directory, struct shm_client *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int r = registry_find(directory, &c->registry);

    if (r < 0)
        return r;
    pthread_once(&once, watch_forks);
    c->pid = getpid();
    c->fd = open_clients(c->registry->directory);
    if (c->fd < 0)
        return c->fd;
    r = registry_lock(c);
    if (r == 0) {
        TESTPOINT("shm: about to register");
        r = find_record(c);
        registry_unlock(c);
    }
    if (r < 0) {
        close(c->fd);
        return r;
    }
    pthread_mutex_lock(&here.lock);
    c->next_open = here.open;
    here.open = c;
    pthread_mutex_unlock(&here.lock);
    return 0;
}

static void forget_open(struct shm_client *c)
{
    pthread_mutex_lock(&here.lock);
    struct shm_client **at = &here.open;
    while (*at && *at != c)
        at = &(*at)->next_open;
    if (*at)
        *at = c->next_open;
    pthread_mutex_unlock(&here.lock);
}

/* Whoever names this life is dead from now on.  If another thread holds the mutex, the
 * record stays taken until that thread has ended: its list goes through it. */
void shm_client_leave(struct shm_client *c, bool forked)
{
    if (forked)
        return; /* the record is the parent's, and the descriptor is closed */
    forget_open(c);
    if (registry_lock(c) == 0) {
        atomic_put(&c->record->life, c->life + 1);
        if (pthread_mutex_unlock(&c->record->live) == 0)
            atomic_put(&c->record->taken, 0);
        registry_unlock(c);
    }
    futex_wake_shared(live_word(c->record), INT_MAX);
    close(c->fd);
}

int shm_client_directory(const struct shm_client *c)
{
    return c->registry->directory;
}

void shm_client_rearm(struct shm_client *c)
{
    if (!(atomic_peek(live_word(c->record)) & FUTEX_OWNER_DIED))
        return;
    if (pthread_mutex_trylock(&c->record->live) == EOWNERDEAD)
        pthread_mutex_consistent(&c->record->live);
}

/* ---- others --------------------------------------------------------------------------------- */

static struct shm_record *record_of(const struct shm_client *self, uint32_t index, uint32_t life)
{
    struct shm_record *record = index < MAX_RECORDS ? record_at(self->registry, index) : NULL;

    return record && index < atomic_peek(&self->registry->clients->used) &&
                   atomic_get(&record->life) == life
               ? record
               : NULL;
}

uint32_t shm_life_of(const struct shm_client *self, uint32_t index)
{
    if (index >= atomic_peek(&self->registry->clients->used) || index >= MAX_RECORDS)
        return 0;
    return atomic_get(&record_at(self->registry, index)->life);
}

bool shm_is_dead(const struct shm_client *self, uint32_t index, uint32_t life)
{
    struct shm_record *record = record_of(self, index, life);
    struct flock found;

    if (record == NULL)
        return true;
    if (index == self->index || !(atomic_get(live_word(record)) & FUTEX_OWNER_DIED))
        return false;
    return byte_lock(self->fd, F_OFD_GETLK, index, F_WRLCK, &found) == 0 && found.l_type == F_UNLCK;
}

bool shm_watch_death(const struct shm_client *self, uint32_t index, uint32_t life,
                     struct futex_watch *ret)
{
    struct shm_record *record = record_of(self, index, life);
    uint32_t word = record ? atomic_get(live_word(record)) : 0;

    /* As those do who wait for the mutex itself: the kernel wakes nobody without the mark. */
    while (word && !(word & (FUTEX_OWNER_DIED | FUTEX_WAITERS))) {
        if (atomic_cas(live_word(record), &word, word | FUTEX_WAITERS))
            word |= FUTEX_WAITERS;
    }
    if (word == 0 || (word & FUTEX_OWNER_DIED))
        return false;
    *ret = (struct futex_watch){live_word(record), word};
    return true;
}

void shm_spread_death(const struct futex_watch *watches, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (atomic_get(watches[i].word) & FUTEX_OWNER_DIED)
            futex_wake_shared(watches[i].word, INT_MAX);
}

uint32_t *shm_bell(const struct shm_client *self)
{
    return &self->record->bell;
}

void shm_ring(const struct shm_client *self, uint32_t index, uint32_t life)
{
    struct shm_record *record = record_of(self, index, life);

    if (record) {
        atomic_add(&record->bell, 1);
        futex_wake_shared(&record->bell, INT_MAX);
    }
}

uint64_t shm_token_floor(const struct shm_client *self)
{
    return atomic_get(&self->registry->clients->token_floor);
}

void shm_raise_token_floor(const struct shm_client *self, uint64_t token)
{
    uint64_t *floor = &self->registry->clients->token_floor, seen = atomic_get(floor);

    while (seen < token && !atomic_cas(floor, &seen, token))
        ;
}
