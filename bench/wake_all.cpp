/* SPDX-License-Identifier: MIT */
/* wake_all - how long until the last of a thousand waiting threads has run?
 *
 * A thousand threads sleep on one event; it is set; the time until the last of them has
 * run, divided by their number.  The kernel's wake-up and switch are nearly all of it,
 * so one futex shared by all is the mark.
 */
#include <atomic>
#include <latch>
#include <vector>

#include <nsync.h>
#include <weir/event.h>

#include "bench.h"
#include "futex.hpp"

static constexpr unsigned THREADS = 1000, ROUNDS = 3;

/* ---- events -------------------------------------------------------------------- */

class WeirEvent
{
    weir_event event_ = WEIR_EVENT_INIT;

  public:
    void wait()
    {
        BENCH_CHECK(weir_event_wait(&event_, WEIR_FOREVER) == 0);
    }
    void set()
    {
        weir_event_set(&event_);
    }
};

class SharedFutex
{
    Signpost happened_;

  public:
    void wait()
    {
        happened_.wait_for(1);
    }
    void set()
    {
        happened_.reach(1);
    }
};

class CondEvent
{
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    bool happened_ = false;

  public:
    void wait()
    {
        pthread_mutex_lock(&lock_);
        while (!happened_)
            pthread_cond_wait(&changed_, &lock_);
        pthread_mutex_unlock(&lock_);
    }
    void set()
    {
        pthread_mutex_lock(&lock_);
        happened_ = true;
        pthread_cond_broadcast(&changed_);
        pthread_mutex_unlock(&lock_);
    }
};

class StdLatch
{
    std::latch latch_{1};

  public:
    void wait()
    {
        latch_.wait();
    }
    void set()
    {
        latch_.count_down();
    }
};

class NsyncNote
{
    nsync::nsync_note note_ = nsync::nsync_note_new(nullptr, nsync::nsync_time_no_deadline);

  public:
    ~NsyncNote()
    {
        nsync::nsync_note_free(note_);
    }
    void wait()
    {
        nsync::nsync_note_wait(note_, nsync::nsync_time_no_deadline);
    }
    void set()
    {
        nsync::nsync_note_notify(note_);
    }
};

/* ---- measurement --------------------------------------------------------------- */

template <class Event> struct Crowd {
    Event events[ROUNDS];
    Signpost gate;     /* round n may begin */
    Signpost finished; /* round n is over */
    std::atomic<unsigned> ready{0}, ran{0};
};

/* Behind the gate, everyone sleeps on a futex again, whatever is measured: a thread that
 * has run must go somewhere, and should not be ending while others are woken. */
template <class Event> static void *waiter(void *arg)
{
    auto *crowd = static_cast<Crowd<Event> *>(arg);

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        crowd->gate.wait_for(round);
        crowd->ready.fetch_add(1);
        crowd->events[round - 1].wait();
        if (crowd->ran.fetch_add(1) + 1 == round * THREADS)
            crowd->finished.reach(round);
    }
    return nullptr;
}

template <class Event> static int64_t wake_round(Crowd<Event> &crowd, uint32_t round)
{
    int64_t start;

    crowd.gate.reach(round);
    while (crowd.ready.load() < round * THREADS)
        sched_yield();
    bench_until_asleep(THREADS);
    start = bench_now_ns();
    crowd.events[round - 1].set();
    crowd.finished.wait_for(round);
    return bench_now_ns() - start;
}

template <class Event> static double wake_all()
{
    Crowd<Event> crowd;
    std::vector<pthread_t> threads(THREADS);
    int64_t total = 0;

    for (auto &thread : threads)
        bench_spawn(&thread, waiter<Event>, &crowd);
    for (uint32_t round = 1; round <= ROUNDS; round++)
        total += wake_round(crowd, round);
    for (auto thread : threads)
        bench_join(thread);
    return static_cast<double>(total) / (ROUNDS * THREADS);
}

static const bench_question question = {
    .name = "wake_all_1000",
    .unit = "ns",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, wake_all<WeirEvent>},
            {"pthread_cond", BENCH_PEER, wake_all<CondEvent>},
            {"std::latch", BENCH_PEER, wake_all<StdLatch>},
            {"nsync_note", BENCH_PEER, wake_all<NsyncNote>},
            {"shared_futex", BENCH_LIMIT, wake_all<SharedFutex>},
        },
    .goals =
        {
            {"shared_futex", BENCH_AT_MOST, 1.15},
        },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
