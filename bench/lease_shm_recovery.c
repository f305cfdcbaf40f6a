/* SPDX-License-Identifier: MIT */
/* lease_shm_recovery - when the holder is killed, how soon does the next one run?
 *
 * From just before the SIGKILL to the return of the acquire in another process, which had
 * been asleep in it: of many such deaths the 99th percentile.  The holder dies on one CPU,
 * the next one wakes on another.  sem_open takes no part: there the next one never runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"
#include "processes.h"

enum { DEATHS = 200, PERCENTILE = 99 };

struct scene {
    struct lock lock;
    int *asking;                /* shared: the number of the acquire that the waiter is in */
    int held[2], go[2], got[2]; /* pipes: the holder has it; the waiter may ask; it got it */
};

static void hold_until_killed(void *arg)
{
    struct scene *s = arg;

    bench_pin(1);
    lock_open(&s->lock);
    s->lock.kind->acquire(&s->lock);
    BENCH_CHECK(write(s->held[1], "", 1) == 1);
    for (;;)
        pause();
}

/* Asks whenever it is told to, until nobody is there to tell it. */
static void wait_again_and_again(void *arg)
{
    struct scene *s = arg;
    char told;

    bench_pin(0);
    close(s->go[1]);
    lock_open(&s->lock);
    while (read(s->go[0], &told, 1) == 1) {
        int64_t now;

        __atomic_add_fetch(s->asking, 1, __ATOMIC_RELEASE);
        s->lock.kind->acquire(&s->lock);
        now = bench_now_ns();
        s->lock.kind->release(&s->lock);
        BENCH_CHECK(write(s->got[1], &now, sizeof now) == sizeof now);
    }
    lock_close(&s->lock);
}

static void until_asking(const struct scene *s, pid_t waiter, int which)
{
    while (__atomic_load_n(s->asking, __ATOMIC_ACQUIRE) != which)
        sched_yield();
    process_until_asleep(waiter);
}

static int64_t one_death(struct scene *s, pid_t waiter, int which)
{
    pid_t holder = process_start(hold_until_killed, s);
    int64_t start, end;
    int status;
    char told;

    BENCH_CHECK(read(s->held[0], &told, 1) == 1);
    BENCH_CHECK(write(s->go[1], "", 1) == 1);
    until_asking(s, waiter, which);
    process_until_asleep(holder);
    start = bench_now_ns();
    BENCH_CHECK(kill(holder, SIGKILL) == 0);
    BENCH_CHECK(read(s->got[0], &end, sizeof end) == sizeof end);
    BENCH_CHECK(waitpid(holder, &status, 0) == holder && WIFSIGNALED(status));
    return end - start;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static double percentile_us(int64_t *times, size_t count)
{
    qsort(times, count, sizeof *times, compare_times);
    return (double)times[(count * PERCENTILE + 99) / 100 - 1] / 1000;
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static double recovery(const struct lock_kind *kind)
{
    int deaths = (int)bench_times(DEATHS);
    static int64_t times[DEATHS];
    static int *asking;
    struct scene s;
    pid_t waiter;

    if (!asking)
        asking = shared_memory(sizeof *asking);
    *asking = 0;
    s.asking = asking;
    BENCH_CHECK(pipe(s.held) == 0 && pipe(s.go) == 0 && pipe(s.got) == 0);
    lock_make(&s.lock, kind);
    bench_pin(0);
    waiter = process_start(wait_again_and_again, &s);
    for (int i = 0; i < deaths; i++)
        times[i] = one_death(&s, waiter, i + 1);
    close_both(s.go); /* that is all */
    process_join(waiter);
    close_both(s.held);
    close_both(s.got);
    lock_unmake(&s.lock);
    return percentile_us(times, (size_t)deaths);
}

static double weir_recovery(void)
{
    return recovery(&weir_lock);
}

static double flock_recovery(void)
{
    return recovery(&flock_lock);
}

static double ofd_recovery(void)
{
    return recovery(&ofd_lock);
}

static double sysv_recovery(void)
{
    return recovery(&sysv_lock);
}

static const struct bench_question question = {
    .name = "lease_shm_recovery",
    .unit = "us",
    .cpus_needed = 2,
    .cases =
        {
            {"weir", BENCH_WEIR, weir_recovery},
            {"flock", BENCH_PEER, flock_recovery},
            {"sem_undo", BENCH_PEER, sysv_recovery},
            {"ofd_lock", BENCH_PEER, ofd_recovery},
        },
    .goals = {{"flock", BENCH_AT_MOST, 1.5}},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
