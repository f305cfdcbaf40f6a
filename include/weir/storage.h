/* SPDX-License-Identifier: MIT */
/* weir/storage.h - private types whose size must be public.
 *
 * Programs embed weir objects in their own structs, so the compiler has to know
 * how big they are.  Nothing outside weir may read or write these fields; the
 * trailing underscore in every name says so.  What they mean stands in
 * src/core/waitq.h and src/core/park.h.
 */
#ifndef WEIR_STORAGE_H
#define WEIR_STORAGE_H

#include <stdint.h>

#include <weir/visibility.h>

WEIR_BEGIN

struct weir_parker_;
struct weir_wait_kind_;
struct weir_waiter_;

/* A state word, which is also a lock, and the waiters that it guards.  All
 * zeroes is unlocked, empty and worth nothing. */
struct WEIR_CAPABILITY_("wait queue") weir_waitq_ {
    uint64_t word;
    struct weir_waiter_ *newest;
    uint32_t length;
    uint32_t epoch : 31;
    uint32_t shut : 1;
};

/* clang-format off */
#define WEIR_WAITQ_INIT_(value) {(uint64_t)(value) << 3, 0, 0, 0, 0}

/* n if it is at most max, or what stands for a wrong number.  Evaluates n more than once,
 * as all the static initialisers do.  (A division, since compilers warn of a comparison
 * that the type of n decides.) */
#define WEIR_COUNT_OR_(n, max, wrong) ((uint64_t)(n) / ((max) + UINT64_C(1)) ? (wrong) : (uint64_t)(n))
/* clang-format on */

/* How one waiter sleeps. */
struct weir_sleeper_ {
    struct weir_parker_ *parker;
    uint32_t state;
    uint16_t cpu;
    uint8_t crowd;
    uint8_t flags;
};

/* One waiter: on the stack of whoever waits, or inside a struct weir_op. */
struct weir_waiter_ {
    struct weir_waiter_ *next, *prev;
    struct weir_waitq_ *queue;
    uint64_t want;
    const struct weir_wait_kind_ *kind;
    struct weir_sleeper_ sleeper;
    uint32_t epoch;
    int32_t result;
};

/* Where the last giver and the last taker ran: is a waiter better off spinning? */
struct weir_cpus_ {
    uint16_t giver, taker;
};

WEIR_END

#endif
