/* SPDX-License-Identifier: MIT */
/* What the keeper does for tended leases: renew them, and tell their holders of a loss. */
#include <string.h>
#include <unistd.h>

#include "base/container.h"
#include "core/op.h"
#include "named/observe.h"
#include "named/store.h"
#include "named/tended_inside.h"

static struct tended *tended_of(struct timer *timer)
{
    return container_of(timer, struct tended, timer);
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
        .limit = t->limit,
        .token = t->lease.token,
        .slot = t->lease.slot,
    });
    if (t->flags & WEIR_LEASE_CANCEL_HOLDER)
        weir_task_cancel(t->holder);
    if (t->on_lost) {
        parker *outer = callback_begin();

        t->on_lost(t->name, &t->lease, t->arg);
        callback_end(outer);
    }
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
    uint64_t token; /* an id that was chosen may come again */
    char name[WEIR_NAME_MAX + 1];
};

static void copy_call(const struct tended *t, struct called *copy)
{
    memcpy(copy->id, t->id, ID_BYTES);
    copy->token = t->lease.token;
    name_copy(copy->name, t->name);
    name_key(copy->name, &copy->key); /* which was good once */
}

/* The same lease, if it is still there and not lost. */
static struct tended *find_again(const struct tended_leases *all, const struct called *copy)
{
    struct tended *t = tended_find(all, copy->name, copy->id);

    return t && !t->lost && t->lease.token == copy->token ? t : NULL;
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

    t = find_again(all, &copy); /* it may have been released meanwhile */
    if (t == NULL)
        return;
    if (r == WEIR_ENOTHELD || (r < 0 && now_ns >= t->lease.expires_at_ns)) {
        lose(store, t);
    } else if (r < 0) {
        timer_disarm(&all->timers, &t->timer);
        timer_arm(&all->timers, &t->timer, now_ns + ttl_ns / 20 + 1);
    } else {
        t->lease.expires_at_ns = expires_at_ns;
        tended_arm(store, t, now_ns);
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
    bool gone = b->ops->watch(b, &copy.key, copy.id, &(int64_t){0}) == WEIR_ENOTHELD;
    lock_take(&all->lock);
    t = gone ? find_again(all, &copy) : NULL;
    if (t)
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

/* Its time is over, unless somebody renewed it through another handle. */
UNCHECKED static void check_time(struct weir_store *store, struct tended *t, int64_t now_ns)
{
    struct tended_leases *all = &store->tended;
    struct backend *b = store->backend;
    struct called copy;
    int64_t expires_at_ns = 0;

    copy_call(t, &copy);
    lock_drop(&all->lock);
    int r = b->ops->watch(b, &copy.key, copy.id, &expires_at_ns);
    lock_take(&all->lock);
    t = find_again(all, &copy);
    if (t == NULL)
        return;
    if (r == 0 && expires_at_ns > now_ns) {
        t->lease.expires_at_ns = expires_at_ns;
        tended_arm(store, t, now_ns);
    } else {
        lose(store, t);
    }
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
            check_time(store, t, now_ns);
    }
    if (rung)
        check_watched(store);
    int64_t next_ns = timer_next_ns(&all->timers);
    lock_drop(&all->lock);
    return next_ns;
}
