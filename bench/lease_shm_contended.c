/* SPDX-License-Identifier: MIT */
/* lease_shm_contended - how much do two processes get done that share one permit?
 *
 * Each holds it for 3 us and does without for half a microsecond, on a CPU of its own.
 *
 * weir serves strictly in order, and so does semop(2), which hands over in the kernel: here
 * the permit changes hands every time.  The others let whoever is running have it, so the one
 * that has just released it often takes it again, and what that saves in wake-ups the other
 * one pays in waiting.  The second question is how unevenly they were served: what the
 * luckier one got, as a multiple of the other's.
 */
#define _GNU_SOURCE
#include <time.h>

#include "bench.h"
#include "locks.h"
#include "processes.h"

enum { PROCESSES = 2, HOLD_NS = 3000, PAUSE_NS = 500, WINDOWS = 2 };

/* What they share; each field on lines of its own. */
struct meeting {
    _Alignas(128) int arrived;
    _Alignas(128) int stop;
    _Alignas(128) int inside;
    struct {
        _Alignas(128) long rounds;
    } of[PROCESSES];
};

struct contender {
    struct meeting *meeting;
    struct lock lock;
    unsigned nth;
};

static void work(int64_t ns)
{
    int64_t until = bench_now_ns() + ns;

    while (bench_now_ns() < until)
        ;
}

static void take_turn(struct contender *c)
{
    struct meeting *m = c->meeting;

    c->lock.kind->acquire(&c->lock);
    BENCH_CHECK(__atomic_add_fetch(&m->inside, 1, __ATOMIC_RELAXED) == 1);
    work(HOLD_NS);
    __atomic_sub_fetch(&m->inside, 1, __ATOMIC_RELAXED);
    c->lock.kind->release(&c->lock);
    work(PAUSE_NS);
}

static void contend(void *arg)
{
    struct contender *c = arg;
    struct meeting *m = c->meeting;
    long rounds = 0;

    bench_pin(c->nth);
    lock_open(&c->lock);
    __atomic_add_fetch(&m->arrived, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&m->arrived, __ATOMIC_ACQUIRE) < PROCESSES)
        ;
    for (; !__atomic_load_n(&m->stop, __ATOMIC_RELAXED); rounds++)
        take_turn(c);
    m->of[c->nth].rounds = rounds;
    lock_close(&c->lock);
}

/* Contend for a while, and leave in *m what came of it. */
static void meet(const struct lock_kind *kind, struct meeting *m, int64_t window_ns)
{
    struct timespec window = {window_ns / 1000000000, window_ns % 1000000000};
    struct contender c = {.meeting = m};
    pid_t pids[PROCESSES];

    *m = (struct meeting){0};
    lock_make(&c.lock, kind);
    for (c.nth = 0; c.nth < PROCESSES; c.nth++)
        pids[c.nth] = process_start(contend, &c);
    while (__atomic_load_n(&m->arrived, __ATOMIC_ACQUIRE) < PROCESSES)
        nanosleep(&(struct timespec){0, 100000}, NULL);
    nanosleep(&window, NULL);
    __atomic_store_n(&m->stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < PROCESSES; i++)
        process_join(pids[i]);
    lock_unmake(&c.lock);
}

static const struct meeting *met(const struct lock_kind *kind)
{
    static struct meeting *m;

    if (!m)
        m = shared_memory(sizeof *m);
    meet(kind, m, WINDOWS * bench_window_ns());
    return m;
}

static double per_second(const struct lock_kind *kind)
{
    const struct meeting *m = met(kind);

    return (double)(m->of[0].rounds + m->of[1].rounds) * 1e9 /
           (double)(WINDOWS * bench_window_ns());
}

static double unevenness(const struct lock_kind *kind)
{
    const struct meeting *m = met(kind);
    double a = (double)m->of[0].rounds, b = (double)m->of[1].rounds;

    return (a > b ? a : b) / ((a > b ? b : a) + 1e-9);
}

/* ---- who takes part ---------------------------------------------------------------- */

static double weir_rate(void)
{
    return per_second(&weir_lock);
}

static double flock_rate(void)
{
    return per_second(&flock_lock);
}

static double ofd_rate(void)
{
    return per_second(&ofd_lock);
}

static double sysv_rate(void)
{
    return per_second(&sysv_lock);
}

static double posix_rate(void)
{
    return per_second(&posix_lock);
}

static double weir_unevenness(void)
{
    return unevenness(&weir_lock);
}

static double flock_unevenness(void)
{
    return unevenness(&flock_lock);
}

static double ofd_unevenness(void)
{
    return unevenness(&ofd_lock);
}

static double sysv_unevenness(void)
{
    return unevenness(&sysv_lock);
}

static double posix_unevenness(void)
{
    return unevenness(&posix_lock);
}

static const struct bench_question questions[] = {
    {
        .name = "lease_shm_contended",
        .unit = "per s",
        .cpus_needed = PROCESSES,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_rate},
                {"flock", BENCH_WEAKER, flock_rate},
                {"sem_undo", BENCH_PEER, sysv_rate},
                {"ofd_lock", BENCH_WEAKER, ofd_rate},
                {"sem_open", BENCH_WEAKER, posix_rate},
            },
        .goals = {{"flock", BENCH_AT_LEAST, 0.9}},
    },
    {
        .name = "lease_shm_contended_uneven",
        .unit = "max/min",
        .cpus_needed = PROCESSES,
        .cases =
            {
                {"weir", BENCH_WEIR, weir_unevenness},
                {"flock", BENCH_WEAKER, flock_unevenness},
                {"sem_undo", BENCH_PEER, sysv_unevenness},
                {"ofd_lock", BENCH_WEAKER, ofd_unevenness},
                {"sem_open", BENCH_WEAKER, posix_unevenness},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
