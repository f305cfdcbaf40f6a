/* SPDX-License-Identifier: MIT */
/* Every allocation fails once: the call says so, and nothing is lost. */
#include "named/conformance/world.h"

STORE_TEST(a_store_that_cannot_be_opened_for_want_of_memory_says_so)
{
    struct weir_store *store = NULL;
    int n = 0, r;

    do {
        CHECK(store == NULL);
        test_fail_allocation(++n);
        r = weir_store_open(w->uri, NULL, &store);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(r, 0);
    CHECK(n > 1);
    take_from(store, ask("n", 1));
    weir_store_close(store);
}

/* Ask with the first allocation failing, then the second, until none does. */
static int ask_in_want(struct world *w, struct weir_lease_request request,
                       struct weir_deadline deadline, struct weir_lease *lease)
{
    uint64_t before = held(w, request.name);
    int n = 0, r;

    do {
        test_fail_allocation(++n);
        lease->slot = 7;
        r = weir_lease_acquire(w->store, &request, deadline, lease);
        test_fail_allocation(0);
        CHECK(r != WEIR_ENOMEM || (held(w, request.name) == before && lease->slot == 7));
        CHECK_EQ(waiting(w, request.name), 0);
    } while (r == WEIR_ENOMEM);
    CHECK(r < 0 || held(w, request.name) == before + 1);
    return r;
}

STORE_TEST(a_lease_of_a_new_name_is_had_or_not)
{
    struct weir_lease lease;

    CHECK_EQ(ask_in_want(w, ask("n", 1), WEIR_FOREVER, &lease), 0);
    give_back(w, "n", &lease);
}

STORE_TEST(leases_of_a_name_are_had_or_not_however_many)
{
    struct weir_lease lease;

    for (uint32_t i = 0; i < 200; i++) {
        CHECK_EQ(ask_in_want(w, ask("n", 200), WEIR_FOREVER, &lease), 0);
        CHECK_EQ(lease.slot, i);
    }
    CHECK_EQ(held(w, "n"), 200);
}

STORE_TEST(leases_of_many_names_are_had_or_not)
{
    static char names[100][8];
    struct weir_lease lease;

    for (int i = 0; i < 100; i++) {
        names[i][0] = 'n';
        names[i][1] = (char)('0' + i / 10);
        names[i][2] = (char)('0' + i % 10);
        CHECK_EQ(ask_in_want(w, ask(names[i], 1), WEIR_FOREVER, &lease), 0);
    }
    CHECK_EQ(names_in(w->store), 100);
}

static int take_with_everything(void *arg)
{
    static struct loss loss;
    struct world *w = arg;
    struct weir_lease_request request = ask_ttl("n", 1, LASTING_TTL);
    struct weir_lease lease;

    request.flags = WEIR_LEASE_RENEW | WEIR_LEASE_CANCEL_HOLDER;
    request.on_lost = note_loss;
    request.arg = &loss;
    request.label = "everything";
    CHECK_EQ(ask_in_want(w, request, WEIR_FOREVER, &lease), 0);
    CHECK_EQ(losses(&loss), 0);
    give_back(w, "n", &lease);
    return weir_task_yield();
}

STORE_TEST(a_lease_with_everything_is_had_or_not)
{
    CHECK_EQ(weir_run(NULL, take_with_everything, w), 0);
}

STORE_TEST(a_wait_is_begun_or_not)
{
    struct weir_lease lease;

    take(w, ask("n", 1));
    CHECK_EQ(ask_in_want(w, ask("n", 1), weir_within(50 * WEIR_MS), &lease), WEIR_ETIMEDOUT);
    CHECK_EQ(look(w, "n").stats.leases, 1);
}

static int wait_in_want(void *arg)
{
    struct weir_lease lease;

    return ask_in_want(arg, ask("n", 1), weir_within(50 * WEIR_MS), &lease);
}

STORE_TEST(a_wait_of_a_task_is_begun_or_not)
{
    take(w, ask("n", 1));
    CHECK_EQ(weir_run(NULL, wait_in_want, w), WEIR_ETIMEDOUT);
    CHECK_EQ(look(w, "n").stats.leases, 1);
}

static int take_in_want(void *arg)
{
    struct world *w = arg;
    struct weir_lease lease;

    CHECK_EQ(ask_in_want(w, ask("n", 1), WEIR_FOREVER, &lease), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), 0);
    return ask_in_want(w, ask("n", 1), WEIR_FOREVER, &lease);
}

STORE_TEST(a_lease_of_a_task_is_had_or_not_and_ends_with_it)
{
    CHECK_EQ(weir_run(NULL, take_in_want, w), 0);
    EVENTUALLY(held(w, "n") == 0);
}

static int count_names(const struct weir_name_stats *stats, void *arg)
{
    CHECK_EQ(stats->leases, 1);
    ++*(int *)arg;
    return 0;
}

STORE_TEST(a_visit_shows_all_or_says_that_it_could_not)
{
    int failed = 0;

    for (int i = 0; i < 20; i++)
        take(w, ask((char[]){(char)('a' + i), '\0'}, 1));
    for (int n = 1; n < 10; n++) { /* some it can do without */
        int seen = 0, r;

        test_fail_allocation(n);
        r = weir_store_visit(w->store, count_names, &seen);
        test_fail_allocation(0);
        CHECK(r == WEIR_ENOMEM || (r == 0 && seen == 20));
        failed += r < 0;
    }
    CHECK(failed > 0);
}

STORE_TEST(a_descriptor_is_had_or_not)
{
    struct weir_lease lease = take(w, ask("n", 1));
    int n = 0, r;

    do {
        test_fail_allocation(++n);
        r = weir_lease_lost_fd(w->store, "n", &lease);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK(r >= 0);
    give_back(w, "n", &lease);
}

STORE_TEST(a_new_name_is_made_by_a_resize_or_not)
{
    int n = 0, r;

    do {
        test_fail_allocation(++n);
        r = weir_store_resize(w->store, "n", 5);
        test_fail_allocation(0);
        CHECK_EQ(held(w, "n"), 0);
    } while (r == WEIR_ENOMEM);
    CHECK_EQ(r, 0);
    CHECK_EQ(look(w, "n").stats.limit, 5);
}

STORE_TEST(what_needs_no_memory_works_without)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL));

    test_fail_allocation(1);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, LASTING_TTL), 0);
    CHECK_EQ(weir_store_resize(w->store, "n", 2), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    test_fail_allocation(0);
}
