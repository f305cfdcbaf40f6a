/* SPDX-License-Identifier: MIT */
/* guest.h - what the examples inside_... run inside their loops: a task that waits for a
 * slot which the host has, and then for the clock; and a timer of the host's own. */
#ifndef WEIR_EXAMPLE_GUEST_H
#define WEIR_EXAMPLE_GUEST_H

#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(1);
static bool over;

/* A task. */
static int guest(void *arg)
{
    (void)arg;
    puts("task: waits for the host's slot");
    MUST(weir_sem_acquire(&slots, 1, WEIR_FOREVER) == 0);
    puts("task: has it; sleeps");
    MUST(weir_task_sleep(weir_within(5 * WEIR_MS)) == 0);
    puts("task: ends");
    over = true;
    return 0;
}

/* To be called by a timer of the host's, after 20 ms. */
static void host_timer(void)
{
    int r = weir_sem_acquire(&slots, 1, WEIR_FOREVER);

    printf("host: if it waits itself: %s\n", weir_strerror(r));
    puts("host: gives the slot back");
    weir_sem_release(&slots, 1);
}

/* The host takes the slot, and the task is spawned. */
static struct weir_loop *guest_open(void)
{
    struct weir_loop *loop;

    MUST(weir_sem_try_acquire(&slots, 1) == 0);
    MUST(weir_loop_open(NULL, &loop) == 0);
    MUST(weir_runtime_spawn(weir_loop_runtime(loop), guest, NULL, NULL) == 0);
    return loop;
}

#endif
