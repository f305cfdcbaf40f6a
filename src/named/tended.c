/* SPDX-License-Identifier: MIT */
#include "named/tended.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/task.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/container.h"
#include "named/observe.h"
#include "named/owner.h"
#include "named/store.h"

enum { TENDED_BUCKETS = 1024 };

/* Locking key: (l) under the lock of the store's tended leases  (c) constant  (k) keeper */
struct tended {
    struct tended *next;     /* (l) in its bucket                                       */
    struct timer timer;      /* (l) when to look at it                                  */
    struct weir_lease lease; /* (l)                                                     */
    uint8_t id[ID_BYTES];    /* (c)                                                     */
    int64_t ttl_ns;          /* (l)                                                     */
    unsigned flags;          /* (c)                                                     */
    weir_on_lost *on_lost;   /* (c)                                                     */
    void *arg;               /* (c)                                                     */
    struct weir_task holder; /* (c) to be cancelled                                     */
    int fd;                  /* (l) to become readable; -1 when nobody asked            */
    bool watched;            /* (l) somebody wants to be told of its loss               */
    bool lost;               /* (l)                                                     */
    uint32_t checked;        /* (l) the last round in which it was asked for            */
    bool telling;            /* (l) its holder is being told of the loss                */
    bool released;           /* (l) inside that call: whoever tells is to free it       */
    struct weir_event told;  /*     that call has returned                              */
    struct owned owned;      /*     by a task; owner.c                                  */
    char label[WEIR_LABEL_MAX + 1];
    char name[WEIR_NAME_MAX + 1];
};

static struct tended *tended_of(struct timer *timer)
{
    return container_of(timer, struct tended, timer);
}

/* ---- the table ----------------------------------------------------------------- */

static struct tended **bucket_of(const struct tended_leases *all, const uint8_t id[ID_BYTES])
{
    uint64_t half[2];

    memcpy(half, id, ID_BYTES);
    return &all->buckets[((half[0] ^ half[1]) * UINT64_C(0x9E3779B97F4A7C15) >> 32) %
                         TENDED_BUCKETS];
}

static struct tended *find(const struct tended_leases *all, const uint8_t id[ID_BYTES])
{
    struct tended *t = all->buckets ? *bucket_of(all, id) : NULL;

    while (t && memcmp(t->id, id, ID_BYTES) != 0)
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
    all->count--;
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

static void tended_free(struct tended *t)
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
        all->count++;
    lock_drop(&all->lock);
    return r;
}

static void give_place(struct tended_leases *all)
{
    lock_take(&all->lock);
    all->count--;
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

static void arm(struct weir_store *store, struct tended *t, int64_t now_ns)
{
    struct tended_leases *all = &store->tended;
    int64_t at_ns = next_look_ns(t, now_ns);

    timer_disarm(&all->timers, &t->timer);
    if (at_ns != INT64_MAX)
        timer_arm(&all->timers, &t->timer, at_ns);
}

void tended_begin(struct weir_store *store, struct tended *t, const struct weir_lease *lease)
{
    struct tended_leases *all = &store->tended;

    t->lease = *lease;
    id_parse(lease->id, t->id);
    lock_take(&all->lock);
    insert(all, t);
    arm(store, t, clock_real_ns());
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    if (t->owned.owner)
        owner_add(&t->owned, store, t->name, t->id);
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

void tended_end(struct weir_store *store, const uint8_t id[ID_BYTES])
{
    struct tended_leases *all = &store->tended;

    if (atomic_peek(&all->count) == 0)
        return;
    lock_take(&all->lock);
    struct tended *t = find(all, id);
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

void tended_renewed(struct weir_store *store, const struct weir_lease *lease, int64_t ttl_ns)
{
    struct tended_leases *all = &store->tended;
    uint8_t id[ID_BYTES];

    if (atomic_peek(&all->count) == 0 || !id_parse(lease->id, id))
        return;
    lock_take(&all->lock);
    struct tended *t = find(all, id);
    if (t && !t->lost) {
        t->ttl_ns = ttl_ns;
        t->lease.expires_at_ns = lease->expires_at_ns;
        arm(store, t, clock_real_ns());
    }
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    keeper_expect(&store->keeper, next_ns);
}

/* ---- loss ---------------------------------------------------------------------------------- */

static void tell_holder(struct tended *t)
{
    uint64_t one = 1;
    ssize_t written = t->fd >= 0 ? write(t->fd, &one, sizeof one) : 0;

    (void)written; /* it cannot be full */
    observe(&(struct weir_notice){
        .what = WEIR_NOTICE_LOST,
        .name = t->name,
        .id = t->lease.id,
        .label = t->label,
        .task = "",
        .token = t->lease.token,
        .slot = t->lease.slot,
    });
    if (t->flags & WEIR_LEASE_CANCEL_HOLDER)
        weir_task_cancel(t->holder);
    if (t->on_lost)
        t->on_lost(t->name, &t->lease, t->arg);
}

/* Called under the lock, which is dropped meanwhile: `t` is in the table, or it is gone. */
UNCHECKED static void lose(struct weir_store *store, struct tended *t)
{
    struct tended_leases *all = &store->tended;

    t->lost = t->telling = true;
    t->told = (struct weir_event)WEIR_EVENT_INIT;
    timer_disarm(&all->timers, &t->timer);
    lock_drop(&all->lock);
    tell_holder(t);
    lock_take(&all->lock);
    t->telling = false;
    if (t->released)
        tended_free(t);
    else
        weir_event_set(&t->told);
}

/* ---- the keeper's work ------------------------------------------------------------------------ */

/* What a lease is called: it may be released and freed while the store is asked about it. */
struct called {
    struct name_key key;
    uint8_t id[ID_BYTES];
    char name[WEIR_NAME_MAX + 1];
};

static void copy_call(const struct tended *t, struct called *copy)
{
    memcpy(copy->id, t->id, ID_BYTES);
    name_copy(copy->name, t->name);
    name_key(copy->name, &copy->key); /* which was good once */
}

/* Called under the lock, as lose().  A store that cannot be asked now is asked again soon. */
UNCHECKED static void renew(struct weir_store *store, struct tended *t, int64_t now_ns)
{
    struct tended_leases *all = &store->tended;
    struct backend *b = store->backend;
    int64_t expires_at_ns = 0, ttl_ns = t->ttl_ns;
    struct called copy;

    copy_call(t, &copy);
    lock_drop(&all->lock);
    int r = b->ops->renew(b, &copy.key, copy.id, ttl_ns, &expires_at_ns);
    lock_take(&all->lock);

    t = find(all, copy.id); /* it may have been released meanwhile */
    if (t == NULL || t->lost)
        return;
    if (r == WEIR_ENOTHELD || (r < 0 && now_ns >= t->lease.expires_at_ns)) {
        lose(store, t);
    } else if (r < 0) {
        timer_disarm(&all->timers, &t->timer);
        timer_arm(&all->timers, &t->timer, now_ns + ttl_ns / 20 + 1);
    } else {
        t->lease.expires_at_ns = expires_at_ns;
        arm(store, t, now_ns);
    }
}

static struct tended *next_unchecked(const struct tended_leases *all, uint32_t bucket)
{
    struct tended *t = all->buckets[bucket];

    while (t && (!t->watched || t->lost || t->checked == all->round))
        t = t->next;
    return t;
}

/* Is it still ours?  Called under the lock, as lose(). */
UNCHECKED static void check(struct weir_store *store, struct tended *t)
{
    struct tended_leases *all = &store->tended;
    struct backend *b = store->backend;
    struct called copy;

    t->checked = all->round;
    copy_call(t, &copy);
    lock_drop(&all->lock);
    bool gone = b->ops->watch(b, &copy.key, copy.id) == WEIR_ENOTHELD;
    lock_take(&all->lock);
    t = gone ? find(all, copy.id) : NULL;
    if (t && !t->lost)
        lose(store, t);
}

/* Somebody rang.  The table may change while one is checked; each is checked once. */
UNCHECKED static void check_watched(struct weir_store *store)
{
    struct tended_leases *all = &store->tended;
    struct tended *t;

    all->round++;
    for (uint32_t i = 0; all->buckets && i < TENDED_BUCKETS; i++)
        while ((t = next_unchecked(all, i)))
            check(store, t);
}

UNCHECKED int64_t tended_work(struct weir_store *store, int64_t now_ns, bool rung)
{
    struct tended_leases *all = &store->tended;
    struct timer *timer;

    lock_take(&all->lock);
    while ((timer = timer_pop(&all->timers, now_ns))) {
        struct tended *t = tended_of(timer);

        if (t->flags & WEIR_LEASE_RENEW)
            renew(store, t, now_ns);
        else
            lose(store, t);
    }
    if (rung)
        check_watched(store);
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    return next_ns;
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
    r = b->ops->watch(b, key, id);
    if (r < 0) {
        tended_discard(store, t);
        return r;
    }
    t->watched = true;
    t->ttl_ns = lease->expires_at_ns == INT64_MAX ? 0 : 1; /* how long does not matter */
    tended_begin(store, t, lease);
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
        arm(store, t, 0);
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
        struct tended *t = find(all, id);
        r = t ? give_fd(store, t) : 0;
        lock_drop(&all->lock);
        if (t)
            break;
        r = adopt(store, key, lease, id);
        if (r < 0)
            return r;
    }
    if (r >= 0 && b->ops->watch(b, key, id) == WEIR_ENOTHELD)
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
