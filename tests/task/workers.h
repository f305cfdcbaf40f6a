/* SPDX-License-Identifier: MIT */
/* For tests that run as a task, once with one worker and once with two, and leave no
 * descriptor behind. */
#ifndef WEIR_TESTS_TASK_WORKERS_H
#define WEIR_TESTS_TASK_WORKERS_H

#include <weir/task.h>
#include <weir/testing.h>

#include <dirent.h>
#include <string.h>

#include "harness/test.h"

static inline int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = -3; /* ., .. and dir itself */

    CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static inline void run_with_workers(uint32_t most, weir_fn *fn)
{
    for (uint32_t workers = 1; workers <= most; workers++) {
        struct weir_run_options options = {.workers = workers, .max_offload = 3};
        int before = open_descriptors();

        CHECK_EQ(weir_run(&options, fn, NULL), 0);
        CHECK_EQ(open_descriptors(), before);
    }
}

/* Its body is a task, and returns 0. */
#define TASK_TEST_UP_TO(most, name)            \
    static int name##_task(void *arg);         \
    TEST(name)                                 \
    {                                          \
        run_with_workers((most), name##_task); \
    }                                          \
    static int name##_task(void *arg __attribute__((unused)))

#define TASK_TEST(name) TASK_TEST_UP_TO(2, name)

/* What must hold of tasks that share a worker. */
#define ONE_WORKER_TEST(name) TASK_TEST_UP_TO(1, name)

/* EVENTUALLY in a task: others run meanwhile. */
#define TASK_EVENTUALLY(cond)                                  \
    while (!(cond)) {                                          \
        weir_task_yield();                                     \
        test_still_waiting(__FILE__, __LINE__, "true", #cond); \
    }

static inline struct weir_task spawn(weir_fn *fn, void *arg)
{
    struct weir_task one = {0};

    CHECK_EQ(weir_task_spawn(fn, arg, &one), 0);
    return one;
}

static inline int join(struct weir_task one)
{
    int result = 0;

    CHECK_EQ(weir_task_join(one, WEIR_FOREVER, &result), 0);
    return result;
}

static inline void count_parked(const struct weir_task_info *info, void *arg)
{
    if (info->state == WEIR_TASK_PARKED && strcmp(info->waits_for, "descriptor") == 0)
        ++*(int *)arg;
}

/* How many tasks wait for a descriptor. */
static inline int waiting_in(struct weir_runtime *runtime)
{
    int n = 0;

    weir_visit_tasks(runtime, count_parked, &n);
    return n;
}

static inline int waiting(void)
{
    return waiting_in(weir_runtime_self());
}

static inline int load(const int *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void store(int *p, int value)
{
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

#endif
