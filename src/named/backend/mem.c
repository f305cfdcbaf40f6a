/* SPDX-License-Identifier: MIT */
/* mem: - ledgers on the heap, for the tasks and threads of one process. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/futex.h"
#include "named/keeper.h"
#include "named/local.h"

enum { FIRST_CAPACITY = 8 };

struct mem {
    struct local local;
    uint32_t bell;
    int32_t pid;
    lock lock;
    uint64_t last_token; /* under lock: of all names that were forgotten */
};

struct mem_name {
    struct name name;
    lock lock;
    struct ledger_head head;
};

static struct mem *mem_of(struct local *local)
{
    return container_of(local, struct mem, local);
}

static struct mem_name *mem_name_of(const struct name *n)
{
    return container_of(n, struct mem_name, name);
}

/* ---- ledgers on the heap ---------------------------------------------------------- */

static void free_parts(const ledger *l)
{
    mem_free(l->entries);
    mem_free(l->buckets);
    mem_free(l->slots);
}

/* Twice the room: copy the entries, and derive the rest. */
static int mem_grow(ledger *l)
{
    uint32_t capacity = l->head->capacity ? l->head->capacity * 2 : FIRST_CAPACITY;
    ledger larger = {
        .head = l->head,
        .entries = mem_alloc(capacity * sizeof(struct entry)),
        .buckets = mem_alloc(capacity * sizeof(uint32_t)),
        .bucket_mask = capacity - 1,
        .slots = mem_alloc((capacity + 63) / 64 * sizeof(uint64_t)),
        .ops = l->ops,
    };

    if (capacity > UINT32_MAX / 2 || !larger.entries || !larger.buckets || !larger.slots) {
        free_parts(&larger);
        return WEIR_ENOMEM;
    }
    if (l->entries)
        memcpy(larger.entries, l->entries, (l->head->fresh + 1) * sizeof(struct entry));
    free_parts(l);
    l->entries = larger.entries; /* but not the head, which others may be reading */
    l->buckets = larger.buckets;
    l->bucket_mask = larger.bucket_mask;
    l->slots = larger.slots;
    l->head->capacity = capacity;
    ledger_repair(l);
    return 0;
}

static const struct ledger_ops mem_ledger_ops = {.grow = mem_grow};

static uint64_t token_floor(struct mem *mem)
{
    lock_take(&mem->lock);
    uint64_t floor = mem->last_token;
    lock_drop(&mem->lock);
    return floor;
}

static void mem_unmake(struct local *local, struct name *n)
{
    (void)local;
    free_parts(&n->ledger);
    mem_free(mem_name_of(n));
}

static int mem_make(struct local *local, const struct name_key *key, uint64_t limit,
                    struct name **ret)
{
    (void)key;
    if (limit == 0)
        return WEIR_ENOTHELD;
    struct mem_name *made = mem_alloc(sizeof *made);
    if (made == NULL)
        return WEIR_ENOMEM;
    made->name.ledger.head = &made->head;
    made->name.ledger.ops = &mem_ledger_ops;
    made->head.limit = limit;
    made->head.last_token = local_first_token(token_floor(mem_of(local)));
    made->head.used_at_ns = clock_real_ns();
    if (mem_grow(&made->name.ledger) < 0) {
        mem_free(made);
        return WEIR_ENOMEM;
    }
    *ret = &made->name;
    return 0;
}

UNCHECKED static int mem_lock(struct local *local, struct name *n)
{
    (void)local;
    lock_take(&mem_name_of(n)->lock);
    return 0;
}

UNCHECKED static bool mem_try_lock(struct local *local, struct name *n)
{
    (void)local;
    return lock_try(&mem_name_of(n)->lock);
}

UNCHECKED static void mem_unlock(struct local *local, struct name *n)
{
    (void)local;
    lock_drop(&mem_name_of(n)->lock);
}

static void mem_forget(struct local *local, struct name *n)
{
    struct mem *mem = mem_of(local);
    struct ledger_head *head = n->ledger.head;

    lock_take(&mem->lock);
    if (head->last_token > mem->last_token)
        mem->last_token = head->last_token;
    lock_drop(&mem->lock);
    atomic_put(&head->gone, 1);
}

/* Those who wait are told by their events; here it is only about leases that are watched. */
static void mem_wake(struct local *local, struct name *n, const struct news *news)
{
    (void)n;
    for (uint32_t i = 0; i < news->tolds; i++) {
        if (news->told[i].bell) {
            keeper_ring(local->backend.keeper);
            return;
        }
    }
}

static const struct local_ops mem_local_ops = {
    .make = mem_make,
    .unmake = mem_unmake,
    .lock = mem_lock,
    .try_lock = mem_try_lock,
    .unlock = mem_unlock,
    .forget = mem_forget,
    .wake = mem_wake,
};

/* ---- the backend ----------------------------------------------------------------------- */

static struct mem *mem_of_backend(struct backend *b)
{
    return container_of(b, struct mem, local.backend);
}

static int mem_acquire(struct backend *b, const struct name_key *key, struct ask *ask,
                       struct weir_deadline deadline, struct grant *ret)
{
    ask->pid = mem_of_backend(b)->pid;
    return local_acquire(b, key, ask, deadline, ret);
}

static int mem_visit(struct backend *b, int (*each)(const struct weir_name_stats *, void *),
                     void *arg)
{
    struct visit visit = {.each = each, .arg = arg};

    return local_visit_table(&mem_of_backend(b)->local, &visit);
}

/* Take back whatever has expired, whatever name it is of. */
static int64_t mem_tend(struct backend *b, int64_t now_ns)
{
    struct local *local = &mem_of_backend(b)->local;
    int64_t next_ns = INT64_MAX;
    struct name **all;
    int64_t count = names_pin_all(&local->names, &all);

    if (count < 0)
        return now_ns + WEIR_S; /* no memory now: later, then */
    for (int64_t i = 0; i < count; i++) {
        int64_t at_ns = atomic_peek(&all[i]->ledger.head->next_deadline_ns);

        if (at_ns <= now_ns)
            at_ns = local_tend_name(local, all[i], now_ns);
        if (at_ns < next_ns)
            next_ns = at_ns;
        name_unpin(all[i]);
    }
    mem_free(all);
    return next_ns;
}

static uint32_t *mem_bell(struct backend *b)
{
    return &mem_of_backend(b)->bell;
}

static void mem_rest(struct backend *b, uint32_t seen, int64_t until_ns)
{
    struct futex_watch bell = {mem_bell(b), seen};

    futex_wait_shared(&bell, 1, until_ns);
}

static void mem_close(struct backend *b, bool forked)
{
    struct mem *mem = mem_of_backend(b);
    struct name *n, *all = names_close(&mem->local.names);

    (void)forked;
    while ((n = all)) {
        all = n->next;
        mem_unmake(&mem->local, n);
    }
    mem_free(mem);
}

static const struct backend_ops mem_ops = {
    .acquire = mem_acquire,
    .renew = local_renew,
    .release = local_release,
    .evict = local_evict,
    .resize = local_resize,
    .visit = mem_visit,
    .watch = local_watch,
    .tend = mem_tend,
    .rest = mem_rest,
    .bell = mem_bell,
    .close = mem_close,
};

int mem_open(const struct weir_store_options *options, struct backend **ret)
{
    struct mem *mem = mem_alloc(sizeof *mem);

    if (mem == NULL)
        return WEIR_ENOMEM;
    mem->pid = getpid();
    local_init(&mem->local, &mem_local_ops, options);
    mem->local.backend.ops = &mem_ops;
    mem->local.backend.needs_keeper = true;
    *ret = &mem->local.backend;
    return 0;
}
