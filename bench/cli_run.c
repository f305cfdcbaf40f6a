/* SPDX-License-Identifier: MIT */
/* cli_run - how long does it take to run a command behind `weir run`?
 *
 * From starting weir until it has ended: looking at its options, opening the store, taking a
 * lease, running `true` and waiting for it, giving the lease back.  flock(1) does as much
 * with a lock, which is one permit and in no order; sem(1), of GNU parallel, has permits.
 * To run `true` with nothing before it is the limit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "processes.h"

extern char **environ;

enum { RUNS = 200, SLOW_RUNS = 8 };

static char lock_file[128], parallel_home[128];

/* ---- one command --------------------------------------------------------------------- */

/* Returns false if there is no such program. */
static bool run_once(const char *const argv[])
{
    pid_t pid;
    int status, r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);

    if (r == ENOENT)
        return false;
    BENCH_CHECK(r == 0 && waitpid(pid, &status, 0) == pid && status == 0);
    return true;
}

/* sem keeps its semaphores in directories, which processes.c does not remove. */
static void remove_parallel_home(void)
{
    const char *const argv[] = {"rm", "-rf", parallel_home, NULL};

    run_once(argv);
}

static void prepare(void)
{
    char uri[128];

    if (*lock_file)
        return;
    snprintf(lock_file, sizeof lock_file, "%s/lock", own_directory());
    snprintf(parallel_home, sizeof parallel_home, "%s/parallel", own_directory());
    snprintf(uri, sizeof uri, "shm:%s", own_directory());
    BENCH_CHECK(setenv("WEIR_STORE", uri, 1) == 0);
    BENCH_CHECK(setenv("PARALLEL_HOME", parallel_home, 1) == 0);
    BENCH_CHECK(atexit(remove_parallel_home) == 0); /* before the directory around it */
}

/* ---- measurement ----------------------------------------------------------------------- */

static double microseconds(const char *const argv[], long runs)
{
    if (!run_once(argv)) /* and it is in the cache from now on */
        return BENCH_ABSENT;
    int64_t start = bench_now_ns();
    for (long i = 0; i < runs; i++)
        run_once(argv);
    return (double)(bench_now_ns() - start) / 1000 / (double)runs;
}

static double weir_run(void)
{
    static const char *const argv[] = {WEIR_PROGRAM, "run", "bench", "--", "true", NULL};

    prepare();
    return microseconds(argv, bench_times(RUNS));
}

static double weir_run_exec(void)
{
    static const char *const argv[] = {WEIR_PROGRAM, "run", "bench", "--exec", "--", "true", NULL};

    prepare();
    return microseconds(argv, bench_times(RUNS));
}

static double flock_run(void)
{
    static const char *const argv[] = {"flock", lock_file, "true", NULL};

    prepare();
    return microseconds(argv, bench_times(RUNS));
}

static double sem_run(void)
{
    static const char *const argv[] = {"sem", "--will-cite", "--fg", "--id", "bench", "true", NULL};

    prepare();
    return microseconds(argv, bench_times(SLOW_RUNS));
}

static double plain_run(void)
{
    static const char *const argv[] = {"true", NULL};

    prepare();
    return microseconds(argv, bench_times(RUNS));
}

static const struct bench_question questions[] = {
    {
        .name = "cli_run",
        .unit = "us",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_run},
                {"sem", BENCH_PEER, sem_run},
                {"flock", BENCH_WEAKER, flock_run},
                {"plain", BENCH_LIMIT, plain_run},
            },
        .goals = {{"flock", BENCH_AT_MOST, 0.9}, {"sem", BENCH_AT_LEAST_FASTER, 60}},
    },
    {
        .name = "cli_run_exec",
        .unit = "us",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_run_exec},
                {"flock", BENCH_WEAKER, flock_run},
                {"plain", BENCH_LIMIT, plain_run},
            },
        .goals = {{"flock", BENCH_AT_MOST, 0.72}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
