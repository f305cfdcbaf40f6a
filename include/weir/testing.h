/* SPDX-License-Identifier: MIT */
/* weir/testing.h - for the tests of programs that use weir.
 *
 * The virtual clock.  Between start and stop, time stands still while any task can run,
 * and when all are parked it jumps to the next moment that one of them waits for: a test
 * of a one-hour deadline takes no time, and takes the same turns every time.  It is the
 * clock of the whole process; use it with one runtime of one worker.  Plain threads that
 * wait with a deadline are not woken by a jump.
 *
 * The seed.  With WEIR_SCHED_SEED=N in the environment, tasks that are ready run in an
 * order that N decides instead of in their order of arrival.  Seeds are odd: an even N counts
 * as N + 1, so that 2 and 3 are the same order.
 */
#ifndef WEIR_TESTING_H
#define WEIR_TESTING_H

#include <stdint.h>

#include <weir/task.h>

WEIR_BEGIN

/* From the real time on.  Again, while it runs: nothing. */
WEIR_API void weir_testing_clock_start(void);

/* Back to the real time. */
WEIR_API void weir_testing_clock_stop(void);

enum weir_task_state { WEIR_TASK_UNSTARTED, WEIR_TASK_READY, WEIR_TASK_PARKED };

struct weir_task_info {
    struct weir_task task;
    const char *name;           /* "" if it has none                                       */
    enum weir_task_state state; /* running is ready                                   */
    const char *waits_for;      /* while parked: "semaphore", "event", "descriptor", ...   */
    int64_t parked_ns;          /* for how long                                            */
};

/* Look at each task of the runtime that has not ended, from any thread.  They move
 * meanwhile: each is described as it was at some moment during the call. */
WEIR_API void weir_visit_tasks(struct weir_runtime *runtime,
                               void (*each)(const struct weir_task_info *info, void *arg),
                               void *arg) WEIR_NONNULL(1, 2);

/* One line a task, written to a descriptor.  Raises no SIGPIPE. */
WEIR_API void weir_dump_tasks(struct weir_runtime *runtime, int fd) WEIR_NONNULL(1);

WEIR_END

#endif
