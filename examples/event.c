/* SPDX-License-Identifier: MIT */
/* event - tell everyone, once, that something is ready. */
#include "example.h"

static atomic_int sum;

// [begin]
static struct weir_event ready = WEIR_EVENT_INIT;
static int config; // written before the set, read after the wait

static void *worker(void *arg)
{
    (void)arg;
    if (weir_event_wait(&ready, WEIR_FOREVER) == 0)
        sum += config; // needs no lock
    return NULL;
}

static void *loader(void *arg)
{
    (void)arg;
    config = 42;
    weir_event_set(&ready); // now, and for ever after, no wait waits
    return NULL;
}
// [end]

int main(void)
{
    pthread_t early = start(worker, NULL);

    run_threads(1, loader);
    run_threads(1, worker);
    finish(early);
    MUST(weir_event_is_set(&ready) && sum == 2 * 42);
    puts("two workers read 42");
    return 0;
}
