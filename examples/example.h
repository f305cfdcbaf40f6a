/* SPDX-License-Identifier: MIT */
/* example.h - what the examples need but do not want to show: threads and checks. */
#ifndef WEIR_EXAMPLE_H
#define WEIR_EXAMPLE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

/* An example that does not do what it says must not go unnoticed. */
#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

/* Wait for a state that another thread is about to reach, whenever that is. */
#define UNTIL(condition) \
    do {                 \
        sched_yield();   \
    } while (!(condition))

static inline pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, fn, arg) == 0);
    return thread;
}

static inline void finish(pthread_t thread)
{
    MUST(pthread_join(thread, NULL) == 0);
}

/* Run fn in n threads (at most 16), each with its number as argument, to the end. */
static inline void run_threads(int n, void *(*fn)(void *))
{
    static int numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    pthread_t threads[16];

    MUST(n <= 16);
    for (int i = 0; i < n; i++)
        threads[i] = start(fn, &numbers[i]);
    for (int i = 0; i < n; i++)
        finish(threads[i]);
}

#endif
