/* SPDX-License-Identifier: MIT */
/* How threads park; see park.h. */
#include "core/park.h"

#include <limits.h>

#include <weir/error.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/testpoint.h"

/* About 25 us, which is what a wake-up across CPUs costs when the other one has gone idle
 * (15 to 45 us): so spinning at most doubles what a wait costs that turns out to be long.
 * With 300, two threads that were disturbed once kept putting each other to sleep: 2.5
 * context switches in 1,000 hand-offs, against 0.3. */
enum { SPIN_PAUSES = 1000 };

/* When a crowd is larger than the machine, spinning would keep the others from
 * arriving; letting them run is cheaper than going to sleep.  With 8 threads on 2
 * CPUs, four yields took a barrier from 7.1 to 1.5 us a phase. */
enum { CROWD_YIELDS = 4 };

/* Index 0 is "no crowd".  Each word counts the wake-ups of its crowd. */
static uint32_t crowds[256];

__thread parker *parker_current;

static bool is_done(const sleeper *s)
{
    return atomic_get(&s->state) == DONE;
}

/* Before sleeping: true if it was over before it began. */
static bool done_soon(const sleeper *s)
{
    if (s->flags & SLEEP_SPIN) {
        for (int i = 0; i < SPIN_PAUSES; i++) {
            if (is_done(s))
                return true;
            cpu_pause();
        }
    }
    if (s->crowd) {
        for (int i = 0; i < CROWD_YIELDS; i++) {
            if (is_done(s))
                return true;
            cpu_yield();
        }
    }
    return is_done(s);
}

/* One sleep in the kernel.  The crowd's word must be read before the state is: a
 * waker first stores DONE and then changes the word. */
static int sleep_once(const sleeper *s, int64_t at_ns)
{
    const uint32_t *word = s->crowd ? &crowds[s->crowd] : &s->state;
    uint32_t expected = s->crowd ? atomic_get(word) : ASLEEP;

    TESTPOINT("park: has read the word to sleep on");
    return is_done(s) ? 0 : futex_wait(word, expected, at_ns);
}

static int thread_park(parker *self, sleeper *s, struct weir_deadline deadline)
{
    uint32_t seen = AWAKE;

    (void)self;
    if (done_soon(s))
        return 0;
    if (clock_has_passed(deadline.at_ns))
        return WEIR_ETIMEDOUT; /* the kernel would take 100 us to say so */

    TESTPOINT("park: about to sleep");
    if (!atomic_cas(&s->state, &seen, ASLEEP))
        return 0;
    while (!is_done(s)) {
        if (sleep_once(s, deadline.at_ns) < 0) {
            seen = ASLEEP;
            return atomic_cas(&s->state, &seen, AWAKE) ? WEIR_ETIMEDOUT : 0;
        }
    }
    return 0;
}

/* By now the thread may have left, and s be but an address: waking what is not asleep there
 * does no harm. */
static uint8_t thread_done(parker *self, sleeper *s)
{
    uint8_t crowd = s->crowd;

    (void)self;
    if (!sleeper_end(s))
        return 0;
    if (crowd == 0)
        futex_wake(&s->state, 1);
    return crowd;
}

static int thread_refusal(parker *self, struct weir_deadline deadline)
{
    (void)self;
    return clock_has_passed(deadline.at_ns) ? WEIR_ETIMEDOUT : 0;
}

/* Threads are in the hands of the kernel's scheduler. */
static void thread_give_way(parker *self)
{
    (void)self;
}

static const struct parker_ops thread_ops = {
    .begins = AWAKE,
    .refusal = thread_refusal,
    .park = thread_park,
    .done = thread_done,
    .give_way = thread_give_way,
};

parker parker_thread = {&thread_ops};

void sleeper_join_crowd(sleeper *s, const void *key)
{
    /* Fibonacci hashing; the lowest bits of an address say little. */
    uint64_t hash = ((uint64_t)(uintptr_t)key >> 4) * UINT64_C(0x9E3779B97F4A7C15);

    if (s->parker == &parker_thread)
        s->crowd = (uint8_t)(1 + (hash >> 32) % 255);
}

void crowd_wake(uint8_t crowd)
{
    atomic_add(&crowds[crowd], 1);
    futex_wake(&crowds[crowd], INT_MAX);
}

/* Spinning pays when what we wait for is being done on another CPU right now, and
 * doubles the cost of a hand-off when it is waiting for this one.  The CPU where
 * the last giver ran tells; if that was this one (we gave, and come back for more),
 * the CPU of whom we gave it to. */
bool sleeper_should_spin(const sleeper *s, const struct weir_cpus_ *cpus, uint32_t ahead)
{
    uint16_t other = cpus->giver == s->cpu ? cpus->taker : cpus->giver;

    return other != s->cpu && ahead + 1 < cpu_count();
}
