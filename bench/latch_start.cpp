/* SPDX-License-Identifier: MIT */
/* latch_start - what does it save to start a thousand threads behind a latch?
 *
 * The squares problem.  Threads that run as soon as they are started take time from the
 * one that starts the others, so that a full start is O(n^2).  Behind a latch nobody runs
 * until all have been started.
 *
 * Each thread works, ten microseconds and a yield at a time, until the last one started
 * says stop.  Measured from the first start to the end of the last thread.
 *
 * What is saved depends on that work.  Threads that only yield leave the starter enough
 * time by themselves, and the latch saves nothing (about 38 ms either way); at 100 us
 * a piece it is 60 ms against 800.
 */
#include <atomic>
#include <latch>
#include <vector>

#include <sched.h>
#include <weir/latch.h>

#include "bench.h"

static constexpr unsigned THREADS = 1000;
static constexpr int64_t WORK_NS = 10 * 1000;

class WeirLatch
{
    weir_latch latch_;

  public:
    explicit WeirLatch(unsigned parties)
    {
        BENCH_CHECK(weir_latch_init(&latch_, parties) == 0);
    }
    void arrive_and_wait()
    {
        BENCH_CHECK(weir_latch_wait(&latch_, WEIR_FOREVER) == 0);
    }
};

class PthreadBarrier
{
    pthread_barrier_t barrier_;

  public:
    explicit PthreadBarrier(unsigned parties)
    {
        BENCH_CHECK(pthread_barrier_init(&barrier_, nullptr, parties) == 0);
    }
    ~PthreadBarrier()
    {
        pthread_barrier_destroy(&barrier_);
    }
    void arrive_and_wait()
    {
        pthread_barrier_wait(&barrier_);
    }
};

class StdLatch
{
    std::latch latch_;

  public:
    explicit StdLatch(unsigned parties) : latch_(parties)
    {
    }
    void arrive_and_wait()
    {
        latch_.arrive_and_wait();
    }
};

struct NoLatch {
    explicit NoLatch(unsigned)
    {
    }
    void arrive_and_wait()
    {
    }
};

template <class Latch> struct Race {
    Latch latch{THREADS};
    std::atomic<bool> stopped{false};
};

template <class Latch> static void *last_runner(void *arg)
{
    auto *race = static_cast<Race<Latch> *>(arg);

    race->latch.arrive_and_wait();
    race->stopped.store(true);
    return nullptr;
}

static void work_a_little()
{
    int64_t end = bench_now_ns() + WORK_NS;

    while (bench_now_ns() < end) {
    }
    sched_yield();
}

template <class Latch> static void *runner(void *arg)
{
    auto *race = static_cast<Race<Latch> *>(arg);

    race->latch.arrive_and_wait();
    while (!race->stopped.load())
        work_a_little();
    return nullptr;
}

template <class Latch> static double start_all()
{
    Race<Latch> race;
    std::vector<pthread_t> threads(THREADS);
    int64_t start = bench_now_ns();

    for (unsigned i = 0; i < THREADS; i++)
        bench_spawn(&threads[i], i == THREADS - 1 ? last_runner<Latch> : runner<Latch>, &race);
    for (auto thread : threads)
        bench_join(thread);
    return static_cast<double>(bench_now_ns() - start) / 1e6;
}

static const bench_question question = {
    .name = "latch_start",
    .unit = "ms",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, start_all<WeirLatch>},
            {"no_latch", BENCH_PEER, start_all<NoLatch>},
            {"std::latch", BENCH_PEER, start_all<StdLatch>},
            {"pthread_barrier", BENCH_PEER, start_all<PthreadBarrier>},
        },
    .goals =
        {
            {"no_latch", BENCH_AT_MOST, 1.0},
        },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
