/* SPDX-License-Identifier: MIT */
/* TTL: when a lease is taken back, and how it is kept. */
#include "named/conformance/world.h"

/* ---- when it ends --------------------------------------------------------------------------- */

STORE_TEST(a_lease_is_not_to_be_counted_on_from_nine_tenths_of_its_ttl)
{
    struct weir_lease_request request = ask_ttl("n", 1, 1000 * WEIR_S);
    struct weir_lease lease;
    int64_t before_ns = weir_now_ns();

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
    CHECK(lease.expires_at_ns >= before_ns + 900 * WEIR_S);
    CHECK(lease.expires_at_ns <= weir_now_ns() + 900 * WEIR_S);
}

STORE_TEST(a_lease_is_taken_back_a_tenth_of_its_ttl_later)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, 1000 * WEIR_S));
    int64_t margin_ns = look(w, "n").lease[0].expires_at_ns - lease.expires_at_ns;

    CHECK(margin_ns >= 100 * WEIR_S - WEIR_MS);
    CHECK(margin_ns <= 100 * WEIR_S + WEIR_MS);
}

STORE_TEST(the_ttl_of_who_waits_begins_when_it_has_the_lease)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *next = queue_up(w, THREAD, ask_ttl("n", 1, 1000 * WEIR_S));
    int64_t queued_ns = weir_now_ns();

    EVENTUALLY(weir_now_ns() > queued_ns + 3 * WEIR_MS);
    int64_t released_ns = weir_now_ns();
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(next), 0);
    CHECK(next->lease.expires_at_ns >= released_ns + 900 * WEIR_S);
    CHECK(next->lease.expires_at_ns <= weir_now_ns() + 900 * WEIR_S);
}

STORE_TEST(a_ttl_may_be_as_long_as_a_life)
{
    const int64_t life_ns = INT64_C(70) * 365 * 86400 * WEIR_S;
    struct weir_lease lease = take(w, ask_ttl("n", 1, life_ns));

    CHECK(lease.expires_at_ns > weir_now_ns() + life_ns / 2);
    CHECK(look(w, "n").lease[0].expires_at_ns > lease.expires_at_ns);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, life_ns), 0);
    CHECK(lease.expires_at_ns > weir_now_ns() + life_ns / 2);
    CHECK_EQ(held(w, "n"), 1);
}

STORE_TEST(a_ttl_too_long_to_be_told_is_invalid)
{
    struct weir_lease lease = take(w, ask_ttl("held", 1, LASTING_TTL)), before = lease;

    CHECK_EQ(try_to_take(w->store, ask_ttl("n", 1, INT64_MAX)), WEIR_EINVAL);
    CHECK_EQ(weir_lease_renew(w->store, "held", &lease, INT64_MAX), WEIR_EINVAL);
    CHECK_EQ(lease.expires_at_ns, before.expires_at_ns);
}

STORE_TEST(a_negative_ttl_is_invalid)
{
    struct weir_lease lease = take(w, ask_ttl("held", 1, LASTING_TTL)), before = lease;

    CHECK_EQ(try_to_take(w->store, ask_ttl("n", 1, -1)), WEIR_EINVAL);
    CHECK_EQ(try_to_take(w->store, ask_ttl("n", 1, INT64_MIN)), WEIR_EINVAL);
    CHECK_EQ(weir_lease_renew(w->store, "held", &lease, -1), WEIR_EINVAL);
    CHECK_EQ(weir_lease_renew(w->store, "held", &lease, INT64_MIN), WEIR_EINVAL);
    CHECK_EQ(lease.expires_at_ns, before.expires_at_ns);
}

/* ---- taken back ------------------------------------------------------------------------------ */

STORE_TEST(a_lease_that_is_not_renewed_is_taken_back)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, BRIEF_TTL));

    EVENTUALLY(held(w, "n") == 0);
    CHECK(weir_now_ns() >= lease.expires_at_ns);
    CHECK_EQ(look(w, "n").stats.leases, 0);
    CHECK_EQ(look(w, "n").stats.expired, 1);
}

STORE_TEST(what_expired_is_free_for_who_does_not_wait)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, BRIEF_TTL));

    EVENTUALLY(try_to_take(w->store, ask("n", 1)) == 0);
    CHECK(weir_now_ns() >= lease.expires_at_ns);
}

static void check_goes_to_the_next_in_line(struct world *w, enum kind kind)
{
    struct weir_lease late = take(w, ask_ttl("n", 1, BRIEF_TTL));
    struct asker *next = begin_to_ask(w, w->store, kind, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(next), 0);
    CHECK(weir_now_ns() >= late.expires_at_ns);
    CHECK_EQ(next->lease.slot, late.slot);
    CHECK_EQ(weir_lease_release(w->store, "n", late.id), WEIR_ENOTHELD);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_STR(look(w, "n").lease[0].id, next->lease.id);
}

STORE_TEST(what_expired_goes_to_a_thread_that_waits)
{
    check_goes_to_the_next_in_line(w, THREAD);
}

STORE_TEST(what_expired_goes_to_a_task_that_waits)
{
    check_goes_to_the_next_in_line(w, TASK);
}

STORE_TEST(leases_that_expire_one_after_the_other_serve_the_whole_queue)
{
    enum { WAITERS = 12 };
    struct asker *a[WAITERS];

    for (int i = 0; i < WAITERS; i++)
        a[i] = begin_to_ask(w, w->store, i % 2 ? TASK : THREAD, ask_ttl("n", 2, BRIEF_TTL),
                            WEIR_FOREVER);
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(answer_of(a[i]), 0);
    EVENTUALLY(look(w, "n").stats.expired == WAITERS);
    CHECK_EQ(held(w, "n"), 0);
}

/* Whoever comes to it first, the store or its late holder, the next is served. */
static void check_next_is_served(struct world *w, enum kind kind, bool renew)
{
    struct weir_lease late = take(w, ask_ttl("n", 1, BRIEF_TTL));
    struct asker *next = begin_to_ask(w, w->store, kind, ask("n", 1), WEIR_FOREVER);
    int64_t end_ns = late.expires_at_ns + BRIEF_TTL / 10;
    int r;

    while (weir_now_ns() < end_ns)
        ;
    r = renew ? weir_lease_renew(w->store, "n", &late, BRIEF_TTL)
              : weir_lease_release(w->store, "n", late.id);
    CHECK(r == 0 || r == WEIR_ENOTHELD);
    CHECK_EQ(answer_of(next), 0);
    give_back(w, "n", &next->lease);
    weir_event_set(&next->leave);
}

STORE_TEST(what_is_given_back_just_when_it_expires_goes_to_the_next)
{
    for (int i = 0; i < 20; i++)
        check_next_is_served(w, i % 2 ? TASK : THREAD, false);
}

STORE_TEST(what_is_renewed_just_when_it_expires_goes_to_the_next)
{
    for (int i = 0; i < 20; i++)
        check_next_is_served(w, i % 2 ? TASK : THREAD, true);
}

STORE_TEST(many_leases_expire_together)
{
    enum { LEASES = 100 };

    for (int i = 0; i < LEASES; i++)
        take(w, ask_ttl("n", LEASES, BRIEF_TTL));
    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(look(w, "n").stats.expired, LEASES);
}

STORE_TEST(a_lease_without_a_ttl_outlasts_one_with)
{
    struct weir_lease lasting = take(w, ask("n", 2));

    take(w, ask_ttl("n", 2, BRIEF_TTL));
    EVENTUALLY(look(w, "n").stats.leases == 1);
    CHECK_STR(look(w, "n").lease[0].id, lasting.id);
}

STORE_TEST(a_ttl_of_next_to_nothing_is_one)
{
    take(w, ask_ttl("n", 1, backend.usual_ttl_ns ? BRIEF_TTL : 1));
    EVENTUALLY(try_to_take(w->store, ask("n", 1)) == 0);
}

/* ---- renewing --------------------------------------------------------------------------------- */

STORE_TEST(renewing_lets_a_lease_end_so_long_from_now)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL)), before = lease;
    int64_t before_ns = weir_now_ns();

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, 10 * LASTING_TTL), 0);
    CHECK(lease.expires_at_ns >= before_ns + 9 * LASTING_TTL);
    CHECK(lease.expires_at_ns <= weir_now_ns() + 9 * LASTING_TTL);
    CHECK(look(w, "n").lease[0].expires_at_ns >= before_ns + 10 * LASTING_TTL);
    CHECK_SAME_LEASE(lease, before);
}

STORE_TEST(renewing_can_shorten_a_lease)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL));

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, BRIEF_TTL), 0);
    CHECK(lease.expires_at_ns <= weir_now_ns() + BRIEF_TTL);
    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(look(w, "n").stats.expired, 1);
}

STORE_TEST(a_lease_without_a_ttl_can_be_given_one)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct asker *next = queue_up(w, TASK, ask("n", 1));

    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, BRIEF_TTL), 0);
    CHECK_EQ(answer_of(next), 0);
}

/* Renew until it has lived three times as long as it would have.  One that is lost because
 * this thread was not run for so long proves nothing, and another is tried. */
STORE_TEST(a_lease_that_is_renewed_in_time_is_kept)
{
    int64_t taken_ns = 0, renewed_ns = 0;
    struct weir_lease lease = {{0}, 0, 0, 0, 0};

    while (renewed_ns <= taken_ns + 3 * BRIEF_TTL) {
        int64_t now_ns = weir_now_ns();

        if (taken_ns == 0) {
            EVENTUALLY(held(w, "n") == 0);
            taken_ns = weir_now_ns();
            lease = take(w, ask_ttl("n", 1, BRIEF_TTL));
            renewed_ns = taken_ns;
        } else if (weir_lease_renew(w->store, "n", &lease, BRIEF_TTL) == 0) {
            renewed_ns = now_ns;
        } else {
            CHECK(weir_now_ns() - renewed_ns >= BRIEF_TTL * 9 / 10);
            taken_ns = renewed_ns = 0;
        }
        test_still_waiting(__FILE__, __LINE__, "true", "kept for three times its TTL");
    }
}

STORE_TEST(renewing_does_not_bring_back_what_is_lost)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, BRIEF_TTL)), before = lease;

    EVENTUALLY(held(w, "n") == 0);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, LASTING_TTL), WEIR_ENOTHELD);
    CHECK_EQ(lease.expires_at_ns, before.expires_at_ns);
    CHECK_EQ(held(w, "n"), 0);
    struct weir_lease next = take(w, ask("n", 1));
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, LASTING_TTL), WEIR_ENOTHELD);
    CHECK_STR(look(w, "n").lease[0].id, next.id);
    CHECK_EQ(look(w, "n").stats.leases, 1);
}

STORE_TEST(what_was_given_back_or_never_held_cannot_be_renewed)
{
    struct weir_lease lease = take(w, ask_ttl("n", 1, LASTING_TTL)), stranger = lease;

    strcpy(stranger.id, AN_ID);
    CHECK_EQ(weir_lease_renew(w->store, "n", &stranger, LASTING_TTL), WEIR_ENOTHELD);
    CHECK_EQ(weir_lease_renew(w->store, "other", &lease, LASTING_TTL), WEIR_ENOTHELD);
    give_back(w, "n", &lease);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, LASTING_TTL), WEIR_ENOTHELD);
}

STORE_TEST(who_waits_cannot_be_renewed)
{
    struct weir_lease_request request = ask("n", 1);
    struct weir_lease holder = take(w, request), waiter = holder;

    request.id = AN_ID;
    queue_up(w, TASK, request);
    strcpy(waiter.id, AN_ID);
    CHECK_EQ(weir_lease_renew(w->store, "n", &waiter, LASTING_TTL), WEIR_ENOTHELD);
    CHECK_EQ(waiting(w, "n"), 1);
}

/* ---- by itself ---------------------------------------------------------------------------------- */

/* Is it still held, so long after? */
static bool has_outlived_its_ttl(struct world *w, const char *id, int64_t since_ns)
{
    int64_t now_ns = weir_now_ns();
    struct view view = look(w, "n");

    return now_ns > since_ns + 3 * 2 * BRIEF_TTL && view.stats.leases == 1 &&
           strcmp(view.lease[0].id, id) == 0;
}

/* A keeper that was not run for a while may lose one: that proves nothing, and another is
 * tried. */
STORE_TEST_WITHIN(a_lease_that_renews_itself_is_kept, 20)
{
    struct weir_lease_request request = ask_ttl("n", 1, 2 * BRIEF_TTL);
    bool kept = false;

    request.flags = WEIR_LEASE_RENEW;
    while (!kept) {
        EVENTUALLY(held(w, "n") == 0);
        int64_t since_ns = weir_now_ns();
        struct weir_lease lease = take(w, request);

        while (!kept && held(w, "n") == 1) {
            kept = has_outlived_its_ttl(w, lease.id, since_ns);
            test_still_waiting(__FILE__, __LINE__, "true", "kept for three times its TTL");
        }
    }
    CHECK_EQ(look(w, "n").stats.leases, 1);
}

STORE_TEST_WITHIN(a_lease_that_was_waited_for_renews_itself_too, 20)
{
    struct weir_lease_request request = ask_ttl("n", 1, 2 * BRIEF_TTL);
    bool kept = false;

    request.flags = WEIR_LEASE_RENEW;
    while (!kept) {
        struct weir_lease holder = take(w, ask("n", 1));
        struct asker *a = queue_up(w, THREAD, request);
        int64_t since_ns = weir_now_ns();

        give_back(w, "n", &holder);
        CHECK_EQ(answer_of(a), 0);
        while (!kept && held(w, "n") == 1) {
            kept = has_outlived_its_ttl(w, a->lease.id, since_ns);
            test_still_waiting(__FILE__, __LINE__, "true", "kept for three times its TTL");
        }
    }
    CHECK_EQ(look(w, "n").stats.leases, 1);
}

STORE_TEST(renewing_by_itself_needs_a_ttl)
{
    struct weir_lease_request request = ask_ttl("n", 1, 0);

    request.flags = WEIR_LEASE_RENEW;
    CHECK_EQ(try_to_take(w->store, request), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(what_renewed_itself_can_be_given_back)
{
    struct weir_lease_request request = ask_ttl("n", 1, LASTING_TTL);

    request.flags = WEIR_LEASE_RENEW;
    for (int i = 0; i < 50; i++) {
        struct weir_lease lease = take(w, request);

        give_back(w, "n", &lease);
    }
    CHECK_EQ(held(w, "n"), 0);
}
