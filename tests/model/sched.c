/* SPDX-License-Identifier: MIT */
/* Flows, and whose turn it is.  See engine.h. */
#include "execution.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct execution run = {.running = -1};

static _Alignas(64) char stacks[FLOWS_MAX][STACK_BYTES];

/* Thread-local variables of the watched code: a section that each flow has its own copy of. */
extern char __start_model_tls[], __stop_model_tls[];
static char fresh_tls[TLS_MAX];

int stack_owner(const volatile void *at)
{
    ptrdiff_t offset = (const volatile char *)at - &stacks[0][0];

    return offset >= 0 && offset < (ptrdiff_t)sizeof stacks ? (int)(offset / STACK_BYTES) : -1;
}

bool stack_is_live(int flow, const volatile void *at)
{
    const struct flow *f = &run.flow[flow];

    return f->state != OVER && (const volatile char *)at >= (const char *)f->context.sp;
}

/* ---- from one stack to another --------------------------------------------------------- */

static void tls_exchange(char *save, const char *load)
{
    size_t bytes = (size_t)(__stop_model_tls - __start_model_tls);

    if (bytes > TLS_MAX)
        __builtin_trap();
    memcpy(save, __start_model_tls, bytes);
    memcpy(__start_model_tls, load, bytes);
}

static void switch_to(int next)
{
    struct flow *to = &run.flow[next];
    int last = run.running;
    char unused[TLS_MAX];

    run.turn = next;
    if (next == last)
        return;
    run.running = next;
    tls_exchange(last < 0 ? unused : run.flow[last].tls, to->tls);
    context_switch(last < 0 ? &run.outside : &run.flow[last].context, &to->context);
}

/* Back to sched_run, for good. */
static _Noreturn void leave(enum verdict verdict)
{
    int last = run.running;

    run.verdict = verdict;
    if (last < 0)
        longjmp(run.alone, 1);
    run.running = -1;
    tls_exchange(run.flow[last].tls, fresh_tls);
    context_leave(&run.outside, false);
}

_Noreturn void model_fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(run.fault, sizeof run.fault, fmt, args);
    va_end(args);
    leave(FAULTY);
}

/* ---- time --------------------------------------------------------------------------------- */

/* The next moment that somebody cares about, or 0. */
static int64_t next_moment(void)
{
    int64_t next = 0;

    for (const struct flow *f = run.flow; f < run.flow + run.flows; f++) {
        bool cares = f->state != OVER && f->asked_ns > run.now_ns && f->asked_ns != INT64_MAX;

        if (cares && (next == 0 || f->asked_ns < next))
            next = f->asked_ns;
    }
    return next;
}

void log_event(int who, enum step_kind kind, const volatile void *at, uintptr_t pc)
{
    run.events[run.steps] =
        (struct event){.who = (uint8_t)who, .kind = (uint8_t)kind, .at = at, .pc = pc};
    if (++run.steps == STEPS_MAX)
        model_fail("livelock: no end after %d steps", STEPS_MAX);
}

static void time_passes(void)
{
    run.now_ns = next_moment();
    /* How far it moves depends on who has asked so far, which is no step. */
    run.time_history = mix(run.time_history, (uint64_t)run.now_ns);
    history_write(TIME, &run.now_ns);
    flow_wrote();
    log_event(TIME, TICK, NULL, 0);
    run.events[run.steps - 1].after = (uint64_t)run.now_ns;
}

static void signal_arrives(int flow)
{
    run.signals--;
    run.flow[flow].woken = true;
    run.flow[flow].history = mix(run.flow[flow].history, SIGNAL);
    log_event(SIGNAL + flow, INTERRUPT, NULL, 0);
}

/* ---- whose turn ------------------------------------------------------------------------------ */

static bool can_go_on(const struct flow *f)
{
    switch (f->state) {
    case READY:
        return true;
    case ASLEEP:
        return f->woken || f->until_ns <= run.now_ns;
    case POLLING:
        return *f->poll != 0;
    case SPINNING:
    case OVER:
        break;
    }
    return false;
}

void stop_spinning(int but)
{
    for (int i = 0; i < run.flows; i++) {
        if (i != but && run.flow[i].state == SPINNING)
            run.flow[i].state = READY;
    }
}

static bool somebody_can_go_on(void)
{
    for (int i = 0; i < run.flows; i++) {
        if (can_go_on(&run.flow[i]))
            return true;
    }
    return false;
}

/* All that can be picked; first, if it can, the flow that had the turn. */
static int list_picks(uint8_t *ret_picks, bool *ret_held)
{
    int n = 0;
    bool held = run.turn >= 0 && can_go_on(&run.flow[run.turn]);

    if (held)
        ret_picks[n++] = (uint8_t)run.turn;
    for (int i = 0; i < run.flows; i++) {
        if (i != run.turn && can_go_on(&run.flow[i]) && (!held || search_may_preempt()))
            ret_picks[n++] = (uint8_t)i;
    }
    if (next_moment() != 0)
        ret_picks[n++] = TIME;
    for (int i = 0; run.signals > 0 && i < run.flows; i++) {
        if (run.flow[i].state == ASLEEP && !run.flow[i].woken)
            ret_picks[n++] = (uint8_t)(SIGNAL + i);
    }
    *ret_held = held;
    return n;
}

static void describe_sleepers(char *ret_text, size_t bytes)
{
    size_t used = 0;
    char name[64];

    ret_text[0] = 0;
    for (int i = 0; i < run.flows && used < bytes; i++) {
        const struct flow *f = &run.flow[i];

        if (f->state == OVER)
            continue;
        name_of(f->state == ASLEEP ? f->futex : (const void *)f->poll, name, sizeof name);
        used += (size_t)snprintf(ret_text + used, bytes - used, "%s%c sleeps on %s",
                                 used ? ", " : "", pick_letter(i), name);
    }
}

static _Noreturn void nobody_can_go_on(void)
{
    char sleepers[200];

    for (int i = 0; i < run.flows; i++) {
        if (run.flow[i].state != OVER) {
            describe_sleepers(sleepers, sizeof sleepers);
            model_fail("deadlock: %s, and nobody will wake them", sleepers);
        }
    }
    leave(CLEAN);
}

void give_turn(void)
{
    for (;;) {
        uint8_t picks[PICKS_MAX];
        bool held;

        if (!somebody_can_go_on())
            stop_spinning(-1); /* invariant 4 */
        int n = list_picks(picks, &held);
        if (n == 0)
            nobody_can_go_on();
        int pick = search_pick(picks, n, held);
        if (pick < 0)
            leave(CUT_SHORT);
        run.picks[run.picked++] = (uint8_t)pick;
        if (pick < TIME) {
            switch_to(pick);
            return;
        }
        if (pick == TIME)
            time_passes();
        else
            signal_arrives(pick - SIGNAL);
    }
}

/* ---- one execution ------------------------------------------------------------------------------------ */

static void flow_main(void *arg)
{
    int self = (int)(intptr_t)arg;
    struct flow *f = &run.flow[self];

    context_entered();
    run.scenario->flow[self]();
    memory_leave_frame(stacks[self] + STACK_BYTES);
    f->state = OVER;
    f->history = mix(f->history, ENDED);
    stop_spinning(-1);
    log_event(self, ENDED, NULL, 0);
    give_turn();
    __builtin_trap();
}

static void make_flows(void)
{
    run.flows = 0;
    while (run.flows < FLOWS_MAX && run.scenario->flow[run.flows]) {
        int i = run.flows++;
        struct flow *f = &run.flow[i];

        *f = (struct flow){.state = READY, .history = (uint64_t)i + 1};
        f->context.bottom = stacks[i];
        f->context.bytes = STACK_BYTES;
        f->clock[i] = 1;
        memcpy(f->tls, fresh_tls, TLS_MAX);
        context_prepare(&f->context, stacks[i] + STACK_BYTES, flow_main, (void *)(intptr_t)i);
    }
}

/* A function that is not watched; false if it failed. */
static bool run_alone(void (*fn)(void))
{
    if (setjmp(run.alone))
        return false;
    if (fn)
        fn();
    return true;
}

enum verdict sched_run(const struct scenario *scenario)
{
    run.scenario = scenario;
    run.running = run.turn = -1;
    run.steps = run.picked = 0;
    run.signals = scenario->signals;
    run.sleeps = run.time_history = 0;
    run.verdict = CLEAN;
    run.fault[0] = 0;
    run.now_ns = 1;
    memory_forget();
    kernel_forget();
    world_clear();
    if (run_alone(scenario->setup)) {
        make_flows();
        if (setjmp(run.alone) == 0)
            give_turn();
    }
    if (run.verdict == CLEAN)
        run_alone(scenario->check);
    return run.verdict;
}

void sched_report(void)
{
    report_fault(run.events, run.steps);
}
