/* SPDX-License-Identifier: MIT */
/* Limits and weights: how much there is, how much one takes, and who may change it. */
#include "named/conformance/world.h"

/* ---- limits ---------------------------------------------------------------------------- */

STORE_TEST(no_more_is_lent_than_the_limit)
{
    struct weir_lease lease[3];

    for (int i = 0; i < 3; i++)
        lease[i] = take(w, ask("n", 3));
    CHECK_EQ(try_to_take(w->store, ask("n", 3)), WEIR_ETIMEDOUT);
    give_back(w, "n", &lease[1]);
    CHECK_EQ(try_to_take(w->store, ask("n", 3)), 0);
}

STORE_TEST(a_new_name_without_a_limit_has_one)
{
    take(w, ask("n", 0));
    CHECK_EQ(look(w, "n").stats.limit, 1);
    CHECK_EQ(try_to_take(w->store, ask("n", 0)), WEIR_ETIMEDOUT);
}

STORE_TEST(without_a_limit_one_takes_what_the_name_has)
{
    take(w, ask("n", 3));
    take(w, ask("n", 0));
    take(w, ask_weight("n", 0, 1));
    CHECK_EQ(look(w, "n").stats.limit, 3);
    CHECK_EQ(try_to_take(w->store, ask("n", 0)), WEIR_ETIMEDOUT);
}

STORE_TEST(who_names_no_limit_is_told_it)
{
    uint64_t limit = 0;
    struct weir_lease_request request = ask("n", 0);

    take(w, ask("n", 3));
    request.ret_limit = &limit;
    take(w, request);
    CHECK_EQ(limit, 3);
    limit = 99;
    request.weight = 2;
    CHECK_EQ(try_to_take(w->store, request), WEIR_ETIMEDOUT);
    CHECK_EQ(limit, 99); /* only with a lease, or a mismatch */
}

STORE_TEST(an_idle_name_keeps_its_limit_for_who_names_none)
{
    struct weir_lease lease = take(w, ask("n", 3));

    give_back(w, "n", &lease);
    take(w, ask("n", 0));
    CHECK_EQ(look(w, "n").stats.limit, 3);
}

STORE_TEST(limit_and_weight_go_up_to_2_to_the_53)
{
    const uint64_t most = UINT64_C(1) << 53;
    struct weir_lease lease = take(w, ask_weight("n", most, most));

    CHECK_EQ(WEIR_LIMIT_MAX, most);
    CHECK_EQ(look(w, "n").stats.limit, most);
    CHECK_EQ(held(w, "n"), most);
    CHECK_EQ(look(w, "n").stats.percent, 100);
    CHECK_EQ(look(w, "n").lease[0].weight, most);
    CHECK_EQ(try_to_take(w->store, ask("n", most)), WEIR_ETIMEDOUT);
    give_back(w, "n", &lease);
    CHECK_EQ(held(w, "n"), 0);
}

STORE_TEST(a_limit_above_2_to_the_53_is_invalid)
{
    static const uint64_t too_much[] = {WEIR_LIMIT_MAX + 1, UINT64_C(1) << 63, UINT64_MAX};

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(try_to_take(w->store, ask("n", too_much[i])), WEIR_EINVAL);
        CHECK_EQ(try_to_take(w->store, ask_weight("n", 0, too_much[i])), WEIR_EINVAL);
        CHECK_EQ(weir_store_resize(w->store, "n", too_much[i]), WEIR_EINVAL);
    }
    CHECK_EQ(names_in(w->store), 0);
}

/* ---- weights ---------------------------------------------------------------------------- */

STORE_TEST(a_lease_takes_as_much_as_it_weighs)
{
    struct weir_lease heavy = take(w, ask_weight("n", 5, 3));

    CHECK_EQ(held(w, "n"), 3);
    CHECK_EQ(try_to_take(w->store, ask_weight("n", 5, 3)), WEIR_ETIMEDOUT);
    take(w, ask_weight("n", 5, 2));
    CHECK_EQ(held(w, "n"), 5);
    CHECK_EQ(look(w, "n").lease[0].weight, 3);
    CHECK_EQ(look(w, "n").lease[1].weight, 2);
    give_back(w, "n", &heavy);
    CHECK_EQ(held(w, "n"), 2);
}

STORE_TEST(without_a_weight_a_lease_takes_one)
{
    take(w, ask_weight("n", 2, 0));
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(look(w, "n").lease[0].weight, 1);
}

STORE_TEST(a_weight_above_the_limit_is_invalid_at_once)
{
    struct weir_lease_request request = ask_weight("n", 3, 4);
    struct weir_lease lease = {.slot = 7};

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_EINVAL);
    take(w, ask_weight("n", 3, 3));
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_EINVAL);
    request.limit = 0; /* it is the name's limit that counts */
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_EINVAL);
    CHECK_EQ(lease.slot, 7);
    CHECK_EQ(look(w, "n").stats.leases, 1);
    CHECK_EQ(waiting(w, "n"), 0);
}

STORE_TEST(a_new_name_has_no_room_for_a_weight_of_two)
{
    CHECK_EQ(try_to_take(w->store, ask_weight("n", 0, 2)), WEIR_EINVAL);
}

/* ---- another limit than the name has ------------------------------------------------------- */

STORE_TEST(a_name_in_use_does_not_change_its_limit_for_who_asks)
{
    uint64_t limit = 0;
    struct weir_lease_request other = ask("n", 3);
    struct weir_lease lease = {.slot = 7};

    take(w, ask("n", 2));
    other.ret_limit = &limit;
    CHECK_EQ(weir_lease_acquire(w->store, &other, WEIR_FOREVER, &lease), WEIR_EMISMATCH);
    CHECK_EQ(limit, 2);
    CHECK_EQ(lease.slot, 7);
    CHECK_EQ(look(w, "n").stats.limit, 2);
    CHECK_EQ(held(w, "n"), 1);
    other.ret_limit = NULL; /* who does not want to know */
    CHECK_EQ(try_to_take(w->store, other), WEIR_EMISMATCH);
    other.limit = 1;
    CHECK_EQ(try_to_take(w->store, other), WEIR_EMISMATCH);
}

STORE_TEST(an_idle_name_takes_the_limit_that_is_asked_for)
{
    uint64_t limit = 99;
    struct weir_lease_request other = ask("n", 3);
    struct weir_lease lease = take(w, ask("n", 2));

    give_back(w, "n", &lease);
    other.ret_limit = &limit;
    take(w, other);
    CHECK_EQ(look(w, "n").stats.limit, 3);
    CHECK_EQ(limit, 3);
}

STORE_TEST(who_asks_to_resize_gives_the_name_its_limit)
{
    struct weir_lease_request more = ask("n", 3);

    more.flags = WEIR_LEASE_RESIZE;
    take(w, ask("n", 1));
    struct weir_lease lease = take(w, more);
    CHECK_EQ(lease.slot, 1);
    CHECK_EQ(look(w, "n").stats.limit, 3);
    CHECK_EQ(held(w, "n"), 2);
}

STORE_TEST(who_asks_to_resize_serves_those_who_wait_first)
{
    struct weir_lease_request more = ask("n", 3);

    more.flags = WEIR_LEASE_RESIZE;
    take(w, ask("n", 1));
    struct asker *a = queue_up(w, THREAD, ask("n", 1)), *b = queue_up(w, TASK, ask("n", 1));
    CHECK_EQ(try_to_take(w->store, more), WEIR_ETIMEDOUT); /* there was room for those two */
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(answer_of(b), 0);
    CHECK_EQ(look(w, "n").stats.limit, 3);
}

STORE_TEST(who_asks_to_resize_for_more_than_that_has_changed_nothing)
{
    struct weir_lease_request too_heavy = ask_weight("n", 2, 3);

    too_heavy.flags = WEIR_LEASE_RESIZE;
    take(w, ask_weight("n", 5, 5));
    struct asker *waiter = queue_up(w, THREAD, ask_weight("n", 5, 5));
    CHECK_EQ(try_to_take(w->store, too_heavy), WEIR_EINVAL);
    CHECK_EQ(look(w, "n").stats.limit, 5);
    CHECK(!is_answered(waiter));
    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
}

/* ---- resize ---------------------------------------------------------------------------------- */

STORE_TEST(resize_makes_a_new_name)
{
    CHECK_EQ(weir_store_resize(w->store, "n", 7), 0);
    struct view view = look(w, "n");
    CHECK(view.there);
    CHECK_EQ(view.stats.limit, 7);
    CHECK_EQ(view.stats.held, 0);
    take(w, ask("n", 0));
    CHECK_EQ(look(w, "n").stats.limit, 7);
}

STORE_TEST(resize_to_nothing_is_invalid)
{
    CHECK_EQ(weir_store_resize(w->store, "n", 0), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
    take(w, ask("n", 2));
    CHECK_EQ(weir_store_resize(w->store, "n", 0), WEIR_EINVAL);
    CHECK_EQ(look(w, "n").stats.limit, 2);
}

STORE_TEST(growing_serves_those_who_wait_in_order)
{
    struct asker *a[4];

    take(w, ask("n", 1));
    for (int i = 0; i < 4; i++)
        a[i] = queue_up(w, i % 2 ? TASK : THREAD, ask("n", 1));
    CHECK_EQ(weir_store_resize(w->store, "n", 3), 0);
    CHECK_EQ(answer_of(a[0]), 0);
    CHECK_EQ(answer_of(a[1]), 0);
    CHECK_EQ(waiting(w, "n"), 2);
    CHECK(!is_answered(a[2]) && !is_answered(a[3]));
    CHECK_EQ(weir_store_resize(w->store, "n", 5), 0);
    CHECK_EQ(answer_of(a[2]), 0);
    CHECK_EQ(answer_of(a[3]), 0);
}

STORE_TEST(growing_serves_many_at_once)
{
    enum { MANY = 40 };
    struct asker *a[MANY];

    take(w, ask("n", 1));
    for (int i = 0; i < MANY; i++)
        a[i] = queue_up(w, TASK, ask("n", 1));
    CHECK_EQ(weir_store_resize(w->store, "n", MANY + 1), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(answer_of(a[i]), 0);
    CHECK_EQ(held(w, "n"), MANY + 1);
}

STORE_TEST(shrinking_revokes_nothing)
{
    struct weir_lease lease[3];

    for (int i = 0; i < 3; i++)
        lease[i] = take(w, ask("n", 3));
    CHECK_EQ(weir_store_resize(w->store, "n", 1), 0);
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.limit, 1);
    CHECK_EQ(view.stats.held, 3);
    CHECK_EQ(view.stats.percent, 300);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
        give_back(w, "n", &lease[i]);
    }
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), 0);
}

STORE_TEST(who_waits_for_more_than_the_new_limit_is_told)
{
    struct weir_lease lease = take(w, ask_weight("n", 4, 4));
    struct asker *fits = queue_up(w, THREAD, ask_weight("n", 4, 2));
    struct asker *too_heavy = queue_up(w, THREAD, ask_weight("n", 4, 3));
    struct asker *task_too_heavy = queue_up(w, TASK, ask_weight("n", 4, 4));

    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    CHECK_EQ(answer_of(too_heavy), WEIR_EINVAL);
    CHECK_EQ(answer_of(task_too_heavy), WEIR_EINVAL);
    CHECK(!is_answered(fits));
    CHECK_EQ(waiting(w, "n"), 1);
    give_back(w, "n", &lease);
    CHECK_EQ(answer_of(fits), 0);
}

STORE_TEST(when_a_shrink_sends_away_the_head_those_behind_it_are_served)
{
    struct weir_lease lease = take(w, ask("n", 4));
    struct asker *heavy = queue_up(w, THREAD, ask_weight("n", 4, 4));
    struct asker *light = queue_up(w, THREAD, ask("n", 4));

    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    CHECK_EQ(answer_of(heavy), WEIR_EINVAL);
    CHECK_EQ(answer_of(light), 0);
    give_back(w, "n", &lease);
}

STORE_TEST(those_who_wait_for_too_much_behind_one_who_fits_are_told_at_once)
{
    enum { MANY = 40 };
    struct asker *a[MANY];

    take(w, ask_weight("n", 4, 4));
    struct asker *fits = queue_up(w, TASK, ask_weight("n", 4, 2));
    for (int i = 0; i < MANY; i++)
        a[i] = queue_up(w, i % 4 == 0 ? THREAD : TASK, ask_weight("n", 4, 4));
    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(answer_of(a[i]), WEIR_EINVAL);
    CHECK(!is_answered(fits));
    CHECK_EQ(waiting(w, "n"), 1);
}

STORE_TEST(many_who_wait_for_too_much_are_told_at_once)
{
    enum { MANY = 40 };
    struct asker *a[MANY];

    take(w, ask_weight("n", 4, 4));
    for (int i = 0; i < MANY; i++)
        a[i] = queue_up(w, i % 4 == 0 ? THREAD : TASK, ask_weight("n", 4, 4));
    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(answer_of(a[i]), WEIR_EINVAL);
    CHECK_EQ(waiting(w, "n"), 0);
}
