/* SPDX-License-Identifier: MIT */
#include "task/timer.h"

#include <stddef.h>
#include <string.h>

#include <weir/error.h>

#include "base/alloc.h"

enum { CHILDREN = 4 };

static void put(struct timer_heap *heap, uint32_t i, struct timer_entry e)
{
    heap->entries[i] = e;
    e.timer->place = i + 1;
}

/* Find the place of e at or above the hole at i. */
static void sift_up(struct timer_heap *heap, uint32_t i, struct timer_entry e)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / CHILDREN;

        if (heap->entries[parent].at_ns <= e.at_ns)
            break;
        put(heap, i, heap->entries[parent]);
        i = parent;
    }
    put(heap, i, e);
}

static uint32_t soonest_child(const struct timer_heap *heap, uint32_t i)
{
    uint32_t first = i * CHILDREN + 1, soonest = first;

    for (uint32_t c = first + 1; c < first + CHILDREN && c < heap->count; c++) {
        if (heap->entries[c].at_ns < heap->entries[soonest].at_ns)
            soonest = c;
    }
    return soonest;
}

/* Find the place of e at or below the hole at i. */
static void sift_down(struct timer_heap *heap, uint32_t i, struct timer_entry e)
{
    while (i * CHILDREN + 1 < heap->count) {
        uint32_t child = soonest_child(heap, i);

        if (heap->entries[child].at_ns >= e.at_ns)
            break;
        put(heap, i, heap->entries[child]);
        i = child;
    }
    put(heap, i, e);
}

int timer_reserve(struct timer_heap *heap, uint32_t capacity)
{
    if (capacity <= heap->capacity)
        return 0;
    if (capacity < 2 * heap->capacity)
        capacity = 2 * heap->capacity;

    struct timer_entry *entries = mem_alloc(capacity * sizeof *entries);
    if (entries == NULL)
        return WEIR_ENOMEM;
    if (heap->count)
        memcpy(entries, heap->entries, heap->count * sizeof *entries);
    mem_free(heap->entries);
    heap->entries = entries;
    heap->capacity = capacity;
    return 0;
}

void timer_heap_fini(struct timer_heap *heap)
{
    mem_free(heap->entries);
}

void timer_arm(struct timer_heap *heap, struct timer *timer, int64_t at_ns)
{
    sift_up(heap, heap->count++, (struct timer_entry){at_ns, timer});
}

void timer_remove(struct timer_heap *heap, struct timer *timer)
{
    uint32_t i = timer->place - 1;
    struct timer_entry last = heap->entries[--heap->count];

    timer->place = 0;
    if (last.timer == timer)
        return;
    if (i > 0 && last.at_ns < heap->entries[(i - 1) / CHILDREN].at_ns)
        sift_up(heap, i, last);
    else
        sift_down(heap, i, last);
}

struct timer *timer_pop(struct timer_heap *heap, int64_t now_ns)
{
    if (heap->count == 0 || heap->entries[0].at_ns > now_ns)
        return NULL;

    struct timer *timer = heap->entries[0].timer;
    timer_remove(heap, timer);
    return timer;
}
