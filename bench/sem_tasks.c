/* SPDX-License-Identifier: MIT */
/* sem_tasks - what does a semaphore cost when 10,000 tasks crowd around 8 permits?
 *
 * Each acquires, lets the others run while it holds the permit, and releases, a hundred
 * times.  All of them wait for the start first.  On one worker, and on two that share the
 * semaphore.
 */
#include <weir/event.h>
#include <weir/sem.h>
#include <weir/task.h>

#include "bench.h"

enum { TASKS = 10 * 1000, EACH = 100, PERMITS = 8 };

struct crowd {
    struct weir_sem sem;
    struct weir_event begin;
    long n, arrived;
    struct weir_task tasks[TASKS];
    int64_t took_ns;
};

static int take_turns(void *arg)
{
    struct crowd *crowd = arg;

    __atomic_add_fetch(&crowd->arrived, 1, __ATOMIC_RELAXED);
    BENCH_CHECK(weir_event_wait(&crowd->begin, WEIR_FOREVER) == 0);
    for (int i = 0; i < EACH; i++) {
        BENCH_CHECK(weir_sem_acquire(&crowd->sem, 1, WEIR_FOREVER) == 0);
        BENCH_CHECK(weir_task_yield() == 0);
        BENCH_CHECK(weir_sem_release(&crowd->sem, 1) == 0);
    }
    return 0;
}

static int crowd_around(void *arg)
{
    struct crowd *crowd = arg;
    int64_t start;

    for (long i = 0; i < crowd->n; i++)
        BENCH_CHECK(weir_task_spawn(take_turns, crowd, &crowd->tasks[i]) == 0);
    while (__atomic_load_n(&crowd->arrived, __ATOMIC_RELAXED) < crowd->n)
        BENCH_CHECK(weir_task_yield() == 0);
    start = bench_now_ns();
    weir_event_set(&crowd->begin);
    for (long i = 0; i < crowd->n; i++)
        BENCH_CHECK(weir_task_join(crowd->tasks[i], WEIR_FOREVER, NULL) == 0);
    crowd->took_ns = bench_now_ns() - start;
    return 0;
}

static double weir_on(uint32_t workers)
{
    static struct crowd crowd;
    struct weir_run_options options = {.workers = workers};

    crowd = (struct crowd){.begin = WEIR_EVENT_INIT, .n = bench_times(TASKS)};
    BENCH_CHECK(weir_sem_init(&crowd.sem, PERMITS) == 0);
    BENCH_CHECK(weir_run(&options, crowd_around, &crowd) == 0);
    BENCH_CHECK(weir_sem_available(&crowd.sem) == PERMITS);
    return (double)crowd.took_ns / EACH / (double)crowd.n;
}

/* What is started from here is placed as weir is. */
static double weir_one(void)
{
    bench_pin(0);
    return weir_on(1);
}

static double go_one(void)
{
    bench_pin(0);
    return bench_external("peer_tasks", "sem_tasks", bench_times(TASKS));
}

static double tokio_one(void)
{
    bench_pin(0);
    return bench_external("peer_tokio", "sem_tasks", bench_times(TASKS));
}

static double weir_two(void)
{
    bench_unpin();
    return weir_on(2);
}

static double go_two(void)
{
    bench_unpin();
    return bench_external("peer_tasks", "sem_tasks_two", bench_times(TASKS));
}

static double tokio_two(void)
{
    bench_unpin();
    return bench_external("peer_tokio", "sem_tasks_two", bench_times(TASKS));
}

static const struct bench_question questions[] = {
    {
        .name = "sem_tasks",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_one},
                {"go_x_sync", BENCH_PEER, go_one},
                {"tokio", BENCH_PEER, tokio_one},
            },
        .goals =
            {
                {"go_x_sync", BENCH_AT_LEAST_FASTER, 8},
                {"tokio", BENCH_AT_LEAST_FASTER, 1.4},
            },
    },
    {
        .name = "sem_tasks_two_workers",
        .unit = "ns",
        .cpus_needed = 2,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_two},
                {"go_x_sync", BENCH_PEER, go_two},
                {"tokio", BENCH_PEER, tokio_two},
            },
        .goals =
            {
                {"tokio", BENCH_AT_MOST, 1.25},
                {"tokio", BENCH_GOOD_CASE, 1},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
