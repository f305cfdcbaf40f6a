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

/* With many tasks, each stack is cold: fetch the one after next while the next one runs.
 * Few stay warm by themselves, and would only pay for it. */
enum { MANY_STACKS = 64, LINES_A_STACK = 8 };

static inline void worker_prefetch(const struct worker *w)
{
    const task *t = w->ready.first;

    if (t == NULL || w->started < MANY_STACKS)
        return;
    const char *body = (const char *)t->body;
    __builtin_prefetch(body + sizeof(struct body));
    for (ptrdiff_t line = 0; line < LINES_A_STACK; line++)
        __builtin_prefetch(body - 64 * line); /* where a parked task's frames are */
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
    worker_prefetch(w);
    return t;
}

/* The next in order, whatever there is to be done first, with a stack; NULL when there is
 * none. */
task *worker_pick(struct worker *w);

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

/* Let the current task, which has seen to it that it will be found again, wait. */
static inline void worker_switch(struct worker *w)
{
    task *self = w->current, *next = worker_next_ready(w);

    if (next == NULL)
        next = worker_pick(w);
    if (next == self)
        return;
    body_check_stack(self->body);
    context_switch(&body_stack(self->body)->context, worker_become(w, next));
}

#endif
