/* SPDX-License-Identifier: MIT */
/* sem_uncontended - what do acquire and release cost when nobody else is there?
 *
 * The commonest case by far, so it must cost no more than its atomic operations.  weir
 * is called as programs call it, through the exported symbols of the shared library.
 */
#include "bench.h"
#include "semaphores.hpp"

static constexpr long PAIRS = 4000000;

template <class Sem> static double pair()
{
    alignas(128) Sem sem{4, 0};
    long warm_up = bench_times(PAIRS / 100), pairs = bench_times(PAIRS);
    int64_t start = 0;

    bench_pin(0);
    for (long i = -warm_up; i < pairs; i++) {
        if (i == 0)
            start = bench_now_ns();
        sem.acquire();
        asm volatile("" ::: "memory"); /* the critical section, which must not vanish */
        sem.release();
    }
    return static_cast<double>(bench_now_ns() - start) / static_cast<double>(pairs);
}

/* A process of its own: its runtime would disturb the others. */
static double go_pair()
{
    return bench_external("peer_go", "sem_uncontended", bench_times(PAIRS));
}

static const bench_question question = {
    .name = "sem_uncontended",
    .unit = "ns",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, pair<WeirSem>},
            {"sem_t", BENCH_PEER, pair<PosixSem>},
            {"std::counting_semaphore", BENCH_PEER, pair<StdSem>},
            {"nsync", BENCH_PEER, pair<NsyncSem>},
            {"pthread_fifo", BENCH_PEER, pair<PthreadFifoSem>},
            {"go_x_sync", BENCH_PEER, go_pair},
            {"cas_pair", BENCH_LIMIT, pair<CasPair>},
        },
    .goals =
        {
            {"cas_pair", BENCH_AT_MOST, 1.25},
            {"sem_t", BENCH_AT_MOST, 1.0},
        },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
