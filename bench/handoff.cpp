/* SPDX-License-Identifier: MIT */
/* handoff - how long does a permit take from the one who releases to the one who waits?
 *
 * Two threads and two empty semaphores: each waits for its own and releases the other's,
 * so that every acquire waits and every permit changes hands.  (Two threads taking turns
 * on one semaphore would not show it: with barging, the same thread takes it again.)
 *
 * On two cores the kernel's wake-up of an idle core dominates, unless the waiter is still
 * awake; on one core it is the kernel's switch, and being awake would be in the way.
 */
#include "bench.h"
#include "semaphores.hpp"

static constexpr long WARM_UP = 200, BETWEEN_CLOCK_READS = 64;

template <class Sem> struct Court {
    alignas(128) Sem ping{1, 1};
    alignas(128) Sem pong{1, 1};
    alignas(128) bool over = false; /* guarded by whose turn it is */
    unsigned far_cpu = 0;
};

template <class Sem> static void *far_side(void *arg)
{
    auto *court = static_cast<Court<Sem> *>(arg);
    bool over = false;

    bench_pin(court->far_cpu);
    while (!over) {
        court->ping.acquire();
        over = court->over;
        court->pong.release();
    }
    return nullptr;
}

template <class Sem> static void rally(Court<Sem> &court, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        court.ping.release();
        court.pong.acquire();
    }
}

template <class Sem> static double handoff(unsigned near_cpu, unsigned far_cpu)
{
    Court<Sem> court;
    pthread_t far;
    int64_t start, now;
    long rounds = 0;

    court.far_cpu = far_cpu;
    bench_pin(near_cpu);
    bench_spawn(&far, far_side<Sem>, &court);
    rally(court, bench_times(WARM_UP));
    start = bench_now_ns();
    do {
        rally(court, BETWEEN_CLOCK_READS);
        rounds += BETWEEN_CLOCK_READS;
        now = bench_now_ns();
    } while (now - start < bench_window_ns());
    court.over = true;
    rally(court, 1);
    bench_join(far);
    return static_cast<double>(now - start) / static_cast<double>(2 * rounds);
}

template <class Sem> static double two_cores()
{
    return handoff<Sem>(0, 1);
}

template <class Sem> static double one_core()
{
    return handoff<Sem>(0, 0);
}

static const bench_question questions[] = {
    {
        .name = "handoff_two_cores",
        .unit = "ns",
        .cpus_needed = 2,
        .cases =
            {
                {"weir", BENCH_WEIR, two_cores<WeirSem>},
                {"sem_t", BENCH_PEER, two_cores<PosixSem>},
                {"nsync", BENCH_PEER, two_cores<NsyncSem>},
                {"pthread_fifo", BENCH_PEER, two_cores<PthreadFifoSem>},
                {"std::counting_semaphore", BENCH_PEER, two_cores<StdSem>},
                {"raw_futex", BENCH_WEAKER, two_cores<RawFutex>},
                {"spin", BENCH_LIMIT, two_cores<SpinFlag>},
            },
        .goals =
            {
                {"sem_t", BENCH_AT_LEAST_FASTER, 50},
                {"nsync", BENCH_AT_LEAST_FASTER, 50},
                {"pthread_fifo", BENCH_AT_LEAST_FASTER, 50},
                {"std::counting_semaphore", BENCH_AT_LEAST_FASTER, 4},
                {"sem_t", BENCH_GOOD_CASE, 200},
                {"nsync", BENCH_GOOD_CASE, 200},
                {"pthread_fifo", BENCH_GOOD_CASE, 200},
            },
    },
    {
        .name = "handoff_one_core",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, one_core<WeirSem>},
                {"sem_t", BENCH_PEER, one_core<PosixSem>},
                {"nsync", BENCH_PEER, one_core<NsyncSem>},
                {"pthread_fifo", BENCH_PEER, one_core<PthreadFifoSem>},
                {"std::counting_semaphore", BENCH_PEER, one_core<StdSem>},
                {"raw_futex", BENCH_LIMIT, one_core<RawFutex>},
            },
        .goals =
            {
                {"raw_futex", BENCH_AT_MOST, 1.2},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
