/* SPDX-License-Identifier: MIT */
/* One queue, first come, first served, for threads and tasks and whatever they weigh. */
#include "named/conformance/world.h"

/* ---- first come, first served ------------------------------------------------------------ */

/* Hand the one slot down the queue: each has it in turn, and nobody else then. */
static void check_served_in_order(struct world *w, struct weir_lease *holder, struct asker **a,
                                  int n)
{
    const struct weir_lease *last = holder;

    for (int i = 0; i < n; i++) {
        give_back(w, "n", last);
        CHECK_EQ(answer_of(a[i]), 0);
        CHECK_EQ(waiting(w, "n"), n - 1 - i);
        for (int later = i + 1; later < n; later++)
            CHECK(!is_answered(a[later]));
        last = &a[i]->lease;
    }
    give_back(w, "n", last);
}

static void check_order(struct world *w, const enum kind *kinds, int n)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *a[16];

    for (int i = 0; i < n; i++)
        a[i] = queue_up(w, kinds[i], ask("n", 1));
    check_served_in_order(w, &holder, a, n);
}

STORE_TEST(threads_are_served_in_order)
{
    check_order(w, (enum kind[]){THREAD, THREAD, THREAD, THREAD, THREAD}, 5);
}

STORE_TEST(tasks_are_served_in_order)
{
    check_order(w, (enum kind[]){TASK, TASK, TASK, TASK, TASK}, 5);
}

STORE_TEST(threads_and_tasks_stand_in_one_queue)
{
    check_order(w, (enum kind[]){TASK, THREAD, THREAD, TASK, TASK, TASK, THREAD, TASK, THREAD}, 9);
}

STORE_TEST(who_waits_is_shown_in_order)
{
    static const char *const labels[] = {"first", "second", "third", "fourth"};
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease holder = take(w, request);
    struct asker *a[4];

    for (int i = 0; i < 4; i++) {
        request.label = labels[i];
        a[i] = queue_up(w, i % 2 ? TASK : THREAD, request);
    }
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.waiters, 4);
    for (int i = 0; i < 4; i++)
        CHECK_STR(view.waiter[i].label, labels[i]);
    check_served_in_order(w, &holder, a, 4);
}

STORE_TEST(what_is_given_back_belongs_to_the_next_in_line_at_once)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *next = queue_up(w, THREAD, ask("n", 1));

    give_back(w, "n", &holder);
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    CHECK_EQ(waiting(w, "n"), 0);
    CHECK_EQ(answer_of(next), 0);
}

STORE_TEST(one_who_gives_up_in_the_middle_leaves_the_order_of_the_others)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *a[3];

    a[0] = queue_up(w, THREAD, ask("n", 1));
    struct asker *goes = queue_up(w, TASK, ask("n", 1));
    a[1] = queue_up(w, TASK, ask("n", 1));
    a[2] = queue_up(w, THREAD, ask("n", 1));
    CHECK_EQ(weir_task_cancel(goes->task), 0);
    CHECK_EQ(answer_of(goes), WEIR_ECANCELED);
    CHECK_EQ(waiting(w, "n"), 3);
    check_served_in_order(w, &holder, a, 3);
}

/* ---- a heavy one at the head --------------------------------------------------------------- */

STORE_TEST(a_light_one_does_not_overtake_a_heavy_one)
{
    struct weir_lease holder = take(w, ask("n", 4));
    struct asker *heavy = queue_up(w, THREAD, ask_weight("n", 4, 4));
    struct asker *light = queue_up(w, TASK, ask("n", 4)); /* three are free, yet it waits */

    CHECK_EQ(try_to_take(w->store, ask("n", 4)), WEIR_ETIMEDOUT);
    CHECK_EQ(held(w, "n"), 1);
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(heavy), 0);
    CHECK(!is_answered(light));
    give_back(w, "n", &heavy->lease);
    CHECK_EQ(answer_of(light), 0);
}

STORE_TEST(one_heavy_release_serves_many_light_ones_up_to_the_first_that_does_not_fit)
{
    struct weir_lease all = take(w, ask_weight("n", 5, 5));
    struct asker *one = queue_up(w, THREAD, ask_weight("n", 5, 2));
    struct asker *two = queue_up(w, TASK, ask_weight("n", 5, 1));
    struct asker *heavy = queue_up(w, TASK, ask_weight("n", 5, 3));
    struct asker *last = queue_up(w, THREAD, ask_weight("n", 5, 1));

    give_back(w, "n", &all);
    CHECK_EQ(answer_of(one), 0);
    CHECK_EQ(answer_of(two), 0);
    CHECK_EQ(waiting(w, "n"), 2);
    CHECK(!is_answered(heavy) && !is_answered(last));
    give_back(w, "n", &one->lease);
    CHECK_EQ(answer_of(heavy), 0);
    CHECK_EQ(answer_of(last), 0);
}

static void check_those_behind_are_served(struct world *w, enum kind kind)
{
    struct weir_lease holder = take(w, ask("n", 4));
    struct asker *heavy =
        begin_to_ask(w, w->store, kind, ask_weight("n", 4, 4), weir_within(100 * WEIR_MS));

    EVENTUALLY(waiting(w, "n") == 1 || is_answered(heavy));
    struct asker *a = begin_to_ask(w, w->store, THREAD, ask("n", 4), WEIR_FOREVER);
    struct asker *b = begin_to_ask(w, w->store, TASK, ask("n", 4), WEIR_FOREVER);
    CHECK_EQ(answer_of(heavy), WEIR_ETIMEDOUT);
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(answer_of(b), 0);
    CHECK_EQ(held(w, "n"), 3);
    CHECK_EQ(waiting(w, "n"), 0);
    give_back(w, "n", &holder);
}

STORE_TEST(when_a_heavy_thread_gives_up_those_behind_it_are_served)
{
    check_those_behind_are_served(w, THREAD);
}

STORE_TEST(when_a_heavy_task_gives_up_those_behind_it_are_served)
{
    check_those_behind_are_served(w, TASK);
}

STORE_TEST(when_a_heavy_task_is_cancelled_those_behind_it_are_served)
{
    take(w, ask("n", 4));
    struct asker *heavy = queue_up(w, TASK, ask_weight("n", 4, 4));
    struct asker *a = queue_up(w, THREAD, ask("n", 4)), *b = queue_up(w, TASK, ask("n", 4));

    CHECK(!is_answered(a) && !is_answered(b));
    CHECK_EQ(weir_task_cancel(heavy->task), 0);
    CHECK_EQ(answer_of(heavy), WEIR_ECANCELED);
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(answer_of(b), 0);
}

STORE_TEST(when_a_heavy_one_is_evicted_those_behind_it_are_served)
{
    take(w, ask("n", 4));
    struct asker *heavy = queue_up(w, THREAD, ask_weight("n", 4, 4));
    struct asker *light = queue_up(w, TASK, ask("n", 4));

    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
    CHECK_EQ(answer_of(heavy), WEIR_ECANCELED);
    CHECK_EQ(answer_of(light), 0);
}

/* ---- for how long ---------------------------------------------------------------------------- */

STORE_TEST(who_did_not_wait_waited_for_nothing)
{
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease lease;
    int64_t before_ns = weir_now_ns();

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
    CHECK(lease.waited_ns >= 0);
    CHECK(lease.waited_ns <= weir_now_ns() - before_ns);
}

STORE_TEST(a_lease_says_how_long_it_was_waited_for)
{
    struct weir_lease holder = take(w, ask("n", 1));
    int64_t before_ns = weir_now_ns();
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    int64_t queued_ns = weir_now_ns();

    EVENTUALLY(weir_now_ns() - queued_ns > 3 * WEIR_MS);
    int64_t released_ns = weir_now_ns();
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(next), 0);
    CHECK(next->lease.waited_ns >= released_ns - queued_ns);
    CHECK(next->lease.waited_ns <= weir_now_ns() - before_ns);
    CHECK(look(w, "n").stats.longest_wait_ns >= released_ns - queued_ns);
    CHECK(look(w, "n").stats.longest_wait_ns <= weir_now_ns() - before_ns);
}

/* ---- many ------------------------------------------------------------------------------------ */

/* All are in the queue, in an order that is known, before the first is served. */
STORE_TEST(fifty_who_wait_are_served_by_token_in_the_order_they_came)
{
    enum { MANY = 50 };
    struct weir_lease holder = take(w, ask_weight("n", MANY, MANY));
    struct asker *a[MANY];

    for (int i = 0; i < MANY; i++)
        a[i] = queue_up(w, i % 3 ? TASK : THREAD, ask("n", MANY));
    give_back(w, "n", &holder);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(answer_of(a[i]), 0);
        CHECK(i == 0 || a[i]->lease.token > a[i - 1]->lease.token);
    }
    CHECK_EQ(held(w, "n"), MANY);
}

STORE_TEST(tasks_wait_for_many_names_at_once)
{
    enum { NAMES = 30 };
    static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCD";
    static char names[NAMES][2];
    struct weir_lease lease[NAMES];
    struct asker *a[NAMES];

    for (int i = 0; i < NAMES; i++) {
        names[i][0] = letters[i];
        lease[i] = take(w, ask(names[i], 1));
        a[i] = queue_up(w, TASK, ask(names[i], 1));
    }
    for (int i = NAMES - 1; i >= 0; i--)
        give_back(w, names[i], &lease[i]);
    for (int i = 0; i < NAMES; i++)
        CHECK_EQ(answer_of(a[i]), 0);
}
