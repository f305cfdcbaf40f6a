/* SPDX-License-Identifier: MIT */
/* What there is to say of a name: copied under its lock, said without it. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "named/ledger_inside.h"
#include "named/local.h"

static void copy_entry(const struct entry *e, struct weir_lease_info *info)
{
    bool held = state_of(e) != WAITING;

    id_print(e->id, info->id);
    memcpy(info->label, e->label, sizeof info->label);
    info->pid = e->flags & ENTRY_DETACHED ? 0 : e->pid;
    info->slot = held ? e->slot : 0;
    info->token = held ? e->token : 0;
    info->weight = e->weight;
    info->since_ns = e->since_ns;
    info->expires_at_ns = held ? e->deadline_ns : INT64_MAX;
}

static size_t copy_chain(const ledger *l, const struct chain *c, struct weir_lease_info *to)
{
    size_t count = 0;

    for (uint32_t i = c->first; i; i = entry_at(l, i)->next)
        copy_entry(entry_at(l, i), &to[count++]);
    return count;
}

static unsigned percent(uint64_t held, uint64_t limit)
{
    uint64_t whole = (held * 100 + limit / 2) / limit; /* at most 2^53 each */

    return whole < UINT_MAX ? (unsigned)whole : UINT_MAX;
}

static void copy_stats(const struct name *n, struct visit *visit, struct weir_name_stats *stats)
{
    const ledger *l = &n->ledger;
    const struct ledger_head *head = l->head;
    const struct ledger_counts *counts = &head->counts;

    *stats = (struct weir_name_stats){
        .name = n->text,
        .limit = head->limit,
        .held = head->in_use,
        .percent = percent(head->in_use, head->limit),
        .longest_wait_ns = counts->longest_wait_ns,
        .granted = counts->granted,
        .released = counts->released,
        .timed_out = counts->timed_out,
        .cancelled = counts->cancelled,
        .expired = counts->expired,
        .recovered = counts->recovered,
        .evicted = counts->evicted,
        .lapsed = counts->lapsed,
        .lease = visit->room,
    };
    stats->leases = copy_chain(l, &head->held, visit->room);
    stats->waiter = visit->room + stats->leases;
    stats->waiters = copy_chain(l, &head->queue, visit->room + stats->leases);
}

static int make_room(struct visit *visit, size_t rooms)
{
    struct weir_lease_info *room = mem_alloc((rooms + 16) * sizeof *room);

    if (room == NULL)
        return WEIR_ENOMEM;
    mem_free(visit->room);
    visit->room = room;
    visit->rooms = rooms + 16;
    return 0;
}

/* Locked, with room for all; 1 if the name is gone.  The dead and the expired are taken
 * back first, so that nobody sees them. */
static int lock_with_room(struct local *local, struct name *n, struct visit *visit)
{
    local_tend_name(local, n, clock_real_ns());
    for (;;) {
        int r = local->ops->lock(local, n);
        if (r < 0)
            return r;
        const struct ledger_head *head = n->ledger.head;
        size_t needed = (size_t)head->held.count + head->queue.count;
        if (atomic_get(&head->gone)) {
            local->ops->unlock(local, n);
            return 1;
        }
        if (needed <= visit->rooms)
            return 0;
        local->ops->unlock(local, n);
        r = make_room(visit, needed);
        if (r < 0)
            return r;
    }
}

int local_visit_name(struct local *local, struct name *n, struct visit *visit)
{
    struct weir_name_stats stats;
    int r = lock_with_room(local, n, visit);

    if (r != 0)
        return r < 0 ? r : 0;
    copy_stats(n, visit, &stats);
    local->ops->unlock(local, n);
    return visit->each(&stats, visit->arg);
}

int local_visit_table(struct local *local, struct visit *visit)
{
    struct name **all;
    int r = 0;

    local_forget(local);
    int64_t count = names_pin_all(&local->names, &all);
    if (count < 0)
        return (int)count;
    for (int64_t i = 0; i < count; i++) {
        if (r == 0)
            r = local_visit_name(local, all[i], visit);
        name_unpin(all[i]);
    }
    mem_free(all);
    mem_free(visit->room);
    return r;
}
