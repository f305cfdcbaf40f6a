/* SPDX-License-Identifier: MIT */
/* stack - memory for tasks to run on, pooled.
 *
 * Stacks are mapped in slabs, carved off when first needed, and never unmapped before the
 * pool ends: the first touch of a page costs 2.4 us, a whole task switch 10 ns.  What a
 * stack uses is what it touches, so its size is nearly free.
 *
 *     slab:  | guard | stack .................... header | guard | stack ... header | ...
 *                      ^ bottom     grows down <-- ^ top
 *
 * Guards.  Running over the bottom must hit memory that cannot be touched.  Since Linux
 * 6.13 madvise can mark such pages inside one mapping; before, each guard splits the
 * mapping in two, and the kernel allows 65,530 of them to a process.  We take a quarter,
 * and go on without guards, counting them; the scheduler then looks at the stack pointer
 * at each switch.
 *
 * Nothing here is locked: each worker has a pool of its own. */
#ifndef WEIR_TASK_STACK_H
#define WEIR_TASK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "task/switch.h"

enum { STACK_MIN = 16 * 1024, STACK_DEFAULT = 64 * 1024 };

/* At the top of the stack that it describes, on a cache line of its own. */
struct stack {
    _Alignas(64) struct stack *next; /* in the pool */
    struct context context;
    unsigned valgrind_id;
    bool guarded;
    bool guard_is_mapping; /* counted among those that the kernel allows */
};

struct stack_pool {
    struct stack *free;
    struct slab *slabs; /* newest first; all but the first are carved up */
    size_t stack_bytes;
    uint64_t count, unguarded; /* (a) written by the owner, read by anyone */
};

void stack_pool_init(struct stack_pool *pool, size_t stack_bytes);
void stack_pool_fini(struct stack_pool *pool);

/* NULL when there is no memory. */
struct stack *stack_get(struct stack_pool *pool);
void stack_put(struct stack_pool *pool, struct stack *stack);

/* The most that was ever used of any stack of the pool.  Looks at every page. */
size_t stack_high_water(const struct stack_pool *pool);

/* Does `address` lie in the guard below one of the pool's stacks?  For signal handlers. */
bool stack_guard_hit(const struct stack *stack, const void *address);

#endif
