/* SPDX-License-Identifier: MIT */
/* The whole test framework.
 *
 *     TEST(release_wakes_oldest_first)
 *     {
 *         ...
 *         CHECK_EQ(weir_sem_available(&sem), 3);
 *     }
 *
 * Tests register themselves.  Each runs in its own process with a time limit,
 * so a deadlock is one failed test, not a hung suite, and no test can leave a
 * thread, a child or a file descriptor behind for the next.
 *
 *     sem_test                 run everything; exit status 1 if anything failed
 *     sem_test --list          print the names
 *     sem_test order idle      run the tests with "order" or "idle" in their names
 *     sem_test --no-fork NAME  in this process and without a time limit (gdb); the
 *                              first that fails or is skipped ends it
 *     WEIR_TEST_SEED=7         repeat a random run; the seed is printed at the start
 *     WEIR_TEST_SCALE=10       ten times the iterations and the time (soak)
 */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <stdbool.h>
#include <stdint.h>

struct test {
    const char *name;
    const char *file;
    void (*run)(void);
    int time_limit_s;
    struct test *next;
};

void test_register(struct test *t);

#define TEST_WITHIN(test_name, limit_s)                                         \
    static void test_name(void);                                                \
    __attribute__((constructor)) static void register_##test_name(void)         \
    {                                                                           \
        static struct test t = {#test_name, __FILE__, test_name, (limit_s), 0}; \
        test_register(&t);                                                      \
    }                                                                           \
    static void test_name(void)

#define TEST(test_name) TEST_WITHIN(test_name, 10)

/* What cannot be had where the test runs.  It ends there, with the reason in the log,
 * and counts as neither passed nor failed.  Never for what may be the fault of weir:
 *     SKIP_IF(TEST_QEMU, "qemu has no seccomp"); */
#define SKIP_IF(cond, why) ((cond) ? test_skip(why) : (void)0)
_Noreturn void test_skip(const char *why);

/* Whether this is made for another machine, to be run under qemu-user: 0 or 1. */
#ifndef TEST_QEMU
#define TEST_QEMU 0
#endif

/* ---- checks: a failed one prints both values and ends the test, also from a
 * thread ------------------------------------------------------------------- */

#define CHECK(cond) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #cond))
#define CHECK_EQ(got, want)                                                              \
    do {                                                                                 \
        long long got_ = (long long)(got), want_ = (long long)(want);                    \
        if (got_ != want_)                                                               \
            test_fail(__FILE__, __LINE__, "%s: got %lld, want %lld", #got, got_, want_); \
    } while (0)
#define CHECK_STR(got, want) test_check_str(__FILE__, __LINE__, #got, (got), (want))

/* The statement ends its process by abort(), with the text somewhere on stderr.
 * It runs in a forked copy, so nothing that it does is seen here. */
#define CHECK_ABORTS(statement, text)                                       \
    do {                                                                    \
        struct test_doomed doomed_ = test_doomed_begin();                   \
        if (doomed_.pid == 0) {                                             \
            statement;                                                      \
            test_doomed_survived();                                         \
        }                                                                   \
        test_doomed_check(__FILE__, __LINE__, #statement, doomed_, (text)); \
    } while (0)

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void test_check_str(const char *file, int line, const char *expr, const char *got,
                    const char *want);

struct test_doomed {
    int pid;
    int said_fd;
};
struct test_doomed test_doomed_begin(void);
_Noreturn void test_doomed_survived(void);
void test_doomed_check(const char *file, int line, const char *statement, struct test_doomed d,
                       const char *text);

/* ---- chance and size ------------------------------------------------------ */

/* A number below `below`.  Each thread has its own stream, which depends only on
 * the seed and on how many threads were spawned before it. */
uint32_t test_random(uint32_t below);
int test_scaled(int iterations); /* iterations times WEIR_TEST_SCALE, at least 1 */

/* ---- threads -------------------------------------------------------------- */

/* Run fn(arg) in a new thread.  All threads are joined after the test has returned;
 * one whose threads use its local variables joins them itself before that.
 * Called by the test's own thread only.  Stacks are small: 256 KiB. */
enum { TEST_MAX_THREADS = 2048 };
void test_spawn(void (*fn)(void *), void *arg);
void test_join_all(void);

/* Wait (politely, nearly up to the time limit) until a condition holds. */
#define EVENTUALLY(cond) \
    while (!(cond))      \
    test_still_waiting(__FILE__, __LINE__, "true", #cond)
void test_still_waiting(const char *file, int line, const char *hope, const char *what);
void test_yield(void);

/* ---- testpoints: races held open on purpose --------------------------------
 *
 *     test_hold("waitq: granted, not delivered");
 *     test_spawn(release, &sem);
 *     test_reached("waitq: granted, not delivered");   // the releaser stands still
 *     CHECK_EQ(weir_op_cancel(&op), 0);
 *     test_let_go("waitq: granted, not delivered");
 *
 * A hold stops the first thread that comes to the point; held twice, the first
 * two.  A test whose race needs more than that sets testpoint_hook itself
 * (base/testpoint.h), before its threads start; holds do not work then. */
void test_hold(const char *point);
void test_reached(const char *point); /* wait until every hold there has its thread */
void test_let_go(const char *point);  /* also what nobody has reached yet           */

/* ---- memory ---------------------------------------------------------------- */

/* The nth allocation from now fails, once; 1 is the next, 0 none.  A test that
 * wants every path does
 *     int n = 0, r;
 *     do {
 *         test_fail_allocation(++n);
 *         r = weir_inbox_open(&inbox);
 *     } while (r == WEIR_ENOMEM);          // and checks n > 1 at the end */
void test_fail_allocation(int n);

#endif
