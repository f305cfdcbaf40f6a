/* SPDX-License-Identifier: MIT */
/* What a worker does with nothing to run. */
#include "base/clock.h"
#include "base/cpu.h"
#include "task/sched.h"

bool worker_has_mail(const struct worker *w)
{
    return atomic_get(&w->inbox) || atomic_get(&w->pokes) || atomic_get(&w->runtime->stop);
}

/* Look for work, for about as long as it would take to be woken.  True if there is
 * some. */
static bool search(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;
    uint32_t nobody = 0;
    bool found = false;

    if (cpu_count() == 1 || !atomic_cas(&rt->searching, &nobody, 1))
        return false;
    int64_t until_ns = worker_now(w) + SEARCH_NS;
    while (!found && w->now_ns < until_ns && w->now_ns < timer_next_ns(&w->timers)) {
        for (int i = 0; i < 64 && !worker_has_mail(w); i++)
            cpu_pause();
        if (w->poller.waiting)
            poller_wait(&w->poller, 0);
        found = worker_has_mail(w) || w->ready.first || worker_take_over(w);
        worker_now(w);
    }
    atomic_swap(&rt->searching, 0);
    return found;
}

static void sleep_until_woken(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;
    /* A virtual time says nothing about how long to sleep; it does not pass by itself. */
    int64_t until_ns = atomic_peek(&clock_virtual_ns) ? INT64_MAX : timer_next_ns(&w->timers);

    atomic_add(&rt->sleeping, 1);
    atomic_swap(&w->asleep, 1);
    runtime_stop_if_done(rt); /* closing may have begun since, without waking us */
    if (!worker_has_mail(w)) {
        atomic_poke(&w->sleeps, w->sleeps + 1);
        poller_wait(&w->poller, until_ns);
    }
    atomic_swap(&w->asleep, 0);
    atomic_add(&rt->sleeping, (uint32_t)-1);
}

/* Under the virtual clock nothing is waited for that is known to come: time jumps there.
 * Descriptors come first, and so does what runs on other threads. */
static bool time_jumps(struct worker *w)
{
    int64_t next_ns = timer_next_ns(&w->timers);

    if (!atomic_peek(&clock_virtual_ns) || next_ns == INT64_MAX || worker_has_mail(w) ||
        atomic_get(&w->runtime->offloading))
        return false;
    if (w->poller.waiting)
        poller_wait(&w->poller, 0);
    if (w->ready.first)
        return true;
    if (next_ns > clock_now_ns())
        atomic_poke(&clock_virtual_ns, next_ns);
    return true;
}

void worker_idle(struct worker *w)
{
    runtime_stop_if_done(w->runtime);
    if (!time_jumps(w) && !search(w))
        sleep_until_woken(w);
    worker_run_timers(w);
}
