/* SPDX-License-Identifier: MIT */
/* Timers: the heap against a plain list, and the virtual clock that jumps from one moment
 * to the next. */
#include "task/timer.h"

#include <fcntl.h>
#include <unistd.h>

#include <weir/io.h>

#include "task/tasks.h"

/* ---- the heap ---------------------------------------------------------------------------- */

enum { TIMERS = 300 };

/* The same timers in a heap and in a list that is searched from end to end. */
struct model {
    struct timer_heap heap;
    struct timer timers[TIMERS];
    int64_t at_ns[TIMERS]; /* 0 when not armed */
};

static int64_t soonest(const struct model *m)
{
    int64_t at_ns = INT64_MAX;

    for (int i = 0; i < TIMERS; i++)
        if (m->at_ns[i] && m->at_ns[i] < at_ns)
            at_ns = m->at_ns[i];
    return at_ns;
}

static void arm_some(struct model *m)
{
    int i = (int)test_random(TIMERS);

    if (m->at_ns[i])
        return;
    m->at_ns[i] = 1 + test_random(1000);
    timer_arm(&m->heap, &m->timers[i], m->at_ns[i]);
}

static void disarm_some(struct model *m)
{
    int i = (int)test_random(TIMERS);

    timer_disarm(&m->heap, &m->timers[i]); /* armed or not */
    m->at_ns[i] = 0;
}

static void pop_some(struct model *m)
{
    int64_t now_ns = test_random(1000);
    struct timer *timer = timer_pop(&m->heap, now_ns);

    if (timer == NULL) {
        CHECK(soonest(m) > now_ns);
        return;
    }
    int64_t *at_ns = &m->at_ns[timer - m->timers];
    CHECK(*at_ns != 0);
    CHECK_EQ(*at_ns, soonest(m));
    CHECK(*at_ns <= now_ns);
    *at_ns = 0;
}

TEST(the_heap_gives_what_a_sorted_list_would)
{
    static struct model m;

    CHECK_EQ(timer_reserve(&m.heap, TIMERS), 0);
    for (int i = test_scaled(20000); i > 0; i--) {
        uint32_t what = test_random(16);

        if (what < 8)
            arm_some(&m);
        else if (what < 12)
            disarm_some(&m);
        else
            pop_some(&m);
        CHECK_EQ(timer_next_ns(&m.heap), soonest(&m));
    }
    timer_heap_fini(&m.heap);
}

TEST(the_heap_keeps_what_is_in_it_when_it_grows)
{
    struct timer_heap heap = {0};
    static struct timer timers[TIMERS];

    for (uint32_t i = 0; i < TIMERS; i++) {
        CHECK_EQ(timer_reserve(&heap, i + 1), 0);
        timer_arm(&heap, &timers[i], TIMERS - i);
    }
    for (int64_t i = 1; i <= TIMERS; i++)
        CHECK(timer_pop(&heap, i) == &timers[TIMERS - i]);
    CHECK_EQ(timer_next_ns(&heap), INT64_MAX);
    timer_heap_fini(&heap);
}

TEST(a_heap_that_cannot_grow_stays_as_it_is)
{
    struct timer_heap heap = {0};
    struct timer timer = {0};

    CHECK_EQ(timer_reserve(&heap, 1), 0);
    timer_arm(&heap, &timer, 5);
    test_fail_allocation(1);
    CHECK_EQ(timer_reserve(&heap, 1000), WEIR_ENOMEM);
    CHECK_EQ(timer_next_ns(&heap), 5);
    CHECK(timer_pop(&heap, 5) == &timer);
    timer_heap_fini(&heap);
}

/* ---- sleeping ------------------------------------------------------------------------------ */

TEST(a_sleep_lasts_until_its_time_and_not_less)
{
    AS_TASK(a_sleep_lasts_until_its_time_and_not_less);
    for (int i = 0; i < 10; i++) {
        struct weir_deadline until = weir_within(i * 200 * WEIR_US);

        CHECK_EQ(weir_task_sleep(until), 0);
        CHECK(weir_now_ns() >= until.at_ns);
    }
}

struct sleeper_task {
    int64_t for_ns, woke_ns;
};

static int sleep_for(void *arg)
{
    struct sleeper_task *s = arg;

    CHECK_EQ(weir_task_sleep(weir_within(s->for_ns)), 0);
    s->woke_ns = weir_now_ns();
    return 0;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

TEST(a_task_sleeps_on_while_its_worker_is_woken_for_other_things)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct sleeper_task s = {.for_ns = 20 * WEIR_MS};
    int64_t begun_ns = weir_now_ns();
    struct weir_task task = start_in(runtime, sleep_for, &s);

    while (weir_task_join(task, WEIR_NO_WAIT, NULL) == WEIR_ETIMEDOUT)
        CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0);
    CHECK(s.woke_ns >= begun_ns + s.for_ns);
    close_runtime(runtime);
}

/* ---- the virtual clock ----------------------------------------------------------------------- */

TEST(hours_take_no_time_and_are_exact)
{
    AS_TASK_IN_NO_TIME(hours_take_no_time_and_are_exact);
    int64_t begun_ns = weir_now_ns();
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_task_sleep(weir_within(24 * 3600 * WEIR_S)), 0);
    CHECK_EQ(weir_now_ns() - begun_ns, 24 * 3600 * WEIR_S);
    CHECK_EQ(weir_event_wait(&never, weir_within(3600 * WEIR_S)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now_ns() - begun_ns, 25 * 3600 * WEIR_S);
    CHECK_EQ(weir_task_sleep(weir_within(1)), 0);
    CHECK_EQ(weir_now_ns() - begun_ns, 25 * 3600 * WEIR_S + 1);
}

TEST(sleepers_wake_in_order_of_their_times_each_at_its_own)
{
    AS_TASK_IN_NO_TIME(sleepers_wake_in_order_of_their_times_each_at_its_own);
    enum { SLEEPERS = 50 };
    struct sleeper_task sleepers[SLEEPERS];
    struct weir_task tasks[SLEEPERS];
    int64_t begun_ns = weir_now_ns();

    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper_task){.for_ns = (1 + test_random(1000)) * WEIR_S};
        tasks[i] = start(sleep_for, &sleepers[i]);
    }
    for (int i = 0; i < SLEEPERS; i++)
        finish(tasks[i]);
    for (int i = 0; i < SLEEPERS; i++)
        CHECK_EQ(sleepers[i].woke_ns, begun_ns + sleepers[i].for_ns);
}

static int sleep_and_say(void *arg)
{
    const char *c = arg;

    CHECK_EQ(weir_task_sleep(weir_within((*c - 'a' + 1) * 3600 * WEIR_S)), 0);
    say(*c);
    return 0;
}

TEST(the_order_is_that_of_the_times_whatever_the_order_of_spawning)
{
    AS_TASK_IN_NO_TIME(the_order_is_that_of_the_times_whatever_the_order_of_spawning);
    for (const char *c = "ebdfac"; *c; c++)
        CHECK_EQ(weir_task_spawn(sleep_and_say, (void *)c, NULL), 0);
    CHECK_EQ(weir_task_sleep(weir_within(7 * 3600 * WEIR_S)), 0);
    CHECK_STR(said, "abcdef");
}

TEST(time_stands_still_while_any_task_can_run)
{
    AS_TASK_IN_NO_TIME(time_stands_still_while_any_task_can_run);
    struct sleeper_task s = {.for_ns = 1};
    int64_t begun_ns = weir_now_ns();
    struct weir_task task = start(sleep_for, &s);

    for (int i = 0; i < 1000; i++)
        CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(weir_now_ns(), begun_ns);
    CHECK_EQ(s.woke_ns, 0);
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(s.woke_ns, begun_ns + 1);
}

static int release_later(void *sem)
{
    CHECK_EQ(weir_task_sleep(weir_within(3600 * WEIR_S)), 0);
    return weir_sem_release(sem, 1);
}

TEST(a_wait_that_is_served_before_its_deadline_leaves_no_timer_behind)
{
    AS_TASK_IN_NO_TIME(a_wait_that_is_served_before_its_deadline_leaves_no_timer_behind);
    struct weir_sem sem = WEIR_SEM_INIT(1);
    int64_t begun_ns = weir_now_ns();

    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    struct weir_task task = start(release_later, &sem);
    CHECK_EQ(weir_sem_acquire(&sem, 1, weir_within(7200 * WEIR_S)), 0);
    CHECK_EQ(weir_now_ns() - begun_ns, 3600 * WEIR_S);
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(weir_task_sleep(weir_within(7200 * WEIR_S)), 0); /* and is not struck by the old one */
    CHECK_EQ(weir_now_ns() - begun_ns, 3 * 3600 * WEIR_S);
}

TEST(a_deadline_and_a_release_at_the_same_moment_are_one_or_the_other)
{
    AS_TASK_IN_NO_TIME(a_deadline_and_a_release_at_the_same_moment_are_one_or_the_other);
    for (int i = 0; i < 100; i++) {
        struct weir_sem sem = WEIR_SEM_INIT(1);

        CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
        struct weir_task task = start(release_later, &sem);
        if (i % 2)
            CHECK_EQ(weir_task_yield(), 0); /* its timer is armed first */
        int r = weir_sem_acquire(&sem, 1, weir_within(3600 * WEIR_S));
        CHECK(r == 0 || r == WEIR_ETIMEDOUT);
        CHECK_EQ(finish(task), 0);
        CHECK_EQ(weir_sem_available(&sem), r == 0 ? 0 : 1);
        CHECK_EQ(weir_sem_waiting(&sem), 0);
    }
}

static int read_byte(void *arg)
{
    int *fds = arg;
    char byte;

    CHECK_EQ(weir_read(fds[0], &byte, 1, weir_within(2 * 3600 * WEIR_S)), 1);
    return byte;
}

TEST(time_does_not_jump_over_a_descriptor_that_is_ready)
{
    AS_TASK_IN_NO_TIME(time_does_not_jump_over_a_descriptor_that_is_ready);
    int fds[2];
    int64_t begun_ns = weir_now_ns();

    CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
    struct weir_task reader = start(read_byte, fds);
    struct sleeper_task s = {.for_ns = 3600 * WEIR_S};
    struct weir_task sleeps = start(sleep_for, &s);
    CHECK_EQ(weir_task_yield(), 0); /* both wait */
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(finish(reader), 'x');
    CHECK_EQ(weir_now_ns(), begun_ns);
    CHECK_EQ(finish(sleeps), 0);
    CHECK_EQ(weir_now_ns(), begun_ns + 3600 * WEIR_S);
    close(fds[0]);
    close(fds[1]);
}

TEST(the_clock_starts_at_the_real_time_and_goes_back_to_it)
{
    int64_t before_ns = weir_now_ns();

    weir_testing_clock_start();
    int64_t started_ns = weir_now_ns();
    CHECK(started_ns >= before_ns);
    weir_testing_clock_start(); /* runs already */
    CHECK_EQ(weir_now_ns(), started_ns);
    weir_testing_clock_stop();
    CHECK(weir_now_ns() > started_ns);
    EVENTUALLY(weir_now_ns() > started_ns + WEIR_MS); /* it moves */
}

static int wait_for_event(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

static int jump(void *arg)
{
    (void)arg;
    return weir_task_sleep(weir_within(3600 * WEIR_S));
}

TEST(after_a_stop_time_is_real_again_however_far_it_had_jumped)
{
    int64_t before_ns = weir_now_ns();

    weir_testing_clock_start();
    CHECK_EQ(weir_run(NULL, jump, NULL), 0);
    CHECK(weir_now_ns() >= before_ns + 3600 * WEIR_S);
    weir_testing_clock_stop();
    CHECK(weir_now_ns() < before_ns + 3600 * WEIR_S);
}

TEST(under_the_virtual_clock_a_runtime_waits_for_threads_and_can_be_closed)
{
    struct weir_event event = WEIR_EVENT_INIT;

    weir_testing_clock_start();
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_task task = start_in(runtime, wait_for_event, &event);
    EVENTUALLY(queued(&event) == 1);
    weir_event_set(&event);
    CHECK_EQ(finish(task), 0);
    EVENTUALLY(live_tasks(runtime) == 0);
    test_yield(); /* whether it sleeps by now or still looks around */
    close_runtime(runtime);
    weir_testing_clock_stop();
}
