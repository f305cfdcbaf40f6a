/* SPDX-License-Identifier: MIT */
/* weir_event and weir_revent: the promises made in weir/event.h, in that order. */
#include <weir/event.h>

#include <pthread.h>
#include <signal.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

static int wait_event(void *event, struct weir_deadline deadline)
{
    return weir_event_wait(event, deadline);
}

static int wait_revent(void *event, struct weir_deadline deadline)
{
    return weir_revent_wait(event, deadline);
}

static void set_event(void *event)
{
    weir_event_set(event);
}

static void set_revent(void *event)
{
    weir_revent_set(event);
}

/* ---- set once --------------------------------------------------------------- */

TEST(an_event_is_not_set_until_it_is_set)
{
    static struct weir_event at_compile_time = WEIR_EVENT_INIT;
    struct weir_event at_run_time;

    weir_event_init(&at_run_time);
    CHECK(!weir_event_is_set(&at_compile_time));
    CHECK(!weir_event_is_set(&at_run_time));
    weir_event_set(&at_compile_time);
    weir_event_set(&at_run_time);
    CHECK(weir_event_is_set(&at_compile_time));
    CHECK(weir_event_is_set(&at_run_time));
}

TEST(a_wait_lasts_until_the_event_is_set)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v = {.wait = wait_event, .object = &event};

    queue_up(&v, 1);
    CHECK(!weir_event_is_set(&event));
    CHECK_EQ(result_of(&v), NOT_YET);
    weir_event_set(&event);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK(weir_event_is_set(&event));
    CHECK_EQ(queued(&event), 0);
}

TEST(after_set_every_wait_returns_at_once_for_ever)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller c = {.op = WEIR_OP_INIT};

    weir_event_set(&event);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(weir_event_wait(&event, WEIR_FOREVER), 0);
        CHECK_EQ(weir_event_wait(&event, WEIR_NO_WAIT), 0);
        CHECK_EQ(weir_event_wait_async(&event, &c.op, note), 1);
        weir_event_set(&event);
    }
    CHECK_EQ(c.times, 0); /* had at once, so never called */
    CHECK(weir_event_is_set(&event));
}

/* ---- waking ----------------------------------------------------------------- */

TEST(set_wakes_all_threads_and_callbacks)
{
    enum { THREADS = 100, CALLBACKS = 1000 };
    struct weir_event event = WEIR_EVENT_INIT;
    static struct visitor v[THREADS];
    static struct caller c[CALLBACKS];

    for (int i = 0; i < CALLBACKS; i++) {
        CHECK_EQ(weir_event_wait_async(&event, &c[i].op, note), 0);
        if (i < THREADS) {
            v[i] = (struct visitor){.wait = wait_event, .object = &event};
            queue_up(&v[i], 1);
        }
    }
    weir_event_set(&event);
    test_join_all();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(v[i].result, 0);
    for (int i = 0; i < CALLBACKS; i++)
        CHECK_EQ(c[i].times, 1);
}

TEST(set_wakes_those_asleep_and_those_about_to_be)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v[4];

    for (int i = 0; i < 4; i++) {
        v[i] = (struct visitor){.wait = wait_event, .object = &event};
        if (i % 2)
            test_hold(ABOUT_TO_SLEEP);
        queue_up(&v[i], 1);
        if (i % 2)
            test_reached(ABOUT_TO_SLEEP);
        else
            EVENTUALLY(state_of(nth_waiter(&event, i)) == ASLEEP);
    }
    weir_event_set(&event);
    EVENTUALLY(result_of(&v[0]) == 0 && result_of(&v[2]) == 0);
    test_let_go(ABOUT_TO_SLEEP);
    test_join_all();
    CHECK_EQ(v[1].result, 0);
    CHECK_EQ(v[3].result, 0);
}

TEST(callbacks_are_called_oldest_first_before_set_returns)
{
    enum { N = 50 };
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller c[N] = {0};

    for (int i = 0; i < N; i++)
        CHECK_EQ(weir_event_wait_async(&event, &c[i].op, note), 0);
    CHECK_EQ(calls(), 0);
    weir_event_set(&event);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(c[i].place, i + 1);
        CHECK_EQ(c[i].times, 1);
        CHECK_EQ(c[i].result, 0);
    }
}

/* A thread between two callbacks, and what each of these sees of it. */
struct onlooker {
    struct weir_op op;
    waiter *thread;
    enum sleeper_state seen;
};

static void look(struct weir_op *op, int result)
{
    struct onlooker *o = (struct onlooker *)op;

    CHECK_EQ(result, 0);
    o->seen = state_of(o->thread);
}

TEST(threads_and_callbacks_are_made_runnable_in_one_order_before_set_returns)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v[2] = {{wait_event, &event, 0, 0}, {wait_event, &event, 0, 0}};
    struct onlooker before = {.op = WEIR_OP_INIT}, after = {.op = WEIR_OP_INIT};

    /* Held here a thread is awake, and its record stays when it is DONE. */
    test_hold(ABOUT_TO_SLEEP);
    test_hold(ABOUT_TO_SLEEP);
    CHECK_EQ(weir_event_wait_async(&event, &before.op, look), 0);
    queue_up(&v[0], 1);
    CHECK_EQ(weir_event_wait_async(&event, &after.op, look), 0);
    queue_up(&v[1], 1);
    test_reached(ABOUT_TO_SLEEP);
    before.thread = after.thread = nth_waiter(&event, 1);
    waiter *last = nth_waiter(&event, 3);
    weir_event_set(&event);
    CHECK_EQ(before.seen, AWAKE);
    CHECK_EQ(after.seen, DONE);
    CHECK_EQ(state_of(last), DONE);
    test_let_go(ABOUT_TO_SLEEP);
    test_join_all();
}

/* Plain data, so that TSan has its say too. */
struct message {
    struct weir_event ready;
    int text;
};

static void read_messages(void *arg)
{
    struct message *m = arg;

    for (int i = 0; i < 200; i++) {
        CHECK_EQ(weir_event_wait(&m[i].ready, WEIR_FOREVER), 0);
        CHECK_EQ(m[i].text, i);
    }
}

TEST(what_was_written_before_set_is_seen_after_the_wait)
{
    static struct message m[200];

    test_spawn(read_messages, m);
    test_spawn(read_messages, m);
    for (int i = 0; i < 200; i++) {
        if (i % 3 == 0) /* some they sleep for, and some they find set */
            EVENTUALLY(queued(&m[i].ready) == 2);
        m[i].text = i;
        weir_event_set(&m[i].ready);
    }
}

TEST(setting_what_is_set_does_nothing_from_any_number_of_threads)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v = {.wait = wait_event, .object = &event};
    struct caller c[20] = {0};

    for (int i = 0; i < 20; i++)
        CHECK_EQ(weir_event_wait_async(&event, &c[i].op, note), 0);
    queue_up(&v, 1);
    for (int i = 0; i < 8; i++)
        test_spawn(set_event, &event);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK(weir_event_is_set(&event));
    for (int i = 0; i < 20; i++)
        CHECK_EQ(c[i].times, 1);
}

/* ---- end of life ------------------------------------------------------------ */

static void init_event(void *event)
{
    weir_event_init(event);
}

TEST(an_event_may_be_freed_the_moment_its_wait_returns)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_event),
        .init = init_event,
        .wait = wait_event,
        .end_wait = set_event,
    });
}

TEST(a_callback_may_free_its_record_and_the_event)
{
    struct mortal *m = new_mortal(sizeof(struct weir_event));
    struct weir_event *event = m->object;

    weir_event_init(event);
    CHECK_EQ(weir_event_wait_async(event, &m->op, free_mortal), 0);
    weir_event_set(event);
    CHECK_EQ(calls(), 1);
}

/* ---- giving up -------------------------------------------------------------- */

TEST(a_wait_gives_up_at_its_deadline_and_not_before)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_deadline deadline = weir_within(2 * WEIR_MS);

    CHECK_EQ(weir_event_wait(&event, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(queued(&event), 0);
    CHECK(!weir_event_is_set(&event));
    weir_event_set(&event);
    CHECK_EQ(weir_event_wait(&event, deadline), 0);
}

TEST(a_deadline_in_the_past_has_what_is_set_and_waits_for_nothing)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_deadline past[] = {WEIR_NO_WAIT, {1}, {INT64_MIN}, {weir_now_ns()}};

    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_event_wait(&event, past[i]), WEIR_ETIMEDOUT);
    CHECK_EQ(queued(&event), 0);
    weir_event_set(&event);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_event_wait(&event, past[i]), 0);
}

TEST(those_who_give_up_leave_the_others_waiting)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v[3] = {
        {wait_event, &event, 0, 0}, {wait_event, &event, 0, 0}, {wait_event, &event, 0, 0}};
    struct caller c[3] = {0};

    for (int i = 0; i < 3; i++) { /* who gives up is the oldest, in the middle, the newest */
        CHECK_EQ(weir_event_wait_async(&event, &c[i].op, note), 0);
        if (i < 2)
            queue_up(&v[i], 1);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_op_cancel(&c[i].op), 1);
    CHECK_EQ(weir_event_wait(&event, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    queue_up(&v[2], 1);
    CHECK_EQ(queued(&event), 3);
    weir_event_set(&event);
    test_join_all();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(v[i].result, 0);
        CHECK_EQ(c[i].times, 0);
    }
}

TEST(a_set_beats_a_deadline_that_is_noticed_after_it)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v = {.wait = wait_event, .object = &event};

    queue_up_and_hold_leaving(&v);
    weir_event_set(&event);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

TEST(who_would_leave_while_set_is_under_way_stays_until_told)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v = {.wait = wait_event, .object = &event};

    queue_up_and_hold_leaving(&v);
    waiter *w = nth_waiter(&event, 0);
    test_hold(NOT_DELIVERED);
    test_spawn(set_event, &event);
    test_reached(NOT_DELIVERED);
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(state_of(w) == ASLEEP); /* the setter still has its record in hand */
    CHECK_EQ(result_of(&v), NOT_YET);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

static int signals;

static void count_signal(int number)
{
    (void)number;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

static pthread_t thread_under_fire;

static void visit_under_fire(void *arg)
{
    thread_under_fire = pthread_self();
    visit(arg);
}

TEST(a_signal_does_not_end_a_wait)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct visitor v = {wait_event, &event, 100 * WEIR_S, NOT_YET};

    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_signal}, NULL);
    test_hold(ABOUT_TO_SLEEP);
    test_spawn(visit_under_fire, &v);
    test_reached(ABOUT_TO_SLEEP);
    waiter *w = nth_waiter(&event, 0);
    test_let_go(ABOUT_TO_SLEEP);
    EVENTUALLY(state_of(w) == ASLEEP);
    for (int i = 1; i <= 20; i++) {
        CHECK_EQ(pthread_kill(thread_under_fire, SIGUSR1), 0);
        EVENTUALLY(__atomic_load_n(&signals, __ATOMIC_RELAXED) == i);
    }
    CHECK_EQ(queued(&event), 1);
    CHECK_EQ(result_of(&v), NOT_YET);
    weir_event_set(&event);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- set and cleared -------------------------------------------------------- */

TEST(a_reusable_event_is_set_and_cleared_again_and_again)
{
    static struct weir_revent at_compile_time = WEIR_REVENT_INIT;
    struct weir_revent event;
    struct visitor v = {.wait = wait_revent, .object = &event};

    CHECK(!weir_revent_is_set(&at_compile_time));
    weir_revent_init(&event);
    for (int i = 0; i < 10; i++) {
        CHECK(!weir_revent_is_set(&event));
        CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
        queue_up(&v, 1);
        weir_revent_set(&event);
        test_join_all();
        CHECK_EQ(v.result, 0);
        CHECK(weir_revent_is_set(&event));
        CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), 0);
        CHECK_EQ(weir_revent_wait(&event, WEIR_FOREVER), 0);
        weir_revent_clear(&event);
    }
}

TEST(set_wakes_exactly_those_waiting_even_when_clear_comes_before_they_run)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct visitor v[2] = {{wait_revent, &event, 0, 0}, {wait_revent, &event, 0, 0}};
    struct visitor late = {.wait = wait_revent, .object = &event};
    struct caller c = {.op = WEIR_OP_INIT}, late_c = {.op = WEIR_OP_INIT};

    queue_up(v, 2);
    CHECK_EQ(weir_revent_wait_async(&event, &c.op, note), 0);
    test_hold(NOT_DELIVERED);
    test_spawn(set_revent, &event);
    test_reached(NOT_DELIVERED);
    weir_revent_clear(&event); /* none of the three has been told */
    CHECK(!weir_revent_is_set(&event));
    queue_up(&late, 1);
    CHECK_EQ(weir_revent_wait_async(&event, &late_c.op, note), 0);
    test_let_go(NOT_DELIVERED);
    EVENTUALLY(result_of(&v[0]) == 0 && result_of(&v[1]) == 0 && calls() == 1);
    CHECK_EQ(queued(&event), 2); /* who came later still waits */
    CHECK_EQ(result_of(&late), NOT_YET);
    weir_revent_set(&event);
    test_join_all();
    CHECK_EQ(late.result, 0);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(late_c.times, 1);
}

TEST(a_set_beats_a_deadline_even_when_clear_has_followed)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct visitor v = {.wait = wait_revent, .object = &event};
    struct visitor next = {.wait = wait_revent, .object = &event};

    queue_up_and_hold_leaving(&v);
    weir_revent_set(&event);
    weir_revent_clear(&event);
    queue_up(&next, 1); /* the queue is in use again when the first would leave it */
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(result_of(&v) != NOT_YET);
    CHECK_EQ(result_of(&v), 0);
    CHECK_EQ(queued(&event), 1);
    weir_revent_set(&event);
    test_join_all();
    CHECK_EQ(next.result, 0);
}

/* A callback that clears the event and waits for it again. */
struct insatiable {
    struct weir_op op;
    struct weir_revent *event;
    int times;
};

static void clear_and_wait_again(struct weir_op *op, int result)
{
    struct insatiable *i = (struct insatiable *)op;

    CHECK_EQ(result, 0);
    i->times++;
    weir_revent_clear(i->event);
    CHECK_EQ(weir_revent_wait_async(i->event, op, clear_and_wait_again), 0);
}

TEST(one_set_wakes_a_callback_once_though_it_waits_again)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct insatiable i[2] = {{.event = &event}, {.event = &event}};

    CHECK_EQ(weir_revent_wait_async(&event, &i[0].op, clear_and_wait_again), 0);
    CHECK_EQ(weir_revent_wait_async(&event, &i[1].op, clear_and_wait_again), 0);
    for (int round = 1; round <= 5; round++) {
        weir_revent_set(&event);
        CHECK_EQ(i[0].times, round);
        CHECK_EQ(i[1].times, round);
        CHECK_EQ(queued(&event), 2);
    }
}

TEST(set_then_clear_then_wait_waits)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct visitor v = {.wait = wait_revent, .object = &event};
    struct caller c = {.op = WEIR_OP_INIT};

    weir_revent_set(&event);
    weir_revent_clear(&event);
    CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_revent_wait(&event, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_revent_wait_async(&event, &c.op, note), 0);
    queue_up(&v, 1);
    weir_revent_set(&event);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(c.times, 1);
}

TEST(clearing_what_is_clear_leaves_those_who_wait)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct visitor v = {.wait = wait_revent, .object = &event};

    weir_revent_clear(&event);
    CHECK(!weir_revent_is_set(&event));
    queue_up(&v, 1);
    for (int i = 0; i < 10; i++)
        weir_revent_clear(&event);
    CHECK_EQ(queued(&event), 1);
    CHECK_EQ(result_of(&v), NOT_YET);
    weir_revent_set(&event);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

static void clear_revent(void *event)
{
    weir_revent_clear(event);
}

TEST(set_and_clear_that_meet_another_call_have_their_effect)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct caller c = {.op = WEIR_OP_INIT};

    for (int i = 0; i < 2; i++) { /* first with nobody waiting */
        if (i == 1)
            CHECK_EQ(weir_revent_wait_async(&event, &c.op, note), 0);
        call_while_locked(&event, set_revent, &event);
        CHECK(weir_revent_is_set(&event));
        CHECK_EQ(c.times, i);
        call_while_locked(&event, clear_revent, &event);
        CHECK(!weir_revent_is_set(&event));
    }
}

static void set_clear_and_wait(void *event)
{
    for (int i = test_scaled(2000); i > 0; i--) {
        if (test_random(2))
            weir_revent_set(event);
        else
            weir_revent_clear(event);
        int r = weir_revent_wait(event, weir_within(test_random(3) * 10 * WEIR_US));
        CHECK(r == 0 || r == WEIR_ETIMEDOUT);
    }
}

TEST(set_and_clear_may_be_called_from_any_number_of_threads)
{
    struct weir_revent event = WEIR_REVENT_INIT;

    for (int i = 0; i < 4; i++)
        test_spawn(set_clear_and_wait, &event);
    test_join_all();
    CHECK_EQ(queued(&event), 0);
    weir_revent_set(&event);
    CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), 0);
    weir_revent_clear(&event);
    CHECK_EQ(weir_revent_wait(&event, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(event.queue_.word, 0); /* as new: nothing is left of all that */
}
