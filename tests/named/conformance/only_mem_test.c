/* SPDX-License-Identifier: MIT */
/* What is so of `mem:` alone: each is a store of its own, and there is one to begin with. */
#include "named/conformance/world.h"

STORE_TEST(two_that_were_opened_are_two_stores)
{
    struct weir_store *other = open_another(w);
    struct weir_lease lease = take(w, ask("n", 1));

    take_from(other, ask("n", 1));
    CHECK_EQ(look_at(other, "n").stats.held, 1);
    CHECK_EQ(weir_lease_release(other, "n", lease.id), WEIR_ENOTHELD);
    weir_store_close(other);
    CHECK_EQ(held(w, "n"), 1);
}

STORE_TEST(any_number_can_be_open)
{
    enum { STORES = 100 };
    struct weir_store *stores[STORES];

    for (int i = 0; i < STORES; i++) {
        stores[i] = open_another(w);
        take_from(stores[i], ask("n", 1));
        take_from(stores[i], ask_ttl("m", 1, LASTING_TTL));
    }
    for (int i = 0; i < STORES; i++)
        weir_store_close(stores[i]);
}

STORE_TEST(no_descriptor_keeps_its_leases_alive)
{
    CHECK_EQ(weir_store_fd(w->store), WEIR_EINVAL);
    CHECK_EQ(weir_store_fd(weir_store_default()), WEIR_EINVAL);
}

/* ---- the default store --------------------------------------------------------------------------- */

static void ask_for_default(void *arg)
{
    *(struct weir_store **)arg = weir_store_default();
}

TEST(the_default_store_is_the_same_for_all)
{
    enum { THREADS = 8 };
    struct weir_store *stores[THREADS];

    for (int i = 0; i < THREADS; i++)
        test_spawn(ask_for_default, &stores[i]);
    test_join_all();
    CHECK(stores[0] != NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(stores[i] == stores[0]);
    CHECK(weir_store_default() == stores[0]);
}

TEST(the_default_store_cannot_be_closed)
{
    struct weir_store *store = weir_store_default();
    struct weir_lease lease = take_from(store, ask("n", 1));

    weir_store_close(store);
    CHECK(weir_store_default() == store);
    CHECK_EQ(look_at(store, "n").stats.held, 1);
    CHECK_EQ(weir_lease_release(store, "n", lease.id), 0);
}

TEST(the_default_store_is_none_of_those_that_were_opened)
{
    struct weir_store *opened;

    CHECK_EQ(weir_store_open("mem:", NULL, &opened), 0);
    CHECK(opened != weir_store_default());
    take_from(opened, ask("n", 1));
    CHECK_EQ(try_to_take(weir_store_default(), ask("n", 1)), 0);
    weir_store_close(opened);
}

static void use_default_in_child(struct world *w)
{
    struct weir_store *parents = w->store, *mine = weir_store_default();

    CHECK(mine != NULL && mine != parents);
    CHECK_EQ(try_to_take(parents, ask("n", 1)), WEIR_ECONTEXT);
    CHECK_EQ(try_to_take(mine, ask("n", 1)), 0);
}

TEST(in_the_child_of_a_fork_the_default_store_is_another)
{
    struct world w = {.store = weir_store_default()};

    take_from(w.store, ask("n", 1));
    in_a_child(&w, use_default_in_child);
    CHECK_EQ(look_at(w.store, "n").stats.held, 1);
}

TEST(without_memory_there_is_no_default_store_until_there_is)
{
    struct weir_store *store;
    int n = 0;

    do {
        test_fail_allocation(++n);
        store = weir_store_default();
    } while (store == NULL);
    test_fail_allocation(0);
    CHECK(n > 1);
    CHECK_EQ(try_to_take(store, ask("n", 1)), 0);
}

TEST(a_store_that_does_not_exist_can_be_closed)
{
    weir_store_close(NULL);
}
