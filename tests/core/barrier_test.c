/* SPDX-License-Identifier: MIT */
/* weir_barrier: the promises made in weir/barrier.h, in that order. */
#include <weir/barrier.h>
#include <weir/event.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

enum { UNWRITTEN = 4711 };

/* The index, or the error; in that case no index may have been written. */
static int wait_barrier(void *barrier, struct weir_deadline deadline)
{
    uint32_t index = UNWRITTEN;
    int r = weir_barrier_wait(barrier, deadline, &index);

    CHECK((r < 0) == (index == UNWRITTEN));
    return r < 0 ? r : (int)index;
}

static void wait_last(void *barrier)
{
    uint32_t last = ((struct weir_barrier *)barrier)->parties_ - 1;

    CHECK_EQ(wait_barrier(barrier, WEIR_FOREVER), last);
}

static void check_whole_and_empty(struct weir_barrier *barrier)
{
    CHECK(!weir_barrier_is_broken(barrier));
    CHECK_EQ(weir_barrier_waiting(barrier), 0);
}

static void check_broken(struct weir_barrier *barrier)
{
    struct caller c = {.op = WEIR_OP_INIT};

    for (int i = 0; i < 2; i++) {
        CHECK(weir_barrier_is_broken(barrier));
        CHECK_EQ(wait_barrier(barrier, WEIR_FOREVER), WEIR_EBROKEN);
        CHECK_EQ(wait_barrier(barrier, WEIR_NO_WAIT), WEIR_EBROKEN);
        CHECK_EQ(weir_barrier_wait_async(barrier, &c.op, note), WEIR_EBROKEN);
        weir_barrier_abort(barrier);
    }
    CHECK_EQ(c.times, 0);
    CHECK_EQ(weir_barrier_waiting(barrier), 0);
}

/* One whole phase of a barrier for two: it works. */
static void check_one_phase_of_two(struct weir_barrier *barrier)
{
    struct caller c = {.op = WEIR_OP_INIT};

    check_whole_and_empty(barrier);
    CHECK_EQ(weir_barrier_wait_async(barrier, &c.op, note), 0);
    CHECK_EQ(wait_barrier(barrier, WEIR_FOREVER), 1);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, 0);
    check_whole_and_empty(barrier);
}

/* ---- phases ------------------------------------------------------------------ */

TEST(a_barrier_is_for_one_to_the_most_parties)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);

    CHECK_EQ(weir_barrier_init(&barrier, 0), WEIR_EINVAL);
    CHECK_EQ(weir_barrier_init(&barrier, (uint32_t)WEIR_BARRIER_MAX + 1), WEIR_EINVAL);
    CHECK_EQ(weir_barrier_init(&barrier, UINT32_MAX), WEIR_EINVAL);
    check_one_phase_of_two(&barrier); /* nothing has changed */
    CHECK_EQ(weir_barrier_init(&barrier, WEIR_BARRIER_MAX), 0);
    CHECK_EQ(weir_barrier_init(&barrier, 2), 0);
    check_one_phase_of_two(&barrier);
}

TEST(each_is_given_an_index_in_order_of_arrival)
{
    struct weir_barrier barrier;
    struct visitor v[4];

    CHECK_EQ(weir_barrier_init(&barrier, 5), 0);
    for (int i = 0; i < 4; i++) {
        v[i] = (struct visitor){.wait = wait_barrier, .object = &barrier};
        queue_up(&v[i], 1);
    }
    CHECK_EQ(result_of(&v[0]), NOT_YET);
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 4);
    test_join_all();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(v[i].result, i);
    check_whole_and_empty(&barrier);
}

TEST(a_callback_is_given_its_index_as_result)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(5);
    struct visitor v[2] = {{wait_barrier, &barrier, 0, 0}, {wait_barrier, &barrier, 0, 0}};
    struct caller c[3] = {0};

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(weir_barrier_wait_async(&barrier, &c[i].op, note), 0);
        queue_up(&v[i], 1);
    }
    CHECK_EQ(calls(), 0);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c[2].op, note), 1);
    for (int i = 0; i < 2; i++) { /* called in order, before the last call returned */
        CHECK_EQ(c[i].times, 1);
        CHECK_EQ(c[i].place, i + 1);
        CHECK_EQ(c[i].result, 2 * i);
    }
    CHECK_EQ(c[2].times, 0);
    test_join_all();
    CHECK_EQ(v[0].result, 1);
    CHECK_EQ(v[1].result, 3);
}

TEST(all_are_runnable_before_the_last_call_returns)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(4);
    struct visitor v[3];
    waiter *w[2];

    /* Two that have not fallen asleep yet, whose records we can watch, and one that has. */
    for (int i = 0; i < 3; i++) {
        v[i] = (struct visitor){.wait = wait_barrier, .object = &barrier};
        if (i < 2)
            test_hold(ABOUT_TO_SLEEP);
        queue_up(&v[i], 1);
        if (i < 2) {
            test_reached(ABOUT_TO_SLEEP);
            w[i] = nth_waiter(&barrier, i);
        }
    }
    EVENTUALLY(state_of(nth_waiter(&barrier, 2)) == ASLEEP);
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 3);
    CHECK_EQ(state_of(w[0]), DONE);
    CHECK_EQ(state_of(w[1]), DONE);
    EVENTUALLY(result_of(&v[2]) == 2);
    test_let_go(ABOUT_TO_SLEEP);
    test_join_all();
    CHECK_EQ(v[0].result, 0);
    CHECK_EQ(v[1].result, 1);
}

TEST(who_does_not_care_need_not_take_an_index)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(1);

    CHECK_EQ(weir_barrier_wait(&barrier, WEIR_FOREVER, NULL), 0);
    CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, NULL), 0);
}

TEST(a_barrier_for_one_never_waits)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(1);
    struct caller c = {.op = WEIR_OP_INIT};

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 0);
        CHECK_EQ(wait_barrier(&barrier, WEIR_NO_WAIT), 0);
        CHECK_EQ(weir_barrier_wait_async(&barrier, &c.op, note), 1);
    }
    CHECK_EQ(c.times, 0);
}

/* Phase after phase.  Each writes its own cell and reads everybody's (plain data: TSan
 * has its say), then all meet again before the next phase writes. */
enum { DANCERS = 4 };

struct dance {
    struct weir_barrier barrier;
    int phases, next;
    int step[DANCERS];
    int indices[DANCERS];
};

static void dance(void *arg)
{
    struct dance *d = arg;
    int self = __atomic_fetch_add(&d->next, 1, __ATOMIC_RELAXED);

    for (int phase = 1; phase <= d->phases; phase++) {
        d->step[self] = phase;
        int index = wait_barrier(&d->barrier, WEIR_FOREVER);
        CHECK(index >= 0 && index < DANCERS);
        __atomic_add_fetch(&d->indices[index], 1, __ATOMIC_RELAXED);
        for (int i = 0; i < DANCERS; i++)
            CHECK_EQ(d->step[i], phase);
        CHECK(wait_barrier(&d->barrier, WEIR_FOREVER) >= 0);
    }
}

TEST(it_is_used_again_and_again_and_all_see_what_all_wrote_before)
{
    struct dance d = {.barrier = WEIR_BARRIER_INIT(DANCERS), .phases = test_scaled(2000)};

    for (int i = 0; i < DANCERS; i++)
        test_spawn(dance, &d);
    test_join_all();
    for (int i = 0; i < DANCERS; i++)
        CHECK_EQ(d.indices[i], d.phases);
    check_whole_and_empty(&d.barrier);
}

TEST(more_than_it_is_for_form_phases_first_come_first)
{
    enum { N = 11, PARTIES = 3 };
    struct weir_barrier barrier = WEIR_BARRIER_INIT(PARTIES);
    struct caller c[N] = {0};

    for (int i = 0; i < N; i++) {
        CHECK_EQ(weir_barrier_wait_async(&barrier, &c[i].op, note), i % PARTIES == 2);
        CHECK_EQ(weir_barrier_waiting(&barrier), (i + 1) % PARTIES);
    }
    CHECK_EQ(calls(), 6);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(c[i].times, i % PARTIES != 2);
        if (c[i].times)
            CHECK_EQ(c[i].result, i % PARTIES);
    }
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 2);
    CHECK_EQ(c[9].result, 0);
    CHECK_EQ(c[10].result, 1);
}

TEST(who_comes_after_a_phase_is_complete_belongs_to_the_next)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v[2] = {{wait_barrier, &barrier, 0, 0}, {wait_barrier, &barrier, 0, 0}};

    queue_up(&v[0], 1);
    test_hold(NOT_DELIVERED);
    test_spawn(wait_last, &barrier);
    test_reached(NOT_DELIVERED);
    queue_up(&v[1], 1); /* the first phase is complete; nobody has been told */
    test_let_go(NOT_DELIVERED);
    EVENTUALLY(result_of(&v[0]) == 0);
    CHECK_EQ(weir_barrier_waiting(&barrier), 1);
    CHECK_EQ(result_of(&v[1]), NOT_YET);
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 1);
    test_join_all();
    CHECK_EQ(v[1].result, 0);
}

/* ---- breaking ---------------------------------------------------------------- */

TEST(a_deadline_breaks_it_and_only_who_missed_it_is_told_so)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(4);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};
    struct caller c = {.op = WEIR_OP_INIT};
    struct weir_deadline deadline;

    queue_up(&v, 1);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c.op, note), 0);
    deadline = weir_within(BRIEFLY);
    CHECK_EQ(wait_barrier(&barrier, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, WEIR_EBROKEN);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&barrier);
}

TEST(taking_a_callback_back_breaks_it)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(4);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};
    struct caller c[2] = {0};

    CHECK_EQ(weir_barrier_wait_async(&barrier, &c[0].op, note), 0);
    queue_up(&v, 1);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c[1].op, note), 0);
    CHECK_EQ(weir_op_cancel(&c[0].op), 1);
    CHECK_EQ(c[0].times, 0);
    CHECK_EQ(c[1].times, 1);
    CHECK_EQ(c[1].result, WEIR_EBROKEN);
    CHECK_EQ(weir_op_cancel(&c[1].op), 0);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&barrier);
}

TEST(with_a_deadline_in_the_past_the_last_one_completes_the_phase)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};

    queue_up(&v, 1);
    CHECK_EQ(wait_barrier(&barrier, WEIR_NO_WAIT), 1);
    test_join_all();
    CHECK_EQ(v.result, 0);
    check_one_phase_of_two(&barrier);
}

TEST(with_a_deadline_in_the_past_anyone_else_breaks_it)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};

    queue_up(&v, 1);
    CHECK_EQ(wait_barrier(&barrier, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&barrier);
}

TEST(a_complete_phase_beats_a_deadline_that_is_noticed_after_it)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};
    struct visitor next = {.wait = wait_barrier, .object = &barrier};

    queue_up_and_hold_leaving(&v);
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 1);
    queue_up(&next, 1); /* the next phase must not suffer either */
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(result_of(&v) != NOT_YET);
    CHECK_EQ(result_of(&v), 0);
    CHECK(!weir_barrier_is_broken(&barrier));
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 1);
    test_join_all();
    CHECK_EQ(next.result, 0);
}

TEST(of_two_who_give_up_at_once_one_breaks_it_for_the_other)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct visitor v[2] = {{wait_barrier, &barrier, BRIEFLY, 0},
                           {wait_barrier, &barrier, BRIEFLY, 0}};

    test_hold(ABOUT_TO_LEAVE);
    test_hold(ABOUT_TO_LEAVE);
    queue_up(v, 2);
    test_reached(ABOUT_TO_LEAVE);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK(v[0].result != v[1].result);
    CHECK(v[0].result == WEIR_ETIMEDOUT || v[0].result == WEIR_EBROKEN);
    CHECK(v[1].result == WEIR_ETIMEDOUT || v[1].result == WEIR_EBROKEN);
    check_broken(&barrier);
}

/* ---- enter and leave --------------------------------------------------------- */

TEST(leaving_with_success_changes_nothing)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};
    uint32_t index = UNWRITTEN;

    queue_up(&v, 1);
    CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, &index), 0);
    CHECK_EQ(index, 1);
    test_join_all();
    CHECK_EQ(v.result, 0);
    queue_up(&v, 1); /* already at the next phase */
    weir_barrier_leave(&barrier, true);
    CHECK_EQ(weir_barrier_waiting(&barrier), 1);
    CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, &index), 0);
    weir_barrier_leave(&barrier, true);
    test_join_all();
    CHECK_EQ(v.result, 0);
    check_whole_and_empty(&barrier);
}

TEST(leaving_without_success_breaks_it_for_those_who_wait_and_come)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};

    queue_up(&v, 1);
    CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, NULL), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
    queue_up(&v, 1);
    weir_barrier_leave(&barrier, false);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_broken(&barrier);
    CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, NULL), WEIR_EBROKEN);
}

TEST(entering_fails_as_waiting_does)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    uint32_t index = UNWRITTEN;

    CHECK_EQ(weir_barrier_enter(&barrier, weir_within(WEIR_MS), &index), WEIR_ETIMEDOUT);
    CHECK_EQ(index, UNWRITTEN);
    check_broken(&barrier);
}

/* ---- abort and reset --------------------------------------------------------- */

/* Two threads asleep between two callbacks get EBROKEN; the callbacks before it returns. */
static void check_sends_all_away(void (*send_away)(struct weir_barrier *barrier))
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(8);
    struct visitor v[2] = {{wait_barrier, &barrier, 0, 0}, {wait_barrier, &barrier, 0, 0}};
    struct caller c[2] = {0};

    CHECK_EQ(weir_barrier_wait_async(&barrier, &c[0].op, note), 0);
    queue_up(v, 2);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c[1].op, note), 0);
    EVENTUALLY(state_of(nth_waiter(&barrier, 1)) == ASLEEP);
    EVENTUALLY(state_of(nth_waiter(&barrier, 2)) == ASLEEP);
    send_away(&barrier);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(c[i].times, 1);
        CHECK_EQ(c[i].place, i + 1);
        CHECK_EQ(c[i].result, WEIR_EBROKEN);
    }
    test_join_all();
    CHECK_EQ(v[0].result, WEIR_EBROKEN);
    CHECK_EQ(v[1].result, WEIR_EBROKEN);
    CHECK_EQ(weir_barrier_waiting(&barrier), 0);
}

TEST(abort_gives_all_who_wait_and_all_who_come_EBROKEN)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);

    check_sends_all_away(weir_barrier_abort);
    weir_barrier_abort(&barrier);
    check_broken(&barrier);
}

TEST(reset_gives_all_who_wait_EBROKEN_and_leaves_it_empty_and_whole)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct caller c = {.op = WEIR_OP_INIT};

    check_sends_all_away(weir_barrier_reset);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c.op, note), 0);
    weir_barrier_reset(&barrier);
    CHECK_EQ(c.result, WEIR_EBROKEN);
    check_one_phase_of_two(&barrier); /* whose indices begin at 0 again */
}

TEST(reset_makes_a_broken_barrier_whole)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);

    weir_barrier_reset(&barrier); /* of a new one: nothing happens */
    check_one_phase_of_two(&barrier);
    weir_barrier_abort(&barrier);
    check_broken(&barrier);
    weir_barrier_reset(&barrier);
    check_one_phase_of_two(&barrier);
}

/* The last has arrived; nobody has been told yet; then comes `too_late`. */
static void check_spares_a_complete_phase(void (*too_late)(struct weir_barrier *barrier))
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(4);
    struct visitor v[2] = {{wait_barrier, &barrier, 0, 0}, {wait_barrier, &barrier, 0, 0}};
    struct caller c = {.op = WEIR_OP_INIT};

    queue_up(v, 2);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c.op, note), 0);
    test_hold(NOT_DELIVERED);
    test_spawn(wait_last, &barrier); /* which checks that it has index 3 */
    test_reached(NOT_DELIVERED);
    too_late(&barrier);
    CHECK_EQ(weir_op_cancel(&c.op), 0);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v[0].result, 0);
    CHECK_EQ(v[1].result, 1);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, 2);
}

TEST(abort_does_not_touch_a_phase_that_was_complete)
{
    check_spares_a_complete_phase(weir_barrier_abort);
}

TEST(reset_does_not_touch_a_phase_that_was_complete)
{
    check_spares_a_complete_phase(weir_barrier_reset);
}

TEST(who_is_sent_away_by_a_reset_is_not_of_the_next_phase)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};

    queue_up_and_hold_leaving(&v);
    weir_barrier_reset(&barrier); /* its wait has failed, so it is not of the next phase */
    check_one_phase_of_two(&barrier);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, WEIR_EBROKEN);
    check_one_phase_of_two(&barrier); /* nor has its passed deadline broken anything */
}

/* ---- the rest ----------------------------------------------------------------- */

TEST(waiting_says_how_many_have_arrived)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};
    struct caller c = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_barrier_waiting(&barrier), 0);
    queue_up(&v, 1);
    CHECK_EQ(weir_barrier_waiting(&barrier), 1);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &c.op, note), 0);
    CHECK_EQ(weir_barrier_waiting(&barrier), 2);
    CHECK_EQ(wait_barrier(&barrier, WEIR_FOREVER), 2);
    CHECK_EQ(weir_barrier_waiting(&barrier), 0);
    test_join_all();
}

struct inside {
    struct weir_op op;
    struct weir_barrier *barrier;
    int result;
};

static void wait_inside(struct weir_op *op, int result)
{
    struct inside *i = (struct inside *)op;

    CHECK_EQ(result, 0);
    i->result = wait_barrier(i->barrier, WEIR_FOREVER);
}

static int result_inside_a_callback(struct weir_barrier *barrier)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct inside i = {.barrier = barrier, .result = NOT_YET};

    CHECK_EQ(weir_event_wait_async(&event, &i.op, wait_inside), 0);
    weir_event_set(&event);
    return i.result;
}

TEST(inside_a_callback_a_phase_may_be_completed_but_not_waited_for_which_changes_nothing)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct visitor v = {.wait = wait_barrier, .object = &barrier};

    CHECK_EQ(result_inside_a_callback(&barrier), WEIR_ECONTEXT);
    check_whole_and_empty(&barrier);
    queue_up(&v, 1);
    CHECK_EQ(result_inside_a_callback(&barrier), 1);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- end of life ------------------------------------------------------------- */

static void init_two(void *barrier)
{
    CHECK_EQ(weir_barrier_init(barrier, 2), 0);
}

/* The first to arrive is told by the second and may then free the barrier; the second
 * is still inside. */
static void arrive_second(void *barrier)
{
    while (queued(barrier) == 0)
        sched_yield();
    wait_last(barrier);
}

TEST(a_barrier_may_be_freed_the_moment_its_wait_returns)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_barrier),
        .init = init_two,
        .wait = wait_barrier,
        .end_wait = arrive_second,
    });
}

static void abort_barrier(void *barrier)
{
    weir_barrier_abort(barrier);
}

static void reset_barrier(void *barrier)
{
    weir_barrier_reset(barrier);
}

static void free_broken(struct weir_op *op, int result)
{
    CHECK_EQ(result, WEIR_EBROKEN);
    free_mortal(op, 0);
}

TEST(a_callback_may_free_its_record_and_the_barrier)
{
    void (*ends[])(void *) = {arrive_second, abort_barrier, reset_barrier};

    for (int i = 0; i < 3; i++) {
        struct mortal *m = new_mortal(sizeof(struct weir_barrier));
        struct weir_barrier *barrier = m->object;

        init_two(barrier);
        CHECK_EQ(weir_barrier_wait_async(barrier, &m->op, i ? free_broken : free_mortal), 0);
        ends[i](barrier);
        CHECK_EQ(calls(), i + 1);
    }
}
