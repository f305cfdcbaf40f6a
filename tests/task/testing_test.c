/* SPDX-License-Identifier: MIT */
/* Aids for the tests of programs that use weir: the seed, and looking at tasks.  (The
 * virtual clock is in timer_test.c.) */
#include <weir/testing.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "task/tasks.h"

/* ---- the seed ------------------------------------------------------------------------------- */

static int say_and_yield(void *arg)
{
    for (int i = 0; i < 4; i++) {
        say_it(arg);
        CHECK_EQ(weir_task_yield(), 0);
    }
    return 0;
}

static int yield_in_turns(void *arg)
{
    (void)arg;
    for (const char *c = "abcdef"; *c; c++)
        CHECK_EQ(weir_task_spawn(say_and_yield, (void *)c, NULL), 0);
    return 0;
}

/* What six tasks say in turns under a seed, or without one for NULL. */
static char *order_under(const char *seed)
{
    if (seed)
        CHECK_EQ(setenv("WEIR_SCHED_SEED", seed, 1), 0);
    else
        CHECK_EQ(unsetenv("WEIR_SCHED_SEED"), 0);
    forget_what_was_said();
    CHECK_EQ(weir_run(NULL, yield_in_turns, NULL), 0);
    CHECK_EQ(how_much_was_said(), 24); /* nobody is forgotten */
    return strdup(said);
}

TEST(without_a_seed_the_order_is_that_of_arrival)
{
    char *order = order_under(NULL);

    CHECK_STR(order, "abcdefabcdefabcdefabcdef");
    free(order);
}

TEST(an_even_seed_is_the_odd_one_after_it)
{
    char *even = order_under("8"), *odd = order_under("9");

    CHECK_STR(even, odd);
    free(even);
    free(odd);
}

TEST(a_seed_gives_another_order_and_the_same_one_every_time)
{
    char *plain = order_under(NULL), *last = strdup("");
    int others = 0, changes = 0;

    for (int i = 1; i <= 10; i++) {
        char seed[8];

        snprintf(seed, sizeof seed, "%d", 2 * i + 1);
        char *once = order_under(seed), *again = order_under(seed);
        CHECK_STR(again, once);
        others += strcmp(once, plain) != 0;
        changes += strcmp(once, last) != 0;
        free(again);
        free(last);
        last = once;
    }
    free(last);
    free(plain);
    CHECK(others >= 8);
    CHECK(changes >= 8);
}

/* ---- looking at tasks --------------------------------------------------------------------------- */

static struct weir_event gate;

static int name_and_wait(void *arg)
{
    CHECK_EQ(weir_task_set_name(arg), 0);
    return weir_event_wait(&gate, WEIR_FOREVER);
}

struct seen {
    const char *name; /* the one that is looked for */
    int times, all;
    struct weir_task_info info;
    char waits_for[32];
};

static void see(const struct weir_task_info *info, void *arg)
{
    struct seen *s = arg;

    s->all++;
    if (strcmp(info->name, s->name) != 0)
        return;
    s->times++;
    s->info = *info;
    s->waits_for[0] = '\0';
    if (info->waits_for)
        strcpy(s->waits_for, info->waits_for);
}

static struct seen look_for(struct weir_runtime *runtime, const char *name)
{
    struct seen s = {.name = name};

    weir_visit_tasks(runtime, see, &s);
    return s;
}

TEST(every_task_is_visited_with_its_name_its_state_and_its_handle)
{
    AS_TASK(every_task_is_visited_with_its_name_its_state_and_its_handle);
    struct weir_runtime *runtime = weir_runtime_self();
    struct weir_task one = start(name_and_wait, "one"), two;

    CHECK_EQ(weir_task_set_name("root"), 0);
    YIELD_UNTIL(queued(&gate) == 1);
    two = start(name_and_wait, "two");

    struct seen s = look_for(runtime, "one");
    CHECK_EQ(s.all, 3);
    CHECK_EQ(s.times, 1);
    CHECK_EQ(s.info.state, WEIR_TASK_PARKED);
    CHECK_STR(s.waits_for, "event");
    CHECK(s.info.task.slot_ == one.slot_ && s.info.task.generation_ == one.generation_);

    s = look_for(runtime, "root");
    CHECK_EQ(s.times, 1);
    CHECK_EQ(s.info.state, WEIR_TASK_READY); /* it runs */
    CHECK_STR(s.waits_for, "");

    s = look_for(runtime, ""); /* two has not begun, and so has no name */
    CHECK_EQ(s.times, 1);
    CHECK_EQ(s.info.state, WEIR_TASK_UNSTARTED);

    weir_event_set(&gate);
    let_others_run();
    s = look_for(runtime, "one");
    CHECK_EQ(s.times, 0);
    CHECK_EQ(look_for(runtime, "").all, 1); /* ended, though not joined */
    finish(one);
    finish(two);
    CHECK_EQ(look_for(runtime, "").all, 1);
}

static int name_and_yield(void *arg)
{
    CHECK_EQ(weir_task_set_name(arg), 0);
    return weir_task_yield();
}

TEST(a_task_that_waits_for_its_turn_is_ready)
{
    AS_TASK(a_task_that_waits_for_its_turn_is_ready);
    struct weir_task task = start(name_and_yield, "yields");

    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(look_for(weir_runtime_self(), "yields").info.state, WEIR_TASK_READY);
    CHECK_EQ(finish(task), 0);
}

static int name_and_wait_as_told(void *arg)
{
    CHECK_EQ(weir_task_set_name("waits"), 0);
    return wait_as_told(arg);
}

TEST(for_each_way_to_wait_it_is_said_what_is_waited_for)
{
    AS_TASK(for_each_way_to_wait_it_is_said_what_is_waited_for);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {way, &things, WEIR_FOREVER, NOT_YET, 0};

        things_init(&things);
        struct weir_task task = start(name_and_wait_as_told, &w);
        YIELD_UNTIL(queued(thing_of(way, &things)) == 1);
        struct seen s = look_for(weir_runtime_self(), "waits");
        CHECK_WAY(way, s.times, 1);
        CHECK_WAY(way, s.info.state, WEIR_TASK_PARKED);
        CHECK_STR(s.waits_for, way->name);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_WAY(way, finish(task), WEIR_ECANCELED);
    }
}

static int name_and_sleep(void *arg)
{
    CHECK_EQ(weir_task_set_name(arg), 0);
    return weir_task_sleep(weir_within(100 * WEIR_S));
}

TEST(it_is_said_for_how_long_a_task_has_been_waiting)
{
    AS_TASK_IN_NO_TIME(it_is_said_for_how_long_a_task_has_been_waiting);
    struct weir_task task = start(name_and_sleep, "sleeps");

    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(look_for(weir_runtime_self(), "sleeps").info.parked_ns, 0);
    CHECK_EQ(weir_task_sleep(weir_within(60 * WEIR_S)), 0);
    struct seen s = look_for(weir_runtime_self(), "sleeps");
    CHECK_EQ(s.info.parked_ns, 60 * WEIR_S);
    CHECK_STR(s.waits_for, "time");
    CHECK_EQ(finish(task), 0);
}

TEST(tasks_are_visited_from_any_thread_and_only_those_of_the_runtime)
{
    struct weir_runtime *one = open_runtime(1), *two = open_runtime(2);
    struct weir_task a = start_in(one, name_and_wait, "a"), b = start_in(two, name_and_wait, "b");

    EVENTUALLY(queued(&gate) == 2);
    EVENTUALLY(look_for(one, "a").info.state == WEIR_TASK_PARKED);
    CHECK_EQ(look_for(one, "a").all, 1);
    CHECK_EQ(look_for(two, "b").times, 1);
    CHECK_EQ(look_for(two, "a").times, 0);
    weir_event_set(&gate);
    finish(a);
    finish(b);
    close_runtime(one);
    close_runtime(two);
}

TEST(tasks_that_ended_in_a_runtime_that_was_closed_are_not_in_the_way)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_task left = start_in(runtime, say_it, "a");

    close_runtime(runtime); /* and left was not joined */
    runtime = open_runtime(1);
    struct weir_task task = start_in(runtime, name_and_wait, "b");
    EVENTUALLY(queued(&gate) == 1);
    CHECK_EQ(look_for(runtime, "b").all, 1);
    weir_event_set(&gate);
    finish(task);
    close_runtime(runtime);
    finish(left);
}

/* Visitors while tasks come and go: for the sanitizers. */
static int come_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < test_scaled(100); i++) {
        struct weir_task tasks[5];

        for (int k = 0; k < 5; k++)
            tasks[k] = start(name_and_yield, "comes and goes");
        for (int k = 0; k < 5; k++)
            CHECK_EQ(finish(tasks[k]), 0);
    }
    return 0;
}

static void check_sane(const struct weir_task_info *info, void *arg)
{
    (void)arg;
    CHECK(strcmp(info->name, "") == 0 || strcmp(info->name, "comes and goes") == 0);
    CHECK(info->state <= WEIR_TASK_PARKED);
    CHECK(info->state == WEIR_TASK_PARKED ? info->waits_for != NULL : true);
}

TEST(tasks_may_come_and_go_while_they_are_visited)
{
    struct weir_runtime *runtime = open_runtime(2);
    struct weir_task a = start_in(runtime, come_and_go, NULL);
    struct weir_task b = start_in(runtime, come_and_go, NULL);
    int joined = 0;

    while (joined < 2) {
        weir_visit_tasks(runtime, check_sane, NULL);
        joined += weir_task_join(a, WEIR_NO_WAIT, NULL) == 0;
        joined += weir_task_join(b, WEIR_NO_WAIT, NULL) == 0;
    }
    close_runtime(runtime);
}

/* ---- the dump ------------------------------------------------------------------------------------- */

TEST(a_dump_has_a_line_for_each_task)
{
    AS_TASK(a_dump_has_a_line_for_each_task);
    char text[4096] = "";
    FILE *file = tmpfile();
    struct weir_task one = start(name_and_wait, "the first"), two;

    CHECK(file != NULL);
    YIELD_UNTIL(queued(&gate) == 1);
    two = start(name_and_wait, "the second");
    weir_dump_tasks(weir_runtime_self(), fileno(file));
    rewind(file);
    CHECK(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);

    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    CHECK_EQ(lines, 3);
    char *first = strstr(text, "the first");
    CHECK(first != NULL);
    *strchr(first, '\n') = '\0';
    CHECK(strstr(first, "parked") != NULL);
    CHECK(strstr(first, "event") != NULL);
    weir_event_set(&gate);
    finish(one);
    finish(two);
}
