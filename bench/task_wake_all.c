/* SPDX-License-Identifier: MIT */
/* task_wake_all - how long do 100,000 waiting tasks take to wake up, end and be joined?
 *
 * From the set of the event that all wait for until the last one is joined, on one
 * worker, per task.  Their stacks have been used before: a first wave, which does not
 * count, pays for the memory.
 */
#include <stdlib.h>

#include <weir/event.h>
#include <weir/task.h>

#include "bench.h"

enum { TASKS = 100 * 1000, WAVES = 3 };

struct wave {
    struct weir_event event;
    long n, arrived;
    struct weir_task *tasks;
    int64_t took_ns; /* of all waves that count */
};

static int wait_for_event(void *arg)
{
    struct wave *wave = arg;

    wave->arrived++; /* one worker, so one at a time */
    return weir_event_wait(&wave->event, WEIR_FOREVER);
}

static int64_t one_wave(struct wave *wave)
{
    int64_t start;

    weir_event_init(&wave->event);
    wave->arrived = 0;
    for (long i = 0; i < wave->n; i++)
        BENCH_CHECK(weir_task_spawn(wait_for_event, wave, &wave->tasks[i]) == 0);
    while (wave->arrived < wave->n)
        BENCH_CHECK(weir_task_yield() == 0);
    start = bench_now_ns();
    weir_event_set(&wave->event);
    for (long i = 0; i < wave->n; i++)
        BENCH_CHECK(weir_task_join(wave->tasks[i], WEIR_FOREVER, NULL) == 0);
    return bench_now_ns() - start;
}

static int all_waves(void *arg)
{
    struct wave *wave = arg;

    one_wave(wave);
    for (int i = 0; i < WAVES; i++)
        wave->took_ns += one_wave(wave);
    return 0;
}

static double weir_wake(void)
{
    struct wave wave = {.n = bench_times(TASKS)};

    wave.tasks = calloc((size_t)wave.n, sizeof *wave.tasks);
    BENCH_CHECK(wave.tasks);
    bench_pin(0);
    BENCH_CHECK(weir_run(NULL, all_waves, &wave) == 0);
    free(wave.tasks);
    return (double)wave.took_ns / WAVES / (double)wave.n;
}

static double go_wake(void)
{
    return bench_external("peer_tasks", "wake_all", bench_times(TASKS));
}

static double tokio_wake(void)
{
    return bench_external("peer_tokio", "wake_all", bench_times(TASKS));
}

static const struct bench_question question = {
    .name = "task_wake_all",
    .unit = "ns",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, weir_wake},
            {"go", BENCH_PEER, go_wake},
            {"tokio", BENCH_PEER, tokio_wake},
        },
    .goals =
        {
            {"go", BENCH_AT_MOST, 1.1},
            {"go", BENCH_GOOD_CASE, 1},
        },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
