/* SPDX-License-Identifier: MIT */
/* What is derived in a ledger: chains, the index by id, the map of slots. */
#ifndef WEIR_NAMED_LEDGER_DERIVED_H
#define WEIR_NAMED_LEDGER_DERIVED_H

#include "base/atomic.h"
#include "named/ledger.h"

static inline struct entry *entry_at(const ledger *l, uint32_t index)
{
    return &l->entries[index];
}

static inline uint32_t index_of(const ledger *l, const struct entry *e)
{
    return (uint32_t)(e - l->entries);
}

static inline enum entry_state state_of(const struct entry *e)
{
    return word_state(atomic_peek(&e->word));
}

void chain_push(ledger *l, struct chain *c, uint32_t index);
void chain_remove(ledger *l, struct chain *c, const struct entry *e);

void bucket_push(ledger *l, uint32_t index);
void bucket_remove(ledger *l, const struct entry *e);

uint32_t slot_take(ledger *l);
void slot_give(ledger *l, uint32_t slot);

#endif
