/* SPDX-License-Identifier: MIT */
/* lease_mem_pair - what do a named lease and its return cost within one process?
 *
 * asyncio's semaphore is what Python has for it: a counter without names, ids or owners.
 * weir's own semaphore is the limit.
 */
#include <weir/sem.h>
#include <weir/store.h>

#include "bench.h"

enum { PAIRS = 1000 * 1000, FEW = 200 * 1000 };

static void lease_pair(void *store)
{
    struct weir_lease_request ask = {.name = "lock", .limit = 1};
    struct weir_lease lease;

    BENCH_CHECK(weir_lease_acquire(store, &ask, WEIR_FOREVER, &lease) == 0);
    BENCH_CHECK(weir_lease_release(store, "lock", lease.id) == 0);
}

static void sem_pair(void *sem)
{
    BENCH_CHECK(weir_sem_acquire(sem, 1, WEIR_FOREVER) == 0);
    BENCH_CHECK(weir_sem_release(sem, 1) == 0);
}

static double measure(void (*pair)(void *), void *arg)
{
    long warm_up = bench_times(PAIRS / 100), pairs = bench_times(PAIRS);
    int64_t start = 0;

    bench_pin(0);
    for (long i = -warm_up; i < pairs; i++) {
        if (i == 0)
            start = bench_now_ns();
        pair(arg);
    }
    return (double)(bench_now_ns() - start) / (double)pairs;
}

static double weir_lease(void)
{
    struct weir_store *store;
    double took;

    BENCH_CHECK(weir_store_open("mem:", NULL, &store) == 0);
    took = measure(lease_pair, store);
    weir_store_close(store);
    return took;
}

static double weir_sem(void)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);

    return measure(sem_pair, &sem);
}

static double asyncio_sem(void)
{
    return bench_external("peer_asyncio.py", "pair", bench_times(FEW));
}

static const struct bench_question question = {
    .name = "lease_mem_pair",
    .unit = "ns",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, weir_lease},
            {"asyncio", BENCH_WEAKER, asyncio_sem},
            {"weir_sem", BENCH_LIMIT, weir_sem},
        },
    .goals = {{"asyncio", BENCH_AT_LEAST_FASTER, 4}},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
