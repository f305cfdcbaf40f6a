/* SPDX-License-Identifier: MIT */
/* What gcc's and clang's -fsanitize=thread calls before every plain access and instead of
 * every atomic one.  There is no run-time library here: an atomic access is a step, a plain
 * one is a touch.  Accesses are made one at a time on one thread, so none of them has to be
 * atomic itself.  Of setup and check, which run alone, nothing is remembered. */
#include "engine.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the compiler knows them */

#define PC ((uintptr_t)__builtin_return_address(0))

/* ---- plain accesses -------------------------------------------------------------------- */

#define PLAIN(n)                              \
    void __tsan_read##n(void *at)             \
    {                                         \
        memory_touch(at, n, PLAIN_READ, PC);  \
    }                                         \
    void __tsan_write##n(void *at)            \
    {                                         \
        memory_touch(at, n, PLAIN_WRITE, PC); \
    }                                         \
    void __tsan_unaligned_read##n(void *at)   \
    {                                         \
        memory_touch(at, n, PLAIN_READ, PC);  \
    }                                         \
    void __tsan_unaligned_write##n(void *at)  \
    {                                         \
        memory_touch(at, n, PLAIN_WRITE, PC); \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t bytes)
{
    memory_touch(at, bytes, PLAIN_READ, PC);
}

void __tsan_write_range(void *at, size_t bytes)
{
    memory_touch(at, bytes, PLAIN_WRITE, PC);
}

void *__tsan_memset(void *at, int byte, size_t bytes)
{
    memory_touch(at, bytes, PLAIN_WRITE, PC);
    return memset(at, byte, bytes);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    memory_touch(from, bytes, PLAIN_READ, PC);
    memory_touch(to, bytes, PLAIN_WRITE, PC);
    return memcpy(to, from, bytes);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
    if (sched_running() >= 0)
        memory_leave_frame(__builtin_frame_address(0));
}

/* ---- atomic accesses -------------------------------------------------------------------- */

static uint64_t raw_get(const volatile void *at, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)at, bytes);
    return value;
}

static void raw_put(volatile void *at, size_t bytes, uint64_t value)
{
    memcpy((void *)at, &value, bytes);
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void has_read(const volatile void *at, size_t bytes, int order, uintptr_t pc)
{
    memory_touch(at, bytes, ATOMIC_READ, pc);
    history_read(sched_running(), at);
    if (acquires(order))
        memory_acquire(at);
}

static void has_changed(const volatile void *at, size_t bytes, int order, uintptr_t pc)
{
    memory_touch(at, bytes, ATOMIC_WRITE, pc);
    history_write(sched_running(), at);
    if (acquires(order))
        memory_acquire(at);
    if (releases(order))
        memory_release(at, true);
    flow_wrote();
}

static uint64_t load(const volatile void *at, size_t bytes, int order, uintptr_t pc)
{
    if (sched_running() >= 0 && !flow_stutters(at)) {
        step_begin(LOAD, at, pc);
        has_read(at, bytes, order, pc);
        step_result(LOAD, 0, raw_get(at, bytes));
    }
    return raw_get(at, bytes);
}

static void store(volatile void *at, size_t bytes, uint64_t value, int order, uintptr_t pc)
{
    if (sched_running() >= 0) {
        step_begin(STORE, at, pc);
        memory_touch(at, bytes, ATOMIC_WRITE, pc);
        history_write(sched_running(), at);
        if (releases(order))
            memory_release(at, false);
        else
            memory_no_release(at);
        flow_wrote();
        step_result(STORE, raw_get(at, bytes), value);
    }
    raw_put(at, bytes, value);
}

enum change { TO, PLUS, MINUS, AND, OR, XOR };

static uint64_t changed(uint64_t old, enum change how, uint64_t by)
{
    switch (how) {
    case TO:
        return by;
    case PLUS:
        return old + by;
    case MINUS:
        return old - by;
    case AND:
        return old & by;
    case OR:
        return old | by;
    case XOR:
        return old ^ by;
    }
    __builtin_unreachable();
}

static uint64_t change(volatile void *at, size_t bytes, enum change how, uint64_t by, int order,
                       uintptr_t pc)
{
    enum step_kind kind = how == TO ? SWAP : ADD;

    if (sched_running() >= 0)
        step_begin(kind, at, pc);

    uint64_t old = raw_get(at, bytes);
    if (sched_running() >= 0) {
        has_changed(at, bytes, order, pc);
        step_result(kind, old, changed(old, how, by));
    }
    raw_put(at, bytes, changed(old, how, by));
    return old;
}

/* Returns what was there, which is `expected` if it worked. */
static uint64_t cas(volatile void *at, size_t bytes, uint64_t expected, uint64_t desired, int order,
                    int failure_order, uintptr_t pc)
{
    bool watched = sched_running() >= 0;

    if (watched)
        step_begin(CAS, at, pc);

    uint64_t old = raw_get(at, bytes);
    bool works = old == expected;
    if (watched && works)
        has_changed(at, bytes, order, pc);
    else if (watched)
        has_read(at, bytes, failure_order, pc);
    if (watched)
        step_result(works ? CAS : CAS_FAILED, old, desired);
    if (works)
        raw_put(at, bytes, desired);
    return old;
}

/* clang-format off */
#define CHANGE(bits, name, how)                                                                  \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t by,  \
                                                int order)                                       \
    {                                                                                            \
        return (uint##bits##_t)change(at, bits / 8, how, by, order, PC);                         \
    }

#define CAS_BY(bits, name)                                                                       \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile uint##bits##_t *at,               \
        uint##bits##_t *expected, uint##bits##_t desired, int order, int failure_order)          \
    {                                                                                            \
        uint##bits##_t seen = *expected;                                                         \
                                                                                                 \
        *expected = (uint##bits##_t)cas(at, bits / 8, seen, desired, order, failure_order, PC);  \
        return *expected == seen;                                                                \
    }

#define ATOMIC(bits)                                                                             \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)      \
    {                                                                                            \
        return (uint##bits##_t)load(at, bits / 8, order, PC);                                    \
    }                                                                                            \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,          \
                                     int order)                                                  \
    {                                                                                            \
        store(at, bits / 8, value, order, PC);                                                   \
    }                                                                                            \
    uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t *at,       \
        uint##bits##_t expected, uint##bits##_t desired, int order, int failure_order)           \
    {                                                                                            \
        return (uint##bits##_t)cas(at, bits / 8, expected, desired, order, failure_order, PC);   \
    }                                                                                            \
    CAS_BY(bits, strong)                                                                         \
    CAS_BY(bits, weak)                                                                           \
    CHANGE(bits, exchange, TO)                                                                   \
    CHANGE(bits, fetch_add, PLUS)                                                                \
    CHANGE(bits, fetch_sub, MINUS)                                                               \
    CHANGE(bits, fetch_and, AND)                                                                 \
    CHANGE(bits, fetch_or, OR)                                                                   \
    CHANGE(bits, fetch_xor, XOR)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
/* clang-format on */
