/* SPDX-License-Identifier: MIT */
/* barrier - meet in phases, and let exactly one of those who met do the rest. */
#include "example.h"

static int part[4], total;

static void add_up(int phase)
{
    int sum = 0;

    for (int i = 0; i < 4; i++)
        sum += part[i];
    total += sum;
    printf("phase %d: %d\n", phase, sum);
}

// [begin]
static struct weir_barrier step = WEIR_BARRIER_INIT(4);

static void *worker(void *arg)
{
    int me = *(int *)arg;
    uint32_t index;

    for (int phase = 0; phase < 3; phase++) {
        part[me] = phase * 10 + me;
        if (weir_barrier_wait(&step, WEIR_FOREVER, &index) < 0)
            break;
        if (index == 0) // the first to come: exactly one of the four
            add_up(phase);
        if (weir_barrier_wait(&step, WEIR_FOREVER, NULL) < 0)
            break;
    }
    return NULL;
}
// [end]

int main(void)
{
    run_threads(4, worker);
    printf("total: %d\n", total);
    return 0;
}
