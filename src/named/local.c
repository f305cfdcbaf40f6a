/* SPDX-License-Identifier: MIT */
#include "named/local.h"

#include <weir/task.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/testpoint.h"
#include "core/park.h"
#include "named/calls.h"
#include "named/keeper.h"
#include "named/observe.h"
#include "named/why.h"

enum { WAIT_ON = 0, HAVE_IT = 1, ASK_AGAIN = 2 }; /* what a look at an entry says */

static int64_t coarse_now_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

/* The exact time takes 20 to 50 ns more than the coarse one, which lags by up to a tick.  It
 * is needed only where somebody could be told a wrong answer: about a TTL that begins, or
 * whether something has expired that somebody waits for. */
static int64_t now_for(const ledger *l, uint64_t weight, int64_t ttl_ns)
{
    const struct ledger_head *head = l->head;

    if (ttl_ns || head->queue.first || head->in_use + weight > head->limit)
        return clock_real_ns();
    return coarse_now_ns();
}

/* ---- news ---------------------------------------------------------------------------- */

static void deliver(struct local *local, struct name *n, struct call *calls,
                    const struct news *news)
{
    calls_wake(calls);
    if (local->ops->wake && news->tolds)
        local->ops->wake(local, n, news);
    for (uint32_t i = 0; i < news->items; i++)
        observe_item(n->text, &news->item[i], "");
}

/* Which of our calls is the first has changed, and so has whom the keeper must watch. */
static void watch_anew(struct local *local)
{
    if (local->ops->sleep)
        keeper_ring(local->backend.keeper);
}

/* The lock is taken again.  True if there is more news. */
static bool tend_more(struct local *local, struct name *n, struct news *news)
{
    if (local->ops->lock(local, n) < 0)
        return false; /* whoever waits looks again by itself */
    news_clear(news);
    ledger_tend(&n->ledger, clock_real_ns(), news);
    return true;
}

void local_finish(struct local *local, struct name *n, struct news *news)
{
    bool more;

    if (news->tolds == 0 && news->items == 0) {
        local->ops->unlock(local, n);
        return;
    }
    name_pin(n);
    do {
        struct call *calls = NULL;

        for (uint32_t i = 0; i < news->tolds; i++)
            if (n->first_call)
                calls_take(n, news->told[i].index, &calls);
        bool left = calls && n->first_call;
        more = news_is_full(news);
        local->ops->unlock(local, n);
        deliver(local, n, calls, news);
        if (left)
            watch_anew(local);
    } while (more && tend_more(local, n, news));
    name_unpin(n);
}

void local_tell_calls(struct local *local, struct name *n)
{
    struct call *calls = NULL;

    if (local->ops->lock(local, n) < 0)
        return;
    calls_take(n, NO_ENTRY, &calls);
    local->ops->unlock(local, n);
    calls_wake(calls);
}

int64_t local_tend_name(struct local *local, struct name *n, int64_t now_ns)
{
    struct news news;

    news_clear(&news);
    if (local->ops->lock(local, n) < 0)
        return now_ns + WEIR_S;
    ledger_tend(&n->ledger, now_ns, &news);
    int64_t next_ns = n->ledger.head->next_deadline_ns;
    local_finish(local, n, &news);
    return next_ns;
}

/* ---- acquire ----------------------------------------------------------------------------- */

static void fill(const struct name *n, uint32_t index, bool joined, struct grant *ret)
{
    const struct entry *e = &n->ledger.entries[index];

    *ret = (struct grant){
        .slot = e->slot,
        .token = e->token,
        .limit = n->ledger.head->limit,
        .expires_at_ns = entry_expires_at_ns(e),
        .taken_back_at_ns = e->deadline_ns,
        .waited_ns = e->waited_ns,
        .joined = joined,
    };
}

/* What became of the wait that may have ended for the reason `why`? */
static int look(struct name *n, struct call *c, int why, struct news *news, struct grant *ret)
{
    ledger *l = &n->ledger;
    struct entry *e = &l->entries[c->index];
    uint32_t word = atomic_get(&e->word);

    if (!same_generation(word, c->word))
        return ASK_AGAIN;
    switch (word_state(word)) {
    case GRANTED:
        ledger_confirm(l, c->index, clock_real_ns());
        /* fall through */
    case HELD:
        fill(n, c->index, c->joined, ret);
        return HAVE_IT;
    case ENDED:
        why = e->reason;
        if (!c->joined)
            ledger_collect(l, c->index);
        return why;
    default:
        if (why < 0 && !c->joined)
            ledger_leave(l, c->index, why, clock_real_ns(), news);
        return why < 0 ? why : WAIT_ON;
    }
}

/* The lock was taken: nothing but a stopped process can keep us from it, and then there is
 * nothing to do but to wait for that. */
static void lock_firmly(struct local *local, struct name *n)
{
    while (local->ops->lock(local, n) < 0)
        ;
}

/* Wait on the event.  When the deadline comes and somebody has taken us off the list, the
 * event is only instructions away, and it is on our stack. */
static int wait_for_event(struct local *local, struct name *n, struct call *c,
                          struct weir_deadline deadline)
{
    struct weir_shield shield;
    int r = weir_event_wait(&c->event, deadline);

    lock_firmly(local, n);
    if (!c->told) {
        bool first = n->first_call == c && c->next;

        call_unlink(n, c);
        if (first)
            watch_anew(local);
        return r;
    }
    if (r < 0) {
        local->ops->unlock(local, n);
        weir_shield_begin(&shield, WEIR_FOREVER);
        while (weir_event_wait(&c->event, WEIR_FOREVER) < 0)
            ;
        weir_shield_end(&shield);
        lock_firmly(local, n);
    }
    return 0;
}

/* Locked before and after. */
static int sleep_once(struct local *local, struct name *n, struct call *c,
                      struct weir_deadline deadline, struct news *news)
{
    bool by_event = local->ops->sleep == NULL || parker_current != NULL;
    int r;

    if (by_event)
        call_link(n, c);
    bool first = n->first_call == c;
    local_finish(local, n, news);
    if (first)
        watch_anew(local);
    TESTPOINT("named: about to wait");
    if (by_event) {
        r = wait_for_event(local, n, c, deadline);
    } else {
        r = local->ops->sleep(local, n, c, deadline);
        lock_firmly(local, n);
    }
    news_clear(news);
    return r;
}

/* Locked before, not after. */
static int wait_in_line(struct local *local, struct name *n, struct call *c,
                        struct weir_deadline deadline, struct news *news, struct grant *ret)
{
    int r = WAIT_ON;

    name_pin(n);
    if (local->ops->sleep && parker_current != NULL) {
        r = keeper_start(local->backend.keeper); /* it waits on behalf of tasks */
        if (r < 0)
            r = look(n, c, r, news, ret);
    }
    while (r == WAIT_ON) {
        r = sleep_once(local, n, c, deadline, news);
        r = look(n, c, r, news, ret);
    }
    local_finish(local, n, news);
    name_unpin(n);
    return r;
}

static void explain(int r, const struct name *n, const struct ask *ask)
{
    unsigned long long limit = n->ledger.head->limit;

    if (r == WEIR_EMISMATCH)
        why(r, "\"%.100s\" is in use with a limit of %llu, not %llu", n->text, limit,
            (unsigned long long)ask->limit);
    if (r == WEIR_EINVAL)
        why(r, "a weight of %llu can never fit the limit of \"%.100s\", which is %llu",
            (unsigned long long)ask->weight, n->text, limit);
}

/* HAVE_IT, ASK_AGAIN, or an error; locked before, not after. */
static int ask_in(struct local *local, struct name *n, struct ask *ask,
                  struct weir_deadline deadline, struct grant *ret)
{
    struct news news;
    ledger *l = &n->ledger;
    int refusal = park_refusal(deadline);
    uint32_t index;

    news_clear(&news);
    ask->may_wait = refusal == 0;
    int64_t now_ns = now_for(l, ask->weight, ask->ttl_ns);
    l->head->used_at_ns = now_ns;
    int r = ledger_ask(l, ask, now_ns, &index, &news);
    if (r < 0) {
        ret->limit = l->head->limit;
        explain(r, n, ask);
        local_finish(local, n, &news);
        return r == WEIR_ETIMEDOUT ? refusal : r;
    }

    struct call c = {.index = index, .joined = r == ASK_JOINED};
    c.word = atomic_get(&l->entries[index].word);
    if (r == ASK_QUEUED) {
        l->entries[index].since_ns = clock_real_ns();
        c.ahead = l->head->queue.count - 1;
    }
    r = look(n, &c, refusal, &news, ret);
    if (r == WAIT_ON)
        return wait_in_line(local, n, &c, deadline, &news, ret);
    local_finish(local, n, &news);
    return r;
}

/* What a new name gets; 0: no name is made for a request that it could never serve. */
static uint64_t limit_of_new(const struct ask *ask)
{
    return ask->limit || ask->weight > 1 ? ask->limit : 1;
}

static int refuse_new(const struct name_key *key, const struct ask *ask)
{
    return why(WEIR_EINVAL,
               "\"%.100s\" would be new, with a limit of 1: a weight of %llu needs one", key->text,
               (unsigned long long)ask->weight);
}

int local_acquire(struct backend *b, const struct name_key *key, struct ask *ask,
                  struct weir_deadline deadline, struct grant *ret)
{
    struct local *local = (struct local *)b;
    struct name *n;
    int r;

    if (local->ops->sleep && parker_current != NULL)
        ask->flags |= ENTRY_CALL;
    do {
        r = local_enter(local, key, limit_of_new(ask), &n);
        if (r < 0)
            return r == WEIR_ENOTHELD ? refuse_new(key, ask) : r;
        r = ask_in(local, n, ask, deadline, ret);
    } while (r == ASK_AGAIN);
    if (r == HAVE_IT && ask->ttl_ns)
        keeper_expect(b->keeper, ret->taken_back_at_ns);
    return r == HAVE_IT ? 0 : r;
}

/* ---- the other verbs ------------------------------------------------------------------------- */

/* Locked, and no news yet. */
static int begin(struct local *local, const struct name_key *key, uint64_t limit, struct name **ret,
                 struct news *news)
{
    news_clear(news);
    return local_enter(local, key, limit, ret);
}

int local_renew(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                int64_t ttl_ns, int64_t *ret_expires_at_ns)
{
    struct local *local = (struct local *)b;
    struct news news;
    struct name *n;
    int r = begin(local, key, 0, &n, &news);

    if (r < 0)
        return r;
    int64_t now_ns = clock_real_ns();
    r = ledger_renew(&n->ledger, id, ttl_ns, now_ns, &news);
    if (r == 0)
        *ret_expires_at_ns = ttl_ns ? now_ns + ttl_ns - ttl_ns / 10 : INT64_MAX;
    n->ledger.head->used_at_ns = now_ns;
    local_finish(local, n, &news);
    if (r == 0 && ttl_ns)
        keeper_expect(b->keeper, now_ns + ttl_ns);
    return r;
}

int local_release(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                  struct item *ret)
{
    struct local *local = (struct local *)b;
    struct news news;
    struct name *n;
    int r = begin(local, key, 0, &n, &news);

    if (r < 0)
        return r;
    int64_t now_ns = now_for(&n->ledger, 0, 0);
    n->ledger.head->used_at_ns = now_ns;
    r = ledger_release(&n->ledger, id, now_ns, ret, &news);
    local_finish(local, n, &news);
    return r;
}

int local_evict(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES])
{
    struct local *local = (struct local *)b;
    struct news news;
    struct name *n;
    int r = begin(local, key, 0, &n, &news);

    if (r < 0)
        return r;
    r = ledger_evict(&n->ledger, id, clock_real_ns(), &news);
    local_finish(local, n, &news);
    return r;
}

int local_resize(struct backend *b, const struct name_key *key, uint64_t limit)
{
    struct local *local = (struct local *)b;
    struct news news;
    struct name *n;
    int r = begin(local, key, limit, &n, &news);

    if (r < 0)
        return r;
    int64_t now_ns = clock_real_ns();
    n->ledger.head->used_at_ns = now_ns;
    ledger_resize(&n->ledger, limit, now_ns, &news);
    local_finish(local, n, &news);
    return 0;
}

int local_watch(struct backend *b, const struct name_key *key, const uint8_t id[ID_BYTES],
                int64_t *ret_expires_at_ns)
{
    struct local *local = (struct local *)b;
    struct name *n;
    int r = local_enter(local, key, 0, &n);

    if (r < 0)
        return r;
    struct entry *e = &n->ledger.entries[ledger_find(&n->ledger, id)];
    r = word_state(atomic_get(&e->word)) == HELD ? 0 : WEIR_ENOTHELD;
    if (r == 0) {
        e->flags |= ENTRY_BELL;
        *ret_expires_at_ns = entry_expires_at_ns(e);
    }
    local->ops->unlock(local, n);
    return r;
}
