/* SPDX-License-Identifier: MIT */
/* Looking: what a visit shows, and that the numbers are right. */
#include <unistd.h>

#include "named/conformance/world.h"

#define TICK (10 * WEIR_MS) /* what is for people may be told by the cheapest clock */

/* ---- one name ---------------------------------------------------------------------------------- */

STORE_TEST(a_lease_is_shown_as_it_is)
{
    struct weir_lease_request request = ask_weight("n", 4, 3);
    int64_t before_ns = weir_now_ns();

    request.label = "here";
    struct weir_lease lease = take(w, request);
    int64_t after_ns = weir_now_ns();
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.leases, 1);
    CHECK_STR(view.lease[0].id, lease.id);
    CHECK_STR(view.lease[0].label, "here");
    CHECK_EQ(view.lease[0].pid, getpid());
    CHECK_EQ(view.lease[0].slot, lease.slot);
    CHECK_EQ(view.lease[0].token, lease.token);
    CHECK_EQ(view.lease[0].weight, 3);
    CHECK(view.lease[0].since_ns >= before_ns - TICK && view.lease[0].since_ns <= after_ns);
    CHECK(backend.usual_ttl_ns || view.lease[0].expires_at_ns == INT64_MAX);
    CHECK(backend.usual_ttl_ns || lease.expires_at_ns == INT64_MAX);
}

static void check_waiter_is_shown(struct world *w, enum kind kind)
{
    struct weir_lease_request request = ask_weight("n", 4, 2);

    take(w, ask_weight("n", 4, 3));
    request.id = AN_ID;
    request.label = "there";
    int64_t before_ns = weir_now_ns();
    queue_up(w, kind, request);
    int64_t after_ns = weir_now_ns();
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.waiters, 1);
    CHECK_STR(view.waiter[0].id, AN_ID);
    CHECK_STR(view.waiter[0].label, "there");
    CHECK_EQ(view.waiter[0].pid, getpid());
    CHECK_EQ(view.waiter[0].weight, 2);
    CHECK(view.waiter[0].since_ns >= before_ns - TICK && view.waiter[0].since_ns <= after_ns);
    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), 0);
}

STORE_TEST(a_thread_that_waits_is_shown_as_it_is)
{
    check_waiter_is_shown(w, THREAD);
}

STORE_TEST(a_task_that_waits_is_shown_as_it_is)
{
    check_waiter_is_shown(w, TASK);
}

STORE_TEST(who_waited_is_shown_to_hold_since_it_was_given_the_lease)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *a = queue_up(w, THREAD, ask("n", 1));
    int64_t released_ns = weir_now_ns();

    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(a), 0);
    CHECK(look(w, "n").lease[0].since_ns >= released_ns - TICK);
    CHECK(look(w, "n").lease[0].since_ns <= weir_now_ns());
}

STORE_TEST(leases_are_shown_oldest_first)
{
    struct weir_lease lease[5];

    for (int i = 0; i < 5; i++)
        lease[i] = take(w, ask("n", 5));
    give_back(w, "n", &lease[0]);
    give_back(w, "n", &lease[2]);
    lease[0] = take(w, ask("n", 5)); /* the youngest now, in the lowest slot */
    struct view view = look(w, "n");
    CHECK_EQ(view.stats.leases, 4);
    CHECK_STR(view.lease[0].id, lease[1].id);
    CHECK_STR(view.lease[1].id, lease[3].id);
    CHECK_STR(view.lease[2].id, lease[4].id);
    CHECK_STR(view.lease[3].id, lease[0].id);
}

STORE_TEST(percent_is_what_is_held_of_the_limit)
{
    static const struct {
        uint64_t limit, weight;
        unsigned percent;
    } rows[] = {
        {1, 1, 100},
        {2, 1, 50},
        {3, 1, 33},
        {100, 99, 99},
        {WEIR_LIMIT_MAX, 1, 0},
        {WEIR_LIMIT_MAX, WEIR_LIMIT_MAX, 100},
        {WEIR_LIMIT_MAX, WEIR_LIMIT_MAX / 2, 50},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_lease lease = take(w, ask_weight("n", rows[i].limit, rows[i].weight));

        CHECK_EQ(look(w, "n").stats.percent, rows[i].percent);
        give_back(w, "n", &lease);
        CHECK_EQ(look(w, "n").stats.percent, 0);
    }
}

STORE_TEST(percent_does_not_overflow_after_a_shrink)
{
    take(w, ask_weight("n", WEIR_LIMIT_MAX, WEIR_LIMIT_MAX));
    CHECK_EQ(weir_store_resize(w->store, "n", 1), 0);
    CHECK(look(w, "n").stats.percent > 100);
    CHECK_EQ(held(w, "n"), WEIR_LIMIT_MAX);
}

/* ---- counting ------------------------------------------------------------------------------------ */

struct counts {
    uint64_t granted, released, timed_out, cancelled, expired, recovered, evicted, lapsed;
};

#define CHECK_COUNTS(w, name, ...)                              \
    do {                                                        \
        struct weir_name_stats got__ = look((w), (name)).stats; \
        struct counts want__ = {__VA_ARGS__};                   \
        CHECK_EQ(got__.granted, want__.granted);                \
        CHECK_EQ(got__.released, want__.released);              \
        CHECK_EQ(got__.timed_out, want__.timed_out);            \
        CHECK_EQ(got__.cancelled, want__.cancelled);            \
        CHECK_EQ(got__.expired, want__.expired);                \
        CHECK_EQ(got__.recovered, want__.recovered);            \
        CHECK_EQ(got__.evicted, want__.evicted);                \
        CHECK_EQ(got__.lapsed, want__.lapsed);                  \
    } while (0)

STORE_TEST(grants_and_releases_are_counted)
{
    struct weir_lease a = take(w, ask("n", 2)), b = take(w, ask("n", 2));

    CHECK_COUNTS(w, "n", .granted = 2);
    give_back(w, "n", &a);
    CHECK_COUNTS(w, "n", .granted = 2, .released = 1);
    give_back(w, "n", &b);
    CHECK_EQ(weir_lease_release(w->store, "n", b.id), WEIR_ENOTHELD);
    CHECK_COUNTS(w, "n", .granted = 2, .released = 2);
}

STORE_TEST(who_waited_in_vain_is_counted)
{
    take(w, ask("n", 1));
    for (int i = 0; i < 3; i++) {
        struct asker *a = begin_to_ask(w, w->store, i % 2 ? TASK : THREAD, ask("n", 1),
                                       weir_within(20 * WEIR_MS));

        EVENTUALLY(waiting(w, "n") == 1 || is_answered(a)); /* so that it came to wait */
        CHECK_EQ(answer_of(a), WEIR_ETIMEDOUT);
    }
    CHECK_COUNTS(w, "n", .granted = 1, .timed_out = 3);
}

STORE_TEST(who_was_cancelled_or_evicted_is_counted)
{
    struct weir_lease lease = take(w, ask("n", 1));
    struct asker *goes = queue_up(w, TASK, ask("n", 1)), *evicted = queue_up(w, TASK, ask("n", 1));

    CHECK_EQ(weir_task_cancel(goes->task), 0);
    CHECK_EQ(answer_of(goes), WEIR_ECANCELED);
    CHECK_COUNTS(w, "n", .granted = 1, .cancelled = 1);
    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
    CHECK_EQ(answer_of(evicted), WEIR_ECANCELED);
    CHECK_COUNTS(w, "n", .granted = 1, .cancelled = 1, .evicted = 1);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), 0);
    CHECK_COUNTS(w, "n", .granted = 1, .cancelled = 1, .evicted = 2);
}

STORE_TEST(what_expired_is_counted_and_not_as_released)
{
    take(w, ask_ttl("n", 2, BRIEF_TTL));
    take(w, ask_ttl("n", 2, BRIEF_TTL));
    EVENTUALLY(held(w, "n") == 0);
    CHECK_COUNTS(w, "n", .granted = 2, .expired = 2);
}

STORE_TEST(what_a_task_left_behind_is_counted_as_released)
{
    struct asker *a = begin_to_ask(w, w->store, TASK, ask("n", 1), WEIR_FOREVER);

    CHECK_EQ(answer_of(a), 0);
    leave(a);
    EVENTUALLY(held(w, "n") == 0);
    CHECK_COUNTS(w, "n", .granted = 1, .released = 1);
}

STORE_TEST(what_was_refused_is_not_counted)
{
    uint64_t limit;
    struct weir_lease_request mismatch = ask("n", 5);

    mismatch.ret_limit = &limit;
    take(w, ask("n", 2));
    CHECK_EQ(try_to_take(w->store, mismatch), WEIR_EMISMATCH);
    CHECK_EQ(try_to_take(w->store, ask_weight("n", 2, 3)), WEIR_EINVAL);
    CHECK_EQ(weir_store_evict(w->store, "n", AN_ID), WEIR_ENOTHELD);
    CHECK_COUNTS(w, "n", .granted = 1);
}

STORE_TEST(each_name_counts_for_itself)
{
    struct weir_lease a = take(w, ask("a", 1));

    take(w, ask("b", 1));
    give_back(w, "a", &a);
    CHECK_COUNTS(w, "a", .granted = 1, .released = 1);
    CHECK_COUNTS(w, "b", .granted = 1);
}

STORE_TEST(the_longest_wait_is_that_of_those_who_were_served)
{
    struct weir_lease holder = take(w, ask("n", 1));
    struct asker *in_vain =
        begin_to_ask(w, w->store, THREAD, ask("n", 1), weir_within(20 * WEIR_MS));

    CHECK_EQ(answer_of(in_vain), WEIR_ETIMEDOUT);
    CHECK_EQ(look(w, "n").stats.longest_wait_ns, 0);
    struct asker *next = queue_up(w, TASK, ask("n", 1));
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(next), 0);
    int64_t longest_ns = look(w, "n").stats.longest_wait_ns;
    CHECK_EQ(longest_ns, next->lease.waited_ns);
    give_back(w, "n", &next->lease);
    take(w, ask("n", 1)); /* which did not wait */
    CHECK_EQ(look(w, "n").stats.longest_wait_ns, longest_ns);
}

/* ---- all names -------------------------------------------------------------------------------------- */

static int stop_at_second(const struct weir_name_stats *stats, void *arg)
{
    CHECK(stats->name[0] >= 'a' && stats->name[0] <= 'e');
    return ++*(int *)arg == 2 ? 42 : 0;
}

STORE_TEST(a_visit_stops_when_told_to_and_says_so)
{
    int seen = 0;

    for (const char *name = "abcde"; *name; name++)
        take(w, ask((char[]){*name, '\0'}, 1));
    CHECK_EQ(weir_store_visit(w->store, stop_at_second, &seen), 42);
    CHECK_EQ(seen, 2);
}

static int fail(const struct weir_name_stats *stats, void *arg)
{
    (void)stats;
    (void)arg;
    return WEIR_EBROKEN;
}

STORE_TEST(a_visit_passes_on_an_error_of_its_visitor)
{
    CHECK_EQ(weir_store_visit(w->store, fail, NULL), 0); /* who is not called */
    take(w, ask("n", 1));
    CHECK_EQ(weir_store_visit(w->store, fail, NULL), WEIR_EBROKEN);
}

static int see_each_once(const struct weir_name_stats *stats, void *arg)
{
    int *seen = arg;

    CHECK_EQ(strlen(stats->name), 1);
    CHECK_EQ(seen[stats->name[0] - 'a']++, 0);
    CHECK_EQ(stats->held, stats->name[0] % 2);
    return 0;
}

STORE_TEST(a_visit_shows_every_name_once_held_or_not)
{
    int seen[26] = {0};

    for (char c = 'a'; c <= 'z'; c++) {
        struct weir_lease lease = take(w, ask((char[]){c, '\0'}, 1));

        if (c % 2 == 0)
            give_back(w, (char[]){c, '\0'}, &lease);
    }
    CHECK_EQ(weir_store_visit(w->store, see_each_once, seen), 0);
    for (int i = 0; i < 26; i++)
        CHECK_EQ(seen[i], 1);
}

static int give_all_back(const struct weir_name_stats *stats, void *arg)
{
    struct world *w = arg;

    for (size_t i = 0; i < stats->leases; i++)
        CHECK_EQ(weir_lease_release(w->store, stats->name, stats->lease[i].id), 0);
    CHECK_EQ(held(w, stats->name), 0);
    take(w, ask("made meanwhile", 100));
    return 0;
}

STORE_TEST(a_visitor_may_use_the_store)
{
    for (const char *name = "abcde"; *name; name++)
        take(w, ask((char[]){*name, '\0'}, 1));
    CHECK_EQ(weir_store_visit(w->store, give_all_back, w), 0);
    for (const char *name = "abcde"; *name; name++)
        CHECK_EQ(held(w, (char[]){*name, '\0'}), 0);
}

struct count_all {
    const char *name;
    size_t leases, waiters;
};

static int count_all(const struct weir_name_stats *stats, void *arg)
{
    struct count_all *all = arg;

    for (size_t i = 0; i < stats->leases; i++)
        all->leases += strlen(stats->lease[i].id) == WEIR_ID_LENGTH;
    for (size_t i = 0; i < stats->waiters; i++)
        all->waiters += strlen(stats->waiter[i].id) == WEIR_ID_LENGTH;
    return 0;
}

STORE_TEST(however_many_hold_and_wait_all_are_shown)
{
    enum { LEASES = 300, WAITERS = 60 };
    struct count_all all = {"n", 0, 0};

    for (int i = 0; i < LEASES; i++)
        take(w, ask("n", LEASES));
    for (int i = 0; i < WAITERS; i++)
        queue_up(w, TASK, ask("n", LEASES));
    CHECK_EQ(weir_store_visit(w->store, count_all, &all), 0);
    CHECK_EQ(all.leases, LEASES);
    CHECK_EQ(all.waiters, WAITERS);
}
