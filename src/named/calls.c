/* SPDX-License-Identifier: MIT */
#include "named/calls.h"

#include "base/atomic.h"

void call_link(struct name *n, struct call *c)
{
    c->event = (struct weir_event)WEIR_EVENT_INIT;
    c->told = false;
    c->next = NULL;
    c->prev = n->last_call;
    if (c->prev)
        c->prev->next = c;
    else
        atomic_poke(&n->first_call, c);
    n->last_call = c;
    n->joiners += c->joined;
}

void call_unlink(struct name *n, struct call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        atomic_poke(&n->first_call, c->next);
    if (c->next)
        c->next->prev = c->prev;
    else
        n->last_call = c->prev;
    n->joiners -= c->joined;
}

static bool still_waits(const struct name *n, const struct call *c)
{
    return atomic_get(&n->ledger.entries[c->index].word) == c->word;
}

void calls_take(struct name *n, uint32_t index, struct call **list)
{
    struct call *next;

    for (struct call *c = n->first_call; c; c = next) {
        next = c->next;
        if ((index != NO_ENTRY && c->index != index) || still_waits(n, c))
            continue;
        bool only = index != NO_ENTRY && n->joiners == 0;
        call_unlink(n, c);
        c->told = true;
        c->next = *list;
        *list = c;
        if (only)
            return;
    }
}

void calls_wake(struct call *list)
{
    struct call *next;

    for (; list; list = next) {
        next = list->next;
        weir_event_set(&list->event); /* our last access to it */
    }
}
