/* SPDX-License-Identifier: MIT */
/* Threads and tasks do as they please, with weights, deadlines, TTLs, cancels, evictions and
 * resizes.  What each of them sees must fit together, and in the end nothing may be missing.
 *
 *     firm     leases without a TTL, which nobody takes away: never more than the limit,
 *              never two in one slot
 *     brittle  leases that expire, are evicted or left behind: no token twice
 *     elastic  a limit that changes all the time */
#include <stdlib.h>

#include "harness/sanitizer.h"
#include "named/conformance/world.h"

enum { LIMIT = 5, MOST = 8, THREADS = 5, TASKS = 8, STEPS = 40, TOKENS = 1 << 20 };

static struct {
    int held, slots[LIMIT];  /* of firm */
    uint64_t tokens[TOKENS]; /* of brittle */
    int token_count;
    int over;
} book;

static void count_token(uint64_t token)
{
    int i = __atomic_fetch_add(&book.token_count, 1, __ATOMIC_RELAXED);

    CHECK(i < TOKENS);
    book.tokens[i] = token;
}

static struct weir_deadline some_deadline(void)
{
    uint32_t what = test_random(6);

    return what == 0   ? WEIR_NO_WAIT
           : what == 1 ? WEIR_FOREVER
                       : weir_within((1 + test_random(2000)) * WEIR_US);
}

static bool is_expected(int r)
{
    return r == 0 || r == WEIR_ETIMEDOUT || r == WEIR_ECANCELED;
}

/* ---- deeds ------------------------------------------------------------------------------------------ */

static void tarry(void)
{
    if (test_random(2))
        weir_task_sleep(weir_within(test_random(200) * WEIR_US));
}

/* True: the lease is left behind, for the end of the task to give back. */
static bool use_firm(struct world *w)
{
    int weight = 1 + (int)test_random(LIMIT);
    struct weir_lease_request request = ask_weight("firm", LIMIT, (uint64_t)weight);
    struct weir_lease lease;
    int r = weir_lease_acquire(w->store, &request, some_deadline(), &lease);

    CHECK(is_expected(r));
    if (r < 0)
        return false;
    CHECK(__atomic_add_fetch(&book.held, weight, __ATOMIC_RELAXED) <= LIMIT);
    CHECK(lease.slot < LIMIT);
    CHECK_EQ(__atomic_exchange_n(&book.slots[lease.slot], 1, __ATOMIC_RELAXED), 0);
    tarry();
    __atomic_store_n(&book.slots[lease.slot], 0, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&book.held, weight, __ATOMIC_RELAXED);
    if (test_random(8) == 0 && weir_runtime_self())
        return true;
    CHECK_EQ(weir_lease_release(w->store, "firm", lease.id), 0);
    return false;
}

static void use_brittle(struct world *w)
{
    struct weir_lease_request request = ask_weight("brittle", 3, 1 + test_random(3));
    struct weir_lease lease;

    request.ttl_ns = test_random(2) ? (1 + test_random(5000)) * WEIR_US : LASTING_TTL;
    request.flags = test_random(3) == 0 ? WEIR_LEASE_RENEW : 0;
    int r = weir_lease_acquire(w->store, &request, some_deadline(), &lease);
    CHECK(is_expected(r));
    if (r < 0)
        return;
    count_token(lease.token);
    tarry();
    if (test_random(4) == 0)
        weir_lease_renew(w->store, "brittle", &lease, (1 + test_random(5000)) * WEIR_US);
    r = weir_lease_release(w->store, "brittle", lease.id);
    CHECK(r == 0 || r == WEIR_ENOTHELD);
}

static void use_elastic(struct world *w)
{
    struct weir_lease_request request = ask_weight("elastic", 0, 1 + test_random(MOST));
    struct weir_lease lease;

    if (test_random(4) == 0)
        CHECK_EQ(weir_store_resize(w->store, "elastic", 1 + test_random(MOST)), 0);
    int r = weir_lease_acquire(w->store, &request, some_deadline(), &lease);
    CHECK(is_expected(r) || r == WEIR_EINVAL); /* too heavy, at that moment */
    if (r < 0)
        return;
    tarry();
    CHECK_EQ(weir_lease_release(w->store, "elastic", lease.id), 0);
}

/* Whoever is seen of the brittle may be thrown out. */
static int evict_some(const struct weir_name_stats *stats, void *arg)
{
    struct world *w = arg;
    int r = 0;

    CHECK(strcmp(stats->name, "firm") != 0 || stats->held <= LIMIT);
    if (strcmp(stats->name, "brittle") != 0)
        return 0;
    CHECK(stats->held <= 3);
    if (stats->leases > 0)
        r = weir_store_evict(w->store, "brittle",
                             stats->lease[test_random((uint32_t)stats->leases)].id);
    else if (stats->waiters > 0)
        r = weir_store_evict(w->store, "brittle", stats->waiter[0].id);
    CHECK(r == 0 || r == WEIR_ENOTHELD);
    return 0;
}

static bool do_something(struct world *w)
{
    uint32_t what = test_random(20);

    if (what < 10)
        return use_firm(w);
    if (what == 10)
        CHECK_EQ(weir_store_visit(w->store, evict_some, w), 0);
    else if (what < 15)
        use_brittle(w);
    else
        use_elastic(w);
    return false;
}

/* ---- those who do them ---------------------------------------------------------------------------------- */

static void be_a_thread(void *arg)
{
    while (!__atomic_load_n(&book.over, __ATOMIC_ACQUIRE))
        do_something(arg);
}

static int be_a_task(void *arg)
{
    for (int i = 0; i < STEPS; i++) {
        if (do_something(arg) || weir_task_yield() == WEIR_ECANCELED)
            break;
    }
    return 0;
}

/* A number of tasks, some of them cancelled on the way. */
static void run_tasks(struct world *w)
{
    struct weir_task tasks[TASKS];

    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(weir_runtime_spawn(runtime_of(w), be_a_task, w, &tasks[i]), 0);
    for (int i = 0; i < TASKS; i++) {
        if (test_random(3) == 0)
            CHECK_EQ(weir_task_cancel(tasks[i]), 0);
        CHECK_EQ(weir_task_join(tasks[i], WEIR_FOREVER, NULL), 0);
    }
}

/* ---- in the end ------------------------------------------------------------------------------------------ */

/* Each grant has come to one end.  (One that lapsed was granted again, and counted.) */
static void check_books_balance(struct world *w, const char *name)
{
    EVENTUALLY(held(w, name) == 0);
    struct weir_name_stats s = look(w, name).stats;
    uint64_t ended = s.released + s.expired + s.recovered + s.lapsed;

    CHECK_EQ(s.leases, 0);
    CHECK_EQ(s.waiters, 0);
    CHECK(s.granted >= ended);
    CHECK(s.granted <= ended + s.evicted); /* which counts waiters, too */
    CHECK_EQ(s.recovered, 0);
    CHECK(strcmp(name, "brittle") == 0 || s.evicted == 0);
}

static int by_token(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void check_no_token_was_given_twice(void)
{
    qsort(book.tokens, (size_t)book.token_count, sizeof *book.tokens, by_token);
    for (int i = 1; i < book.token_count; i++)
        CHECK(book.tokens[i] > book.tokens[i - 1]);
}

STORE_TEST_WITHIN(whatever_happens_nothing_is_lost_or_lent_twice, 60)
{
    int rounds = test_scaled(TEST_TSAN || TEST_ASAN || TEST_QEMU ? 20 : 100);

    for (int i = 0; i < THREADS; i++)
        test_spawn(be_a_thread, w);
    for (int i = 0; i < rounds; i++)
        run_tasks(w);
    __atomic_store_n(&book.over, 1, __ATOMIC_RELEASE);
    test_join_all();
    check_books_balance(w, "firm");
    check_books_balance(w, "brittle");
    check_books_balance(w, "elastic");
    CHECK(book.token_count > 0);
    check_no_token_was_given_twice();
    take(w, ask_weight("firm", LIMIT, LIMIT));
    take(w, ask_weight("brittle", 3, 3));
}

/* ---- many on one ------------------------------------------------------------------------------------------- */

static int turns, inside;

static void take_turns(void *arg)
{
    struct world *w = arg;
    struct weir_lease_request request = ask("turn", 1);
    struct weir_lease lease;

    for (int i = 0; i < 200; i++) {
        CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
        CHECK_EQ(inside++, 0); /* no other memory order than the lease's own */
        turns++;
        inside--;
        CHECK_EQ(weir_lease_release(w->store, "turn", lease.id), 0);
    }
}

static int take_turns_as_task(void *arg)
{
    take_turns(arg);
    return 0;
}

STORE_TEST_WITHIN(what_one_wrote_before_giving_back_the_next_can_read, 30)
{
    for (int i = 0; i < 4; i++)
        test_spawn(take_turns, w);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_runtime_spawn(runtime_of(w), take_turns_as_task, w, NULL), 0);
    test_join_all();
    CHECK_EQ(weir_runtime_close(w->runtime, WEIR_FOREVER), 0);
    w->runtime = NULL;
    CHECK_EQ(turns, 8 * 200);
    CHECK_EQ(look(w, "turn").stats.granted, 8 * 200);
    CHECK_EQ(look(w, "turn").stats.released, 8 * 200);
}
