/* SPDX-License-Identifier: MIT */
#include "task/sched.h"

#include <stdio.h>
#include <weir/error.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/container.h"
#include "task/turn.h"

/* How often a worker with enough to do looks at what others sent, and at clock and
 * descriptors: a look at the clock is worth three switches, one at epoll fifteen. */
enum { TURNS_A_LOOK = 64, TURNS_A_POLL = 256 };

__thread struct worker *worker_current;

/* ---- what to run next -------------------------------------------------------- */

__attribute__((noinline)) int64_t worker_now(struct worker *w)
{
    return w->now_ns = clock_now_ns();
}

void worker_run_timers(struct worker *w)
{
    struct timer *timer;

    if (w->timers.count == 0)
        return;
    worker_now(w);
    while ((timer = timer_pop(&w->timers, w->now_ns)))
        body_on_timer(w, container_of(timer, struct body, timer));
}

static void look_around(struct worker *w, bool thoroughly)
{
    worker_take_inbox(w);
    worker_take_pokes(w);
    if (thoroughly) {
        worker_run_timers(w);
        if (w->poller.waiting)
            poller_wait(&w->poller, 0);
    }
}

/* With a seed, any of the next few may be first: the order is part of no promise, and
 * a test may want to see others.  xorshift. */
static void shuffle(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    for (uint64_t n = (w->random >> 32) % 4; n > 0 && w->ready.first; n--)
        worker_make_ready(w, queue_pop(&w->ready));
}

/* When there will be more to do than to take the next one: with a seed, each time. */
static uint32_t next_due(const struct worker *w, uint32_t tick)
{
    uint32_t turns = w->random ? 1 : TURNS_A_LOOK - tick % TURNS_A_LOOK;

    if (w->limited && w->limit - tick < turns)
        turns = w->limit - tick;
    return tick + turns;
}

/* The next task in order, started or not; NULL when there is none. */
static __attribute__((noinline)) task *pick(struct worker *w)
{
    uint32_t tick = w->tick + 1;

    if (w->limited && tick == w->limit)
        return NULL; /* the scheduler's turn: it returns to the host */
    atomic_poke(&w->tick, tick);
    w->due = next_due(w, tick);
    if (tick % TURNS_A_LOOK == 0 || (w->ready.first == NULL && atomic_peek(&w->fresh_count) == 0))
        look_around(w, tick % TURNS_A_POLL == 0);
    if (w->random)
        shuffle(w);
    task *t = worker_pop_fresh(w, w->ready.first);
    if (t == NULL)
        t = queue_pop(&w->ready);
    worker_prefetch_next(w);
    return t;
}

/* ---- starting, switching, ending --------------------------------------------- */

static void task_main(void *arg);

/* A body is read by dumps, from other threads: what they read is only ever changed by
 * atomic stores, or under the names' lock. */
static void body_init(struct body *b)
{
    b->sleeper = NULL;
    b->why = 0;
    b->timer.place = 0;
    b->shield = NULL;
    b->values = NULL;
    atomic_poke(&b->parked_at_ns, 0);
    atomic_poke(&b->waits_for, NULL);
    body_clear_name(b);
}

static void adopt(struct worker *w, struct body *b, task *t)
{
    b->task = t;
    atomic_put(&t->body, b);
    if (atomic_peek(&w->fresh_count))
        worker_share(w);
}

bool worker_start(struct worker *w, task *t)
{
    if (timer_reserve(&w->timers, w->started + 1) < 0)
        return false;
    struct stack *stack = stack_get(&w->stacks);
    if (stack == NULL)
        return false;

    struct body *b = body_on(stack);
    body_init(b);
    stack->context.sp = NULL; /* see switch_to */
    adopt(w, b, t);
    w->started++;
    return true;
}

/* Counted first: whoever waits for its end finds one task less. */
static void end(struct worker *w, task *t, int result)
{
    atomic_put(&w->ending, 1);
    atomic_put(&w->ended, w->ended + 1);
    runtime_count_out(w->runtime);
    if (t->ended)
        t->ended(t->arg, result);
    task_finish(t, result);
    atomic_put(&w->ending, 0);
}

/* The next in order, with a stack; NULL when there is none. */
static task *pick_started(struct worker *w)
{
    task *t;

    while ((t = pick(w)) && t->body == NULL && !worker_start(w, t)) {
        if (w->started > 0) { /* one of them will leave its stack to this one */
            worker_push_back_fresh(w, t);
            return queue_pop(&w->ready);
        }
        end(w, t, WEIR_ENOMEM);
    }
    return t;
}

/* Whoever was started just now has nothing to go on with yet. */
static void switch_to(struct worker *w, struct context *from, task *next)
{
    struct context *to = worker_become(w, next);

    if (to->sp)
        context_switch(from, to);
    else
        context_enter(from, to, next->body, task_main, next->body);
}

void worker_switch_with_care(struct worker *w)
{
    task *self = w->current, *next = pick_started(w);

    if (next == self)
        return;
    body_check_stack(self->body);
    switch_to(w, &body_stack(self->body)->context, next);
}

void worker_prepare(task *t)
{
    context_prepare(&body_stack(t->body)->context, t->body, task_main, t->body);
}

_Noreturn __attribute__((cold)) void body_report_overflow(const struct body *b)
{
    char text[128];

    snprintf(text, sizeof text, "weir: BUG: task '%s' overflowed its stack of %zu bytes\n", b->name,
             body_stack(b)->context.bytes);
    bug(text);
}

static void task_main(void *arg)
{
    struct body *b = arg;
    struct worker *w = worker_current;
    uint32_t tick = w->tick; /* as it is if nobody else has run since we were entered */
    task *next;

    context_entered();
    do {
        task *t = b->task;
        int result = t->fn(t->arg);

        body_destroy_values(b);
        end(w, t, result);
        tick++;
        next = worker_next_ready(w);
        if (next == NULL)
            next = pick(w);
        if (next && next->body == NULL) { /* starts here: no switch, and a warm stack */
            body_init(b);
            adopt(w, b, next);
            worker_become(w, next);
        }
    } while (next && next->body == b);

    /* We stay on this stack until the switch; nobody can take it before. */
    w->started--;
    stack_put(&w->stacks, body_stack(b));
    context_leave(worker_become(w, next), tick == w->tick);
}

static bool run_one(struct worker *w)
{
    task *t = pick_started(w);

    if (t == NULL)
        return false;
    switch_to(w, &w->scheduler, t);
    return true;
}

void worker_run(struct worker *w)
{
    struct worker *outer = worker_current;
    parker *outer_parker = parker_current;

    worker_current = w;
    parker_current = w->outside;
    context_of_thread(&w->scheduler);
    worker_now(w);
    while (!atomic_get(&w->runtime->stop)) {
        look_around(w, true);
        if (!run_one(w))
            worker_idle(w);
    }
    worker_current = outer;
    parker_current = outer_parker;
}

bool worker_step(struct worker *w, uint32_t most)
{
    w->limited = true;
    w->limit = w->tick + most;
    w->due = w->tick + 1;
    worker_current = w;
    parker_current = w->outside;
    context_of_thread(&w->scheduler);
    atomic_swap(&w->asleep, 0);
    poller_wait(&w->poller, 0);
    worker_now(w);
    worker_run_timers(w);
    do {
        while (run_one(w))
            ;
        worker_run_timers(w);
    } while (w->tick + 1 != w->limit && worker_time_jumps(w));
    w->limited = false;
    /* What is left, and what comes from now on, makes the descriptor readable. */
    atomic_swap(&w->asleep, 1);
    bool more = w->ready.first || atomic_peek(&w->fresh_count) || worker_has_mail(w);
    if (more)
        worker_wake(w);
    poller_set_timer(&w->poller, timer_next_ns(&w->timers));
    worker_current = NULL;
    return more;
}
