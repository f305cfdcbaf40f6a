/* SPDX-License-Identifier: MIT */
/* task_spawn - what does it cost to start a task that does nothing, and to join it?
 *
 * One after the other, where a task begins and ends before the next is made, and a
 * thousand at a time.  One worker.
 */
#include <weir/task.h>

#include "bench.h"

enum { BATCH = 1000, TASKS = 500 * BATCH, FEW = 20 * 1000 };

struct spawning {
    long n, batch;
    int64_t took_ns;
};

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int spawn_and_join(void *arg)
{
    struct spawning *s = arg;
    struct weir_task tasks[BATCH];
    int64_t start = bench_now_ns();

    for (long done = 0; done < s->n; done += s->batch) {
        for (long i = 0; i < s->batch; i++)
            BENCH_CHECK(weir_task_spawn(do_nothing, NULL, &tasks[i]) == 0);
        for (long i = 0; i < s->batch; i++)
            BENCH_CHECK(weir_task_join(tasks[i], WEIR_FOREVER, NULL) == 0);
    }
    s->took_ns = bench_now_ns() - start;
    return 0;
}

static double weir_spawn(long batch)
{
    struct spawning s = {.n = bench_times(TASKS), .batch = batch};

    bench_pin(0);
    BENCH_CHECK(weir_run(NULL, spawn_and_join, &s) == 0);
    return (double)s.took_ns / (double)s.n;
}

static double weir_one(void)
{
    return weir_spawn(1);
}

static double weir_batch(void)
{
    return weir_spawn(BATCH);
}

static double go_waitgroup(void)
{
    return bench_external("peer_tasks", "spawn_waitgroup", bench_times(TASKS));
}

static double go_channel(void)
{
    return bench_external("peer_tasks", "spawn_channel", bench_times(TASKS));
}

static double go_batch(void)
{
    return bench_external("peer_tasks", "spawn_batches", bench_times(TASKS));
}

static double tokio_one(void)
{
    return bench_external("peer_tokio", "spawn_join", bench_times(TASKS));
}

static double tokio_batch(void)
{
    return bench_external("peer_tokio", "spawn_batches", bench_times(TASKS));
}

static double asyncio_one(void)
{
    return bench_external("peer_asyncio.py", "spawn_join", bench_times(FEW));
}

static const struct bench_question questions[] = {
    {
        .name = "task_spawn_join",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_one},
                {"go_waitgroup", BENCH_PEER, go_waitgroup},
                {"go_channel", BENCH_PEER, go_channel},
                {"tokio", BENCH_PEER, tokio_one},
                {"asyncio", BENCH_PEER, asyncio_one},
            },
        .goals =
            {
                {"go_waitgroup", BENCH_AT_LEAST_FASTER, 5},
                {"go_channel", BENCH_AT_LEAST_FASTER, 5},
            },
    },
    {
        .name = "task_spawn_join_1000",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_batch},
                {"go_waitgroup", BENCH_PEER, go_batch},
                {"tokio", BENCH_PEER, tokio_batch},
            },
        .goals = {{"go_waitgroup", BENCH_AT_LEAST_FASTER, 5}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
