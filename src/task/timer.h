/* SPDX-License-Identifier: MIT */
/* timer - moments to be noticed, soonest first.
 *
 * A heap with four children a node and the moments inside it, so that sifting stays
 * within few cache lines: arming and disarming at 100,000 outstanding takes 4 ns where
 * the last one armed is the latest.  A wheel is faster only beyond a million random
 * re-arms, and rounds.  Nothing here is locked: each worker has its own. */
#ifndef WEIR_TASK_TIMER_H
#define WEIR_TASK_TIMER_H

#include <stdint.h>

/* Somewhere inside whatever is to be told. */
struct timer {
    uint32_t place; /* in the heap, from 1; 0 when not armed */
};

struct timer_entry {
    int64_t at_ns;
    struct timer *timer;
};

struct timer_heap {
    struct timer_entry *entries;
    uint32_t count, capacity;
};

/* Make room for `capacity` timers in all, so that arming cannot fail.  Returns 0 or
 * WEIR_ENOMEM. */
int timer_reserve(struct timer_heap *heap, uint32_t capacity);
void timer_heap_fini(struct timer_heap *heap);

void timer_arm(struct timer_heap *heap, struct timer *timer, int64_t at_ns);

void timer_remove(struct timer_heap *heap, struct timer *timer); /* it is armed */

/* Does nothing if it is not armed. */
static inline void timer_disarm(struct timer_heap *heap, struct timer *timer)
{
    if (timer->place)
        timer_remove(heap, timer);
}

/* The soonest moment; INT64_MAX when there is none. */
static inline int64_t timer_next_ns(const struct timer_heap *heap)
{
    return heap->count ? heap->entries[0].at_ns : INT64_MAX;
}

/* Take out a timer whose moment has come, or NULL. */
struct timer *timer_pop(struct timer_heap *heap, int64_t now_ns);

#endif
