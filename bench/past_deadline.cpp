/* SPDX-License-Identifier: MIT */
/* past_deadline - what does a wait cost whose deadline has passed before it began?
 *
 * Programs that carry one deadline through many waits meet this whenever they are late.
 * Nothing is free, so the answer is always "too late"; asking the kernel for it arms a
 * timer and sleeps.  The deadline is a time on the clock, not a constant that means "do
 * not wait", so that everyone has to find out.
 *
 * It is asked twice: for a deadline that has only just passed, and for one that passed
 * ten milliseconds ago, which a coarse and cheap clock can tell as well.
 */
#include <cerrno>
#include <chrono>
#include <semaphore>

#include <nsync.h>
#include <semaphore.h>
#include <weir/sem.h>

#include "bench.h"

static constexpr long CALLS = 200000, CALLS_INTO_THE_KERNEL = 500, CALLS_PER_DEADLINE = 100;
static constexpr int64_t JUST_NOW_NS = 1, A_WHILE_NS = 10 * 1000 * 1000;

/* ---- waits --------------------------------------------------------------------- */

static timespec to_timespec(int64_t at_ns)
{
    return {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
}

struct WeirSem {
    static constexpr clockid_t CLOCK = CLOCK_MONOTONIC;
    static constexpr long TIMES = CALLS;
    weir_sem sem = WEIR_SEM_INIT(1);

    WeirSem()
    {
        BENCH_CHECK(weir_sem_try_acquire(&sem, 1) == 0);
    }
    static weir_deadline deadline(int64_t at_ns)
    {
        return {at_ns};
    }
    bool refuses(const weir_deadline &late)
    {
        return weir_sem_acquire(&sem, 1, late) == WEIR_ETIMEDOUT;
    }
};

/* What the peers have in common: they wait in the kernel, for a struct timespec. */
template <clockid_t CLOCK_ID> struct KernelWait {
    static constexpr clockid_t CLOCK = CLOCK_ID;
    static constexpr long TIMES = CALLS_INTO_THE_KERNEL;

    static timespec deadline(int64_t at_ns)
    {
        return to_timespec(at_ns);
    }
};

struct PosixSem {
    sem_t sem;

    PosixSem()
    {
        BENCH_CHECK(sem_init(&sem, 0, 0) == 0);
    }
};

struct SemTimedwait : PosixSem, KernelWait<CLOCK_REALTIME> {
    bool refuses(const timespec &late)
    {
        return sem_timedwait(&sem, &late) != 0 && errno == ETIMEDOUT;
    }
};

struct SemClockwait : PosixSem, KernelWait<CLOCK_MONOTONIC> {
    bool refuses(const timespec &late)
    {
        return sem_clockwait(&sem, CLOCK, &late) != 0 && errno == ETIMEDOUT;
    }
};

struct StdSem : KernelWait<CLOCK_MONOTONIC> {
    std::counting_semaphore<> sem{0};

    static std::chrono::steady_clock::time_point deadline(int64_t at_ns)
    {
        return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at_ns));
    }
    bool refuses(const std::chrono::steady_clock::time_point &late)
    {
        return !sem.try_acquire_until(late);
    }
};

struct NsyncWait : KernelWait<CLOCK_REALTIME> {
    nsync::nsync_mu lock = NSYNC_MU_INIT;

    NsyncWait()
    {
        nsync::nsync_mu_lock(&lock);
    }
    ~NsyncWait()
    {
        nsync::nsync_mu_unlock(&lock);
    }
    static int never(const void *)
    {
        return 0;
    }
    bool refuses(const timespec &late)
    {
        return nsync::nsync_mu_wait_with_deadline(&lock, never, nullptr, nullptr, late, nullptr) ==
               ETIMEDOUT;
    }
};

struct PthreadCond : KernelWait<CLOCK_MONOTONIC> {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

    PthreadCond()
    {
        pthread_mutex_lock(&lock);
    }
    bool refuses(const timespec &late)
    {
        return pthread_cond_clockwait(&cond, &lock, CLOCK, &late) == ETIMEDOUT;
    }
};

/* ---- measurement --------------------------------------------------------------- */

static int64_t ago(clockid_t clock, int64_t late_ns)
{
    timespec now;

    clock_gettime(clock, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec - late_ns;
}

/* The deadline is taken anew every few calls, so that it stays as late as it should be. */
template <class Wait, int64_t LATE_NS> static double refusal()
{
    Wait wait;
    int64_t took = 0;
    long count = 0;

    bench_pin(0);
    for (; count < bench_times(Wait::TIMES); count += CALLS_PER_DEADLINE) {
        const auto late = Wait::deadline(ago(Wait::CLOCK, LATE_NS));
        int64_t start = bench_now_ns();

        for (long i = 0; i < CALLS_PER_DEADLINE; i++)
            BENCH_CHECK(wait.refuses(late));
        took += bench_now_ns() - start;
    }
    return static_cast<double>(took) / static_cast<double>(count);
}

/* What has to be paid to know how late it is to the nanosecond. */
static double clock_read()
{
    int64_t start = bench_now_ns(), now = start;

    bench_pin(0);
    for (long i = 0; i < bench_times(CALLS); i++)
        now = bench_now_ns();
    return static_cast<double>(now - start) / static_cast<double>(bench_times(CALLS));
}

/* Go's contexts know by themselves that they are late, however little. */
static double go_refusal()
{
    return bench_external("peer_go", "past_deadline", bench_times(CALLS));
}

static const bench_question questions[] = {
    {
        .name = "past_deadline",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, refusal<WeirSem, JUST_NOW_NS>},
                {"sem_timedwait", BENCH_PEER, refusal<SemTimedwait, JUST_NOW_NS>},
                {"sem_clockwait", BENCH_PEER, refusal<SemClockwait, JUST_NOW_NS>},
                {"std::counting_semaphore", BENCH_PEER, refusal<StdSem, JUST_NOW_NS>},
                {"nsync", BENCH_PEER, refusal<NsyncWait, JUST_NOW_NS>},
                {"pthread_cond", BENCH_PEER, refusal<PthreadCond, JUST_NOW_NS>},
                {"go_x_sync", BENCH_PEER, go_refusal},
                {"clock_read", BENCH_LIMIT, clock_read},
            },
        .goals = {{"sem_timedwait", BENCH_AT_LEAST_FASTER, 1000}},
    },
    {
        .name = "past_deadline_10ms",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, refusal<WeirSem, A_WHILE_NS>},
                {"sem_timedwait", BENCH_PEER, refusal<SemTimedwait, A_WHILE_NS>},
                {"sem_clockwait", BENCH_PEER, refusal<SemClockwait, A_WHILE_NS>},
                {"std::counting_semaphore", BENCH_PEER, refusal<StdSem, A_WHILE_NS>},
                {"nsync", BENCH_PEER, refusal<NsyncWait, A_WHILE_NS>},
                {"pthread_cond", BENCH_PEER, refusal<PthreadCond, A_WHILE_NS>},
                {"go_x_sync", BENCH_PEER, go_refusal},
                {"clock_read", BENCH_LIMIT, clock_read},
            },
        .goals = {{"sem_timedwait", BENCH_AT_LEAST_FASTER, 1000}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
