/* SPDX-License-Identifier: MIT */
/* Waiting in a ledger that others share, and may die in.
 *
 * A thread sleeps on the word of its own entry, and at the same time on whether those are
 * alive on whom it depends: the head of the queue watches the holders, everyone else the
 * one before it.  So there is always somebody who notices, and nobody has to look at a
 * clock: whoever notices a death takes back what the dead held, and wakes the others who
 * watched.  Whose predecessor changes is told, and watches another.
 *
 * Tasks wait for an event; the keeper's thread sleeps on their behalf, on its bell and on
 * the same deaths.
 *
 * Two exceptions.  Who cannot be watched is asked for, first after 10 us and then less and
 * less often, down to every 20 ms: one of more than 126 holders; one that has called exec, or
 * whose first thread has ended; and one that is dying, since the kernel marks its mutex some
 * 100 us before it lets go of the descriptors.  And everybody looks
 * again after half a second, in case the one who was woken by a death was itself killed
 * before it could do anything about it. */
#include "named/backend/shm.h"

#include <limits.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/testpoint.h"
#include "core/park.h"
#include "named/keeper.h"

static const int64_t FIRST_POLL_NS = 10 * WEIR_US, LAST_POLL_NS = 20 * WEIR_MS;
static const int64_t BACKSTOP_NS = 500 * WEIR_MS;

/* About 20 us: as long as a wake-up across CPUs takes. */
enum { SPIN_PAUSES = 800 };

/* What to sleep on. */
struct vigil {
    struct futex_watch watches[FUTEX_WATCH_MAX];
    uint32_t count;
    bool blind; /* there is somebody who cannot be watched */
    int64_t until_ns;
};

/* ---- whom to watch ------------------------------------------------------------------- */

static void watch_owner(struct shm *shm, const struct entry *e, struct vigil *vigil)
{
    if (e->client == shm->client.index && e->life == shm->client.life)
        return; /* when we die, we need not be told */
    if (vigil->count < FUTEX_WATCH_MAX &&
        shm_watch_death(&shm->client, e->client, e->life, &vigil->watches[vigil->count]))
        vigil->count++;
    else
        vigil->blind = true;
}

/* Under the lock, for an entry that waits. */
static void watch_for(struct shm *shm, const struct name *n, uint32_t index, struct vigil *vigil)
{
    const ledger *l = &n->ledger;
    const struct entry *e = &l->entries[index];

    if (e->prev) {
        watch_owner(shm, &l->entries[e->prev], vigil);
        return;
    }
    vigil->until_ns = clock_earlier(vigil->until_ns, l->head->next_deadline_ns);
    for (uint32_t i = l->head->held.first; i; i = l->entries[i].next)
        if (!(l->entries[i].flags & ENTRY_DETACHED))
            watch_owner(shm, &l->entries[i], vigil);
}

/* Not all at the same time. */
static int64_t backstop_ns(int64_t now_ns)
{
    return now_ns + BACKSTOP_NS / 2 + (int64_t)(id_random() % (uint64_t)BACKSTOP_NS);
}

/* How long to sleep blindly: twice as long as the last time. */
static void shorten(struct vigil *vigil, int64_t *patience_ns, int64_t now_ns)
{
    if (!vigil->blind) {
        *patience_ns = 0;
        return;
    }
    *patience_ns = *patience_ns ? clock_earlier(*patience_ns * 2, LAST_POLL_NS) : FIRST_POLL_NS;
    vigil->until_ns = clock_earlier(vigil->until_ns, now_ns + *patience_ns);
}

static int keep(const struct vigil *vigil)
{
    int r = futex_wait_shared(vigil->watches, vigil->count, vigil->until_ns);

    shm_spread_death(vigil->watches + 1, vigil->count - 1);
    return r;
}

/* ---- a thread ---------------------------------------------------------------------------- */

static bool is_waiting(const struct name *n, const struct call *c)
{
    return atomic_get(&n->ledger.entries[c->index].word) == c->word;
}

/* Worth while when what we wait for seems to be running now, on another CPU. */
static bool changed_soon(const struct name *n, struct call *c)
{
    bool spin = c->ahead + 1 < cpu_count();

    c->ahead = UINT32_MAX - 1; /* only once */
    for (int i = 0; spin && i < SPIN_PAUSES; i++) {
        if (!is_waiting(n, c))
            return true;
        cpu_pause();
    }
    return !is_waiting(n, c);
}

/* False: it is over before it began, or somebody has died already. */
static bool prepare(struct local *local, struct name *n, const struct call *c, struct vigil *vigil)
{
    struct shm *shm = shm_of(local);

    vigil->watches[0] = (struct futex_watch){&n->ledger.entries[c->index].word, c->word};
    vigil->count = 1;
    if (local->ops->lock(local, n) < 0)
        return true; /* look again later */
    bool waits = is_waiting(n, c);
    if (waits)
        watch_for(shm, n, c->index, vigil);
    local->ops->unlock(local, n);
    return waits;
}

int shm_sleep(struct local *local, struct name *n, struct call *c, struct weir_deadline deadline)
{
    uint32_t *asleep = &n->ledger.entries[c->index].asleep;
    struct vigil vigil;

    if (changed_soon(n, c))
        return 0;
    int64_t now_ns = clock_real_ns();
    vigil.until_ns = clock_earlier(deadline.at_ns, backstop_ns(now_ns));
    vigil.blind = false;
    if (!prepare(local, n, c, &vigil))
        return 0;
    shorten(&vigil, &c->patience_ns, now_ns);

    /* Announced before the kernel compares the word; see shm_wake. */
    (void)atomic_swap(asleep, 1);
    TESTPOINT("shm: about to sleep");
    keep(&vigil);
    if (is_waiting(n, c))
        local_tend_name(local, n, clock_real_ns());
    return is_waiting(n, c) && clock_has_passed(deadline.at_ns) ? WEIR_ETIMEDOUT : 0;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* The swap here and the one in shm_sleep are of one word, so one of them is first.  If it is
 * ours, the sleeper's kernel call sees the entry's new word; if not, we see that it sleeps. */
static void wake_sleeper(struct name *n, const struct told *told)
{
    struct entry *e = &n->ledger.entries[told->index];

    if (atomic_swap(&e->asleep, 0))
        futex_wake_shared(&e->word, INT_MAX);
}

void shm_wake(struct local *local, struct name *n, const struct news *news)
{
    struct shm *shm = shm_of(local);

    for (uint32_t i = 0; i < news->tolds; i++) {
        const struct told *told = &news->told[i];

        wake_sleeper(n, told);
        if (told->bell)
            shm_ring(&shm->client, told->client, told->life);
    }
}

/* ---- the keeper ---------------------------------------------------------------------------------- */

static bool has_calls(const struct name *n)
{
    return atomic_peek(&n->first_call) != NULL;
}

int64_t shm_tend(struct backend *b, int64_t now_ns)
{
    struct local *local = (struct local *)b;
    int64_t next_ns = INT64_MAX;
    struct name **all;
    int64_t count = names_pin_all(&local->names, &all);

    if (count < 0)
        return now_ns + LAST_POLL_NS;
    for (int64_t i = 0; i < count; i++) {
        if (has_calls(all[i])) {
            local_tell_calls(local, all[i]);
            local_tend_name(local, all[i], now_ns);
            next_ns = clock_earlier(next_ns, backstop_ns(now_ns));
        }
        name_unpin(all[i]);
    }
    mem_free(all);
    return next_ns;
}

static void watch_for_calls(struct local *local, struct name *n, struct vigil *vigil,
                            int64_t now_ns)
{
    if (local->ops->lock(local, n) < 0)
        return;
    const struct call *c = n->first_call; /* those behind it depend on it */
    if (c && word_state(atomic_get(&n->ledger.entries[c->index].word)) == WAITING)
        watch_for(shm_of(local), n, c->index, vigil);
    else if (c)
        vigil->until_ns = now_ns;
    local->ops->unlock(local, n);
}

void shm_rest(struct backend *b, uint32_t seen, int64_t until_ns)
{
    struct local *local = (struct local *)b;
    struct vigil vigil = {.count = 1, .until_ns = until_ns};
    struct name **all;
    int64_t now_ns = clock_real_ns();
    int64_t count = names_pin_all(&local->names, &all);

    vigil.watches[0] = (struct futex_watch){shm_bell(&shm_of(local)->client), seen};
    for (int64_t i = 0; i < count; i++) {
        if (has_calls(all[i]))
            watch_for_calls(local, all[i], &vigil, now_ns);
        name_unpin(all[i]);
    }
    if (count >= 0)
        mem_free(all);
    shorten(&vigil, &shm_of(local)->patience_ns, now_ns);
    keep(&vigil);
}
