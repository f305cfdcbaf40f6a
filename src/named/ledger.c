/* SPDX-License-Identifier: MIT */
#include "named/ledger.h"

#include "named/ledger_inside.h"

/* ---- serving ----------------------------------------------------------------------------- */

static bool fits(const ledger *l, uint64_t weight)
{
    return l->head->in_use + weight <= l->head->limit;
}

static void grant(ledger *l, struct entry *e, int64_t now_ns, struct news *news)
{
    struct ledger_head *head = l->head;

    chain_remove(l, &head->queue, e);
    e->waited_ns = now_ns - e->since_ns;
    e->since_ns = now_ns;
    if (e->waited_ns > head->counts.longest_wait_ns)
        head->counts.longest_wait_ns = e->waited_ns;
    entry_give(l, e, GRANTED, now_ns);
    news_tell(l, e, news);
}

/* Serve the queue from its head for as long as the head fits. */
static void serve(ledger *l, int64_t now_ns, struct news *news)
{
    uint32_t first = l->head->queue.first;

    while (l->head->queue.first && !news_is_full(news)) {
        struct entry *e = entry_at(l, l->head->queue.first);

        if (entry_is_dead(l, e))
            entry_drop(l, e);
        else if (fits(l, e->weight))
            grant(l, e, now_ns, news);
        else if (e->weight > l->head->limit)
            entry_throw_out(l, e, WEIR_EINVAL, news); /* since a shrink */
        else
            break;
    }
    /* Who is at the head now has the holders to watch. */
    if (l->head->queue.first && l->head->queue.first != first)
        news_tell_next(l, l->head->queue.first, news);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* The grant was not taken up in time.  Its waiter may be stopped: to the end of the queue. */
static void lapse(ledger *l, struct entry *e)
{
    entry_take_back(l, e);
    e->since_ns -= e->waited_ns;
    l->head->counts.lapsed++;
    entry_enqueue(l, e);
}

static void expire_one(ledger *l, struct entry *e, struct news *news)
{
    if (state_of(e) == GRANTED) {
        lapse(l, e);
        return;
    }
    news_tell(l, e, news);
    news_note(l, e, WEIR_NOTICE_EXPIRED, news);
    l->head->counts.expired++;
    entry_drop(l, e);
}

static void expire(ledger *l, int64_t now_ns, struct news *news)
{
    int64_t earliest_ns = INT64_MAX;
    uint32_t next;

    if (now_ns < l->head->next_deadline_ns)
        return;
    for (uint32_t i = l->head->held.first; i; i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if (news_is_full(news)) {
            earliest_ns = now_ns; /* the rest next time */
            break;
        }
        if (e->deadline_ns <= now_ns)
            expire_one(l, e, news);
        else if (e->deadline_ns < earliest_ns)
            earliest_ns = e->deadline_ns;
    }
    atomic_poke(&l->head->next_deadline_ns, earliest_ns);
}

static void bury_holders(ledger *l, struct news *news)
{
    uint32_t next;

    for (uint32_t i = l->head->held.first; i && !news_is_full(news); i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if ((state_of(e) == HELD && (e->flags & ENTRY_DETACHED)) || !entry_is_dead(l, e))
            continue;
        news_note(l, e, WEIR_NOTICE_RECOVERED, news);
        l->head->counts.recovered++;
        entry_drop(l, e);
    }
}

static void bury_waiters(ledger *l)
{
    uint32_t next;

    for (uint32_t i = l->head->queue.first; i; i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if (entry_is_dead(l, e))
            entry_drop(l, e);
    }
}

/* After a shrink: send those away who wait for more than there can be. */
static void refuse_too_heavy(ledger *l, struct news *news)
{
    uint32_t next;

    for (uint32_t i = l->head->shrunk ? l->head->queue.first : NO_ENTRY; i; i = next) {
        struct entry *e = entry_at(l, i);

        if (news_is_full(news))
            return; /* and go on the next time */
        next = e->next;
        if (e->weight > l->head->limit)
            entry_throw_out(l, e, WEIR_EINVAL, news);
    }
    l->head->shrunk = 0;
}

void ledger_tend(ledger *l, int64_t now_ns, struct news *news)
{
    expire(l, now_ns, news);
    refuse_too_heavy(l, news);
    if (l->ops->is_dead) {
        bury_holders(l, news);
        bury_waiters(l);
    }
    serve(l, now_ns, news);
}

void ledger_drop_client(ledger *l, uint32_t client, int64_t now_ns, struct news *news)
{
    uint32_t next;

    for (uint32_t i = l->head->held.first; i; i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if (e->client != client || (e->flags & ENTRY_DETACHED))
            continue;
        l->head->counts.released++;
        entry_drop(l, e);
    }
    serve(l, now_ns, news);
}

/* ---- asking -------------------------------------------------------------------------------------- */

/* Does the name have the limit that is asked for, or may it get it? */
static int settle_limit(ledger *l, const struct ask *ask, int64_t now_ns, struct news *news)
{
    if (ask->limit == 0 || ask->limit == l->head->limit)
        return 0;
    if (ask->resize)
        ledger_resize(l, ask->limit, now_ns, news);
    else if (ledger_is_idle(l))
        l->head->limit = ask->limit;
    else
        return WEIR_EMISMATCH;
    return 0;
}

static bool can_have(const ledger *l, uint64_t weight)
{
    return l->head->queue.first == NO_ENTRY && fits(l, weight);
}

int ledger_ask(ledger *l, const struct ask *ask, int64_t now_ns, uint32_t *ret_index,
               struct news *news)
{
    struct entry *e;

    expire(l, now_ns, news);
    *ret_index = ledger_find(l, ask->id);
    if (*ret_index) {
        serve(l, now_ns, news); /* something may have expired just now */
        return ASK_JOINED;
    }
    if (!can_have(l, ask->weight) || (ask->limit && ask->limit != l->head->limit))
        ledger_tend(l, now_ns, news); /* the dead are not in the way */
    int r = settle_limit(l, ask, now_ns, news);
    if (r < 0)
        return r;
    if (ask->weight > l->head->limit)
        return WEIR_EINVAL;
    bool now = can_have(l, ask->weight);
    if (!now && !ask->may_wait)
        return WEIR_ETIMEDOUT;

    r = entry_take(l, &e);
    if (r < 0)
        return r;
    entry_fill(e, ask, now_ns);
    if (now)
        entry_give(l, e, HELD, now_ns);
    else
        entry_enqueue(l, e);
    *ret_index = index_of(l, e);
    bucket_push(l, *ret_index);
    return now ? ASK_HELD : ASK_QUEUED;
}

/* ---- the holder ------------------------------------------------------------------------------------ */

bool ledger_confirm(ledger *l, uint32_t index, int64_t now_ns)
{
    struct entry *e = entry_at(l, index);

    if (state_of(e) == GRANTED) {
        if (e->ttl_ns)
            entry_set_deadline(l, e, now_ns + e->ttl_ns);
        entry_become(e, HELD);
    }
    return state_of(e) == HELD;
}

/* The entry that holds it, or NULL. */
static struct entry *holding(ledger *l, const uint8_t id[ID_BYTES])
{
    struct entry *e = entry_at(l, ledger_find(l, id));

    return state_of(e) == HELD || state_of(e) == GRANTED ? e : NULL;
}

int ledger_release(ledger *l, const uint8_t id[ID_BYTES], int64_t now_ns, struct item *ret,
                   struct news *news)
{
    expire(l, now_ns, news);
    struct entry *e = holding(l, id);
    if (e == NULL) {
        serve(l, now_ns, news); /* it may have expired just now */
        return WEIR_ENOTHELD;
    }
    if (e->flags & ENTRY_BELL)
        news_tell(l, e, news);
    entry_describe(l, e, WEIR_NOTICE_RELEASED, ret);
    l->head->counts.released++;
    entry_drop(l, e);
    serve(l, now_ns, news);
    return 0;
}

int ledger_renew(ledger *l, const uint8_t id[ID_BYTES], int64_t ttl_ns, int64_t now_ns,
                 struct news *news)
{
    expire(l, now_ns, news);
    struct entry *e = holding(l, id);
    if (e == NULL) {
        serve(l, now_ns, news);
        return WEIR_ENOTHELD;
    }
    if (ttl_ns == 0 && (e->flags & ENTRY_DETACHED))
        return WEIR_EINVAL; /* or nothing but an eviction would ever end it */
    e->ttl_ns = ttl_ns;
    entry_set_deadline(l, e, ttl_ns ? now_ns + ttl_ns : INT64_MAX);
    serve(l, now_ns, news); /* something else may have expired */
    return 0;
}

int ledger_evict(ledger *l, const uint8_t id[ID_BYTES], int64_t now_ns, struct news *news)
{
    uint32_t index = ledger_find(l, id);
    struct entry *e = entry_at(l, index);

    if (index == NO_ENTRY)
        return WEIR_ENOTHELD;
    if (state_of(e) != HELD) {
        entry_throw_out(l, e, WEIR_ECANCELED, news);
    } else {
        news_tell(l, e, news);
        entry_drop(l, e);
    }
    l->head->counts.evicted++;
    serve(l, now_ns, news);
    return 0;
}

void ledger_leave(ledger *l, uint32_t index, int why, int64_t now_ns, struct news *news)
{
    struct ledger_counts *counts = &l->head->counts;
    struct entry *e = entry_at(l, index);

    /* Who comes after it watched it, and is to watch another. */
    if (e->next)
        news_tell_next(l, e->next, news);
    *(why == WEIR_ETIMEDOUT ? &counts->timed_out : &counts->cancelled) += 1;
    news_tell(l, e, news); /* those who joined it must ask anew */
    entry_drop(l, e);
    serve(l, now_ns, news);
}

void ledger_collect(ledger *l, uint32_t index)
{
    entry_drop(l, entry_at(l, index));
}

/* ---- the name -------------------------------------------------------------------------------------------- */

void ledger_resize(ledger *l, uint64_t limit, int64_t now_ns, struct news *news)
{
    l->head->shrunk |= limit < l->head->limit;
    l->head->limit = limit;
    refuse_too_heavy(l, news);
    serve(l, now_ns, news);
}
