/* SPDX-License-Identifier: MIT */
/* What can happen to an entry. */
#include <string.h>

#include "named/ledger_inside.h"

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

void entry_become(struct entry *e, enum entry_state state)
{
    commit(e, (atomic_peek(&e->word) & ~(uint32_t)STATE_MASK) | state);
}

/* ---- news ----------------------------------------------------------------------- */

void news_tell(const ledger *l, const struct entry *e, struct news *news)
{
    news->told[news->tolds++] =
        (struct told){.index = index_of(l, e),
                      .client = e->client,
                      .life = e->life,
                      .bell = e->flags & (state_of(e) == HELD ? ENTRY_BELL : ENTRY_CALL)};
}

/* Who is before it in the queue has changed, and so has whom it must watch, where there is
 * somebody to watch. */
void news_tell_next(const ledger *l, uint32_t index, struct news *news)
{
    if (l->ops->is_dead) {
        news_tell(l, entry_at(l, index), news);
        news->told[news->tolds - 1].next = true;
    }
}

void entry_describe(const ledger *l, const struct entry *e, enum weir_notice_kind what,
                    struct item *item)
{
    item->what = what;
    memcpy(item->id, e->id, ID_BYTES);
    item->slot = e->slot;
    item->token = e->token;
    item->limit = l->head->limit;
    memcpy(item->label, e->label, sizeof item->label);
}

void news_note(const ledger *l, const struct entry *e, enum weir_notice_kind what,
               struct news *news)
{
    entry_describe(l, e, what, &news->item[news->items++]);
}

/* ---- entries ------------------------------------------------------------------------- */

/* It is nobody's any more. */
static void entry_free(ledger *l, struct entry *e)
{
    commit(e, ((atomic_peek(&e->word) >> STATE_BITS) + 1) << STATE_BITS | FREE);
    e->next = l->head->free;
    l->head->free = index_of(l, e);
}

bool entry_is_dead(const ledger *l, const struct entry *e)
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

        if (state_of(e) == ENDED && entry_is_dead(l, e))
            entry_free(l, e);
    }
}

/* A FREE one, its fields not yet filled.  On success `*ret` is good until the next. */
int entry_take(ledger *l, struct entry **ret)
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

void entry_fill(struct entry *e, const struct ask *ask, int64_t now_ns)
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

void entry_set_deadline(ledger *l, struct entry *e, int64_t at_ns)
{
    e->deadline_ns = at_ns;
    if (at_ns < l->head->next_deadline_ns)
        atomic_poke(&l->head->next_deadline_ns, at_ns);
}

/* It gets its permits, a slot and a token. */
void entry_give(ledger *l, struct entry *e, enum entry_state state, int64_t now_ns)
{
    struct ledger_head *head = l->head;
    int64_t allowed_ns = state == GRANTED ? CONFIRM_NS : e->ttl_ns;

    e->slot = slot_take(l);
    e->token = ++head->last_token;
    entry_set_deadline(l, e, e->ttl_ns ? now_ns + allowed_ns : INT64_MAX);
    entry_become(e, state);
    chain_push(l, &head->held, index_of(l, e));
    head->in_use += e->weight;
    head->counts.granted++;
}

void entry_take_back(ledger *l, struct entry *e)
{
    slot_give(l, e->slot);
    chain_remove(l, &l->head->held, e);
    l->head->in_use -= e->weight;
    if (l->head->held.count == 0)
        atomic_poke(&l->head->next_deadline_ns, INT64_MAX);
}

/* Whatever it was, it is FREE. */
void entry_drop(ledger *l, struct entry *e)
{
    switch (state_of(e)) {
    case FREE:
        return;
    case WAITING:
        chain_remove(l, &l->head->queue, e);
        break;
    case GRANTED:
    case HELD:
        entry_take_back(l, e);
        break;
    case ENDED:
        entry_free(l, e); /* it is in no bucket either */
        return;
    }
    bucket_remove(l, e);
    entry_free(l, e);
}

void entry_enqueue(ledger *l, struct entry *e)
{
    e->ticket = ++l->head->last_ticket;
    entry_become(e, WAITING);
    chain_push(l, &l->head->queue, index_of(l, e));
}

/* Send a waiter away, even one that was granted and does not know it: it will read why, and
 * free the entry. */
void entry_throw_out(ledger *l, struct entry *e, int reason, struct news *news)
{
    if (state_of(e) == WAITING)
        chain_remove(l, &l->head->queue, e);
    else
        entry_take_back(l, e);
    bucket_remove(l, e);
    e->reason = (int16_t)reason;
    entry_become(e, ENDED);
    news_tell(l, e, news);
}
