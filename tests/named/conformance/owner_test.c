/* SPDX-License-Identifier: MIT */
/* Ownership: who may give a lease back, and with whom it ends. */
#include <unistd.h>

#include "named/conformance/world.h"

static struct weir_lease_request ask_detached(int64_t ttl_ns)
{
    struct weir_lease_request request = ask_ttl("n", 1, ttl_ns);

    request.flags = WEIR_LEASE_DETACHED;
    return request;
}

static int after(struct asker *a)
{
    EVENTUALLY(__atomic_load_n(&a->after, __ATOMIC_ACQUIRE) != NOT_YET);
    return a->after;
}

/* ---- giving back ---------------------------------------------------------------------------- */

STORE_TEST(giving_back_frees_what_was_taken)
{
    struct weir_lease lease = take(w, ask_weight("n", 5, 4));

    give_back(w, "n", &lease);
    CHECK_EQ(held(w, "n"), 0);
    CHECK_EQ(look(w, "n").stats.leases, 0);
    CHECK_EQ(try_to_take(w->store, ask_weight("n", 5, 5)), 0);
}

STORE_TEST(giving_back_twice_is_told_and_frees_nobody_else)
{
    struct weir_lease lease = take(w, ask("n", 1));

    give_back(w, "n", &lease);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    struct weir_lease next = take(w, ask("n", 1)); /* in the same slot */
    CHECK_EQ(next.slot, lease.slot);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(look(w, "n").stats.released, 1);
}

STORE_TEST(what_was_never_held_cannot_be_given_back)
{
    take(w, ask("n", 1));
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(weir_lease_release(w->store, "never seen", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(held(w, "n"), 1);
    CHECK(!look(w, "never seen").there);
}

STORE_TEST(who_waits_has_nothing_to_give_back)
{
    struct weir_lease_request request = ask("n", 1);

    take(w, request);
    request.id = AN_ID;
    queue_up(w, TASK, request);
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(waiting(w, "n"), 1);
}

static void give_back_in_thread(void *arg)
{
    struct asker *a = arg;

    CHECK_EQ(weir_lease_release(a->store, "n", a->lease.id), 0);
}

static int give_back_in_task(void *arg)
{
    give_back_in_thread(arg);
    return 0;
}

STORE_TEST(any_thread_or_task_may_give_back)
{
    struct asker *thread = begin_to_ask(w, w->store, THREAD, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(thread), 0);
    CHECK_EQ(weir_run(NULL, give_back_in_task, thread), 0);
    struct asker *task = begin_to_ask(w, w->store, TASK, ask("n", 1), WEIR_FOREVER);
    CHECK_EQ(answer_of(task), 0);
    test_spawn(give_back_in_thread, task);
    test_join_all();
    CHECK_EQ(held(w, "n"), 0);
    leave(task);
    CHECK_EQ(look(w, "n").stats.released, 2); /* and its end gave nothing back */
}

STORE_TEST(a_lease_is_its_name_and_id_and_needs_no_more)
{
    struct weir_lease lease = take(w, ask("n", 1));
    char id[WEIR_ID_LENGTH + 1], name[] = {'n', '\0'};

    strcpy(id, lease.id);
    memset(&lease, 0xff, sizeof lease);
    CHECK_EQ(weir_lease_release(w->store, name, id), 0);
}

/* ---- the end of the owner --------------------------------------------------------------------- */

STORE_TEST(a_lease_outlives_the_thread_that_took_it)
{
    struct asker *a = begin_to_ask(w, w->store, THREAD, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    test_join_all();
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(look(w, "n").lease[0].pid, getpid());
    give_back(w, "n", &a->lease);
}

STORE_TEST(a_lease_ends_with_the_task_that_took_it)
{
    struct asker *a = begin_to_ask(w, w->store, TASK, ask_weight("n", 3, 2), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(held(w, "n"), 2);
    leave(a);
    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(weir_lease_release(w->store, "n", a->lease.id), WEIR_ENOTHELD);
}

STORE_TEST(a_lease_that_was_waited_for_ends_with_its_task_and_serves_the_next)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *task = queue_up(w, TASK, ask("n", 1)), *next = queue_up(w, THREAD, ask("n", 1));

    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(task), 0);
    CHECK(!is_answered(next));
    leave(task);
    CHECK_EQ(answer_of(next), 0);
}

STORE_TEST(a_lease_ends_with_a_task_that_was_cancelled)
{
    struct asker *a = begin_to_ask(w, w->store, TASK, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(weir_task_cancel(a->task), 0);
    CHECK_EQ(after(a), WEIR_ECANCELED);
    EVENTUALLY(held(w, "n") == 0);
}

static int take_three_of_many_names(void *arg)
{
    struct world *w = arg;

    take(w, ask("a", 2));
    take(w, ask("b", 1));
    take(w, ask_ttl("a", 2, LASTING_TTL));
    return 0;
}

STORE_TEST(a_task_that_ends_gives_all_its_leases_back)
{
    CHECK_EQ(weir_run(NULL, take_three_of_many_names, w), 0);
    EVENTUALLY(held(w, "a") == 0);
    EVENTUALLY(held(w, "b") == 0);
}

static int take_two_with_one_id(void *arg)
{
    struct world *w = arg;
    struct weir_lease_request request = ask("a", 1);

    request.id = AN_ID;
    take(w, request);
    request.name = "b";
    take(w, request);
    CHECK_EQ(weir_lease_release(w->store, "a", AN_ID), 0);
    CHECK_EQ(held(w, "b"), 1);
    return 0;
}

STORE_TEST(a_task_that_ends_gives_back_what_it_has_left_with_the_same_id)
{
    CHECK_EQ(weir_run(NULL, take_two_with_one_id, w), 0);
    EVENTUALLY(held(w, "b") == 0);
}

static int give_back_what_is_not(void *arg)
{
    struct world *w = arg;
    struct weir_lease lease = take(w, ask("a", 1));

    take(w, ask("b", 2));
    CHECK_EQ(weir_lease_release(w->store, "b", lease.id), WEIR_ENOTHELD);
    return 0;
}

STORE_TEST(a_lease_that_was_not_given_back_ends_with_its_task)
{
    CHECK_EQ(weir_run(NULL, give_back_what_is_not, w), 0);
    EVENTUALLY(held(w, "a") == 0);
}

static int give_one_task_another(void *arg)
{
    struct world *w = arg;
    struct weir_lease mine = take(w, ask("mine", 1));
    struct weir_task task;
    int result;

    CHECK_EQ(weir_task_spawn(take_three_of_many_names, w, &task), 0);
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
    while (held(w, "a") > 0 || held(w, "b") > 0)
        CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(held(w, "mine"), 1); /* it is not that one's */
    give_back(w, "mine", &mine);
    return result;
}

STORE_TEST(a_task_that_ends_leaves_the_leases_of_others)
{
    CHECK_EQ(weir_run(NULL, give_one_task_another, w), 0);
}

/* ---- detached ----------------------------------------------------------------------------------- */

STORE_TEST(a_detached_lease_outlives_its_task)
{
    struct asker *a = begin_to_ask(w, w->store, TASK, ask_detached(LASTING_TTL), WEIR_FOREVER);
    struct weir_runtime_stats stats;

    CHECK_EQ(answer_of(a), 0);
    leave(a);
    do
        weir_runtime_stats(w->runtime, &stats);
    while (stats.live > 0);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(look(w, "n").lease[0].pid, 0);
    give_back(w, "n", &a->lease);
}

STORE_TEST(a_detached_lease_ends_at_its_ttl)
{
    take(w, ask_detached(BRIEF_TTL));
    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(look(w, "n").stats.expired, 1);
}

STORE_TEST(a_detached_lease_can_be_renewed_and_evicted)
{
    struct weir_lease lease = take(w, ask_detached(LASTING_TTL));

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, 2 * LASTING_TTL), 0);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    CHECK_EQ(held(w, "n"), 0);
}

STORE_TEST(a_detached_lease_needs_a_ttl)
{
    CHECK_EQ(try_to_take(w->store, ask_detached(0)), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(a_detached_lease_has_nobody_to_be_renewed_for_or_told)
{
    struct loss loss = {.times = 0};
    struct weir_lease_request renewed = ask_detached(LASTING_TTL), told = renewed;

    renewed.flags |= WEIR_LEASE_RENEW;
    CHECK_EQ(try_to_take(w->store, renewed), WEIR_EINVAL);
    told.on_lost = note_loss;
    told.arg = &loss;
    CHECK_EQ(try_to_take(w->store, told), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(a_detached_lease_can_be_waited_for)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *a = queue_up(w, TASK, ask_detached(LASTING_TTL));

    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(a), 0);
    leave(a);
    CHECK_EQ(held(w, "n"), 1);
}

/* ---- for the length of a block --------------------------------------------------------------------- */

STORE_TEST(a_scoped_lease_is_held_in_its_block_and_given_back_at_its_end)
{
    struct weir_store *store = w->store;
    struct weir_lease_request request = ask("n", 1);
    uint64_t token = 0;
    int runs = 0;

    WEIR_SCOPED_LEASE(lease, store, &request) {
        CHECK_EQ(held(w, "n"), 1);
        CHECK_STR(look(w, "n").lease[0].id, lease->id);
        token = lease->token;
        runs++;
    }
    CHECK_EQ(runs, 1);
    CHECK(token > 0);
    CHECK_EQ(held(w, "n"), 0);
    CHECK_EQ(look(w, "n").stats.released, 1);
}

static int return_from_inside(struct world *w, const struct weir_lease_request *request)
{
    struct weir_store *store = w->store;

    WEIR_SCOPED_LEASE(lease, store, request) {
        return (int)held(w, "n") + (int)lease->slot;
    }
    return -1;
}

STORE_TEST(a_scoped_lease_is_given_back_by_return)
{
    struct weir_lease_request request = ask("n", 1);

    CHECK_EQ(return_from_inside(w, &request), 1);
    CHECK_EQ(held(w, "n"), 0);
}

STORE_TEST(a_scoped_lease_is_given_back_by_break_and_continue)
{
    struct weir_store *store = w->store;
    struct weir_lease_request request = ask("n", 1);
    int rounds = 0;

    for (int i = 0; i < 2; i++) {
        WEIR_SCOPED_LEASE(lease, store, &request) {
            CHECK_EQ(lease->slot, 0);
            if (i == 0)
                break;
            continue;
        }
        CHECK_EQ(held(w, "n"), 0);
        rounds++; /* the block is left, not the loop around it */
    }
    CHECK_EQ(rounds, 2);
    CHECK_EQ(look(w, "n").stats.granted, 2);
}

STORE_TEST(a_scoped_lease_is_given_back_by_goto)
{
    struct weir_store *store = w->store;
    struct weir_lease_request request = ask("n", 1);
    bool inside = false;

    WEIR_SCOPED_LEASE(lease, store, &request) {
        inside = lease->slot == 0;
        if (inside)
            goto out;
        CHECK(false);
    }
out:
    CHECK(inside);
    CHECK_EQ(held(w, "n"), 0);
}

STORE_TEST(scoped_leases_nest)
{
    struct weir_store *store = w->store;
    struct weir_lease_request request = ask("n", 2);

    WEIR_SCOPED_LEASE(outer, store, &request) {
        WEIR_SCOPED_LEASE(inner, store, &request) {
            CHECK_EQ(outer->slot, 0);
            CHECK_EQ(inner->slot, 1);
        }
        CHECK_EQ(held(w, "n"), 1);
    }
    CHECK_EQ(held(w, "n"), 0);
}

STORE_TEST(the_block_of_a_scoped_lease_that_cannot_be_had_is_not_run)
{
    struct weir_store *store = w->store;
    struct weir_lease_request too_heavy = ask_weight("n", 1, 2);

    WEIR_SCOPED_LEASE(lease, store, &too_heavy) {
        CHECK_EQ(lease->slot, UINT32_MAX);
        CHECK(false);
    }
}

static void take_it_scoped(void *arg)
{
    struct asker *a = arg;
    struct weir_store *store = a->store;

    WEIR_SCOPED_LEASE(lease, store, &a->request) {
        a->lease = *lease;
    }
}

STORE_TEST(a_scoped_lease_is_waited_for)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker a = {.store = w->store, .request = ask("n", 1)};

    test_spawn(take_it_scoped, &a);
    EVENTUALLY(waiting(w, "n") == 1);
    give_back(w, "n", &holder);
    test_join_all();
    CHECK(a.lease.token > holder.token);
    CHECK_EQ(held(w, "n"), 0);
}
