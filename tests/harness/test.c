/* SPDX-License-Identifier: MIT */
/* Runs the tests: one process each, watched by this one. */
#include "harness/run.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/sanitizer.h"

enum {
    CHECK_FAILED = 1,                          /* exit status of a test that said why */
    CHECK_SKIPPED = 77,                        /* and of one that cannot be run here  */
    SLOWNESS = TEST_ASAN || TEST_TSAN ? 4 : 1, /* limits are wider under a sanitizer  */
};

uint64_t run_seed;
double run_scale = 1.0;
int64_t run_patience_ends_ns = INT64_MAX;

static struct test *tests, **tests_tail = &tests;
static const struct test *running; /* in this process */

void test_register(struct test *t)
{
    *tests_tail = t;
    tests_tail = &t->next;
}

int64_t run_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- failing --------------------------------------------------------------- */

/* Any thread may fail, several at once: the first one speaks and takes the process
 * with it.  dprintf is one write, so the line stays whole beside other output. */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    static int failing;
    char what[1024];
    va_list ap;

    while (__atomic_exchange_n(&failing, 1, __ATOMIC_RELAXED))
        pause();
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "%s:%d: %s  (WEIR_TEST_SEED=%llu)\n", file, line, what,
            (unsigned long long)run_seed);
    _exit(CHECK_FAILED);
}

void test_check_str(const char *file, int line, const char *expr, const char *got, const char *want)
{
    if (got == NULL || strcmp(got, want) != 0)
        test_fail(file, line, "%s: got \"%s\", want \"%s\"", expr, got ? got : "(null)", want);
}

_Noreturn void test_skip(const char *why)
{
    dprintf(STDOUT_FILENO, "skipped %s: %s\n", running->name, why);
    _exit(CHECK_SKIPPED);
}

/* ---- one test -------------------------------------------------------------- */

enum outcome { PASSED, FAILED, SKIPPED };

static int limit_s(const struct test *t)
{
    return (int)(t->time_limit_s * SLOWNESS * (run_scale > 1.0 ? run_scale : 1.0));
}

static void run_here(const struct test *t)
{
    running = t;
    run_random_begin(0);
    t->run();
    test_join_all();
}

static _Noreturn void run_as_child(const struct test *t)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_patience_ends_ns = run_now_ns() + limit_s(t) * INT64_C(900000000); /* 90 % */
    run_here(t);
    exit(0); /* not _exit: let the sanitizers report */
}

/* True when the process has ended, false when the time is over. */
static bool ends_within(pid_t pid, int seconds)
{
    int64_t end_ns = run_now_ns() + seconds * INT64_C(1000000000), left_ns;
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    bool yes = false;

    CHECK(ended.fd >= 0);
    while (!yes && (left_ns = end_ns - run_now_ns()) > 0)
        yes = poll(&ended, 1, (int)(left_ns / 1000000) + 1) > 0;
    close(ended.fd);
    return yes;
}

/* Say how it ended, unless it passed or has said so itself. */
static void report_end(const struct test *t, bool in_time, int status)
{
    if (!in_time)
        fprintf(stderr, "%s: timed out after %d s\n", t->name, limit_s(t));
    else if (WIFSIGNALED(status))
        fprintf(stderr, "%s: %s\n", t->name, strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) > CHECK_FAILED && WEXITSTATUS(status) != CHECK_SKIPPED)
        fprintf(stderr, "%s: exit status %d\n", t->name, WEXITSTATUS(status));
}

static enum outcome outcome_of(bool in_time, int status)
{
    if (!in_time || !WIFEXITED(status))
        return FAILED;
    return WEXITSTATUS(status) == 0               ? PASSED
           : WEXITSTATUS(status) == CHECK_SKIPPED ? SKIPPED
                                                  : FAILED;
}

static enum outcome run_forked(const struct test *t)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_as_child(t);
    if (pid < 0) {
        perror("fork");
        return FAILED;
    }
    setpgid(pid, pid); /* here too: whoever comes first */
    bool in_time = ends_within(pid, limit_s(t));
    kill(-pid, SIGKILL); /* before it is reaped: its number is still its own */
    waitpid(pid, &status, 0);
    report_end(t, in_time, status);
    return outcome_of(in_time, status);
}

/* ---- all of them ----------------------------------------------------------- */

static bool has_option(const char *option, char **args)
{
    for (; *args != NULL; args++)
        if (strcmp(*args, option) == 0)
            return true;
    return false;
}

static bool is_selected(const struct test *t, char **args)
{
    bool any = false;

    for (; *args != NULL; args++) {
        if ((*args)[0] == '-')
            continue;
        any = true;
        if (strstr(t->name, *args) != NULL)
            return true;
    }
    return !any;
}

static void list_selected(char **args)
{
    for (const struct test *t = tests; t != NULL; t = t->next)
        if (is_selected(t, args))
            puts(t->name);
}

static int run_selected(char **args)
{
    bool no_fork = has_option("--no-fork", args);
    int count[] = {[PASSED] = 0, [FAILED] = 0, [SKIPPED] = 0};

    for (const struct test *t = tests; t != NULL; t = t->next) {
        if (!is_selected(t, args))
            continue;
        enum outcome outcome = PASSED;
        if (no_fork)
            run_here(t);
        else
            outcome = run_forked(t);
        if (outcome != SKIPPED) /* which it has said itself, with the reason */
            printf("%s %s\n", outcome == PASSED ? "ok    " : "FAILED", t->name);
        count[outcome]++;
    }
    printf("%d passed, %d failed\n", count[PASSED], count[FAILED]);
    return count[FAILED] != 0;
}

static void read_environment(void)
{
    const char *seed = getenv("WEIR_TEST_SEED"), *scale = getenv("WEIR_TEST_SCALE");

    run_seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 1000 + (uint64_t)getpid();
    run_scale = scale ? atof(scale) : 1.0;
}

int main(int argc, char **argv)
{
    (void)argc;
    read_environment();
    setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what comes on stderr */
    if (has_option("--list", argv + 1)) {
        list_selected(argv + 1);
        return 0;
    }
    printf("WEIR_TEST_SEED=%llu\n", (unsigned long long)run_seed);
    return run_selected(argv + 1);
}
