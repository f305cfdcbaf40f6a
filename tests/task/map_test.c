/* SPDX-License-Identifier: MIT */
/* map_limit: a function over many items, so many at a time. */
#include <weir/map.h>

#include "task/tasks.h"

enum { ITEMS = 20 };

/* What the function does with each item, and what became of it. */
struct work {
    int results[ITEMS];
    int running, most_running, started, finished;
    size_t fails; /* this item, from 1, with EBUSY; 0 is none */
    int yields;   /* of each */
};

static int work_on(void *ctx, size_t i)
{
    struct work *w = ctx;

    CHECK_EQ(w->results[i], 0); /* each once */
    w->results[i] = 1;
    w->started++;
    if (++w->running > w->most_running)
        w->most_running = w->running;
    say((char)('a' + i));
    for (int k = 0; k < w->yields; k++)
        CHECK_EQ(weir_task_yield(), 0);
    w->running--;
    w->finished++;
    w->results[i] = 100 + (int)i;
    return w->fails == i + 1 ? WEIR_EBUSY : 0;
}

static void check_all_done(const struct work *w, size_t n)
{
    CHECK_EQ(w->started, n);
    CHECK_EQ(w->finished, n);
    CHECK_EQ(w->running, 0);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(w->results[i], 100 + (int)i);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(every_item_is_worked_on_once_and_its_result_stands_at_its_index)
{
    AS_TASK(every_item_is_worked_on_once_and_its_result_stands_at_its_index);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 4, work_on, &w, WEIR_FOREVER), 0);
    check_all_done(&w, ITEMS);
}

TEST(as_many_run_at_once_as_the_limit_says)
{
    AS_TASK(as_many_run_at_once_as_the_limit_says);
    for (size_t limit = 1; limit <= ITEMS; limit++) {
        struct work w = {.yields = 25};

        CHECK_EQ(weir_map_limit(ITEMS, limit, work_on, &w, WEIR_FOREVER), 0);
        CHECK_EQ(w.most_running, limit);
        check_all_done(&w, ITEMS);
    }
}

TEST(a_limit_above_the_number_of_items_runs_all_at_once)
{
    AS_TASK(a_limit_above_the_number_of_items_runs_all_at_once);
    struct work w = {.yields = 25};

    CHECK_EQ(weir_map_limit(ITEMS, SIZE_MAX, work_on, &w, WEIR_FOREVER), 0);
    CHECK_EQ(w.most_running, ITEMS);
    check_all_done(&w, ITEMS);
}

TEST(a_map_needs_no_more_tasks_than_its_limit)
{
    AS_TASK(a_map_needs_no_more_tasks_than_its_limit);
    struct work w = {.yields = 3};
    struct weir_runtime_stats stats;

    CHECK_EQ(weir_map_limit(ITEMS, 3, work_on, &w, WEIR_FOREVER), 0);
    weir_runtime_stats(weir_runtime_self(), &stats);
    CHECK_EQ(stats.spawned, 4);
}

TEST(items_are_begun_in_order)
{
    AS_TASK(items_are_begun_in_order);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 5, work_on, &w, WEIR_FOREVER), 0);
    CHECK_STR(said, "abcdefghijklmnopqrst");
}

TEST(zero_items_return_at_once)
{
    AS_TASK(zero_items_return_at_once);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(0, 4, work_on, &w, WEIR_NO_WAIT), 0);
    CHECK_EQ(w.started, 0);
}

TEST(a_limit_of_zero_is_refused)
{
    AS_TASK(a_limit_of_zero_is_refused);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 0, work_on, &w, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_map_limit(0, 0, work_on, &w, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(w.started, 0);
}

TEST(outside_a_task_a_map_is_refused)
{
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 2, work_on, &w, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(w.started, 0);
}

/* ---- errors ------------------------------------------------------------------------------ */

TEST(after_an_error_no_item_is_begun_and_those_that_run_finish)
{
    AS_TASK(after_an_error_no_item_is_begun_and_those_that_run_finish);
    struct work w = {.yields = 3, .fails = 2};

    CHECK_EQ(weir_map_limit(ITEMS, 3, work_on, &w, WEIR_FOREVER), WEIR_EBUSY);
    CHECK_EQ(w.running, 0);
    CHECK_EQ(w.started, w.finished);
    CHECK(w.started >= 3 && w.started <= 4); /* the first may have made room before it */
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

static int fail_by_number(void *ctx, size_t i)
{
    (void)ctx;
    for (size_t k = 0; k < 5 - i; k++) /* the later the item, the sooner */
        CHECK_EQ(weir_task_yield(), 0);
    return -100 - (int)i;
}

TEST(of_several_errors_the_first_to_happen_is_returned)
{
    AS_TASK(of_several_errors_the_first_to_happen_is_returned);
    CHECK_EQ(weir_map_limit(3, 3, fail_by_number, NULL, WEIR_FOREVER), -102);
}

static int answer(void *ctx, size_t i)
{
    (void)ctx;
    return 1 + (int)i;
}

TEST(a_positive_result_is_no_error)
{
    AS_TASK(a_positive_result_is_no_error);
    CHECK_EQ(weir_map_limit(5, 2, answer, NULL, WEIR_FOREVER), 0);
}

/* ---- deadline ------------------------------------------------------------------------------ */

static int sleep_an_hour(void *ctx, size_t i)
{
    struct work *w = ctx;
    int r;

    (void)i;
    w->started++;
    r = weir_task_sleep(weir_within(3600 * WEIR_S));
    w->finished += r == 0;
    return r;
}

TEST(at_the_deadline_those_that_run_are_cancelled_and_no_more_are_begun)
{
    AS_TASK_IN_NO_TIME(at_the_deadline_those_that_run_are_cancelled_and_no_more_are_begun);
    struct weir_deadline deadline = weir_within(5400 * WEIR_S); /* one and a half rounds */
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 4, sleep_an_hour, &w, deadline), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now_ns(), deadline.at_ns);
    CHECK_EQ(w.started, 8);
    CHECK_EQ(w.finished, 4);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

static int ignore_cancel(void *ctx, size_t i)
{
    struct work *w = ctx;

    (void)i;
    w->started++;
    (void)weir_task_sleep(weir_within(3600 * WEIR_S));
    return 0;
}

TEST(after_the_deadline_not_even_those_who_ignore_it_begin_another_item)
{
    AS_TASK_IN_NO_TIME(after_the_deadline_not_even_those_who_ignore_it_begin_another_item);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 4, ignore_cancel, &w, weir_within(WEIR_S)), WEIR_ETIMEDOUT);
    CHECK_EQ(w.started, 4);
}

TEST(with_a_deadline_in_the_past_nothing_is_begun)
{
    AS_TASK(with_a_deadline_in_the_past_nothing_is_begun);
    struct work w = {.yields = 3};

    CHECK_EQ(weir_map_limit(ITEMS, 4, work_on, &w, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(w.started, 0);
}

/* ---- over what a function yields ------------------------------------------------------------- */

struct stream {
    int next, end, error_at;
    int inside, handled, sum;
    struct weir_sem *slow; /* to wait for inside next, or NULL */
};

static int next_number(void *ctx, void **ret_item)
{
    struct stream *s = ctx;

    CHECK_EQ(s->inside++, 0); /* by one task at a time */
    if (s->slow)
        CHECK_EQ(weir_sem_acquire(s->slow, 1, WEIR_FOREVER), 0);
    else
        CHECK_EQ(weir_task_yield(), 0);
    s->inside--;
    if (s->next == s->error_at)
        return WEIR_EPROTO;
    if (s->next == s->end)
        return 0;
    *ret_item = (void *)(uintptr_t)++s->next;
    return 1;
}

static int add_number(void *ctx, void *item)
{
    struct stream *s = ctx;

    s->handled++;
    CHECK_EQ(weir_task_yield(), 0);
    s->sum += (int)(uintptr_t)item;
    return 0;
}

TEST(a_map_runs_over_what_next_yields_to_its_end)
{
    AS_TASK(a_map_runs_over_what_next_yields_to_its_end);
    for (size_t limit = 1; limit < 12; limit += 2) {
        struct stream s = {.end = 10, .error_at = -1};

        CHECK_EQ(weir_map_limit_next(next_number, limit, add_number, &s, WEIR_FOREVER), 0);
        CHECK_EQ(s.handled, 10);
        CHECK_EQ(s.sum, 55);
    }
}

TEST(next_may_yield_nothing_at_all)
{
    AS_TASK(next_may_yield_nothing_at_all);
    struct stream s = {.end = 0, .error_at = -1};

    CHECK_EQ(weir_map_limit_next(next_number, 3, add_number, &s, WEIR_FOREVER), 0);
    CHECK_EQ(s.handled, 0);
}

TEST(an_error_of_next_ends_the_map_and_items_taken_are_finished)
{
    AS_TASK(an_error_of_next_ends_the_map_and_items_taken_are_finished);
    struct stream s = {.end = 10, .error_at = 4};

    CHECK_EQ(weir_map_limit_next(next_number, 2, add_number, &s, WEIR_FOREVER), WEIR_EPROTO);
    CHECK_EQ(s.handled, 4);
    CHECK_EQ(s.sum, 1 + 2 + 3 + 4);
}

static int feed(void *arg)
{
    struct stream *s = arg;

    while (s->next < s->end) {
        CHECK_EQ(weir_task_yield(), 0);
        if (weir_sem_available(s->slow) == 0)
            CHECK_EQ(weir_sem_release(s->slow, 1), 0);
    }
    CHECK_EQ(weir_task_yield(), 0);
    while (s->inside) { /* and once more, to be told of the end */
        if (weir_sem_available(s->slow) == 0)
            CHECK_EQ(weir_sem_release(s->slow, 1), 0);
        CHECK_EQ(weir_task_yield(), 0);
    }
    return 0;
}

TEST(next_may_wait)
{
    AS_TASK(next_may_wait);
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct stream s = {.end = 10, .error_at = -1, .slow = &sem};

    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    struct weir_task feeder = start(feed, &s);
    CHECK_EQ(weir_map_limit_next(next_number, 4, add_number, &s, WEIR_FOREVER), 0);
    CHECK_EQ(s.sum, 55);
    CHECK_EQ(finish(feeder), 0);
}

static int next_waits_for_ever(void *ctx, void **ret_item)
{
    struct weir_event *never = ctx;

    (void)ret_item;
    return weir_event_wait(never, WEIR_FOREVER);
}

static int no_item(void *ctx, void *item)
{
    (void)ctx;
    test_fail(__FILE__, __LINE__, "called with %p", item);
}

TEST(a_next_that_waits_for_ever_is_cancelled_at_the_deadline)
{
    AS_TASK_IN_NO_TIME(a_next_that_waits_for_ever_is_cancelled_at_the_deadline);
    struct weir_event never = WEIR_EVENT_INIT;
    int r = weir_map_limit_next(next_waits_for_ever, 3, no_item, &never, weir_within(WEIR_S));

    CHECK_EQ(r, WEIR_ETIMEDOUT);
    CHECK_EQ(queued(&never), 0);
}

TEST(a_limit_of_zero_is_refused_for_next_too)
{
    AS_TASK(a_limit_of_zero_is_refused_for_next_too);
    struct stream s = {.end = 3, .error_at = -1};

    CHECK_EQ(weir_map_limit_next(next_number, 0, add_number, &s, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(s.next, 0);
}

/* ---- when there is no room --------------------------------------------------------------------- */

static int map_with_little_room(void *arg)
{
    struct work w = {.yields = 3};

    (void)arg;
    CHECK_EQ(weir_map_limit(ITEMS, 8, work_on, &w, WEIR_FOREVER), 0);
    CHECK_EQ(w.most_running, 2);
    check_all_done(&w, ITEMS);
    return 0;
}

TEST(a_map_makes_do_with_as_many_tasks_as_there_is_room_for)
{
    struct weir_run_options three = {.max_tasks = 3};

    CHECK_EQ(weir_run(&three, map_with_little_room, NULL), 0);
}

static int map_without_room(void *arg)
{
    struct work w = {.yields = 3};

    (void)arg;
    CHECK_EQ(weir_map_limit(ITEMS, 8, work_on, &w, WEIR_FOREVER), WEIR_ENOSPC);
    CHECK_EQ(w.started, 0);
    return 0;
}

TEST(a_map_that_cannot_have_even_one_task_says_so)
{
    struct weir_run_options one = {.max_tasks = 1};

    CHECK_EQ(weir_run(&one, map_without_room, NULL), 0);
}

TEST(a_map_loses_no_item_whichever_allocation_fails)
{
    AS_TASK(a_map_loses_no_item_whichever_allocation_fails);
    int n = 0, r;

    do {
        struct work w = {.yields = 3};

        test_fail_allocation(++n);
        r = weir_map_limit(ITEMS, 4, work_on, &w, WEIR_FOREVER);
        test_fail_allocation(0);
        CHECK(r == 0 || r == WEIR_ENOMEM);
        CHECK_EQ(w.started, r == 0 ? ITEMS : 0);
        check_all_done(&w, (size_t)w.started);
    } while (n < 10);
}

/* ---- two workers ---------------------------------------------------------------------------------- */

struct counts {
    int running, most_running, done;
};

static int count_running(void *ctx, size_t i)
{
    struct counts *c = ctx;
    int running = __atomic_add_fetch(&c->running, 1, __ATOMIC_ACQ_REL), most;

    (void)i;
    most = __atomic_load_n(&c->most_running, __ATOMIC_RELAXED);
    while (most < running && !__atomic_compare_exchange_n(&c->most_running, &most, running, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    CHECK_EQ(weir_task_yield(), 0);
    __atomic_sub_fetch(&c->running, 1, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&c->done, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static int map_on_two(void *arg)
{
    struct counts c = {0};

    (void)arg;
    CHECK_EQ(weir_map_limit(500, 7, count_running, &c, WEIR_FOREVER), 0);
    CHECK_EQ(c.done, 500);
    CHECK_EQ(c.running, 0);
    CHECK(c.most_running <= 7);
    return 0;
}

TEST(the_limit_holds_on_two_workers)
{
    struct weir_run_options two = {.workers = 2};

    for (int i = test_scaled(20); i > 0; i--)
        CHECK_EQ(weir_run(&two, map_on_two, NULL), 0);
}
