/* SPDX-License-Identifier: MIT */
/* model - what a scenario is, and what it may ask of the explorer.
 *
 * A scenario is two or three flows of control on objects of weir, small enough that
 * every way in which they can be interleaved can be tried:
 *
 *     static void one_taken(void)   { weir_sem_init(&the.sem, 1); take(1); }
 *     static void acquires(void)    { MODEL_CHECK_EQ(acquire(1, WEIR_FOREVER), 0); }
 *     static void releases(void)    { MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0); }
 *     static void one_is_held(void) { check_permits(1, 1); }
 *
 *     {"a release hands its permit to whoever waits", one_taken, {acquires, releases}, one_is_held},
 *
 * `the` is the world that all scenarios share (scenarios/world.h); it is zeroed before
 * setup (and results are NOTHING_YET).  Setup and check run alone.  Flows must end whatever the interleaving: one that
 * sleeps with nobody left to wake it is a deadlock, and reported.
 *
 * Scenarios are compiled as the core is, so their plain variables are watched as well:
 * what two flows write without an order given by the core is a reported race.
 */
#ifndef WEIR_MODEL_H
#define WEIR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOWS_MAX = 3 };

struct scenario {
    const char *name; /* a sentence */
    void (*setup)(void);
    void (*flow[FLOWS_MAX])(void); /* A, B and C; NULL when there are fewer */
    void (*check)(void);           /* when all have ended; may be NULL */
    uint32_t cpus;                 /* how many there are; 0 is one, and then nobody spins */
    bool patient;                  /* whoever spins does so until somebody has written */
    int signals;                   /* how often a sleep in the kernel ends for nothing */
    int preemptions;               /* at most; 0 is no limit for two flows, and 2 for three */
};

/* Each ends with an entry without a name. */
extern const struct scenario sem_scenarios[], sem_end_scenarios[], crowd_scenarios[],
    meeting_scenarios[], mutex_scenarios[], op_scenarios[], park_scenarios[];

/* Which flow calls: 0 for A. */
int model_self(void);

#define MODEL_CHECK(cond) \
    ((cond) ? (void)0 : model_fail("%s:%d: not so: %s", __FILE_NAME__, __LINE__, #cond))
#define MODEL_CHECK_EQ(got, want)                                                             \
    do {                                                                                      \
        long long got_ = (long long)(got), want_ = (long long)(want);                         \
        if (got_ != want_)                                                                    \
            model_fail("%s:%d: %s: got %lld, want %lld", __FILE_NAME__, __LINE__, #got, got_, \
                       want_);                                                                \
    } while (0)

/* End this schedule: it has shown a fault. */
_Noreturn void model_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The caller gives the memory of an object back: whoever touches it from now on is at
 * fault, and whoever touched it before must have done so before in every respect. */
void model_gone(const void *p, size_t bytes);

/* Sleep until the descriptor is readable, as an event loop does. */
void model_wait_readable(int fd);

#endif
