/* SPDX-License-Identifier: MIT */
/* The narrow races, held open with testpoints: each test stops a thread in the middle
 * of what it does, lets the other side of the race happen, and looks who won.
 *
 * Whoever decides first under the queue's lock wins: a wait that was granted (or sent
 * away) succeeds (or fails) with that, however late it notices. */
#include <weir/weir.h>

#include <sched.h>
#include <stddef.h>

#include "harness/test.h"

#define SLEEP "park: about to sleep"          /* queued, and nothing has come so far      */
#define LEAVE "waitq: about to leave"         /* deadline or cancel noticed, still queued */
#define GRANT "waitq: granted, not delivered" /* decided, and nobody has been told       */

/* ---- a thread in a wait -------------------------------------------------------- */

struct flow {
    int (*wait)(void *object, struct weir_deadline deadline);
    void (*undo)(void *object); /* what a wait breaks that came too late even to queue */
    void *object;               /* which begins with its queue                         */
    int result;
    int leaving, returned;
};

static void flow_return(struct flow *f, int result)
{
    f->result = result;
    __atomic_store_n(&f->returned, 1, __ATOMIC_RELEASE);
}

static void run(void *arg)
{
    struct flow *f = arg;

    flow_return(f, f->wait(f->object, WEIR_FOREVER));
}

static void run_until_leaving(void *arg)
{
    struct flow *f = arg;

    for (;;) {
        int r = f->wait(f->object, weir_within(WEIR_MS));

        if (__atomic_load_n(&f->leaving, __ATOMIC_ACQUIRE)) {
            flow_return(f, r);
            return;
        }
        CHECK_EQ(r, WEIR_ETIMEDOUT);
        if (f->undo)
            f->undo(f->object);
    }
}

static bool has_returned(const struct flow *f)
{
    return __atomic_load_n(&f->returned, __ATOMIC_ACQUIRE);
}

static int result_of(const struct flow *f)
{
    EVENTUALLY(has_returned(f));
    return f->result;
}

/* Start it and return once it is queued and about to sleep, where it is held. */
static void start_and_hold_at_sleep(struct flow *f)
{
    test_hold(SLEEP);
    test_spawn(run, f);
    test_reached(SLEEP);
}

static uint32_t queued(const void *object)
{
    return __atomic_load_n(&((const struct weir_waitq_ *)object)->length, __ATOMIC_RELAXED);
}

/* Start it and return once it is queued. */
static void start(struct flow *f)
{
    uint32_t before = queued(f->object);

    test_spawn(run, f);
    EVENTUALLY(queued(f->object) == before + 1);
}

/* Start it and return once its time is up and it is about to leave, where it is held. */
static void start_and_hold_at_leave(struct flow *f)
{
    test_hold(LEAVE);
    test_spawn(run_until_leaving, f);
    test_reached(LEAVE);
    __atomic_store_n(&f->leaving, 1, __ATOMIC_RELEASE);
}

/* Do something on another thread until it is decided but not told, and hold it there. */
static void do_and_hold_at_grant(void (*act)(void *), void *object)
{
    test_hold(GRANT);
    test_spawn(act, object);
    test_reached(GRANT);
}

/* ---- callbacks -------------------------------------------------------------- */

struct note {
    struct weir_op op;
    int result;
    int calls;
};

static void take_note(struct weir_op *op, int result)
{
    struct note *n = (struct note *)(void *)op;

    n->result = result;
    __atomic_add_fetch(&n->calls, 1, __ATOMIC_RELEASE);
}

static int calls_of(const struct note *n)
{
    return __atomic_load_n(&n->calls, __ATOMIC_ACQUIRE);
}

#define CHECK_CALLED(note, with)         \
    do {                                 \
        CHECK_EQ(calls_of(&(note)), 1);  \
        CHECK_EQ((note).result, (with)); \
    } while (0)

/* A cancel on another thread. */
struct canceller {
    struct weir_op *op;
    int result;
};

static void cancel(void *arg)
{
    struct canceller *c = arg;

    c->result = weir_op_cancel(c->op);
}

static void cancel_and_hold_at_leave(struct canceller *c)
{
    test_hold(LEAVE);
    test_spawn(cancel, c);
    test_reached(LEAVE);
}

/* ---- the objects ------------------------------------------------------------- */

static int acquire_one(void *sem, struct weir_deadline deadline)
{
    return weir_sem_acquire(sem, 1, deadline);
}

static int acquire_two(void *sem, struct weir_deadline deadline)
{
    return weir_sem_acquire(sem, 2, deadline);
}

static int wait_for_idle(void *sem, struct weir_deadline deadline)
{
    return weir_sem_wait_idle(sem, deadline);
}

static int wait_for_event(void *event, struct weir_deadline deadline)
{
    return weir_event_wait(event, deadline);
}

static int wait_for_revent(void *event, struct weir_deadline deadline)
{
    return weir_revent_wait(event, deadline);
}

static int wait_for_zero(void *countdown, struct weir_deadline deadline)
{
    return weir_countdown_wait(countdown, deadline);
}

static int wait_at_latch(void *latch, struct weir_deadline deadline)
{
    return weir_latch_wait(latch, deadline);
}

/* Returns the index. */
static int wait_at_barrier(void *barrier, struct weir_deadline deadline)
{
    uint32_t index;
    int r = weir_barrier_wait(barrier, deadline, &index);

    return r < 0 ? r : (int)index;
}

static int lock(void *mutex, struct weir_deadline deadline)
{
    return weir_mutex_lock(mutex, deadline);
}

static void release_one(void *sem)
{
    CHECK_EQ(weir_sem_release(sem, 1), 0);
}

static void shrink_to_one(void *sem)
{
    CHECK_EQ(weir_sem_resize(sem, 1), 0);
}

static void grow_to_three(void *sem)
{
    CHECK_EQ(weir_sem_resize(sem, 3), 0);
}

static void close_sem(void *sem)
{
    weir_sem_close(sem);
}

static void set_event(void *event)
{
    weir_event_set(event);
}

static void set_revent(void *event)
{
    weir_revent_set(event);
}

static void count_down(void *countdown)
{
    CHECK_EQ(weir_countdown_down(countdown, 1), 0);
}

static void arrive_at_latch(void *latch)
{
    CHECK_EQ(weir_latch_arrive(latch, 1), 0);
}

static void renew_latch(void *latch)
{
    CHECK_EQ(weir_latch_init(latch, 2), 0);
}

static void arrive_last_of_two(void *barrier)
{
    CHECK_EQ(wait_at_barrier(barrier, WEIR_FOREVER), 1);
}

static void reset_barrier(void *barrier)
{
    weir_barrier_reset(barrier);
}

static void unlock(void *mutex)
{
    weir_mutex_unlock(mutex);
}

static void take(struct weir_sem *sem, uint64_t n)
{
    CHECK_EQ(weir_sem_acquire(sem, n, WEIR_NO_WAIT), 0);
}

static void acquire_async(struct weir_sem *sem, uint64_t n, struct note *note)
{
    *note = (struct note){.op = WEIR_OP_INIT};
    CHECK_EQ(weir_sem_acquire_async(sem, n, &note->op, take_note), 0);
}

/* ---- deadline against grant ---------------------------------------------------- */

TEST(a_grant_beats_a_deadline_that_was_noticed_first)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    release_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 0);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK_EQ(weir_sem_available(&sem), 0); /* and it has the permit */
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

TEST(a_grant_on_its_way_is_waited_for_beyond_the_deadline)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    do_and_hold_at_grant(release_one, &sem);
    test_hold(SLEEP);
    test_let_go(LEAVE);
    test_reached(SLEEP); /* it has found that it may not leave, and waits on */
    CHECK(!has_returned(&f));
    test_let_go(SLEEP);
    test_let_go(GRANT);
    CHECK_EQ(result_of(&f), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_deadline_beats_a_grant_that_comes_later)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem}, behind = f;

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    start(&behind);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    release_one(&sem);
    CHECK_EQ(result_of(&behind), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_mutex_handed_over_beats_the_deadline)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct flow f = {.wait = lock, .object = &mutex}, behind = f;

    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
    start_and_hold_at_leave(&f);
    start(&behind);
    weir_mutex_unlock(&mutex);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK(!has_returned(&behind));
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(result_of(&behind), 0);
}

TEST(idleness_beats_the_deadline_of_who_waits_for_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = wait_for_idle, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    release_one(&sem);
    take(&sem, 1); /* it was idle, if only for a moment */
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
}

/* ---- cancel against grant -------------------------------------------------------- */

TEST(a_cancel_between_grant_and_call_is_too_late)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n);
    do_and_hold_at_grant(release_one, &sem);
    CHECK_EQ(weir_op_cancel(&n.op), 0);
    CHECK_EQ(calls_of(&n), 0);
    test_let_go(GRANT);
    test_join_all();
    CHECK_CALLED(n, 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_grant_beats_a_cancel_that_began_first)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct canceller c;
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n);
    c.op = &n.op;
    cancel_and_hold_at_leave(&c);
    release_one(&sem);
    CHECK_CALLED(n, 0);
    test_let_go(LEAVE);
    test_join_all();
    CHECK_EQ(c.result, 0);
    CHECK_CALLED(n, 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_cancel_beats_a_grant_that_comes_later)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct canceller c;
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n);
    c.op = &n.op;
    cancel_and_hold_at_leave(&c);
    test_let_go(LEAVE);
    test_join_all();
    CHECK_EQ(c.result, 1);
    release_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(calls_of(&n), 0);
}

TEST(of_two_cancels_one_takes_it_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct canceller c[2];
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n);
    c[0].op = c[1].op = &n.op;
    test_hold(LEAVE);
    test_hold(LEAVE);
    test_spawn(cancel, &c[0]);
    test_spawn(cancel, &c[1]);
    test_reached(LEAVE);
    test_let_go(LEAVE);
    test_join_all();
    CHECK_EQ(c[0].result + c[1].result, 1);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

/* ---- a heavy head -------------------------------------------------------------- */

TEST(a_heavy_head_granted_while_it_is_being_cancelled_keeps_its_permits)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note heavy, light;
    struct canceller c = {.op = &heavy.op};

    take(&sem, 1);
    acquire_async(&sem, 2, &heavy);
    acquire_async(&sem, 1, &light);
    cancel_and_hold_at_leave(&c);
    release_one(&sem);
    CHECK_CALLED(heavy, 0);
    test_let_go(LEAVE);
    test_join_all();
    CHECK_EQ(c.result, 0);
    CHECK_EQ(calls_of(&light), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_CALLED(light, 0);
}

TEST(those_served_by_the_cancel_of_a_heavy_head_can_no_longer_be_cancelled)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct flow slow = {.wait = acquire_one, .object = &sem};
    struct note heavy, light;
    struct canceller c = {.op = &heavy.op};

    take(&sem, 1);
    acquire_async(&sem, 2, &heavy);
    acquire_async(&sem, 1, &light);
    do_and_hold_at_grant(cancel, &c);
    CHECK_EQ(weir_op_cancel(&light.op), 0);
    CHECK_EQ(calls_of(&light), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN); /* it is light's already */
    start(&slow);
    test_let_go(GRANT);
    EVENTUALLY(calls_of(&light) == 1);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    release_one(&sem);
    CHECK_EQ(result_of(&slow), 0);
    test_join_all();
    CHECK_EQ(c.result, 1);
    CHECK_EQ(calls_of(&heavy), 0);
}

TEST(a_heavy_head_that_times_out_serves_one_whose_time_is_also_up)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct flow heavy = {.wait = acquire_two, .object = &sem};
    struct flow light = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start(&heavy);
    start_and_hold_at_leave(&light);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    shrink_to_one(&sem); /* sends heavy away; the one free permit goes too */
    CHECK_EQ(result_of(&heavy), WEIR_EINVAL);
    release_one(&sem);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&light), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

/* ---- wake-all ------------------------------------------------------------------ */

TEST(a_cancel_after_a_wake_all_is_too_late)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n[3] = {{.op = WEIR_OP_INIT}, {.op = WEIR_OP_INIT}, {.op = WEIR_OP_INIT}};

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_event_wait_async(&event, &n[i].op, take_note), 0);
    do_and_hold_at_grant(set_event, &event);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_op_cancel(&n[i].op), 0);
        CHECK_EQ(calls_of(&n[i]), 0);
    }
    test_let_go(GRANT);
    test_join_all();
    for (int i = 0; i < 3; i++)
        CHECK_CALLED(n[i], 0);
}

TEST(a_wake_all_beats_a_cancel_that_began_first)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n = {.op = WEIR_OP_INIT};
    struct canceller c = {.op = &n.op};

    CHECK_EQ(weir_event_wait_async(&event, &n.op, take_note), 0);
    cancel_and_hold_at_leave(&c);
    do_and_hold_at_grant(set_event, &event);
    test_let_go(LEAVE); /* it is neither queued nor called now */
    test_let_go(GRANT);
    test_join_all();
    CHECK_EQ(c.result, 0);
    CHECK_CALLED(n, 0);
}

/* The old waiters and the new one name the same queue; only the epoch differs. */
TEST(a_cancel_does_not_mistake_those_woken_for_those_who_came_after)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct note old = {.op = WEIR_OP_INIT}, other = old, new = old;
    struct flow thread = {.wait = wait_for_revent, .object = &event};

    CHECK_EQ(weir_revent_wait_async(&event, &old.op, take_note), 0);
    CHECK_EQ(weir_revent_wait_async(&event, &other.op, take_note), 0);
    do_and_hold_at_grant(set_revent, &event);
    weir_revent_clear(&event);
    CHECK_EQ(weir_revent_wait_async(&event, &new.op, take_note), 0);
    CHECK_EQ(weir_op_cancel(&old.op), 0);
    CHECK_EQ(weir_op_cancel(&new.op), 1);
    CHECK_EQ(weir_revent_wait_async(&event, &new.op, take_note), 0);
    start(&thread);
    test_let_go(GRANT);
    EVENTUALLY(calls_of(&other) == 1);
    CHECK_CALLED(old, 0);
    CHECK_EQ(calls_of(&new), 0);
    CHECK(!has_returned(&thread));
    weir_revent_set(&event);
    CHECK_CALLED(new, 0);
    CHECK_EQ(result_of(&thread), 0);
}

struct race {
    struct flow flow;
    void (*wake)(void *object);
};

/* One of each kind that wakes all, and what wakes it. */
struct crowds {
    struct weir_event event;
    struct weir_revent revent;
    struct weir_countdown countdown;
    struct weir_latch latch;
    struct weir_barrier barrier;
    struct race races[5];
};

static void make_crowds(struct crowds *c)
{
    *c = (struct crowds){
        .event = WEIR_EVENT_INIT,
        .revent = WEIR_REVENT_INIT,
        .countdown = WEIR_COUNTDOWN_INIT(1),
        .latch = WEIR_LATCH_INIT(2),
        .barrier = WEIR_BARRIER_INIT(2),
        .races =
            {
                {{.wait = wait_for_event, .object = &c->event}, set_event},
                {{.wait = wait_for_revent, .object = &c->revent}, set_revent},
                {{.wait = wait_for_zero, .object = &c->countdown}, count_down},
                {{.wait = wait_at_latch, .undo = renew_latch, .object = &c->latch},
                 arrive_at_latch},
                {{.wait = wait_at_barrier, .undo = reset_barrier, .object = &c->barrier},
                 arrive_last_of_two},
            },
    };
}

TEST(a_wake_all_beats_a_deadline_that_was_noticed_first)
{
    struct crowds c;

    make_crowds(&c);
    for (struct race *r = c.races; r < c.races + 5; r++) {
        start_and_hold_at_leave(&r->flow);
        r->wake(r->flow.object);
        test_let_go(LEAVE);
        CHECK_EQ(result_of(&r->flow), 0);
    }
    CHECK(!weir_latch_is_broken(&c.latch));
    CHECK(!weir_barrier_is_broken(&c.barrier));
}

TEST(a_wake_all_on_its_way_is_waited_for_beyond_the_deadline)
{
    struct crowds c;

    make_crowds(&c);
    for (struct race *r = c.races; r < c.races + 5; r++) {
        start_and_hold_at_leave(&r->flow);
        do_and_hold_at_grant(r->wake, r->flow.object);
        test_hold(SLEEP);
        test_let_go(LEAVE);
        test_reached(SLEEP); /* it has found that it may not leave, and waits on */
        CHECK(!has_returned(&r->flow));
        test_let_go(SLEEP);
        test_let_go(GRANT);
        CHECK_EQ(result_of(&r->flow), 0);
    }
    test_join_all();
    CHECK(!weir_latch_is_broken(&c.latch));
    CHECK(!weir_barrier_is_broken(&c.barrier));
}

TEST(an_event_cleared_before_the_waiter_notices_was_set_for_it)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct flow f = {.wait = wait_for_revent, .object = &event};

    start_and_hold_at_leave(&f);
    weir_revent_set(&event);
    weir_revent_clear(&event);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
}

/* ---- close -------------------------------------------------------------------- */

TEST(a_close_beats_a_deadline_that_was_noticed_first)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    weir_sem_close(&sem);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_ECLOSED);
    release_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(an_acquire_that_is_about_to_sleep_hears_of_a_close)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_sleep(&f);
    weir_sem_close(&sem);
    test_let_go(SLEEP);
    CHECK_EQ(result_of(&f), WEIR_ECLOSED);
}

TEST(while_a_close_is_telling_the_others_the_semaphore_is_closed)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note n, late = {.op = WEIR_OP_INIT};
    struct flow idle = {.wait = wait_for_idle, .object = &sem};

    take(&sem, 2);
    acquire_async(&sem, 1, &n);
    do_and_hold_at_grant(close_sem, &sem);
    CHECK_EQ(weir_op_cancel(&n.op), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_FOREVER), WEIR_ECLOSED);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &late.op, take_note), WEIR_ECLOSED);
    release_one(&sem);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_ECLOSED);
    start(&idle);
    release_one(&sem);
    CHECK_EQ(result_of(&idle), 0);
    CHECK_EQ(calls_of(&n), 0);
    test_let_go(GRANT);
    test_join_all();
    CHECK_CALLED(n, WEIR_ECLOSED);
}

TEST(a_grant_before_a_close_stays_a_grant)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct flow f = {.wait = acquire_one, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_sleep(&f);
    release_one(&sem);
    weir_sem_close(&sem);
    test_let_go(SLEEP);
    CHECK_EQ(result_of(&f), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

/* ---- resize ------------------------------------------------------------------- */

TEST(a_shrink_beats_a_deadline_that_was_noticed_first)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct flow f = {.wait = acquire_two, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    shrink_to_one(&sem);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_EINVAL);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    release_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(a_growth_beats_a_deadline_that_was_noticed_first)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct flow f = {.wait = acquire_two, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    grow_to_three(&sem);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_deadline_beats_a_shrink_that_comes_later)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct flow f = {.wait = acquire_two, .object = &sem};

    take(&sem, 1);
    start_and_hold_at_leave(&f);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_ETIMEDOUT);
    shrink_to_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 0);
    release_one(&sem);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(a_cancel_after_a_shrink_is_too_late)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note heavy, light;

    take(&sem, 2);
    acquire_async(&sem, 2, &heavy);
    acquire_async(&sem, 1, &light);
    do_and_hold_at_grant(shrink_to_one, &sem);
    CHECK_EQ(weir_op_cancel(&heavy.op), 0);
    CHECK_EQ(weir_op_cancel(&light.op), 1);
    test_let_go(GRANT);
    test_join_all();
    CHECK_CALLED(heavy, WEIR_EINVAL);
    CHECK_EQ(calls_of(&light), 0);
}

/* ---- no wake-up is lost ----------------------------------------------------------- */

TEST(a_wake_up_just_before_the_sleep_is_not_lost)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct crowds c;
    struct race own[] = {
        {{.wait = acquire_one, .object = &sem}, release_one},
        {{.wait = lock, .object = &mutex}, unlock},
    };

    make_crowds(&c);
    take(&sem, 1);
    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
    for (int i = 0; i < 7; i++) {
        struct race *r = i < 5 ? &c.races[i] : &own[i - 5];

        start_and_hold_at_sleep(&r->flow);
        r->wake(r->flow.object);
        CHECK(!has_returned(&r->flow));
        test_let_go(SLEEP);
        CHECK_EQ(result_of(&r->flow), 0); /* hangs if it slept after all */
    }
}

TEST(one_of_a_crowd_that_is_about_to_sleep_is_woken_with_those_asleep)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct flow f[4];

    for (int i = 0; i < 4; i++) {
        f[i] = (struct flow){.wait = wait_for_event, .object = &event};
        if (i == 0)
            start_and_hold_at_sleep(&f[i]);
        else
            start(&f[i]);
    }
    weir_event_set(&event);
    for (int i = 1; i < 4; i++)
        CHECK_EQ(result_of(&f[i]), 0);
    CHECK(!has_returned(&f[0]));
    test_let_go(SLEEP);
    CHECK_EQ(result_of(&f[0]), 0);
}

/* Without a testpoint, for what lies between the last look and the sleep: many times, at
 * some moment between the call and a sound sleep.  On two CPUs, since on one the waker
 * would hardly ever come in between. */
enum { NAPS = 4000 };

struct lullaby {
    struct weir_event events[NAPS];
    struct weir_sem sem; /* a release for each wait of the sleeper */
    int started;
};

static void stay_on_cpu(int which)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    which %= CPU_COUNT(&all);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all) && which-- == 0)
            CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void fall_asleep_often(void *arg)
{
    struct lullaby *l = arg;

    stay_on_cpu(1);
    for (int i = 0; i < NAPS; i++) {
        __atomic_store_n(&l->started, i + 1, __ATOMIC_RELEASE);
        if (i % 2)
            CHECK_EQ(weir_event_wait(&l->events[i], WEIR_FOREVER), 0);
        else
            CHECK_EQ(weir_sem_acquire(&l->sem, 1, WEIR_FOREVER), 0);
    }
}

TEST(a_wake_up_in_the_middle_of_falling_asleep_is_not_lost)
{
    static struct lullaby l = {.sem = WEIR_SEM_INIT(NAPS)};

    take(&l.sem, NAPS);
    test_spawn(fall_asleep_often, &l);
    stay_on_cpu(0);
    for (int i = 0; i < NAPS; i++) {
        while (__atomic_load_n(&l.started, __ATOMIC_ACQUIRE) <= i)
            sched_yield();
        for (int64_t then_ns = weir_now_ns() + test_random(60000); weir_now_ns() < then_ns;)
            ;
        if (i % 2)
            weir_event_set(&l.events[i]);
        else
            release_one(&l.sem);
    }
    test_join_all(); /* hangs if one was lost */
}

/* ---- condition ------------------------------------------------------------------ */

struct place {
    struct weir_cond changed;
    struct weir_mutex mutex;
    int inside; /* guarded by the mutex; TSan watches */
};

static int wait_for_change(void *arg, struct weir_deadline deadline)
{
    struct place *p = arg;

    CHECK_EQ(weir_mutex_lock(&p->mutex, WEIR_FOREVER), 0);
    int r = weir_cond_wait(&p->changed, &p->mutex, deadline);
    CHECK_EQ(++p->inside, 1);
    CHECK_EQ(weir_mutex_try_lock(&p->mutex), WEIR_EAGAIN); /* it is ours, whatever r says */
    p->inside--;
    weir_mutex_unlock(&p->mutex);
    return r;
}

static void broadcast(struct weir_cond *cond, uint32_t n)
{
    (void)n;
    weir_cond_broadcast(cond);
}

TEST(a_signal_beats_a_deadline_that_was_noticed_first)
{
    void (*const signals[])(struct weir_cond *, uint32_t) = {weir_cond_signal, broadcast};

    for (int i = 0; i < 2; i++) {
        struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
        struct flow f = {.wait = wait_for_change, .object = &p};

        start_and_hold_at_leave(&f);
        signals[i](&p.changed, 1);
        test_let_go(LEAVE);
        CHECK_EQ(result_of(&f), 0);
    }
}

TEST(a_signal_for_one_whose_time_is_up_is_not_given_to_another)
{
    struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
    struct flow f = {.wait = wait_for_change, .object = &p}, behind = f;

    start_and_hold_at_leave(&f);
    start(&behind);
    weir_cond_signal(&p.changed, 1);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK(!has_returned(&behind));
    weir_cond_signal(&p.changed, 1);
    CHECK_EQ(result_of(&behind), 0);
}

TEST(a_signal_after_a_deadline_goes_to_the_next)
{
    struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
    struct flow f = {.wait = wait_for_change, .object = &p}, behind = f;

    start_and_hold_at_leave(&f);
    start(&behind);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_ETIMEDOUT);
    weir_cond_signal(&p.changed, 1);
    CHECK_EQ(result_of(&behind), 0);
}

TEST(a_signalled_waiter_waits_for_the_mutex_beyond_its_deadline)
{
    void (*const signals[])(struct weir_cond *, uint32_t) = {weir_cond_signal, broadcast};

    for (int i = 0; i < 2; i++) {
        struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
        struct flow f = {.wait = wait_for_change, .object = &p};

        start_and_hold_at_leave(&f);
        CHECK_EQ(weir_mutex_try_lock(&p.mutex), 0);
        signals[i](&p.changed, 1); /* moved to the queue of the mutex */
        test_hold(SLEEP);
        test_let_go(LEAVE);
        test_reached(SLEEP);
        CHECK(!has_returned(&f));
        test_let_go(SLEEP);
        weir_mutex_unlock(&p.mutex);
        CHECK_EQ(result_of(&f), 0);
    }
}

TEST(a_waiter_that_timed_out_waits_for_the_mutex)
{
    struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
    struct flow f = {.wait = wait_for_change, .object = &p};

    start_and_hold_at_leave(&f);
    CHECK_EQ(weir_mutex_try_lock(&p.mutex), 0);
    test_hold(SLEEP);
    test_let_go(LEAVE);
    test_reached(SLEEP); /* it has left the condition and queues for the mutex */
    weir_cond_signal(&p.changed, 1);
    CHECK(!has_returned(&f));
    test_let_go(SLEEP);
    weir_mutex_unlock(&p.mutex);
    CHECK_EQ(result_of(&f), WEIR_ETIMEDOUT);
}

TEST(a_signal_between_unlock_and_sleep_is_not_lost)
{
    struct place p = {.mutex = WEIR_MUTEX_INIT, .changed = WEIR_COND_INIT};
    struct flow f = {.wait = wait_for_change, .object = &p};

    start_and_hold_at_sleep(&f);
    CHECK_EQ(weir_mutex_try_lock(&p.mutex), 0); /* the waiter has let go of it */
    weir_cond_signal(&p.changed, 1);
    weir_mutex_unlock(&p.mutex);
    test_let_go(SLEEP);
    CHECK_EQ(result_of(&f), 0);
}

/* ---- the last arrival --------------------------------------------------------------- */

TEST(an_abort_does_not_touch_a_phase_that_is_complete)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct flow f = {.wait = wait_at_barrier, .object = &barrier};

    start(&f);
    do_and_hold_at_grant(arrive_last_of_two, &barrier);
    weir_barrier_abort(&barrier);
    CHECK(weir_barrier_is_broken(&barrier));
    CHECK(!has_returned(&f));
    test_let_go(GRANT);
    CHECK_EQ(result_of(&f), 0);
    test_join_all(); /* the last arriver checks its own index */
    CHECK_EQ(weir_barrier_wait(&barrier, WEIR_FOREVER, NULL), WEIR_EBROKEN);
}

TEST(a_reset_does_not_touch_a_phase_that_is_complete)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct flow f = {.wait = wait_at_barrier, .object = &barrier}, next = f;

    start(&f);
    do_and_hold_at_grant(arrive_last_of_two, &barrier);
    start(&next); /* of the phase after it */
    weir_barrier_reset(&barrier);
    CHECK_EQ(result_of(&next), WEIR_EBROKEN);
    CHECK(!has_returned(&f));
    test_let_go(GRANT);
    CHECK_EQ(result_of(&f), 0);
    CHECK(!weir_barrier_is_broken(&barrier));
    test_join_all();
}

TEST(the_last_arrival_beats_a_deadline_that_was_noticed_first)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct flow f = {.wait = wait_at_barrier, .undo = reset_barrier, .object = &barrier};
    struct flow next = {.wait = wait_at_barrier, .object = &barrier};

    start_and_hold_at_leave(&f);
    arrive_last_of_two(&barrier);
    start(&next); /* it waits for a phase of its own, which must not break */
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), 0);
    CHECK(!weir_barrier_is_broken(&barrier));
    CHECK(!has_returned(&next));
    arrive_last_of_two(&barrier);
    CHECK_EQ(result_of(&next), 0);
}

TEST(a_deadline_beats_a_last_arrival_that_comes_later)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct flow f = {.wait = wait_at_barrier, .undo = reset_barrier, .object = &barrier};
    struct flow other = {.wait = wait_at_barrier, .object = &barrier};

    start_and_hold_at_leave(&f);
    start(&other);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_ETIMEDOUT);
    CHECK_EQ(result_of(&other), WEIR_EBROKEN);
    CHECK(weir_barrier_is_broken(&barrier));
    CHECK_EQ(weir_barrier_wait(&barrier, WEIR_FOREVER, NULL), WEIR_EBROKEN);
}

TEST(an_abort_or_reset_beats_a_deadline_that_was_noticed_first)
{
    void (*const actions[])(struct weir_barrier *) = {weir_barrier_abort, weir_barrier_reset};

    for (int i = 0; i < 2; i++) {
        struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
        struct flow f = {.wait = wait_at_barrier, .undo = reset_barrier, .object = &barrier};

        start_and_hold_at_leave(&f);
        actions[i](&barrier);
        test_let_go(LEAVE);
        CHECK_EQ(result_of(&f), WEIR_EBROKEN);
        CHECK_EQ(weir_barrier_is_broken(&barrier), i == 0); /* a reset one stays whole */
    }
}

TEST(a_cancel_at_a_barrier_that_is_complete_is_too_late)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct note n = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_barrier_wait_async(&barrier, &n.op, take_note), 0);
    do_and_hold_at_grant(arrive_last_of_two, &barrier);
    CHECK_EQ(weir_op_cancel(&n.op), 0);
    CHECK(!weir_barrier_is_broken(&barrier));
    test_let_go(GRANT);
    test_join_all();
    CHECK_CALLED(n, 0);
}

TEST(an_abort_does_not_touch_a_latch_that_is_open)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);
    struct flow f = {.wait = wait_at_latch, .object = &latch};

    start(&f);
    do_and_hold_at_grant(arrive_at_latch, &latch);
    weir_latch_abort(&latch);
    CHECK(!weir_latch_is_broken(&latch));
    test_let_go(GRANT);
    CHECK_EQ(result_of(&f), 0);
    test_join_all();
}

TEST(an_abort_of_a_latch_beats_a_deadline_that_was_noticed_first)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);
    struct flow f = {.wait = wait_at_latch, .undo = renew_latch, .object = &latch};

    start_and_hold_at_leave(&f);
    weir_latch_abort(&latch);
    test_let_go(LEAVE);
    CHECK_EQ(result_of(&f), WEIR_EBROKEN);
    CHECK(weir_latch_is_broken(&latch));
}
