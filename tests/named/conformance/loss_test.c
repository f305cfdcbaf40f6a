/* SPDX-License-Identifier: MIT */
/* Loss: a holder that can no longer count on its lease is told, in each way it asked for;
 * and eviction, which is a loss on purpose. */
#include <poll.h>

#include "named/conformance/world.h"

static struct weir_lease_request ask_to_be_told(int64_t ttl_ns, struct loss *loss)
{
    struct weir_lease_request request = ask_ttl("n", 1, ttl_ns);

    request.on_lost = note_loss;
    request.arg = loss;
    return request;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* ---- on_lost --------------------------------------------------------------------------------- */

static void check_loss(const struct loss *loss, const struct weir_lease *lease)
{
    EVENTUALLY(losses(loss) == 1);
    CHECK_STR(loss->name, "n");
    CHECK_SAME_LEASE(loss->lease, *lease);
    CHECK(loss->thread != this_thread());
}

STORE_TEST(who_is_not_in_time_is_told_of_the_loss)
{
    struct loss loss = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(BRIEF_TTL, &loss));

    check_loss(&loss, &lease);
    CHECK(weir_now_ns() >= lease.expires_at_ns);
    EVENTUALLY(held(w, "n") == 0);
}

STORE_TEST(who_waited_for_its_lease_is_told_of_the_loss)
{
    struct loss loss = {.times = 0};
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *thread = queue_up(w, THREAD, ask_to_be_told(BRIEF_TTL, &loss));

    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(thread), 0);
    check_loss(&loss, &thread->lease);
}

STORE_TEST(who_is_evicted_is_told_of_the_loss)
{
    struct loss loss = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(backend.usual_ttl_ns, &loss));

    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    check_loss(&loss, &lease);
}

static void close_store(struct world *w)
{
    weir_store_close(w->store);
    w->store = open_another(w);
}

STORE_TEST(a_loss_is_told_once)
{
    struct loss expired = {.times = 0}, evicted = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(BRIEF_TTL, &expired));

    EVENTUALLY(look(w, "n").stats.expired == 1 && losses(&expired) == 1);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    lease = take(w, ask_to_be_told(LASTING_TTL, &evicted));
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    EVENTUALLY(losses(&evicted) == 1);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), WEIR_ENOTHELD);
    close_store(w); /* after which nobody is left to tell */
    CHECK_EQ(losses(&expired), 1);
    CHECK_EQ(losses(&evicted), 1);
}

STORE_TEST(who_gave_back_its_lease_has_lost_nothing)
{
    struct loss loss = {.times = 0}, other = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(LASTING_TTL, &loss));

    give_back(w, "n", &lease);
    lease = take(w, ask_to_be_told(BRIEF_TTL, &other)); /* and the keeper has looked */
    EVENTUALLY(losses(&other) == 1);
    close_store(w);
    CHECK_EQ(losses(&loss), 0);
}

STORE_TEST(a_lease_that_ends_with_its_store_is_not_lost)
{
    struct loss loss = {.times = 0};

    take(w, ask_to_be_told(LASTING_TTL, &loss));
    close_store(w);
    CHECK_EQ(losses(&loss), 0);
}

STORE_TEST(who_keeps_renewing_has_lost_nothing_until_it_stops)
{
    struct loss loss = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(LASTING_TTL, &loss));

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, 2 * LASTING_TTL), 0);
    CHECK_EQ(losses(&loss), 0);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, BRIEF_TTL), 0);
    check_loss(&loss, &lease);
    CHECK(weir_now_ns() >= lease.expires_at_ns);
}

STORE_TEST(who_is_given_back_under_another_name_is_still_looked_after)
{
    struct loss loss = {.times = 0};
    struct weir_lease lease = take(w, ask_to_be_told(LASTING_TTL, &loss));

    CHECK_EQ(weir_lease_release(w->store, "other", lease.id), WEIR_ENOTHELD);
    take(w, ask("another", 1));
    CHECK_EQ(weir_lease_release(w->store, "another", lease.id), WEIR_ENOTHELD);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    check_loss(&loss, &lease);
}

STORE_TEST(leases_of_two_names_with_one_id_are_lost_one_by_one)
{
    struct loss loss[2] = {{.times = 0}, {.times = 0}};
    struct weir_lease_request request = ask_to_be_told(LASTING_TTL, &loss[0]);

    request.id = AN_ID;
    take(w, request);
    request.name = "m";
    request.arg = &loss[1];
    take(w, request);
    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), 0);
    EVENTUALLY(losses(&loss[0]) == 1);
    CHECK_STR(loss[0].name, "n");
    CHECK_EQ(losses(&loss[1]), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(weir_store_evict(w->store, "m", AN_ID), 0);
    EVENTUALLY(losses(&loss[1]) == 1);
    CHECK_STR(loss[1].name, "m");
    CHECK_EQ(losses(&loss[0]), 1);
}

STORE_TEST(many_losses_are_told_to_each)
{
    enum { LEASES = 40 };
    static struct loss loss[LEASES];
    struct weir_lease lease[LEASES];

    for (int i = 0; i < LEASES; i++) {
        struct weir_lease_request request = ask_to_be_told(BRIEF_TTL, &loss[i]);

        request.limit = LEASES;
        lease[i] = take(w, request);
    }
    for (int i = 0; i < LEASES; i++)
        check_loss(&loss[i], &lease[i]);
}

/* ---- before it is known --------------------------------------------------------------------- */

STORE_TEST(who_is_evicted_before_anybody_watches_is_told_of_the_loss)
{
    struct loss loss = {.times = 0};
    struct weir_lease_request request = ask_to_be_told(backend.usual_ttl_ns, &loss);

    request.id = AN_ID;
    test_hold("named: acquired, not yet tended");
    struct asker *thread = begin_to_ask(w, w->store, THREAD, request, WEIR_FOREVER);
    test_reached("named: acquired, not yet tended");
    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), 0);
    test_let_go("named: acquired, not yet tended");
    CHECK_EQ(answer_of(thread), 0);
    check_loss(&loss, &thread->lease);
}

struct giver {
    struct world *w;
    int gave;
};

static void give_back_at_once(const char *name, const struct weir_lease *lease, void *arg)
{
    struct giver *giver = arg;

    weir_lease_release(giver->w->store, name, lease->id); /* nobody tends it any more */
    __atomic_store_n(&giver->gave, 1, __ATOMIC_RELEASE);
}

/* ASan sees whether its task still touches what was freed by then. */
STORE_TEST(who_gives_back_what_is_lost_does_so_though_its_task_is_only_coming_to_know_of_it)
{
    struct weir_lease_request request = ask("n", 1);
    struct giver giver = {.w = w};

    request.id = AN_ID;
    request.on_lost = give_back_at_once;
    request.arg = &giver;
    test_hold("named: tended, and known to others");
    struct asker *task = begin_to_ask(w, w->store, TASK, request, WEIR_FOREVER);
    test_reached("named: tended, and known to others");
    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), 0);
    EVENTUALLY(__atomic_load_n(&giver.gave, __ATOMIC_ACQUIRE));
    test_let_go("named: tended, and known to others");
    CHECK_EQ(answer_of(task), 0);
    leave(task);
}

/* ---- in on_lost ------------------------------------------------------------------------------- */

struct reaction {
    struct world *w;
    int renewed, waited, took, done;
};

static void react(const char *name, const struct weir_lease *lease, void *arg)
{
    struct reaction *reaction = arg;
    struct world *w = reaction->w;
    struct weir_lease_request busy = ask("busy", 1);
    struct weir_lease copy = *lease, other;

    reaction->renewed = weir_lease_renew(w->store, name, &copy, LASTING_TTL);
    reaction->waited = weir_lease_acquire(w->store, &busy, WEIR_FOREVER, &other);
    reaction->took = try_to_take(w->store, ask("free", 1));
    weir_lease_release(w->store, name, lease->id); /* as a tidy program would; it may be late */
    __atomic_store_n(&reaction->done, 1, __ATOMIC_RELEASE);
}

STORE_TEST(on_lost_may_use_the_store_but_neither_wait_nor_bring_the_lease_back)
{
    struct weir_lease_request request = ask_ttl("n", 1, BRIEF_TTL);
    struct reaction reaction = {.w = w};

    take(w, ask("busy", 1));
    request.on_lost = react;
    request.arg = &reaction;
    take(w, request);
    EVENTUALLY(__atomic_load_n(&reaction.done, __ATOMIC_ACQUIRE));
    CHECK_EQ(reaction.renewed, WEIR_ENOTHELD);
    CHECK_EQ(reaction.waited, WEIR_ECONTEXT);
    CHECK_EQ(reaction.took, 0);
    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(waiting(w, "busy"), 0);
}

/* ---- the descriptor ----------------------------------------------------------------------------- */

STORE_TEST(the_descriptor_becomes_readable_when_the_ttl_has_passed)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL));
    int fd = weir_lease_lost_fd(w->store, "n", &lease);

    CHECK(fd >= 0);
    CHECK(!is_readable(fd));
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, BRIEF_TTL), 0);
    EVENTUALLY(is_readable(fd));
    CHECK(weir_now_ns() >= lease.expires_at_ns);
}

STORE_TEST(the_descriptor_becomes_readable_when_the_lease_is_evicted)
{
    struct weir_lease lease = take(w, ask("n", 1));
    int fd = weir_lease_lost_fd(w->store, "n", &lease);

    CHECK(fd >= 0);
    CHECK(!is_readable(fd));
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    EVENTUALLY(is_readable(fd));
    CHECK(is_readable(fd)); /* and stays so */
}

STORE_TEST(each_lease_has_a_descriptor_of_its_own_and_the_same_every_time)
{
    struct weir_lease one = take(w, ask("n", 2)), two = take(w, ask("n", 2));
    int first = weir_lease_lost_fd(w->store, "n", &one),
        second = weir_lease_lost_fd(w->store, "n", &two);

    CHECK(first >= 0 && second >= 0 && first != second);
    CHECK_EQ(weir_lease_lost_fd(w->store, "n", &one), first);
    CHECK_EQ(weir_store_evict(w->store, "n", two.id), 0);
    EVENTUALLY(is_readable(second));
    CHECK(!is_readable(first));
}

STORE_TEST(there_is_no_descriptor_for_what_is_not_held)
{
    struct weir_lease lease = take(w, ask("n", 1)), stranger = lease;

    strcpy(stranger.id, AN_ID);
    CHECK_EQ(weir_lease_lost_fd(w->store, "n", &stranger), WEIR_ENOTHELD);
    give_back(w, "n", &lease);
    CHECK_EQ(weir_lease_lost_fd(w->store, "n", &lease), WEIR_ENOTHELD);
}

STORE_TEST(descriptors_are_given_back_with_their_leases)
{
    int first = -1;

    for (int i = 0; i < 300; i++) {
        struct weir_lease lease = take(w, ask("n", 1));
        int fd = weir_lease_lost_fd(w->store, "n", &lease);

        CHECK(fd >= 0);
        if (first < 0)
            first = fd;
        CHECK(fd < first + 250);
        give_back(w, "n", &lease);
    }
}

/* ---- cancelling the holder ----------------------------------------------------------------------- */

static struct weir_lease_request ask_to_be_cancelled(int64_t ttl_ns)
{
    struct weir_lease_request request = ask_ttl("n", 1, ttl_ns);

    request.flags = WEIR_LEASE_CANCEL_HOLDER;
    return request;
}

static int after(struct asker *a)
{
    EVENTUALLY(__atomic_load_n(&a->after, __ATOMIC_ACQUIRE) != NOT_YET);
    return a->after;
}

STORE_TEST(a_task_that_lost_its_lease_is_cancelled)
{
    struct asker *a = begin_to_ask(w, w->store, TASK, ask_to_be_cancelled(BRIEF_TTL), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(after(a), WEIR_ECANCELED);
    EVENTUALLY(held(w, "n") == 0);
}

STORE_TEST(a_task_whose_lease_is_evicted_is_cancelled)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *a = queue_up(w, TASK, ask_to_be_cancelled(backend.usual_ttl_ns));

    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(a), 0);
    CHECK_EQ(weir_store_evict(w->store, "n", a->lease.id), 0);
    CHECK_EQ(after(a), WEIR_ECANCELED);
}

STORE_TEST(a_task_that_did_not_ask_for_it_is_not_cancelled)
{
    struct loss loss = {.times = 0};
    struct asker *a =
        begin_to_ask(w, w->store, TASK, ask_to_be_told(BRIEF_TTL, &loss), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    EVENTUALLY(losses(&loss) == 1);
    leave(a);
    CHECK_EQ(after(a), 0);
}

static int work_on_after_giving_back(void *arg)
{
    struct world *w = arg;
    struct weir_lease lease = take(w, ask_to_be_cancelled(LASTING_TTL));

    give_back(w, "n", &lease);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), WEIR_ENOTHELD);
    return weir_task_yield();
}

STORE_TEST(a_task_that_gave_back_its_lease_is_not_cancelled)
{
    CHECK_EQ(weir_run(NULL, work_on_after_giving_back, w), 0);
}

STORE_TEST(only_a_task_can_be_cancelled_with_its_lease)
{
    CHECK_EQ(try_to_take(w->store, ask_to_be_cancelled(LASTING_TTL)), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(all_ways_to_be_told_work_together)
{
    struct loss loss = {.times = 0};
    struct weir_lease_request request = ask_to_be_told(LASTING_TTL, &loss);

    request.flags = WEIR_LEASE_CANCEL_HOLDER | WEIR_LEASE_RENEW;
    struct asker *a = begin_to_ask(w, w->store, TASK, request, WEIR_FOREVER);
    CHECK_EQ(answer_of(a), 0);
    int fd = weir_lease_lost_fd(w->store, "n", &a->lease);
    CHECK(fd >= 0);
    CHECK_EQ(weir_store_evict(w->store, "n", a->lease.id), 0);
    EVENTUALLY(is_readable(fd) && losses(&loss) == 1);
    CHECK_EQ(after(a), WEIR_ECANCELED);
}

/* ---- eviction ------------------------------------------------------------------------------------- */

STORE_TEST(evicting_a_holder_serves_the_next)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct asker *next = queue_up(w, THREAD, ask("n", 1));

    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    CHECK_EQ(answer_of(next), 0);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    CHECK_STR(look(w, "n").lease[0].id, next->lease.id);
    CHECK_EQ(look(w, "n").stats.evicted, 1);
}

static void check_waiter_can_be_evicted(struct world *w, enum kind kind)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct asker *a = queue_up(w, kind, ask("n", 1));

    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
    CHECK_EQ(answer_of(a), WEIR_ECANCELED);
    CHECK_EQ(a->lease.token, 0);
    CHECK_EQ(waiting(w, "n"), 0);
    CHECK_EQ(look(w, "n").stats.evicted, 1);
    CHECK_STR(look(w, "n").lease[0].id, lease.id);
}

STORE_TEST(a_thread_that_waits_can_be_sent_away)
{
    check_waiter_can_be_evicted(w, THREAD);
}

STORE_TEST(a_task_that_waits_can_be_sent_away)
{
    check_waiter_can_be_evicted(w, TASK);
}

STORE_TEST(a_task_that_was_sent_away_is_not_cancelled)
{
    take(w, ask("n", 1));
    struct asker *a = queue_up(w, TASK, ask("n", 1));

    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
    CHECK_EQ(answer_of(a), WEIR_ECANCELED);
    leave(a);
    CHECK_EQ(after(a), 0);
}

STORE_TEST(what_neither_holds_nor_waits_cannot_be_evicted)
{
    struct weir_lease lease = take(w, ask("n", 2));

    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(weir_store_evict(w->store, "other", lease.id), WEIR_ENOTHELD);
    give_back(w, "n", &lease);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), WEIR_ENOTHELD);
    CHECK_EQ(look(w, "n").stats.evicted, 0);
    CHECK(!look(w, "other").there);
}
