/* SPDX-License-Identifier: MIT */
/* cli_map - what does it cost to run a command for each line of a file, four at a time?
 *
 * The time of the whole program, divided by the lines.  xargs(1) mixes what the commands
 * write and leaves them behind when it is killed; GNU parallel keeps their output apart.
 * make(1) is not asked: it wants a rule for each line.  Four processes at a time by
 * posix_spawn, with nothing looked after, are the limit.
 *
 * And how much memory do a million lines take?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "processes.h"

extern char **environ;

enum { JOBS = 1000, AT_ONCE = 4, LINES = 1000000 };

static char lines_file[128], parallel_home[128];

/* ---- one program with lines on its standard input --------------------------------------- */

static void write_lines(long count)
{
    FILE *file = fopen(lines_file, "we");

    BENCH_CHECK(file);
    for (long i = 1; i <= count; i++)
        fprintf(file, "%ld\n", i);
    BENCH_CHECK(fclose(file) == 0);
}

static pid_t start_reading(const char *const argv[])
{
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, lines_file, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    BENCH_CHECK(r == 0 || r == ENOENT);
    return r ? -1 : pid;
}

/* parallel makes a directory of its own, which processes.c does not remove. */
static void remove_parallel_home(void)
{
    const char *const argv[] = {"rm", "-rf", parallel_home, NULL};
    pid_t pid = start_reading(argv);

    waitpid(pid, NULL, 0);
}

static void prepare(long lines)
{
    if (!*lines_file) {
        snprintf(lines_file, sizeof lines_file, "%s/lines", own_directory());
        snprintf(parallel_home, sizeof parallel_home, "%s/parallel", own_directory());
        BENCH_CHECK(setenv("PARALLEL_HOME", parallel_home, 1) == 0);
        BENCH_CHECK(atexit(remove_parallel_home) == 0); /* before the directory around it */
    }
    write_lines(lines);
}

/* ---- measurement ------------------------------------------------------------------------ */

static double microseconds(const char *const argv[])
{
    long jobs = bench_times(JOBS);
    int status;

    prepare(jobs);
    int64_t start = bench_now_ns();
    pid_t pid = start_reading(argv);
    if (pid < 0)
        return BENCH_ABSENT;
    BENCH_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return (double)(bench_now_ns() - start) / 1000 / (double)jobs;
}

static double weir_map(void)
{
    static const char *const argv[] = {WEIR_PROGRAM, "map", "-j4", "true", NULL};

    return microseconds(argv);
}

static double xargs_p(void)
{
    static const char *const argv[] = {"xargs", "-P4", "-n1", "true", NULL};

    return microseconds(argv);
}

static double gnu_parallel(void)
{
    static const char *const argv[] = {"parallel", "--will-cite", "-j4", "true", NULL};

    return microseconds(argv);
}

static double bare_spawn(void)
{
    static const char *const argv[] = {"/bin/true", "1", NULL};
    long jobs = bench_times(JOBS);
    int64_t start = bench_now_ns();

    for (long i = 0, running = 0; i < jobs || running;) {
        pid_t pid;

        if (i < jobs && running < AT_ONCE) {
            BENCH_CHECK(posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0);
            i++;
            running++;
        } else {
            BENCH_CHECK(wait(NULL) > 0);
            running--;
        }
    }
    return (double)(bench_now_ns() - start) / 1000 / (double)jobs;
}

/* The most that was resident.  The kernel counts what this program had before the exec as
 * well; it has less. */
static double weir_memory(void)
{
    static const char *const argv[] = {WEIR_PROGRAM, "map", "--dry-run", "echo", "{}", NULL};
    struct rusage usage;
    int status;

    prepare(bench_times(LINES));
    pid_t pid = start_reading(argv);
    BENCH_CHECK(pid > 0 && wait4(pid, &status, 0, &usage) == pid && status == 0);
    return (double)usage.ru_maxrss / 1024;
}

static const struct bench_question questions[] = {
    {
        .name = "cli_map",
        .unit = "us",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_map},
                {"parallel", BENCH_PEER, gnu_parallel},
                {"xargs", BENCH_WEAKER, xargs_p},
                {"posix_spawn", BENCH_LIMIT, bare_spawn},
            },
        .goals = {{"xargs", BENCH_AT_MOST, 0.9}, {"parallel", BENCH_AT_LEAST_FASTER, 6}},
    },
    {
        .name = "cli_map_memory",
        .unit = "MiB",
        .cpus_needed = 1,
        .cases = {{"weir", BENCH_WEIR, weir_memory}},
        .goals = {{NULL, BENCH_AT_MOST, 20}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
