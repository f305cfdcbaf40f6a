/* SPDX-License-Identifier: MIT */
/* task_memory - how much memory does a task take that waits, or has not started?
 *
 * What the kernel counts as resident, before and after, over the number of tasks: a
 * million of them where 6 GiB are free, else a hundred thousand, and the question's name
 * says which.  weir runs in a child process, so that each count begins with nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/task.h>

#include "bench.h"

enum { MANY = 1000 * 1000, FEWER = 100 * 1000 };

static const double many_need_bytes = 6.0 * 1024 * 1024 * 1024;
static long tasks;

struct crowd {
    struct weir_event event;
    long n, arrived;
    bool started; /* are they to be? */
};

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    BENCH_CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static int wait_for_event(void *arg)
{
    struct crowd *crowd = arg;

    crowd->arrived++; /* one worker, so one at a time */
    return weir_event_wait(&crowd->event, WEIR_FOREVER);
}

/* Ends the process: nobody would ever set the event. */
static int measure(void *arg)
{
    struct crowd *crowd = arg;
    double before = resident_bytes();

    for (long i = 0; i < crowd->n; i++)
        BENCH_CHECK(weir_task_spawn(wait_for_event, crowd, NULL) == 0);
    while (crowd->started && crowd->arrived < crowd->n)
        BENCH_CHECK(weir_task_yield() == 0);
    printf("%f\n", (resident_bytes() - before) / (double)crowd->n);
    fflush(stdout);
    _exit(0);
}

static _Noreturn void child(int out, bool started)
{
    struct crowd crowd = {.event = WEIR_EVENT_INIT, .n = bench_times(tasks), .started = started};

    BENCH_CHECK(dup2(out, STDOUT_FILENO) >= 0);
    BENCH_CHECK(weir_run(NULL, measure, &crowd) == 0);
    bench_fail("nothing was measured");
}

static double weir_memory(bool started)
{
    double bytes = BENCH_ABSENT;
    int ends[2], status;
    FILE *from;

    fflush(stdout);
    BENCH_CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    BENCH_CHECK(pid >= 0);
    if (pid == 0)
        child(ends[1], started);
    close(ends[1]);
    from = fdopen(ends[0], "r");
    BENCH_CHECK(from && fscanf(from, "%lf", &bytes) == 1);
    fclose(from);
    BENCH_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return bytes;
}

static double weir_parked(void)
{
    return weir_memory(true);
}

static double weir_unstarted(void)
{
    return weir_memory(false);
}

static double go_parked(void)
{
    return bench_external("peer_tasks", "memory", bench_times(tasks));
}

static double tokio_parked(void)
{
    return bench_external("peer_tokio", "memory", bench_times(tasks));
}

/* ---- how many -------------------------------------------------------------------- */

/* The number behind `key` in a file, or as much as there can be. */
static double number_in(const char *path, const char *key, double unit)
{
    FILE *file = fopen(path, "re");
    char line[256];
    double value, found = 1e30;

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%lf", &value) == 1)
            found = value * unit;
    if (file)
        fclose(file);
    return found;
}

/* A container's limit stands elsewhere than the machine's. */
static bool is_room_for_many(void)
{
    double machine = number_in("/proc/meminfo", "MemAvailable:", 1024);
    double limit = number_in("/sys/fs/cgroup/memory.max", "", 1);

    return machine >= many_need_bytes && limit >= many_need_bytes;
}

static struct bench_question questions[] = {
    {
        .unit = "bytes",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_parked},
                {"go", BENCH_PEER, go_parked},
                {"tokio", BENCH_PEER, tokio_parked},
            },
        .goals = {{NULL, BENCH_AT_MOST, 4.4 * 1024}},
    },
    {
        .name = "task_memory_unstarted",
        .unit = "bytes",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_unstarted},
                {"go", BENCH_PEER, go_parked},
                {"tokio", BENCH_PEER, tokio_parked},
            },
        .goals = {{NULL, BENCH_AT_MOST, 128}},
    },
};

int main(int argc, char **argv)
{
    bool many = is_room_for_many();

    bench_repeat_at_most(1); /* whoever else runs, it is the same */
    tasks = many ? MANY : FEWER;
    questions[0].name = many ? "task_memory_million" : "task_memory_100000";
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
