/* SPDX-License-Identifier: MIT */
/* meeting - two threads and two tasks meet at one barrier. */
#include "example.h"

static int share[4];

static void add_up(int phase)
{
    printf("phase %d: %d\n", phase, share[0] + share[1] + share[2] + share[3]);
}

// [begin]
static struct weir_barrier step = WEIR_BARRIER_INIT(4);

// The same for a thread and for a task: each waits in its own way.
static int take_part(void *arg)
{
    int *mine = arg, r = 0;
    uint32_t index;

    for (int phase = 1; phase <= 3 && r == 0; phase++) {
        *mine = phase * 10;
        r = weir_barrier_wait(&step, WEIR_FOREVER, &index);
        if (r == 0 && index == 0) // the first to come, either kind
            add_up(phase);
        if (r == 0)
            r = weir_barrier_wait(&step, WEIR_FOREVER, NULL);
    }
    return r;
}

static void *thread_main(void *arg)
{
    take_part(arg);
    return NULL;
}

static int meet(void)
{
    struct weir_runtime *runtime; // one thread, for all tasks
    pthread_t a, b;
    int r = weir_runtime_open(NULL, &runtime);

    if (r < 0)
        return r;
    a = start(thread_main, &share[0]);
    b = start(thread_main, &share[1]);
    for (int i = 2; i < 4; i++)
        if (weir_runtime_spawn(runtime, take_part, &share[i], NULL) < 0)
            weir_barrier_abort(&step); // or the others would wait
    finish(a);
    finish(b);
    return weir_runtime_close(runtime, WEIR_FOREVER);
}
// [end]

int main(void)
{
    MUST(meet() == 0);
    return 0;
}
