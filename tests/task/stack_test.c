/* SPDX-License-Identifier: MIT */
/* Stacks: what happens at their end, how much was used, and how many there can be. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/sanitizer.h"
#include "task/tasks.h"

/* ---- overflow ------------------------------------------------------------------------------- */

/* Each frame looks into the one above, so that no compiler makes a loop of it. */
__attribute__((noinline)) static int recurse(int depth, volatile char *above)
{
    volatile char frame[512];

    frame[0] = (char)(above[0] + 1);
    return depth <= 0 ? 0 : recurse(depth - 1, frame) + frame[0];
}

static int overflow(void *arg)
{
    CHECK_EQ(weir_task_set_name(arg), 0);
    return recurse(1 << 20, &(volatile char){0});
}

static int overflow_in_a_child(void *arg)
{
    CHECK_EQ(weir_task_set_name("innocent"), 0);
    return finish(start(overflow, arg));
}

static int write_to_nowhere(void *arg)
{
    (void)arg;
    CHECK_EQ(weir_task_set_name("wild"), 0);
    volatile uintptr_t nowhere = 8; /* so that no compiler sees it coming */
    *(volatile int *)nowhere = 0;
    return 0;
}

enum { SURVIVED = 99 };

/* Run fn in a child process, which must not survive it.  What it said on stderr. */
static const char *last_words(const struct weir_run_options *options, weir_fn *fn, void *arg)
{
    static char words[65536];
    size_t length = 0;
    ssize_t n;
    int said_to[2], status;

    CHECK_EQ(pipe(said_to), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(said_to[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        weir_run(options, fn, arg);
        _exit(SURVIVED);
    }
    close(said_to[1]);
    while (length < sizeof words - 1 &&
           (n = read(said_to[0], words + length, sizeof words - 1 - length)) > 0)
        length += (size_t)n;
    words[length] = '\0';
    close(said_to[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (TEST_ASAN || TEST_TSAN) /* they end it in their own way */
        CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != SURVIVED);
    else
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    return words;
}

/* madvise does nothing there and says that it did. */
static const char NO_GUARDS[] = "qemu has no MADV_GUARD_INSTALL";

static const struct weir_run_options caught = {.flags = WEIR_RUN_CATCH_OVERFLOW};
static const struct weir_run_options caught_on_two = {.flags = WEIR_RUN_CATCH_OVERFLOW,
                                                      .workers = 2};

TEST(an_overflow_ends_the_program_with_a_message_that_names_the_task)
{
    SKIP_IF(TEST_QEMU, NO_GUARDS);
    const char *words = last_words(&caught, overflow, "greedy");

    CHECK(strstr(words, "weir: ") != NULL);
    CHECK(strstr(words, "'greedy' overflowed its stack") != NULL);
}

TEST(of_several_tasks_the_one_that_overflowed_is_named)
{
    SKIP_IF(TEST_QEMU, NO_GUARDS);
    const char *words = last_words(&caught_on_two, overflow_in_a_child, "greedy child");

    CHECK(strstr(words, "'greedy child' overflowed its stack") != NULL);
    CHECK(strstr(words, "innocent") == NULL);
}

TEST(another_fault_is_not_taken_for_an_overflow)
{
    CHECK(strstr(last_words(&caught, write_to_nowhere, NULL), "overflowed") == NULL);
}

TEST(without_the_flag_an_overflow_ends_the_program_without_a_word_of_ours)
{
    CHECK(strstr(last_words(NULL, overflow, "greedy"), "weir:") == NULL);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void on_fault(int signo)
{
    _exit(signo);
}

TEST(after_the_run_the_handlers_of_the_program_are_back)
{
    struct sigaction mine = {.sa_handler = on_fault}, now;

    CHECK_EQ(sigaction(SIGSEGV, &mine, NULL), 0);
    CHECK_EQ(weir_run(&caught, do_nothing, NULL), 0);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    CHECK(now.sa_handler == on_fault);
    CHECK_EQ(weir_run(NULL, do_nothing, NULL), 0);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    CHECK(now.sa_handler == on_fault);
}

TEST(a_run_that_could_not_begin_does_not_keep_the_next_from_catching)
{
    int n = 0, r;

    SKIP_IF(TEST_QEMU, NO_GUARDS);
    do {
        test_fail_allocation(++n);
        r = weir_run(&caught, do_nothing, NULL);
    } while (r == WEIR_ENOMEM && n < 3); /* those of the runtime and its worker */
    test_fail_allocation(0);
    CHECK(strstr(last_words(&caught, overflow, "greedy"), "'greedy' overflowed") != NULL);
}

/* ---- how much is used ----------------------------------------------------------------------------- */

static int use_bytes(void *arg)
{
    return recurse(*(int *)arg, &(volatile char){0}) * 0;
}

/* Sanitizers make frames of their own size, and ASan keeps locals elsewhere. */
TEST(the_high_water_mark_is_what_the_deepest_task_has_used)
{
    AS_TASK(the_high_water_mark_is_what_the_deepest_task_has_used);
    struct weir_runtime *runtime = weir_runtime_self();
    int little = 4, much = 60;
    size_t before, after;

    CHECK_EQ(finish(start(use_bytes, &little)), 0);
    before = weir_runtime_stack_high_water(runtime);
    CHECK(before >= 2 * 1024 && before < 64 * 1024);
    CHECK_EQ(finish(start(use_bytes, &much)), 0);
    after = weir_runtime_stack_high_water(runtime);
    CHECK(after >= 60 * 512 || TEST_ASAN);
    CHECK(after > before || TEST_ASAN);
    CHECK(after < 64 * 1024);
    CHECK_EQ(finish(start(use_bytes, &little)), 0);
    CHECK_EQ(weir_runtime_stack_high_water(runtime), after); /* it never falls */
}

static int use_most_of_it(void *arg)
{
    volatile char frame[100 * 1024];

    for (size_t i = 0; i < sizeof frame; i += 1024)
        frame[i] = 1;
    (void)arg;
    return 0;
}

static int start_large(void *arg)
{
    return finish(start(use_most_of_it, arg));
}

TEST(stacks_are_as_large_as_the_options_say)
{
    struct weir_run_options large = {.stack_bytes = 256 * 1024};

    CHECK_EQ(weir_run(&large, start_large, NULL), 0);
}

/* ---- many ------------------------------------------------------------------------------------------ */

static struct weir_event gate;

static int wait_at_gate(void *arg)
{
    (void)arg;
    return weir_event_wait(&gate, WEIR_FOREVER);
}

static void park_many(int n)
{
    struct weir_runtime_stats stats;

    for (int i = 0; i < n; i++)
        CHECK_EQ(weir_task_spawn(wait_at_gate, NULL, NULL), 0);
    YIELD_UNTIL(queued(&gate) == (uint32_t)n);
    weir_runtime_stats(weir_runtime_self(), &stats);
    CHECK_EQ(stats.live, 1 + n);
    CHECK_EQ(stats.stacks, 1 + n);
    weir_event_set(&gate);
    YIELD_UNTIL(live_tasks(weir_runtime_self()) == 1);
}

/* The sanitizers keep a shadow of every stack. */
enum { MANY = TEST_TSAN ? 2000 : TEST_ASAN ? 10000 : 100000 };

TEST_WITHIN(a_hundred_thousand_tasks_wait_at_once, 30)
{
    AS_TASK(a_hundred_thousand_tasks_wait_at_once);
    park_many(MANY);
}

TEST(stacks_are_used_again)
{
    AS_TASK(stacks_are_used_again);
    struct weir_runtime_stats stats;

    for (int round = 0; round < 5; round++) {
        weir_event_init(&gate);
        for (int i = 0; i < 100; i++)
            CHECK_EQ(weir_task_spawn(wait_at_gate, NULL, NULL), 0);
        YIELD_UNTIL(queued(&gate) == 100);
        weir_event_set(&gate);
        YIELD_UNTIL(live_tasks(weir_runtime_self()) == 1);
        weir_runtime_stats(weir_runtime_self(), &stats);
        CHECK_EQ(stats.stacks, 101);
    }
}

TEST(tasks_that_run_one_after_the_other_need_one_stack)
{
    AS_TASK(tasks_that_run_one_after_the_other_need_one_stack);
    struct weir_runtime_stats stats;

    for (int i = 0; i < 1000; i++)
        CHECK_EQ(weir_task_spawn(do_nothing, NULL, NULL), 0);
    YIELD_UNTIL(live_tasks(weir_runtime_self()) == 1);
    weir_runtime_stats(weir_runtime_self(), &stats);
    CHECK_EQ(stats.stacks, 2);
}

TEST(a_stack_is_used_again_as_often_as_one_likes)
{
    AS_TASK(a_stack_is_used_again_as_often_as_one_likes);
    for (int i = 0; i < 70000; i++) /* more often than any record of it has room for */
        CHECK_EQ(finish(start(do_nothing, NULL)), 0);
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    CHECK(f != NULL);
    CHECK_EQ(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

TEST(a_task_that_has_not_started_has_no_stack_and_one_that_waits_a_page)
{
    AS_TASK(a_task_that_has_not_started_has_no_stack_and_one_that_waits_a_page);
    enum { TASKS = TEST_ASAN || TEST_TSAN ? 1000 : 10000 };
    long before = resident_kib(), unstarted, parked;

    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(weir_task_spawn(wait_at_gate, NULL, NULL), 0);
    unstarted = resident_kib();
    YIELD_UNTIL(queued(&gate) == TASKS);
    parked = resident_kib();
    weir_event_set(&gate);
    YIELD_UNTIL(live_tasks(weir_runtime_self()) == 1);
    if (TEST_ASAN || TEST_TSAN)
        return; /* whose memory this is mostly */
    CHECK((unstarted - before) * 1024 / TASKS <= 160);
    CHECK((parked - unstarted) * 1024 / TASKS <= 4700);
}
