/* SPDX-License-Identifier: MIT */
/* The harness: what it says of tests that go wrong (fixture.c), and its tools. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/testpoint.h"
#include "harness/sanitizer.h"
#include "harness/test.h"

/* ---- helpers --------------------------------------------------------------- */

static char said[8192]; /* by the fixture, on both streams */

/* Run the fixture with these words of shell; returns its exit status. */
static int fixture(const char *env, const char *args)
{
    char command[1024];

    unsetenv("WEIR_TEST_SCALE");
    snprintf(command, sizeof command, "%s '%s' %s 2>&1", env, FIXTURE, args);
    FILE *out = popen(command, "r");
    CHECK(out != NULL);
    said[fread(said, 1, sizeof said - 1, out)] = '\0';
    int status = pclose(out);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int lines_with(const char *text)
{
    int n = 0;

    for (const char *at = said; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

#define CHECK_SAID(text) \
    (lines_with(text) == 1 ? (void)0 : test_fail(__FILE__, __LINE__, "%s: not in: %s", text, said))

/* ---- running --------------------------------------------------------------- */

TEST(a_test_that_passes_is_counted)
{
    CHECK_EQ(fixture("", "passes"), 0);
    CHECK_SAID("ok     passes\n1 passed, 0 failed\n");
}

TEST(a_test_that_fails_says_where_and_what)
{
    CHECK_EQ(fixture("WEIR_TEST_SEED=77", "fails"), 1);
    CHECK_SAID("fixture.c:20: 2 + 2: got 4, want 5  (WEIR_TEST_SEED=77)\n");
    CHECK_SAID("\"weir\": got \"weir\", want \"dam\"");
    CHECK_SAID("FAILED fails\n");
    CHECK_SAID("\n0 passed, 3 failed\n"); /* and fails_in_a_thread */
}

TEST(a_failure_in_a_thread_fails_the_test_once)
{
    CHECK_EQ(fixture("", "fails_in_a_thread"), 1);
    CHECK_SAID("*(int *)arg: got 6, want 7");
    CHECK_SAID("\n0 passed, 1 failed\n");
}

TEST_WITHIN(a_test_that_hangs_is_killed, 30)
{
    CHECK_EQ(fixture("", "hangs passes"), 1);
    CHECK_SAID("hangs: timed out after ");
    CHECK_SAID("FAILED hangs\n");
    CHECK_SAID("\n1 passed, 1 failed\n"); /* the others go on */
}

TEST_WITHIN(a_condition_that_never_holds_is_named, 30)
{
    CHECK_EQ(fixture("", "waits_in_vain"), 1);
    CHECK_SAID("never true: ready");
}

TEST(a_crash_is_one_failed_test)
{
    CHECK_EQ(fixture("", "crashes passes"), 1);
    CHECK_SAID("crashes: Aborted");
    CHECK_SAID("\n1 passed, 1 failed\n");
}

TEST(an_early_exit_is_a_failed_test)
{
    CHECK_EQ(fixture("", "exits"), 1);
    CHECK_SAID("exits: exit status 3");
}

TEST(a_test_that_is_skipped_says_why_and_counts_as_nothing)
{
    CHECK_EQ(fixture("", "is_skipped passes"), 0);
    CHECK_SAID("skipped is_skipped: no reason\n");
    CHECK_SAID("\n1 passed, 0 failed\n");
}

TEST(no_process_is_left_behind)
{
    CHECK_EQ(fixture("", "leaves_a_process_behind"), 0);
    const char *left = strstr(said, "left ");
    CHECK(left != NULL);
    EVENTUALLY(kill(atoi(left + 5), 0) < 0); /* init may take its time to reap it */
}

#if TEST_ASAN || TEST_TSAN
TEST(what_a_sanitizer_finds_is_a_failed_test)
{
    CHECK_EQ(fixture("", TEST_ASAN ? "leaks" : "races"), 1);
    CHECK_SAID("\n0 passed, 1 failed\n");
}
#endif

/* ---- choosing -------------------------------------------------------------- */

TEST(list_prints_the_names_and_runs_nothing)
{
    CHECK_EQ(fixture("", "--list fails"), 0);
    CHECK_STR(said, "fails\nfails_on_a_string\nfails_in_a_thread\n");
}

TEST(no_fork_runs_in_the_same_process)
{
    CHECK_EQ(fixture("", "--no-fork passes"), 0);
    CHECK_SAID("1 passed, 0 failed\n");
    CHECK_EQ(fixture("", "--no-fork exits"), 3);
}

/* ---- chance and size ------------------------------------------------------- */

static void draw(const char *seed, const char *args, char drew[64])
{
    setenv("WEIR_TEST_SEED", seed, 1);
    CHECK_EQ(fixture("", args), 0);
    const char *at = strstr(said, "drew ");
    CHECK(at != NULL && sscanf(at, "drew %63[0-9 ]", drew) == 1);
}

TEST(the_same_seed_draws_the_same_numbers)
{
    char first[64], again[64], other[64];

    draw("5", "draws", first);
    draw("5", "passes draws", again); /* whatever ran before it */
    draw("6", "draws", other);
    CHECK_STR(again, first);
    CHECK(strcmp(other, first) != 0);
}

TEST(the_scale_multiplies_and_never_gives_nothing)
{
    CHECK_EQ(fixture("WEIR_TEST_SCALE=2.5", "counts"), 0);
    CHECK_SAID("counted 25 1\n");
}

/* ---- threads --------------------------------------------------------------- */

static void count_one(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}

TEST(thousands_of_threads_can_be_spawned_and_again)
{
    int ran = 0;

    for (int i = 0; i < TEST_MAX_THREADS; i++)
        test_spawn(count_one, &ran);
    test_join_all();
    CHECK_EQ(ran, TEST_MAX_THREADS);
    test_spawn(count_one, &ran);
    test_join_all();
    CHECK_EQ(ran, TEST_MAX_THREADS + 1);
}

/* ---- testpoints ------------------------------------------------------------ */

static int passed_by;

static void pass_by(void *arg)
{
    TESTPOINT(arg);
    __atomic_add_fetch(&passed_by, 1, __ATOMIC_RELAXED);
}

static int past(void)
{
    return __atomic_load_n(&passed_by, __ATOMIC_RELAXED);
}

TEST(a_hold_stops_the_first_thread_only)
{
    test_hold("here");
    test_spawn(pass_by, "here");
    test_reached("here");
    test_spawn(pass_by, "there");
    test_spawn(pass_by, "here");
    EVENTUALLY(past() == 2);
    test_let_go("here");
    test_join_all();
    CHECK_EQ(past(), 3);
}

TEST(holding_twice_stops_two_threads)
{
    test_hold("here");
    test_hold("here");
    for (int i = 0; i < 3; i++)
        test_spawn(pass_by, "here");
    test_reached("here");
    EVENTUALLY(past() == 1);
    test_let_go("here");
    test_join_all();
}

TEST(what_was_let_go_can_be_held_again)
{
    for (int i = 0; i < 100; i++) {
        test_hold("here");
        test_spawn(pass_by, "here");
        test_reached("here");
        test_let_go("here");
    }
    test_join_all();
    CHECK_EQ(past(), 100);
}

TEST(what_nobody_has_reached_is_let_go_too)
{
    test_hold("here");
    test_let_go("here");
    pass_by("here"); /* or it would stand there itself */
    CHECK_EQ(past(), 1);
}

/* A thread with a deep sleep does not look around before it is to wake up.  Instead of
 * the libc's, in which a thread that is held spends its time. */
static _Thread_local bool sleeps_deeply;
static int sleeps, is_to_wake;

int nanosleep(const struct timespec *how_long, struct timespec *ret_left)
{
    if (sleeps_deeply) {
        __atomic_store_n(&sleeps, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&is_to_wake, __ATOMIC_ACQUIRE))
            sched_yield();
    }
    return (int)syscall(SYS_nanosleep, how_long, ret_left);
}

static void pass_by_and_sleep(void *arg)
{
    sleeps_deeply = true;
    pass_by(arg);
}

TEST(who_was_let_go_and_is_late_to_notice_is_not_held_in_the_place_of_the_next)
{
    test_hold("here");
    test_spawn(pass_by_and_sleep, "here");
    EVENTUALLY(__atomic_load_n(&sleeps, __ATOMIC_ACQUIRE));
    test_let_go("here");
    test_hold("here");
    test_spawn(pass_by, "here");
    test_reached("here");
    __atomic_store_n(&is_to_wake, 1, __ATOMIC_RELEASE);
    EVENTUALLY(past() == 1); /* the second is still held */
    test_let_go("here");
    test_join_all();
    CHECK_EQ(past(), 2);
}

/* ---- memory ---------------------------------------------------------------- */

TEST(the_nth_allocation_fails_once)
{
    test_fail_allocation(2);
    for (int i = 1; i <= 3; i++) {
        char *p = mem_alloc(16);
        CHECK((p == NULL) == (i == 2));
        CHECK(p == NULL || p[15] == 0);
        mem_free(p);
    }
}

/* ---- death ----------------------------------------------------------------- */

static int lives = 1;

TEST(a_bug_aborts_with_its_words_and_without_us)
{
    CHECK_ABORTS(lives = 0; BUG("this cannot be"), "weir: BUG: this cannot be\n");
    CHECK_EQ(lives, 1);
}

TEST(what_does_not_abort_as_expected_fails_the_test)
{
    CHECK_EQ(fixture("", "abort"), 1);
    CHECK_SAID("(void)0: did not abort");
    CHECK_SAID("abort(): said \"\", want \"anything\"");
}
