/* SPDX-License-Identifier: MIT */
/* park - how a flow of control sleeps, and the only thing the core knows about it.
 *
 * A flow of control is a thread, a task or a callback.  Each has a parker; the
 * thread-local `parker_current` names the one that runs now, and NULL means a plain
 * thread.  The core asks parker_self() and never what kind it got.  That is what
 * lets all kinds stand in one queue, and a scheduler be added without a change here:
 * it sets parker_current when it switches to a task.
 *
 * A sleep is a struct sleeper, inside the record of a wait.  Its state says who must
 * do what next:
 *
 *                  park()              sleeper_done(), which then makes it run
 *      AWAKE --------------------> ASLEEP ------------------------------------> DONE
 *        |  <--------------------    |                                           ^
 *        |   park(): deadline or     |                                           |
 *        |   cancel, before DONE                                                 |
 *        +-----------------------------------------------------------------------+
 *                                       sleeper_done(), and no more
 *
 * Invariants
 *   1. DONE is final, and storing it is the waker's last access to the sleeper if it
 *      was AWAKE: the stack frame around it may be gone the next instant.
 *   2. Whoever moves a sleeper out of ASLEEP, and nobody else, makes it run: exactly
 *      one of waker, deadline and cancel, so that a late one cannot hit a task
 *      that has moved on.  (A thread is woken by address, which survives even that.)
 *   3. park() returns 0 only when DONE, and a reason only when AWAKE.
 *
 * A flow that cannot run while it is being woken may begin ASLEEP (`begins`) and save
 * itself the first step: a callback always, a task because only its own worker resumes
 * it.  It may then be made to run before it has parked, and must take that into account.
 *
 * Crowds.  Those who will all be woken together sleep on one futex word out of a
 * static table, chosen by what they wait for, so that waking all is one system call.
 * The word must outlive every object: a thread that slept on a word of the object
 * itself could sleep for ever if the object was freed and its bytes happened to
 * match.  Two crowds may share a word; they then wake each other for nothing.
 */
#ifndef WEIR_CORE_PARK_H
#define WEIR_CORE_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/storage.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/cpu.h"

enum sleeper_state { AWAKE, ASLEEP, DONE };

enum sleeper_flags {
    SLEEP_SPIN = 1,   /* what we wait for seems to be running on another CPU now */
    SLEEP_FIRM = 2,   /* to be ended by DONE alone: no deadline, no cancel */
    SLEEP_QUEUED = 8, /* it is inside a waiter (waitq.h) */
    SLEEP_FD = 16,    /* it is for a descriptor */
    SLEEP_AGAIN = 4,  /* park() has returned a reason before, so the state is not as it began */
};

/* Locking key: (a) atomic  (o) owner only, before the sleep is published  (c) constant */
typedef struct weir_sleeper_ sleeper;
/*  struct weir_parker_ *parker;  (c) who sleeps
 *  uint32_t state;               (a) enum sleeper_state
 *  uint16_t cpu;                 (c) where it ran when it began to wait
 *  uint8_t crowd;                (o) index of its crowd's word, 0 for none
 *  uint8_t flags;                (o) enum sleeper_flags */

typedef struct weir_parker_ parker;
struct weir_parker_ {
    const struct parker_ops *ops;
};

struct parker_ops {
    uint32_t begins; /* AWAKE or ASLEEP */

    /* May this flow of control wait until `deadline`?  0, or WEIR_ETIMEDOUT,
     * WEIR_ECANCELED or WEIR_ECONTEXT: what it gets instead of waiting. */
    int (*refusal)(parker *self, struct weir_deadline deadline);

    /* Sleep until DONE (0), the deadline (WEIR_ETIMEDOUT) or a cancel (WEIR_ECANCELED);
     * the latter two not when SLEEP_FIRM. */
    int (*park)(parker *self, sleeper *s, struct weir_deadline deadline);

    /* What sleeper_done() does: how many may end a sleep at once, and so what it takes to
     * be the one who does, is for each kind to know. */
    uint8_t (*done)(parker *self, sleeper *s);

    /* Let those that were just woken run first, if they would run here. */
    void (*give_way)(parker *self);
};

extern __thread parker *parker_current;
extern parker parker_thread;

static inline parker *parker_self(void)
{
    return parker_current ? parker_current : &parker_thread;
}

/* A sleep of this flow of control, not yet begun. */
static inline sleeper sleeper_self(void)
{
    parker *self = parker_self();

    return (sleeper){.parker = self, .state = self->ops->begins, .cpu = cpu_here()};
}

static inline int park_refusal(struct weir_deadline deadline)
{
    parker *self = parker_self();

    return self->ops->refusal(self, deadline);
}

static inline int park(sleeper *s, struct weir_deadline deadline)
{
    return s->parker->ops->park(s->parker, s, deadline);
}

static inline void park_give_way(void)
{
    parker *self = parker_self();

    self->ops->give_way(self);
}

/* In a word or two, for whoever debugs; NULL when for nothing but time. */
const char *sleeper_waits_for(const sleeper *s);

/* Sleep together with all who wait for the object at `key`. */
void sleeper_join_crowd(sleeper *s, const void *key);

/* Is it worth spinning before sleeping, with `ahead` others in the queue? */
bool sleeper_should_spin(const sleeper *s, const struct weir_cpus_ *cpus, uint32_t ahead);

/* End a sleep (invariants 1 and 2).  Returns the crowd that is still to be woken, or
 * 0; s may be gone. */
static inline uint8_t sleeper_done(sleeper *s)
{
    return s->parker->ops->done(s->parker, s);
}

/* For `done`, where others may be ending the sleep as well.  True if we are to make it run;
 * if not, s may be gone. */
static inline bool sleeper_end(sleeper *s)
{
    return atomic_swap(&s->state, DONE) == ASLEEP;
}

void crowd_wake(uint8_t crowd);

#endif
