/* SPDX-License-Identifier: MIT */
#include <weir/scope.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "task/sched.h"

/* Locking key: (s) the scope's lock  (c) constant */
struct weir_scope_child_ {
    struct weir_scope_child_ *next, *prev; /* (s) */
    struct weir_scope *scope;              /* (c) */
    weir_fn *fn;                           /* (c) */
    void *arg;                             /* (c) */
    struct weir_task task;                 /* (s) set when it starts */
    bool told;                             /* (s) that it is cancelled */
    bool began;                            /* by its task: is in the list */
};

typedef struct weir_scope_child_ child;

UNCHECKED static void scope_lock(struct weir_scope *scope)
{
    lock_take((lock *)(void *)&scope->lock_);
}

UNCHECKED static void scope_unlock(struct weir_scope *scope)
{
    lock_drop((lock *)(void *)&scope->lock_);
}

/* ---- cancelling ------------------------------------------------------------- */

/* Handles of some children that have not been told yet; 0 when all have. */
static size_t untold(struct weir_scope *scope, struct weir_task *some, size_t most)
{
    size_t n = 0;

    scope_lock(scope);
    for (child *c = scope->children_; c && n < most; c = c->next) {
        if (!c->told) {
            c->told = true;
            some[n++] = c->task;
        }
    }
    scope_unlock(scope);
    return n;
}

/* Cancelling may have to wake another worker, so it is done outside the lock, a few
 * children at a time.  Those that start later see for themselves. */
void weir_scope_cancel(struct weir_scope *scope)
{
    struct weir_task some[32];
    size_t n;

    atomic_swap(&scope->cancelled_, 1);
    while ((n = untold(scope, some, 32)) > 0) {
        for (size_t i = 0; i < n; i++)
            weir_task_cancel(some[i]);
    }
}

/* ---- a child ---------------------------------------------------------------- */

static void child_begin(child *c)
{
    struct weir_scope *scope = c->scope;

    scope_lock(scope);
    bool late = atomic_get(&scope->cancelled_);
    c->task = weir_task_self();
    c->told = late;
    c->began = true;
    c->next = scope->children_;
    if (c->next)
        c->next->prev = c;
    scope->children_ = c;
    scope_unlock(scope);
    if (late)
        weir_task_cancel(weir_task_self());
}

static int child_main(void *arg)
{
    child *c = arg;

    child_begin(c);
    return c->fn(c->arg);
}

static void child_leave(child *c)
{
    struct weir_scope *scope = c->scope;

    scope_lock(scope);
    *(c->prev ? &c->prev->next : &scope->children_) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    scope_unlock(scope);
}

/* The task has ended, or could not be given a stack: a failure like any other. */
static void child_ended(void *arg, int result)
{
    child *c = arg;
    struct weir_scope *scope = c->scope;
    bool stopped = atomic_get(&scope->cancelled_) && result == WEIR_ECANCELED;
    int none = 0;

    if (c->began)
        child_leave(c);
    mem_free(c);
    if (result < 0 && !stopped && atomic_cas(&scope->failure_, &none, result))
        weir_scope_cancel(scope);
    weir_countdown_down(&scope->running_, 1); /* our last access to the scope */
}

/* ---- the scope -------------------------------------------------------------- */

void weir_scope_open(struct weir_scope *scope, struct weir_deadline deadline)
{
    *scope = (struct weir_scope){.deadline_ = deadline};
}

int weir_scope_spawn(struct weir_scope *scope, weir_fn *fn, void *arg)
{
    if (atomic_get(&scope->closed_))
        return WEIR_ECLOSED;
    child *c = mem_alloc(sizeof *c);
    if (c == NULL)
        return WEIR_ENOMEM;
    *c = (child){.scope = scope, .fn = fn, .arg = arg};
    weir_countdown_up(&scope->running_, 1);
    struct worker *w = worker_current;
    int r = w ? runtime_spawn(w->runtime, child_main, c, child_ended, NULL) : WEIR_ECONTEXT;
    if (r < 0) {
        mem_free(c);
        weir_countdown_down(&scope->running_, 1);
    }
    return r;
}

/* Whoever is waited for may not wait. */
static bool is_child_of(const task *t, const struct weir_scope *scope)
{
    return t && t->ended == child_ended && ((const child *)t->arg)->scope == scope;
}

int weir_scope_close(struct weir_scope *scope)
{
    if (is_child_of(task_current(), scope))
        return WEIR_ECONTEXT;
    int r = weir_countdown_wait(&scope->running_, scope->deadline_);

    /* A deadline that has passed says ETIMEDOUT also to who may not wait at all. */
    if (r < 0 && park_refusal(WEIR_FOREVER) == WEIR_ECONTEXT)
        return WEIR_ECONTEXT;
    if (r < 0) {
        struct weir_shield shield;

        weir_scope_cancel(scope);
        weir_shield_begin(&shield, WEIR_FOREVER);
        int joined = weir_countdown_wait(&scope->running_, WEIR_FOREVER);
        weir_shield_end(&shield);
        if (joined < 0)
            return joined;
    }
    atomic_swap(&scope->closed_, 1);
    int failure = atomic_get(&scope->failure_);
    return failure ? failure : r;
}
