/* SPDX-License-Identifier: MIT */
#include "base/fork.h"

#include <pthread.h>

uint32_t fork_counter;

static void in_child(void)
{
    atomic_poke(&fork_counter, fork_counter + 1);
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch);
}
