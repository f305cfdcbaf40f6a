/* SPDX-License-Identifier: MIT */
/* Every function of store.h and observe.h with every kind of argument that it cannot work
 * with: the answer is the documented code, and nothing has changed.  (NULL where an object
 * is required is a programming error, as in libc.) */
#include <weir/observe.h>
#include <weir/store.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------------------- */

#define AN_ID "0123456789abcdef0123456789abcdef"

static char too_long[WEIR_NAME_MAX + 2]; /* see open_store */

static const char *const bad_names[] = {"", too_long};
enum { BAD_NAMES = sizeof bad_names / sizeof *bad_names };

static const char *const bad_ids[] = {
    "",
    "0",
    "0123456789abcdef0123456789abcde",
    "0123456789abcdef0123456789abcdef0",
    "0123456789abcdef0123456789abcdeg",
    "0123456789abcde f0123456789abcde",
    "0x123456789abcdef0123456789abcde",
    ("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
};
enum { BAD_IDS = sizeof bad_ids / sizeof *bad_ids };

static const int64_t bad_ttls[] = {-1, -WEIR_S, INT64_MIN, INT64_MIN + 1, INT64_MAX};
enum { BAD_TTLS = sizeof bad_ttls / sizeof *bad_ttls };

static const uint64_t too_much[] = {
    WEIR_LIMIT_MAX + 1, UINT64_C(1) << 60, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX,
};
enum { TOO_MUCHES = sizeof too_much / sizeof *too_much };

static struct weir_store *store;
static struct weir_lease held; /* of "held", whose limit is 2 */

/* A store where one of "held" is taken. */
static void open_store(void)
{
    struct weir_lease_request request = {.name = "held", .limit = 2, .ttl_ns = 3600 * WEIR_S};

    memset(too_long, 'n', sizeof too_long - 1);
    CHECK_EQ(weir_store_open("mem:", NULL, &store), 0);
    CHECK_EQ(weir_lease_acquire(store, &request, WEIR_NO_WAIT, &held), 0);
}

static int check_held(const struct weir_name_stats *stats, void *arg)
{
    ++*(int *)arg;
    CHECK_STR(stats->name, "held");
    CHECK_EQ(stats->limit, 2);
    CHECK_EQ(stats->held, 1);
    CHECK_EQ(stats->leases, 1);
    CHECK_EQ(stats->waiters, 0);
    CHECK_EQ(stats->granted, 1);
    CHECK_EQ(stats->released + stats->expired + stats->evicted, 0);
    CHECK_STR(stats->lease[0].id, held.id);
    return 0;
}

static void check_nothing_changed(void)
{
    int names = 0;

    CHECK_EQ(weir_store_visit(store, check_held, &names), 0);
    CHECK_EQ(names, 1);
}

static void close_store(void)
{
    check_nothing_changed();
    weir_store_close(store);
}

/* Refused whatever the deadline, without a word written. */
static void check_refused(const struct weir_lease_request *request, int want)
{
    static const struct weir_deadline deadlines[] = {{0}, {-1}, {INT64_MIN}, {1}, {INT64_MAX}};

    for (int i = 0; i < 5; i++) {
        struct weir_lease lease, before;

        memset(&lease, 0x5a, sizeof lease);
        before = lease;
        CHECK_EQ(weir_lease_acquire(store, request, deadlines[i], &lease), want);
        CHECK_EQ(memcmp(&lease, &before, sizeof lease), 0);
    }
}

/* ---- weir_store_open ----------------------------------------------------------------------- */

TEST(what_is_no_uri_of_a_store_is_invalid)
{
    static const char *const uris[] = {
        "",        ":",         "mem",     " mem:",  "MEM:",      "mem:x",    "mem:/",
        "mem::",   "shm",       "shm:dir", "shm:./", "shm:../..", "redis",    "\xff",
        "memory:", "file:/tmp", "/tmp",    "shm:\n", "mem:\n",    "%s%s%s%n", "http://a/",
    };
    struct weir_store *opened = NULL;

    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        CHECK_EQ(weir_store_open(uris[i], NULL, &opened), WEIR_EINVAL);
        CHECK(opened == NULL);
        CHECK(weir_store_why()[0] != '\0');
    }
}

TEST(a_uri_of_any_length_is_refused_in_peace)
{
    enum { LENGTH = 100000 };
    char *uri = malloc(LENGTH + 1);
    struct weir_store *opened = NULL;

    CHECK(uri != NULL);
    memset(uri, 'x', LENGTH);
    uri[LENGTH] = '\0';
    CHECK_EQ(weir_store_open(uri, NULL, &opened), WEIR_EINVAL);
    memcpy(uri, "shm:/", 5);
    CHECK(weir_store_open(uri, NULL, &opened) < 0);
    CHECK(opened == NULL);
    free(uri);
}

TEST(names_cannot_be_forgotten_before_they_are_unused)
{
    static const int64_t never[] = {-1, INT64_MIN};
    struct weir_store *opened = NULL;

    for (int i = 0; i < 2; i++) {
        struct weir_store_options options = {.forget_after_ns = never[i]};

        CHECK_EQ(weir_store_open("mem:", &options, &opened), WEIR_EINVAL);
        CHECK(opened == NULL);
    }
}

TEST(names_may_be_kept_for_ever)
{
    struct weir_store_options options = {.forget_after_ns = INT64_MAX};

    CHECK_EQ(weir_store_open("mem:", &options, &store), 0);
    CHECK_EQ(weir_store_resize(store, "kept", 3), 0);
    CHECK_EQ(weir_store_resize(store, "kept too", 3), 0);
    weir_store_close(store);
}

/* ---- weir_store_why -------------------------------------------------------------------------- */

static void check_no_reason_here(void *arg)
{
    (void)arg;
    CHECK_STR(weir_store_why(), "");
}

TEST(a_reason_is_the_last_of_its_thread)
{
    struct weir_store *opened;

    CHECK_STR(weir_store_why(), "");
    CHECK_EQ(weir_store_open("nonsense", NULL, &opened), WEIR_EINVAL);
    CHECK(strstr(weir_store_why(), "nonsense") != NULL);
    test_spawn(check_no_reason_here, NULL);
    test_join_all();
    open_store();
    CHECK_EQ(weir_lease_release(store, "", held.id), WEIR_EINVAL);
    CHECK(strstr(weir_store_why(), "nonsense") == NULL);
    close_store();
}

/* ---- weir_lease_acquire ------------------------------------------------------------------------ */

TEST(a_lease_of_what_cannot_be_a_name_is_invalid)
{
    open_store();
    for (int i = 0; i < BAD_NAMES; i++)
        check_refused(&(struct weir_lease_request){.name = bad_names[i]}, WEIR_EINVAL);
    close_store();
}

TEST(a_lease_of_what_cannot_be_a_limit_or_a_weight_is_invalid)
{
    open_store();
    for (int i = 0; i < TOO_MUCHES; i++) {
        uint64_t n = too_much[i];

        check_refused(&(struct weir_lease_request){.name = "new", .limit = n}, WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){.name = "new", .weight = n}, WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){.name = "held", .limit = n}, WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){.name = "held", .weight = n}, WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){.name = "new", .limit = n, .weight = n},
                      WEIR_EINVAL);
    }
    close_store();
}

TEST(a_weight_above_the_limit_is_invalid)
{
    static const uint64_t weights[] = {3, 4, WEIR_LIMIT_MAX};

    open_store();
    for (int i = 0; i < 3; i++) {
        uint64_t weight = weights[i];

        check_refused(&(struct weir_lease_request){"new", .limit = 2, .weight = weight},
                      WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){"held", .limit = 2, .weight = weight},
                      WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){"held", .weight = weight}, WEIR_EINVAL);
        check_refused(&(struct weir_lease_request){"held", .limit = 2, .weight = weight,
                                                   .flags = WEIR_LEASE_RESIZE},
                      WEIR_EINVAL);
    }
    close_store();
}

TEST(a_lease_of_what_cannot_be_a_ttl_is_invalid)
{
    open_store();
    for (int i = 0; i < BAD_TTLS; i++) {
        check_refused(&(struct weir_lease_request){"held", .ttl_ns = bad_ttls[i]}, WEIR_EINVAL);
        check_refused(
            &(struct weir_lease_request){"held", .ttl_ns = bad_ttls[i], .flags = WEIR_LEASE_RENEW},
            WEIR_EINVAL);
    }
    close_store();
}

TEST(flags_that_are_not_known_are_invalid)
{
    static const unsigned unknown[] = {16, 32, 1U << 31, UINT_MAX, UINT_MAX - 15};

    open_store();
    for (int i = 0; i < 5; i++)
        check_refused(&(struct weir_lease_request){"held", .ttl_ns = WEIR_S, .flags = unknown[i]},
                      WEIR_EINVAL);
    close_store();
}

static void must_not_be_called(const char *name, const struct weir_lease *lease, void *arg)
{
    (void)lease;
    (void)arg;
    CHECK_STR(name, "which it is not");
}

TEST(flags_that_contradict_each_other_are_invalid)
{
    const unsigned detached = WEIR_LEASE_DETACHED;

    open_store();
    check_refused(&(struct weir_lease_request){"held", .flags = WEIR_LEASE_RENEW}, WEIR_EINVAL);
    check_refused(&(struct weir_lease_request){"held", .flags = detached}, WEIR_EINVAL);
    check_refused(&(struct weir_lease_request){"held", .ttl_ns = WEIR_S,
                                               .flags = detached | WEIR_LEASE_RENEW},
                  WEIR_EINVAL);
    check_refused(&(struct weir_lease_request){"held", .ttl_ns = WEIR_S, .flags = detached,
                                               .on_lost = must_not_be_called},
                  WEIR_EINVAL);
    check_refused(&(struct weir_lease_request){"held", .flags = WEIR_LEASE_CANCEL_HOLDER},
                  WEIR_EINVAL); /* here is no task */
    close_store();
}

TEST(a_lease_of_what_cannot_be_an_id_is_invalid)
{
    open_store();
    for (int i = 0; i < BAD_IDS; i++)
        check_refused(&(struct weir_lease_request){"held", .id = bad_ids[i]}, WEIR_EINVAL);
    close_store();
}

TEST(another_limit_than_that_of_a_name_in_use_is_a_mismatch)
{
    uint64_t limit = 0;

    open_store();
    check_refused(&(struct weir_lease_request){"held", .limit = 3, .ret_limit = &limit},
                  WEIR_EMISMATCH);
    CHECK_EQ(limit, 2);
    check_refused(&(struct weir_lease_request){"held", .limit = 1}, WEIR_EMISMATCH);
    check_refused(&(struct weir_lease_request){"held", .limit = WEIR_LIMIT_MAX}, WEIR_EMISMATCH);
    close_store();
}

TEST(what_is_invalid_says_nothing_of_the_limit)
{
    uint64_t limit = 99;

    open_store();
    check_refused(
        &(struct weir_lease_request){"held", .limit = 3, .weight = 4, .ret_limit = &limit},
        WEIR_EINVAL);
    CHECK_EQ(limit, 99);
    close_store();
}

TEST(the_block_of_a_lease_that_cannot_be_is_not_run)
{
    open_store();
    for (int i = 0; i < BAD_NAMES; i++) {
        struct weir_lease_request request = {.name = bad_names[i]};

        WEIR_SCOPED_LEASE(lease, store, &request) {
            CHECK_STR(lease->id, "which it has not");
        }
    }
    close_store();
}

/* ---- weir_lease_renew ---------------------------------------------------------------------------- */

/* With another id, or that one; not one byte of it may change. */
static void check_not_renewed(const char *name, const char *id, int64_t ttl_ns, int want)
{
    struct weir_lease lease = held, before;

    if (id)
        memcpy(lease.id, id, strnlen(id, WEIR_ID_LENGTH) + 1);
    lease.id[WEIR_ID_LENGTH] = id && strlen(id) > WEIR_ID_LENGTH ? '0' : '\0';
    before = lease;
    CHECK_EQ(weir_lease_renew(store, name, &lease, ttl_ns), want);
    CHECK_EQ(memcmp(&lease, &before, sizeof lease), 0);
}

TEST(what_cannot_be_renewed_is_not)
{
    open_store();
    for (int i = 0; i < BAD_NAMES; i++)
        check_not_renewed(bad_names[i], NULL, WEIR_S, WEIR_EINVAL);
    for (int i = 0; i < BAD_IDS; i++)
        check_not_renewed("held", bad_ids[i], WEIR_S, WEIR_EINVAL);
    for (int i = 0; i < BAD_TTLS; i++)
        check_not_renewed("held", NULL, bad_ttls[i], WEIR_EINVAL);
    check_not_renewed("held", AN_ID, WEIR_S, WEIR_ENOTHELD);
    check_not_renewed("other", NULL, WEIR_S, WEIR_ENOTHELD);
    close_store();
}

/* ---- weir_lease_release, weir_store_evict, weir_lease_lost_fd --------------------------------------- */

typedef int by_name_and_id(struct weir_store *store, const char *name, const char *id);

static int lost_fd(struct weir_store *of, const char *name, const char *id)
{
    struct weir_lease lease = held;

    memcpy(lease.id, id, strnlen(id, WEIR_ID_LENGTH) + 1);
    lease.id[WEIR_ID_LENGTH] = strlen(id) > WEIR_ID_LENGTH ? '0' : '\0';
    return weir_lease_lost_fd(of, name, &lease);
}

static void check_found_by_nobody(by_name_and_id *call)
{
    open_store();
    for (int i = 0; i < BAD_NAMES; i++)
        CHECK_EQ(call(store, bad_names[i], held.id), WEIR_EINVAL);
    for (int i = 0; i < BAD_IDS; i++)
        CHECK_EQ(call(store, "held", bad_ids[i]), WEIR_EINVAL);
    CHECK_EQ(call(store, "", ""), WEIR_EINVAL);
    CHECK_EQ(call(store, "held", AN_ID), WEIR_ENOTHELD);
    CHECK_EQ(call(store, "other", held.id), WEIR_ENOTHELD);
    CHECK_EQ(call(store, "hel", held.id), WEIR_ENOTHELD);
    close_store();
}

TEST(what_cannot_be_given_back_is_not)
{
    check_found_by_nobody(weir_lease_release);
}

TEST(what_cannot_be_evicted_is_not)
{
    check_found_by_nobody(weir_store_evict);
}

TEST(there_is_no_descriptor_for_what_cannot_be)
{
    check_found_by_nobody(lost_fd);
}

/* ---- weir_store_resize, weir_store_visit, weir_store_close -------------------------------------------- */

TEST(a_name_cannot_be_resized_to_what_cannot_be)
{
    open_store();
    CHECK_EQ(weir_store_resize(store, "held", 0), WEIR_EINVAL);
    CHECK_EQ(weir_store_resize(store, "new", 0), WEIR_EINVAL);
    for (int i = 0; i < TOO_MUCHES; i++) {
        CHECK_EQ(weir_store_resize(store, "held", too_much[i]), WEIR_EINVAL);
        CHECK_EQ(weir_store_resize(store, "new", too_much[i]), WEIR_EINVAL);
    }
    for (int i = 0; i < BAD_NAMES; i++)
        CHECK_EQ(weir_store_resize(store, bad_names[i], 2), WEIR_EINVAL);
    close_store();
}

static int answer(const struct weir_name_stats *stats, void *arg)
{
    CHECK_STR(stats->name, "held");
    return *(const int *)arg;
}

TEST(whatever_a_visitor_answers_is_passed_on)
{
    static const int answers[] = {1, -1, INT_MAX, INT_MIN, WEIR_ENOMEM};

    open_store();
    for (int i = 0; i < 5; i++)
        CHECK_EQ(weir_store_visit(store, answer, (void *)&answers[i]), answers[i]);
    close_store();
}

TEST(no_store_and_the_default_store_are_left_alone_by_close)
{
    weir_store_close(NULL);
    weir_store_close(weir_store_default());
    weir_store_close(weir_store_default());
    CHECK_EQ(weir_store_resize(weir_store_default(), "n", 2), 0);
}

/* ---- observe.h --------------------------------------------------------------------------------------------- */

static void count_notice(const struct weir_notice *n, void *arg)
{
    CHECK(n->name && n->id && n->label && n->task);
    if (arg)
        ++*(int *)arg;
}

TEST(an_observer_may_be_nobody_and_its_argument_nothing)
{
    int told = 0;

    weir_observe(NULL, NULL);
    weir_observe(NULL, &told);
    open_store();
    weir_observe(count_notice, NULL);
    CHECK_EQ(weir_store_resize(store, "held", 2), 0);
    weir_observe(count_notice, &told);
    weir_observe(count_notice, &told);
    CHECK_EQ(weir_lease_release(store, "held", held.id), 0);
    CHECK_EQ(told, 1); /* set twice, and told once */
    weir_observe(NULL, NULL);
    weir_store_close(store);
}
