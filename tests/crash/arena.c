/* SPDX-License-Identifier: MIT */
#include "crash/arena.h"

#include <dirent.h>
#include <ftw.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "named/backend/shm.h"
#include "named/store.h"

static const int64_t PATIENCE_NS = 5 * WEIR_S;

/* ---- the store ------------------------------------------------------------------------ */

const char *arena_directory(const struct arena *a)
{
    return a->uri + strlen("shm:");
}

static struct weir_store *open_with(const struct arena *a, const struct weir_store_options *options)
{
    struct weir_store *store;
    int r = weir_store_open(a->uri, options, &store);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "cannot open %s: %s; %s", a->uri, weir_strerror(r),
                  weir_store_why());
    return store;
}

struct weir_store *arena_open(const struct arena *a)
{
    return open_with(a, NULL);
}

struct weir_store *arena_open_forgetful(const struct arena *a)
{
    return open_with(a, &(struct weir_store_options){.forget_after_ns = 1});
}

void arena_begin(struct arena *a)
{
    *a = (struct arena){.uri = "shm:/dev/shm/weir-crash-XXXXXX"};
    CHECK(mkdtemp(a->uri + strlen("shm:")) != NULL);
    a->store = arena_open(a);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    return remove(path);
}

void arena_end(struct arena *a)
{
    weir_store_close(a->store);
    CHECK_EQ(nftw(arena_directory(a), remove_entry, 4, FTW_DEPTH | FTW_PHYS), 0);
}

static int look_away(const struct weir_name_stats *stats, void *arg)
{
    (void)stats;
    (void)arg;
    return 0;
}

void arena_visit(struct weir_store *store)
{
    CHECK_EQ(weir_store_visit(store, look_away, NULL), 0);
}

int arena_files(const struct arena *a)
{
    DIR *directory = opendir(arena_directory(a));
    struct dirent *file;
    int count = 0;

    CHECK(directory != NULL);
    while ((file = readdir(directory)))
        count += strncmp(file->d_name, "n-", 2) == 0;
    closedir(directory);
    return count;
}

/* ---- leases --------------------------------------------------------------------------- */

struct weir_lease arena_take(struct arena *a, struct weir_store *store, const char *name,
                             uint64_t limit)
{
    struct weir_lease_request request = {.name = name, .limit = limit};
    struct weir_lease lease;
    int r = weir_lease_acquire(store, &request, weir_within(PATIENCE_NS), &lease);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "cannot have %s: %s; %s", name, weir_strerror(r),
                  weir_store_why());
    if (lease.token <= a->last_token)
        test_fail(__FILE__, __LINE__, "%s: token %llu after %llu, waited %lld", name,
                  (unsigned long long)lease.token, (unsigned long long)a->last_token,
                  (long long)lease.waited_ns);
    a->last_token = lease.token;
    return lease;
}

static void check_books(struct arena *a, const char *name, uint64_t in_use)
{
    arena_prove(a->store, name);
    const struct ledger_head *head = arena_lock(a->store, name)->head;
    CHECK_EQ(head->in_use, in_use);
    CHECK_EQ(head->queue.count, 0);
    arena_unlock(a->store, name);
}

void arena_check(struct arena *a, const char *name, uint64_t limit)
{
    struct weir_lease_request one_more = {.name = name, .limit = limit};
    struct weir_lease *leases = calloc(limit, sizeof *leases), excess;

    for (uint64_t i = 0; i < limit; i++)
        leases[i] = arena_take(a, a->store, name, limit);
    CHECK_EQ(weir_lease_acquire(a->store, &one_more, WEIR_NO_WAIT, &excess), WEIR_ETIMEDOUT);
    check_books(a, name, limit);
    for (uint64_t i = 0; i < limit; i++)
        CHECK_EQ(weir_lease_release(a->store, name, leases[i].id), 0);
    check_books(a, name, 0);
    free(leases);
}

/* ---- ledgers --------------------------------------------------------------------------- */

static struct shm *shm_of_store(struct weir_store *store)
{
    return (struct shm *)(void *)store->backend; /* its first member */
}

static struct name *find(struct weir_store *store, const char *name)
{
    struct name_key key;

    CHECK_EQ(name_key(name, &key), 0);
    struct name *n = names_find(&shm_of_store(store)->local.names, &key);
    CHECK(n != NULL);
    return n;
}

ledger *arena_lock(struct weir_store *store, const char *name)
{
    struct name *n = find(store, name);
    struct local *local = &shm_of_store(store)->local;

    CHECK_EQ(local->ops->lock(local, n), 0);
    return &n->ledger;
}

void arena_unlock(struct weir_store *store, const char *name)
{
    struct name *n = find(store, name);
    struct local *local = &shm_of_store(store)->local;

    local->ops->unlock(local, n);
    name_unpin(n);
    name_unpin(n); /* of arena_lock */
}

struct shm_client *arena_client(struct weir_store *store)
{
    return &shm_of_store(store)->client;
}

uint32_t arena_waiting(struct weir_store *store, const char *name)
{
    uint32_t count = arena_lock(store, name)->head->queue.count;

    arena_unlock(store, name);
    return count;
}

void arena_prove(struct weir_store *store, const char *name)
{
    const char *fault = ledger_fault(arena_lock(store, name));

    if (fault)
        test_fail(__FILE__, __LINE__, "%s: %s", name, fault);
    arena_unlock(store, name);
}

bool arena_lock_is_wanted(struct weir_store *store, const char *name)
{
    struct name *n = find(store, name);
    uint32_t word = atomic_get(&shm_name_of(n)->segment->lock.word);

    name_unpin(n);
    return word >> 31; /* SLEEPER */
}

bool arena_lock_is_orphaned(struct weir_store *store, const char *name)
{
    struct name *n = find(store, name);
    const struct shm_segment *segment = shm_name_of(n)->segment;

    name_unpin(n);
    return shm_lock_is_orphaned(&segment->lock, arena_client(store));
}

/* ---- processes --------------------------------------------------------------------------- */

pid_t arena_start(void (*fn)(void *arg), void *arg)
{
    pid_t parent = getpid(), pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        fn(arg);
    _exit(0);
}

void arena_join(pid_t pid)
{
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

void arena_kill(pid_t pid)
{
    int status;

    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0); /* it has not failed before */
}

void *arena_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(memory != MAP_FAILED);
    return memory;
}
