/* SPDX-License-Identifier: MIT */
/* Waiting: until when, for tasks that are cancelled, and where it is not allowed. */
#include <weir/loop.h>

#include "named/conformance/world.h"

/* ---- deadlines ----------------------------------------------------------------------------- */

static void check_gives_up_at_its_deadline(struct world *w, enum kind kind)
{
    take(w, ask("n", 1));
    struct weir_deadline deadline = weir_within(20 * WEIR_MS);
    struct asker *a = begin_to_ask(w, w->store, kind, ask("n", 1), deadline);

    CHECK_EQ(answer_of(a), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(a->lease.token, 0); /* nothing is written */
    CHECK_EQ(waiting(w, "n"), 0);
    CHECK_EQ(held(w, "n"), 1);
}

STORE_TEST(a_thread_gives_up_at_its_deadline_and_not_before)
{
    check_gives_up_at_its_deadline(w, THREAD);
}

STORE_TEST(a_task_gives_up_at_its_deadline_and_not_before)
{
    check_gives_up_at_its_deadline(w, TASK);
}

STORE_TEST(a_deadline_in_the_past_takes_what_is_free_and_waits_for_nothing)
{
    static const struct weir_deadline past[] = {{0}, {1}, {-1}, {INT64_MIN}};
    struct weir_lease_request request = ask("n", 1);

    for (int i = 0; i < 4; i++) {
        struct weir_lease lease, other = {.slot = 7};

        CHECK_EQ(weir_lease_acquire(w->store, &request, past[i], &lease), 0);
        CHECK_EQ(weir_lease_acquire(w->store, &request, past[i], &other), WEIR_ETIMEDOUT);
        CHECK_EQ(other.slot, 7);
        CHECK_EQ(waiting(w, "n"), 0);
        give_back(w, "n", &lease);
    }
}

STORE_TEST(a_deadline_in_the_far_future_is_waited_for)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *thread =
        begin_to_ask(w, w->store, THREAD, ask("n", 1), (struct weir_deadline){INT64_MAX - 1});
    struct asker *task =
        begin_to_ask(w, w->store, TASK, ask("n", 1), (struct weir_deadline){INT64_MAX - 1});

    EVENTUALLY(waiting(w, "n") == 2);
    CHECK(!is_answered(thread) && !is_answered(task));
    give_back(w, "n", &holder);
    EVENTUALLY(is_answered(thread) || is_answered(task));
    give_back(w, "n", is_answered(thread) ? &thread->lease : &task->lease);
    CHECK_EQ(answer_of(thread), 0);
    CHECK_EQ(answer_of(task), 0);
}

/* The one or the other, and it is told which. */
STORE_TEST(a_grant_that_meets_a_deadline_is_a_lease_or_nothing)
{
    for (int i = 0; i < 100; i++) {
        struct weir_lease holder = take(w, ask("n", 1));
        struct asker *a = begin_to_ask(w, w->store, i % 2 ? TASK : THREAD, ask("n", 1),
                                       weir_within(500 * WEIR_US));
        int64_t now_ns = weir_now_ns();

        while (weir_now_ns() < now_ns + test_random(1000) * WEIR_US)
            ;
        give_back(w, "n", &holder);
        int r = answer_of(a);
        CHECK(r == 0 || r == WEIR_ETIMEDOUT);
        CHECK_EQ(held(w, "n"), r == 0);
        if (r == 0)
            give_back(w, "n", &a->lease);
        CHECK_EQ(waiting(w, "n"), 0);
        test_join_all();
        w->asked = 0; /* it is done: a task only waits to leave */
        weir_event_set(&a->leave);
        EVENTUALLY(i % 2 == 0 || __atomic_load_n(&a->after, __ATOMIC_ACQUIRE) == 0);
    }
}

/* ---- tasks ------------------------------------------------------------------------------------ */

static int wait_for_it(void *arg)
{
    struct world *w = arg;
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease lease;

    return weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease);
}

static int release_for_another_task(void *arg)
{
    struct world *w = arg;
    struct weir_lease lease = take(w, ask("n", 1));
    struct weir_task task;
    int result;

    CHECK_EQ(weir_task_spawn(wait_for_it, w, &task), 0);
    while (waiting(w, "n") == 0) /* it shares this thread */
        CHECK_EQ(weir_task_yield(), 0);
    give_back(w, "n", &lease);
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
    return result;
}

STORE_TEST(a_task_that_waits_keeps_no_thread)
{
    CHECK_EQ(weir_run(NULL, release_for_another_task, w), 0);
}

STORE_TEST(a_task_that_waits_is_struck_by_a_cancel)
{
    take(w, ask("n", 1));
    struct asker *a = queue_up(w, TASK, ask("n", 1));

    CHECK_EQ(weir_task_cancel(a->task), 0);
    CHECK_EQ(answer_of(a), WEIR_ECANCELED);
    CHECK_EQ(waiting(w, "n"), 0);
    CHECK_EQ(held(w, "n"), 1);
}

static int ask_although_cancelled(void *arg)
{
    struct world *w = arg;
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease lease, other;

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &other), WEIR_ECANCELED);
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &other), WEIR_ECANCELED);
    CHECK_EQ(waiting(w, "n"), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), 0);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    return 0;
}

STORE_TEST(a_cancelled_task_takes_what_is_free_and_waits_for_nothing)
{
    CHECK_EQ(weir_run(NULL, ask_although_cancelled, w), 0);
}

static int ask_behind_a_shield(void *arg)
{
    struct world *w = arg;
    struct weir_shield shield;
    int r;

    weir_shield_begin(&shield, WEIR_FOREVER);
    r = wait_for_it(w);
    weir_shield_end(&shield);
    return r;
}

STORE_TEST(behind_a_shield_a_cancelled_task_waits)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct weir_task task;
    int result = NOT_YET;

    CHECK_EQ(weir_runtime_spawn(runtime_of(w), ask_behind_a_shield, w, &task), 0);
    EVENTUALLY(waiting(w, "n") == 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(waiting(w, "n"), 1);
    give_back(w, "n", &lease);
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
    CHECK_EQ(result, 0);
}

/* Cancel and grant meet: what it holds is what it was told. */
STORE_TEST(a_grant_that_meets_a_cancel_is_a_lease_or_nothing)
{
    for (int i = 0; i < 100; i++) {
        struct weir_lease holder = take(w, ask("n", 1));
        struct asker *a = queue_up(w, TASK, ask("n", 1));

        CHECK_EQ(weir_task_cancel(a->task), 0);
        give_back(w, "n", &holder);
        int r = answer_of(a);
        CHECK(r == 0 || r == WEIR_ECANCELED);
        EVENTUALLY(__atomic_load_n(&a->after, __ATOMIC_ACQUIRE) == WEIR_ECANCELED);
        EVENTUALLY(held(w, "n") == 0); /* it has ended, and so has its lease */
        CHECK_EQ(waiting(w, "n"), 0);
        w->asked = 0;
    }
}

/* ---- where waiting is not allowed ------------------------------------------------------------ */

struct in_callback {
    struct weir_op op;
    struct world *w;
    int calls;
};

static void check_may_not_wait(struct world *w)
{
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease lease = {.slot = 7};

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_acquire(w->store, &request, weir_within(WEIR_S), &lease), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_NO_WAIT, &lease), WEIR_ETIMEDOUT);
    CHECK_EQ(lease.slot, 7);
    CHECK_EQ(waiting(w, "n"), 0);
}

static void check_may_do_what_needs_no_waiting(struct world *w)
{
    struct weir_lease_request request = ask("free", 1);
    struct weir_lease lease;

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
    CHECK_EQ(weir_lease_renew(w->store, "free", &lease, LASTING_TTL), 0);
    CHECK_EQ(weir_store_resize(w->store, "free", 2), 0);
    CHECK_EQ(weir_lease_release(w->store, "free", lease.id), 0);
    CHECK_EQ(weir_store_evict(w->store, "free", lease.id), WEIR_ENOTHELD);
}

static void call_store(struct weir_op *op, int result)
{
    struct in_callback *c = (struct in_callback *)op;

    CHECK_EQ(result, 0);
    check_may_not_wait(c->w);
    check_may_do_what_needs_no_waiting(c->w);
    c->calls++;
}

STORE_TEST(in_a_callback_one_may_not_wait_but_do_all_else)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct in_callback c = {.op = WEIR_OP_INIT, .w = w};

    take(w, ask("n", 1));
    CHECK_EQ(weir_event_wait_async(&event, &c.op, call_store), 0);
    weir_event_set(&event);
    CHECK_EQ(c.calls, 1);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

STORE_TEST(on_a_thread_that_stepped_a_loop_one_may_not_wait_but_do_all_else)
{
    struct weir_loop *loop;

    take(w, ask("n", 1));
    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), do_nothing, NULL, NULL), 0);
    while (weir_loop_step(loop) == 1)
        ;
    check_may_not_wait(w);
    check_may_do_what_needs_no_waiting(w);
    weir_loop_close(loop);
}
