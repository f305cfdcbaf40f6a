/* SPDX-License-Identifier: MIT */
#include "named/ledger_inside.h"

#include <string.h>

/* ---- chains and buckets ------------------------------------------------------- */

void chain_push(ledger *l, struct chain *c, uint32_t index)
{
    struct entry *e = entry_at(l, index);

    e->next = NO_ENTRY;
    e->prev = c->last;
    if (c->last)
        entry_at(l, c->last)->next = index;
    else
        c->first = index;
    c->last = index;
    c->count++;
}

void chain_remove(ledger *l, struct chain *c, const struct entry *e)
{
    if (e->prev)
        entry_at(l, e->prev)->next = e->next;
    else
        c->first = e->next;
    if (e->next)
        entry_at(l, e->next)->prev = e->prev;
    else
        c->last = e->prev;
    c->count--;
}

static uint32_t *bucket_of(const ledger *l, const uint8_t id[ID_BYTES])
{
    return &l->buckets[id_hash(id) & l->bucket_mask];
}

void bucket_push(ledger *l, uint32_t index)
{
    struct entry *e = entry_at(l, index);
    uint32_t *first = bucket_of(l, e->id);

    e->next_in_bucket = *first;
    *first = index;
}

void bucket_remove(ledger *l, const struct entry *e)
{
    uint32_t *at = bucket_of(l, e->id), index = index_of(l, e);

    while (*at != index)
        at = &entry_at(l, *at)->next_in_bucket;
    *at = e->next_in_bucket;
}

uint32_t ledger_find(const ledger *l, const uint8_t id[ID_BYTES])
{
    uint32_t index = *bucket_of(l, id);

    while (index && memcmp(entry_at(l, index)->id, id, ID_BYTES) != 0)
        index = entry_at(l, index)->next_in_bucket;
    return index;
}

/* ---- slots --------------------------------------------------------------------- */

/* The lowest that is free.  There is one: there are as many as entries. */
uint32_t slot_take(ledger *l)
{
    uint32_t word = l->head->full_slots;

    while (l->slots[word] == UINT64_MAX)
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(~l->slots[word]);
    l->slots[word] |= UINT64_C(1) << bit;
    l->head->full_slots = word;
    return word * 64 + bit;
}

void slot_give(ledger *l, uint32_t slot)
{
    l->slots[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (slot / 64 < l->head->full_slots)
        l->head->full_slots = slot / 64;
}
