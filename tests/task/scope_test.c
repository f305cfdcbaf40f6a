/* SPDX-License-Identifier: MIT */
/* Scopes and gather: children end before the block does. */
#include <weir/scope.h>

#include "task/tasks.h"

/* ---- closing -------------------------------------------------------------------------- */

static int say_after_a_while(void *arg)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_task_yield(), 0);
    return say_it(arg);
}

TEST(close_returns_when_every_child_has_ended)
{
    AS_TASK(close_returns_when_every_child_has_ended);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    for (const char *c = "abc"; *c; c++)
        CHECK_EQ(weir_scope_spawn(&scope, say_after_a_while, (void *)c), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "abc");
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(a_scope_without_children_closes_at_once)
{
    AS_TASK(a_scope_without_children_closes_at_once);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_NO_WAIT);
    CHECK_EQ(weir_scope_close(&scope), 0);
    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
}

TEST(children_that_have_ended_need_not_be_waited_for)
{
    AS_TASK(children_that_have_ended_need_not_be_waited_for);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_NO_WAIT);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "a"), 0);
    let_others_run();
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "a");
}

struct generation {
    struct weir_scope *scope;
    int left;
};

static int spawn_the_next(void *arg)
{
    struct generation *g = arg;

    say((char)('0' + g->left));
    CHECK_EQ(weir_task_yield(), 0);
    if (g->left-- > 0)
        CHECK_EQ(weir_scope_spawn(g->scope, spawn_the_next, g), 0);
    return 0;
}

TEST(children_of_children_are_joined_too)
{
    AS_TASK(children_of_children_are_joined_too);
    struct weir_scope scope;
    struct generation generation = {&scope, 5};

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, spawn_the_next, &generation), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "543210");
}

static int nest_a_scope(void *arg)
{
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, say_after_a_while, arg), 0);
    CHECK_EQ(weir_scope_spawn(&scope, say_after_a_while, arg), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    say('.');
    return 0;
}

TEST(scopes_nest)
{
    AS_TASK(scopes_nest);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, nest_a_scope, "a"), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "aa.");
}

TEST(nothing_can_be_spawned_into_a_closed_scope)
{
    AS_TASK(nothing_can_be_spawned_into_a_closed_scope);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "a"), WEIR_ECLOSED);
    let_others_run();
    CHECK_STR(said, "");
}

TEST(outside_a_runtime_a_scope_can_be_closed_but_nothing_spawned)
{
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "a"), WEIR_ECONTEXT);
    CHECK_EQ(weir_scope_close(&scope), 0);
}

/* ---- failing --------------------------------------------------------------------------- */

static struct weir_event never;

static int wait_long(void *arg)
{
    int r = weir_event_wait(&never, WEIR_FOREVER);

    say(r == WEIR_ECANCELED ? 'c' : '?');
    (void)arg;
    return r;
}

static int fail_with(void *arg)
{
    return *(int *)arg;
}

TEST(the_first_failure_cancels_the_others_and_is_returned)
{
    AS_TASK(the_first_failure_cancels_the_others_and_is_returned);
    int busy = WEIR_EBUSY;
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    CHECK_EQ(weir_scope_spawn(&scope, fail_with, &busy), 0);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0); /* has not even started */
    CHECK_EQ(weir_scope_close(&scope), WEIR_EBUSY);
    CHECK_STR(said, "ccc");
}

TEST(of_two_failures_the_first_is_returned)
{
    AS_TASK(of_two_failures_the_first_is_returned);
    int first = WEIR_EPERM, second = WEIR_EPROTO;
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, fail_with, &first), 0);
    CHECK_EQ(weir_scope_spawn(&scope, fail_with, &second), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_EPERM);
}

TEST(a_failure_before_close_cancels_the_others_at_once)
{
    AS_TASK(a_failure_before_close_cancels_the_others_at_once);
    int busy = WEIR_EBUSY;
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    let_others_run();
    CHECK_EQ(weir_scope_spawn(&scope, fail_with, &busy), 0);
    let_others_run();
    CHECK_STR(said, "c");
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0); /* comes too late, and is told so */
    let_others_run();
    CHECK_STR(said, "cc");
    CHECK_EQ(weir_scope_close(&scope), WEIR_EBUSY);
}

TEST(a_child_that_fails_with_ecanceled_by_itself_is_a_failure)
{
    AS_TASK(a_child_that_fails_with_ecanceled_by_itself_is_a_failure);
    int canceled = WEIR_ECANCELED;
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    CHECK_EQ(weir_scope_spawn(&scope, fail_with, &canceled), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_ECANCELED);
    CHECK_STR(said, "c");
}

static int answer(void *arg)
{
    (void)arg;
    return 42;
}

TEST(a_positive_result_is_no_failure)
{
    AS_TASK(a_positive_result_is_no_failure);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, answer, NULL), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
}

/* ---- cancelling and deadlines --------------------------------------------------------------- */

TEST(a_scope_that_is_cancelled_cancels_its_children_those_to_come_included)
{
    AS_TASK(a_scope_that_is_cancelled_cancels_its_children_those_to_come_included);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    for (int i = 0; i < 40; i++)
        CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    let_others_run();
    CHECK_EQ(queued(&never), 40);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0); /* unstarted */
    weir_scope_cancel(&scope);
    weir_scope_cancel(&scope);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0); /* to come */
    CHECK_EQ(weir_scope_close(&scope), 0);                  /* which is no failure */
    CHECK_EQ(how_much_was_said(), 42);
    CHECK_EQ(queued(&never), 0);
}

static int fail_when_cancelled(void *arg)
{
    CHECK_EQ(weir_event_wait(&never, WEIR_FOREVER), WEIR_ECANCELED);
    return *(int *)arg;
}

TEST(another_failure_in_a_cancelled_scope_is_one)
{
    AS_TASK(another_failure_in_a_cancelled_scope_is_one);
    int busy = WEIR_EBUSY;
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, fail_when_cancelled, &busy), 0);
    let_others_run();
    weir_scope_cancel(&scope);
    CHECK_EQ(weir_scope_close(&scope), WEIR_EBUSY);
}

TEST(at_the_deadline_the_children_are_cancelled_and_joined)
{
    AS_TASK_IN_NO_TIME(at_the_deadline_the_children_are_cancelled_and_joined);
    struct weir_deadline hour = weir_within(3600 * WEIR_S);
    struct weir_scope scope;

    weir_scope_open(&scope, hour);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now_ns(), hour.at_ns);
    CHECK_STR(said, "ccc");
}

static int tidy_up(void *arg)
{
    struct weir_shield shield;

    (void)arg;
    CHECK_EQ(weir_event_wait(&never, WEIR_FOREVER), WEIR_ECANCELED);
    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_task_sleep(weir_within(3600 * WEIR_S)), 0);
    weir_shield_end(&shield);
    say('t');
    return 0;
}

TEST(children_that_tidy_up_are_waited_for_however_long_it_takes)
{
    AS_TASK_IN_NO_TIME(children_that_tidy_up_are_waited_for_however_long_it_takes);
    struct weir_scope scope;

    weir_scope_open(&scope, weir_within(WEIR_S));
    CHECK_EQ(weir_scope_spawn(&scope, tidy_up, NULL), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_ETIMEDOUT);
    CHECK_STR(said, "t");
}

TEST(with_a_deadline_in_the_past_close_cancels_at_once)
{
    AS_TASK(with_a_deadline_in_the_past_close_cancels_at_once);
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_NO_WAIT);
    CHECK_EQ(weir_scope_spawn(&scope, wait_long, NULL), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_ETIMEDOUT);
    CHECK_STR(said, "c");
}

/* ---- two workers ------------------------------------------------------------------------------ */

static int fail_among_many(void *arg)
{
    int busy = WEIR_EBUSY;
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_scope scope;

    (void)arg;
    (void)gate;
    weir_scope_open(&scope, WEIR_FOREVER);
    for (int i = 0; i < 30; i++)
        CHECK_EQ(weir_scope_spawn(&scope, i == 20 ? fail_with : wait_long, &busy), 0);
    CHECK_EQ(weir_scope_close(&scope), WEIR_EBUSY);
    CHECK_EQ(queued(&never), 0);
    return 0;
}

TEST(a_failure_cancels_children_on_other_workers)
{
    struct weir_run_options two = {.workers = 2};

    for (int i = test_scaled(50); i > 0; i--)
        CHECK_EQ(weir_run(&two, fail_among_many, NULL), 0);
}

/* ---- callbacks ---------------------------------------------------------------------------------- */

static struct weir_scope *closed_in_callback;

static void close_here(struct weir_op *op, int result)
{
    CHECK_EQ(weir_scope_close(closed_in_callback), WEIR_ECONTEXT);
    note(op, result);
}

TEST(in_a_callback_a_scope_with_children_cannot_be_closed_and_is_not)
{
    AS_TASK(in_a_callback_a_scope_with_children_cannot_be_closed_and_is_not);
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, say_after_a_while, "a"), 0);
    closed_in_callback = &scope;
    CHECK_EQ(weir_event_wait_async(&event, &caller.op, close_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    CHECK_EQ(weir_scope_spawn(&scope, say_after_a_while, "b"), 0);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "ab");
}

/* ---- when there is no room ------------------------------------------------------------------------ */

TEST(a_spawn_that_fails_for_lack_of_memory_leaves_the_scope_as_it_was)
{
    AS_TASK(a_spawn_that_fails_for_lack_of_memory_leaves_the_scope_as_it_was);
    struct weir_scope scope;
    int n = 0, r;

    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "a"), 0);
    let_others_run(); /* all that tasks need is there but what a child needs */
    do {
        test_fail_allocation(++n);
        r = weir_scope_spawn(&scope, say_it, "b");
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(r, 0);
    CHECK(n > 1);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "ab");
}

static int fill_up(void *arg)
{
    struct weir_scope scope;

    (void)arg;
    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "a"), 0);
    CHECK_EQ(weir_scope_spawn(&scope, say_it, "b"), WEIR_ENOSPC);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_STR(said, "a");
    return 0;
}

TEST(a_spawn_beyond_max_tasks_leaves_the_scope_as_it_was)
{
    struct weir_run_options two = {.max_tasks = 2};

    CHECK_EQ(weir_run(&two, fill_up, NULL), 0);
}

/* Its worker has nothing else that runs, so nobody will leave the child a stack; the
 * scope must not wait for it. */
static int lose_a_child(void *arg)
{
    struct weir_scope scope;

    (void)arg;
    weir_scope_open(&scope, WEIR_FOREVER);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_scope_spawn(&scope, say_it, "x"), 0);
    test_fail_allocation(1);
    struct weir_runtime_stats stats;
    do { /* keep this worker busy until the other has taken some over */
        weir_runtime_stats(weir_runtime_self(), &stats);
        test_yield();
    } while (stats.stolen == 0);
    int r = weir_scope_close(&scope);
    test_fail_allocation(0);
    CHECK(r == 0 || r == WEIR_ENOMEM);
    CHECK(how_much_was_said() == 4 || r == WEIR_ENOMEM);
    return 0;
}

TEST(close_does_not_wait_for_a_child_that_could_not_be_given_a_stack)
{
    struct weir_run_options two = {.workers = 2};

    CHECK_EQ(weir_run(&two, lose_a_child, NULL), 0);
}

/* ---- gather ---------------------------------------------------------------------------------------- */

static int twice(void *arg)
{
    int n = *(int *)arg;

    for (int i = 0; i < 10 - n; i++)
        CHECK_EQ(weir_task_yield(), 0);
    return 2 * n;
}

TEST(gather_runs_one_task_for_each_argument_and_keeps_their_order)
{
    AS_TASK(gather_runs_one_task_for_each_argument_and_keeps_their_order);
    int numbers[] = {1, 2, 3, 4}, results[4];
    void *args[] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3]};

    CHECK_EQ(weir_gather(4, twice, args, results, WEIR_FOREVER), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(results[i], 2 * numbers[i]);
    CHECK_EQ(weir_gather(4, twice, args, NULL, WEIR_FOREVER), 0);
}

static int count_calls(void *arg)
{
    CHECK(arg == NULL);
    say('x');
    return 0;
}

TEST(gather_without_arguments_calls_with_null)
{
    AS_TASK(gather_without_arguments_calls_with_null);
    CHECK_EQ(weir_gather(3, count_calls, NULL, NULL, WEIR_FOREVER), 0);
    CHECK_STR(said, "xxx");
}

TEST(gather_of_nothing_returns_at_once)
{
    AS_TASK(gather_of_nothing_returns_at_once);
    CHECK_EQ(weir_gather(0, count_calls, NULL, NULL, WEIR_NO_WAIT), 0);
}

TEST(gather_returns_the_first_failure_in_order_of_the_arguments_and_lets_all_finish)
{
    AS_TASK(gather_returns_the_first_failure_in_order_of_the_arguments_and_lets_all_finish);
    int numbers[] = {5, -3, 2, -4}, results[4]; /* -4 fails before -3 does */
    void *args[] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3]};

    CHECK_EQ(weir_gather(4, twice, args, results, WEIR_FOREVER), -6);
    CHECK_EQ(results[0], 10);
    CHECK_EQ(results[1], -6);
    CHECK_EQ(results[2], 4);
    CHECK_EQ(results[3], -8);
}

TEST(at_its_deadline_gather_cancels_and_joins)
{
    AS_TASK_IN_NO_TIME(at_its_deadline_gather_cancels_and_joins);
    int results[3];

    CHECK_EQ(weir_gather(3, wait_long, NULL, results, weir_within(3600 * WEIR_S)), WEIR_ETIMEDOUT);
    CHECK_STR(said, "ccc");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(results[i], WEIR_ECANCELED);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(gather_outside_a_runtime_is_refused)
{
    CHECK_EQ(weir_gather(2, count_calls, NULL, NULL, WEIR_FOREVER), WEIR_ECONTEXT);
}

static void gather_here(struct weir_op *op, int result)
{
    CHECK_EQ(weir_gather(2, count_calls, NULL, NULL, WEIR_FOREVER), WEIR_ECONTEXT);
    note(op, result);
}

TEST(gather_in_a_callback_is_refused_and_starts_nothing)
{
    AS_TASK(gather_in_a_callback_is_refused_and_starts_nothing);
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_event_wait_async(&event, &caller.op, gather_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    let_others_run();
    CHECK_STR(said, "");
}

static int gather_too_many(void *arg)
{
    int results[5] = {NOT_YET, NOT_YET, NOT_YET, NOT_YET, NOT_YET};

    (void)arg;
    CHECK_EQ(weir_gather(5, wait_long, NULL, results, WEIR_FOREVER), WEIR_ENOSPC);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(results[i], NOT_YET);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
    return 0;
}

TEST(gather_that_cannot_spawn_all_cancels_those_it_spawned_and_says_so)
{
    struct weir_run_options four = {.max_tasks = 4};

    CHECK_EQ(weir_run(&four, gather_too_many, NULL), 0);
    CHECK_STR(said, "ccc");
}

TEST(gather_without_memory_says_so_and_starts_nothing)
{
    AS_TASK(gather_without_memory_says_so_and_starts_nothing);
    test_fail_allocation(1);
    CHECK_EQ(weir_gather(3, count_calls, NULL, NULL, WEIR_FOREVER), WEIR_ENOMEM);
    CHECK_EQ(weir_gather(SIZE_MAX / 2, count_calls, NULL, NULL, WEIR_FOREVER), WEIR_ENOMEM);
    let_others_run();
    CHECK_STR(said, "");
}
