/* SPDX-License-Identifier: MIT */
/* A worker without a thread.  To its host it is one descriptor: the worker's epoll set,
 * with a timerfd in it for the next timer, set before each return to the host. */
#include <weir/loop.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "task/sched.h"

enum { TURNS_A_STEP = 1000 };

struct weir_loop {
    struct weir_runtime *runtime;
    bool stepped; /* ever: its thread is a host's then */
};

static __thread unsigned loops_here; /* that this thread has stepped and not closed */

/* ---- the host's parker ------------------------------------------------------- */

static int host_refusal(parker *self, struct weir_deadline deadline)
{
    (void)self;
    return clock_has_passed(deadline.at_ns) ? WEIR_ETIMEDOUT : WEIR_ECONTEXT;
}

static void host_give_way(parker *self)
{
    (void)self;
}

/* Never parks, so is never woken. */
static const struct parker_ops host_ops = {.refusal = host_refusal, .give_way = host_give_way};

static parker parker_host = {&host_ops};

/* A task, which may be the loop's own, or a callback, whose caller has a parker to go back to. */
static bool is_task_or_callback(void)
{
    return worker_current || (parker_current && parker_current != &parker_host);
}

/* ---- public ----------------------------------------------------------------- */

int weir_loop_open(const struct weir_run_options *options, struct weir_loop **ret_loop)
{
    if (options && options->workers > 1)
        return WEIR_EINVAL;
    struct weir_loop *loop = mem_alloc(sizeof *loop);
    if (loop == NULL)
        return WEIR_ENOMEM;
    int r = runtime_new(options, &loop->runtime);
    if (r == 0) {
        r = poller_add_timer(&loop->runtime->workers[0].poller);
        if (r < 0)
            runtime_free(loop->runtime);
    }
    if (r < 0) {
        mem_free(loop);
        return r;
    }
    struct worker *w = &loop->runtime->workers[0];
    w->outside = &parker_host;
    atomic_swap(&w->asleep, 1); /* until it is stepped */
    *ret_loop = loop;
    return 0;
}

int weir_loop_fd(const struct weir_loop *loop)
{
    return loop->runtime->workers[0].poller.epoll_fd;
}

int weir_loop_step(struct weir_loop *loop)
{
    struct worker *w = &loop->runtime->workers[0];

    if (is_task_or_callback())
        return WEIR_ECONTEXT;
    loops_here += !loop->stepped;
    loop->stepped = true;
    return worker_step(w, TURNS_A_STEP);
}

struct weir_runtime *weir_loop_runtime(struct weir_loop *loop)
{
    return loop->runtime;
}

int weir_loop_close(struct weir_loop *loop)
{
    if (loop == NULL)
        return 0;
    if (is_task_or_callback())
        return WEIR_ECONTEXT;
    struct weir_runtime *rt = loop->runtime;
    runtime_cancel_all(rt);
    runtime_begin_close(rt);
    worker_run(&rt->workers[0]);
    runtime_free(rt);
    loops_here -= loop->stepped;
    if (loops_here == 0 && parker_current == &parker_host)
        parker_current = NULL;
    mem_free(loop);
    return 0;
}
