/* SPDX-License-Identifier: MIT */
/* Ids: drawn by the store or chosen by the caller, who may then ask again. */
#include "named/conformance/world.h"

static struct weir_lease_request ask_as(const char *id, const char *name, uint64_t limit)
{
    struct weir_lease_request request = ask(name, limit);

    request.id = id;
    return request;
}

/* ---- drawn ---------------------------------------------------------------------------- */

STORE_TEST(an_id_is_32_hexadecimal_digits)
{
    struct weir_lease lease = take(w, ask("n", 1));

    CHECK_EQ(strlen(lease.id), WEIR_ID_LENGTH);
    CHECK_EQ(strspn(lease.id, "0123456789abcdef"), WEIR_ID_LENGTH);
}

STORE_TEST(no_two_leases_have_the_same_id)
{
    enum { LEASES = 200 };
    static struct weir_lease lease[LEASES];

    for (int i = 0; i < LEASES; i++) {
        lease[i] = take(w, ask(i % 2 ? "odd" : "even", LEASES));
        for (int j = 0; j < i; j++)
            CHECK(strcmp(lease[i].id, lease[j].id) != 0);
    }
}

STORE_TEST(the_id_of_a_lease_given_back_is_not_drawn_again)
{
    char before[WEIR_ID_LENGTH + 1] = "";

    for (int i = 0; i < 100; i++) {
        struct weir_lease lease = take(w, ask("n", 1));

        CHECK(strcmp(lease.id, before) != 0);
        strcpy(before, lease.id);
        give_back(w, "n", &lease);
    }
}

/* ---- chosen --------------------------------------------------------------------------- */

STORE_TEST(a_lease_has_the_id_that_its_caller_chose)
{
    struct weir_lease one = take(w, ask_as(AN_ID, "n", 2));
    struct weir_lease two = take(w, ask_as("00000000000000000000000000000000", "n", 2));

    CHECK_STR(one.id, AN_ID);
    CHECK_STR(two.id, "00000000000000000000000000000000");
    CHECK_STR(look(w, "n").lease[0].id, AN_ID);
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", "00000000000000000000000000000000"), 0);
}

STORE_TEST(an_id_that_waits_is_shown_as_chosen)
{
    struct weir_lease first = take(w, ask("n", 1));
    struct asker *next = queue_up(w, THREAD, ask_as(AN_ID, "n", 1));

    CHECK_STR(look(w, "n").waiter[0].id, AN_ID);
    give_back(w, "n", &first);
    CHECK_EQ(answer_of(next), 0);
    CHECK_STR(next->lease.id, AN_ID);
}

STORE_TEST(what_is_not_an_id_is_invalid)
{
    static const char *const not_ids[] = {
        "",
        "0",
        "0123456789abcdef0123456789abcde",   /* 31 */
        "0123456789abcdef0123456789abcdef0", /* 33 */
        "0123456789abcdef0123456789abcdeg",
        " 123456789abcdef0123456789abcdef",
        "-123456789abcdef0123456789abcdef",
        "0x23456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcde\n",
        "\377123456789abcdef0123456789abcdef",
    };

    for (size_t i = 0; i < sizeof not_ids / sizeof *not_ids; i++) {
        struct weir_lease_request request = ask_as(not_ids[i], "n", 1);
        struct weir_lease lease = {.slot = 7};

        CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_EINVAL);
        CHECK_EQ(lease.slot, 7);
        CHECK_EQ(weir_lease_release(w->store, "n", not_ids[i]), WEIR_EINVAL);
        CHECK_EQ(weir_store_evict(w->store, "n", not_ids[i]), WEIR_EINVAL);
    }
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(an_id_in_capitals_is_the_same_id)
{
    struct weir_lease lease = take(w, ask_as("ABCDEF0123456789ABCDEF0123456789", "n", 2));

    CHECK_STR(lease.id, "abcdef0123456789abcdef0123456789");
    CHECK_STR(take(w, ask_as(lease.id, "n", 2)).id, lease.id);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(weir_lease_release(w->store, "n", "ABCDEF0123456789abcdef0123456789"), 0);
}

STORE_TEST(the_same_id_under_two_names_is_two_leases)
{
    take(w, ask_as(AN_ID, "one", 1));
    take(w, ask_as(AN_ID, "two", 1));
    CHECK_EQ(weir_lease_release(w->store, "one", AN_ID), 0);
    CHECK_EQ(held(w, "one"), 0);
    CHECK_EQ(held(w, "two"), 1);
    CHECK_EQ(weir_lease_release(w->store, "one", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(weir_lease_release(w->store, "two", AN_ID), 0);
}

STORE_TEST(a_chosen_id_can_be_used_again_for_another_lease)
{
    struct weir_lease first = take(w, ask_as(AN_ID, "n", 2));

    give_back(w, "n", &first);
    struct weir_lease second = take(w, ask_as(AN_ID, "n", 2));
    CHECK(second.token > first.token);
    CHECK_EQ(held(w, "n"), 1);
}

/* ---- asking again while it holds ------------------------------------------------------- */

STORE_TEST(asking_again_for_what_is_held_gives_the_same_lease)
{
    struct weir_lease first = take(w, ask_as(AN_ID, "n", 3));
    struct weir_lease again = take(w, ask_as(AN_ID, "n", 3));

    CHECK_SAME_LEASE(again, first);
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.leases, 1);
    CHECK_EQ(view.stats.held, 1);
    CHECK_EQ(view.stats.granted, 1);
}

STORE_TEST(asking_again_takes_no_more_though_more_is_asked_for)
{
    struct weir_lease_request more = ask_as(AN_ID, "n", 3);
    struct weir_lease first = take(w, ask_as(AN_ID, "n", 3));

    more.weight = 3;
    struct weir_lease again = take(w, more);
    CHECK_SAME_LEASE(again, first);
    CHECK_EQ(held(w, "n"), 1);
}

STORE_TEST(asking_again_for_what_is_held_waits_for_nobody)
{
    struct weir_lease first = take(w, ask_as(AN_ID, "n", 1));

    queue_up(w, THREAD, ask("n", 1));
    struct weir_lease again = take(w, ask_as(AN_ID, "n", 1));
    CHECK_SAME_LEASE(again, first);
    CHECK_EQ(waiting(w, "n"), 1);
    give_back(w, "n", &first);
}

STORE_TEST(what_was_asked_for_twice_is_given_back_once)
{
    take(w, ask_as(AN_ID, "n", 1));
    take(w, ask_as(AN_ID, "n", 1));
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), 0);
    CHECK_EQ(held(w, "n"), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), WEIR_ENOTHELD);
}

/* ---- asking again while it waits -------------------------------------------------------- */

STORE_TEST(asking_again_while_it_waits_takes_no_second_place)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *first = queue_up(w, THREAD, ask_as(AN_ID, "n", 1));

    CHECK_EQ(try_to_take(w->store, ask_as(AN_ID, "n", 1)), WEIR_ETIMEDOUT);
    CHECK_EQ(waiting(w, "n"), 1);
    struct asker *hasty =
        begin_to_ask(w, w->store, THREAD, ask_as(AN_ID, "n", 1), weir_within(20 * WEIR_MS));
    CHECK_EQ(answer_of(hasty), WEIR_ETIMEDOUT);
    CHECK_EQ(waiting(w, "n"), 1);
    CHECK(!is_answered(first));
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(first), 0);
}

static void check_all_who_ask_with_one_id_get_one_lease(struct world *w, enum kind kind)
{
    struct weir_lease holder = take(w, ask("n", 2));
    struct weir_lease other = take(w, ask("n", 2));
    struct asker *first = queue_up(w, kind, ask_as(AN_ID, "n", 2)), *again[5];

    for (int i = 0; i < 5; i++)
        again[i] =
            begin_to_ask(w, w->store, i % 2 ? THREAD : TASK, ask_as(AN_ID, "n", 2), WEIR_FOREVER);
    give_back(w, "n", &holder);
    give_back(w, "n", &other);
    CHECK_EQ(answer_of(first), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(answer_of(again[i]), 0);
        CHECK_SAME_LEASE(again[i]->lease, first->lease);
    }
    CHECK_EQ(held(w, "n"), 1);
}

STORE_TEST(all_who_ask_with_one_id_get_one_lease)
{
    check_all_who_ask_with_one_id_get_one_lease(w, THREAD);
}

STORE_TEST(all_who_ask_with_the_id_of_a_task_get_one_lease)
{
    check_all_who_ask_with_one_id_get_one_lease(w, TASK);
}

STORE_TEST(who_joined_waits_on_when_the_first_gives_up)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *first =
        begin_to_ask(w, w->store, THREAD, ask_as(AN_ID, "n", 1), weir_within(30 * WEIR_MS));
    struct asker *second = begin_to_ask(w, w->store, THREAD, ask_as(AN_ID, "n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(first), WEIR_ETIMEDOUT);
    EVENTUALLY(waiting(w, "n") == 1);
    CHECK(!is_answered(second));
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(second), 0);
    CHECK_STR(second->lease.id, AN_ID);
}

STORE_TEST(a_wait_that_was_joined_keeps_its_place)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *first = queue_up(w, THREAD, ask_as(AN_ID, "n", 1));
    struct asker *behind = queue_up(w, THREAD, ask("n", 1));

    CHECK_EQ(try_to_take(w->store, ask_as(AN_ID, "n", 1)), WEIR_ETIMEDOUT);
    CHECK_STR(look(w, "n").waiter[0].id, AN_ID);
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(first), 0);
    CHECK(!is_answered(behind));
    give_back(w, "n", &first->lease);
    CHECK_EQ(answer_of(behind), 0);
}

STORE_TEST(all_who_wait_with_an_id_are_sent_away_when_it_is_evicted)
{
    take(w, ask("n", 1));
    struct asker *first = queue_up(w, THREAD, ask_as(AN_ID, "n", 1));
    struct asker *again = begin_to_ask(w, w->store, TASK, ask_as(AN_ID, "n", 1), WEIR_FOREVER);

    while (!is_answered(first) || !is_answered(again)) { /* it may join after that */
        int r = weir_store_evict(w->store, "n", AN_ID);

        CHECK(r == 0 || r == WEIR_ENOTHELD);
        test_still_waiting(__FILE__, __LINE__, "true", "both are sent away");
    }
    CHECK_EQ(first->result, WEIR_ECANCELED);
    CHECK_EQ(again->result, WEIR_ECANCELED);
    CHECK_EQ(waiting(w, "n"), 0);
}
