/* SPDX-License-Identifier: MIT */
/* barrier - what does a phase cost each thread, for 2, 8 and 1,000 threads?
 *
 * Threads that do nothing but meet.  Two are pinned to two cores, where the right answer
 * is to stay awake; with more threads than cores it is to let the others run.
 */
#include <atomic>
#include <barrier>
#include <vector>

#include <nsync.h>
#include <weir/barrier.h>

#include "bench.h"
#include "futex.hpp"

/* ---- barriers ------------------------------------------------------------------ */

class WeirBarrier
{
    weir_barrier barrier_;

  public:
    explicit WeirBarrier(unsigned parties)
    {
        BENCH_CHECK(weir_barrier_init(&barrier_, parties) == 0);
    }
    void wait()
    {
        uint32_t index;

        BENCH_CHECK(weir_barrier_wait(&barrier_, WEIR_FOREVER, &index) == 0);
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
    void wait()
    {
        pthread_barrier_wait(&barrier_);
    }
};

class StdBarrier
{
    std::barrier<> barrier_;

  public:
    explicit StdBarrier(unsigned parties) : barrier_(parties)
    {
    }
    void wait()
    {
        barrier_.arrive_and_wait();
    }
};

class NsyncBarrier
{
    nsync::nsync_mu lock_;
    nsync::nsync_cv complete_;
    unsigned parties_, arrived_ = 0, phase_ = 0;

  public:
    explicit NsyncBarrier(unsigned parties) : parties_(parties)
    {
        nsync::nsync_mu_init(&lock_);
        nsync::nsync_cv_init(&complete_);
    }
    void wait()
    {
        nsync::nsync_mu_lock(&lock_);
        unsigned phase = phase_;
        if (++arrived_ == parties_) {
            arrived_ = 0;
            phase_++;
            nsync::nsync_cv_broadcast(&complete_);
        }
        while (phase == phase_)
            nsync::nsync_cv_wait(&complete_, &lock_);
        nsync::nsync_mu_unlock(&lock_);
    }
};

/* Two words, and how to wait for the second: the part that the last two share. */
class PhaseWords
{
  protected:
    std::atomic<uint32_t> arrived_{0}, phase_{0};
    const uint32_t parties_;

    explicit PhaseWords(unsigned parties) : parties_(parties)
    {
    }
    /* Returns whether the phase is complete, and the phase. */
    bool arrive(uint32_t &ret_phase)
    {
        ret_phase = phase_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1) + 1 < parties_)
            return false;
        arrived_.store(0);
        phase_.fetch_add(1);
        return true;
    }
};

/* No order, no index, no way to break it, and it cannot be freed when it returns. */
class FutexBarrier : PhaseWords
{
  public:
    explicit FutexBarrier(unsigned parties) : PhaseWords(parties)
    {
    }
    void wait()
    {
        uint32_t phase;

        if (arrive(phase))
            futex_wake(phase_, INT_MAX);
        while (phase_.load(std::memory_order_acquire) == phase)
            futex_wait(phase_, phase);
    }
};

class SpinBarrier : PhaseWords
{
  public:
    explicit SpinBarrier(unsigned parties) : PhaseWords(parties)
    {
    }
    void wait()
    {
        uint32_t phase;

        arrive(phase);
        while (phase_.load(std::memory_order_acquire) == phase)
            cpu_pause();
    }
};

/* ---- measurement --------------------------------------------------------------- */

template <class Barrier> struct Meeting {
    alignas(128) Barrier barrier;
    /* The last phase there will be.  Whoever reads it early goes on to that phase all
     * the same; after that phase everyone has read it. */
    alignas(128) std::atomic<uint64_t> last{UINT64_MAX};
    unsigned parties;

    explicit Meeting(unsigned count) : barrier(count), parties(count)
    {
    }
};

template <class Barrier> static void *party(void *arg)
{
    auto *meeting = static_cast<Meeting<Barrier> *>(arg);

    if (meeting->parties == 2)
        bench_pin(1);
    for (uint64_t phase = 1; phase <= meeting->last.load(std::memory_order_relaxed); phase++)
        meeting->barrier.wait();
    return nullptr;
}

/* Reading the clock must cost next to nothing beside the phases in between. */
static uint64_t phases_between_clock_reads(unsigned parties)
{
    return parties <= 2 ? 64 : parties <= 100 ? 8 : 1;
}

/* Runs phases for as long as the window is, and returns the cost of one.  The caller is
 * one of the parties; the first phases gather the others and are not counted. */
template <class Barrier> static double lead(Meeting<Barrier> &meeting)
{
    const uint64_t step = phases_between_clock_reads(meeting.parties);
    uint64_t phase = 0;
    int64_t start, now;

    for (; phase < step; phase++)
        meeting.barrier.wait();
    start = bench_now_ns();
    do {
        for (uint64_t i = 0; i < step; i++)
            meeting.barrier.wait();
        phase += step;
        now = bench_now_ns();
    } while (now - start < bench_window_ns());
    meeting.last.store(phase + 1);
    meeting.barrier.wait();
    return static_cast<double>(now - start) / static_cast<double>(phase - step);
}

template <class Barrier, unsigned PARTIES> static double phase()
{
    Meeting<Barrier> meeting(PARTIES);
    std::vector<pthread_t> others(PARTIES - 1);
    double cost;

    if (PARTIES == 2)
        bench_pin(0);
    for (auto &other : others)
        bench_spawn(&other, party<Barrier>, &meeting);
    cost = lead(meeting);
    for (auto other : others)
        bench_join(other);
    return cost / PARTIES;
}

static const bench_question questions[] = {
    {
        .name = "barrier_2",
        .unit = "ns",
        .cpus_needed = 2,
        .cases =
            {
                {"weir", BENCH_WEIR, phase<WeirBarrier, 2>},
                {"pthread_barrier", BENCH_PEER, phase<PthreadBarrier, 2>},
                {"std::barrier", BENCH_PEER, phase<StdBarrier, 2>},
                {"nsync", BENCH_PEER, phase<NsyncBarrier, 2>},
                {"futex", BENCH_WEAKER, phase<FutexBarrier, 2>},
                {"spin", BENCH_LIMIT, phase<SpinBarrier, 2>},
            },
        .goals =
            {
                {"pthread_barrier", BENCH_AT_MOST, 1.0},
                {"std::barrier", BENCH_AT_MOST, 1.0},
            },
    },
    {
        .name = "barrier_8",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, phase<WeirBarrier, 8>},
                {"pthread_barrier", BENCH_PEER, phase<PthreadBarrier, 8>},
                {"std::barrier", BENCH_PEER, phase<StdBarrier, 8>},
                {"nsync", BENCH_PEER, phase<NsyncBarrier, 8>},
                {"futex", BENCH_WEAKER, phase<FutexBarrier, 8>},
            },
        .goals =
            {
                {"pthread_barrier", BENCH_AT_MOST, 1.0},
                {"std::barrier", BENCH_AT_MOST, 1.0},
            },
    },
    {
        .name = "barrier_1000",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, phase<WeirBarrier, 1000>},
                {"pthread_barrier", BENCH_PEER, phase<PthreadBarrier, 1000>},
                {"std::barrier", BENCH_PEER, phase<StdBarrier, 1000>},
                {"nsync", BENCH_PEER, phase<NsyncBarrier, 1000>},
                {"futex", BENCH_WEAKER, phase<FutexBarrier, 1000>},
            },
        .goals =
            {
                {"pthread_barrier", BENCH_AT_MOST, 1.0},
                {"std::barrier", BENCH_AT_MOST, 1.05},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
