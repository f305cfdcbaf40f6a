/* SPDX-License-Identifier: MIT */
/* task_switch - what does it cost to let another task run, and to hand it something?
 *
 * Two tasks of one worker, both of which run the same function.  They yield in turns; or
 * they wait in turns for a permit that only the other one gives, so that every permit
 * changes hands.  weir's wait has a deadline an hour ahead and may be cancelled.  A
 * channel's and a plain semaphore's can do neither, so those that can stand beside them.
 */
#include <weir/sem.h>
#include <weir/task.h>

#include "bench.h"

enum { YIELDS = 1000 * 1000, HANDOFFS = 500 * 1000, FEW = 30 * 1000 }; /* of each task */

static double run_on_one(weir_fn *fn, void *arg, const int64_t *took_ns, long operations)
{
    bench_pin(0);
    BENCH_CHECK(weir_run(NULL, fn, arg) == 0);
    return (double)*took_ns / (double)operations;
}

/* ---- yielding ------------------------------------------------------------------ */

struct yielding {
    long n;
    int64_t took_ns;
};

static int yield_often(void *arg)
{
    const struct yielding *y = arg;

    for (long i = 0; i < y->n; i++)
        BENCH_CHECK(weir_task_yield() == 0);
    return 0;
}

static int yield_in_turns(void *arg)
{
    struct yielding *y = arg;
    struct weir_task tasks[2];
    int64_t start = bench_now_ns();

    for (int i = 0; i < 2; i++)
        BENCH_CHECK(weir_task_spawn(yield_often, y, &tasks[i]) == 0);
    for (int i = 0; i < 2; i++)
        BENCH_CHECK(weir_task_join(tasks[i], WEIR_FOREVER, NULL) == 0);
    y->took_ns = bench_now_ns() - start;
    return 0;
}

static double weir_yield(void)
{
    struct yielding y = {.n = bench_times(YIELDS)};

    return run_on_one(yield_in_turns, &y, &y.took_ns, 2 * y.n);
}

static double go_yield(void)
{
    return bench_external("peer_tasks", "yield", bench_times(YIELDS));
}

static double tokio_yield(void)
{
    return bench_external("peer_tokio", "yield", bench_times(YIELDS));
}

static double asyncio_yield(void)
{
    return bench_external("peer_asyncio.py", "yield", bench_times(FEW));
}

/* ---- handing over -------------------------------------------------------------- */

struct handing {
    struct weir_sem sems[2];
    struct weir_deadline deadline;
    long n;
    int64_t took_ns;
};

struct player {
    const struct handing *handing;
    struct weir_sem *mine, *theirs;
};

static int take_and_give(void *arg)
{
    const struct player *p = arg;

    for (long i = 0; i < p->handing->n; i++) {
        BENCH_CHECK(weir_sem_acquire(p->mine, 1, p->handing->deadline) == 0);
        BENCH_CHECK(weir_sem_release(p->theirs, 1) == 0);
    }
    return 0;
}

static int hand_over_in_turns(void *arg)
{
    struct handing *h = arg;
    struct player players[2];
    struct weir_task tasks[2];
    int64_t start = bench_now_ns();

    for (int i = 0; i < 2; i++) {
        players[i] = (struct player){h, &h->sems[i], &h->sems[1 - i]};
        BENCH_CHECK(weir_sem_try_acquire(&h->sems[i], 1) == 0);
        BENCH_CHECK(weir_task_spawn(take_and_give, &players[i], &tasks[i]) == 0);
    }
    BENCH_CHECK(weir_sem_release(&h->sems[0], 1) == 0);
    for (int i = 0; i < 2; i++)
        BENCH_CHECK(weir_task_join(tasks[i], WEIR_FOREVER, NULL) == 0);
    h->took_ns = bench_now_ns() - start;
    return 0;
}

static double weir_handoff_until(struct weir_deadline deadline)
{
    struct handing h = {
        .sems = {WEIR_SEM_INIT(1), WEIR_SEM_INIT(1)},
        .deadline = deadline,
        .n = bench_times(HANDOFFS),
    };

    return run_on_one(hand_over_in_turns, &h, &h.took_ns, 2 * h.n);
}

static double weir_handoff(void)
{
    return weir_handoff_until(weir_within(3600 * WEIR_S));
}

static double weir_handoff_forever(void)
{
    return weir_handoff_until(WEIR_FOREVER);
}

static double go_channel(void)
{
    return bench_external("peer_tasks", "handoff_channel", bench_times(HANDOFFS));
}

static double go_select(void)
{
    return bench_external("peer_tasks", "handoff_select", bench_times(HANDOFFS));
}

static double tokio_handoff(void)
{
    return bench_external("peer_tokio", "handoff", bench_times(HANDOFFS));
}

static double tokio_timeout(void)
{
    return bench_external("peer_tokio", "handoff_timeout", bench_times(HANDOFFS));
}

static double asyncio_handoff(void)
{
    return bench_external("peer_asyncio.py", "handoff", bench_times(FEW));
}

static const struct bench_question questions[] = {
    {
        .name = "task_yield",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_yield},
                {"go", BENCH_PEER, go_yield},
                {"tokio", BENCH_PEER, tokio_yield},
                {"asyncio", BENCH_PEER, asyncio_yield},
            },
        .goals = {{"go", BENCH_AT_LEAST_FASTER, 3.5}},
    },
    {
        .name = "task_handoff",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_handoff},
                {"go_select", BENCH_PEER, go_select},
                {"tokio_timeout", BENCH_PEER, tokio_timeout},
                {"go_channel", BENCH_WEAKER, go_channel},
                {"tokio", BENCH_WEAKER, tokio_handoff},
                {"asyncio", BENCH_WEAKER, asyncio_handoff},
                {"weir_forever", BENCH_LIMIT, weir_handoff_forever},
            },
        .goals =
            {
                {"go_channel", BENCH_AT_LEAST_FASTER, 3},
                {"tokio", BENCH_AT_LEAST_FASTER, 2},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
