/* SPDX-License-Identifier: MIT */
/* Slots, which no two holders share, and tokens, which only grow. */
#include "named/conformance/world.h"

/* ---- slots ------------------------------------------------------------------------------ */

STORE_TEST(slots_are_given_from_zero)
{
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(take(w, ask("n", 5)).slot, i);
}

STORE_TEST(the_lowest_free_slot_is_given)
{
    struct weir_lease lease[5];

    for (int i = 0; i < 5; i++)
        lease[i] = take(w, ask("n", 5));
    give_back(w, "n", &lease[3]);
    give_back(w, "n", &lease[1]);
    CHECK_EQ(take(w, ask("n", 5)).slot, 1);
    CHECK_EQ(take(w, ask("n", 5)).slot, 3);
}

STORE_TEST(a_lease_has_one_slot_whatever_it_weighs)
{
    CHECK_EQ(take(w, ask_weight("n", 10, 4)).slot, 0);
    CHECK_EQ(take(w, ask_weight("n", 10, 5)).slot, 1);
    CHECK_EQ(take(w, ask_weight("n", 10, 1)).slot, 2);
}

STORE_TEST(each_name_has_slots_of_its_own)
{
    CHECK_EQ(take(w, ask("one", 2)).slot, 0);
    CHECK_EQ(take(w, ask("two", 2)).slot, 0);
    CHECK_EQ(take(w, ask("one", 2)).slot, 1);
}

STORE_TEST(a_slot_does_not_change_while_it_is_held)
{
    struct weir_lease a = take(w, ask("n", 3)), b = take(w, ask("n", 3));

    give_back(w, "n", &a);
    take(w, ask("n", 3));
    struct view view = look(w, "n"); /* oldest first */
    CHECK_STR(view.lease[0].id, b.id);
    CHECK_EQ(view.lease[0].slot, 1);
    CHECK_EQ(view.lease[1].slot, 0);
}

STORE_TEST(who_waited_gets_the_slot_that_came_free)
{
    struct weir_lease lease[3];

    for (int i = 0; i < 3; i++)
        lease[i] = take(w, ask("n", 3));
    struct asker *a = queue_up(w, THREAD, ask("n", 3)), *b = queue_up(w, TASK, ask("n", 3));
    give_back(w, "n", &lease[2]);
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(a->lease.slot, 2);
    give_back(w, "n", &lease[1]);
    CHECK_EQ(answer_of(b), 0);
    CHECK_EQ(b->lease.slot, 1);
}

STORE_TEST(those_served_together_get_different_slots)
{
    struct weir_lease all = take(w, ask_weight("n", 4, 4));
    struct asker *a[4];
    unsigned seen = 0;

    for (int i = 0; i < 4; i++)
        a[i] = queue_up(w, i % 2 ? TASK : THREAD, ask("n", 4));
    give_back(w, "n", &all);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(answer_of(a[i]), 0);
        seen |= 1U << a[i]->lease.slot;
    }
    CHECK_EQ(seen, 15);
}

STORE_TEST(after_a_shrink_holders_keep_their_slots_and_low_ones_are_given)
{
    struct weir_lease lease[3];

    for (int i = 0; i < 3; i++)
        lease[i] = take(w, ask("n", 3));
    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    give_back(w, "n", &lease[0]);
    CHECK_EQ(try_to_take(w->store, ask("n", 2)), WEIR_ETIMEDOUT);
    give_back(w, "n", &lease[1]);
    CHECK_EQ(look(w, "n").lease[0].slot, 2);
    CHECK_EQ(take(w, ask("n", 2)).slot, 0);
    give_back(w, "n", &lease[2]);
    CHECK_EQ(take(w, ask("n", 2)).slot, 1);
}

/* More than any one word or page of a map of slots holds. */
STORE_TEST(a_thousand_holders_have_a_thousand_slots)
{
    enum { HOLDERS = 1000 };
    static struct weir_lease lease[HOLDERS];

    for (uint32_t i = 0; i < HOLDERS; i++) {
        lease[i] = take(w, ask("n", HOLDERS));
        CHECK_EQ(lease[i].slot, i);
    }
    CHECK_EQ(try_to_take(w->store, ask("n", HOLDERS)), WEIR_ETIMEDOUT);
    CHECK_EQ(look(w, "n").stats.leases, HOLDERS);
    for (int i = HOLDERS - 1; i >= 0; i -= 7)
        give_back(w, "n", &lease[i]);
    for (uint32_t i = (HOLDERS - 1) % 7; i < HOLDERS; i += 7)
        CHECK_EQ(take(w, ask("n", HOLDERS)).slot, i);
}

/* ---- tokens ------------------------------------------------------------------------------- */

STORE_TEST(tokens_grow_with_every_grant)
{
    uint64_t last = 0;

    for (int i = 0; i < 50; i++) {
        struct weir_lease lease = take(w, ask("n", 60));

        CHECK(lease.token > last);
        last = lease.token;
        if (i % 2)
            give_back(w, "n", &lease);
    }
}

STORE_TEST(who_waited_has_a_greater_token_than_who_came_before)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct asker *a = queue_up(w, THREAD, ask("n", 1)), *b = queue_up(w, TASK, ask("n", 1));

    give_back(w, "n", &lease);
    CHECK_EQ(answer_of(a), 0);
    CHECK(a->lease.token > lease.token);
    give_back(w, "n", &a->lease);
    CHECK_EQ(answer_of(b), 0);
    CHECK(b->lease.token > a->lease.token);
}

STORE_TEST(after_a_loss_the_next_holder_has_a_greater_token)
{
    struct weir_lease late = take(w, ask_ttl("n", 1, BRIEF_TTL));
    struct asker *next = begin_to_ask(w, w->store, THREAD, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(next), 0);
    CHECK(next->lease.token > late.token);
}

STORE_TEST(a_renewed_lease_keeps_its_token)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL));
    uint64_t token = lease.token;

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, 2 * LASTING_TTL), 0);
    CHECK_EQ(lease.token, token);
    CHECK_EQ(look(w, "n").lease[0].token, token);
}

STORE_TEST(tokens_grow_also_when_the_name_was_forgotten_and_made_again)
{
    uint64_t last = 0;

    reopen_forgetful(w, WEIR_US);
    for (int i = 0; i < 20; i++) {
        struct weir_lease lease;

        for (int grants = 0; grants < 50; grants++) { /* which must not let them overtake time */
            lease = take(w, ask("n", 1));
            CHECK(lease.token > last);
            last = lease.token;
            give_back(w, "n", &lease);
        }
        EVENTUALLY(!look(w, "n").there);
    }
}
