/* SPDX-License-Identifier: MIT */
/* Names: what can be one, that each is a semaphore of its own, and when it is forgotten. */
#include <stdio.h>

#include "named/conformance/world.h"

/* ---- what can be a name ------------------------------------------------------------- */

STORE_TEST(a_new_store_has_no_names)
{
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(a_name_has_up_to_200_bytes)
{
    char longest[WEIR_NAME_MAX + 2], almost[WEIR_NAME_MAX + 1];

    memset(longest, 'n', sizeof longest);
    longest[WEIR_NAME_MAX] = '\0';
    strcpy(almost, longest);
    almost[WEIR_NAME_MAX - 1] = 'm';
    struct weir_lease lease = take(w, ask(longest, 1));
    CHECK_EQ(held(w, longest), 1);
    CHECK_EQ(try_to_take(w->store, ask(longest, 1)), WEIR_ETIMEDOUT);
    CHECK_EQ(try_to_take(w->store, ask(almost, 1)), 0); /* the last byte counts */
    give_back(w, longest, &lease);
}

STORE_TEST(a_name_of_no_bytes_or_of_more_than_200_is_invalid)
{
    char long_name[WEIR_NAME_MAX + 2];

    memset(long_name, 'n', sizeof long_name - 1);
    long_name[WEIR_NAME_MAX + 1] = '\0';
    CHECK_EQ(try_to_take(w->store, ask("", 1)), WEIR_EINVAL);
    CHECK_EQ(try_to_take(w->store, ask(long_name, 1)), WEIR_EINVAL);
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(a_name_may_have_any_bytes)
{
    static const char *const odd[] = {
        "/",    "..",     ".",       "/etc/passwd", "../../x", "a b", "\n",       "\x01",
        "\xff", "\x80/z", "clients", "%s%n",        "*",       "-rf", "\xc3\xa9", "'\"\\$(x)",
    };
    enum { NAMES = sizeof odd / sizeof *odd };
    struct weir_lease lease[NAMES];

    for (int i = 0; i < NAMES; i++)
        lease[i] = take(w, ask(odd[i], 1));
    CHECK_EQ(names_in(w->store), NAMES);
    for (int i = 0; i < NAMES; i++) {
        CHECK_EQ(look(w, odd[i]).stats.leases, 1);
        CHECK_STR(look(w, odd[i]).lease[0].id, lease[i].id);
        give_back(w, odd[i], &lease[i]);
    }
}

STORE_TEST(every_single_byte_is_a_name)
{
    for (int byte = 1; byte < 256; byte++) {
        char name[] = {(char)byte, '\0'};

        take(w, ask(name, 1));
    }
    CHECK_EQ(names_in(w->store), 255);
}

STORE_TEST(the_name_need_not_stay_where_it_was)
{
    char name[] = "database";
    struct weir_lease lease = take(w, ask(name, 1));

    strcpy(name, "printer?");
    CHECK_EQ(held(w, "database"), 1);
    give_back(w, "database", &lease);
}

/* ---- each is one semaphore -------------------------------------------------------------- */

STORE_TEST(the_same_name_is_the_same_semaphore)
{
    char copy[] = "database";
    struct weir_lease lease = take(w, ask("database", 1));

    CHECK_EQ(try_to_take(w->store, ask(copy, 1)), WEIR_ETIMEDOUT);
    give_back(w, copy, &lease);
    CHECK_EQ(try_to_take(w->store, ask(copy, 1)), 0);
}

STORE_TEST(another_name_is_another_semaphore)
{
    struct weir_lease one = take(w, ask("one", 1));

    CHECK_EQ(try_to_take(w->store, ask("two", 1)), 0);
    CHECK_EQ(weir_lease_release(w->store, "two", one.id), WEIR_ENOTHELD);
    CHECK_EQ(held(w, "one"), 1);
}

STORE_TEST_WITHIN(there_may_be_a_thousand_names, 30)
{
    enum { NAMES = 1000 };
    static struct weir_lease lease[NAMES];
    char name[16];

    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "name %d", i);
        lease[i] = take(w, ask(name, 1));
    }
    CHECK_EQ(names_in(w->store), NAMES);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "name %d", i);
        CHECK_EQ(try_to_take(w->store, ask(name, 1)), WEIR_ETIMEDOUT);
        give_back(w, name, &lease[i]);
        CHECK_EQ(try_to_take(w->store, ask(name, 1)), 0);
    }
}

/* ---- forgetting -------------------------------------------------------------------------- */

static bool is_there(struct world *w, const char *name)
{
    return look(w, name).there;
}

STORE_TEST(a_name_that_nobody_uses_is_forgotten)
{
    reopen_forgetful(w, WEIR_MS);
    struct weir_lease lease = take(w, ask("n", 5));
    give_back(w, "n", &lease);
    EVENTUALLY(!is_there(w, "n"));
    CHECK_EQ(names_in(w->store), 0);
}

STORE_TEST(a_name_is_not_forgotten_before_its_time)
{
    struct weir_lease lease = take(w, ask("n", 5)); /* 60 s, which is longer than this takes */

    give_back(w, "n", &lease);
    CHECK(is_there(w, "n"));
    CHECK_EQ(look(w, "n").stats.limit, 5);
    CHECK_EQ(look(w, "n").stats.granted, 1);
}

STORE_TEST(a_name_that_was_only_resized_is_forgotten_too)
{
    reopen_forgetful(w, WEIR_MS);
    CHECK_EQ(weir_store_resize(w->store, "n", 7), 0);
    EVENTUALLY(!is_there(w, "n"));
}

/* Let a name be forgotten that came after all others were in use. */
static void let_another_be_forgotten(struct world *w)
{
    CHECK_EQ(try_to_take(w->store, ask("another", 1)), 0);
    EVENTUALLY(!is_there(w, "another"));
}

STORE_TEST(a_name_is_not_forgotten_while_it_is_held)
{
    reopen_forgetful(w, WEIR_MS);
    struct weir_lease lease = take(w, ask("n", 1));
    for (int i = 0; i < 5; i++)
        let_another_be_forgotten(w);
    CHECK_EQ(held(w, "n"), 1);
    give_back(w, "n", &lease);
    EVENTUALLY(!is_there(w, "n"));
}

STORE_TEST(a_name_is_not_forgotten_while_somebody_waits_for_it)
{
    reopen_forgetful(w, WEIR_MS);
    struct weir_lease lease = take(w, ask("n", 2));
    struct asker *heavy = queue_up(w, THREAD, ask_weight("n", 2, 2));
    struct asker *task = queue_up(w, TASK, ask("n", 2));
    for (int i = 0; i < 5; i++)
        let_another_be_forgotten(w);
    CHECK_EQ(waiting(w, "n"), 2);
    give_back(w, "n", &lease);
    CHECK_EQ(answer_of(heavy), 0);
    give_back(w, "n", &heavy->lease);
    CHECK_EQ(answer_of(task), 0);
}

STORE_TEST(a_name_is_not_forgotten_while_a_lease_without_an_owner_runs)
{
    struct weir_lease_request request = ask_ttl("n", 1, LASTING_TTL);

    reopen_forgetful(w, WEIR_MS);
    request.flags = WEIR_LEASE_DETACHED;
    struct weir_lease lease = take(w, request);
    for (int i = 0; i < 5; i++)
        let_another_be_forgotten(w);
    CHECK_EQ(held(w, "n"), 1);
    give_back(w, "n", &lease);
}

STORE_TEST(a_forgotten_name_is_made_anew)
{
    reopen_forgetful(w, WEIR_MS);
    struct weir_lease lease = take(w, ask("n", 5));
    give_back(w, "n", &lease);
    EVENTUALLY(!is_there(w, "n"));
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ENOTHELD);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), WEIR_ENOTHELD);
    take(w, ask("n", 0));
    CHECK_EQ(look(w, "n").stats.limit, 1);
    CHECK_EQ(look(w, "n").stats.granted, 1);
}

/* ---- labels -------------------------------------------------------------------------------- */

STORE_TEST(a_lease_and_a_waiter_show_their_labels)
{
    struct weir_lease_request first = ask("n", 1), second = ask("n", 1);

    first.label = "nightly report";
    second.label = "\xc3\xa9t\xc3\xa9";
    take(w, first);
    queue_up(w, TASK, second);
    struct view view = look(w, "n");
    CHECK_STR(view.lease[0].label, "nightly report");
    CHECK_STR(view.waiter[0].label, "\xc3\xa9t\xc3\xa9");
}

STORE_TEST(without_a_label_there_is_an_empty_one)
{
    take(w, ask("n", 1));
    CHECK_STR(look(w, "n").lease[0].label, "");
}

STORE_TEST(a_label_is_cut_after_79_bytes)
{
    char label[100], want[WEIR_LABEL_MAX + 1] = "";
    struct weir_lease_request request = ask("n", 2);

    memset(label, 'l', sizeof label);
    label[sizeof label - 1] = '\0';
    memcpy(want, label, WEIR_LABEL_MAX);
    request.label = label;
    take(w, request);
    CHECK_STR(look(w, "n").lease[0].label, want);
    label[WEIR_LABEL_MAX] = '\0'; /* this one fits */
    take(w, request);
    CHECK_STR(look(w, "n").lease[1].label, want);
}
