/* SPDX-License-Identifier: MIT */
/* weighted - let each caller take as much of something as it needs. */
#include "example.h"

static atomic_int in_use, rendered;

static void draw(uint64_t mib)
{
    MUST(atomic_fetch_add(&in_use, (int)mib) + (int)mib <= 1024);
    sched_yield();
    atomic_fetch_sub(&in_use, (int)mib);
    rendered++;
}

// [begin]
static struct weir_sem memory = WEIR_SEM_INIT(1024); // in MiB

static int render(uint64_t mib)
{
    int r = weir_sem_acquire(&memory, mib, WEIR_FOREVER);
    if (r < 0)
        return r; // WEIR_EINVAL at once, if mib can never fit

    draw(mib);
    weir_sem_release(&memory, mib);
    return 0;
}
// [end]

static void *worker(void *arg)
{
    uint64_t mib = 100 + 200 * (uint64_t)(*(int *)arg);

    for (int i = 0; i < 50; i++)
        MUST(render(mib) == 0);
    return NULL;
}

int main(void)
{
    run_threads(5, worker); // of 100, 300, 500, 700 and 900 MiB
    MUST(render(2048) == WEIR_EINVAL && weir_sem_available(&memory) == 1024);
    printf("%d pictures, never more than 1024 MiB in use\n", rendered);
    puts("2048 MiB: refused at once");
    return 0;
}
