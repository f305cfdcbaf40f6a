/* SPDX-License-Identifier: MIT */
#include "named/names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"

enum { FIRST_BUCKETS = 16 };

void name_set_key(struct name *n, const struct name_key *key)
{
    n->hash = key->hash;
    n->length = key->length;
    memmove(n->text, key->text, key->length + 1); /* which may be that very text */
}

static struct name **bucket_of(const struct names *names, uint64_t hash)
{
    return &names->buckets[hash >> 32 & names->mask];
}

static struct name *look_up(const struct names *names, const struct name_key *key)
{
    struct name *n = names->buckets ? *bucket_of(names, key->hash) : NULL;

    while (n && (n->hash != key->hash || n->length != key->length ||
                 memcmp(n->text, key->text, key->length) != 0))
        n = n->next;
    return n;
}

struct name *names_find_and_lock(struct names *names, const struct name_key *key,
                                 try_lock_fn *try_lock, void *arg, bool *ret_locked)
{
    lock_take(&names->lock);
    struct name *n = look_up(names, key);
    *ret_locked = n && try_lock(arg, n);
    if (n && !*ret_locked)
        name_pin(n);
    lock_drop(&names->lock);
    return n;
}

static bool never(void *arg, struct name *n)
{
    (void)arg;
    (void)n;
    return false;
}

struct name *names_find(struct names *names, const struct name_key *key)
{
    bool locked;

    return names_find_and_lock(names, key, never, NULL, &locked);
}

/* Move everything to twice as many buckets; returns the old ones. */
static struct name **rehash(struct names *names, struct name **buckets, uint32_t size)
{
    struct name **old = names->buckets, *n;
    uint32_t old_size = old ? names->mask + 1 : 0;

    atomic_poke(&names->buckets, buckets);
    atomic_poke(&names->mask, size - 1);
    for (uint32_t i = 0; i < old_size; i++) {
        while ((n = old[i])) {
            struct name **to = bucket_of(names, n->hash);

            old[i] = n->next;
            n->next = *to;
            *to = n;
        }
    }
    return old;
}

/* Memory is had before the lock is taken, and given back after it is dropped. */
struct name *names_add(struct names *names, struct name *n)
{
    uint32_t size = atomic_peek(&names->buckets) ? atomic_peek(&names->mask) + 1 : 0;
    bool crowded = atomic_peek(&names->count) >= size;
    struct name **spare = NULL;

    if (crowded) {
        size = size ? size * 2 : FIRST_BUCKETS;
        spare = mem_alloc(size * sizeof(struct name *));
    }
    lock_take(&names->lock);
    if (spare && (names->buckets == NULL || size > names->mask + 1))
        spare = rehash(names, spare, size);
    struct name_key key = {n->text, n->length, n->hash};
    struct name *there = look_up(names, &key);
    if (there) {
        name_pin(there);
    } else if (names->buckets) {
        struct name **bucket = bucket_of(names, n->hash);

        n->pins = 1;
        n->next = *bucket;
        *bucket = there = n;
        atomic_poke(&names->count, names->count + 1);
    }
    lock_drop(&names->lock);
    mem_free(spare);
    return there;
}

void name_pin(struct name *n)
{
    atomic_add(&n->pins, 1);
}

void name_unpin(struct name *n)
{
    atomic_add(&n->pins, (uint32_t)-1);
}

struct name *names_remove(struct names *names, bool (*unwanted)(const struct name *n, void *arg),
                          void *arg)
{
    struct name *removed = NULL;

    lock_take(&names->lock);
    for (uint32_t i = 0; names->buckets && i <= names->mask; i++) {
        struct name **at = &names->buckets[i];

        while (*at) {
            struct name *n = *at;

            if (atomic_get(&n->pins) > 0 || !unwanted(n, arg)) {
                at = &n->next;
                continue;
            }
            *at = n->next;
            n->next = removed;
            removed = n;
            atomic_poke(&names->count, names->count - 1);
        }
    }
    lock_drop(&names->lock);
    return removed;
}

int64_t names_pin_all(struct names *names, struct name ***ret)
{
    uint32_t room = atomic_peek(&names->count) + 64; /* for those that come meanwhile */
    struct name **all = mem_alloc(room * sizeof(struct name *));
    int64_t count = 0;

    if (all == NULL)
        return WEIR_ENOMEM;
    lock_take(&names->lock);
    for (uint32_t i = 0; names->buckets && i <= names->mask; i++) {
        for (struct name *n = names->buckets[i]; n && count < room; n = n->next) {
            atomic_add(&n->pins, 1);
            all[count++] = n;
        }
    }
    lock_drop(&names->lock);
    *ret = all;
    return count;
}

struct name *names_close(struct names *names)
{
    struct name *all = NULL, *n;

    for (uint32_t i = 0; names->buckets && i <= names->mask; i++) {
        while ((n = names->buckets[i])) {
            names->buckets[i] = n->next;
            n->next = all;
            all = n;
        }
    }
    mem_free(names->buckets);
    return all;
}
