/* SPDX-License-Identifier: MIT */
/* Memory for task records: slabs that are never given back, and lists of what is spare. */
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/lock.h"
#include "task/sched.h"

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
    for (size_t i = 0; i < RECORDS_A_SLAB; i++) {
        slab->records[i].queue.word = life_begun(0);
        slab->records[i].next = &slab->records[i + 1]; /* but the last: see spares_add */
    }
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

task *record_take(struct worker *here)
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

void record_free(task *t)
{
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

/* ---- visitors ---------------------------------------------------------------- */

/* (a) Calls that go from a record to its worker, which may end meanwhile. */
static uint32_t visitors;

void task_visitor_comes(void)
{
    atomic_add(&visitors, 1);
}

void task_visitor_goes(void)
{
    atomic_add(&visitors, (uint32_t)-1);
}

void task_await_visitors(void)
{
    while (atomic_get(&visitors) > 0)
        cpu_yield();
}

void task_visit(void (*each)(task *t, void *arg), void *arg)
{
    task_visitor_comes();
    lock_take(&records.lock);
    struct record_slab *slab = records.slabs;
    lock_drop(&records.lock);

    for (; slab; slab = slab->next) {
        for (size_t i = 0; i < RECORDS_A_SLAB; i++) {
            task *t = &slab->records[i];

            /* One that is free or joined has no home, and is none of anybody's business. */
            if (atomic_peek(&t->home) && task_hold(task_handle(t))) {
                each(t, arg);
                task_drop(t);
            }
        }
    }
    task_visitor_goes();
}
