/* SPDX-License-Identifier: MIT */
/* engine - the inside of the explorer.
 *
 *     hooks.c    every access of the watched code comes in here (what the compiler's
 *                -fsanitize=thread calls), and becomes a step or a touch
 *     kernel.c   futex, clock, CPU, descriptors, allocation: also steps
 *     memory.c   what is remembered of each eight bytes: who touched them, what an
 *                acquire of them sees, their history
 *     flow.c     what a flow does: steps, pauses, sleeps
 *     sched.c    whose turn it is, and one execution from beginning to end
 *     search.c   who makes the next step: depth-first, at random, or as told
 *     report.c   what is printed of a fault
 *     main.c     arguments and tables
 *
 * One execution.  Flows are stacks on one thread.  A flow runs up to its next *step* (an
 * atomic access, or a call into the kernel) without interruption; there the search
 * picks who makes the next one.  Everything is deterministic, addresses included (the
 * program is not position independent and all watched memory is static), so the list of
 * picks is the whole schedule, and an execution is abandoned by not going on with it.
 *
 * Depth-first.  The search keeps the path of picks that had alternatives, takes the next
 * alternative of the deepest, and runs again from the start.  Taking the turn from a flow
 * that could go on is a preemption, and there may be only so many; whoever sleeps, spins
 * or ends gives its turn away for nothing.  Time and signals need no turn.
 *
 * Invariants
 *   1. Flows share nothing between two steps but what plain accesses touch, and those are
 *      ordered by steps or else reported as a race.  So plain accesses need no picks.
 *   2. The history of a flow is a hash of its steps, each mixed with the histories of those
 *      it came after in the same eight bytes.  Reads of one value have no order among
 *      themselves.  Equal histories of all flows therefore mean equal states, in
 *      whatever order independent steps were made.
 *   3. A state met before with no more preemptions spent is not gone into again.  It
 *      cannot lie on the path that leads to it, as histories only grow.
 *   4. To spin is to be late: a flow that looks again and sees what it saw might as well
 *      have looked for the first time.  So spinning is over before anybody else has moved:
 *      the looks after the first are no steps, and the flow goes on to sleep.  If it would
 *      spin for ever, it is not picked until somebody has written; if nobody else can go
 *      on, it does.
 */
#ifndef WEIR_MODEL_ENGINE_H
#define WEIR_MODEL_ENGINE_H

#include "model.h"

/* What a pick can be: a flow, or one of these. */
enum {
    TIME = FLOWS_MAX, /* the clock moves on to the next deadline */
    SIGNAL,           /* SIGNAL + i: flow i's sleep in the kernel is interrupted */
    PICKS_MAX = SIGNAL + FLOWS_MAX,
};

enum step_kind {
    LOAD,
    STORE,
    SWAP,
    ADD,
    CAS,
    CAS_FAILED,
    FUTEX_WAIT,
    FUTEX_WOKEN,
    FUTEX_TIMED_OUT,
    FUTEX_WAKE,
    PAUSE,
    CLOCK,
    FD_READ,
    FD_WRITE,
    FD_CLOSE,
    FD_POLL,
    GONE,
    TICK,
    INTERRUPT,
    ENDED,
};

/* ---- sched.c and flow.c ---------------------------------------------------------- */

enum verdict { CLEAN, CUT_SHORT, FAULTY };

/* One schedule from beginning to end. */
enum verdict sched_run(const struct scenario *scenario);
const char *sched_fault(void);
void sched_report(void);

/* The flow that runs, or -1: setup and check are not watched. */
int sched_running(void);

/* Before a step: let the search pick, and return when it picks us. */
void step_begin(enum step_kind kind, const volatile void *at, uintptr_t pc);
/* What came of it, for the report. */
void step_result(enum step_kind kind, uint64_t before, uint64_t after);
/* How it went on after a sleep; no step of its own. */
void step_note(enum step_kind kind, const volatile void *at, uintptr_t pc);

/* Give the turn away: until somebody has written; until the clock, a wake-up or a signal
 * comes (false if the clock came first); until `*count` is not 0. */
void flow_pause(void);
bool flow_sleep(const void *futex, int64_t at_ns);
void flow_poll(const uint64_t *count);
/* Wake up to `count` who sleep on it, oldest first; returns how many. */
int flow_wake(const void *futex, int count);

/* Somebody has written: whoever spins may look again. */
void flow_wrote(void);
/* After a pause, the same look again with nothing written since: no step at all (invariant 4). */
bool flow_stutters(const volatile void *at);

int64_t flow_now_ns(void);
void flow_asks_about(int64_t at_ns);
uint64_t *flow_history(int flow);
uint32_t *flow_clock(int flow); /* vector clock */
const struct scenario *flow_scenario(void);

/* Whose stack is it?  -1 when it is nobody's.  And is that part of it in use? */
int stack_owner(const volatile void *at);
bool stack_is_live(int flow, const volatile void *at);

/* A hash of everything that the future depends on. */
uint64_t sched_state(void);
/* The same at the end, where nobody has a turn. */
uint64_t sched_ending(void);

/* ---- memory.c ------------------------------------------------------------------ */

/* Bit 0: writes.  Bit 1: atomic. */
enum access_kind { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE };

void memory_init(void);
void memory_forget(void); /* a new execution */

/* Checks that it may be touched, that nothing races with it, and remembers it. */
void memory_touch(const volatile void *at, size_t bytes, enum access_kind kind, uintptr_t pc);

/* The flow that runs has no more use for what lies below. */
void memory_leave_frame(const void *below);

void memory_acquire(const volatile void *at);
void memory_release(const volatile void *at, bool keeps_others);
void memory_no_release(const volatile void *at);

/* Its owner gives it back. */
void memory_gone(const void *p, size_t bytes, uintptr_t pc);

/* Invariant 2.  `who` is a flow or TIME. */
void history_read(int who, const volatile void *at);
void history_write(int who, const volatile void *at);
uint64_t history_of(const volatile void *at); /* changes with every write */
uint64_t mix(uint64_t a, uint64_t b);

/* ---- kernel.c ------------------------------------------------------------------ */

void kernel_forget(void);

/* ---- scenarios/world.c ----------------------------------------------------------- */

void world_clear(void);

/* ---- search.c ------------------------------------------------------------------ */

struct search {
    int preemptions;       /* at most; negative is no limit */
    bool unpruned;         /* into every state again (to test invariants 2 and 3) */
    uint64_t random_walks; /* instead of depth-first, if not 0 */
    uint64_t seed;
    const char *replay; /* instead of either, if not NULL */
};

struct tally {
    uint64_t schedules;   /* run, also those cut short at a state met before */
    uint64_t endings;     /* different histories of a whole execution, */
    uint64_t fingerprint; /* and a sum of their hashes */
    bool faulty;
};

struct tally search_all(const struct scenario *scenario, const struct search *how);

/* Which of the candidates?  -1: not worth going on.  `held` says that the first is the flow
 * that had the turn and could go on. */
int search_pick(const uint8_t *candidates, int count, bool held);
bool search_may_preempt(void);

/* ---- report.c ------------------------------------------------------------------ */

struct event {
    uint8_t who; /* a pick */
    uint8_t kind;
    const volatile void *at;
    uint64_t before, after;
    uintptr_t pc;
};

/* Memory that has a name. */
struct named {
    const void *at;
    size_t bytes;
    const char *name;
    const char *(*field)(size_t offset); /* the name of a part of it; may be NULL */
};
extern const struct named world_names[], kernel_names[]; /* end with one without a name */

/* The last steps of a schedule, and how to run it again. */
void report_fault(const struct event *events, int count);
char pick_letter(int pick);

/* "sem.word" */
void name_of(const volatile void *at, char *ret_name, size_t bytes);
/* "waitq_lock, waitq.c:52" */
void place_of(uintptr_t pc, char *ret_place, size_t bytes);

/* The schedule so far, "A12B3TA2", and its end. */
const uint8_t *sched_picks(int *ret_count);

#endif
