/* SPDX-License-Identifier: MIT */
/* turn - the next task's turn: what every switch goes through, in line.
 *
 * Nearly always the next to run is a started task and nothing else is due; then a switch is
 * these few instructions.  That they are in line is not for the calls they save: when a
 * task goes on that waited elsewhere than the one before it, the processor guesses every
 * return wrong on the way out, so each function in between is a wrong guess. */
#ifndef WEIR_TASK_TURN_H
#define WEIR_TASK_TURN_H

#include "task/sched.h"

/* With many tasks, each stack is cold, and is fetched while others run: when its task is the
 * next but one, and, behind few others, as soon as it is made ready.  Few tasks stay warm by
 * themselves, and would only pay for it.
 *
 * Inlined, come what may: gcc takes a call that only fetches for one without effect. */
#define FETCH static inline __attribute__((always_inline))

enum { MANY_STACKS = 64, FEW_READY = 32 };

/* A cache line, and the one below it. */
FETCH void prefetch_two(const char *at)
{
    __builtin_prefetch(at);
    __builtin_prefetch(at - 64);
}

static inline bool worker_has_few_ready(const struct worker *w)
{
    return w->ready.first == NULL || w->order - w->ready.first->order < FEW_READY;
}

/* t, which sleeps in s, is about to be made ready: fetch both records on top of its stack,
 * and the frames around s. */
FETCH void worker_prefetch_woken(const struct worker *w, const task *t, const sleeper *s)
{
    if (w->started < MANY_STACKS || !worker_has_few_ready(w))
        return;
    const char *top = (const char *)body_stack(t->body), *frames = (const char *)s;
    prefetch_two(top);
    prefetch_two(frames - 64);
    __builtin_prefetch(frames + 64);
}

FETCH void worker_prefetch_next(const struct worker *w)
{
    const task *t = w->ready.first;

    if (t == NULL || w->started < MANY_STACKS)
        return;
    __builtin_prefetch(t->next); /* so that its stack is found at once in the next turn */
    const char *top = (const char *)body_stack(t->body);
    prefetch_two(top); /* not in a loop, which took three times as many instructions */
    prefetch_two(top - 128);
    prefetch_two(top - 256);
    prefetch_two(top - 384);
    prefetch_two(top - 512);
}

/* The next in order, if it is a started task and nothing else is due; or NULL. */
static inline task *worker_next_ready(struct worker *w)
{
    uint32_t tick = w->tick + 1;
    task *t = w->ready.first;

    if (t == NULL || tick == w->due || atomic_peek(&w->fresh_count) > 0)
        return NULL;
    atomic_poke(&w->tick, tick);
    w->ready.first = t->next;
    worker_prefetch_next(w);
    return t;
}

/* Make t, or for NULL the scheduler, what runs; returns where. */
static inline struct context *worker_become(struct worker *w, task *t)
{
    w->current = t;
    parker_current = t ? &t->parker : w->outside;
    return t ? &body_stack(t->body)->context : &w->scheduler;
}

_Noreturn void body_report_overflow(const struct body *b);

/* Without a guard an overflow has by now overwritten what lies below. */
static inline void body_check_stack(const struct body *b)
{
    const struct stack *stack = body_stack(b);

    if (!stack->guarded && (const char *)__builtin_frame_address(0) < stack->context.bottom)
        body_report_overflow(b);
}

/* The whole of a switch: there may be other things to do, or a task to start. */
void worker_switch_with_care(struct worker *w);

/* Let the current task, which has seen to it that it will be found again, wait. */
static inline void worker_switch(struct worker *w)
{
    task *self = w->current, *next = worker_next_ready(w);

    if (next == NULL) {
        worker_switch_with_care(w);
        return;
    }
    if (next == self)
        return;
    body_check_stack(self->body);
    context_switch(&body_stack(self->body)->context, worker_become(w, next));
}

#endif
