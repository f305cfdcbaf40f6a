/* SPDX-License-Identifier: MIT */
/* Bugs inside tasks are found: each is planted in a program of its own, which must end
 * with the sanitizer's report of it.  Compiled only with a sanitizer; PLANTED is the path
 * of the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/sanitizer.h"
#include "harness/test.h"

static char report[1 << 20];

/* Run it with a bug; its exit status, or minus the signal that ended it. */
static int run_planted(const char *bug)
{
    size_t length = 0;
    ssize_t n;
    int fds[2], status;

    CHECK_EQ(pipe(fds), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setenv("ASAN_OPTIONS", "detect_stack_use_after_return=1", 1);
        setenv("TSAN_OPTIONS", "halt_on_error=1", 1);
        execl(PLANTED, "planted", bug, NULL);
        _exit(127);
    }
    close(fds[1]);
    while (length < sizeof report - 1 &&
           (n = read(fds[0], report + length, sizeof report - 1 - length)) > 0)
        length += (size_t)n;
    report[length] = '\0';
    close(fds[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define CHECK_FOUND(bug, text)                                                                  \
    do {                                                                                        \
        int r_ = run_planted(bug);                                                              \
                                                                                                \
        CHECK(r_ != 127);                                                                       \
        if (r_ == 0 || strstr(report, (text)) == NULL)                                          \
            test_fail(__FILE__, __LINE__, "%s: status %d, said \"%.300s\"", (bug), r_, report); \
    } while (0)

#define CHECK_CLEAN(bug)                                                                        \
    do {                                                                                        \
        int r_ = run_planted(bug);                                                              \
                                                                                                \
        if (r_ != 0 || report[0] != '\0')                                                       \
            test_fail(__FILE__, __LINE__, "%s: status %d, said \"%.300s\"", (bug), r_, report); \
    } while (0)

TEST(a_program_of_tasks_without_a_bug_is_clean)
{
    CHECK_CLEAN("none");
    CHECK_CLEAN("no-race");
}

#if TEST_ASAN
TEST(asan_finds_a_heap_overflow_in_a_task)
{
    CHECK_FOUND("heap-overflow", "heap-buffer-overflow");
    CHECK(strstr(report, "in heap_overflow") != NULL); /* and knows the stack it is on */
}

TEST(asan_finds_a_use_after_free_in_a_task)
{
    CHECK_FOUND("use-after-free", "heap-use-after-free");
}

TEST(asan_finds_an_overflow_of_a_local_array_in_a_task)
{
    CHECK_FOUND("stack-buffer-overflow", "stack-buffer-overflow");
}

TEST(asan_finds_the_overflow_of_a_tasks_stack)
{
    CHECK_FOUND("stack-overflow", "stack-overflow");
}

TEST(asan_finds_a_use_after_return_in_a_task)
{
    CHECK_FOUND("use-after-return", "stack-use-after-return");
}
#endif

#if TEST_TSAN
TEST(tsan_finds_a_race_between_a_task_and_a_thread)
{
    CHECK_FOUND("race", "data race");
    CHECK(strstr(report, "count_in_thread") != NULL);
}
#endif
