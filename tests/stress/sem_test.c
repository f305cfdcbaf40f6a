/* SPDX-License-Identifier: MIT */
/* weir_sem under load: everything at once, by chance, and at the end the books must
 * balance. */
#include <weir/sem.h>

#include <sched.h>
#include <stdlib.h>

#include <weir/op.h>

#include "harness/test.h"

/* ---- permits are conserved ------------------------------------------------------ */

enum { WORKERS = 8, SLOTS = 4, HEAVIEST = 4, SMALLEST = 2, LARGEST = 9 };

struct arena {
    struct weir_sem sem;
    int held;                       /* by those who know that they hold something */
    int queued, called, taken_back; /* callbacks: how each one ended              */
    int closing;
};

struct worker {
    struct arena *arena;
    struct weir_inbox *inbox;
    /* What waits in the background.  QUEUED ends by the callback or by our cancel. */
    struct slot {
        struct weir_op op;
        struct worker *worker;
        uint64_t n; /* 0: until idle */
        bool release_at_once;
        enum { IDLE, QUEUED, SERVED } state;
    } slots[SLOTS];
};

static int add(int *p, int n)
{
    return __atomic_add_fetch(p, n, __ATOMIC_RELAXED);
}

/* We were given n permits. */
static void enter(struct arena *a, uint64_t n)
{
    CHECK(add(&a->held, (int)n) <= LARGEST);
}

static void leave(struct arena *a, uint64_t n)
{
    CHECK(add(&a->held, -(int)n) >= 0);
    if (n > 0)
        CHECK_EQ(weir_sem_release(&a->sem, n), 0);
}

/* We were not; is that a reason?  A deadline is one where there was one. */
static void check_reason(const struct arena *a, uint64_t n, int r, int deadline_reason)
{
    if (r == WEIR_EINVAL)
        CHECK(n > SMALLEST); /* it was too large for one of the capacities */
    else if (r == WEIR_ECLOSED)
        CHECK(n > 0 && __atomic_load_n(&a->closing, __ATOMIC_RELAXED));
    else
        CHECK_EQ(r, deadline_reason);
}

/* ---- in the background */

static int state_of(const struct slot *s)
{
    return (int)__atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct slot *s, int state)
{
    __atomic_store_n((int *)&s->state, state, __ATOMIC_RELEASE);
}

static void on_done(struct weir_op *op, int result)
{
    struct slot *s = (struct slot *)(void *)op;
    struct arena *a = s->worker->arena;

    add(&a->called, 1);
    if (result < 0) {
        check_reason(a, s->n, result, 0);
        set_state(s, IDLE); /* the slot is its worker's again */
        return;
    }
    enter(a, s->n);
    if (s->release_at_once)
        leave(a, s->n);
    set_state(s, s->release_at_once ? IDLE : SERVED);
}

static void slot_start(struct slot *s)
{
    struct arena *a = s->worker->arena;

    s->n = test_random(HEAVIEST + 1);
    s->op.inbox = test_random(2) ? s->worker->inbox : NULL;
    s->release_at_once = test_random(2);
    s->state = QUEUED;
    int r = s->n > 0 ? weir_sem_acquire_async(&a->sem, s->n, &s->op, on_done)
                     : weir_sem_wait_idle_async(&a->sem, &s->op, on_done);
    if (r == 0) {
        add(&a->queued, 1);
    } else if (r == 1) {
        enter(a, s->n);
        s->state = SERVED;
    } else {
        check_reason(a, s->n, r, 0);
        s->state = IDLE;
    }
}

/* Bring a slot one step further. */
static void slot_step(struct slot *s)
{
    struct arena *a = s->worker->arena;

    switch (state_of(s)) {
    case IDLE:
        slot_start(s);
        break;
    case QUEUED:
        if (weir_op_cancel(&s->op) == 1) {
            add(&a->taken_back, 1);
            s->state = IDLE;
        }
        break;
    case SERVED:
        leave(a, s->n);
        s->state = IDLE;
        break;
    }
}

/* Nothing waits and nothing is held in the background after this. */
static void settle(struct worker *w)
{
    for (int i = 0; i < SLOTS; i++) {
        while (state_of(&w->slots[i]) != IDLE) {
            CHECK(weir_inbox_drain(w->inbox) >= 0);
            if (state_of(&w->slots[i]) != IDLE)
                slot_step(&w->slots[i]);
            sched_yield();
        }
    }
}

/* ---- in the foreground */

/* Waiting for ever is only for those who keep nothing from the others meanwhile. */
static struct weir_deadline some_deadline(struct worker *w)
{
    switch (test_random(4)) {
    case 0:
        return (struct weir_deadline){1};
    case 1:
        settle(w);
        return WEIR_FOREVER;
    default:
        return weir_within((1 + test_random(200)) * WEIR_US);
    }
}

static int acquire(struct worker *w, uint64_t n)
{
    struct arena *a = w->arena;
    struct weir_deadline deadline = some_deadline(w);
    int r = weir_sem_acquire(&a->sem, n, deadline);

    if (r < 0)
        check_reason(a, n, r, deadline.at_ns == INT64_MAX ? 0 : WEIR_ETIMEDOUT);
    return r;
}

static int try_acquire(struct worker *w, uint64_t n)
{
    int r = weir_sem_try_acquire(&w->arena->sem, n);

    if (r < 0)
        check_reason(w->arena, n, r, WEIR_EAGAIN);
    return r;
}

static void hold_for_a_moment(struct arena *a, uint64_t n)
{
    enter(a, n);
    for (uint32_t i = test_random(3); i > 0; i--)
        sched_yield();
    leave(a, n);
}

static void wait_idle(struct worker *w)
{
    struct weir_deadline deadline = some_deadline(w);
    int r = weir_sem_wait_idle(&w->arena->sem, deadline);

    if (r < 0)
        check_reason(w->arena, 0, r, deadline.at_ns == INT64_MAX ? 0 : WEIR_ETIMEDOUT);
}

static void do_something(struct worker *w)
{
    uint64_t n = 1 + test_random(HEAVIEST);

    switch (test_random(12)) {
    case 0:
        wait_idle(w);
        break;
    case 1:
        CHECK(weir_inbox_drain(w->inbox) >= 0);
        break;
    case 2:
        if (test_random(4) == 0)
            CHECK_EQ(
                weir_sem_resize(&w->arena->sem, SMALLEST + test_random(LARGEST - SMALLEST + 1)), 0);
        break;
    case 3:
    case 4:
        if (try_acquire(w, n) == 0)
            hold_for_a_moment(w->arena, n);
        break;
    case 5:
    case 6:
    case 7:
        if (acquire(w, n) == 0)
            hold_for_a_moment(w->arena, n);
        break;
    default:
        slot_step(&w->slots[test_random(SLOTS)]);
    }
}

static void work(void *arg)
{
    struct worker *w = arg;
    struct arena *a = w->arena;

    for (int i = test_scaled(24000); i > 0 && !__atomic_load_n(&a->closing, __ATOMIC_RELAXED); i--)
        do_something(w);
    __atomic_store_n(&a->closing, 1, __ATOMIC_RELAXED); /* the first to be through */
    weir_sem_close(&a->sem);
    settle(w);
}

TEST_WITHIN(no_permit_is_lost_or_invented_whatever_happens, 60)
{
    struct arena a = {.sem = WEIR_SEM_INIT(LARGEST)};
    struct worker workers[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];

        *w = (struct worker){.arena = &a};
        CHECK_EQ(weir_inbox_open(&w->inbox), 0);
        for (int j = 0; j < SLOTS; j++)
            w->slots[j] = (struct slot){.op = WEIR_OP_INIT, .worker = w};
    }
    for (int i = 0; i < WORKERS; i++)
        test_spawn(work, &workers[i]);
    test_join_all();
    for (int i = 0; i < WORKERS; i++)
        weir_inbox_close(workers[i].inbox);
    CHECK_EQ(a.held, 0);
    CHECK_EQ(a.queued, a.called + a.taken_back); /* each exactly once */
    CHECK_EQ(weir_sem_waiting(&a.sem), 0);
    CHECK_EQ(weir_sem_available(&a.sem), weir_sem_capacity(&a.sem));
    CHECK_EQ(weir_sem_wait_idle(&a.sem, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_sem_release(&a.sem, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_acquire(&a.sem, 1, WEIR_FOREVER), WEIR_ECLOSED);
}

/* ---- nobody overtakes ------------------------------------------------------------ */

enum { QUEUERS = 6 };

/* One stay in a place for one.  Times are ticks of one counter; whoever was in the queue
 * at a time when another had not yet asked must be served before that other. */
struct visit {
    struct weir_op op;
    struct place *place;
    int64_t asked;  /* before the call                                          */
    int64_t queued; /* after it, for those who then stood in the queue; or never */
    bool taken_back;
};

struct place {
    struct weir_sem sem;
    int64_t ticks;
    struct visit *visits;
    struct visit **served; /* in order; guarded by the semaphore, so TSan watches */
    int served_count;
    int pending;
};

struct queuer {
    struct place *place;
    struct visit *visits;
    int count;
};

static int64_t tick(struct place *p)
{
    return __atomic_add_fetch(&p->ticks, 1, __ATOMIC_SEQ_CST);
}

static void visit(struct visit *v)
{
    struct place *p = v->place;

    p->served[p->served_count++] = v;
    CHECK_EQ(weir_sem_release(&p->sem, 1), 0);
}

static void on_turn(struct weir_op *op, int result)
{
    struct visit *v = (struct visit *)(void *)op;
    struct place *p = v->place;

    CHECK_EQ(result, 0);
    visit(v);
    __atomic_sub_fetch(&p->pending, 1, __ATOMIC_RELEASE);
}

static void visit_async(struct visit *v)
{
    struct place *p = v->place;

    __atomic_add_fetch(&p->pending, 1, __ATOMIC_RELAXED);
    int r = weir_sem_acquire_async(&p->sem, 1, &v->op, on_turn);
    if (r == 0) {
        v->queued = tick(p);
        v->taken_back = test_random(4) == 0 && weir_op_cancel(&v->op) == 1;
    } else {
        CHECK_EQ(r, 1);
        visit(v);
    }
    if (r == 1 || v->taken_back)
        __atomic_sub_fetch(&p->pending, 1, __ATOMIC_RELAXED);
}

static void visit_now(struct visit *v)
{
    struct weir_sem *sem = &v->place->sem;
    struct weir_deadline deadline =
        test_random(2) ? WEIR_FOREVER : weir_within(test_random(100) * WEIR_US);
    int r = test_random(3) ? weir_sem_acquire(sem, 1, deadline) : weir_sem_try_acquire(sem, 1);

    if (r == 0)
        visit(v);
    else
        CHECK(r == WEIR_EAGAIN || (r == WEIR_ETIMEDOUT && deadline.at_ns != INT64_MAX));
}

static void come_often(void *arg)
{
    struct queuer *q = arg;

    for (int i = 0; i < q->count; i++) {
        struct visit *v = &q->visits[i];

        *v = (struct visit){.op = WEIR_OP_INIT, .place = q->place, .queued = INT64_MAX};
        v->asked = tick(q->place);
        if (test_random(3))
            visit_async(v);
        else
            visit_now(v);
    }
}

TEST_WITHIN(nobody_overtakes_who_was_in_the_queue_before, 60)
{
    struct place p = {.sem = WEIR_SEM_INIT(1)};
    struct queuer queuers[QUEUERS];
    int each = test_scaled(40000);

    p.visits = calloc((size_t)(each * QUEUERS), sizeof *p.visits);
    p.served = calloc((size_t)(each * QUEUERS), sizeof(struct visit *));
    CHECK(p.visits && p.served);
    for (int i = 0; i < QUEUERS; i++) {
        queuers[i] = (struct queuer){&p, p.visits + i * each, each};
        test_spawn(come_often, &queuers[i]);
    }
    test_join_all();
    EVENTUALLY(__atomic_load_n(&p.pending, __ATOMIC_ACQUIRE) == 0);

    int64_t first_queued_of_later = INT64_MAX;
    for (int i = p.served_count; i-- > 0;) {
        struct visit *v = p.served[i];

        CHECK(!v->taken_back);
        CHECK(v->asked <= first_queued_of_later);
        if (v->queued < first_queued_of_later)
            first_queued_of_later = v->queued;
    }
    CHECK_EQ(weir_sem_available(&p.sem), 1);
    free(p.visits);
    free(p.served);
}
