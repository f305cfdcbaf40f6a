/* SPDX-License-Identifier: MIT */
/* How tasks park (see core/park.h), and the calls in which a task waits for nothing but
 * time or its turn. */
#include <weir/error.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "task/turn.h"

/* A look at the clock takes as long as a hand-off.  A deadline this far beyond the time
 * of the worker's last look is taken to lie ahead; if some task has kept the worker for
 * longer than that, the timer will say so at once. */
static const int64_t CLOCK_MARGIN_NS = 10 * WEIR_MS;

static __attribute__((noinline)) bool has_passed_by_now(struct worker *w, int64_t at_ns)
{
    return at_ns <= 0 || at_ns <= worker_now(w);
}

static inline bool has_passed(struct worker *w, int64_t at_ns)
{
    return at_ns <= w->now_ns + CLOCK_MARGIN_NS && has_passed_by_now(w, at_ns);
}

bool task_is_struck(const task *t)
{
    if (!atomic_peek(&t->cancelled))
        return false;

    const struct weir_shield *shield = t->body->shield;
    return shield == NULL || has_passed(t->home, shield->until_.at_ns);
}

static int task_refusal(parker *self, struct weir_deadline deadline)
{
    task *t = task_of(self);

    if (has_passed(t->home, deadline.at_ns))
        return WEIR_ETIMEDOUT;
    return task_is_struck(t) ? WEIR_ECANCELED : 0;
}

/* ---- parking ---------------------------------------------------------------- */

/* When to look next: at the deadline, or when a shield no longer holds. */
static void arm(struct worker *w, struct body *b)
{
    int64_t at_ns = b->deadline_ns;

    if (b->shield && b->shield->until_.at_ns < at_ns && !has_passed(w, b->shield->until_.at_ns))
        at_ns = b->shield->until_.at_ns;
    if (at_ns != INT64_MAX)
        timer_arm(&w->timers, &b->timer, at_ns);
}

/* End a sleep for a reason of its own, unless it is DONE (park.h, invariant 2). */
static void wake_because(struct worker *w, struct body *b, int why)
{
    uint32_t seen = ASLEEP;

    if (b->sleeper == NULL || !atomic_cas(&b->sleeper->state, &seen, AWAKE))
        return;
    b->sleeper = NULL;
    b->why = why;
    worker_make_ready(w, b->task);
}

static void sleep_now(struct worker *w, struct body *b, sleeper *s, int64_t deadline_ns)
{
    b->sleeper = s;
    b->why = 0;
    b->deadline_ns = deadline_ns;
    atomic_poke(&b->waits_for, sleeper_waits_for(s));
    atomic_put(&b->parked_at_ns, w->now_ns);
    if (!(s->flags & SLEEP_FIRM) && (deadline_ns != INT64_MAX || b->shield))
        arm(w, b);
    worker_switch(w);
    timer_disarm(&w->timers, &b->timer);
    b->sleeper = NULL;
    atomic_poke(&b->parked_at_ns, 0);
}

/* Spin for whoever has what we want on another CPU, if there is nothing else to do: with
 * other tasks to run, or the other side on this worker, it would be waiting for us. */
static void spin(struct worker *w, const sleeper *s)
{
    enum { PAUSES = 40 };

    if (w->runtime->worker_count == 1 || !(s->flags & SLEEP_SPIN) || w->ready.first ||
        atomic_peek(&w->fresh_count))
        return;
    for (int i = 0; i < PAUSES && !atomic_peek(&w->inbox); i++)
        cpu_pause();
}

/* A sleep begins ASLEEP.  If it is DONE by now, then this task is in a run queue or inbox,
 * and must pass through it.  Only after a sleep that was given up is it AWAKE, and if that
 * is DONE by now, nobody has made us run. */
static int task_park(parker *self, sleeper *s, struct weir_deadline deadline)
{
    task *t = task_of(self);
    struct worker *w = t->home;
    uint32_t seen = AWAKE;

    if ((s->flags & SLEEP_AGAIN) && !atomic_cas(&s->state, &seen, ASLEEP))
        return 0;
    if (!(s->flags & SLEEP_FIRM)) {
        seen = ASLEEP;
        if (task_is_struck(t) && atomic_cas(&s->state, &seen, AWAKE))
            return WEIR_ECANCELED;
        spin(w, s);
    }
    sleep_now(w, t->body, s, deadline.at_ns);
    return t->body->why;
}

/* Its deadline and a cancel end a sleep on its own thread only; so there, nobody else does
 * at the same time, and looking and storing need not be one step. */
static bool end_at_home(sleeper *s)
{
    bool asleep = atomic_peek(&s->state) == ASLEEP;

    atomic_put(&s->state, DONE);
    return asleep;
}

static uint8_t task_done(parker *self, sleeper *s)
{
    task *t = task_of(self);
    struct worker *home = t->home; /* it is started, so this is for good */

    if (home == worker_current) {
        worker_prefetch_woken(home, t, s);
        if (end_at_home(s))
            worker_make_ready(home, t);
    } else if (sleeper_end(s)) {
        worker_post(home, t);
    }
    return 0;
}

static void task_give_way(parker *self)
{
    task *t = task_of(self);

    worker_make_ready(t->home, t);
    worker_switch(t->home);
}

const struct parker_ops task_parker_ops = {
    .begins = ASLEEP,
    .refusal = task_refusal,
    .park = task_park,
    .done = task_done,
    .give_way = task_give_way,
};

void body_on_timer(struct worker *w, struct body *b)
{
    if (b->deadline_ns <= w->now_ns)
        wake_because(w, b, WEIR_ETIMEDOUT);
    else if (task_is_struck(b->task))
        wake_because(w, b, WEIR_ECANCELED);
    else
        arm(w, b); /* only the shield has worn off */
}

void task_on_poke(struct worker *w, task *t)
{
    struct body *b = atomic_get(&t->body);

    /* First the body: once it is there, the task has started, and its home is for good. */
    if (b == NULL || atomic_get(&t->home) != w || b->sleeper == NULL)
        return; /* not started, or running: it will find out when it wants to wait */
    if (!(b->sleeper->flags & SLEEP_FIRM) && task_is_struck(t))
        wake_because(w, b, WEIR_ECANCELED);
}

/* ---- waiting for nothing ---------------------------------------------------- */

int weir_task_yield(void)
{
    task *t = task_current();

    if (t == NULL) {
        cpu_yield();
        return 0;
    }
    task_give_way(&t->parker);
    return task_is_struck(t) ? WEIR_ECANCELED : 0;
}

int weir_task_sleep(struct weir_deadline until)
{
    task *t = task_current();
    sleeper s = sleeper_self();
    int r = park_refusal(until);

    if (r == 0)
        r = park(&s, until);
    if (r == WEIR_ETIMEDOUT)
        return t && task_is_struck(t) ? WEIR_ECANCELED : 0;
    return r;
}

void weir_shield_begin(struct weir_shield *shield, struct weir_deadline grace)
{
    task *t = task_current();

    shield->until_ = grace;
    shield->task_ = t;
    shield->outer_ = t ? t->body->shield : NULL;
    if (t)
        t->body->shield = shield;
}

void weir_shield_end(struct weir_shield *shield)
{
    if (shield->task_)
        shield->task_->body->shield = shield->outer_;
}
