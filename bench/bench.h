/* SPDX-License-Identifier: MIT */
/* bench.h - one question, several implementations, medians of interleaved runs.
 *
 * A program states its questions as tables: who takes part, and which goals weir has
 * to reach.  bench_main runs every implementation once per repetition, in turn, so
 * that a disturbance of the machine hits all of them alike, and prints one line of
 * JSON per question, made of the medians.
 *
 * A measurement is a function that takes nothing and returns the cost of one
 * operation in the question's unit.  All implementations of a question run the same
 * harness code: a template over the implementation in C++, a parameter in C.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_role {
    BENCH_WEIR = 1,
    BENCH_PEER,   /* what one would use instead */
    BENCH_WEAKER, /* likewise, but it promises less */
    BENCH_LIMIT,  /* what the machine itself costs; nothing one could use */
};

struct bench_case {
    const char *name;
    enum bench_role role;
    double (*measure)(void); /* one repetition; BENCH_ABSENT if it cannot run here */
};

#define BENCH_ABSENT (-1.0)

enum bench_bound {
    BENCH_AT_MOST = 1,     /* weir takes at most this many times what the peer takes */
    BENCH_AT_LEAST_FASTER, /* the peer takes at least this many times what weir takes */
    BENCH_GOOD_CASE,       /* the same, but hoped for rather than required */
    BENCH_AT_LEAST,        /* of a rate: weir reaches at least this many times the peer's */
};

struct bench_goal {
    const char *peer; /* of any role; NULL: the bound is a number of units */
    enum bench_bound bound;
    double times;
};

enum { BENCH_CASES_MAX = 12, BENCH_GOALS_MAX = 10 };

struct bench_question {
    const char *name;
    const char *unit;     /* of a cost; "per ..." of a rate, of which more is better */
    unsigned cpus_needed; /* with fewer it is not asked */
    struct bench_case cases[BENCH_CASES_MAX];
    struct bench_goal goals[BENCH_GOALS_MAX];
};

/* Options: --repeat N, --quick, --only QUESTION, --list, --samples (each value, to
 * stderr).  Returns an exit status. */
int bench_main(int argc, char **argv, const struct bench_question *questions, size_t count);

/* Before that, for what takes long and varies little. */
void bench_repeat_at_most(unsigned repeat);

/* ---- for measurements ---------------------------------------------------------- */

int64_t bench_now_ns(void);

/* How often or how long to measure: the value given, or a little of it with --quick. */
long bench_times(long full);
int64_t bench_window_ns(void);

/* Keep the calling thread on the nth (from 0) of the CPUs this process may use. */
void bench_pin(unsigned nth);

/* Let it use all of them again. */
void bench_unpin(void);

/* Start a thread with a small stack. */
void bench_spawn(pthread_t *ret_thread, void *(*fn)(void *), void *arg);
void bench_join(pthread_t thread);

/* Wait until `count` other threads of this process are all asleep in the kernel: the
 * only proof that holds for every implementation that they wait. */
void bench_until_asleep(unsigned count);

/* Run a program that lies beside this one, and read the number that it prints. */
double bench_external(const char *program, const char *what, long n);

/* Stop the program: a benchmark of something that fails says nothing. */
void bench_fail(const char *what) __attribute__((noreturn));

#define BENCH_CHECK(expr)                 \
    do {                                  \
        if (__builtin_expect(!(expr), 0)) \
            bench_fail(#expr);            \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
