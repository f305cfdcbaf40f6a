/* SPDX-License-Identifier: MIT */
/* Tasks inside an event loop that is not weir's; here, plain epoll and poll. */
#include <weir/loop.h>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/container.h"
#include "task/tasks.h"

static struct weir_loop *open_loop(void)
{
    struct weir_loop *loop;

    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    return loop;
}

static bool is_readable(const struct weir_loop *loop)
{
    struct pollfd fd = {.fd = weir_loop_fd(loop), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

/* Wait until the descriptor says that there is something to do. */
static void await_readable(const struct weir_loop *loop)
{
    struct pollfd fd = {.fd = weir_loop_fd(loop), .events = POLLIN};

    CHECK_EQ(poll(&fd, 1, 9000), 1);
}

static struct weir_task spawn_into(struct weir_loop *loop, weir_fn *fn, void *arg)
{
    return start_in(weir_loop_runtime(loop), fn, arg);
}

static int wait_for(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

static int joined(struct weir_task task)
{
    int result = NOT_YET, r = weir_task_join(task, WEIR_NO_WAIT, &result);

    return r < 0 ? NOT_YET : result;
}

/* ---- the descriptor ---------------------------------------------------------------------- */

TEST(a_loop_with_nothing_to_do_is_not_readable)
{
    struct weir_loop *loop = open_loop();

    CHECK(!is_readable(loop));
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK(!is_readable(loop));
    weir_loop_close(loop);
}

TEST(a_spawned_task_makes_it_readable_and_a_step_runs_it)
{
    struct weir_loop *loop = open_loop();
    struct weir_task task = spawn_into(loop, say_it, "a");

    CHECK(is_readable(loop));
    CHECK_STR(said, "");
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_STR(said, "a");
    CHECK(!is_readable(loop));
    CHECK_EQ(joined(task), 0);
    weir_loop_close(loop);
}

static void spawn_from_thread(void *loop)
{
    for (int i = 0; i < 10; i++)
        CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), say_it, "x", NULL), 0);
}

TEST(tasks_spawned_by_other_threads_make_it_readable)
{
    struct weir_loop *loop = open_loop();

    for (int i = 0; i < 4; i++)
        test_spawn(spawn_from_thread, loop);
    while (how_much_was_said() < 40) {
        await_readable(loop);
        CHECK(weir_loop_step(loop) >= 0);
    }
    test_join_all();
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK(!is_readable(loop));
    weir_loop_close(loop);
}

static void set_event(void *event)
{
    weir_event_set(event);
}

TEST(a_wake_up_from_another_thread_makes_it_readable)
{
    struct weir_loop *loop = open_loop();
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, wait_for, &event);

    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK(!is_readable(loop));
    test_spawn(set_event, &event);
    await_readable(loop);
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(joined(task), 0);
    weir_loop_close(loop);
}

TEST(a_wake_up_by_the_host_itself_makes_it_readable)
{
    struct weir_loop *loop = open_loop();
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, wait_for, &event);

    CHECK_EQ(weir_loop_step(loop), 0);
    weir_event_set(&event);
    CHECK(is_readable(loop));
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(joined(task), 0);
    weir_loop_close(loop);
}

TEST(a_cancel_makes_it_readable)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, wait_for, &never);

    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK(is_readable(loop));
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(joined(task), WEIR_ECANCELED);
    weir_loop_close(loop);
}

static int sleep_twice(void *arg)
{
    CHECK_EQ(weir_task_sleep(weir_within(2 * WEIR_MS)), 0);
    say('1');
    CHECK_EQ(weir_task_sleep(weir_within(2 * WEIR_MS)), 0);
    say('2');
    CHECK_EQ(weir_event_wait(arg, weir_within(2 * WEIR_MS)), WEIR_ETIMEDOUT);
    say('3');
    return 0;
}

TEST(timers_make_it_readable)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, sleep_twice, &never);
    int steps = 0;

    CHECK(weir_loop_step(loop) >= 0); /* 1 where it was so slow that a timer ran out */
    while (how_much_was_said() < 3) {
        await_readable(loop);
        CHECK(weir_loop_step(loop) >= 0);
        CHECK(++steps < 20); /* readable when there is something to do, not all the time */
    }
    CHECK_EQ(joined(task), 0);
    CHECK(!is_readable(loop));
    weir_loop_close(loop);
}

static int sleep_long_then_less(void *arg)
{
    int64_t ms = *(int *)arg;

    int r = weir_task_sleep(weir_within(ms * WEIR_MS));

    if (r == 0)
        say(ms > 100 ? 'l' : 's');
    return r;
}

TEST(a_timer_that_comes_before_the_one_that_is_set_is_noticed)
{
    struct weir_loop *loop = open_loop();
    int hour = 3600 * 1000, moment = 2;
    struct weir_task late = spawn_into(loop, sleep_long_then_less, &hour);

    CHECK_EQ(weir_loop_step(loop), 0);
    struct weir_task early = spawn_into(loop, sleep_long_then_less, &moment);
    while (how_much_was_said() == 0) {
        await_readable(loop);
        CHECK(weir_loop_step(loop) >= 0); /* 1: as above */
    }
    CHECK_STR(said, "s");
    CHECK_EQ(joined(early), 0);
    CHECK(!is_readable(loop)); /* nothing to do for an hour */
    weir_loop_close(loop);
    CHECK_EQ(joined(late), WEIR_ECANCELED);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int stop;

static int yield_until_stopped(void *arg)
{
    (void)arg;
    while (!stop)
        CHECK_EQ(weir_task_yield(), 0);
    return 0;
}

TEST(a_step_returns_to_the_host_although_there_is_always_something_to_do)
{
    struct weir_loop *loop = open_loop();
    struct weir_task a = spawn_into(loop, yield_until_stopped, NULL);
    struct weir_task b = spawn_into(loop, yield_until_stopped, NULL);

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_loop_step(loop), 1);
        CHECK(is_readable(loop));
    }
    stop = 1;
    while (weir_loop_step(loop) > 0)
        ;
    CHECK_EQ(joined(a), 0);
    CHECK_EQ(joined(b), 0);
    CHECK(!is_readable(loop));
    weir_loop_close(loop);
}

static int spawn_many(void *arg)
{
    for (int i = 0; i < 3000; i++)
        CHECK_EQ(weir_task_spawn(arg ? yield_until_stopped : say_it, "x", NULL), 0);
    return 0;
}

TEST(more_tasks_than_fit_a_step_are_run_by_the_next_steps)
{
    struct weir_loop *loop = open_loop();
    int steps = 1;

    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), spawn_many, NULL, NULL), 0);
    while (weir_loop_step(loop) == 1) {
        CHECK(is_readable(loop));
        steps++;
    }
    CHECK(steps > 1);
    CHECK_EQ(how_much_was_said(), 3000);
    CHECK(!is_readable(loop));
    weir_loop_close(loop);
}

static int step_inside(void *loop)
{
    CHECK_EQ(weir_loop_step(loop), WEIR_ECONTEXT);
    return 0;
}

static struct weir_loop *stepped_in_callback;

static void step_here(struct weir_op *op, int result)
{
    CHECK_EQ(weir_loop_step(stepped_in_callback), WEIR_ECONTEXT);
    note(op, result);
}

TEST(a_loop_cannot_be_stepped_inside_a_task_or_callback)
{
    struct weir_loop *loop = open_loop();
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};
    struct weir_task task = spawn_into(loop, step_inside, loop);

    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(joined(task), 0);
    stepped_in_callback = loop;
    CHECK_EQ(weir_event_wait_async(&event, &caller.op, step_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    weir_loop_close(loop);
}

/* ---- the host must not block ----------------------------------------------------------------- */

static void check_host_may_not_wait(void)
{
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;

        things_init(&things);
        CHECK_WAY(way, way->wait(&things, WEIR_FOREVER), WEIR_ECONTEXT);
        CHECK_WAY(way, way->wait(&things, weir_within(WEIR_S)), WEIR_ECONTEXT);
        CHECK_WAY(way, queued(thing_of(way, &things)), 0);
        CHECK_WAY(way, weir_latch_is_broken(&things.latch), false);
        CHECK_WAY(way, weir_barrier_is_broken(&things.barrier), false);
    }
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_S)), WEIR_ECONTEXT);
}

TEST(on_a_thread_that_stepped_a_loop_a_wait_is_refused_and_changes_nothing)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, wait_for, &never);

    CHECK_EQ(weir_loop_step(loop), 0);
    check_host_may_not_wait();
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(joined(task), WEIR_ECANCELED);
    weir_loop_close(loop);
}

TEST(the_host_takes_what_is_free_without_waiting)
{
    struct weir_loop *loop = open_loop();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_event event = WEIR_EVENT_INIT;

    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_FOREVER), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    weir_event_set(&event);
    CHECK_EQ(weir_event_wait(&event, WEIR_FOREVER), 0);
    weir_loop_close(loop);
}

TEST(after_the_loop_was_closed_its_thread_may_wait_again)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_loop_step(loop), 0);
    weir_loop_close(loop);
    CHECK_EQ(weir_event_wait(&never, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_US)), 0);
}

TEST(while_another_loop_is_open_its_thread_may_still_not_wait)
{
    struct weir_loop *one = open_loop(), *two = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_loop_step(one), 0);
    CHECK_EQ(weir_loop_step(two), 0);
    weir_loop_close(one);
    CHECK_EQ(weir_event_wait(&never, WEIR_FOREVER), WEIR_ECONTEXT);
    weir_loop_close(two);
    CHECK_EQ(weir_event_wait(&never, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
}

/* Threads that did not step it are as free as ever. */
static void join_as_thread(void *arg)
{
    struct weir_task *task = arg;

    CHECK_EQ(finish(*task), 0);
    say('j');
}

TEST(other_threads_may_wait_for_tasks_of_a_loop)
{
    struct weir_loop *loop = open_loop();
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task task = spawn_into(loop, wait_for, &event);

    CHECK_EQ(weir_loop_step(loop), 0);
    test_spawn(join_as_thread, &task);
    weir_event_set(&event);
    CHECK_EQ(weir_loop_step(loop), 0);
    test_join_all();
    CHECK_STR(said, "j");
    weir_loop_close(loop);
}

/* ---- closing ------------------------------------------------------------------------------------ */

static int tidy_up(void *arg)
{
    struct weir_shield shield;

    CHECK_EQ(weir_event_wait(arg, WEIR_FOREVER), WEIR_ECANCELED);
    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_task_sleep(weir_within(2 * WEIR_MS)), 0);
    weir_shield_end(&shield);
    say('t');
    return 0;
}

TEST(close_cancels_all_tasks_and_runs_them_to_their_end)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), tidy_up, &never, NULL), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), tidy_up, &never, NULL), 0);
    weir_loop_close(loop); /* the last has not even started */
    CHECK_STR(said, "tttt");
    CHECK_EQ(queued(&never), 0);
}

static int spawn_when_cancelled(void *event)
{
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_task_spawn(wait_for, event, NULL), 0);
    return 0;
}

TEST(close_cancels_those_too_that_are_spawned_meanwhile)
{
    struct weir_loop *loop = open_loop();
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), spawn_when_cancelled, &never, NULL), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    weir_loop_close(loop);
    CHECK_EQ(queued(&never), 0);
}

TEST(a_loop_that_was_never_stepped_can_be_closed_and_so_can_none)
{
    struct weir_loop *loop = open_loop();

    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), say_it, "a", NULL), 0);
    weir_loop_close(loop);
    CHECK_STR(said, "a");
    weir_loop_close(NULL);
}

/* ---- opening -------------------------------------------------------------------------------------- */

TEST(a_loop_has_one_worker)
{
    struct weir_run_options one = {.workers = 1}, two = {.workers = 2}, bad = {.stack_bytes = 1};
    struct weir_loop *loop = NULL;

    CHECK_EQ(weir_loop_open(&two, &loop), WEIR_EINVAL);
    CHECK_EQ(weir_loop_open(&bad, &loop), WEIR_EINVAL);
    CHECK(loop == NULL);
    CHECK_EQ(weir_loop_open(&one, &loop), 0);
    weir_loop_close(loop);
}

TEST(a_loop_that_cannot_be_opened_for_lack_of_memory_says_so)
{
    struct weir_loop *loop = NULL;
    int n = 0, r;

    do {
        test_fail_allocation(++n);
        r = weir_loop_open(NULL, &loop);
        CHECK(r == 0 || (r == WEIR_ENOMEM && loop == NULL));
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK(n > 2);
    weir_loop_close(loop);
}

/* ---- inside plain epoll ------------------------------------------------------------------------------ */

/* A host with a timer of its own and a callback waiter through an inbox: all live on. */
static int hand_back(void *arg)
{
    struct weir_sem *sem = arg;

    for (int i = 0; i < 5; i++) {
        CHECK_EQ(weir_task_sleep(weir_within(WEIR_MS)), 0);
        CHECK_EQ(weir_sem_release(sem, 1), 0);
    }
    return 0;
}

struct host {
    struct weir_sem *sem;
    struct caller caller;
    int granted, ticks;
};

static void ask_again(struct weir_op *op, int result);

static void ask(struct host *h)
{
    while (weir_sem_acquire_async(h->sem, 1, &h->caller.op, ask_again) == 1)
        h->granted++;
}

static void ask_again(struct weir_op *op, int result)
{
    struct host *h = container_of(container_of(op, struct caller, op), struct host, caller);

    CHECK_EQ(result, 0);
    h->granted++;
    if (h->granted < 5)
        ask(h);
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

TEST(tasks_timers_and_callbacks_live_together_in_plain_epoll)
{
    struct weir_sem sem = WEIR_SEM_INIT(5);
    struct host host = {.sem = &sem, .caller.op = WEIR_OP_INIT};
    struct weir_loop *loop = open_loop();
    struct weir_inbox *inbox;
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec every = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};

    CHECK(epoll >= 0 && timer >= 0);
    CHECK_EQ(weir_inbox_open(&inbox), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 5), 0);
    host.caller.op.inbox = inbox;
    CHECK_EQ(timerfd_settime(timer, 0, &every, NULL), 0);
    watch(epoll, weir_loop_fd(loop));
    watch(epoll, weir_inbox_fd(inbox));
    watch(epoll, timer);
    struct weir_task task = spawn_into(loop, hand_back, &sem);

    ask(&host);
    while (host.granted < 5 || host.ticks < 3) {
        struct epoll_event event;
        uint64_t ticks;

        CHECK_EQ(epoll_wait(epoll, &event, 1, 9000), 1);
        if (event.data.fd == timer)
            host.ticks += read(timer, &ticks, sizeof ticks) > 0;
        else if (event.data.fd == weir_inbox_fd(inbox))
            CHECK(weir_inbox_drain(inbox) >= 0);
        else
            CHECK(weir_loop_step(loop) >= 0);
    }
    CHECK_EQ(joined(task), 0);
    weir_inbox_close(inbox);
    weir_loop_close(loop);
    close(timer);
    close(epoll);
}
