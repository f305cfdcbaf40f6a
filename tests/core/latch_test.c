/* SPDX-License-Identifier: MIT */
/* weir_latch: the promises made in weir/latch.h, in that order. */
#include <weir/event.h>
#include <weir/latch.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

static int wait_latch(void *latch, struct weir_deadline deadline)
{
    return weir_latch_wait(latch, deadline);
}

static void arrive(void *latch)
{
    CHECK_EQ(weir_latch_arrive(latch, 1), 0);
}

/* Once it is open: nothing fails, nothing breaks it. */
static void check_open(struct weir_latch *latch)
{
    struct caller c = {.op = WEIR_OP_INIT};

    for (int i = 0; i < 2; i++) {
        CHECK(!weir_latch_is_broken(latch));
        CHECK_EQ(weir_latch_wait(latch, WEIR_FOREVER), 0);
        CHECK_EQ(weir_latch_wait(latch, WEIR_NO_WAIT), 0);
        CHECK_EQ(weir_latch_wait_async(latch, &c.op, note), 1);
        CHECK_EQ(weir_latch_arrive(latch, 1), WEIR_EOVERFLOW);
        weir_latch_abort(latch);
    }
    CHECK_EQ(c.times, 0);
}

static void check_broken(struct weir_latch *latch)
{
    struct caller c = {.op = WEIR_OP_INIT};

    for (int i = 0; i < 2; i++) {
        CHECK(weir_latch_is_broken(latch));
        CHECK_EQ(weir_latch_wait(latch, WEIR_FOREVER), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_wait(latch, WEIR_NO_WAIT), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_wait_async(latch, &c.op, note), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(latch, 1), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(latch, UINT32_MAX), WEIR_EBROKEN);
        weir_latch_abort(latch);
    }
    CHECK_EQ(c.times, 0);
    CHECK_EQ(queued(latch), 0);
}

/* ---- opening ----------------------------------------------------------------- */

TEST(a_latch_for_nobody_is_invalid)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);

    CHECK_EQ(weir_latch_init(&latch, 0), WEIR_EINVAL);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0); /* it is still the one for two */
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    check_open(&latch);
}

TEST(a_latch_opens_when_all_have_arrived_and_not_before)
{
    struct weir_latch latch;
    struct visitor v[3];

    CHECK_EQ(weir_latch_init(&latch, 4), 0);
    for (int i = 0; i < 3; i++) {
        v[i] = (struct visitor){.wait = wait_latch, .object = &latch};
        queue_up(&v[i], 1);
    }
    CHECK_EQ(queued(&latch), 3);
    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
    test_join_all();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(v[i].result, 0);
    check_open(&latch);
}

TEST(arrive_arrives_and_does_not_wait)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);

    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    CHECK(latch.queue_.word != 0); /* not open yet */
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    check_open(&latch);
}

TEST(arriving_several_times_at_once_counts_each)
{
    struct weir_latch latch;

    CHECK_EQ(weir_latch_init(&latch, UINT32_MAX), 0);
    CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX - 5), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 6), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_arrive(&latch, 5), 0);
    check_open(&latch);
}

TEST(waits_and_arrivals_of_threads_and_callbacks_count_alike)
{
    struct weir_latch latch = WEIR_LATCH_INIT(7);
    struct visitor v = {.wait = wait_latch, .object = &latch};
    struct caller c[2] = {0};

    queue_up(&v, 1);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[0].op, note), 0);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[1].op, note), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 3), 0);
    CHECK_EQ(queued(&latch), 3);
    CHECK_EQ(calls(), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    for (int i = 0; i < 2; i++) { /* called in their order, before arrive returned */
        CHECK_EQ(c[i].times, 1);
        CHECK_EQ(c[i].place, i + 1);
        CHECK_EQ(c[i].result, 0);
    }
    test_join_all();
    CHECK_EQ(v.result, 0);
    check_open(&latch);
}

TEST(the_last_callback_to_arrive_has_it_at_once)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct visitor v = {.wait = wait_latch, .object = &latch};
    struct caller c[2] = {0};

    queue_up(&v, 1);
    EVENTUALLY(state_of(nth_waiter(&latch, 0)) == ASLEEP);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[0].op, note), 0);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[1].op, note), 1);
    CHECK_EQ(c[0].times, 1);
    CHECK_EQ(c[1].times, 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- once open --------------------------------------------------------------- */

static void wait_last(void *latch)
{
    CHECK_EQ(weir_latch_wait(latch, WEIR_FOREVER), 0);
}

/* It is open, and those who waited have not been told. */
static void check_abort_is_too_late(void (*open)(void *latch))
{
    struct weir_latch latch = WEIR_LATCH_INIT(4);
    struct visitor v[2] = {{wait_latch, &latch, 0, 0}, {wait_latch, &latch, 0, 0}};
    struct caller c = {.op = WEIR_OP_INIT};

    queue_up(v, 2);
    CHECK_EQ(weir_latch_wait_async(&latch, &c.op, note), 0);
    test_hold(NOT_DELIVERED);
    test_spawn(open, &latch);
    test_reached(NOT_DELIVERED);
    weir_latch_abort(&latch);
    CHECK_EQ(weir_op_cancel(&c.op), 0);
    check_open(&latch);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v[0].result, 0);
    CHECK_EQ(v[1].result, 0);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, 0);
}

TEST(it_cannot_break_once_open_even_before_those_who_wait_are_told)
{
    check_abort_is_too_late(arrive);
    called = 0;
    check_abort_is_too_late(wait_last);
}

TEST(its_opening_beats_a_deadline_that_is_noticed_after_it)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    queue_up_and_hold_leaving(&v);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, 0);
    check_open(&latch);
}

/* ---- breaking ---------------------------------------------------------------- */

TEST(arriving_more_often_than_is_missing_is_refused_and_changes_nothing)
{
    struct weir_latch latch = WEIR_LATCH_INIT(4);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    CHECK_EQ(weir_latch_arrive(&latch, 5), WEIR_EOVERFLOW);
    queue_up(&v, 1);
    CHECK_EQ(weir_latch_arrive(&latch, 4), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(queued(&latch), 1);
    CHECK_EQ(weir_latch_arrive(&latch, 3), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

TEST(a_deadline_breaks_it_and_only_who_missed_it_is_told_so)
{
    struct weir_latch latch = WEIR_LATCH_INIT(4);
    struct visitor v = {.wait = wait_latch, .object = &latch};
    struct caller c = {.op = WEIR_OP_INIT};
    struct weir_deadline deadline;

    queue_up(&v, 1);
    CHECK_EQ(weir_latch_wait_async(&latch, &c.op, note), 0);
    deadline = weir_within(BRIEFLY);
    CHECK_EQ(weir_latch_wait(&latch, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, WEIR_EBROKEN);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&latch);
}

TEST(taking_a_callback_back_breaks_it)
{
    struct weir_latch latch = WEIR_LATCH_INIT(4);
    struct visitor v = {.wait = wait_latch, .object = &latch};
    struct caller c[2] = {0};

    CHECK_EQ(weir_latch_wait_async(&latch, &c[0].op, note), 0);
    queue_up(&v, 1);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[1].op, note), 0);
    CHECK_EQ(weir_op_cancel(&c[0].op), 1);
    CHECK_EQ(c[0].times, 0);
    CHECK_EQ(c[1].times, 1);
    CHECK_EQ(c[1].result, WEIR_EBROKEN);
    CHECK_EQ(weir_op_cancel(&c[1].op), 0);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&latch);
}

TEST(abort_breaks_it_for_all_who_wait_and_all_who_come)
{
    struct weir_latch latch = WEIR_LATCH_INIT(6);
    struct visitor v[2] = {{wait_latch, &latch, 0, 0}, {wait_latch, &latch, 0, 0}};
    struct caller c[2] = {0};

    CHECK(!weir_latch_is_broken(&latch));
    CHECK_EQ(weir_latch_wait_async(&latch, &c[0].op, note), 0);
    queue_up(v, 2);
    CHECK_EQ(weir_latch_wait_async(&latch, &c[1].op, note), 0);
    EVENTUALLY(state_of(nth_waiter(&latch, 1)) == ASLEEP);
    EVENTUALLY(state_of(nth_waiter(&latch, 2)) == ASLEEP);
    weir_latch_abort(&latch);
    CHECK(weir_latch_is_broken(&latch));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(c[i].place, i + 1);
        CHECK_EQ(c[i].result, WEIR_EBROKEN);
    }
    test_join_all();
    CHECK_EQ(v[0].result, WEIR_EBROKEN);
    CHECK_EQ(v[1].result, WEIR_EBROKEN);
    check_broken(&latch);
}

TEST(a_latch_can_be_broken_before_anybody_comes)
{
    struct weir_latch latch = WEIR_LATCH_INIT(1);

    weir_latch_abort(&latch);
    check_broken(&latch);
    CHECK_EQ(weir_latch_init(&latch, 1), 0); /* and made anew */
    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
}

static void abort_latch(void *latch)
{
    weir_latch_abort(latch);
}

TEST(who_misses_the_deadline_of_a_broken_latch_is_told_that_it_is_broken)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    queue_up_and_hold_leaving(&v);
    test_hold(NOT_DELIVERED);
    test_spawn(abort_latch, &latch);
    test_reached(NOT_DELIVERED);
    test_let_go(ABOUT_TO_LEAVE);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
}

TEST(with_a_deadline_in_the_past_the_last_one_opens_it)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    queue_up(&v, 1);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    CHECK_EQ(weir_latch_wait(&latch, WEIR_NO_WAIT), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
    check_open(&latch);
}

TEST(with_a_deadline_in_the_past_anyone_else_breaks_it)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    queue_up(&v, 1);
    CHECK_EQ(weir_latch_wait(&latch, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&latch);
}

/* A block of work that one of those expected does not get through. */
static void start_or_abort(void *latch)
{
    if (test_random(2)) /* it could not start: say so, so that nobody waits for it */
        weir_latch_abort(latch);
    int r = weir_latch_wait(latch, WEIR_FOREVER);
    CHECK(r == 0 || r == WEIR_EBROKEN);
    CHECK_EQ(r == WEIR_EBROKEN, weir_latch_is_broken(latch));
}

TEST(nobody_waits_for_one_who_aborts_instead_of_coming)
{
    struct weir_latch latch[20];

    for (int round = 0; round < 20; round++) {
        CHECK_EQ(weir_latch_init(&latch[round], 3), 0);
        for (int i = 0; i < 3; i++)
            test_spawn(start_or_abort, &latch[round]);
    }
    test_join_all();
}

/* ---- inside a callback -------------------------------------------------------- */

struct inside {
    struct weir_op op;
    struct weir_latch *latch;
    int result;
};

static void wait_inside(struct weir_op *op, int result)
{
    struct inside *i = (struct inside *)op;

    CHECK_EQ(result, 0);
    i->result = weir_latch_wait(i->latch, WEIR_FOREVER);
}

static int result_inside_a_callback(struct weir_latch *latch)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct inside i = {.latch = latch, .result = NOT_YET};

    CHECK_EQ(weir_event_wait_async(&event, &i.op, wait_inside), 0);
    weir_event_set(&event);
    return i.result;
}

TEST(inside_a_callback_it_may_be_opened_but_not_waited_for_which_changes_nothing)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);
    struct visitor v = {.wait = wait_latch, .object = &latch};

    CHECK_EQ(result_inside_a_callback(&latch), WEIR_ECONTEXT);
    CHECK(!weir_latch_is_broken(&latch));
    queue_up(&v, 1); /* so it was not counted as an arrival */
    CHECK_EQ(result_inside_a_callback(&latch), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- visibility and end of life ---------------------------------------------- */

enum { PARTIES = 6 };

struct starters {
    struct weir_latch latch;
    int written[PARTIES], next;
};

static void write_meet_and_read(void *arg)
{
    struct starters *s = arg;
    int i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);

    s->written[i] = i + 1;
    if (i % 2) {
        arrive(&s->latch);
        return;
    }
    CHECK_EQ(weir_latch_wait(&s->latch, WEIR_FOREVER), 0);
    for (int j = 0; j < PARTIES; j++)
        CHECK_EQ(s->written[j], j + 1);
}

TEST(what_all_wrote_before_they_arrived_is_seen_after_the_wait)
{
    static struct starters s[20];

    for (int round = 0; round < 20; round++) {
        CHECK_EQ(weir_latch_init(&s[round].latch, PARTIES), 0);
        for (int i = 0; i < PARTIES; i++)
            test_spawn(write_meet_and_read, &s[round]);
    }
    test_join_all();
}

static void init_two(void *latch)
{
    CHECK_EQ(weir_latch_init(latch, 2), 0);
}

TEST(a_latch_may_be_freed_the_moment_its_wait_returns)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_latch),
        .init = init_two,
        .wait = wait_latch,
        .end_wait = arrive,
    });
}

static void free_broken(struct weir_op *op, int result)
{
    CHECK_EQ(result, WEIR_EBROKEN);
    free_mortal(op, 0);
}

TEST(a_callback_may_free_its_record_and_the_latch)
{
    void (*ends[])(void *) = {arrive, wait_last, abort_latch};

    for (int i = 0; i < 3; i++) {
        struct mortal *m = new_mortal(sizeof(struct weir_latch));
        struct weir_latch *latch = m->object;

        init_two(latch);
        CHECK_EQ(weir_latch_wait_async(latch, &m->op, i < 2 ? free_mortal : free_broken), 0);
        ends[i](latch);
        CHECK_EQ(calls(), i + 1);
    }
}
