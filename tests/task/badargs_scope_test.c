/* SPDX-License-Identifier: MIT */
/* As badargs_test.c, for scope.h, map.h, loop.h and testing.h. */
#include <weir/weir.h>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/test.h"
#include "task/contexts.h"
#include "task/workers.h"

/* ---- scope.h ---------------------------------------------------------------- */

static struct weir_scope scope;

static int fail(void *arg)
{
    (void)arg;
    return WEIR_EBUSY;
}

static void spawn_into_what_is_closed(void)
{
    CHECK_EQ(weir_scope_spawn(&scope, must_not_run, NULL), WEIR_ECLOSED);
}

static void close_then_spawn(void)
{
    weir_scope_open(&scope, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&scope, fail, NULL), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(weir_scope_close(&scope), WEIR_EBUSY); /* it says so again */
        weir_scope_cancel(&scope);
        spawn_into_what_is_closed();
        in_a_callback(spawn_into_what_is_closed);
    }
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(a_closed_scope_takes_nobody_from_anywhere)
{
    run_as_task(close_then_spawn);
    outside_tasks(spawn_into_what_is_closed);
}

static void open_and_close(void)
{
    for (int i = 0; i < PASTS; i++) {
        weir_scope_open(&scope, past[i]);
        weir_scope_cancel(&scope);
        weir_scope_cancel(&scope);
        CHECK_EQ(weir_scope_close(&scope), 0);
        CHECK_EQ(weir_scope_close(&scope), 0);
    }
}

static void close_by_any_deadline(void)
{
    struct weir_event never = WEIR_EVENT_INIT;

    for (int i = 0; i < PASTS; i++) {
        weir_scope_open(&scope, past[i]);
        CHECK_EQ(weir_scope_spawn(&scope, wait_for, &never), 0);
        CHECK_EQ(weir_scope_close(&scope), WEIR_ETIMEDOUT);
        CHECK_EQ(queued(&never), 0);
        CHECK_EQ(live_tasks(weir_runtime_self()), 1);
    }
}

TEST(a_scope_takes_any_deadline_and_without_children_need_not_wait)
{
    everywhere(open_and_close);
    run_as_task(close_by_any_deadline);
}

static void close_where_one_may_not_wait(void)
{
    CHECK_EQ(weir_scope_close(&scope), WEIR_ECONTEXT);
}

static struct weir_event gate;

static void open_with_a_child(struct weir_deadline deadline)
{
    weir_event_init(&gate);
    weir_scope_open(&scope, deadline);
    CHECK_EQ(weir_scope_spawn(&scope, wait_for, &gate), 0);
}

/* Where there is a child, a scope can be closed only by who may wait for it. */
static void close_a_scope_with_a_child(void)
{
    for (int i = -1; i < PASTS; i++) {
        open_with_a_child(i < 0 ? WEIR_FOREVER : past[i]);
        in_a_callback(close_where_one_may_not_wait);
        let_others_run();
        CHECK_EQ(queued(&gate), 1); /* it was not cancelled */
        CHECK_EQ(weir_scope_spawn(&scope, wait_for, &gate), 0);
        weir_event_set(&gate);
        let_others_run();
        CHECK_EQ(weir_scope_close(&scope), 0);
    }
}

static int open_on_a_host(void *deadline)
{
    open_with_a_child(*(const struct weir_deadline *)deadline);
    return 0;
}

static void step(struct weir_loop *loop)
{
    CHECK_EQ(weir_loop_step(loop), 0);
}

static void close_on_a_host(struct weir_deadline deadline)
{
    struct weir_loop *host;

    CHECK_EQ(weir_loop_open(NULL, &host), 0);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(host), open_on_a_host, &deadline, NULL), 0);
    step(host);
    close_where_one_may_not_wait();
    step(host);
    CHECK_EQ(queued(&gate), 1);
    weir_event_set(&gate);
    step(host);
    CHECK_EQ(weir_scope_close(&scope), 0);
    CHECK_EQ(weir_loop_close(host), 0);
}

TEST(where_one_may_not_wait_a_scope_with_children_stays_open)
{
    run_as_task(close_a_scope_with_a_child);
    for (int i = -1; i < PASTS; i++)
        close_on_a_host(i < 0 ? WEIR_FOREVER : past[i]);
}

static int close_its_own_scope(void *closed)
{
    struct weir_scope inner;

    CHECK_EQ(weir_scope_close(&scope), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_yield(), 0); /* it was not cancelled */
    weir_scope_open(&inner, WEIR_FOREVER);
    CHECK_EQ(weir_scope_spawn(&inner, say_it, "a"), 0);
    CHECK_EQ(weir_scope_close(&inner), 0); /* whose child it is not */
    ++*(int *)closed;
    return 0;
}

static void let_children_close(void)
{
    int closed = 0;

    for (int i = -1; i < PASTS; i++) {
        weir_scope_open(&scope, i < 0 ? WEIR_FOREVER : past[i]);
        CHECK_EQ(weir_scope_spawn(&scope, close_its_own_scope, &closed), 0);
        let_others_run();
        CHECK_EQ(weir_scope_spawn(&scope, close_its_own_scope, &closed), 0); /* it is open */
        let_others_run();
        CHECK_EQ(weir_scope_close(&scope), 0);
    }
    CHECK_EQ(closed, 2 * (PASTS + 1));
}

TEST(a_child_cannot_close_the_scope_that_waits_for_it)
{
    run_as_task(let_children_close);
}

static int results[2];

static void gather_in_vain(void)
{
    void *args[2] = {0};

    CHECK_EQ(weir_gather(2, must_not_run, args, results, WEIR_FOREVER), WEIR_ECONTEXT);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_gather(1, must_not_run, NULL, results, past[i]), WEIR_ECONTEXT);
    CHECK_EQ(weir_gather(SIZE_MAX, must_not_run, NULL, results, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(results[0], NOT_YET);
    CHECK_EQ(results[1], NOT_YET);
}

static void gather_too_many(void)
{
    CHECK_EQ(weir_gather(SIZE_MAX, must_not_run, NULL, results, WEIR_FOREVER), WEIR_ENOMEM);
    CHECK_EQ(weir_gather(SIZE_MAX / 4, must_not_run, NULL, results, WEIR_FOREVER), WEIR_ENOMEM);
    CHECK_EQ(results[0], NOT_YET);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

static void gather_nothing(void)
{
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_gather(0, must_not_run, NULL, results, past[i]), 0);
    CHECK_EQ(results[0], NOT_YET);
}

TEST(gather_without_a_task_or_room_starts_nothing)
{
    results[0] = results[1] = NOT_YET;
    outside_tasks(gather_in_vain);
    run_as_task(gather_too_many);
    everywhere(gather_nothing);
}

static void gather_by_any_deadline(void)
{
    struct weir_event never = WEIR_EVENT_INIT;
    void *args[2] = {&never, &never};

    for (int i = 0; i < PASTS; i++) {
        results[0] = results[1] = NOT_YET;
        CHECK_EQ(weir_gather(2, wait_for, args, results, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(results[0], WEIR_ECANCELED);
        CHECK_EQ(results[1], WEIR_ECANCELED);
        CHECK_EQ(weir_gather(2, wait_for, args, NULL, past[i]), WEIR_ETIMEDOUT);
    }
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(gather_takes_any_deadline)
{
    run_as_task(gather_by_any_deadline);
}

/* ---- map.h ------------------------------------------------------------------ */

static int no_index(void *ctx, size_t index)
{
    (void)index;
    return must_not_run(ctx);
}

static int no_item(void *ctx, void *item)
{
    (void)item;
    return must_not_run(ctx);
}

static int not_next(void *ctx, void **ret_item)
{
    (void)ret_item;
    return must_not_run(ctx);
}

static void map_with_a_limit_of_zero(void)
{
    CHECK_EQ(weir_map_limit(3, 0, no_index, NULL, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_map_limit(0, 0, no_index, NULL, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_map_limit_next(not_next, 0, no_item, NULL, WEIR_FOREVER), WEIR_EINVAL);
    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_map_limit(3, 0, no_index, NULL, past[i]), WEIR_EINVAL);
        CHECK_EQ(weir_map_limit_next(not_next, 0, no_item, NULL, past[i]), WEIR_EINVAL);
    }
}

static void map_outside(void)
{
    CHECK_EQ(weir_map_limit(3, 1, no_index, NULL, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_map_limit(SIZE_MAX, SIZE_MAX, no_index, NULL, WEIR_NO_WAIT), WEIR_ECONTEXT);
    CHECK_EQ(weir_map_limit_next(not_next, 1, no_item, NULL, WEIR_FOREVER), WEIR_ECONTEXT);
}

static void map_nothing(void)
{
    CHECK_EQ(weir_map_limit(0, 1, no_index, NULL, WEIR_FOREVER), 0);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_map_limit(0, SIZE_MAX, no_index, NULL, past[i]), 0);
}

static void map_too_late(void)
{
    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_map_limit(3, 1, no_index, NULL, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_map_limit_next(not_next, 1, no_item, NULL, past[i]), WEIR_ETIMEDOUT);
    }
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(a_map_with_a_limit_of_zero_outside_a_task_or_too_late_begins_nothing)
{
    everywhere(map_with_a_limit_of_zero);
    outside_tasks(map_outside);
    everywhere(map_nothing);
    run_as_task(map_too_late);
}

static int fail_at_the_third(void *begun, size_t index)
{
    ++*(int *)begun;
    return index == 3 ? WEIR_EBUSY : 0;
}

static int always_one_more(void *ctx, void **ret_item)
{
    *ret_item = ctx;
    return 1;
}

static int fail_at_the_third_item(void *begun, void *item)
{
    CHECK(item == begun);
    return ++*(int *)begun == 3 ? WEIR_EBUSY : 0;
}

static void map_almost_without_limit(void)
{
    int begun = 0;

    CHECK_EQ(weir_map_limit(SIZE_MAX, SIZE_MAX, fail_at_the_third, &begun, WEIR_FOREVER),
             WEIR_EBUSY);
    CHECK_EQ(begun, 4);
    begun = 0;
    CHECK_EQ(weir_map_limit_next(always_one_more, SIZE_MAX, fail_at_the_third_item, &begun,
                                 WEIR_FOREVER),
             WEIR_EBUSY);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(a_map_takes_any_number_of_items_and_any_other_limit)
{
    run_as_task(map_almost_without_limit);
}

/* ---- loop.h ----------------------------------------------------------------- */

static struct weir_loop *loop;

static void step_in_vain(void)
{
    CHECK_EQ(weir_loop_step(loop), WEIR_ECONTEXT);
}

TEST(a_step_that_is_refused_runs_nothing_and_makes_no_host)
{
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    struct weir_task task = start_in(weir_loop_runtime(loop), say_it, "a");
    run_as_task(step_in_vain);
    in_a_callback(step_in_vain);
    CHECK_STR(said, "");
    CHECK_EQ(weir_event_wait(&never, weir_within(WEIR_MS)), WEIR_ETIMEDOUT); /* one may wait */
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_STR(said, "a");
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, NULL), 0);
    weir_loop_close(loop);
}

static void close_in_vain(void)
{
    CHECK_EQ(weir_loop_close(loop), WEIR_ECONTEXT);
}

static int close_its_own_loop(void *arg)
{
    close_in_vain();
    in_a_callback(close_in_vain);
    return wait_for(arg);
}

TEST(a_loop_that_is_closed_inside_a_task_or_callback_stays_open)
{
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    run_as_task(close_in_vain);
    struct weir_task task = start_in(weir_loop_runtime(loop), close_its_own_loop, &gate);
    CHECK_EQ(weir_loop_step(loop), 0);
    in_a_callback(close_in_vain); /* of the host's */
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(queued(&gate), 1); /* it was not cancelled */
    weir_event_set(&gate);
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(weir_task_join(task, WEIR_NO_WAIT, NULL), 0);
    CHECK_EQ(weir_loop_close(loop), 0);
    CHECK_EQ(weir_event_wait(&never, weir_within(WEIR_MS)), WEIR_ETIMEDOUT); /* no host now */
}

static void close_no_loop(void)
{
    CHECK_EQ(weir_loop_close(NULL), 0);
}

TEST(closing_no_loop_does_nothing)
{
    everywhere(close_no_loop);
}

/* ---- testing.h -------------------------------------------------------------- */

TEST(the_clock_may_be_started_and_stopped_as_often_as_one_likes)
{
    weir_testing_clock_stop(); /* it was not started */
    CHECK(weir_now_ns() > 0);
    weir_testing_clock_start();
    int64_t now_ns = weir_now_ns();
    weir_testing_clock_start();
    CHECK_EQ(weir_now_ns(), now_ns); /* it stands still */
    weir_testing_clock_stop();
    weir_testing_clock_stop();
    EVENTUALLY(weir_now_ns() > now_ns);
}

static void must_not_be_visited(const struct weir_task_info *info, void *arg)
{
    CHECK(info == arg); /* which it never is */
}

static struct weir_runtime *runtime;

static void dump_to_no_descriptor(void)
{
    int closed = dup(STDERR_FILENO);

    close(closed);
    weir_dump_tasks(runtime, closed);
    weir_dump_tasks(runtime, -1);
    weir_dump_tasks(runtime, INT32_MIN);
    weir_dump_tasks(runtime, INT32_MAX);
}

TEST(a_dump_to_no_descriptor_is_none_and_without_tasks_nobody_is_visited)
{
    runtime = open_runtime(1);
    weir_visit_tasks(runtime, must_not_be_visited, NULL);
    struct weir_task task = start_in(runtime, wait_for, &gate);
    EVENTUALLY(queued(&gate) == 1);
    everywhere(dump_to_no_descriptor);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
    close_runtime(runtime);
}

static int unread; /* whose reader is gone */

static void dump_to_nobody(void)
{
    sigset_t pending;

    weir_dump_tasks(runtime, unread);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(a_dump_that_nobody_reads_raises_no_signal)
{
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    runtime = open_runtime(1);
    struct weir_task task = start_in(runtime, wait_for, &gate);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(i ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        close(ends[0]);
        unread = ends[1];
        everywhere(dump_to_nobody);
        close(unread);
    }
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
    close_runtime(runtime);
}
