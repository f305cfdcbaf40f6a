/* SPDX-License-Identifier: MIT */
/* store_visit - how long does it take to see the statistics of 1,000 names?
 *
 * Each name is held once.  In shared memory they are visited through a store that has none
 * of them in use, as another process would: every file is opened, looked at and closed.
 * That alone, with open, mmap, a look and munmap, is the limit.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/store.h>

#include "bench.h"
#include "processes.h"

enum { NAMES = 1000, VISITS = 20, LOOK_BYTES = 4096 };

/* ---- weir ---------------------------------------------------------------------------- */

static struct weir_store *open_store(const char *uri)
{
    struct weir_store *store;

    BENCH_CHECK(weir_store_open(uri, NULL, &store) == 0);
    return store;
}

static void hold_names(struct weir_store *store)
{
    struct weir_lease lease;
    char name[32];

    for (int i = 0; i < NAMES; i++) {
        struct weir_lease_request ask = {.name = name, .limit = 4};

        snprintf(name, sizeof name, "name-%d", i);
        BENCH_CHECK(weir_lease_acquire(store, &ask, WEIR_FOREVER, &lease) == 0);
    }
}

static int count_leases(const struct weir_name_stats *stats, void *arg)
{
    *(size_t *)arg += stats->leases;
    return 0;
}

static void visit(void *store)
{
    size_t leases = 0;

    BENCH_CHECK(weir_store_visit(store, count_leases, &leases) == 0);
    BENCH_CHECK(leases == NAMES);
}

/* ---- without weir ---------------------------------------------------------------------- */

static void look_at_file(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC);
    const char *memory = mmap(NULL, LOOK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    BENCH_CHECK(fd >= 0 && memory != MAP_FAILED && memory[0]);
    munmap((void *)memory, LOOK_BYTES);
    close(fd);
}

static void look_at_files(void *path)
{
    DIR *files = opendir(path);
    int count = 0;

    BENCH_CHECK(files);
    for (struct dirent *file; (file = readdir(files));)
        if (strncmp(file->d_name, "n-", 2) == 0) {
            look_at_file(dirfd(files), file->d_name);
            count++;
        }
    closedir(files);
    BENCH_CHECK(count == NAMES);
}

/* ---- measurement ------------------------------------------------------------------------ */

static double milliseconds(void (*fn)(void *), void *arg)
{
    long visits = bench_times(VISITS);
    int64_t start;

    bench_pin(0);
    fn(arg);
    start = bench_now_ns();
    for (long i = 0; i < visits; i++)
        fn(arg);
    return (double)(bench_now_ns() - start) / 1e6 / (double)visits;
}

static double weir_mem(void)
{
    static struct weir_store *store;

    if (!store) {
        store = open_store("mem:");
        hold_names(store);
    }
    return milliseconds(visit, store);
}

static struct weir_store *shm_visitor(void)
{
    static struct weir_store *holder, *visitor;
    char uri[128];

    if (!visitor) {
        snprintf(uri, sizeof uri, "shm:%s", own_directory());
        holder = open_store(uri);
        hold_names(holder);
        visitor = open_store(uri);
    }
    return visitor;
}

static double weir_shm(void)
{
    return milliseconds(visit, shm_visitor());
}

static double files_only(void)
{
    shm_visitor();
    return milliseconds(look_at_files, (void *)own_directory());
}

static const struct bench_question questions[] = {
    {
        .name = "store_visit_mem",
        .unit = "ms",
        .cpus_needed = 1,
        .cases = {{"weir", BENCH_WEIR, weir_mem}},
        .goals = {{NULL, BENCH_AT_MOST, 1}},
    },
    {
        .name = "store_visit_shm",
        .unit = "ms",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_shm},
                {"open_and_map", BENCH_LIMIT, files_only},
            },
        .goals = {{NULL, BENCH_AT_MOST, 25}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
