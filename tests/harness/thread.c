/* SPDX-License-Identifier: MIT */
/* Threads, what they draw by chance, and waiting for what they do. */
#include "harness/run.h"

#include <pthread.h>
#include <time.h>

enum { STACK_BYTES = 256 * 1024 };

struct spawned {
    pthread_t id;
    void (*fn)(void *);
    void *arg;
    uint64_t stream;
};

static struct spawned threads[TEST_MAX_THREADS];
static int thread_count;
static uint64_t stream_count;
static _Thread_local uint64_t random_state;

/* ---- chance ---------------------------------------------------------------- */

/* splitmix64: any state is a good one, so seed and stream are simply added. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void run_random_begin(uint64_t stream)
{
    if (stream == 0)
        stream_count = 0;
    random_state = scramble(run_seed) + scramble(stream);
}

uint32_t test_random(uint32_t below)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(scramble(random_state) % below);
}

int test_scaled(int iterations)
{
    int n = (int)(iterations * run_scale);

    return n > 0 ? n : 1;
}

/* ---- threads --------------------------------------------------------------- */

static void *thread_main(void *p)
{
    struct spawned *t = p;

    run_random_begin(t->stream);
    t->fn(t->arg);
    return NULL;
}

void test_spawn(void (*fn)(void *), void *arg)
{
    pthread_attr_t attr;

    CHECK(thread_count < TEST_MAX_THREADS);
    struct spawned *t = &threads[thread_count++];
    t->fn = fn;
    t->arg = arg;
    t->stream = ++stream_count;
    pthread_attr_init(&attr);
    CHECK_EQ(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    CHECK_EQ(pthread_create(&t->id, &attr, thread_main, t), 0);
    pthread_attr_destroy(&attr);
}

void test_join_all(void)
{
    while (thread_count > 0)
        CHECK_EQ(pthread_join(threads[--thread_count].id, NULL), 0);
}

/* ---- waiting --------------------------------------------------------------- */

void test_yield(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void test_still_waiting(const char *file, int line, const char *hope, const char *what)
{
    if (run_now_ns() > run_patience_ends_ns)
        test_fail(file, line, "never %s: %s", hope, what);
    test_yield();
}
