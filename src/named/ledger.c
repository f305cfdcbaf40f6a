/* SPDX-License-Identifier: MIT */
#include "named/ledger.h"

#include <string.h>

#include "base/atomic.h"
#include "named/ledger_derived.h"

_Static_assert(sizeof(struct entry) == 192, "three cache lines, and part of the file's format");

static const int64_t CONFIRM_NS = WEIR_S; /* for a waiter to take up what it was granted */

/* The one store that makes a change happen.  Whoever dies leaves the stores that it made
 * before and none that it would have made after, provided that the compiler kept their
 * order: hence the two signal fences, which are no instructions. */
static void commit(struct entry *e, uint32_t word)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    atomic_put(&e->word, word);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void become(struct entry *e, enum entry_state state)
{
    commit(e, (atomic_peek(&e->word) & ~(uint32_t)STATE_MASK) | state);
}

/* ---- news ----------------------------------------------------------------------- */

static void tell(const ledger *l, const struct entry *e, struct news *news)
{
    news->told[news->tolds++] =
        (struct told){.index = index_of(l, e),
                      .client = e->client,
                      .life = e->life,
                      .bell = e->flags & (state_of(e) == HELD ? ENTRY_BELL : ENTRY_CALL)};
}

/* Who is before it in the queue has changed, and so has whom it must watch, where there is
 * somebody to watch. */
static void tell_next(const ledger *l, uint32_t index, struct news *news)
{
    if (l->ops->is_dead) {
        tell(l, entry_at(l, index), news);
        news->told[news->tolds - 1].next = true;
    }
}

static void describe(const ledger *l, const struct entry *e, enum weir_notice_kind what,
                     struct item *item)
{
    item->what = what;
    memcpy(item->id, e->id, ID_BYTES);
    item->slot = e->slot;
    item->token = e->token;
    item->limit = l->head->limit;
    memcpy(item->label, e->label, sizeof item->label);
}

static void note(const ledger *l, const struct entry *e, enum weir_notice_kind what,
                 struct news *news)
{
    describe(l, e, what, &news->item[news->items++]);
}

/* ---- entries ------------------------------------------------------------------------- */

/* It is nobody's any more. */
static void entry_free(ledger *l, struct entry *e)
{
    commit(e, ((atomic_peek(&e->word) >> STATE_BITS) + 1) << STATE_BITS | FREE);
    e->next = l->head->free;
    l->head->free = index_of(l, e);
}

static bool is_dead(const ledger *l, const struct entry *e)
{
    return l->ops->is_dead && l->ops->is_dead(l, e);
}

static bool is_exhausted(const ledger *l)
{
    return l->head->free == NO_ENTRY && l->head->fresh + 1 >= l->head->capacity;
}

/* Waiters that were sent away and died before they read why. */
static void free_ended(ledger *l)
{
    for (uint32_t i = 1; i <= l->head->fresh; i++) {
        struct entry *e = entry_at(l, i);

        if (state_of(e) == ENDED && is_dead(l, e))
            entry_free(l, e);
    }
}

/* A FREE one, its fields not yet filled.  On success `*ret` is good until the next. */
static int entry_take(ledger *l, struct entry **ret)
{
    struct ledger_head *head = l->head;

    if (is_exhausted(l))
        free_ended(l);
    if (is_exhausted(l)) {
        int r = l->ops->grow(l);
        if (r < 0)
            return r;
        head = l->head; /* which may have moved */
    }
    if (head->free) {
        *ret = entry_at(l, head->free);
        head->free = (*ret)->next;
    } else {
        *ret = entry_at(l, ++head->fresh);
    }
    return 0;
}

static void entry_fill(struct entry *e, const struct ask *ask, int64_t now_ns)
{
    size_t label = ask->label ? strnlen(ask->label, WEIR_LABEL_MAX) : 0;

    e->client = ask->client;
    e->life = ask->life;
    e->pid = ask->pid;
    e->flags = ask->flags;
    e->weight = ask->weight;
    e->ttl_ns = ask->ttl_ns;
    e->since_ns = now_ns;
    e->waited_ns = 0;
    memcpy(e->id, ask->id, ID_BYTES);
    if (label)
        memcpy(e->label, ask->label, label);
    e->label[label] = '\0';
}

static void set_deadline(ledger *l, struct entry *e, int64_t at_ns)
{
    e->deadline_ns = at_ns;
    if (at_ns < l->head->next_deadline_ns)
        l->head->next_deadline_ns = at_ns;
}

/* It gets its permits, a slot and a token. */
static void give(ledger *l, struct entry *e, enum entry_state state, int64_t now_ns)
{
    struct ledger_head *head = l->head;
    int64_t allowed_ns = state == GRANTED ? CONFIRM_NS : e->ttl_ns;

    e->slot = slot_take(l);
    e->token = ++head->last_token;
    set_deadline(l, e, e->ttl_ns ? now_ns + allowed_ns : INT64_MAX);
    become(e, state);
    chain_push(l, &head->held, index_of(l, e));
    head->in_use += e->weight;
    head->counts.granted++;
}

static void take_back(ledger *l, struct entry *e)
{
    slot_give(l, e->slot);
    chain_remove(l, &l->head->held, e);
    l->head->in_use -= e->weight;
}

/* Whatever it was, it is FREE. */
static void entry_drop(ledger *l, struct entry *e)
{
    switch (state_of(e)) {
    case FREE:
        return;
    case WAITING:
        chain_remove(l, &l->head->queue, e);
        break;
    case GRANTED:
    case HELD:
        take_back(l, e);
        break;
    case ENDED:
        entry_free(l, e); /* it is in no bucket either */
        return;
    }
    bucket_remove(l, e);
    entry_free(l, e);
}

static void enqueue(ledger *l, struct entry *e)
{
    e->ticket = ++l->head->last_ticket;
    become(e, WAITING);
    chain_push(l, &l->head->queue, index_of(l, e));
}

/* Send a waiter away, even one that was granted and does not know it: it will read why, and
 * free the entry. */
static void throw_out(ledger *l, struct entry *e, int reason, struct news *news)
{
    if (state_of(e) == WAITING)
        chain_remove(l, &l->head->queue, e);
    else
        take_back(l, e);
    bucket_remove(l, e);
    e->reason = (int16_t)reason;
    become(e, ENDED);
    tell(l, e, news);
}

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
    give(l, e, GRANTED, now_ns);
    tell(l, e, news);
}

/* Serve the queue from its head for as long as the head fits. */
static void serve(ledger *l, int64_t now_ns, struct news *news)
{
    uint32_t first = l->head->queue.first;

    while (l->head->queue.first && !news_is_full(news)) {
        struct entry *e = entry_at(l, l->head->queue.first);

        if (is_dead(l, e))
            entry_drop(l, e);
        else if (fits(l, e->weight))
            grant(l, e, now_ns, news);
        else if (e->weight > l->head->limit)
            throw_out(l, e, WEIR_EINVAL, news); /* since a shrink */
        else
            break;
    }
    /* Who is at the head now has the holders to watch. */
    if (l->head->queue.first && l->head->queue.first != first)
        tell_next(l, l->head->queue.first, news);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* The grant was not taken up in time.  Its waiter may be stopped: to the end of the queue. */
static void lapse(ledger *l, struct entry *e)
{
    take_back(l, e);
    e->since_ns -= e->waited_ns;
    l->head->counts.lapsed++;
    enqueue(l, e);
}

static void expire_one(ledger *l, struct entry *e, struct news *news)
{
    if (state_of(e) == GRANTED) {
        lapse(l, e);
        return;
    }
    tell(l, e, news);
    note(l, e, WEIR_NOTICE_EXPIRED, news);
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
    l->head->next_deadline_ns = earliest_ns;
}

static void bury_holders(ledger *l, struct news *news)
{
    uint32_t next;

    for (uint32_t i = l->head->held.first; i && !news_is_full(news); i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if ((state_of(e) == HELD && (e->flags & ENTRY_DETACHED)) || !is_dead(l, e))
            continue;
        note(l, e, WEIR_NOTICE_RECOVERED, news);
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
        if (is_dead(l, e))
            entry_drop(l, e);
    }
}

void ledger_tend(ledger *l, int64_t now_ns, struct news *news)
{
    expire(l, now_ns, news);
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
    if (*ret_index)
        return ASK_JOINED;
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
        give(l, e, HELD, now_ns);
    else
        enqueue(l, e);
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
            set_deadline(l, e, now_ns + e->ttl_ns);
        become(e, HELD);
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
    if (e == NULL)
        return WEIR_ENOTHELD;
    if (e->flags & ENTRY_BELL)
        tell(l, e, news);
    describe(l, e, WEIR_NOTICE_RELEASED, ret);
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
    if (e == NULL)
        return WEIR_ENOTHELD;
    e->ttl_ns = ttl_ns;
    set_deadline(l, e, ttl_ns ? now_ns + ttl_ns : INT64_MAX);
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
        throw_out(l, e, WEIR_ECANCELED, news);
    } else {
        tell(l, e, news);
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
        tell_next(l, e->next, news);
    *(why == WEIR_ETIMEDOUT ? &counts->timed_out : &counts->cancelled) += 1;
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
    uint32_t next;

    l->head->limit = limit;
    for (uint32_t i = l->head->queue.first; i && !news_is_full(news); i = next) {
        struct entry *e = entry_at(l, i);

        next = e->next;
        if (e->weight > limit)
            throw_out(l, e, WEIR_EINVAL, news);
    }
    serve(l, now_ns, news);
}
