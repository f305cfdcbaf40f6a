/* SPDX-License-Identifier: MIT */
/* weir_mutex: the promises made in weir/mutex.h, in that order. */
#include <weir/event.h>
#include <weir/mutex.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

/* Lock, note as which of all, unlock.  Returns the place, 1 being the first. */
static int places;

static int lock_and_unlock(void *mutex, struct weir_deadline deadline)
{
    int r = weir_mutex_lock(mutex, deadline);

    if (r < 0)
        return r;
    r = __atomic_add_fetch(&places, 1, __ATOMIC_RELAXED);
    weir_mutex_unlock(mutex);
    return r;
}

static int lock(void *mutex, struct weir_deadline deadline)
{
    return weir_mutex_lock(mutex, deadline);
}

static void unlock(void *mutex)
{
    weir_mutex_unlock(mutex);
}

static void check_free(struct weir_mutex *mutex)
{
    CHECK_EQ(weir_mutex_try_lock(mutex), 0);
    weir_mutex_unlock(mutex);
}

/* ---- one at a time ------------------------------------------------------------ */

TEST(a_mutex_is_free_until_it_is_locked_and_again_when_unlocked)
{
    static struct weir_mutex at_compile_time = WEIR_MUTEX_INIT;
    struct weir_mutex at_run_time;

    weir_mutex_init(&at_run_time);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_mutex_lock(&at_compile_time, WEIR_FOREVER), 0);
        CHECK_EQ(weir_mutex_lock(&at_run_time, WEIR_FOREVER), 0);
        CHECK_EQ(weir_mutex_try_lock(&at_compile_time), WEIR_EAGAIN);
        CHECK_EQ(weir_mutex_try_lock(&at_run_time), WEIR_EAGAIN);
        weir_mutex_unlock(&at_compile_time);
        weir_mutex_unlock(&at_run_time);
    }
    check_free(&at_compile_time);
}

/* Plain data: TSan has its say too. */
struct guarded {
    struct weir_mutex mutex;
    int inside, entered;
};

static void enter_again_and_again(void *arg)
{
    struct guarded *g = arg;

    for (int i = test_scaled(2000); i > 0; i--) {
        if (test_random(4) == 0)
            while (weir_mutex_try_lock(&g->mutex) == WEIR_EAGAIN)
                sched_yield();
        else
            CHECK_EQ(weir_mutex_lock(&g->mutex, WEIR_FOREVER), 0);
        CHECK_EQ(g->inside++, 0);
        g->entered++;
        if (test_random(8) == 0)
            sched_yield();
        g->inside--;
        weir_mutex_unlock(&g->mutex);
    }
}

TEST(one_owns_it_at_a_time_and_sees_what_the_last_owner_wrote)
{
    struct guarded g = {.mutex = WEIR_MUTEX_INIT};

    for (int i = 0; i < 4; i++)
        test_spawn(enter_again_and_again, &g);
    test_join_all();
    CHECK_EQ(g.entered, 4 * test_scaled(2000));
    check_free(&g.mutex);
}

TEST(it_is_not_recursive)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    CHECK_EQ(weir_mutex_lock(&mutex, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}

TEST(whoever_unlocks_it_need_not_have_locked_it)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v = {.wait = lock, .object = &mutex};

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    test_spawn(unlock, &mutex);
    test_join_all();
    check_free(&mutex);

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    queue_up(&v, 1);
    test_spawn(unlock, &mutex);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN); /* its owner has ended; the mutex is held */
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}

TEST(unlocking_a_free_mutex_stops_the_program)
{
    struct weir_mutex never_locked = WEIR_MUTEX_INIT, unlocked = WEIR_MUTEX_INIT;

    CHECK_EQ(weir_mutex_lock(&unlocked, WEIR_FOREVER), 0);
    weir_mutex_unlock(&unlocked);
    CHECK_ABORTS(weir_mutex_unlock(&never_locked),
                 "weir: BUG: weir_mutex_unlock of a mutex that is not locked");
    CHECK_ABORTS(weir_mutex_unlock(&unlocked),
                 "weir: BUG: weir_mutex_unlock of a mutex that is not locked");
}

/* ---- end of life ------------------------------------------------------------- */

static void init_locked(void *mutex)
{
    weir_mutex_init(mutex);
    CHECK_EQ(weir_mutex_lock(mutex, WEIR_NO_WAIT), 0);
}

TEST(a_mutex_may_be_freed_the_moment_its_last_owner_has_it)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_mutex),
        .init = init_locked,
        .wait = lock_and_unlock,
        .end_wait = unlock,
    });
}

TEST(a_callback_may_free_its_record_and_the_mutex)
{
    struct mortal *m = new_mortal(sizeof(struct weir_mutex));
    struct weir_mutex *mutex = m->object;

    init_locked(mutex);
    CHECK_EQ(weir_mutex_lock_async(mutex, &m->op, free_mortal), 0);
    weir_mutex_unlock(mutex);
    CHECK_EQ(calls(), 1);
}

/* ---- lock -------------------------------------------------------------------- */

TEST(it_is_handed_over_in_order_of_arrival)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v[6];

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    for (int i = 0; i < 6; i++) {
        v[i] = (struct visitor){.wait = lock_and_unlock, .object = &mutex};
        queue_up(&v[i], 1);
    }
    CHECK_EQ(result_of(&v[0]), NOT_YET);
    weir_mutex_unlock(&mutex);
    test_join_all();
    for (int i = 0; i < 6; i++)
        CHECK_EQ(v[i].result, i + 1);
    check_free(&mutex);
}

/* A callback that owns a mutex for as long as it runs. */
struct passer {
    struct weir_op op;
    struct weir_mutex *mutex;
    int place;
};

static void note_and_unlock(struct weir_op *op, int result)
{
    struct passer *p = (struct passer *)op;

    CHECK_EQ(result, 0);
    CHECK_EQ(weir_mutex_try_lock(p->mutex), WEIR_EAGAIN); /* it is ours */
    p->place = __atomic_add_fetch(&places, 1, __ATOMIC_RELAXED);
    weir_mutex_unlock(p->mutex);
}

TEST(threads_and_callbacks_stand_in_one_queue)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v[3];
    struct passer p[3];

    CHECK_EQ(weir_mutex_lock_async(&mutex, &(struct passer){0}.op, note_and_unlock), 1);
    for (int i = 0; i < 3; i++) {
        p[i] = (struct passer){.op = WEIR_OP_INIT, .mutex = &mutex};
        v[i] = (struct visitor){.wait = lock_and_unlock, .object = &mutex};
        CHECK_EQ(weir_mutex_lock_async(&mutex, &p[i].op, note_and_unlock), 0);
        queue_up(&v[i], 1);
    }
    weir_mutex_unlock(&mutex);
    test_join_all();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(p[i].place, 2 * i + 1);
        CHECK_EQ(v[i].result, 2 * i + 2);
    }
    check_free(&mutex);
}

TEST(a_wait_gives_up_at_its_deadline_and_owns_nothing)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct weir_deadline deadline;

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    deadline = weir_within(2 * WEIR_MS);
    CHECK_EQ(weir_mutex_lock(&mutex, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(queued(&mutex), 0);
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}

TEST(a_deadline_in_the_past_has_a_free_mutex_and_waits_for_no_other)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_mutex_lock(&mutex, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(weir_mutex_lock(&mutex, (struct weir_deadline){1}), 0);
    weir_mutex_unlock(&mutex);
}

TEST(who_gives_up_leaves_the_order_of_the_others)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v[3];
    struct caller c[3] = {0};

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    for (int i = 0; i < 3; i++) {
        v[i] = (struct visitor){.wait = lock_and_unlock, .object = &mutex};
        CHECK_EQ(weir_mutex_lock_async(&mutex, &c[i].op, note), 0);
        queue_up(&v[i], 1);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_op_cancel(&c[i].op), 1);
    CHECK_EQ(weir_mutex_lock(&mutex, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(queued(&mutex), 3);
    weir_mutex_unlock(&mutex);
    test_join_all();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(v[i].result, i + 1);
    CHECK_EQ(calls(), 0);
    check_free(&mutex);
}

TEST(a_hand_over_beats_a_deadline_that_is_noticed_after_it)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v = {.wait = lock, .object = &mutex};

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    queue_up_and_hold_leaving(&v);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN); /* it has it */
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}

/* ---- unlock ------------------------------------------------------------------ */

TEST(who_waits_longest_owns_it_before_unlock_returns)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v[2] = {{lock, &mutex, 0, 0}, {lock, &mutex, 0, 0}};

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    test_hold(ABOUT_TO_SLEEP);
    queue_up(&v[0], 1);
    test_reached(ABOUT_TO_SLEEP);
    waiter *w = nth_waiter(&mutex, 0);
    queue_up(&v[1], 1);
    CHECK_EQ(state_of(w), AWAKE);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(state_of(w), DONE);
    CHECK_EQ(queued(&mutex), 1); /* and only that one */
    test_let_go(ABOUT_TO_SLEEP);
    EVENTUALLY(result_of(&v[0]) == 0);
    CHECK_EQ(result_of(&v[1]), NOT_YET);
    weir_mutex_unlock(&mutex);
    test_join_all();
    CHECK_EQ(v[1].result, 0);
}

TEST(nobody_can_take_it_while_it_is_handed_over)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v = {.wait = lock, .object = &mutex};
    struct caller c = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
    queue_up(&v, 1);
    test_hold(NOT_DELIVERED);
    test_spawn(unlock, &mutex);
    test_reached(NOT_DELIVERED); /* the next owner does not know of its luck */
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    CHECK_EQ(weir_mutex_lock(&mutex, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_mutex_lock_async(&mutex, &c.op, note), 0);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(c.times, 0);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, 0);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN); /* the callback owns it */
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}

TEST(unlock_wakes_one_who_sleeps)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct visitor v = {.wait = lock_and_unlock, .object = &mutex};

    for (int i = 1; i <= 20; i++) {
        CHECK_EQ(weir_mutex_lock(&mutex, WEIR_FOREVER), 0);
        queue_up(&v, 1);
        EVENTUALLY(state_of(nth_waiter(&mutex, 0)) == ASLEEP);
        weir_mutex_unlock(&mutex);
        test_join_all();
        CHECK_EQ(v.result, i);
    }
}

/* ---- inside a callback -------------------------------------------------------- */

struct inside {
    struct weir_op op;
    struct weir_mutex *mutex;
    int locked, tried;
};

static void lock_inside(struct weir_op *op, int result)
{
    struct inside *i = (struct inside *)op;

    CHECK_EQ(result, 0);
    i->locked = weir_mutex_lock(i->mutex, WEIR_FOREVER);
    i->tried = weir_mutex_try_lock(i->mutex);
}

static struct inside lock_inside_a_callback(struct weir_mutex *mutex)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct inside i = {.mutex = mutex, .locked = NOT_YET};

    CHECK_EQ(weir_event_wait_async(&event, &i.op, lock_inside), 0);
    weir_event_set(&event);
    return i;
}

TEST(inside_a_callback_it_may_be_locked_but_not_waited_for)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct inside i = lock_inside_a_callback(&mutex);

    CHECK_EQ(i.locked, 0);
    CHECK_EQ(i.tried, WEIR_EAGAIN);
    i = lock_inside_a_callback(&mutex);
    CHECK_EQ(i.locked, WEIR_ECONTEXT);
    CHECK_EQ(i.tried, WEIR_EAGAIN);
    CHECK_EQ(queued(&mutex), 0);
    weir_mutex_unlock(&mutex);
    check_free(&mutex);
}
