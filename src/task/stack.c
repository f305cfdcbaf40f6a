/* SPDX-License-Identifier: MIT */
#include "task/stack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"

#ifdef WEIR_VALGRIND
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(from, to) 0
#define VALGRIND_STACK_DEREGISTER(id)     ((void)(id))
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* Large enough that no single frame of ordinary code steps over it. */
enum { GUARD_BYTES = 16 * 1024, STACKS_A_SLAB = 64 };

struct slab {
    struct slab *next;
    char *map;
    size_t carved; /* stacks in use or pooled */
};

/* (a) Guards that cost a mapping each, in the whole process. */
static uint32_t mapped_guards;

static size_t stride(const struct stack_pool *pool)
{
    return pool->stack_bytes + GUARD_BYTES;
}

static struct stack *stack_at(const struct stack_pool *pool, char *map, size_t i)
{
    char *top = map + (i + 1) * stride(pool);

    return (struct stack *)(void *)(top - sizeof(struct stack));
}

/* A quarter of the mappings that the kernel allows. */
static uint32_t most_mapped_guards(void)
{
    static uint32_t most;
    uint32_t known = atomic_peek(&most);
    char text[32] = "";

    if (known)
        return known;
    known = 65530 / 4;
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) > 0 && atol(text) > 0)
            known = (uint32_t)(atol(text) / 4);
        close(fd);
    }
    atomic_poke(&most, known);
    return known;
}

static bool guard_by_mapping(char *at)
{
    if (atomic_add(&mapped_guards, 1) <= most_mapped_guards() &&
        mprotect(at, GUARD_BYTES, PROT_NONE) == 0)
        return true;
    atomic_add(&mapped_guards, (uint32_t)-1);
    return false;
}

static void guard(struct stack *stack, char *at)
{
    stack->guarded = madvise(at, GUARD_BYTES, MADV_GUARD_INSTALL) == 0;
    stack->guard_is_mapping = !stack->guarded && guard_by_mapping(at);
    stack->guarded |= stack->guard_is_mapping;
}

static struct stack *carve(struct stack_pool *pool, struct slab *slab)
{
    size_t i = slab->carved;
    char *at = slab->map + i * stride(pool), *bottom = at + GUARD_BYTES;
    struct stack *stack = stack_at(pool, slab->map, i);

    guard(stack, at);
    stack->context.bottom = bottom;
    stack->context.bytes = (size_t)((char *)stack - bottom);
    stack->context.fiber = context_fiber_create();
    stack->valgrind_id = VALGRIND_STACK_REGISTER(bottom, stack);
    atomic_poke(&pool->count, pool->count + 1);
    if (!stack->guarded)
        atomic_poke(&pool->unguarded, pool->unguarded + 1);
    atomic_put(&slab->carved, i + 1); /* others may look at it now */
    return stack;
}

static struct slab *add_slab(struct stack_pool *pool)
{
    size_t bytes = stride(pool) * STACKS_A_SLAB;
    struct slab *slab = mem_alloc(sizeof *slab);

    if (slab == NULL)
        return NULL;
    slab->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (slab->map == MAP_FAILED) {
        mem_free(slab);
        return NULL;
    }
    madvise(slab->map, bytes, MADV_NOHUGEPAGE); /* a task is to cost a page, not 2 MiB */
    slab->next = pool->slabs;
    atomic_put(&pool->slabs, slab);
    return slab;
}

void stack_pool_init(struct stack_pool *pool, size_t stack_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    *pool = (struct stack_pool){.stack_bytes = (stack_bytes + page - 1) / page * page};
}

static void forget(struct stack *stack)
{
    if (stack->guard_is_mapping)
        atomic_add(&mapped_guards, (uint32_t)-1);
    VALGRIND_STACK_DEREGISTER(stack->valgrind_id);
    context_fiber_destroy(stack->context.fiber);
}

void stack_pool_fini(struct stack_pool *pool)
{
    struct slab *slab;

    while ((slab = pool->slabs)) {
        for (size_t i = 0; i < slab->carved; i++)
            forget(stack_at(pool, slab->map, i));
        munmap(slab->map, stride(pool) * STACKS_A_SLAB);
        pool->slabs = slab->next;
        mem_free(slab);
    }
}

struct stack *stack_get(struct stack_pool *pool)
{
    struct stack *stack = pool->free;
    struct slab *slab = pool->slabs;

    if (stack) {
        pool->free = stack->next;
        return stack;
    }
    if (slab == NULL || slab->carved == STACKS_A_SLAB)
        slab = add_slab(pool);
    return slab ? carve(pool, slab) : NULL;
}

void stack_put(struct stack_pool *pool, struct stack *stack)
{
    stack->next = pool->free;
    pool->free = stack;
}

/* The stacks may be in use, by threads and under sanitizers that would object. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static size_t used_bytes(
    const struct stack *stack)
{
    const char *p = stack->context.bottom;

    /* Untouched pages read as zero; reading maps the one zero page, no memory. */
    while (p < (const char *)stack && *(const uint64_t *)(const void *)p == 0)
        p += sizeof(uint64_t);
    return (size_t)((const char *)stack - p);
}

size_t stack_high_water(const struct stack_pool *pool)
{
    size_t most = 0;

    for (const struct slab *slab = atomic_get(&pool->slabs); slab; slab = slab->next) {
        for (size_t i = 0; i < atomic_get(&slab->carved); i++) {
            size_t used = used_bytes(stack_at(pool, slab->map, i));

            most = used > most ? used : most;
        }
    }
    return most;
}

bool stack_guard_hit(const struct stack *stack, const void *address)
{
    const char *at = address, *bottom = stack->context.bottom;

    return stack->guarded && at < bottom && at >= bottom - GUARD_BYTES;
}
