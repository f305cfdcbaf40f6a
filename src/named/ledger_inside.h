/* SPDX-License-Identifier: MIT */
/* The parts of a ledger, for its own files. */
#ifndef WEIR_NAMED_LEDGER_INSIDE_H
#define WEIR_NAMED_LEDGER_INSIDE_H

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

/* ---- what is derived (ledger_derived.c) --------------------------------------- */

void chain_push(ledger *l, struct chain *c, uint32_t index);
void chain_remove(ledger *l, struct chain *c, const struct entry *e);

void bucket_push(ledger *l, uint32_t index);
void bucket_remove(ledger *l, const struct entry *e);

uint32_t slot_take(ledger *l);
void slot_give(ledger *l, uint32_t slot);

/* ---- entries (ledger_entry.c) --------------------------------------------------- */

void entry_become(struct entry *e, enum entry_state state);
bool entry_is_dead(const ledger *l, const struct entry *e);

/* A FREE one, its fields not yet filled; good until the next is taken.  0, or no room. */
int entry_take(ledger *l, struct entry **ret);
void entry_fill(struct entry *e, const struct ask *ask, int64_t now_ns);

/* GRANTED or HELD: it gets its permits, a slot and a token. */
void entry_give(ledger *l, struct entry *e, enum entry_state state, int64_t now_ns);
void entry_take_back(ledger *l, struct entry *e);
void entry_set_deadline(ledger *l, struct entry *e, int64_t at_ns);

void entry_enqueue(ledger *l, struct entry *e);
void entry_throw_out(ledger *l, struct entry *e, int reason, struct news *news);

/* Whatever it was, it is FREE. */
void entry_drop(ledger *l, struct entry *e);

/* ---- news (ledger_entry.c) --------------------------------------------------------- */

void entry_describe(const ledger *l, const struct entry *e, enum weir_notice_kind what,
                    struct item *item);
void news_tell(const ledger *l, const struct entry *e, struct news *news);
void news_tell_next(const ledger *l, uint32_t index, struct news *news);
void news_note(const ledger *l, const struct entry *e, enum weir_notice_kind what,
               struct news *news);

#endif
