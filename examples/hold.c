/* SPDX-License-Identifier: MIT */
/* hold - limit a stretch of work: eight threads, at most three of them inside. */
#include "example.h"

static atomic_int inside, most, queries;

static void run_query(void)
{
    int now = ++inside, before = most;

    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    sched_yield();
    queries++;
    inside--;
}

// [begin]
static struct weir_sem slots = WEIR_SEM_INIT(3);

static void *worker(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        WEIR_HOLD(&slots, 1) {
            run_query(); // never more than three of these at once
        }
    }
    return NULL;
}
// [end]

int main(void)
{
    run_threads(8, worker);
    MUST(most <= 3 && weir_sem_available(&slots) == 3);
    printf("%d queries, never more than 3 at once\n", queries);
    return 0;
}
