/* SPDX-License-Identifier: MIT */
#include <weir/testing.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/waitq.h"
#include "task/io.h"
#include "task/sched.h"

void weir_testing_clock_start(void)
{
    int64_t real = 0;

    atomic_cas(&clock_virtual_ns, &real, clock_real_ns());
}

void weir_testing_clock_stop(void)
{
    atomic_swap(&clock_virtual_ns, 0);
}

/* ---- looking at tasks -------------------------------------------------------- */

struct visit {
    struct weir_runtime *runtime;
    void (*each)(const struct weir_task_info *info, void *arg);
    void *arg;
};

/* The body of another worker's task may end any moment, but its memory stays a body's
 * for as long as the runtime is open, so what is read is at worst another task's. */
static void describe_body(const struct body *b, struct weir_task_info *info)
{
    int64_t parked_at_ns = atomic_get(&b->parked_at_ns);
    const char *waits_for = atomic_peek(&b->waits_for);

    info->state = parked_at_ns ? WEIR_TASK_PARKED : WEIR_TASK_READY;
    if (parked_at_ns) {
        info->waits_for = waits_for ? waits_for : "time";
        info->parked_ns = clock_now_ns() - parked_at_ns;
    }
}

static void visit_one(task *t, void *arg)
{
    const struct visit *visit = arg;
    struct worker *home = atomic_get(&t->home);
    struct body *b = atomic_get(&t->body);
    char name[TASK_NAME_BYTES] = "";
    struct weir_task_info info = {.task = task_handle(t), .name = name};

    if (home == NULL || home->runtime != visit->runtime)
        return;
    if (b) {
        describe_body(b, &info);
        body_copy_name(b, name);
    }
    visit->each(&info, visit->arg);
}

void weir_visit_tasks(struct weir_runtime *runtime,
                      void (*each)(const struct weir_task_info *info, void *arg), void *arg)
{
    struct visit visit = {runtime, each, arg};

    task_visit(visit_one, &visit);
}

static void write_line(const struct weir_task_info *info, void *arg)
{
    static const char *const states[] = {"unstarted", "ready", "parked"};
    char line[160];
    sigset_t before;
    const char *name = info->name[0] ? info->name : "-", *state = states[info->state];
    int n;

    if (info->state == WEIR_TASK_PARKED)
        n = snprintf(line, sizeof line, "%-31s  %-9s  %-10s  %.6f s\n", name, state,
                     info->waits_for, (double)info->parked_ns / (double)WEIR_S);
    else
        n = snprintf(line, sizeof line, "%-31s  %s\n", name, state);
    io_hold_sigpipe(&before);
    ssize_t written = write(*(int *)arg, line, (size_t)n);
    /* Whoever gave the descriptor will notice. */
    io_let_go_of_sigpipe(&before, written < 0 && errno == EPIPE);
}

void weir_dump_tasks(struct weir_runtime *runtime, int fd)
{
    weir_visit_tasks(runtime, write_line, &fd);
}
