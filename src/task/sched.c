/* SPDX-License-Identifier: MIT */
#include "task/sched.h"

#include <stdio.h>
#include <weir/error.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/cpu.h"

/* How often a worker with enough to do looks at what others sent, and at clock and
 * descriptors: a look at the clock is worth three switches, one at epoll fifteen. */
enum { TURNS_A_LOOK = 64, TURNS_A_POLL = 256 };

/* What it costs to be woken from the kernel, so what may be spent on not sleeping. */
static const int64_t SEARCH_NS = 40 * WEIR_US;

/* So many unstarted tasks are worth taking over even from a worker that gets on. */
enum { BACKLOG = 256 };

__thread struct worker *worker_current;

/* ---- queues ----------------------------------------------------------------- */

static void queue_push(struct task_queue *q, task *t)
{
    t->next = NULL;
    if (q->first)
        q->last->next = t;
    else
        q->first = t;
    q->last = t;
}

static task *queue_pop(struct task_queue *q)
{
    task *t = q->first;

    if (t)
        q->first = t->next;
    return t;
}

static bool came_before(const task *a, const task *b)
{
    return (int32_t)(a->order - b->order) < 0;
}

/* One worker alone needs no lock for what nobody else can take. */
UNCHECKED static void lock_fresh(struct worker *w)
{
    if (w->runtime->worker_count > 1)
        lock_take(&w->fresh_lock);
}

UNCHECKED static void unlock_fresh(struct worker *w)
{
    if (w->runtime->worker_count > 1)
        lock_drop(&w->fresh_lock);
}

static void push_fresh(struct worker *w, task *t)
{
    t->order = w->order++;
    atomic_poke(&t->home, w);
    lock_fresh(w);
    queue_push(&w->fresh, t);
    atomic_poke(&w->fresh_count, w->fresh_count + 1);
    unlock_fresh(w);
}

/* The oldest unstarted task, if it came before `ready` (or there is no such). */
static task *pop_fresh(struct worker *w, const task *ready)
{
    task *t = NULL;

    if (atomic_peek(&w->fresh_count) == 0)
        return NULL;
    lock_fresh(w);
    if (w->fresh.first && (ready == NULL || came_before(w->fresh.first, ready))) {
        t = queue_pop(&w->fresh);
        atomic_poke(&w->fresh_count, w->fresh_count - 1);
    }
    unlock_fresh(w);
    return t;
}

static void push_back_fresh(struct worker *w, task *t)
{
    lock_fresh(w);
    t->next = w->fresh.first;
    if (w->fresh.first == NULL)
        w->fresh.last = t;
    w->fresh.first = t;
    atomic_poke(&w->fresh_count, w->fresh_count + 1);
    unlock_fresh(w);
}

void worker_make_ready(struct worker *w, task *t)
{
    t->order = w->order++;
    queue_push(&w->ready, t);
}

/* ---- between workers -------------------------------------------------------- */

void worker_wake(struct worker *w)
{
    if (atomic_get(&w->asleep) && atomic_swap(&w->asleep, 0))
        poller_wake(&w->poller);
}

void worker_post(struct worker *w, task *t)
{
    task *newest = atomic_peek(&w->inbox);

    do {
        t->next = newest;
    } while (!atomic_cas(&w->inbox, &newest, t));
    if (newest == NULL)
        worker_wake(w);
}

void worker_poke(struct worker *w, task *t)
{
    if (atomic_swap(&t->poked, 1))
        return; /* is in a list already, and has not been looked at yet */
    task_hold(task_handle(t));

    task *newest = atomic_peek(&w->pokes);
    do {
        t->next_poked = newest;
    } while (!atomic_cas(&w->pokes, &newest, t));
    worker_wake(w);
}

static bool take_inbox(struct worker *w)
{
    task *t = atomic_peek(&w->inbox) ? atomic_swap(&w->inbox, NULL) : NULL, *oldest = NULL;
    bool any = t != NULL;

    while (t) { /* newest first: turn it round */
        task *next = t->next;

        t->next = oldest;
        oldest = t;
        t = next;
    }
    while ((t = oldest)) {
        oldest = t->next;
        if (t->body)
            worker_make_ready(w, t);
        else
            push_fresh(w, t);
    }
    return any;
}

static void take_pokes(struct worker *w)
{
    task *t = atomic_peek(&w->pokes) ? atomic_swap(&w->pokes, NULL) : NULL;

    while (t) {
        task *next = t->next_poked;
        struct worker *home = atomic_get(&t->home);

        atomic_swap(&t->poked, 0);
        if (home != w)
            worker_poke(home, t); /* it was taken over in the meantime */
        else
            task_on_poke(w, t);
        task_drop(t);
        t = next;
    }
}

/* Somebody sleeps while more is waiting here than is about to be run. */
static void share(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;

    if (rt->worker_count == 1 || !atomic_peek(&rt->sleeping) || atomic_peek(&rt->searching))
        return;
    if (worker_now(w) - w->woke_ns < SEARCH_NS)
        return; /* whoever was woken then has just found nothing to take */
    w->woke_ns = w->now_ns;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        if (atomic_peek(&rt->workers[i].asleep)) {
            worker_wake(&rt->workers[i]);
            return;
        }
    }
}

void worker_queue_fresh(struct worker *w, task *t)
{
    push_fresh(w, t);
    if (atomic_peek(&w->fresh_count) > 1)
        share(w);
}

/* Take over half of what v has not started. */
static bool take_half(struct worker *w, struct worker *v)
{
    struct task_queue taken = {0};
    task *t;

    lock_take(&v->fresh_lock);
    uint32_t count = (v->fresh_count + 1) / 2;
    for (uint32_t i = 0; i < count && (t = queue_pop(&v->fresh)); i++) {
        atomic_poke(&v->fresh_count, v->fresh_count - 1);
        queue_push(&taken, t);
    }
    lock_drop(&v->fresh_lock);

    bool any = taken.first != NULL;
    while ((t = queue_pop(&taken))) {
        atomic_poke(&w->stolen, w->stolen + 1);
        push_fresh(w, t);
    }
    return any;
}

static bool take_over(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;

    for (uint32_t i = 0; i < rt->worker_count; i++) {
        struct worker *v = &rt->workers[i];
        uint32_t tick = atomic_peek(&v->tick), fresh = atomic_peek(&v->fresh_count);
        bool stands = tick == w->looked[i];

        w->looked[i] = tick;
        if (v != w && fresh > 0 && (stands || fresh >= BACKLOG) && take_half(w, v))
            return true;
    }
    return false;
}

/* ---- what to run next -------------------------------------------------------- */

int64_t worker_now(struct worker *w)
{
    return w->now_ns = clock_now_ns();
}

static void run_timers(struct worker *w)
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
    take_inbox(w);
    take_pokes(w);
    if (thoroughly) {
        run_timers(w);
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

/* The next task in order, started or not; NULL when there is none. */
static task *pick(struct worker *w)
{
    uint32_t tick = w->tick + 1;

    atomic_poke(&w->tick, tick);
    if (tick % TURNS_A_LOOK == 0 || w->ready.first == NULL)
        look_around(w, tick % TURNS_A_POLL == 0);
    if (w->random)
        shuffle(w);
    task *t = pop_fresh(w, w->ready.first);
    return t ? t : queue_pop(&w->ready);
}

/* ---- starting, switching, ending --------------------------------------------- */

static void task_main(void *arg);

/* A body is read by dumps, from other threads: what they read is only ever changed by
 * atomic stores, or under the names' lock. */
static void body_init(struct body *b, struct stack *stack)
{
    b->stack = stack;
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
        share(w);
}

/* Give t a stack.  False if there is none to be had. */
static bool start(struct worker *w, task *t)
{
    if (timer_reserve(&w->timers, w->started + 1) < 0)
        return false;
    struct stack *stack = stack_get(&w->stacks);
    if (stack == NULL)
        return false;

    struct body *b = (struct body *)(void *)((char *)stack - sizeof *b);
    body_init(b, stack);
    context_prepare(&stack->context, b, task_main, b);
    adopt(w, b, t);
    w->started++;
    return true;
}

static void count_end(struct worker *w)
{
    atomic_put(&w->ended, w->ended + 1);
}

/* The next task that can run, with a stack; NULL when there is none. */
static task *pick_started(struct worker *w)
{
    task *t;

    while ((t = pick(w)) && t->body == NULL && !start(w, t)) {
        if (w->started > 0) { /* one of them will leave its stack to this one */
            push_back_fresh(w, t);
            return queue_pop(&w->ready);
        }
        task_finish(t, WEIR_ENOMEM);
        count_end(w);
    }
    return t;
}

/* Make t, or for NULL the scheduler, what runs; returns where. */
static struct context *become(struct worker *w, task *t)
{
    w->current = t;
    parker_current = t ? &t->parker : w->outside;
    return t ? &t->body->stack->context : &w->scheduler;
}

static _Noreturn void report_overflow(const struct body *b)
{
    char text[128];

    snprintf(text, sizeof text, "weir: BUG: task '%s' overflowed its stack of %zu bytes\n", b->name,
             b->stack->context.bytes);
    bug(text);
}

/* Without a guard an overflow has by now overwritten what lies below. */
static void check_stack(const struct body *b)
{
    if (!b->stack->guarded && (const char *)__builtin_frame_address(0) < b->stack->context.bottom)
        report_overflow(b);
}

void worker_switch(struct worker *w)
{
    task *self = w->current, *next = pick_started(w);

    if (next == self)
        return;
    check_stack(self->body);
    context_switch(&self->body->stack->context, become(w, next));
}

static void task_main(void *arg)
{
    struct body *b = arg;
    struct worker *w = worker_current;
    task *next;

    context_entered();
    do {
        task *t = b->task;
        int result = t->fn(t->arg);

        body_destroy_values(b);
        task_finish(t, result);
        count_end(w);
        next = pick(w);
        if (next && next->body == NULL) { /* starts here: no switch, and a warm stack */
            body_init(b, b->stack);
            adopt(w, b, next);
            become(w, next);
        }
    } while (next && next->body == b);

    /* We stay on this stack until the switch; nobody can take it before. */
    w->started--;
    stack_put(&w->stacks, b->stack);
    context_leave(become(w, next));
}

/* ---- with nothing to run ----------------------------------------------------- */

static bool has_mail(const struct worker *w)
{
    return atomic_get(&w->inbox) || atomic_get(&w->pokes) || atomic_get(&w->runtime->stop);
}

/* Look for work, for about as long as it would take to be woken.  True if there is
 * some. */
static bool search(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;
    uint32_t nobody = 0;
    bool found = false;

    if (cpu_count() == 1 || !atomic_cas(&rt->searching, &nobody, 1))
        return false;
    int64_t until_ns = worker_now(w) + SEARCH_NS;
    while (!found && w->now_ns < until_ns && w->now_ns < timer_next_ns(&w->timers)) {
        for (int i = 0; i < 64 && !has_mail(w); i++)
            cpu_pause();
        if (w->poller.waiting)
            poller_wait(&w->poller, 0);
        found = has_mail(w) || w->ready.first || take_over(w);
        worker_now(w);
    }
    atomic_swap(&rt->searching, 0);
    return found;
}

static void sleep_until_woken(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;

    atomic_add(&rt->sleeping, 1);
    atomic_swap(&w->asleep, 1);
    if (!has_mail(w)) {
        atomic_poke(&w->sleeps, w->sleeps + 1);
        poller_wait(&w->poller, timer_next_ns(&w->timers));
    }
    atomic_swap(&w->asleep, 0);
    atomic_add(&rt->sleeping, (uint32_t)-1);
}

/* Under the virtual clock nothing is waited for that is known to come: time jumps there.
 * Descriptors come first, and so does what runs on other threads. */
static bool time_jumps(struct worker *w)
{
    int64_t next_ns = timer_next_ns(&w->timers);

    if (!atomic_peek(&clock_virtual_ns) || next_ns == INT64_MAX || has_mail(w) ||
        atomic_get(&w->runtime->offloading))
        return false;
    if (w->poller.waiting)
        poller_wait(&w->poller, 0);
    if (w->ready.first)
        return true;
    if (next_ns > clock_now_ns())
        atomic_poke(&clock_virtual_ns, next_ns);
    return true;
}

static void idle(struct worker *w)
{
    runtime_stop_if_done(w->runtime);
    if (!time_jumps(w) && !search(w))
        sleep_until_woken(w);
    run_timers(w);
}

static bool run_one(struct worker *w)
{
    task *t = pick_started(w);

    if (t == NULL)
        return false;
    context_switch(&w->scheduler, become(w, t));
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
            idle(w);
    }
    worker_current = outer;
    parker_current = outer_parker;
}

bool worker_step(struct worker *w, uint32_t most)
{
    uint32_t until = w->tick + most;

    worker_current = w;
    parker_current = w->outside;
    context_of_thread(&w->scheduler);
    atomic_swap(&w->asleep, 0);
    poller_wait(&w->poller, 0);
    worker_now(w);
    run_timers(w);
    while ((int32_t)(until - w->tick) > 0 && run_one(w))
        ;
    /* What is left, and what comes from now on, makes the descriptor readable. */
    atomic_swap(&w->asleep, 1);
    bool more = w->ready.first || atomic_peek(&w->fresh_count) || has_mail(w);
    if (more)
        worker_wake(w);
    poller_set_timer(&w->poller, timer_next_ns(&w->timers));
    worker_current = NULL;
    return more;
}
