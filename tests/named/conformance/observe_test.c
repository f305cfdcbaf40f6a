/* SPDX-License-Identifier: MIT */
/* The observer: one function is told what happens to leases, each thing once. */
#include <unistd.h>

#include "named/conformance/world.h"

static struct weir_lease_request ask_labelled(int64_t ttl_ns)
{
    struct weir_lease_request request = ask_ttl("n", 3, ttl_ns);

    request.label = "report";
    return request;
}

static void check_notice(const struct told *t, const struct weir_lease *lease)
{
    CHECK_STR(t->name, "n");
    CHECK_STR(t->id, lease->id);
    CHECK_STR(t->label, "report");
    CHECK_EQ(t->limit, 3);
    CHECK_EQ(t->token, lease->token);
    CHECK_EQ(t->slot, lease->slot);
}

/* ---- each kind ----------------------------------------------------------------------------------- */

STORE_TEST(the_observer_is_told_of_a_lease_that_is_acquired)
{
    listen_to_notices();
    take(w, ask("n", 3));
    struct weir_lease lease = take(w, ask_labelled(backend.usual_ttl_ns));
    struct told t = notice(WEIR_NOTICE_ACQUIRED, 1);

    check_notice(&t, &lease);
    CHECK_EQ(t.slot, 1);
    CHECK_STR(t.task, "");
    CHECK_EQ(t.waited_ns, lease.waited_ns);
    CHECK_EQ(t.thread, this_thread());
    CHECK_EQ(notices(WEIR_NOTICE_ACQUIRED), 2);
}

STORE_TEST(the_observer_is_told_how_long_a_lease_was_waited_for)
{
    struct weir_lease holder = take(w, ask_weight("n", 3, 3));
    struct asker *a = queue_up(w, THREAD, ask_labelled(backend.usual_ttl_ns));

    listen_to_notices();
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(a), 0);
    struct told t = notice(WEIR_NOTICE_ACQUIRED, 0);
    check_notice(&t, &a->lease);
    CHECK(a->lease.waited_ns > 0);
    CHECK_EQ(t.waited_ns, a->lease.waited_ns);
    CHECK(t.thread != this_thread());
}

STORE_TEST(the_observer_is_told_of_a_lease_that_is_given_back)
{
    struct weir_lease lease = take(w, ask_labelled(backend.usual_ttl_ns));

    listen_to_notices();
    give_back(w, "n", &lease);
    struct told t = notice(WEIR_NOTICE_RELEASED, 0);
    check_notice(&t, &lease);
    CHECK_STR(t.task, "");
    CHECK_EQ(t.thread, this_thread());
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    CHECK_EQ(notices(WEIR_NOTICE_RELEASED), 1);
}

STORE_TEST(the_observer_is_told_of_a_lease_that_expired)
{
    listen_to_notices();
    struct weir_lease lease = take(w, ask_labelled(BRIEF_TTL));
    EVENTUALLY(held(w, "n") == 0);
    struct told t = notice(WEIR_NOTICE_EXPIRED, 0);
    check_notice(&t, &lease);
    CHECK_EQ(notices(WEIR_NOTICE_EXPIRED), 1);
    CHECK_EQ(notices(WEIR_NOTICE_RELEASED), 0);
}

static void ignore_loss(const char *name, const struct weir_lease *lease, void *arg)
{
    (void)name;
    (void)lease;
    (void)arg;
}

STORE_TEST(the_observer_is_told_of_a_loss)
{
    struct weir_lease_request request = ask_labelled(BRIEF_TTL);

    listen_to_notices();
    request.on_lost = ignore_loss;
    struct weir_lease lease = take(w, request);
    struct told t = notice(WEIR_NOTICE_LOST, 0);
    check_notice(&t, &lease);
    CHECK(t.thread != this_thread());
    EVENTUALLY(held(w, "n") == 0); /* whoever looks takes it back */
    notice(WEIR_NOTICE_EXPIRED, 0);
    CHECK_EQ(notices(WEIR_NOTICE_LOST), 1);
}

STORE_TEST(the_observer_is_told_of_the_loss_of_what_was_evicted)
{
    struct weir_lease_request request = ask_labelled(LASTING_TTL);

    listen_to_notices();
    request.on_lost = ignore_loss;
    struct weir_lease lease = take(w, request);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    struct told t = notice(WEIR_NOTICE_LOST, 0);
    check_notice(&t, &lease);
    CHECK_EQ(notices(WEIR_NOTICE_RELEASED), 0);
    CHECK_EQ(notices(WEIR_NOTICE_EXPIRED), 0);
}

static struct weir_lease abandoned;

static int abandon(void *arg)
{
    struct world *w = arg;

    CHECK_EQ(weir_task_set_name("forgetful"), 0);
    abandoned = take(w, ask_labelled(backend.usual_ttl_ns));
    return 0;
}

STORE_TEST(the_observer_is_told_who_left_a_lease_behind)
{
    listen_to_notices();
    CHECK_EQ(weir_run(NULL, abandon, w), 0);
    struct told t = notice(WEIR_NOTICE_ABANDONED, 0);
    check_notice(&t, &abandoned);
    CHECK_STR(t.task, "forgetful");
    CHECK_EQ(notices(WEIR_NOTICE_ABANDONED), 1);
    EVENTUALLY(held(w, "n") == 0);
}

static int be_tidy(void *arg)
{
    struct world *w = arg;
    struct weir_lease_request detached = ask_labelled(LASTING_TTL);
    struct weir_lease lease = take(w, ask_labelled(backend.usual_ttl_ns));

    give_back(w, "n", &lease);
    lease = take(w, ask_labelled(LASTING_TTL)); /* taken away, so not left behind */
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    detached.flags = WEIR_LEASE_DETACHED;
    take(w, detached);
    return 0;
}

STORE_TEST(who_left_nothing_behind_is_not_told_of)
{
    listen_to_notices();
    CHECK_EQ(weir_run(NULL, be_tidy, w), 0);
    CHECK_EQ(weir_run(NULL, abandon, w), 0);
    CHECK_STR(notice(WEIR_NOTICE_ABANDONED, 0).id, abandoned.id);
    CHECK_EQ(notices(WEIR_NOTICE_ABANDONED), 1);
}

/* ---- when nothing happens -------------------------------------------------------------------------- */

STORE_TEST(what_was_not_had_is_not_told_of)
{
    take(w, ask("n", 1));
    listen_to_notices();
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    CHECK_EQ(try_to_take(w->store, ask("n", 2)), WEIR_EMISMATCH);
    CHECK_EQ(try_to_take(w->store, ask("", 2)), WEIR_EINVAL);
    struct asker *a = begin_to_ask(w, w->store, THREAD, ask("n", 1), weir_within(10 * WEIR_MS));
    CHECK_EQ(answer_of(a), WEIR_ETIMEDOUT);
    CHECK_EQ(notices(WEIR_NOTICE_ACQUIRED), 0);
}

STORE_TEST(an_observer_of_nobody_is_told_nothing)
{
    listen_to_notices();
    take(w, ask("n", 9));
    weir_observe(NULL, NULL);
    take(w, ask("n", 9));
    CHECK_EQ(notices(WEIR_NOTICE_ACQUIRED), 1);
    listen_to_notices();
    take(w, ask("n", 9));
    CHECK_EQ(notices(WEIR_NOTICE_ACQUIRED), 2);
}

/* ---- what it may do ---------------------------------------------------------------------------------- */

struct curious {
    struct world *w;
    uint64_t held;
    int depth, told;
};

static void look_around(const struct weir_notice *n, void *arg)
{
    struct curious *c = arg;
    struct weir_lease lease;

    if (n->what != WEIR_NOTICE_ACQUIRED || c->depth++ > 0) {
        c->depth -= n->what == WEIR_NOTICE_ACQUIRED;
        return;
    }
    c->held = held(c->w, n->name);
    lease = take(c->w, ask("inside", 1)); /* of which it is told as well */
    give_back(c->w, "inside", &lease);
    c->told++;
    c->depth--;
}

STORE_TEST(an_observer_may_use_the_store)
{
    struct curious c = {.w = w};

    weir_observe(look_around, &c);
    take(w, ask("n", 2));
    take(w, ask("n", 2));
    weir_observe(NULL, NULL);
    CHECK_EQ(c.told, 2);
    CHECK_EQ(c.held, 2);
    CHECK_EQ(held(w, "inside"), 0);
}
