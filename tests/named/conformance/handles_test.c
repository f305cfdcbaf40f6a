/* SPDX-License-Identifier: MIT */
/* Two handles of one URI, for stores that are more than one of them. */
#include <poll.h>

#include "named/conformance/world.h"

STORE_TEST(through_each_handle_the_same_name_is_the_same_semaphore)
{
    struct weir_store *other = open_another(w);
    struct weir_lease lease = take(w, ask("n", 2));

    CHECK_EQ(take_from(other, ask("n", 2)).slot, 1);
    CHECK_EQ(try_to_take(other, ask("n", 2)), WEIR_ETIMEDOUT);
    CHECK_EQ(try_to_take(w->store, ask("n", 2)), WEIR_ETIMEDOUT);
    CHECK_EQ(look_at(other, "n").stats.held, 2);
    CHECK_STR(look_at(other, "n").lease[0].id, lease.id);
    weir_store_close(other);
}

STORE_TEST(what_one_handle_took_another_may_give_back_renew_or_evict)
{
    struct weir_store *other = open_another(w);
    struct weir_lease a = take(w, ask("n", 3)), b = take(w, ask("n", 3)), c = take(w, ask("n", 3));

    CHECK_EQ(weir_lease_renew(other, "n", &a, LASTING_TTL), 0);
    CHECK(a.expires_at_ns <= weir_now_ns() + LASTING_TTL);
    CHECK_EQ(weir_lease_release(other, "n", b.id), 0);
    CHECK_EQ(weir_store_evict(other, "n", c.id), 0);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(weir_lease_release(w->store, "n", b.id), WEIR_ENOTHELD);
    CHECK_EQ(weir_lease_release(w->store, "n", c.id), WEIR_ENOTHELD);
    CHECK_EQ(weir_lease_release(w->store, "n", a.id), 0);
    weir_store_close(other);
}

STORE_TEST(all_handles_stand_in_one_queue)
{
    struct weir_store *other = open_another(w);
    struct weir_lease holder = take(w, ask("n", 1));
    const struct weir_lease *last = &holder;
    struct asker *a[6];

    for (int i = 0; i < 6; i++)
        a[i] = queue_up_at(w, i % 2 ? other : w->store, i % 3 ? TASK : THREAD, ask("n", 1));
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(weir_lease_release(i % 2 ? w->store : other, "n", last->id), 0);
        CHECK_EQ(answer_of(a[i]), 0);
        CHECK_EQ(waiting(w, "n"), 5 - i);
        last = &a[i]->lease;
    }
    CHECK_EQ(weir_lease_release(w->store, "n", last->id), 0);
    for (int i = 0; i < 6; i++)
        if (i % 3)
            leave(a[i]);
    weir_store_close(other);
}

STORE_TEST(asking_again_through_another_handle_gives_the_same_lease)
{
    struct weir_store *other = open_another(w);
    struct weir_lease_request request = ask("n", 2);

    request.id = AN_ID;
    struct weir_lease first = take(w, request), again = take_from(other, request);
    CHECK_SAME_LEASE(again, first);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(weir_lease_release(other, "n", AN_ID), 0);
    CHECK_EQ(held(w, "n"), 0);
    weir_store_close(other);
}

STORE_TEST(asking_again_through_another_handle_joins_the_wait)
{
    struct weir_store *other = open_another(w);
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease holder = take(w, request);

    request.id = AN_ID;
    struct asker *first = queue_up(w, THREAD, request);
    CHECK_EQ(try_to_take(other, request), WEIR_ETIMEDOUT);
    struct asker *again = begin_to_ask(w, other, THREAD, request, WEIR_FOREVER);
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(first), 0);
    CHECK_EQ(answer_of(again), 0);
    CHECK_SAME_LEASE(again->lease, first->lease);
    CHECK_EQ(held(w, "n"), 1);
    weir_store_close(other);
}

/* ---- closing ------------------------------------------------------------------------------------- */

STORE_TEST(a_store_that_is_closed_gives_its_leases_back)
{
    struct weir_store *other = open_another(w);

    take_from(other, ask("a", 3));
    take_from(other, ask_ttl("a", 3, LASTING_TTL));
    take_from(other, ask("b", 1));
    struct weir_lease mine = take(w, ask("a", 3));
    struct asker *next = queue_up(w, THREAD, ask("b", 1));
    weir_store_close(other);
    CHECK_EQ(answer_of(next), 0);
    CHECK_EQ(held(w, "a"), 1);
    CHECK_STR(look(w, "a").lease[0].id, mine.id);
}

STORE_TEST(a_detached_lease_outlives_the_handle_that_took_it)
{
    struct weir_store *other = open_another(w);
    struct weir_lease_request request = ask_ttl("n", 1, LASTING_TTL);

    request.flags = WEIR_LEASE_DETACHED;
    struct weir_lease lease = take_from(other, request);
    weir_store_close(other);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, 2 * LASTING_TTL), 0);
    give_back(w, "n", &lease);
}

STORE_TEST(a_detached_lease_of_a_closed_handle_ends_at_its_ttl)
{
    struct weir_store *other = open_another(w);
    struct weir_lease_request request = ask_ttl("n", 1, BRIEF_TTL);

    request.flags = WEIR_LEASE_DETACHED;
    take_from(other, request);
    weir_store_close(other);
    struct asker *next = begin_to_ask(w, w->store, THREAD, ask("n", 1), WEIR_FOREVER);
    CHECK_EQ(answer_of(next), 0);
}

STORE_TEST(names_and_tokens_outlive_every_handle)
{
    struct weir_lease lease = take(w, ask("n", 5));

    weir_store_close(w->store);
    w->store = open_another(w);
    CHECK_EQ(look(w, "n").stats.limit, 5);
    CHECK_EQ(held(w, "n"), 0);
    CHECK(take(w, ask("n", 0)).token > lease.token);
}

/* ---- telling ---------------------------------------------------------------------------------------- */

STORE_TEST(a_loss_by_another_handle_is_told)
{
    struct weir_store *other = open_another(w);
    struct loss loss = {.times = 0};
    struct weir_lease_request request = ask("n", 1);

    request.on_lost = note_loss;
    request.arg = &loss;
    struct weir_lease lease = take(w, request);
    struct pollfd fd = {.fd = weir_lease_lost_fd(w->store, "n", &lease), .events = POLLIN};
    CHECK(fd.fd >= 0);
    CHECK_EQ(weir_store_evict(other, "n", lease.id), 0);
    EVENTUALLY(losses(&loss) == 1);
    EVENTUALLY(poll(&fd, 1, 0) == 1);
    weir_store_close(other);
}

STORE_TEST(what_another_handle_gave_back_is_lost_to_its_holder)
{
    struct weir_store *other = open_another(w);
    struct loss loss = {.times = 0};
    struct weir_lease_request request = ask("n", 2);

    request.on_lost = note_loss;
    request.arg = &loss;
    struct weir_lease lease = take(w, request);
    CHECK_EQ(weir_lease_release(other, "n", lease.id), 0);
    EVENTUALLY(losses(&loss) == 1);
    weir_store_close(other);
}

/* If it was too late, another is tried. */
static struct weir_lease take_and_renew_elsewhere(struct world *w, struct weir_store *other,
                                                  struct weir_lease_request request)
{
    struct weir_lease lease = take(w, request);

    while (weir_lease_renew(other, "n", &lease, LASTING_TTL) < 0)
        lease = take(w, request);
    return lease;
}

STORE_TEST(what_another_handle_renewed_is_not_lost)
{
    struct weir_store *other = open_another(w);
    static struct loss loss, later;
    struct weir_lease_request request = ask_ttl("n", 9, 5 * BRIEF_TTL);

    request.on_lost = note_loss;
    request.arg = &loss;
    struct weir_lease lease = take_and_renew_elsewhere(w, other, request);
    int before = losses(&loss); /* of those that came too late */
    request.arg = &later;
    take(w, request);
    EVENTUALLY(losses(&later) == 1);
    CHECK_EQ(losses(&loss), before);
    CHECK_EQ(weir_store_evict(other, "n", lease.id), 0);
    EVENTUALLY(losses(&loss) == before + 1);
    weir_store_close(other);
}

STORE_TEST(a_task_is_cancelled_when_another_handle_evicts_its_lease)
{
    struct weir_store *other = open_another(w);
    struct weir_lease_request request = ask("n", 1);

    request.flags = WEIR_LEASE_CANCEL_HOLDER;
    struct asker *a = begin_to_ask(w, w->store, TASK, request, WEIR_FOREVER);
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(weir_store_evict(other, "n", a->lease.id), 0);
    EVENTUALLY(__atomic_load_n(&a->after, __ATOMIC_ACQUIRE) == WEIR_ECANCELED);
    weir_store_close(other);
}

/* ---- names ------------------------------------------------------------------------------------------- */

STORE_TEST(what_one_handle_forgot_another_finds_made_anew)
{
    struct weir_store_options options = {.forget_after_ns = WEIR_MS};
    struct weir_store *forgetful;

    CHECK_EQ(weir_store_open(w->uri, &options, &forgetful), 0);
    for (int i = 0; i < 5; i++) {
        struct weir_lease lease = take(w, ask("n", 2)); /* it knows the name from now on */

        give_back(w, "n", &lease);
        EVENTUALLY(!look_at(forgetful, "n").there);
        CHECK(!look(w, "n").there);
        struct weir_lease new = take_from(forgetful, ask("n", 1));
        CHECK(new.token > lease.token);
        CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_lease_release(w->store, "n", new.id), 0);
        EVENTUALLY(!look_at(forgetful, "n").there);
    }
    weir_store_close(forgetful);
}

STORE_TEST(the_limit_is_kept_with_the_name)
{
    struct weir_store *other = open_another(w);
    uint64_t limit = 0;
    struct weir_lease_request request = ask("n", 3);

    take(w, ask("n", 2));
    request.ret_limit = &limit;
    CHECK_EQ(try_to_take(other, request), WEIR_EMISMATCH);
    CHECK_EQ(limit, 2);
    CHECK_EQ(try_to_take(other, ask("n", 0)), 0);
    CHECK_EQ(weir_store_resize(other, "n", 3), 0);
    CHECK_EQ(try_to_take(w->store, ask("n", 3)), 0);
    weir_store_close(other);
}
