/* SPDX-License-Identifier: MIT */
/* lease_shm_pair - what do a lease and its return cost, when no other process is there?
 *
 * A lease is found by its name, gets an id, a slot and a token, and is on record for whoever
 * must take it back.  The kernel's locks, which do that for one permit, cost two system calls.
 * sem_open's semaphore costs two atomic operations, and loses the permit of one who is killed.
 *
 * With a TTL, which none of the others has, the exact time is part of every lease.
 */
#include "bench.h"
#include "locks.h"

enum { PAIRS = 200 * 1000 };

static double pair(const struct lock_kind *kind)
{
    long warm_up = bench_times(PAIRS / 100), pairs = bench_times(PAIRS);
    int64_t start = 0, took;
    struct lock lock;

    bench_pin(0);
    lock_make(&lock, kind);
    lock_open(&lock);
    for (long i = -warm_up; i < pairs; i++) {
        if (i == 0)
            start = bench_now_ns();
        kind->acquire(&lock);
        kind->release(&lock);
    }
    took = bench_now_ns() - start;
    lock_close(&lock);
    lock_unmake(&lock);
    return (double)took / (double)pairs;
}

static double weir_pair(void)
{
    return pair(&weir_lock);
}

static double weir_ttl_pair(void)
{
    return pair(&weir_ttl_lock);
}

static double flock_pair(void)
{
    return pair(&flock_lock);
}

static double ofd_pair(void)
{
    return pair(&ofd_lock);
}

static double sysv_pair(void)
{
    return pair(&sysv_lock);
}

static double posix_pair(void)
{
    return pair(&posix_lock);
}

static const struct bench_question questions[] = {
    {
        .name = "lease_shm_pair",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_pair},
                {"flock", BENCH_PEER, flock_pair},
                {"sem_undo", BENCH_PEER, sysv_pair},
                {"ofd_lock", BENCH_PEER, ofd_pair},
                {"sem_open", BENCH_WEAKER, posix_pair},
            },
        .goals =
            {
                {"flock", BENCH_AT_LEAST_FASTER, 10},
                {"sem_undo", BENCH_AT_LEAST_FASTER, 10},
            },
    },
    {
        .name = "lease_shm_ttl",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_ttl_pair},
                {"flock", BENCH_WEAKER, flock_pair},
                {"sem_undo", BENCH_WEAKER, sysv_pair},
                {"ofd_lock", BENCH_WEAKER, ofd_pair},
                {"sem_open", BENCH_WEAKER, posix_pair},
            },
        .goals =
            {
                {"flock", BENCH_AT_LEAST_FASTER, 6},
                {"sem_undo", BENCH_AT_LEAST_FASTER, 6},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
