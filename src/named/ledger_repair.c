/* SPDX-License-Identifier: MIT */
/* A ledger after a death inside it: everything that is derived is derived anew from the
 * entries' words.  Needs no memory but the ledger's own, and may itself be cut short
 * anywhere and begun again. */
#include <string.h>

#include "named/ledger_inside.h"

static enum entry_state state_at(const ledger *l, uint32_t index)
{
    return state_of(entry_at(l, index));
}

static bool is_leased(enum entry_state state)
{
    return state == GRANTED || state == HELD;
}

/* ---- sorting: lists linked by `next`, merged in pairs of equal size ---------------- */

typedef uint64_t key_fn(const struct entry *e);

static uint64_t ticket_of(const struct entry *e)
{
    return e->ticket;
}

static uint64_t token_of(const struct entry *e)
{
    return e->token;
}

static uint32_t merge(ledger *l, uint32_t a, uint32_t b, key_fn *key)
{
    uint32_t merged = NO_ENTRY, *end = &merged;

    while (a && b) {
        uint32_t *lower = key(entry_at(l, b)) < key(entry_at(l, a)) ? &b : &a;

        *end = *lower;
        end = &entry_at(l, *lower)->next;
        *lower = *end;
    }
    *end = a ? a : b;
    return merged;
}

static uint32_t sorted(ledger *l, uint32_t list, key_fn *key)
{
    uint32_t lists[32] = {NO_ENTRY}; /* the i-th has 2^i entries or none */
    uint32_t all = NO_ENTRY;

    while (list) {
        uint32_t run = list, i = 0;

        list = entry_at(l, run)->next;
        entry_at(l, run)->next = NO_ENTRY;
        while (lists[i]) {
            run = merge(l, lists[i], run, key);
            lists[i++] = NO_ENTRY;
        }
        lists[i] = run;
    }
    for (int i = 0; i < 32; i++)
        all = merge(l, lists[i], all, key);
    return all;
}

static void chain_up(ledger *l, struct chain *c, uint32_t list)
{
    *c = (struct chain){0};
    while (list) {
        uint32_t next = entry_at(l, list)->next;

        chain_push(l, c, list);
        list = next;
    }
}

/* ---- repair --------------------------------------------------------------------------- */

static void forget_derived(ledger *l)
{
    struct ledger_head *head = l->head;

    head->free = NO_ENTRY;
    head->shrunk = 1; /* for all we know */
    head->in_use = 0;
    atomic_poke(&head->next_deadline_ns, INT64_MAX);
    head->full_slots = 0;
    memset(l->buckets, 0, sizeof *l->buckets * (l->bucket_mask + 1));
    memset(l->slots, 0, (head->capacity + 63) / 64 * sizeof *l->slots);
}

static void count_leased(ledger *l, const struct entry *e)
{
    l->head->in_use += e->weight;
    l->slots[e->slot / 64] |= UINT64_C(1) << e->slot % 64;
    if (e->deadline_ns < l->head->next_deadline_ns)
        atomic_poke(&l->head->next_deadline_ns, e->deadline_ns);
}

/* Which list an entry belongs to, or NULL. */
struct lists {
    uint32_t waiting, leased, free;
};

static uint32_t *list_of(struct lists *lists, enum entry_state state)
{
    switch (state) {
    case FREE:
        return &lists->free;
    case WAITING:
        return &lists->waiting;
    case GRANTED:
    case HELD:
        return &lists->leased;
    case ENDED:
        break;
    }
    return NULL;
}

static void sort_in(ledger *l, uint32_t index, struct lists *lists)
{
    enum entry_state state = state_at(l, index);
    uint32_t *list = list_of(lists, state);

    if (list) {
        entry_at(l, index)->next = *list;
        *list = index;
    }
    if (is_leased(state))
        count_leased(l, entry_at(l, index));
    if (is_leased(state) || state == WAITING)
        bucket_push(l, index);
}

void ledger_repair(ledger *l)
{
    struct lists lists = {NO_ENTRY, NO_ENTRY, NO_ENTRY};

    forget_derived(l);
    for (uint32_t i = l->head->fresh; i > 0; i--)
        sort_in(l, i, &lists);
    l->head->free = lists.free;
    chain_up(l, &l->head->queue, sorted(l, lists.waiting, ticket_of));
    chain_up(l, &l->head->held, sorted(l, lists.leased, token_of));
}

/* ---- proof ------------------------------------------------------------------------------- */

static const char *chain_fault(const ledger *l, const struct chain *c, key_fn *key, bool leased)
{
    uint32_t count = 0, before = NO_ENTRY;
    uint64_t last = 0;

    for (uint32_t i = c->first; i; i = entry_at(l, i)->next) {
        const struct entry *e = entry_at(l, i);

        if (++count > l->head->fresh)
            return "a chain is a ring";
        if (leased ? !is_leased(state_at(l, i)) : state_at(l, i) != WAITING)
            return "an entry is in the wrong chain";
        if (e->prev != before)
            return "a chain is not linked backwards";
        if (key(e) <= last)
            return "a chain is out of order";
        if (ledger_find(l, e->id) != i)
            return "an id leads elsewhere";
        last = key(e);
        before = i;
    }
    return count != c->count || c->last != before ? "a chain is miscounted" : NULL;
}

/* Sums over all entries, to be compared with what the head says. */
struct sums {
    uint64_t in_use;
    uint32_t leased, waiting, free;
    int64_t earliest_ns;
};

static const char *entry_fault(const ledger *l, uint32_t i, struct sums *sums)
{
    const struct entry *e = entry_at(l, i);
    enum entry_state state = state_at(l, i);

    sums->waiting += state == WAITING;
    sums->free += state == FREE;
    if (!is_leased(state))
        return NULL;
    sums->leased++;
    sums->in_use += e->weight;
    if (e->deadline_ns < sums->earliest_ns)
        sums->earliest_ns = e->deadline_ns;
    if (!(l->slots[e->slot / 64] >> e->slot % 64 & 1))
        return "a slot is taken and marked free";
    if (e->token > l->head->last_token)
        return "a token is from the future";
    return NULL;
}

static uint32_t slots_taken(const ledger *l)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < (l->head->capacity + 63) / 64; i++)
        taken += (uint32_t)__builtin_popcountll(l->slots[i]);
    return taken;
}

static uint32_t free_ones(const ledger *l)
{
    uint32_t count = 0;

    for (uint32_t i = l->head->free; i && count <= l->head->fresh; i = entry_at(l, i)->next)
        count++;
    return count;
}

const char *ledger_fault(const ledger *l)
{
    struct sums sums = {.earliest_ns = INT64_MAX};
    const struct ledger_head *head = l->head;
    const char *fault = chain_fault(l, &head->queue, ticket_of, false);

    if (fault == NULL)
        fault = chain_fault(l, &head->held, token_of, true);
    for (uint32_t i = 1; i <= head->fresh && fault == NULL; i++)
        fault = entry_fault(l, i, &sums);
    if (fault)
        return fault;
    if (sums.in_use != head->in_use)
        return "the permits in use do not add up";
    if (sums.leased != head->held.count || sums.waiting != head->queue.count)
        return "an entry is in no chain";
    if (sums.leased != slots_taken(l))
        return "two share a slot, or one is taken by nobody";
    if (sums.free != free_ones(l))
        return "a free entry is lost";
    if (sums.earliest_ns < head->next_deadline_ns)
        return "a deadline would be missed";
    return NULL;
}
