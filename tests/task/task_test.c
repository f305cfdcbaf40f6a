/* SPDX-License-Identifier: MIT */
/* Tasks: how they begin, in which order they run, how they end, and handles to them. */
#include "task/tasks.h"

/* ---- spawn and join -------------------------------------------------------------- */

static int give_back(void *arg)
{
    return *(int *)arg;
}

static int yield_and_give_back(void *arg)
{
    CHECK_EQ(weir_task_yield(), 0);
    return *(int *)arg;
}

TEST(join_returns_what_the_task_returned)
{
    AS_TASK(join_returns_what_the_task_returned);
    int good = 42, bad = -42;

    CHECK_EQ(finish(start(give_back, &good)), 42);
    CHECK_EQ(finish(start(yield_and_give_back, &bad)), -42);
    CHECK_EQ(weir_task_join(start(give_back, &good), WEIR_FOREVER, NULL), 0);
}

TEST(a_spawned_task_begins_when_the_caller_waits_or_yields)
{
    AS_TASK(a_spawned_task_begins_when_the_caller_waits_or_yields);
    struct weir_task task = start(say_it, "a");

    CHECK_EQ(how_much_was_said(), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, "a");
    finish(task);
    task = start(say_it, "b");
    CHECK_EQ(how_much_was_said(), 1);
    finish(task); /* not a sleep, whose deadline may have passed before it begins */
    CHECK_STR(said, "ab");
}

TEST(tasks_begin_in_the_order_in_which_they_were_spawned)
{
    AS_TASK(tasks_begin_in_the_order_in_which_they_were_spawned);
    for (const char *c = "abcdefgh"; *c; c++)
        CHECK_EQ(weir_task_spawn(say_it, (void *)c, NULL), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, "abcdefgh");
}

static struct weir_event gates[3];

static int wait_and_say(void *arg)
{
    const char *c = arg;

    CHECK_EQ(weir_event_wait(&gates[*c - 'x'], WEIR_FOREVER), 0);
    say(*c);
    return 0;
}

TEST(new_tasks_and_those_woken_run_in_one_order_of_arrival)
{
    AS_TASK(new_tasks_and_those_woken_run_in_one_order_of_arrival);
    for (const char *c = "xyz"; *c; c++)
        CHECK_EQ(weir_task_spawn(wait_and_say, (void *)c, NULL), 0);
    CHECK_EQ(weir_task_yield(), 0);

    CHECK_EQ(weir_task_spawn(say_it, "a", NULL), 0);
    weir_event_set(&gates[2]);
    CHECK_EQ(weir_task_spawn(say_it, "b", NULL), 0);
    weir_event_set(&gates[0]);
    weir_event_set(&gates[1]);
    CHECK_EQ(weir_task_spawn(say_it, "c", NULL), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, "azbxyc");
}

static int say_and_yield(void *arg)
{
    for (int i = 0; i < 3; i++) {
        say(*(const char *)arg);
        CHECK_EQ(weir_task_yield(), 0);
    }
    return 0;
}

TEST(yield_lets_every_other_task_run_first)
{
    AS_TASK(yield_lets_every_other_task_run_first);
    for (const char *c = "abc"; *c; c++)
        CHECK_EQ(weir_task_spawn(say_and_yield, (void *)c, NULL), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(weir_task_yield(), 0);
        say('.');
    }
    CHECK_STR(said, "abc.abc.abc..");
}

static int stop_yielding;

static int yield_for_ever(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&stop_yielding, __ATOMIC_ACQUIRE))
        CHECK_EQ(weir_task_yield(), 0);
    return 0;
}

static int stop_at_time(void *arg)
{
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_MS)), 0);
    CHECK_EQ(weir_event_wait(arg, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    __atomic_store_n(&stop_yielding, 1, __ATOMIC_RELEASE);
    return 0;
}

TEST(timers_come_although_others_yield_all_the_time)
{
    AS_TASK(timers_come_although_others_yield_all_the_time);
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task tasks[] = {start(yield_for_ever, NULL), start(yield_for_ever, NULL),
                                start(stop_at_time, &never)};

    for (int i = 0; i < 3; i++)
        finish(tasks[i]);
}

static void set_event(void *event)
{
    weir_event_set(event);
}

static int stop_when_told(void *event)
{
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), 0);
    __atomic_store_n(&stop_yielding, 1, __ATOMIC_RELEASE);
    return 0;
}

TEST(wake_ups_from_threads_come_although_others_yield_all_the_time)
{
    AS_TASK(wake_ups_from_threads_come_although_others_yield_all_the_time);
    struct weir_event told = WEIR_EVENT_INIT;
    struct weir_task tasks[] = {start(stop_when_told, &told), start(yield_for_ever, NULL)};

    YIELD_UNTIL(queued(&told) == 1);
    test_spawn(set_event, &told);
    for (int i = 0; i < 2; i++)
        finish(tasks[i]);
    test_join_all();
}

/* Each spawns two more, down to a depth, and joins them: what all returned. */
static int count_tree(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;

    if (depth == 0)
        return 1;
    struct weir_task left = start(count_tree, (void *)(depth - 1));
    struct weir_task right = start(count_tree, (void *)(depth - 1));
    return 1 + finish(left) + finish(right);
}

TEST(tasks_spawn_tasks_and_join_them)
{
    AS_TASK(tasks_spawn_tasks_and_join_them);
    CHECK_EQ(finish(start(count_tree, (void *)9)), 1023);
}

static int write_text(void *text)
{
    strcpy(text, "written by a task");
    return 0;
}

static void join_and_read(void *arg)
{
    char text[32];
    struct weir_runtime *runtime = arg;
    int result;

    CHECK_EQ(weir_task_join(start_in(runtime, write_text, text), WEIR_FOREVER, &result), 0);
    CHECK_STR(text, "written by a task");
}

TEST(threads_spawn_and_join_tasks_and_see_what_they_wrote)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (int i = 0; i < 8; i++)
        test_spawn(join_and_read, runtime);
    test_join_all();
    close_runtime(runtime);
}

/* ---- handles --------------------------------------------------------------------- */

static void never_called(struct weir_op *op, int result)
{
    (void)op;
    test_fail(__FILE__, __LINE__, "called with %d", result);
}

#define CHECK_STALE(task)                                                        \
    do {                                                                         \
        struct weir_op op_ = WEIR_OP_INIT;                                       \
        int result_ = NOT_YET;                                                   \
                                                                                 \
        CHECK_EQ(weir_task_join((task), WEIR_FOREVER, &result_), WEIR_EINVAL);   \
        CHECK_EQ(weir_task_join((task), WEIR_NO_WAIT, &result_), WEIR_EINVAL);   \
        CHECK_EQ(result_, NOT_YET);                                              \
        CHECK_EQ(weir_task_join_async((task), &op_, never_called), WEIR_EINVAL); \
        CHECK_EQ(weir_task_detach((task)), WEIR_EINVAL);                         \
        CHECK_EQ(weir_task_cancel((task)), WEIR_EINVAL);                         \
    } while (0)

static int yield_once(void *arg)
{
    (void)arg;
    return weir_task_yield();
}

static int wait_for(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

TEST(a_joined_handle_is_stale)
{
    AS_TASK(a_joined_handle_is_stale);
    struct weir_task task = start(yield_once, NULL);

    CHECK_EQ(finish(task), 0);
    CHECK_STALE(task);
}

TEST(a_handle_of_zeroes_is_stale)
{
    struct weir_task none = {0};

    CHECK_STALE(none);
}

TEST(a_stale_handle_stays_stale_when_another_task_has_taken_the_place)
{
    AS_TASK(a_stale_handle_stays_stale_when_another_task_has_taken_the_place);
    struct weir_task old = start(yield_once, NULL), new;

    CHECK_EQ(finish(old), 0);
    new = start(yield_once, NULL);
    CHECK(new.slot_ == old.slot_); /* else this test says nothing */
    CHECK_STALE(old);
    CHECK_EQ(finish(new), 0); /* it was neither joined nor cancelled */
}

TEST(a_detached_task_can_only_be_cancelled_and_only_until_it_ends)
{
    AS_TASK(a_detached_task_can_only_be_cancelled_and_only_until_it_ends);
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_op op = WEIR_OP_INIT;
    struct weir_task task = start(wait_for, &never);

    CHECK_EQ(weir_task_detach(task), 0);
    CHECK_EQ(weir_task_detach(task), WEIR_EINVAL);
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_task_join_async(task, &op, never_called), WEIR_EINVAL);
    YIELD_UNTIL(queued(&never) == 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&never), 0);
    CHECK_STALE(task);
}

TEST(a_task_that_has_ended_can_be_detached_and_is_gone)
{
    AS_TASK(a_task_that_has_ended_can_be_detached_and_is_gone);
    struct weir_task task = start(yield_once, NULL);

    let_others_run();
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(weir_task_detach(task), 0);
    CHECK_STALE(task);
}

static int join_itself(void *arg)
{
    int result = NOT_YET;

    (void)arg;
    CHECK_EQ(weir_task_join(weir_task_self(), WEIR_FOREVER, &result), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_join(weir_task_self(), WEIR_NO_WAIT, &result), WEIR_ECONTEXT);
    CHECK_EQ(result, NOT_YET);
    return 7;
}

TEST(nobody_joins_itself_and_others_still_can)
{
    AS_TASK(nobody_joins_itself_and_others_still_can);
    CHECK_EQ(finish(start(join_itself, NULL)), 7);
}

struct join {
    struct weir_task task;
    struct weir_deadline deadline;
    int joined, result;
};

static int do_join(void *arg)
{
    struct join *j = arg;

    j->joined = weir_task_join(j->task, j->deadline, &j->result);
    return j->joined;
}

TEST(while_somebody_joins_a_task_nobody_else_can)
{
    AS_TASK(while_somebody_joins_a_task_nobody_else_can);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_op op = WEIR_OP_INIT;
    struct join first = {.task = start(wait_for, &gate), .deadline = WEIR_FOREVER};
    struct weir_task joiner = start(do_join, &first);

    let_others_run();
    CHECK_EQ(weir_task_join(first.task, WEIR_FOREVER, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_task_join(first.task, WEIR_NO_WAIT, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_task_join_async(first.task, &op, never_called), WEIR_EINVAL);
    CHECK_EQ(weir_task_detach(first.task), WEIR_EINVAL);
    weir_event_set(&gate);
    CHECK_EQ(finish(joiner), 0);
    CHECK_EQ(first.result, 0);
    CHECK_STALE(first.task);
}

enum { RIVALS = 4 };

struct rivalry {
    struct weir_task task;
    int won, lost;
};

static void join_against_others(void *arg)
{
    struct rivalry *r = arg;
    int result = NOT_YET, joined = weir_task_join(r->task, WEIR_FOREVER, &result);

    CHECK(joined == WEIR_EINVAL || (joined == 0 && result == 0));
    __atomic_add_fetch(joined == 0 ? &r->won : &r->lost, 1, __ATOMIC_RELAXED);
}

TEST(of_many_threads_that_join_one_task_one_succeeds)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (int i = test_scaled(50); i > 0; i--) {
        struct rivalry rivalry = {.task = start_in(runtime, yield_once, NULL)};

        for (int k = 0; k < RIVALS; k++)
            test_spawn(join_against_others, &rivalry);
        test_join_all();
        CHECK_EQ(rivalry.won, 1);
        CHECK_EQ(rivalry.lost, RIVALS - 1);
    }
    close_runtime(runtime);
}

TEST(a_join_that_timed_out_leaves_the_handle_as_it_was)
{
    AS_TASK_IN_NO_TIME(a_join_that_timed_out_leaves_the_handle_as_it_was);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task task = start(wait_for, &gate);
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, &result), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_task_join(task, weir_within(3600 * WEIR_S), &result), WEIR_ETIMEDOUT);
    CHECK_EQ(result, NOT_YET);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
}

static void join_briefly(void *arg)
{
    struct join *j = arg;

    j->joined = weir_task_join(j->task, weir_within(WEIR_MS), &j->result);
}

TEST(a_thread_gives_up_joining_at_its_deadline)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct join join = {.task = start_in(runtime, wait_for, &gate), .result = NOT_YET};

    test_spawn(join_briefly, &join);
    test_join_all();
    CHECK_EQ(join.joined, WEIR_ETIMEDOUT);
    CHECK_EQ(join.result, NOT_YET);
    weir_event_set(&gate);
    CHECK_EQ(finish(join.task), 0);
    close_runtime(runtime);
}

TEST(a_joiner_that_is_cancelled_leaves_the_handle_as_it_was)
{
    AS_TASK(a_joiner_that_is_cancelled_leaves_the_handle_as_it_was);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct join join = {start(wait_for, &gate), WEIR_FOREVER, NOT_YET, NOT_YET};
    struct weir_task joiner = start(do_join, &join);

    let_others_run();
    CHECK_EQ(weir_task_cancel(joiner), 0);
    CHECK_EQ(finish(joiner), WEIR_ECANCELED);
    CHECK_EQ(join.result, NOT_YET);
    weir_event_set(&gate);
    CHECK_EQ(finish(join.task), 0);
}

TEST(a_task_that_has_ended_is_joined_without_waiting)
{
    AS_TASK(a_task_that_has_ended_is_joined_without_waiting);
    int value = 5, result = NOT_YET;
    struct weir_task task = start(give_back, &value);

    let_others_run();
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0); /* a wait would fail now */
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, &result), 0);
    CHECK_EQ(result, 5);
}

TEST(a_task_is_joined_after_its_runtime_was_closed)
{
    struct weir_runtime *runtime = open_runtime(1);
    int value = 9;
    struct weir_task task = start_in(runtime, give_back, &value);

    close_runtime(runtime);
    CHECK_EQ(finish(task), 9);
    CHECK_STALE(task);
}

TEST(a_task_is_cancelled_and_detached_after_its_runtime_was_closed)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_task task = start_in(runtime, yield_once, NULL);

    close_runtime(runtime);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(weir_task_detach(task), 0);
    CHECK_STALE(task);
}

/* ---- joining by callback ---------------------------------------------------------- */

TEST(join_async_is_had_at_once_when_the_task_has_ended)
{
    AS_TASK(join_async_is_had_at_once_when_the_task_has_ended);
    struct weir_op op = WEIR_OP_INIT;
    struct weir_task task = start(yield_once, NULL);

    let_others_run();
    CHECK_EQ(weir_task_join_async(task, &op, never_called), 1);
    CHECK_EQ(finish(task), 0);
}

TEST(join_async_calls_once_when_the_task_ends_and_leaves_the_result_to_be_joined)
{
    AS_TASK(join_async_calls_once_when_the_task_ends_and_leaves_the_result_to_be_joined);
    int value = 3, result;
    struct caller caller = {.op = WEIR_OP_INIT};
    struct weir_task task = start(yield_and_give_back, &value);

    CHECK_EQ(weir_task_join_async(task, &caller.op, note), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(caller.times, 0);
    let_others_run();
    CHECK_EQ(caller.times, 1);
    CHECK_EQ(caller.result, 0);
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, &result), 0);
    CHECK_EQ(result, 3);
}

TEST(join_async_taken_back_is_never_called_and_the_task_can_be_joined)
{
    AS_TASK(join_async_taken_back_is_never_called_and_the_task_can_be_joined);
    struct weir_op op = WEIR_OP_INIT;
    struct weir_task task = start(yield_once, NULL);

    CHECK_EQ(weir_task_join_async(task, &op, never_called), 0);
    CHECK_EQ(weir_op_cancel(&op), 1);
    CHECK_EQ(finish(task), 0);
}

TEST(threads_are_called_back_through_an_inbox_when_a_task_ends)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_inbox *inbox;
    struct caller caller = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_inbox_open(&inbox), 0);
    caller.op.inbox = inbox;
    struct weir_task task = start_in(runtime, wait_for, &gate);
    CHECK_EQ(weir_task_join_async(task, &caller.op, note), 0);
    weir_event_set(&gate);
    EVENTUALLY(weir_inbox_drain(inbox) == 1);
    CHECK_EQ(caller.times, 1);
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, NULL), 0);
    weir_inbox_close(inbox);
    close_runtime(runtime);
}

/* ---- inside callbacks -------------------------------------------------------------- */

static struct weir_task joined_in_callback;

static void join_here(struct weir_op *op, int result)
{
    CHECK_EQ(result, 0);
    CHECK_EQ(weir_task_join(joined_in_callback, WEIR_FOREVER, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_join(joined_in_callback, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_S)), WEIR_ECONTEXT);
    note(op, result);
}

TEST(in_a_callback_a_join_that_would_have_to_wait_is_refused)
{
    AS_TASK(in_a_callback_a_join_that_would_have_to_wait_is_refused);
    struct weir_event gate = WEIR_EVENT_INIT, event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};

    joined_in_callback = start(wait_for, &gate);
    CHECK_EQ(weir_event_wait_async(&event, &caller.op, join_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    weir_event_set(&gate);
    CHECK_EQ(finish(joined_in_callback), 0);
}

static void spawn_here(struct weir_op *op, int result)
{
    CHECK_EQ(weir_task_spawn(say_it, "x", NULL), 0);
    note(op, result);
}

TEST(a_callback_may_spawn)
{
    AS_TASK(a_callback_may_spawn);
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_event_wait_async(&event, &caller.op, spawn_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    let_others_run();
    CHECK_STR(said, "x");
}

/* ---- outside tasks ------------------------------------------------------------------ */

TEST(outside_a_runtime_there_is_nothing_to_spawn_into)
{
    struct weir_task task = {0};

    CHECK_EQ(weir_task_spawn(yield_once, NULL, &task), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_spawn(yield_once, NULL, NULL), WEIR_ECONTEXT);
    CHECK(task.slot_ == NULL);
    CHECK(weir_runtime_self() == NULL);
}

TEST(outside_tasks_self_is_stale)
{
    CHECK_STALE(weir_task_self());
}

TEST(a_thread_may_yield_and_sleep)
{
    int64_t before_ns = weir_now_ns();

    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(weir_task_sleep(WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_task_sleep((struct weir_deadline){before_ns + WEIR_MS}), 0);
    CHECK(weir_now_ns() >= before_ns + WEIR_MS);
}

/* ---- self and names ------------------------------------------------------------------ */

static int give_handle(void *arg)
{
    *(struct weir_task *)arg = weir_task_self();
    return 0;
}

TEST(self_is_the_handle_that_spawn_gave)
{
    AS_TASK(self_is_the_handle_that_spawn_gave);
    struct weir_task inside, outside = start(give_handle, &inside);

    CHECK_EQ(finish(outside), 0);
    CHECK(inside.slot_ == outside.slot_);
    CHECK_EQ(inside.generation_, outside.generation_);
}

static int take_name(void *arg)
{
    CHECK_STR(weir_task_name(), "");
    CHECK_EQ(weir_task_set_name(arg), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(weir_task_name(), arg);
    return 0;
}

TEST(a_task_has_no_name_until_it_takes_one_and_keeps_it)
{
    AS_TASK(a_task_has_no_name_until_it_takes_one_and_keeps_it);
    struct weir_task one, two;

    CHECK_EQ(weir_task_set_name("root"), 0);
    one = start(take_name, "one");
    two = start(take_name, "two");
    finish(one);
    finish(two);
    finish(start(take_name, "three")); /* on a stack that had a name on it */
    CHECK_STR(weir_task_name(), "root");
}

TEST(a_name_is_cut_after_31_bytes)
{
    AS_TASK(a_name_is_cut_after_31_bytes);
    CHECK_EQ(weir_task_set_name("0123456789012345678901234567890"), 0);
    CHECK_STR(weir_task_name(), "0123456789012345678901234567890");
    CHECK_EQ(weir_task_set_name("01234567890123456789012345678901 and more"), 0);
    CHECK_STR(weir_task_name(), "0123456789012345678901234567890");
    CHECK_EQ(weir_task_set_name("short"), 0);
    CHECK_STR(weir_task_name(), "short");
}

TEST(outside_tasks_there_is_no_name)
{
    CHECK_EQ(weir_task_set_name("thread"), WEIR_ECONTEXT);
    CHECK_STR(weir_task_name(), "");
}
