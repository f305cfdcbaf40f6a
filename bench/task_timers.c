/* SPDX-License-Identifier: MIT */
/* task_timers - what does a timeout cost that does not happen, when 100,000 are armed?
 *
 * Two tasks hand permits to each other, while 100,000 others wait with deadlines of their
 * own, up to two hours ahead and in no order.  What their waits cost more with such a
 * deadline than without is what it costs to arm and to disarm a timer.  The second
 * question asks the worker's heap of timers itself, compiled into this program.
 */
#include <stdlib.h>

#include <weir/event.h>
#include <weir/sem.h>
#include <weir/task.h>

#include "bench.h"
#include "task/timer.h"

enum { OUTSTANDING = 100 * 1000, TIMEOUTS = 1000 * 1000, FEW = 50 * 1000, PARTS = 10 };

/* The i-th of many deadlines between one and two hours from now, in no order. */
static struct weir_deadline nth_deadline(int64_t base_ns, long i)
{
    int64_t ms = (int64_t)i * 7919 % 3600000;

    return (struct weir_deadline){base_ns + 3600 * WEIR_S + ms * WEIR_MS};
}

/* ---- through waiting --------------------------------------------------------------- */

struct handing {
    struct weir_event end;
    struct weir_sem there, back;
    int64_t base_ns;
    long outstanding, arrived, n;
    bool limited; /* has the wait a deadline? */
    int64_t took_ns[2];
};

static int wait_for_end(void *arg)
{
    struct handing *h = arg;

    return weir_event_wait(&h->end, nth_deadline(h->base_ns, h->arrived++));
}

static void take(struct weir_sem *sem, const struct handing *h, long i)
{
    struct weir_deadline deadline = nth_deadline(h->base_ns, i);

    BENCH_CHECK(weir_sem_acquire(sem, 1, h->limited ? deadline : WEIR_FOREVER) == 0);
}

static int hand_back(void *arg)
{
    struct handing *h = arg;

    for (long i = 0; i < h->n; i++) {
        take(&h->there, h, i);
        BENCH_CHECK(weir_sem_release(&h->back, 1) == 0);
    }
    return 0;
}

static void hand_over(struct handing *h)
{
    struct weir_task other;
    int64_t start;

    BENCH_CHECK(weir_task_spawn(hand_back, h, &other) == 0);
    start = bench_now_ns();
    for (long i = 0; i < h->n; i++) {
        BENCH_CHECK(weir_sem_release(&h->there, 1) == 0);
        take(&h->back, h, i);
    }
    h->took_ns[h->limited] += bench_now_ns() - start;
    BENCH_CHECK(weir_task_join(other, WEIR_FOREVER, NULL) == 0);
}

static int with_and_without(void *arg)
{
    struct handing *h = arg;

    for (long i = 0; i < h->outstanding; i++)
        BENCH_CHECK(weir_task_spawn(wait_for_end, h, NULL) == 0);
    while (h->arrived < h->outstanding)
        BENCH_CHECK(weir_task_yield() == 0);
    BENCH_CHECK(weir_sem_try_acquire(&h->there, 1) == 0);
    BENCH_CHECK(weir_sem_try_acquire(&h->back, 1) == 0);
    for (int i = 0; i < 2 * PARTS; i++) {
        h->limited = i % 2;
        hand_over(h);
    }
    weir_event_set(&h->end);
    return 0;
}

static double weir_timeout(void)
{
    struct handing h = {
        .end = WEIR_EVENT_INIT,
        .there = WEIR_SEM_INIT(1),
        .back = WEIR_SEM_INIT(1),
        .base_ns = weir_now_ns(),
        .outstanding = bench_times(OUTSTANDING),
        .n = bench_times(TIMEOUTS) / PARTS / 2,
    };
    double more_ns;

    bench_pin(0);
    BENCH_CHECK(weir_run(NULL, with_and_without, &h) == 0);
    more_ns = (double)(h.took_ns[true] - h.took_ns[false]) / (double)(2 * PARTS * h.n);
    return more_ns > 0.01 ? more_ns : 0.01; /* less than nothing is noise */
}

static double go_timeout(void)
{
    return bench_external("peer_tasks", "timers", bench_times(TIMEOUTS));
}

static double asyncio_timeout(void)
{
    return bench_external("peer_asyncio.py", "timers", bench_times(FEW));
}

/* ---- the heap ------------------------------------------------------------------------ */

static double heap_timeout(void)
{
    long outstanding = bench_times(OUTSTANDING), n = bench_times(TIMEOUTS);
    struct timer *timers = calloc((size_t)outstanding + 1, sizeof *timers);
    struct timer_heap heap = {0};
    int64_t start;

    BENCH_CHECK(timers && timer_reserve(&heap, (uint32_t)outstanding + 1) == 0);
    bench_pin(0);
    for (long i = 0; i < outstanding; i++)
        timer_arm(&heap, &timers[i], nth_deadline(0, i).at_ns);
    start = bench_now_ns();
    for (long i = 0; i < n; i++) {
        timer_arm(&heap, &timers[outstanding], nth_deadline(0, i).at_ns);
        timer_disarm(&heap, &timers[outstanding]);
    }
    start = bench_now_ns() - start;
    BENCH_CHECK(heap.count == outstanding);
    timer_heap_fini(&heap);
    free(timers);
    return (double)start / (double)n;
}

static const struct bench_question questions[] = {
    {
        .name = "task_timers",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_timeout},
                {"go", BENCH_PEER, go_timeout},
                {"asyncio", BENCH_PEER, asyncio_timeout},
            },
        .goals = {{NULL, BENCH_AT_MOST, 30}},
    },
    {
        .name = "task_timers_heap",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, heap_timeout},
                {"go", BENCH_PEER, go_timeout},
            },
        .goals = {{NULL, BENCH_AT_MOST, 30}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
