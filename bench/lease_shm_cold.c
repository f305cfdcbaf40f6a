/* SPDX-License-Identifier: MIT */
/* lease_shm_cold - how long does a program that has just been started take to get a lease?
 *
 * This program starts itself and measures in there, from the first line of main until the
 * lease is had: opening the store, joining those who use it, and one acquire, with every
 * page touched and every symbol looked up for the first time.  The directory exists; another
 * process has the store open and holds a lease of the name, or nobody has used the name yet.
 * Opening a file and locking it with flock is the same for one permit.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store.h>

#include "bench.h"
#include "processes.h"

enum { STARTS = 50 };

static char this_program[] = "/proc/self/exe";
static char fresh_weir[] = "--fresh-weir", fresh_flock[] = "--fresh-flock";
static char known_name[] = "known";

/* ---- in the fresh process ------------------------------------------------------------ */

static void get_lease(const char *directory, const char *name)
{
    struct weir_lease_request ask = {.name = name, .limit = 2};
    struct weir_store *store;
    struct weir_lease lease;
    char uri[128];

    snprintf(uri, sizeof uri, "shm:%s", directory);
    BENCH_CHECK(weir_store_open(uri, NULL, &store) == 0);
    BENCH_CHECK(weir_lease_acquire(store, &ask, WEIR_FOREVER, &lease) == 0);
}

static void get_flock(const char *directory, const char *name)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    BENCH_CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
}

/* Its standard output goes to whoever started it. */
static int fresh(char **argv)
{
    int64_t start = bench_now_ns();

    if (strcmp(argv[1], fresh_weir) == 0)
        get_lease(argv[2], argv[3]);
    else
        get_flock(argv[2], argv[3]);
    start = bench_now_ns() - start;
    BENCH_CHECK(write(STDOUT_FILENO, &start, sizeof start) == sizeof start);
    return 0;
}

/* ---- measurement --------------------------------------------------------------------- */

static int64_t start_one(char *how, const char *name)
{
    char *argv[] = {this_program, how, (char *)own_directory(), (char *)name, NULL};
    char *no_environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    int64_t took;
    int ends[2];
    pid_t pid;

    BENCH_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    BENCH_CHECK(posix_spawn(&pid, this_program, &actions, NULL, argv, no_environment) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    BENCH_CHECK(read(ends[0], &took, sizeof took) == sizeof took);
    close(ends[0]);
    process_join(pid);
    return took;
}

/* Somebody else who uses the store, for as long as this program runs. */
static void hold_known_name(void)
{
    static bool held;

    if (!held)
        get_lease(own_directory(), known_name);
    held = true;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* The median: one that was interrupted says nothing about the others. */
static double microseconds(char *how, bool new_name)
{
    static unsigned names_made;
    long starts = bench_times(STARTS);
    int64_t times[STARTS];
    char name[32];

    bench_pin(0);
    hold_known_name();
    for (long i = 0; i < starts; i++) {
        snprintf(name, sizeof name, "new-%u", names_made++);
        times[i] = start_one(how, new_name ? name : known_name);
    }
    qsort(times, (size_t)starts, sizeof *times, compare_times);
    return (double)times[starts / 2] / 1000;
}

static double weir_known(void)
{
    return microseconds(fresh_weir, false);
}

static double weir_new(void)
{
    return microseconds(fresh_weir, true);
}

static double flock_known(void)
{
    return microseconds(fresh_flock, false);
}

static double flock_new(void)
{
    return microseconds(fresh_flock, true);
}

static const struct bench_question questions[] = {
    {
        .name = "lease_shm_cold",
        .unit = "us",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_known},
                {"flock", BENCH_WEAKER, flock_known},
            },
        .goals = {{NULL, BENCH_AT_MOST, 150}},
    },
    {
        .name = "lease_shm_cold_new",
        .unit = "us",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_new},
                {"flock", BENCH_WEAKER, flock_new},
            },
        .goals = {{NULL, BENCH_AT_MOST, 150}},
    },
};

int main(int argc, char **argv)
{
    if (argc == 4 && strncmp(argv[1], "--fresh-", 8) == 0)
        return fresh(argv);
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
