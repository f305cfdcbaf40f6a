/* SPDX-License-Identifier: MIT */
/* What a flow does: steps, pauses, sleeps; and what may be asked about it.  See engine.h. */
#include "execution.h"

/* More than any loop of the core spins that does not spin for ever. */
enum { PAUSES_MAX = 2000 };

/* ---- who and where ----------------------------------------------------------------- */

int sched_running(void)
{
    return run.running;
}

int model_self(void)
{
    return run.running;
}

const struct scenario *flow_scenario(void)
{
    return run.scenario;
}

const char *sched_fault(void)
{
    return run.fault;
}

const uint8_t *sched_picks(int *ret_count)
{
    *ret_count = run.picked;
    return run.picks;
}

uint64_t *flow_history(int flow)
{
    return flow == TIME ? &run.time_history : &run.flow[flow].history;
}

uint32_t *flow_clock(int flow)
{
    return run.flow[flow].clock;
}

uint64_t sched_ending(void)
{
    uint64_t state = run.time_history;

    for (const struct flow *f = run.flow; f < run.flow + run.flows; f++)
        state = mix(mix(state, f->history), f->state);
    return state;
}

uint64_t sched_state(void)
{
    return mix(sched_ending(), (uint64_t)(run.turn * 64 + run.signals));
}

/* ---- time --------------------------------------------------------------------------------- */

int64_t flow_now_ns(void)
{
    history_read(run.running, &run.now_ns);
    return run.now_ns;
}

void flow_asks_about(int64_t at_ns)
{
    run.flow[run.running].asked_ns = at_ns;
}

/* ---- steps ---------------------------------------------------------------------------------------- */

void step_begin(enum step_kind kind, const volatile void *at, uintptr_t pc)
{
    if (run.running < 0)
        model_fail("setup and check may not wait");
    give_turn();
    log_event(run.running, kind, at, pc);
    run.flow[run.running].pauses = 0;
    run.flow[run.running].last_at = at;
}

void step_result(enum step_kind kind, uint64_t before, uint64_t after)
{
    struct event *e = &run.events[run.steps - 1];
    struct flow *f = &run.flow[run.running];

    e->kind = (uint8_t)kind;
    e->before = before;
    e->after = after;
    f->last_seen = history_of(f->last_at);
}

void step_note(enum step_kind kind, const volatile void *at, uintptr_t pc)
{
    log_event(run.running, kind, at, pc);
}

void flow_wrote(void)
{
    stop_spinning(run.running);
}

bool flow_stutters(const volatile void *at)
{
    const struct flow *f = &run.flow[run.running];

    return f->pauses > 0 && f->last_at == at && f->last_seen == history_of(at);
}

void flow_pause(void)
{
    struct flow *f = &run.flow[run.running];

    if (!run.scenario->patient && f->pauses < PAUSES_MAX) {
        f->pauses++;
        return;
    }
    f->state = SPINNING;
    f->history = mix(f->history, PAUSE);
    give_turn();
    log_event(run.running, PAUSE, NULL, 0);
}

bool flow_sleep(const void *futex, int64_t at_ns)
{
    struct flow *f = &run.flow[run.running];

    f->state = ASLEEP;
    f->woken = false;
    f->futex = futex;
    f->until_ns = f->asked_ns = at_ns;
    f->since = run.sleeps++;
    give_turn();
    f->state = READY;
    return f->woken;
}

int flow_wake(const void *futex, int count)
{
    int woken = 0;

    for (; woken < count; woken++) {
        struct flow *oldest = NULL;

        for (struct flow *f = run.flow; f < run.flow + run.flows; f++) {
            bool sleeps = f->state == ASLEEP && !f->woken && f->futex == futex;

            if (sleeps && (oldest == NULL || f->since < oldest->since))
                oldest = f;
        }
        if (oldest == NULL)
            break;
        oldest->woken = true;
        oldest->history = mix(oldest->history, run.flow[run.running].history);
    }
    return woken;
}

void flow_poll(const uint64_t *count)
{
    struct flow *f = &run.flow[run.running];

    f->state = POLLING;
    f->poll = count;
    give_turn();
    f->state = READY;
}
