/* SPDX-License-Identifier: MIT */
/* Tests that go wrong, each in one way, for harness_test.c to look at. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/sanitizer.h"
#include "harness/test.h"

TEST(passes)
{
    CHECK(true);
    CHECK_EQ(2 + 2, 4);
    CHECK_STR("weir", "weir");
}

TEST(fails)
{
    CHECK_EQ(2 + 2, 5);
}

TEST(fails_on_a_string)
{
    CHECK_STR("weir", "dam");
}

TEST_WITHIN(hangs, 1)
{
    pause();
}

TEST_WITHIN(waits_in_vain, 1)
{
    int ready = 0;

    EVENTUALLY(ready);
}

static void fail_in_thread(void *arg)
{
    CHECK_EQ(*(int *)arg, 7);
}

TEST(fails_in_a_thread)
{
    int six = 6;

    for (int i = 0; i < 8; i++)
        test_spawn(fail_in_thread, &six);
    test_join_all();
}

TEST(is_skipped)
{
    SKIP_IF(false, "not yet");
    SKIP_IF(true, "no reason");
    CHECK(false);
}

TEST(crashes)
{
    abort();
}

TEST(exits)
{
    exit(3);
}

/* The grandchild would outlive the test by a minute; its number is told, so that
 * somebody can look for it. */
TEST(leaves_a_process_behind)
{
    pid_t pid = fork();

    if (pid == 0) {
        sleep(60);
        _exit(0);
    }
    printf("left %d\n", (int)pid);
}

TEST(draws)
{
    printf("drew %u %u\n", (unsigned)test_random(1000000), (unsigned)test_random(1000000));
}

TEST(counts)
{
    printf("counted %d %d\n", test_scaled(10), test_scaled(0));
}

TEST(does_not_abort)
{
    CHECK_ABORTS((void)0, "anything");
}

TEST(aborts_with_other_words)
{
    CHECK_ABORTS(abort(), "anything");
}

#if TEST_ASAN
TEST(leaks)
{
    void *volatile lost = malloc(100);

    lost = NULL;
    (void)lost;
}
#elif TEST_TSAN
static void add_one(void *arg)
{
    *(int *)arg += 1;
}

TEST(races)
{
    int shared = 0;

    test_spawn(add_one, &shared);
    test_spawn(add_one, &shared);
    test_join_all();
}
#endif
