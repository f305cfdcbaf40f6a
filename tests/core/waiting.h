/* SPDX-License-Identifier: MIT */
/* For tests of what can be waited for: threads and callbacks that wait, a look into
 * the queue in which they stand, and objects that are freed as soon as they may be.
 *
 * An `object` here is any of weir's; each begins with its queue. */
#ifndef WEIR_TESTS_CORE_WAITING_H
#define WEIR_TESTS_CORE_WAITING_H

#include <weir/op.h>

#include <sched.h>
#include <stdlib.h>

#include "core/waitq.h"
#include "harness/test.h"

#define ABOUT_TO_SLEEP "park: about to sleep"
#define ABOUT_TO_LEAVE "waitq: about to leave"
#define NOT_DELIVERED  "waitq: granted, not delivered"

enum {
    NOT_YET = 1000000,             /* no wait returns this */
    BRIEFLY = (int)(20 * WEIR_MS), /* longer than a thread takes from the look at the clock to
                                      the queue, even if it loses its CPU in between */
};

/* ---- the queue -------------------------------------------------------------- */

static inline uint32_t queued(const void *object)
{
    return __atomic_load_n(&((const waitq *)object)->length, __ATOMIC_RELAXED);
}

/* The record of the nth in the queue; the oldest is number 0. */
static inline waiter *nth_waiter(void *object, int n)
{
    uint64_t word = waitq_lock(object);
    waiter *w = waitq_first(object);

    while (n-- > 0)
        w = w->next;
    waitq_unlock(object, word);
    return w;
}

static inline enum sleeper_state state_of(const waiter *w)
{
    return (enum sleeper_state)__atomic_load_n(&w->sleeper.state, __ATOMIC_ACQUIRE);
}

/* Let a thread make a call, with somebody inside the object until it sleeps for that. */
static inline void call_while_locked(void *object, void (*call)(void *), void *arg)
{
    waitq *q = object;
    uint64_t word = waitq_lock(q);

    test_spawn(call, arg);
    EVENTUALLY(__atomic_load_n(&q->word, __ATOMIC_RELAXED) & WORD_SLEEPER);
    waitq_unlock(q, word);
    test_join_all();
}

/* ---- threads that wait ------------------------------------------------------- */

typedef int blocking_wait(void *object, struct weir_deadline deadline);

struct visitor {
    blocking_wait *wait;
    void *object;
    int64_t patience_ns; /* 0: it waits for ever */
    int result;
};

static inline void visit(void *arg)
{
    struct visitor *v = arg;
    struct weir_deadline deadline = v->patience_ns ? weir_within(v->patience_ns) : WEIR_FOREVER;
    int r = v->wait(v->object, deadline);

    __atomic_store_n(&v->result, r, __ATOMIC_RELEASE);
}

static inline int result_of(const struct visitor *v)
{
    return __atomic_load_n(&v->result, __ATOMIC_ACQUIRE);
}

/* Start n visitors and return once they are in the queue, in this order. */
static inline void queue_up(struct visitor *v, int n)
{
    for (; n > 0; v++, n--) {
        uint32_t before = queued(v->object);

        v->result = NOT_YET;
        test_spawn(visit, v);
        EVENTUALLY(queued(v->object) == before + 1);
    }
}

/* Start a visitor and catch it when its deadline has passed and it is still queued. */
static inline void queue_up_and_hold_leaving(struct visitor *v)
{
    v->patience_ns = BRIEFLY;
    test_hold(ABOUT_TO_LEAVE);
    queue_up(v, 1);
    test_reached(ABOUT_TO_LEAVE);
}

/* ---- callbacks --------------------------------------------------------------- */

/* How often it was called, with what, and as which of all. */
struct caller {
    struct weir_op op;
    int times, result, place;
};

static int called; /* how many of them */

static inline void note(struct weir_op *op, int result)
{
    struct caller *c = (struct caller *)op;

    c->times++;
    c->result = result;
    c->place = __atomic_add_fetch(&called, 1, __ATOMIC_RELEASE);
}

static inline int calls(void)
{
    return __atomic_load_n(&called, __ATOMIC_ACQUIRE);
}

/* ---- end of life ------------------------------------------------------------- */

/* Object after object is freed by its waiter the moment the wait returns, while the
 * call that ended the wait may still be running: ASan watches that one.  The wait ends
 * at any moment from before it began until the thread sleeps, and if the thread missed
 * that just once, all would stand still. */
struct short_lives {
    size_t size;
    void (*init)(void *object);
    blocking_wait *wait;
    void (*end_wait)(void *object);
    int rounds;
    cpu_set_t cpus;
    void *handed_over;
};

/* Move the calling thread to the first or the last of these CPUs.  Most lives are spent
 * where the scheduler likes, the last with waiter and waker side by side. */
static inline void move_to_one_of(const cpu_set_t *cpus, bool last)
{
    size_t cpu = last ? CPU_SETSIZE - 1 : 0;
    cpu_set_t one;

    while (!CPU_ISSET(cpu, cpus))
        cpu = last ? cpu - 1 : cpu + 1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static inline void wait_and_free(void *arg)
{
    struct short_lives *l = arg;

    for (int i = 0; i < l->rounds; i++) {
        void *object;

        if (i == l->rounds - l->rounds / 10)
            move_to_one_of(&l->cpus, true);
        while ((object = __atomic_load_n(&l->handed_over, __ATOMIC_ACQUIRE)) == NULL)
            sched_yield();
        CHECK(l->wait(object, WEIR_FOREVER) >= 0);
        free(object);
        __atomic_store_n(&l->handed_over, NULL, __ATOMIC_RELEASE);
    }
}

/* Let time pass until the wait shall end. */
static inline void choose_moment(void *object)
{
    uint32_t moment = test_random(4);

    if (moment == 0)
        return; /* perhaps before it begins */
    while (queued(object) == 0)
        sched_yield();
    if (moment == 1) { /* sooner or later */
        for (int64_t end_ns = weir_now_ns() + test_random(30) * WEIR_US; weir_now_ns() < end_ns;)
            ;
    } else { /* just when it falls asleep */
        const waiter *w = nth_waiter(object, 0);

        for (int i = 1; state_of(w) != ASLEEP; i++)
            if (i % 1000 == 0)
                sched_yield();
        for (volatile uint32_t pauses = test_random(100); pauses > 0;)
            pauses--;
    }
}

static inline void live_short_lives(struct short_lives l)
{
    l.rounds = test_scaled(1000);
    CHECK_EQ(sched_getaffinity(0, sizeof l.cpus, &l.cpus), 0);
    test_spawn(wait_and_free, &l);
    for (int i = 0; i < l.rounds; i++) {
        void *object = malloc(l.size);

        if (i == l.rounds - l.rounds / 10)
            move_to_one_of(&l.cpus, false);
        CHECK(object != NULL);
        l.init(object);
        __atomic_store_n(&l.handed_over, object, __ATOMIC_RELEASE);
        choose_moment(object);
        l.end_wait(object);
        while (__atomic_load_n(&l.handed_over, __ATOMIC_ACQUIRE) != NULL)
            sched_yield();
    }
    test_join_all();
    CHECK_EQ(sched_setaffinity(0, sizeof l.cpus, &l.cpus), 0);
}

/* The same without luck: the wait is a callback's, which frees the object and its own
 * record from inside the call that ended the wait. */
struct mortal {
    struct weir_op op;
    void *object;
};

static inline void free_mortal(struct weir_op *op, int result)
{
    struct mortal *m = (struct mortal *)op;

    CHECK(result >= 0);
    __atomic_add_fetch(&called, 1, __ATOMIC_RELEASE);
    free(m->object);
    free(m);
}

static inline struct mortal *new_mortal(size_t object_size)
{
    struct mortal *m = malloc(sizeof *m);

    CHECK(m != NULL);
    weir_op_init(&m->op);
    m->object = malloc(object_size);
    CHECK(m->object != NULL);
    return m;
}

#endif
