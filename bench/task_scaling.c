/* SPDX-License-Identifier: MIT */
/* task_scaling - do two workers get as much out of two CPUs as two threads do?
 *
 * Independent work in small pieces, each a task.  How long two workers take, as a part of
 * what one takes; half is the best there can be, and what two plain threads reach, which
 * share the same pieces evenly, is what the machine gives.  The pieces take some 25 us,
 * and in the second question 1 us, where sharing them out is a good part of the work.
 */
#include <weir/countdown.h>
#include <weir/task.h>

#include "bench.h"

struct work {
    long pieces;
    long rounds; /* of each piece */
    struct weir_countdown left;
    uint64_t result; /* so that nobody leaves the work out */
};

static uint64_t do_piece(const struct work *work)
{
    uint64_t x = (uint64_t)(uintptr_t)work;

    for (long i = 0; i < work->rounds; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return x;
}

/* ---- tasks ----------------------------------------------------------------------- */

static int piece(void *arg)
{
    struct work *work = arg;

    __atomic_store_n(&work->result, do_piece(work), __ATOMIC_RELAXED);
    return weir_countdown_down(&work->left, 1);
}

static int spawn_pieces(void *arg)
{
    struct work *work = arg;

    for (long i = 0; i < work->pieces; i++)
        BENCH_CHECK(weir_task_spawn(piece, work, NULL) == 0);
    return weir_countdown_wait(&work->left, WEIR_FOREVER);
}

static double time_tasks(struct work *work, uint32_t workers)
{
    struct weir_run_options options = {.workers = workers};
    int64_t start = bench_now_ns();

    BENCH_CHECK(weir_countdown_init(&work->left, (uint64_t)work->pieces) == 0);
    BENCH_CHECK(weir_run(&options, spawn_pieces, work) == 0);
    return (double)(bench_now_ns() - start);
}

/* ---- threads --------------------------------------------------------------------- */

static void *do_pieces(void *arg)
{
    struct work *work = arg;

    for (long i = 0; i < work->pieces; i++)
        __atomic_store_n(&work->result, do_piece(work), __ATOMIC_RELAXED);
    return NULL;
}

static double time_threads(struct work *work, uint32_t count)
{
    struct work share = {.pieces = work->pieces / count, .rounds = work->rounds};
    pthread_t threads[2];
    int64_t start = bench_now_ns();

    for (uint32_t i = 0; i < count; i++)
        bench_spawn(&threads[i], do_pieces, &share);
    for (uint32_t i = 0; i < count; i++)
        bench_join(threads[i]);
    return (double)(bench_now_ns() - start);
}

/* ---- measurement ------------------------------------------------------------------ */

static double two_over_one(double (*take)(struct work *work, uint32_t workers), long pieces,
                           long rounds)
{
    struct work work = {.pieces = bench_times(pieces), .rounds = rounds};
    double one = take(&work, 1);

    return take(&work, 2) / one;
}

static double tasks_25us(void)
{
    return two_over_one(time_tasks, 4000, 20 * 1000);
}

static double threads_25us(void)
{
    return two_over_one(time_threads, 4000, 20 * 1000);
}

static double tasks_1us(void)
{
    return two_over_one(time_tasks, 100 * 1000, 800);
}

static double threads_1us(void)
{
    return two_over_one(time_threads, 100 * 1000, 800);
}

static const struct bench_question questions[] = {
    {
        .name = "task_scaling",
        .unit = "of one",
        .cpus_needed = 2,
        .cases =
            {
                {"weir", BENCH_WEIR, tasks_25us},
                {"threads", BENCH_LIMIT, threads_25us},
            },
        .goals = {{"threads", BENCH_AT_MOST, 1 / 0.95}},
    },
    {
        .name = "task_scaling_1us",
        .unit = "of one",
        .cpus_needed = 2,
        .cases =
            {
                {"weir", BENCH_WEIR, tasks_1us},
                {"threads", BENCH_LIMIT, threads_1us},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
