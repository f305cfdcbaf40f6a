/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/task.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "named/owner.h"
#include "named/store.h"
#include "named/tended_inside.h"

/* ---- the table ----------------------------------------------------------------- */

static struct tended **bucket_of(const struct tended_leases *all, const uint8_t id[ID_BYTES])
{
    return &all->buckets[id_hash(id) % TENDED_BUCKETS];
}

struct tended *tended_find(const struct tended_leases *all, const char *name,
                           const uint8_t id[ID_BYTES])
{
    struct tended *t = all->buckets ? *bucket_of(all, id) : NULL;

    while (t && (memcmp(t->id, id, ID_BYTES) != 0 || strcmp(t->name, name) != 0))
        t = t->next;
    return t;
}

static void insert(struct tended_leases *all, struct tended *t)
{
    struct tended **bucket = bucket_of(all, t->id);

    t->next = *bucket;
    *bucket = t;
}

static void extract(struct tended_leases *all, struct tended *t)
{
    struct tended **at = bucket_of(all, t->id);

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    atomic_poke(&all->count, all->count - 1);
    timer_disarm(&all->timers, &t->timer);
}

/* Room for one more among the timers, and a table, so that adding cannot fail. */
static int reserve(struct tended_leases *all)
{
    int r = timer_reserve(&all->timers, all->count + 1);

    if (r == 0 && all->buckets == NULL) {
        all->buckets = mem_alloc(TENDED_BUCKETS * sizeof(struct tended *));
        r = all->buckets ? 0 : WEIR_ENOMEM;
    }
    return r;
}

void tended_free(struct tended *t)
{
    if (t->fd >= 0)
        close(t->fd);
    mem_free(t);
}

/* ---- beginning -------------------------------------------------------------------- */

bool tended_is_needed(const struct weir_lease_request *request)
{
    bool of_task = owner_is_task() && !(request->flags & WEIR_LEASE_DETACHED);

    return of_task || request->on_lost ||
           (request->flags & (WEIR_LEASE_RENEW | WEIR_LEASE_CANCEL_HOLDER));
}

static bool is_watched(const struct weir_lease_request *request)
{
    return request->on_lost || (request->flags & WEIR_LEASE_CANCEL_HOLDER);
}

static struct tended *tended_new(const char *name)
{
    struct tended *t = mem_alloc(sizeof *t);

    if (t) {
        t->fd = -1;
        name_copy(t->name, name);
    }
    return t;
}

/* The place in the table is counted from here on. */
static int claim_place(struct tended_leases *all)
{
    lock_take(&all->lock);
    int r = reserve(all);
    if (r == 0)
        atomic_poke(&all->count, all->count + 1);
    lock_drop(&all->lock);
    return r;
}

static void give_place(struct tended_leases *all)
{
    lock_take(&all->lock);
    atomic_poke(&all->count, all->count - 1);
    lock_drop(&all->lock);
}

int tended_prepare(struct weir_store *store, const struct weir_lease_request *request,
                   struct tended **ret)
{
    struct tended *t = tended_new(request->name);
    int r = t ? claim_place(&store->tended) : WEIR_ENOMEM;

    if (r == 0 && owner_is_task() && !(request->flags & WEIR_LEASE_DETACHED)) {
        r = owner_prepare(&t->owned);
        if (r < 0)
            give_place(&store->tended);
    }
    if (r < 0) {
        mem_free(t);
        return r;
    }
    t->flags = request->flags;
    t->ttl_ns = request->ttl_ns;
    t->on_lost = request->on_lost;
    t->arg = request->arg;
    t->watched = is_watched(request);
    t->holder = weir_task_self();
    if (request->label)
        strncpy(t->label, request->label, WEIR_LABEL_MAX);
    *ret = t;
    return 0;
}

void tended_discard(struct weir_store *store, struct tended *t)
{
    give_place(&store->tended);
    tended_free(t);
}

/* When to look at it next: to renew it, or to give it up. */
static int64_t next_look_ns(const struct tended *t, int64_t now_ns)
{
    if (t->ttl_ns == 0 || !(t->flags & WEIR_LEASE_RENEW))
        return t->watched ? t->lease.expires_at_ns : INT64_MAX;
    int64_t third = t->ttl_ns / 3, jitter = third / 8 + 1;
    return now_ns + third - (int64_t)(id_random() % (uint64_t)jitter);
}

void tended_arm(struct weir_store *store, struct tended *t, int64_t now_ns)
{
    struct tended_leases *all = &store->tended;
    int64_t at_ns = next_look_ns(t, now_ns);

    timer_disarm(&all->timers, &t->timer);
    if (at_ns != INT64_MAX)
        timer_arm(&all->timers, &t->timer, at_ns);
}

void tended_begin(struct weir_store *store, struct tended *t, const struct weir_lease *lease,
                  uint64_t limit)
{
    struct tended_leases *all = &store->tended;

    t->limit = limit;
    t->lease = *lease;
    id_parse(lease->id, t->id);
    TESTPOINT("named: acquired, not yet tended");
    if (t->owned.owner)
        owner_add(&t->owned, store, t->name, t->id);
    bool watched = t->watched;
    lock_take(&all->lock);
    insert(all, t); /* from here on others may end and free it */
    tended_arm(store, t, clock_real_ns());
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    TESTPOINT("named: tended, and known to others");
    if (watched)
        keeper_ring(&store->keeper); /* it may have been taken away already, and nobody knew */
    keeper_expect(&store->keeper, next_ns);
}

/* ---- ending -------------------------------------------------------------------------- */

static void wait_until_told(struct tended *t)
{
    struct weir_shield shield;

    weir_shield_begin(&shield, WEIR_FOREVER);
    while (weir_event_wait(&t->told, WEIR_FOREVER) < 0)
        ;
    weir_shield_end(&shield);
}

void tended_end(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES])
{
    struct tended_leases *all = &store->tended;

    if (atomic_peek(&all->count) == 0)
        return;
    lock_take(&all->lock);
    struct tended *t = tended_find(all, name, id);
    if (t == NULL) {
        lock_drop(&all->lock);
        return;
    }
    extract(all, t);
    bool telling = t->telling, self = telling && keeper_is_self(&store->keeper);
    t->released = self;
    lock_drop(&all->lock);

    owner_remove(&t->owned);
    if (self)
        return; /* on_lost released it: whoever called that frees it */
    if (telling)
        wait_until_told(t);
    tended_free(t);
}

bool tended_is_lost(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES])
{
    struct tended_leases *all = &store->tended;

    if (atomic_peek(&all->count) == 0)
        return false;
    lock_take(&all->lock);
    const struct tended *t = tended_find(all, name, id);
    bool lost = t && t->lost;
    lock_drop(&all->lock);
    return lost;
}

void tended_renewed(struct weir_store *store, const char *name, const struct weir_lease *lease,
                    int64_t ttl_ns)
{
    struct tended_leases *all = &store->tended;
    uint8_t id[ID_BYTES];

    if (atomic_peek(&all->count) == 0 || !id_parse(lease->id, id))
        return;
    lock_take(&all->lock);
    struct tended *t = tended_find(all, name, id);
    if (t && !t->lost) {
        t->ttl_ns = ttl_ns;
        t->lease.expires_at_ns = lease->expires_at_ns;
        tended_arm(store, t, clock_real_ns());
    }
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    keeper_expect(&store->keeper, next_ns);
}

/* ---- the descriptor ---------------------------------------------------------------------------- */

/* Look after a lease that nobody has looked after so far. */
static int adopt(struct weir_store *store, const struct name_key *key,
                 const struct weir_lease *lease, const uint8_t id[ID_BYTES])
{
    struct backend *b = store->backend;
    struct tended *t = tended_new(key->text);
    int r = t ? claim_place(&store->tended) : WEIR_ENOMEM;

    if (r < 0) {
        mem_free(t);
        return r;
    }
    r = b->ops->watch(b, key, id, &(int64_t){0});
    if (r < 0) {
        tended_discard(store, t);
        return r;
    }
    t->watched = true;
    t->ttl_ns = lease->expires_at_ns == INT64_MAX ? 0 : 1; /* how long does not matter */
    tended_begin(store, t, lease, 0);
    return 0;
}

/* Under the lock. */
static int give_fd(struct weir_store *store, struct tended *t)
{
    if (t->fd < 0)
        t->fd = eventfd(t->lost, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->fd < 0)
        return -errno;
    t->watched = true;
    if (!t->lost && !(t->flags & WEIR_LEASE_RENEW))
        tended_arm(store, t, 0);
    return t->fd;
}

int tended_lost_fd(struct weir_store *store, const struct name_key *key,
                   const struct weir_lease *lease)
{
    struct tended_leases *all = &store->tended;
    struct backend *b = store->backend;
    uint8_t id[ID_BYTES];
    int r = keeper_start(&store->keeper);

    if (r < 0)
        return r;
    if (!id_parse(lease->id, id))
        return WEIR_EINVAL;
    for (;;) {
        lock_take(&all->lock);
        struct tended *t = tended_find(all, key->text, id);
        r = t ? give_fd(store, t) : 0;
        lock_drop(&all->lock);
        if (t)
            break;
        r = adopt(store, key, lease, id);
        if (r < 0)
            return r;
    }
    if (r >= 0 && b->ops->watch(b, key, id, &(int64_t){0}) == WEIR_ENOTHELD)
        keeper_ring(&store->keeper); /* it was taken away before we watched */
    keeper_expect(&store->keeper, timer_next_ns(&all->timers));
    return r;
}

void tended_close(struct weir_store *store, bool forked)
{
    struct tended_leases *all = &store->tended;

    for (uint32_t i = 0; all->buckets && i < TENDED_BUCKETS; i++) {
        struct tended *t;

        while ((t = all->buckets[i])) {
            all->buckets[i] = t->next;
            if (!forked) /* whose locks may be held by nobody */
                owner_remove(&t->owned);
            tended_free(t);
        }
    }
    mem_free(all->buckets);
    timer_heap_fini(&all->timers);
}
