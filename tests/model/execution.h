/* SPDX-License-Identifier: MIT */
/* One execution, shared by sched.c (whose turn it is) and flow.c (what a flow does with it). */
#ifndef WEIR_MODEL_EXECUTION_H
#define WEIR_MODEL_EXECUTION_H

#include <setjmp.h>

#include "engine.h"
#include "task/switch.h"

enum { STACK_BYTES = 128 * 1024, STEPS_MAX = 4000, TLS_MAX = 128 };

enum flow_state { READY, SPINNING, ASLEEP, POLLING, OVER };

struct flow {
    struct context context;
    enum flow_state state;
    bool woken;                   /* ASLEEP no more, though it has not run yet */
    const void *futex;            /* ASLEEP on this */
    int64_t until_ns;             /* and no longer than that */
    uint64_t since;               /* who slept first is woken first */
    const uint64_t *poll;         /* POLLING until it is not 0 */
    int64_t asked_ns;             /* the last deadline it asked about */
    int pauses;                   /* since its last step */
    const volatile void *last_at; /* what its last step was about */
    uint64_t last_seen;           /* and its history then */
    uint64_t history;
    uint32_t clock[FLOWS_MAX];
    char tls[TLS_MAX]; /* while it does not run */
};

struct execution {
    const struct scenario *scenario;
    struct flow flow[FLOWS_MAX];
    struct context outside;
    jmp_buf alone; /* setup and check: how to get out of them */
    int flows, running, steps;
    int turn; /* who made the last step, and goes on for nothing */
    int signals;
    uint64_t sleeps;
    int64_t now_ns;
    uint64_t time_history;
    enum verdict verdict;
    char fault[512];
    struct event events[STEPS_MAX];
    uint8_t picks[2 * STEPS_MAX];
    int picked;
};

extern struct execution run;

/* Let the search pick until it picks a flow; returns when it picks us. */
void give_turn(void);

/* All who spin may look again, except one. */
void stop_spinning(int but);

void log_event(int who, enum step_kind kind, const volatile void *at, uintptr_t pc);

#endif
