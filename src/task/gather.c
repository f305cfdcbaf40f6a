/* SPDX-License-Identifier: MIT */
#include <weir/scope.h>

#include "base/alloc.h"
#include "task/task.h"

static void cancel_all(const struct weir_task *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weir_task_cancel(tasks[i]); /* those already joined are stale, which is harmless */
}

/* Join tasks[i]; the first time that cannot be waited for, cancel it and all after it. */
static int join_one(const struct weir_task *tasks, size_t i, size_t n,
                    struct weir_deadline deadline, int *ret_result)
{
    struct weir_shield shield;
    int r = weir_task_join(tasks[i], deadline, ret_result);

    if (r == 0)
        return 0;
    cancel_all(tasks + i, n - i);
    weir_shield_begin(&shield, WEIR_FOREVER);
    int joined = weir_task_join(tasks[i], WEIR_FOREVER, ret_result);
    weir_shield_end(&shield);
    return joined < 0 ? joined : r;
}

static int join_all(const struct weir_task *tasks, size_t n, int results[],
                    struct weir_deadline deadline)
{
    int reason = 0, failure = 0;

    for (size_t i = 0; i < n; i++) {
        int result = 0, r = join_one(tasks, i, n, reason < 0 ? WEIR_FOREVER : deadline, &result);

        if (reason == 0)
            reason = r;
        if (results)
            results[i] = result;
        if (failure == 0 && result < 0)
            failure = result;
    }
    return reason < 0 ? reason : failure;
}

int weir_gather(size_t n, weir_fn *fn, void *const args[], int results[],
                struct weir_deadline deadline)
{
    size_t spawned = 0;
    int r = 0;

    if (n == 0)
        return 0;
    if (task_current() == NULL)
        return WEIR_ECONTEXT; /* it could spawn, in a callback, but not join */
    struct weir_task *tasks = n <= SIZE_MAX / sizeof *tasks ? mem_alloc(n * sizeof *tasks) : NULL;
    if (tasks == NULL)
        return WEIR_ENOMEM;
    while (spawned < n && r == 0) {
        r = weir_task_spawn(fn, args ? args[spawned] : NULL, &tasks[spawned]);
        spawned += r == 0;
    }
    if (r < 0)
        cancel_all(tasks, spawned);
    int joined = join_all(tasks, spawned, r < 0 ? NULL : results, r < 0 ? WEIR_FOREVER : deadline);
    mem_free(tasks);
    return r < 0 ? r : joined;
}
