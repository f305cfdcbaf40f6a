/* SPDX-License-Identifier: MIT */
#include "named/keeper.h"

#include <limits.h>

#include "base/clock.h"
#include "base/thread.h"
#include "named/store.h"

static uint32_t *bell_of(const struct keeper *k)
{
    struct backend *b = k->store->backend;

    return b->ops->bell(b);
}

/* The bell is read first: whatever is rung for after that is seen by rest().  While it
 * works, every expectation rings, since it cannot be known whether it was in time. */
static void *keeper_main(void *arg)
{
    struct keeper *k = arg;
    struct backend *b = k->store->backend;
    uint32_t *bell = bell_of(k), answered = 0;

    for (;;) {
        uint32_t seen = atomic_get(bell);

        if (atomic_get(&k->stop))
            return NULL;
        (void)atomic_swap(&k->wakes_at_ns, INT64_MAX);
        int64_t now_ns = clock_real_ns();
        int64_t next_ns = tended_work(k->store, now_ns, seen != answered);
        next_ns = clock_earlier(next_ns, b->ops->tend(b, now_ns));
        answered = seen;
        atomic_put(&k->wakes_at_ns, next_ns);
        b->ops->rest(b, seen, next_ns);
    }
}

int keeper_start(struct keeper *k)
{
    int r = 0;

    if (atomic_get(&k->started))
        return 0;
    /* The lock is held while the thread is made.  That is long for a lock, once. */
    lock_take(&k->lock);
    if (!k->started) {
        atomic_put(&k->wakes_at_ns, INT64_MAX);
        r = thread_start(&k->thread, keeper_main, k);
        if (r == 0)
            atomic_put(&k->started, true);
    }
    lock_drop(&k->lock);
    return r;
}

void keeper_ring(struct keeper *k)
{
    uint32_t *bell = bell_of(k);

    atomic_add(bell, 1);
    futex_wake_shared(bell, INT_MAX);
}

void keeper_expect(struct keeper *k, int64_t at_ns)
{
    if (atomic_get(&k->started) && at_ns < atomic_get(&k->wakes_at_ns))
        keeper_ring(k);
}

bool keeper_is_self(const struct keeper *k)
{
    return atomic_get(&k->started) && pthread_equal(k->thread, pthread_self());
}

void keeper_stop(struct keeper *k)
{
    if (!atomic_get(&k->started))
        return;
    atomic_put(&k->stop, true);
    keeper_ring(k);
    pthread_join(k->thread, NULL);
}
