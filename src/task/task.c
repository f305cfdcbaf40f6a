/* SPDX-License-Identifier: MIT */
/* Task records, and the calls that take a handle.
 *
 * A record's life is one word, so that a handle is checked and held in one step:
 *
 *     63           32 31 30       29        28       0
 *     +--------------+--+--------+---------+---------+
 *     | generation   |  | JOINED | JOINING | holders |     DETACHED is bit 31
 *     +--------------+--+--------+---------+---------+
 *
 * The generation counts how often the record was freed.  A handle that names another
 * one is stale, whatever the record is used for now. */
#include "task/task.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/lock.h"
#include "core/op.h"
#include "task/sched.h"

static const uint64_t DETACHED = UINT64_C(1) << 31;
static const uint64_t JOINED = UINT64_C(1) << 30;
static const uint64_t JOINING = UINT64_C(1) << 29;
static const uint64_t HOLDERS = (UINT64_C(1) << 29) - 1;

enum { RECORDS_A_SLAB = (size_t)64 * 1024 / sizeof(task) - 1 };

/* Never freed: a stale handle may point into it for as long as the process lives. */
struct record_slab {
    struct record_slab *next;
    task records[RECORDS_A_SLAB];
};

/* "used", so that tools/gdb finds it whole in an optimised build. */
static struct {
    lock lock;
    struct record_slab *slabs; /* under lock */
    task *spares;              /* under lock; linked by next */
} records __attribute__((used));

/* (a) Calls that go from a record to its worker, which may end meanwhile. */
static uint32_t visitors;

void task_await_visitors(void)
{
    while (atomic_get(&visitors) > 0)
        cpu_yield();
}

static uint32_t generation_of(uint64_t life)
{
    return (uint32_t)(life >> 32);
}

/* ---- memory for records ----------------------------------------------------- */

/* What a worker takes from, and gives back to, the common list at a time. */
enum { SPARES_A_TRIP = 64 };

static void spares_add(task *first, task *last)
{
    lock_take(&records.lock);
    last->next = records.spares;
    records.spares = first;
    lock_drop(&records.lock);
}

static bool new_slab(void)
{
    struct record_slab *slab = mem_alloc(sizeof *slab);

    if (slab == NULL)
        return false;
    for (size_t i = 0; i + 1 < RECORDS_A_SLAB; i++)
        slab->records[i].next = &slab->records[i + 1];
    lock_take(&records.lock);
    slab->next = records.slabs;
    records.slabs = slab;
    lock_drop(&records.lock);
    spares_add(&slab->records[0], &slab->records[RECORDS_A_SLAB - 1]);
    return true;
}

/* The n-th of a list, or its last. */
static task *nth(task *t, uint32_t n)
{
    while (n > 1 && t->next) {
        t = t->next;
        n--;
    }
    return t;
}

/* Up to n spare records, linked; NULL when there is no memory. */
static task *take_spares(uint32_t n)
{
    do {
        lock_take(&records.lock);
        task *first = records.spares;
        if (first) {
            task *last = nth(first, n);

            records.spares = last->next;
            last->next = NULL;
        }
        lock_drop(&records.lock);
        if (first)
            return first;
    } while (new_slab());
    return NULL;
}

static task *take_record(struct worker *here)
{
    if (here == NULL)
        return take_spares(1);
    if (here->spares == NULL) {
        here->spares = take_spares(SPARES_A_TRIP);
        here->spare_count = SPARES_A_TRIP; /* or fewer; it is only to be bounded */
    }
    task *t = here->spares;
    if (t) {
        here->spares = t->next;
        here->spare_count--;
    }
    return t;
}

/* A worker that ends more tasks than it spawns would keep them all. */
static void spare(struct worker *here, task *t)
{
    t->next = here->spares;
    here->spares = t;
    if (++here->spare_count <= 2 * SPARES_A_TRIP)
        return;
    task *last = nth(t, SPARES_A_TRIP);
    here->spares = last->next;
    here->spare_count -= SPARES_A_TRIP;
    spares_add(t, last);
}

static void free_record(task *t)
{
    atomic_put(&t->life, (uint64_t)(generation_of(atomic_peek(&t->life)) + 1) << 32);
    if (worker_current)
        spare(worker_current, t);
    else
        spares_add(t, t);
}

void task_spares_return(struct worker *w)
{
    if (w->spares)
        spares_add(w->spares, nth(w->spares, UINT32_MAX));
    w->spares = NULL;
}

void task_visit(void (*each)(task *t, void *arg), void *arg)
{
    atomic_add(&visitors, 1);
    lock_take(&records.lock);
    struct record_slab *slab = records.slabs;
    lock_drop(&records.lock);

    for (; slab; slab = slab->next) {
        for (size_t i = 0; i < RECORDS_A_SLAB; i++) {
            task *t = &slab->records[i];
            struct weir_task handle = {t, generation_of(atomic_peek(&t->life))};

            if (task_hold(handle)) {
                each(t, arg);
                task_drop(t);
            }
        }
    }
    atomic_add(&visitors, (uint32_t)-1);
}

/* ---- holding ---------------------------------------------------------------- */

task *task_new(struct worker *here, struct task_code code)
{
    task *t = take_record(here);

    if (t == NULL)
        return NULL;
    uint64_t generation = generation_of(atomic_peek(&t->life));
    t->parker.ops = &task_parker_ops;
    t->next = NULL;
    atomic_poke(&t->home, NULL);
    t->body = NULL;
    t->code = code;
    weir_event_init(&t->ended);
    t->next_poked = NULL;
    t->result = 0;
    atomic_poke(&t->cancelled, 0);
    atomic_poke(&t->poked, 0);
    atomic_put(&t->life, generation << 32 | 2); /* the running side, and the handle */
    return t;
}

/* Change the life of what the handle names, unless `refuse` says that it is past that. */
static task *change_life(struct weir_task handle, uint64_t refuse, uint64_t flags, uint64_t holders)
{
    task *t = handle.slot_;

    if (t == NULL)
        return NULL;
    uint64_t life = atomic_get(&t->life);
    do {
        if (generation_of(life) != handle.generation_ || (life & refuse) || !(life & HOLDERS))
            return NULL;
    } while (!atomic_cas(&t->life, &life, (life | flags) + holders));
    return t;
}

task *task_hold(struct weir_task handle)
{
    return change_life(handle, JOINED, 0, 1);
}

void task_hold_again(task *t)
{
    atomic_add(&t->life, 1);
}

/* Let go of so many references, and perhaps of a flag, in one step. */
static void drop(task *t, uint64_t what)
{
    if ((atomic_add(&t->life, -what) & HOLDERS) == 0)
        free_record(t);
}

void task_drop(task *t)
{
    drop(t, 1);
}

struct weir_task task_handle(const task *t)
{
    return (struct weir_task){(task *)t, generation_of(atomic_peek(&t->life))};
}

void task_finish(task *t, int result)
{
    atomic_put(&t->home, NULL); /* from now on nobody goes from here to the worker */
    t->result = result;
    weir_event_set(&t->ended);
    task_drop(t);
}

task *task_current(void)
{
    struct worker *w = worker_current;

    return w && w->current && parker_current == &w->current->parker ? w->current : NULL;
}

/* ---- public ----------------------------------------------------------------- */

int weir_task_spawn(weir_fn *fn, void *arg, struct weir_task *ret_task)
{
    struct worker *w = worker_current;

    return w ? runtime_spawn(w->runtime, (struct task_code){fn, arg, NULL}, ret_task)
             : WEIR_ECONTEXT;
}

int weir_task_join(struct weir_task handle, struct weir_deadline deadline, int *ret_result)
{
    task *self = task_current();

    if (self && handle.slot_ == self && handle.generation_ == task_handle(self).generation_)
        return WEIR_ECONTEXT;
    task *t = change_life(handle, JOINED | JOINING | DETACHED, JOINING, 1);
    if (t == NULL)
        return WEIR_EINVAL;

    int r = weir_event_wait(&t->ended, deadline);
    if (r < 0) {
        drop(t, JOINING + 1);
        return r;
    }
    if (ret_result)
        *ret_result = t->result;
    drop(t, JOINING - JOINED + 2); /* our reference, and the handle's */
    return 0;
}

int weir_task_join_async(struct weir_task handle, struct weir_op *op, weir_done *done)
{
    task *t = change_life(handle, JOINED | JOINING | DETACHED, 0, 1);

    if (t == NULL)
        return WEIR_EINVAL;
    int r = weir_event_wait_async(&t->ended, op, done);
    task_drop(t); /* the handle keeps it, until it is joined */
    return r;
}

int weir_task_detach(struct weir_task handle)
{
    task *t = change_life(handle, JOINED | JOINING | DETACHED, DETACHED, 0);

    if (t == NULL)
        return WEIR_EINVAL;
    task_drop(t);
    return 0;
}

int weir_task_cancel(struct weir_task handle)
{
    task *t = task_hold(handle);
    struct worker *here = worker_current;

    if (t == NULL)
        return WEIR_EINVAL;
    atomic_add(&visitors, 1);
    if (atomic_swap(&t->cancelled, 1) == 0) {
        struct worker *home = atomic_get(&t->home);

        if (home && home == here)
            task_on_poke(here, t);
        else if (home)
            worker_poke(home, t);
    }
    atomic_add(&visitors, (uint32_t)-1);
    task_drop(t);
    return 0;
}

struct weir_task weir_task_self(void)
{
    struct worker *w = worker_current;

    return w && w->current ? task_handle(w->current) : (struct weir_task){0};
}
