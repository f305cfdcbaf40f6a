/* SPDX-License-Identifier: MIT */
/* weir_countdown: the promises made in weir/countdown.h, in that order. */
#include <weir/countdown.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

static int wait_countdown(void *countdown, struct weir_deadline deadline)
{
    return weir_countdown_wait(countdown, deadline);
}

static void down_one(void *countdown)
{
    CHECK_EQ(weir_countdown_down(countdown, 1), 0);
}

static void clear(void *countdown)
{
    weir_countdown_clear(countdown);
}

/* ---- the value -------------------------------------------------------------- */

TEST(a_new_countdown_is_at_zero_and_waits_return_at_once)
{
    struct weir_countdown at_compile_time = WEIR_COUNTDOWN_INIT(0), at_run_time;
    struct caller c = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_countdown_init(&at_run_time, 0), 0);
    CHECK_EQ(weir_countdown_value(&at_compile_time), 0);
    CHECK_EQ(weir_countdown_value(&at_run_time), 0);
    CHECK_EQ(weir_countdown_wait(&at_compile_time, WEIR_FOREVER), 0);
    CHECK_EQ(weir_countdown_wait(&at_run_time, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_countdown_wait_async(&at_run_time, &c.op, note), 1);
    CHECK_EQ(c.times, 0);
}

TEST(a_countdown_starts_at_the_value_that_it_is_given)
{
    struct weir_countdown at_compile_time = WEIR_COUNTDOWN_INIT(3), at_run_time;

    CHECK_EQ(weir_countdown_init(&at_run_time, 5), 0);
    CHECK_EQ(weir_countdown_value(&at_compile_time), 3);
    CHECK_EQ(weir_countdown_value(&at_run_time), 5);
    CHECK_EQ(weir_countdown_wait(&at_compile_time, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_countdown_init(&at_run_time, WEIR_COUNTDOWN_MAX), 0);
    CHECK_EQ(weir_countdown_value(&at_run_time), WEIR_COUNTDOWN_MAX);
}

TEST(a_countdown_cannot_start_above_the_largest_value)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(3);

    CHECK_EQ(weir_countdown_init(&countdown, WEIR_COUNTDOWN_MAX + 1), WEIR_EINVAL);
    CHECK_EQ(weir_countdown_init(&countdown, UINT64_MAX), WEIR_EINVAL);
    CHECK_EQ(weir_countdown_value(&countdown), 3);
}

TEST(a_countdown_takes_24_bytes_whatever_its_value)
{
    CHECK_EQ(sizeof(struct weir_countdown), 24);
}

TEST(up_adds_and_down_takes_off)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(0);

    CHECK_EQ(weir_countdown_up(&countdown, 5), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 5);
    CHECK_EQ(weir_countdown_up(&countdown, 2), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 7);
    CHECK_EQ(weir_countdown_down(&countdown, 4), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 3);
    CHECK_EQ(weir_countdown_down(&countdown, 3), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
    CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX), 0);
    CHECK_EQ(weir_countdown_value(&countdown), WEIR_COUNTDOWN_MAX);
    CHECK_EQ(weir_countdown_down(&countdown, WEIR_COUNTDOWN_MAX), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
}

TEST(up_beyond_the_largest_value_is_refused_and_changes_nothing)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(2);

    CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX - 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_up(&countdown, UINT64_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_up(&countdown, UINT64_MAX - 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_value(&countdown), 2);
    CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX - 2), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_value(&countdown), WEIR_COUNTDOWN_MAX);
}

TEST(down_below_zero_is_refused_and_changes_nothing)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(0);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};

    CHECK_EQ(weir_countdown_down(&countdown, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_up(&countdown, 2), 0);
    queue_up(&v, 1);
    CHECK_EQ(weir_countdown_down(&countdown, 3), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_down(&countdown, UINT64_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_value(&countdown), 2);
    CHECK_EQ(queued(&countdown), 1);
    CHECK_EQ(weir_countdown_down(&countdown, 2), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* A caller that finds somebody inside decides once it is inside itself. */
struct change {
    struct weir_countdown *countdown;
    int (*make)(struct weir_countdown *countdown, uint64_t n);
    uint64_t n;
    int result;
};

static void make_change(void *arg)
{
    struct change *c = arg;

    c->result = c->make(c->countdown, c->n);
}

TEST(changes_that_meet_follow_the_same_rules)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(4);
    struct caller c = {.op = WEIR_OP_INIT};
    struct change changes[] = {
        {&countdown, weir_countdown_up, 3, 0},
        {&countdown, weir_countdown_up, WEIR_COUNTDOWN_MAX - 6, WEIR_EOVERFLOW},
        {&countdown, weir_countdown_down, 8, WEIR_EOVERFLOW},
        {&countdown, weir_countdown_up, WEIR_COUNTDOWN_MAX - 7, 0},
        {&countdown, weir_countdown_down, WEIR_COUNTDOWN_MAX - 5, 0},
        {&countdown, weir_countdown_down, 5, 0},
        {&countdown, weir_countdown_down, 1, WEIR_EOVERFLOW},
    };
    uint64_t values[] = {7, 7, 7, WEIR_COUNTDOWN_MAX, 5, 0, 0};

    CHECK_EQ(weir_countdown_wait_async(&countdown, &c.op, note), 0);
    for (int i = 0; i < 7; i++) {
        int want = changes[i].result;

        call_while_locked(&countdown, make_change, &changes[i]);
        CHECK_EQ(changes[i].result, want);
        CHECK_EQ(weir_countdown_value(&countdown), values[i]);
        CHECK_EQ(c.times, values[i] == 0);
    }
}

/* ---- clear ------------------------------------------------------------------- */

TEST(clear_makes_it_zero_and_wakes_everyone)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1000);
    struct visitor v[2] = {{wait_countdown, &countdown, 0, 0}, {wait_countdown, &countdown, 0, 0}};
    struct caller c[2] = {0};

    CHECK_EQ(weir_countdown_wait_async(&countdown, &c[0].op, note), 0);
    queue_up(v, 2);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &c[1].op, note), 0);
    weir_countdown_clear(&countdown);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
    CHECK_EQ(c[0].place, 1);
    CHECK_EQ(c[1].place, 2);
    test_join_all();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(v[i].result, 0);
        CHECK_EQ(c[i].result, 0);
        CHECK_EQ(c[i].times, 1);
    }
}

TEST(clear_of_what_is_zero_does_nothing_and_it_can_be_used_again)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(0);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};

    weir_countdown_clear(&countdown);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 2), 0);
    weir_countdown_clear(&countdown);
    CHECK_EQ(weir_countdown_down(&countdown, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_up(&countdown, 1), 0);
    queue_up(&v, 1);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- waiting ----------------------------------------------------------------- */

TEST(waits_return_at_zero_and_not_before)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(3);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};
    struct caller c = {.op = WEIR_OP_INIT};

    queue_up(&v, 1);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &c.op, note), 0);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 4), 0); /* it may also rise meanwhile */
    CHECK_EQ(weir_countdown_down(&countdown, 4), 0);
    CHECK_EQ(queued(&countdown), 2);
    CHECK_EQ(result_of(&v), NOT_YET);
    CHECK_EQ(c.times, 0);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(c.result, 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

TEST(at_zero_threads_asleep_and_callbacks_are_woken_oldest_first)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);
    struct visitor v[2] = {{wait_countdown, &countdown, 0, 0}, {wait_countdown, &countdown, 0, 0}};
    struct caller c[20] = {0};

    queue_up(&v[0], 1);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(weir_countdown_wait_async(&countdown, &c[i].op, note), 0);
    queue_up(&v[1], 1);
    EVENTUALLY(state_of(nth_waiter(&countdown, 0)) == ASLEEP);
    EVENTUALLY(state_of(nth_waiter(&countdown, 21)) == ASLEEP);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(c[i].place, i + 1);
    test_join_all();
    CHECK_EQ(v[0].result, 0);
    CHECK_EQ(v[1].result, 0);
}

TEST(exactly_those_waiting_at_zero_are_woken_even_if_it_rises_before_they_run)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};
    struct visitor late = {.wait = wait_countdown, .object = &countdown};
    struct caller c = {.op = WEIR_OP_INIT}, late_c = {.op = WEIR_OP_INIT};

    queue_up(&v, 1);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &c.op, note), 0);
    test_hold(NOT_DELIVERED);
    test_spawn(down_one, &countdown);
    test_reached(NOT_DELIVERED);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 1), 0);
    queue_up(&late, 1);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &late_c.op, note), 0);
    test_let_go(NOT_DELIVERED);
    EVENTUALLY(result_of(&v) == 0 && calls() == 1);
    CHECK_EQ(queued(&countdown), 2);
    CHECK_EQ(result_of(&late), NOT_YET);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    test_join_all();
    CHECK_EQ(late.result, 0);
    CHECK_EQ(c.times, 1);
    CHECK_EQ(late_c.times, 1);
}

TEST(those_waiting_when_it_is_cleared_are_woken_even_if_it_rises_before_they_run)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(9);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};

    queue_up(&v, 1);
    test_hold(NOT_DELIVERED);
    test_spawn(clear, &countdown);
    test_reached(NOT_DELIVERED);
    CHECK_EQ(weir_countdown_up(&countdown, 1), 0);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(weir_countdown_value(&countdown), 1);
}

TEST(a_wait_gives_up_at_its_deadline_and_changes_nothing)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(2);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};
    struct weir_deadline deadline = weir_within(2 * WEIR_MS);
    struct caller c = {.op = WEIR_OP_INIT};

    queue_up(&v, 1);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &c.op, note), 0);
    CHECK_EQ(weir_op_cancel(&c.op), 1);
    CHECK_EQ(weir_countdown_wait(&countdown, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(weir_countdown_value(&countdown), 2);
    CHECK_EQ(queued(&countdown), 1);
    CHECK_EQ(weir_countdown_down(&countdown, 2), 0);
    test_join_all();
    CHECK_EQ(v.result, 0);
    CHECK_EQ(c.times, 0);
}

TEST(a_deadline_in_the_past_has_a_zero_and_waits_for_nothing)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);

    CHECK_EQ(weir_countdown_wait(&countdown, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_countdown_wait(&countdown, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_countdown_value(&countdown), 1);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_EQ(weir_countdown_wait(&countdown, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_countdown_wait(&countdown, (struct weir_deadline){1}), 0);
}

TEST(a_zero_beats_a_deadline_that_is_noticed_after_it)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);
    struct visitor v = {.wait = wait_countdown, .object = &countdown};

    queue_up_and_hold_leaving(&v);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 1), 0);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, 0);
}

/* ---- joining ----------------------------------------------------------------- */

/* Workers that each leave a plain result behind, and joiners that add them up. */
enum { WORKERS = 30, JOINERS = 10 };

struct crew {
    struct weir_countdown running;
    int results[WORKERS], next;
};

static void work(void *arg)
{
    struct crew *crew = arg;
    int i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED);

    crew->results[i] = i + 1;
    CHECK_EQ(weir_countdown_down(&crew->running, 1), 0);
}

static int sum(const struct crew *crew)
{
    int total = 0;

    for (int i = 0; i < WORKERS; i++)
        total += crew->results[i];
    return total;
}

static void join_crew(void *arg)
{
    struct crew *crew = arg;

    CHECK_EQ(weir_countdown_wait(&crew->running, WEIR_FOREVER), 0);
    CHECK_EQ(sum(crew), WORKERS * (WORKERS + 1) / 2);
}

struct joiner {
    struct weir_op op;
    struct crew *crew;
    int total;
};

static void add_up(struct weir_op *op, int result)
{
    struct joiner *j = (struct joiner *)op;

    CHECK_EQ(result, 0);
    j->total = sum(j->crew);
}

TEST(any_number_of_waiters_join_any_number_of_workers_and_see_their_results)
{
    struct crew crew = {.running = WEIR_COUNTDOWN_INIT(0)};
    struct joiner j = {.crew = &crew};

    CHECK_EQ(weir_countdown_up(&crew.running, WORKERS), 0);
    for (int i = 0; i < JOINERS; i++)
        test_spawn(join_crew, &crew);
    EVENTUALLY(queued(&crew) == JOINERS);
    CHECK_EQ(weir_countdown_wait_async(&crew.running, &j.op, add_up), 0);
    for (int i = 0; i < WORKERS; i++) {
        if (i % 3 == 0)
            test_spawn(join_crew, &crew); /* some come late, or too late to wait */
        test_spawn(work, &crew);
    }
    test_join_all();
    CHECK_EQ(j.total, WORKERS * (WORKERS + 1) / 2);
    CHECK_EQ(weir_countdown_value(&crew.running), 0);
}

/* ---- end of life ------------------------------------------------------------- */

static void init_one(void *countdown)
{
    CHECK_EQ(weir_countdown_init(countdown, 1), 0);
}

TEST(a_countdown_may_be_freed_the_moment_its_wait_returns)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_countdown),
        .init = init_one,
        .wait = wait_countdown,
        .end_wait = down_one,
    });
}

TEST(a_countdown_may_be_freed_the_moment_it_is_cleared)
{
    live_short_lives((struct short_lives){
        .size = sizeof(struct weir_countdown),
        .init = init_one,
        .wait = wait_countdown,
        .end_wait = clear,
    });
}

TEST(a_callback_may_free_its_record_and_the_countdown)
{
    void (*ends[])(void *) = {down_one, clear};

    for (int i = 0; i < 2; i++) {
        struct mortal *m = new_mortal(sizeof(struct weir_countdown));
        struct weir_countdown *countdown = m->object;

        init_one(countdown);
        CHECK_EQ(weir_countdown_wait_async(countdown, &m->op, free_mortal), 0);
        ends[i](countdown);
        CHECK_EQ(calls(), i + 1);
    }
}
