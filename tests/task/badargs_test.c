/* SPDX-License-Identifier: MIT */
/* Every public function of tasks with every kind of argument that it cannot work with, and
 * in every place where it cannot, header by header: the answer is the documented code, and
 * nothing has changed.  Here task.h; badargs_scope_test.c has scope, map, loop and testing,
 * badargs_io_test.c and badargs_process_test.c what they say.  (NULL where an object is
 * required is a programming error, as in libc.) */
#include <weir/weir.h>

#include <limits.h>
#include <unistd.h>

#include "harness/test.h"
#include "task/contexts.h"
#include "task/workers.h"

/* ---- helpers ---------------------------------------------------------------- */

static struct weir_runtime *runtime;

static int return_seven(void *arg)
{
    (void)arg;
    return 7;
}

/* It runs tasks as ever. */
static void check_is_open(struct weir_runtime *rt)
{
    CHECK_EQ(finish(start_in(rt, return_seven, NULL)), 7);
}

/* ---- task.h: runtimes ------------------------------------------------------- */

static const struct weir_run_options impossible[] = {
    {.workers = 1025},
    {.workers = UINT32_MAX},
    {.flags = 2},
    {.flags = WEIR_RUN_CATCH_OVERFLOW | 4},
    {.flags = UINT32_MAX},
    {.stack_bytes = 1},
    {.stack_bytes = 16 * 1024 - 1},
    {.stack_bytes = ((size_t)1 << 30) + 1},
    {.stack_bytes = SIZE_MAX},
};
enum { IMPOSSIBLE = sizeof impossible / sizeof *impossible };

TEST(options_that_cannot_be_start_nothing)
{
    struct weir_runtime *rt, *no_runtime = (void *)&rt;
    struct weir_loop *loop, *no_loop = (void *)&loop;
    int before = open_descriptors();

    rt = no_runtime;
    loop = no_loop;
    for (int i = 0; i < IMPOSSIBLE; i++) {
        CHECK_EQ(weir_run(&impossible[i], must_not_run, NULL), WEIR_EINVAL);
        CHECK_EQ(weir_runtime_open(&impossible[i], &rt), WEIR_EINVAL);
        CHECK_EQ(weir_loop_open(&impossible[i], &loop), WEIR_EINVAL);
    }
    CHECK_EQ(weir_loop_open(&(struct weir_run_options){.workers = 2}, &loop), WEIR_EINVAL);
    CHECK(rt == no_runtime && loop == no_loop);
    CHECK_EQ(open_descriptors(), before);
}

static int offload_seven(void *arg)
{
    return weir_offload(return_seven, arg, WEIR_FOREVER);
}

TEST(a_limit_may_be_as_large_as_it_can_be_told)
{
    struct weir_run_options options = {.max_tasks = UINT64_MAX, .max_offload = UINT32_MAX};

    CHECK_EQ(weir_run(&options, offload_seven, NULL), 7);
}

static void neither_run_nor_close(void)
{
    CHECK_EQ(weir_run(NULL, must_not_run, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_run(&impossible[0], must_not_run, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), WEIR_ECONTEXT);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_runtime_close(runtime, past[i]), WEIR_ECONTEXT);
}

TEST(where_one_may_not_wait_nothing_is_run_or_closed)
{
    struct weir_event gate = WEIR_EVENT_INIT;

    runtime = open_runtime(1);
    struct weir_task task = start_in(runtime, wait_for, &gate);
    run_as_task(neither_run_nor_close);
    where_one_may_not_wait(neither_run_nor_close);
    check_is_open(runtime);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0); /* it was not cancelled */
    close_runtime(runtime);
}

static int close_runtime_at_once(void *rt)
{
    return weir_runtime_close(rt, WEIR_NO_WAIT);
}

static int offload_a_close(void *rt)
{
    return weir_offload(close_runtime_at_once, rt, WEIR_FOREVER);
}

TEST(a_call_that_is_off_loaded_closes_other_runtimes_but_not_that_of_its_task)
{
    runtime = open_runtime(1);
    CHECK_EQ(finish(start_in(runtime, offload_a_close, runtime)), WEIR_ECONTEXT);
    CHECK_EQ(finish(start_in(runtime, offload_a_close, open_runtime(1))), 0);
    check_is_open(runtime);
    close_runtime(runtime);
}

TEST(a_runtime_is_closed_by_any_deadline)
{
    for (int i = 0; i < PASTS; i++) {
        struct weir_event never = WEIR_EVENT_INIT;
        struct weir_runtime *rt = open_runtime(1);
        struct weir_task task = start_in(rt, wait_for, &never);

        CHECK_EQ(weir_runtime_close(rt, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(finish(task), WEIR_ECANCELED);
    }
}

TEST(where_no_task_is_left_no_deadline_is_too_early_to_close)
{
    for (int i = 0; i < test_scaled(100); i++) {
        struct weir_runtime *rt = open_runtime(i % 2 ? 1 : 2);

        CHECK_EQ(weir_runtime_close(rt, past[i % PASTS]), 0);
        rt = open_runtime(i % 2 ? 1 : 2);
        CHECK_EQ(finish(start_in(rt, return_seven, NULL)), 7);
        CHECK_EQ(weir_runtime_close(rt, past[i % PASTS]), 0);
    }
}

/* The end of a worker's thread is when its last task has ended, and the runtime still
 * there: close is about to join it. */
static void spawn_too_late(void *count)
{
    struct weir_task task = {0};

    CHECK_EQ(weir_runtime_spawn(runtime, must_not_run, NULL, &task), WEIR_ECLOSED);
    CHECK_EQ(weir_runtime_spawn(runtime, must_not_run, NULL, NULL), WEIR_ECLOSED);
    CHECK_EQ(weir_task_spawn(must_not_run, NULL, &task), WEIR_ECONTEXT);
    CHECK(task.slot_ == NULL);
    CHECK_EQ(live_tasks(runtime), 0);
    ++*(int *)count;
}

static struct weir_key at_the_end;
static int too_late;

static void wait_for_the_end_of_the_thread(void)
{
    CHECK_EQ(weir_key_set(at_the_end, &too_late), 0); /* in a callback it is the thread's */
}

static int call_back_once(void *arg)
{
    in_a_callback(wait_for_the_end_of_the_thread);
    (void)arg;
    return 0;
}

TEST(a_runtime_whose_last_task_has_ended_takes_no_more)
{
    CHECK_EQ(weir_key_create(&at_the_end, spawn_too_late), 0);
    runtime = open_runtime(1);
    CHECK_EQ(finish(start_in(runtime, call_back_once, NULL)), 0);
    close_runtime(runtime);
    CHECK_EQ(too_late, 1);
}

/* ---- task.h: handles -------------------------------------------------------- */

static void spawn_nowhere(void)
{
    struct weir_task task = {0};
    struct weir_scope scope;

    CHECK_EQ(weir_task_spawn(must_not_run, NULL, &task), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_spawn(must_not_run, NULL, NULL), WEIR_ECONTEXT);
    CHECK(task.slot_ == NULL);
    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, must_not_run, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_scope_close(&scope), 0); /* nobody was counted */
    CHECK(weir_runtime_self() == NULL);
}

TEST(outside_a_runtime_nothing_is_spawned)
{
    outside_tasks(spawn_nowhere);
}

static void check_stale(struct weir_task task)
{
    struct weir_op op = WEIR_OP_INIT;
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), WEIR_EINVAL);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_task_join(task, past[i], &result), WEIR_EINVAL);
    CHECK_EQ(result, NOT_YET);
    CHECK_EQ(weir_task_join_async(task, &op, must_not_be_called), WEIR_EINVAL);
    CHECK_EQ(weir_op_cancel(&op), 0);
    CHECK_EQ(weir_task_detach(task), WEIR_EINVAL);
    CHECK_EQ(weir_task_cancel(task), WEIR_EINVAL);
}

static struct weir_task stale;

static void use_stale_handle(void)
{
    check_stale(stale);
}

TEST(a_handle_that_names_no_task_is_refused_everywhere)
{
    everywhere(use_stale_handle); /* of zeroes */
    stale = weir_task_self();
    everywhere(use_stale_handle);
    runtime = open_runtime(1);
    stale = start_in(runtime, return_seven, NULL);
    CHECK_EQ(finish(stale), 7);
    everywhere(use_stale_handle); /* joined */
    close_runtime(runtime);
    everywhere(use_stale_handle);
}

TEST(a_handle_of_an_earlier_or_later_life_does_not_disturb_who_lives_now)
{
    AS_TASK(a_handle_of_an_earlier_or_later_life_does_not_disturb_who_lives_now);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task task = start(wait_for, &gate), other = task;

    YIELD_UNTIL(queued(&gate) == 1);
    for (uint32_t apart = 1; apart != 0; apart *= 2) {
        other.generation_ = task.generation_ + apart;
        check_stale(other);
        other.generation_ = task.generation_ - apart;
        check_stale(other);
    }
    let_others_run();
    CHECK_EQ(queued(&gate), 1);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
    check_stale(task);
}

/* A task that lives on, and is nobody's to join. */
static void check_not_to_be_joined(struct weir_task task)
{
    struct weir_op op = WEIR_OP_INIT;
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), WEIR_EINVAL);
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, &result), WEIR_EINVAL);
    CHECK_EQ(result, NOT_YET);
    CHECK_EQ(weir_task_join_async(task, &op, must_not_be_called), WEIR_EINVAL);
    CHECK_EQ(weir_task_detach(task), WEIR_EINVAL);
}

static int join_task(void *task)
{
    return finish(*(struct weir_task *)task);
}

static int look_at_the_first_task(void *task)
{
    check_not_to_be_joined(*(struct weir_task *)task);
    return 0;
}

TEST(what_is_detached_or_being_joined_is_nobody_elses)
{
    AS_TASK(what_is_detached_or_being_joined_is_nobody_elses);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task self = weir_task_self(), task = start(wait_for, &gate);
    struct weir_task joiner = start(join_task, &task), loner = start(wait_for, &gate);

    CHECK_EQ(weir_task_detach(loner), 0);
    let_others_run();
    check_not_to_be_joined(task);
    check_not_to_be_joined(loner);
    CHECK_EQ(weir_task_detach(self), WEIR_EINVAL); /* the first task is detached */
    CHECK_EQ(finish(start(look_at_the_first_task, &self)), 0);
    CHECK_EQ(queued(&gate), 2);
    weir_event_set(&gate);
    CHECK_EQ(finish(joiner), 0);
    check_stale(task);
}

static int join_itself(void *arg)
{
    struct weir_task self = weir_task_self();
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(self, WEIR_FOREVER, &result), WEIR_ECONTEXT);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_task_join(self, past[i], &result), WEIR_ECONTEXT);
    CHECK_EQ(result, NOT_YET);
    (void)arg;
    return 7;
}

TEST(who_joins_itself_can_still_be_joined)
{
    AS_TASK(who_joins_itself_can_still_be_joined);
    join_itself(NULL);
    CHECK_EQ(finish(start(join_itself, NULL)), 7);
}

static struct weir_task running, ended;

static void join_without_waiting(void)
{
    int result = NOT_YET;

    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_task_join(running, past[i], &result), WEIR_ETIMEDOUT);
    CHECK_EQ(result, NOT_YET);
}

static void join_where_one_may_not_wait(void)
{
    int result = NOT_YET;

    join_without_waiting();
    CHECK_EQ(weir_task_join(running, WEIR_FOREVER, &result), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_join(running, weir_within(WEIR_S), &result), WEIR_ECONTEXT);
    CHECK_EQ(result, NOT_YET);
    ended = start_in(runtime, return_seven, NULL);
    EVENTUALLY(weir_task_join(ended, WEIR_NO_WAIT, &result) == 0);
    CHECK_EQ(result, 7); /* need not wait */
}

TEST(a_join_takes_any_deadline)
{
    struct weir_event gate = WEIR_EVENT_INIT;

    runtime = open_runtime(1);
    running = start_in(runtime, wait_for, &gate);
    everywhere(join_without_waiting);
    where_one_may_not_wait(join_where_one_may_not_wait);
    weir_event_set(&gate);
    CHECK_EQ(finish(running), 0);
    close_runtime(runtime);
}

/* ---- task.h: the running task ----------------------------------------------- */

static void pass_no_time(void)
{
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_task_sleep(past[i]), 0);
    CHECK_EQ(weir_task_yield(), 0);
}

static void sleep_where_one_may_not(void)
{
    CHECK_EQ(weir_task_sleep(WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_sleep((struct weir_deadline){INT64_MAX - 1}), WEIR_ECONTEXT);
}

TEST(a_sleep_takes_any_time_that_has_passed_and_where_none_is_allowed_no_other)
{
    everywhere(pass_no_time);
    where_one_may_not_wait(sleep_where_one_may_not);
}

static void take_a_name_outside(void)
{
    CHECK_EQ(weir_task_set_name("outside"), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_set_name(""), WEIR_ECONTEXT);
    CHECK_STR(weir_task_name(), "");
}

static void take_any_name(void)
{
    static const char bytes[] = "\x01\xff%s\n\t";

    CHECK_EQ(weir_task_set_name(bytes), 0);
    in_a_callback(take_a_name_outside);
    CHECK_STR(weir_task_name(), bytes);
    CHECK_EQ(weir_task_set_name("a name that is longer than 31 bytes is cut there"), 0);
    CHECK_STR(weir_task_name(), "a name that is longer than 31 b");
    CHECK_EQ(weir_task_set_name(""), 0);
    CHECK_STR(weir_task_name(), "");
}

static void take_a_part_of_the_old_name(void)
{
    CHECK_EQ(weir_task_set_name("worker-7"), 0);
    CHECK_EQ(weir_task_set_name(weir_task_name()), 0);
    CHECK_STR(weir_task_name(), "worker-7");
    CHECK_EQ(weir_task_set_name(weir_task_name() + 3), 0);
    CHECK_STR(weir_task_name(), "ker-7");
    CHECK_EQ(weir_task_set_name(weir_task_name() + 5), 0);
    CHECK_STR(weir_task_name(), "");
}

TEST(a_name_is_any_string_and_a_tasks_alone)
{
    outside_tasks(take_a_name_outside);
    run_as_task(take_any_name);
    run_as_task(take_a_part_of_the_old_name);
}

static void shield_what_is_no_task(void)
{
    struct weir_shield outer, inner;

    for (int i = 0; i < PASTS; i++) {
        weir_shield_begin(&outer, past[i]);
        weir_shield_begin(&inner, WEIR_FOREVER);
        CHECK_EQ(weir_task_yield(), 0);
        weir_shield_end(&inner);
        weir_shield_end(&outer);
    }
}

static void begin_shields_in_vain(void)
{
    struct weir_shield shield;

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    for (int i = 0; i < PASTS; i++) {
        weir_shield_begin(&shield, past[i]);
        CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
        weir_shield_end(&shield);
    }
    in_a_callback(shield_what_is_no_task); /* not the task's, which stays struck */
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
}

TEST(a_shield_takes_any_grace_and_does_nothing_outside_tasks)
{
    outside_tasks(shield_what_is_no_task);
    run_as_task(begin_shields_in_vain);
}

static struct weir_key keys[WEIR_KEYS_MAX];

static void use_keys_that_do_not_exist(void)
{
    static const uint32_t none[] = {0, WEIR_KEYS_MAX + 1, UINT32_MAX};
    struct weir_key key;

    for (int i = 0; i < 3; i++) {
        key.index_ = none[i];
        CHECK_EQ(weir_key_set(key, &key), WEIR_EINVAL);
        CHECK_EQ(weir_key_set(key, NULL), WEIR_EINVAL);
        CHECK(weir_key_get(key) == NULL);
    }
    CHECK(weir_key_get(keys[0]) == NULL); /* one that does, and has no value here */
}

TEST(a_key_that_does_not_exist_has_no_value_and_gets_none)
{
    struct weir_key first = {1}, one_more = {99};

    CHECK_EQ(weir_key_set(first, &first), WEIR_EINVAL); /* not created yet */
    CHECK(weir_key_get(first) == NULL);
    for (int i = 0; i < WEIR_KEYS_MAX; i++)
        CHECK_EQ(weir_key_create(&keys[i], NULL), 0);
    CHECK_EQ(weir_key_create(&one_more, NULL), WEIR_ENOSPC);
    CHECK_EQ(one_more.index_, 99);
    everywhere(use_keys_that_do_not_exist);
}

static void offload_where_one_may_not_wait(void)
{
    CHECK_EQ(weir_offload(must_not_run, NULL, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_offload(must_not_run, NULL, WEIR_NO_WAIT), WEIR_ECONTEXT);
}

static void offload_without_waiting(void)
{
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_offload(return_seven, NULL, past[i]), 7);
}

TEST(a_call_is_offloaded_by_any_deadline_and_not_where_one_may_not_wait)
{
    where_one_may_not_wait(offload_where_one_may_not_wait);
    offload_without_waiting();
    run_as_task(offload_without_waiting);
}
