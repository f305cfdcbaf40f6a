/* SPDX-License-Identifier: MIT */
/* What a worker does with nothing to run. */
#include "base/clock.h"
#include "base/cpu.h"
#include "task/sched.h"

bool worker_has_mail(const struct worker *w)
{
    return atomic_get(&w->inbox) || atomic_get(&w->pokes) || atomic_get(&w->fresh_count) ||
           atomic_get(&w->runtime->stop);
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
    /* By the real clock: a virtual one stands still meanwhile. */
    bool is_virtual = atomic_peek(&clock_virtual_ns);
    int64_t until_ns = clock_real_ns() + SEARCH_NS, next_ns = timer_next_ns(&w->timers);
    if (!is_virtual && next_ns < until_ns)
        until_ns = next_ns;
    while (!found && clock_real_ns() < until_ns) {
        for (int i = 0; i < 64 && !worker_has_mail(w); i++)
            cpu_pause();
        if (w->poller.waiting)
            poller_wait(&w->poller, 0);
        found = worker_has_mail(w) || w->ready.first || worker_take_over(w);
    }
    atomic_swap(&rt->searching, 0);
    return found;
}

static bool others_have_more(const struct worker *w)
{
    const struct weir_runtime *rt = w->runtime;

    for (uint32_t i = 0; i < rt->worker_count; i++) {
        if (&rt->workers[i] != w && atomic_get(&rt->workers[i].fresh_count))
            return true;
    }
    return false;
}

/* Until when to sleep.  A virtual time says nothing about that; it does not pass by itself.
 * While others have unstarted tasks, not for long: one of them may have begun to compute
 * just when we gave up looking. */
static int64_t sleep_limit_ns(struct worker *w)
{
    if (atomic_peek(&clock_virtual_ns))
        return INT64_MAX;

    int64_t next_ns = timer_next_ns(&w->timers);
    int64_t soon_ns = others_have_more(w) ? worker_now(w) + WEIR_MS : INT64_MAX;
    return next_ns < soon_ns ? next_ns : soon_ns;
}

static void sleep_until_woken(struct worker *w)
{
    struct weir_runtime *rt = w->runtime;

    atomic_add(&rt->sleeping, 1);
    atomic_swap(&w->asleep, 1);
    runtime_stop_if_done(rt); /* closing may have begun since, without waking us */
    if (!worker_has_mail(w)) {
        atomic_poke(&w->sleeps, w->sleeps + 1);
        poller_wait(&w->poller, sleep_limit_ns(w));
    }
    atomic_swap(&w->asleep, 0);
    atomic_add(&rt->sleeping, (uint32_t)-1);
}

/* Under the virtual clock nothing is waited for that is known to come: time jumps there.
 * Descriptors come first, and so does what runs on other threads. */
bool worker_time_jumps(struct worker *w)
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
    if (!worker_time_jumps(w) && !search(w))
        sleep_until_woken(w);
    worker_run_timers(w);
}
