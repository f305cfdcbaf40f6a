/* SPDX-License-Identifier: MIT */
/* Which names there are: found, made, and forgotten when nobody has used them for long. */
#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "named/local.h"

enum { FIRST_CROWD = 256 };

static bool is_gone(const struct name *n)
{
    return atomic_get(&n->ledger.head->gone) != 0;
}

/* Nobody has pinned it, nobody can find it now; and who has its lock keeps it. */
static bool may_go(const struct name *n, void *arg)
{
    struct local *local = arg;
    struct name *found = (struct name *)(uintptr_t)n;

    if (!is_gone(n) || !local->ops->try_lock(local, found))
        return false;
    local->ops->unlock(local, found);
    return true;
}

/* Unmake those that are gone and that nobody uses. */
static void sweep_gone(struct local *local)
{
    struct name *n, *removed = names_remove(&local->names, may_go, local);

    while ((n = removed)) {
        removed = n->next;
        local->ops->unmake(local, n);
    }
}

/* Under the name's lock. */
static bool is_forgettable(const struct local *local, const struct name *n, int64_t now_ns)
{
    return ledger_is_idle(&n->ledger) && n->first_call == NULL &&
           now_ns - n->ledger.head->used_at_ns >= local->forget_after_ns;
}

void local_forget_if_idle(struct local *local, struct name *n)
{
    if (local->ops->lock(local, n) < 0)
        return;
    if (is_gone(n) || is_forgettable(local, n, clock_real_ns()))
        local->ops->forget(local, n);
    local->ops->unlock(local, n);
}

void local_forget(struct local *local)
{
    struct name **all;
    int64_t count = names_pin_all(&local->names, &all);

    for (int64_t i = 0; i < count; i++) {
        local_forget_if_idle(local, all[i]);
        name_unpin(all[i]);
    }
    if (count >= 0)
        mem_free(all);
    sweep_gone(local);
    uint32_t left = atomic_peek(&local->names.count);
    atomic_poke(&local->crowd, left * 2 > FIRST_CROWD ? left * 2 : FIRST_CROWD);
}

/* Tokens grow for ever: a new name starts above every one that was forgotten, and, by the
 * clock, above those that nobody remembers. */
uint64_t local_first_token(uint64_t floor)
{
    uint64_t now_us = (uint64_t)clock_read_ns(CLOCK_REALTIME) / 1000;

    return now_us > floor ? now_us : floor;
}

static int add_name(struct local *local, const struct name_key *key, uint64_t limit,
                    struct name **ret)
{
    struct name *made;

    if (atomic_peek(&local->names.count) >= atomic_peek(&local->crowd))
        local_forget(local);
    int r = local->ops->make(local, key, limit, &made);
    if (r < 0)
        return r;
    name_set_key(made, key);
    *ret = names_add(&local->names, made);
    if (*ret != made)
        local->ops->unmake(local, made);
    return *ret ? 0 : WEIR_ENOMEM;
}

static bool try_lock(void *arg, struct name *n)
{
    struct local *local = arg;

    return local->ops->try_lock(local, n);
}

/* A pinned name, locked instead. */
static int lock_pinned(struct local *local, struct name *n)
{
    int r = local->ops->lock(local, n);

    name_unpin(n);
    return r;
}

/* The name, locked.  `limit` as for make. */
int local_enter(struct local *local, const struct name_key *key, uint64_t limit, struct name **ret)
{
    for (;;) {
        bool locked;
        struct name *n = names_find_and_lock(&local->names, key, try_lock, local, &locked);
        int r = n ? 0 : add_name(local, key, limit, &n);

        if (r == 0 && !locked)
            r = lock_pinned(local, n);
        if (r < 0)
            return r;
        *ret = n;
        if (!is_gone(n))
            return 0;
        local->ops->forget(local, n); /* whoever began that may have died */
        local->ops->unlock(local, n);
        sweep_gone(local);
    }
}

void local_init(struct local *local, const struct local_ops *ops,
                const struct weir_store_options *options)
{
    local->ops = ops;
    local->crowd = FIRST_CROWD;
    local->forget_after_ns =
        options && options->forget_after_ns ? options->forget_after_ns : 60 * WEIR_S;
}
