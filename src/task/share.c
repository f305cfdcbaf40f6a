/* SPDX-License-Identifier: MIT */
/* What goes from one worker to another: tasks that were unparked, spawned or cancelled
 * elsewhere, and tasks that have not started. */
#include "base/testpoint.h"
#include "task/sched.h"

/* So many unstarted tasks are worth taking over even from a worker that gets on. */
enum { BACKLOG = 256 };

/* ---- unstarted tasks --------------------------------------------------------- */

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

void worker_push_fresh(struct worker *w, task *t)
{
    t->order = w->order;
    atomic_poke(&w->order, w->order + 1);
    atomic_put(&t->home, w); /* from now on visitors may look at it */
    lock_fresh(w);
    queue_push(&w->fresh, t);
    atomic_poke(&w->fresh_count, w->fresh_count + 1);
    unlock_fresh(w);
}

/* The oldest unstarted task, if it came before `ready` (or there is no such). */
task *worker_pop_fresh(struct worker *w, const task *ready)
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

void worker_push_back_fresh(struct worker *w, task *t)
{
    lock_fresh(w);
    t->next = w->fresh.first;
    if (w->fresh.first == NULL)
        w->fresh.last = t;
    w->fresh.first = t;
    atomic_poke(&w->fresh_count, w->fresh_count + 1);
    unlock_fresh(w);
}

/* ---- between workers -------------------------------------------------------- */

void worker_wake(struct worker *w)
{
    if (atomic_get(&w->asleep) && atomic_swap(&w->asleep, 0))
        poller_wake(&w->poller);
}

static void post(struct worker *w, task *t)
{
    task *newest = atomic_peek(&w->inbox);

    do {
        t->next = newest;
    } while (!atomic_cas(&w->inbox, &newest, t));
    if (newest == NULL)
        worker_wake(w);
}

/* Once it is posted, t may run, be the last to end, and the runtime be closed, before we
 * have woken the worker; unless we are one of those that closing waits for. */
void worker_post(struct worker *w, task *t)
{
    struct weir_runtime *rt = w->runtime;
    bool outside = worker_current == NULL || worker_current->runtime != rt;

    if (outside)
        atomic_add(&rt->visitors, 1);
    post(w, t);
    if (outside)
        atomic_add(&rt->visitors, (uint32_t)-1);
}

void worker_poke(struct worker *w, task *t)
{
    TESTPOINT("task: about to poke");
    if (atomic_swap(&t->poked, 1))
        return;         /* is in a list already, and has not been looked at yet */
    task_hold_again(t); /* it may have been joined by now, and its handle be stale */

    task *newest = atomic_peek(&w->pokes);
    do {
        t->next_poked = newest;
    } while (!atomic_cas(&w->pokes, &newest, t));
    worker_wake(w);
}

bool worker_take_inbox(struct worker *w)
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
            worker_push_fresh(w, t);
    }
    return any;
}

void worker_take_pokes(struct worker *w)
{
    task *t = atomic_peek(&w->pokes) ? atomic_swap(&w->pokes, NULL) : NULL;

    while (t) {
        task *next = t->next_poked;
        struct worker *home = atomic_get(&t->home);

        atomic_swap(&t->poked, 0);
        if (home == w)
            task_on_poke(w, t);
        else if (home)
            worker_poke(home, t); /* it was taken over in the meantime */
        task_drop(t);
        t = next;
    }
}

/* Wake somebody who sleeps, unless somebody is looking around already.  That limits how often:
 * whoever is woken needs some 35 us to get up, and then looks for 40.  And whoever stops
 * looking sees, before it sleeps for long, that there is something here. */
void worker_share(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;

    if (rt->worker_count == 1 || atomic_get(&rt->searching) || !atomic_get(&rt->sleeping))
        return;
    for (uint32_t i = 0; i < rt->worker_count; i++) {
        if (atomic_peek(&rt->workers[i].asleep)) {
            worker_wake(&rt->workers[i]);
            return;
        }
    }
}

void worker_queue_fresh(struct worker *w, task *t)
{
    worker_push_fresh(w, t);
    worker_share(w);
}

/* Not through the inbox, which is w's alone: w may be computing.  With one worker there is
 * nobody else to take it, and the queue is not locked. */
void worker_give_fresh(struct worker *w, task *t)
{
    struct weir_runtime *rt = w->runtime;

    atomic_put(&t->home, w); /* from now on visitors may look at it */
    if (rt->worker_count == 1) {
        worker_post(w, t);
        return;
    }
    atomic_add(&rt->visitors, 1);
    t->order = atomic_peek(&w->order);
    lock_take(&w->fresh_lock);
    queue_push(&w->fresh, t);
    atomic_poke(&w->fresh_count, w->fresh_count + 1);
    lock_drop(&w->fresh_lock);
    worker_wake(w);
    worker_share(w);
    atomic_add(&rt->visitors, (uint32_t)-1);
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
        worker_push_fresh(w, t);
    }
    return any;
}

bool worker_take_over(struct worker *w)
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
