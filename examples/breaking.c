/* SPDX-License-Identifier: MIT */
/* breaking - one worker's failure must not leave the others waiting for it. */
#include "example.h"

static atomic_int failed, told;

static bool do_share(int me, int round)
{
    return me != 2 || round < 5;
}

// [begin]
static struct weir_barrier step = WEIR_BARRIER_INIT(3);

static void *worker(void *arg)
{
    int me = *(int *)arg, r;
    bool good = true;

    for (int round = 0; good; round++) {
        r = weir_barrier_enter(&step, WEIR_FOREVER, NULL);
        if (r < 0) // WEIR_EBROKEN: another one has failed
            break;
        good = do_share(me, round);
        weir_barrier_leave(&step, good); // breaks it unless good
    }
    *(good ? &told : &failed) += 1;
    return NULL;
}
// [end]

int main(void)
{
    run_threads(3, worker);
    MUST(weir_barrier_is_broken(&step));
    printf("%d failed, %d were told\n", failed, told);
    return 0;
}
