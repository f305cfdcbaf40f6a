/* SPDX-License-Identifier: MIT */
/* A cancel at every moment of a scenario.
 *
 * Three tasks use every primitive there is, scopes, gather, map and joins.  Before each
 * of their steps a counter is advanced, and at the k-th one of them is cancelled, for
 * every k until the scenario ends before.  However early or late that comes, everything
 * ends, everything is given back, and nobody is left in any queue. */
#include <weir/map.h>
#include <weir/scope.h>

#include <stdio.h>
#include <stdlib.h>

#include "task/tasks.h"

enum { ACTORS = 3 };

static struct stage {
    struct weir_sem sem;
    struct weir_mutex mutex;
    struct weir_cond changed;
    int coins, closing; /* under mutex */
    struct weir_barrier barrier;
    struct weir_latch latch;
    struct weir_event event;
    struct weir_revent revent;
    struct weir_countdown busy;

    struct weir_event curtain; /* up when all are there */
    struct weir_task actors[ACTORS];
    int victim, strike_at;
    int steps;  /* so far */
    int struck; /* the cancel was sent */
    int inside; /* hold the mutex now */
} stage;

/* ---- the strike ------------------------------------------------------------------------------ */

static void step(void)
{
    if (__atomic_add_fetch(&stage.steps, 1, __ATOMIC_RELAXED) != stage.strike_at)
        return;
    stage.struck = 1;
    int r = weir_task_cancel(stage.actors[stage.victim]);
    CHECK(r == 0 || r == WEIR_EINVAL); /* it may have ended, and been joined */
}

/* ---- steps ------------------------------------------------------------------------------------- */

static int use_sem(void)
{
    step();
    int r = weir_sem_acquire(&stage.sem, 1, WEIR_FOREVER);
    if (r < 0)
        return r;
    step();
    r = weir_task_yield();
    CHECK_EQ(weir_sem_release(&stage.sem, 1), 0);
    return r;
}

static int use_heavily(void)
{
    step();
    int r = weir_sem_acquire(&stage.sem, 2, WEIR_FOREVER);
    if (r < 0)
        return r;
    CHECK_EQ(weir_sem_release(&stage.sem, 2), 0);
    step();
    return weir_sem_wait_idle(&stage.sem, WEIR_FOREVER);
}

static int lock(void)
{
    step();
    int r = weir_mutex_lock(&stage.mutex, WEIR_FOREVER);
    if (r == 0)
        CHECK_EQ(stage.inside++, 0);
    return r;
}

static void unlock(void)
{
    CHECK_EQ(--stage.inside, 0);
    weir_mutex_unlock(&stage.mutex);
}

static int wait_for_change(void)
{
    step();
    stage.inside--;
    int r = weir_cond_wait(&stage.changed, &stage.mutex, WEIR_FOREVER);
    CHECK_EQ(stage.inside++, 0); /* ours, whatever it returned */
    return r;
}

static int give_coin(void)
{
    int r = lock();

    if (r < 0)
        return r;
    stage.coins++;
    weir_cond_signal(&stage.changed, 1);
    unlock();
    return 0;
}

static int take_coin(void)
{
    int r = lock();

    if (r < 0)
        return r;
    while (r == 0 && stage.coins == 0 && !stage.closing)
        r = wait_for_change();
    if (r == 0 && stage.coins > 0)
        stage.coins--;
    unlock();
    return r;
}

static int meet(void)
{
    step();
    return weir_barrier_wait(&stage.barrier, WEIR_FOREVER, NULL);
}

static int pass_latch(void)
{
    step();
    return weir_latch_wait(&stage.latch, WEIR_FOREVER);
}

static int be_busy(void)
{
    CHECK_EQ(weir_countdown_up(&stage.busy, 1), 0);
    step();
    int r = weir_task_yield();
    CHECK_EQ(weir_countdown_down(&stage.busy, 1), 0);
    if (r < 0)
        return r;
    step();
    return weir_countdown_wait(&stage.busy, WEIR_FOREVER);
}

static int child_uses_sem(void *arg)
{
    (void)arg;
    return use_sem();
}

static int use_scope(void)
{
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_scope_spawn(&scope, child_uses_sem, NULL), 0);
    step();
    return weir_scope_close(&scope);
}

static int use_gather(void)
{
    step();
    return weir_gather(3, child_uses_sem, NULL, NULL, WEIR_FOREVER);
}

static int item_uses_sem(void *ctx, size_t i)
{
    (void)ctx;
    (void)i;
    return use_sem();
}

static int use_map(void)
{
    step();
    return weir_map_limit(4, 2, item_uses_sem, NULL, WEIR_FOREVER);
}

/* A child is joined come what may; cancelled first if we are. */
static int use_join(void)
{
    struct weir_task child = start(child_uses_sem, NULL);
    struct weir_shield shield;
    int result;

    step();
    int r = weir_task_join(child, WEIR_FOREVER, &result);
    if (r == 0)
        return result;
    CHECK_EQ(r, WEIR_ECANCELED);
    CHECK_EQ(weir_task_cancel(child), 0);
    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(finish(child) <= 0, 1);
    weir_shield_end(&shield);
    return r;
}

static int sleep_a_little(void)
{
    step();
    return weir_task_sleep(weir_within(10 * WEIR_US));
}

static int tell(void)
{
    weir_event_set(&stage.event);
    weir_revent_set(&stage.revent);
    return 0;
}

static int be_told(void)
{
    step();
    int r = weir_event_wait(&stage.event, WEIR_FOREVER);
    if (r < 0)
        return r;
    step();
    return weir_revent_wait(&stage.revent, WEIR_FOREVER);
}

/* ---- actors ------------------------------------------------------------------------------------- */

/* Each gives as many coins as it takes, and the first tells the others. */
static int (*const part[])(void) = {
    use_sem,   give_coin,  take_coin, meet,    use_heavily,    use_scope, pass_latch,
    use_join,  use_gather, be_busy,   use_map, meet,           tell,      be_told,
    give_coin, take_coin,  use_sem,   meet,    sleep_a_little,
};

enum { PARTS = sizeof part / sizeof *part };

/* Who leaves early says so to all who could wait for it. */
static void leave_early(void)
{
    struct weir_shield shield;

    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_mutex_lock(&stage.mutex, WEIR_FOREVER), 0);
    stage.closing = 1;
    weir_cond_broadcast(&stage.changed);
    weir_mutex_unlock(&stage.mutex);
    weir_shield_end(&shield);
    weir_barrier_abort(&stage.barrier);
    weir_latch_abort(&stage.latch);
    tell();
}

static int act(void *arg)
{
    (void)arg;
    CHECK_EQ(weir_event_wait(&stage.curtain, WEIR_FOREVER), 0);
    for (int i = 0; i < PARTS; i++) {
        int r = part[i]();

        if (r < 0) {
            leave_early();
            return r;
        }
    }
    return 0;
}

static void check_nothing_is_left(void)
{
    CHECK_EQ(weir_sem_available(&stage.sem), 2);
    CHECK_EQ(queued(&stage.sem), 0);
    CHECK_EQ(queued(&stage.mutex), 0);
    CHECK_EQ(weir_mutex_try_lock(&stage.mutex), 0);
    CHECK_EQ(queued(&stage.changed), 0);
    CHECK_EQ(queued(&stage.barrier), 0);
    CHECK_EQ(queued(&stage.latch), 0);
    CHECK_EQ(queued(&stage.event), 0);
    CHECK_EQ(queued(&stage.revent), 0);
    CHECK_EQ(queued(&stage.busy), 0);
    CHECK_EQ(weir_countdown_value(&stage.busy), 0);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

static void check_result(int i, int r)
{
    if (!stage.struck)
        CHECK_EQ(r, 0);
    else if (i == stage.victim)
        CHECK(r == 0 || r == WEIR_ECANCELED || r == WEIR_EBROKEN);
    else
        CHECK(r == 0 || r == WEIR_EBROKEN);
}

static int play(void *arg)
{
    int results[ACTORS], failed = 0;

    (void)arg;
    for (int i = 0; i < ACTORS; i++)
        stage.actors[i] = start(act, NULL);
    weir_event_set(&stage.curtain);
    for (int i = 0; i < ACTORS; i++)
        results[i] = finish(stage.actors[i]);
    for (int i = 0; i < ACTORS; i++) {
        check_result(i, results[i]);
        failed += results[i] < 0;
    }
    check_nothing_is_left();
    return failed;
}

/* One performance; how many of the actors left early. */
static int perform(const struct weir_run_options *options, int victim, int strike_at)
{
    stage = (struct stage){.sem = WEIR_SEM_INIT(2),
                           .barrier = WEIR_BARRIER_INIT(ACTORS),
                           .latch = WEIR_LATCH_INIT(ACTORS),
                           .victim = victim,
                           .strike_at = strike_at};
    return weir_run(options, play, NULL);
}

/* Strike at every step; how many there were, and how often it made a difference. */
static int sweep(const struct weir_run_options *options, int victim, int *ret_hits)
{
    int k = 0, failed;

    *ret_hits = 0;
    do {
        failed = perform(options, victim, ++k);
        *ret_hits += failed > 0;
    } while (stage.struck);
    CHECK_EQ(failed, 0);
    return k;
}

TEST(without_a_strike_all_play_their_parts)
{
    CHECK_EQ(perform(NULL, 0, INT32_MAX), 0);
    CHECK_EQ(stage.coins, 0);
    CHECK(stage.steps > 100);
}

TEST_WITHIN(struck_at_any_step_nothing_is_lost, 30)
{
    for (int victim = 0; victim < ACTORS; victim++) {
        int hits, steps = sweep(NULL, victim, &hits);

        CHECK(steps > 100);
        CHECK(hits > steps / 2); /* it was cancelled in the middle of things */
    }
}

TEST_WITHIN(struck_at_any_step_in_other_orders_nothing_is_lost, 60)
{
    for (int seed = 0; seed < test_scaled(3); seed++) {
        char text[16];
        int hits;

        snprintf(text, sizeof text, "%u", 1 + test_random(1 << 30));
        CHECK_EQ(setenv("WEIR_SCHED_SEED", text, 1), 0);
        CHECK(sweep(NULL, (int)test_random(ACTORS), &hits) > 100);
    }
}

TEST_WITHIN(struck_at_any_step_on_two_workers_nothing_is_lost, 60)
{
    struct weir_run_options two = {.workers = 2};
    int hits;

    CHECK(sweep(&two, (int)test_random(ACTORS), &hits) > 100);
}

/* ---- deadlines ------------------------------------------------------------------------------------ */

/* The same by time: the whole scenario in a scope whose deadline comes ever later, under
 * the virtual clock, in which every step takes a microsecond. */
static int act_in_time(void *arg)
{
    (void)arg;
    for (int i = 0; i < PARTS; i++) {
        int r = weir_task_sleep(weir_within(WEIR_US));

        if (r == 0)
            r = part[i]();
        if (r < 0) {
            leave_early();
            return r == WEIR_EBROKEN ? 0 : r; /* somebody else's fault */
        }
    }
    return 0;
}

static int play_in_time(void *arg)
{
    struct weir_scope scope;

    weir_scope_open(&scope, weir_within(*(int64_t *)arg));
    for (int i = 0; i < ACTORS; i++)
        CHECK_EQ(weir_scope_spawn(&scope, act_in_time, NULL), 0);
    int r = weir_scope_close(&scope);
    check_nothing_is_left();
    return r;
}

TEST_WITHIN(a_deadline_at_any_moment_loses_nothing, 30)
{
    int timed_out = 0, r;
    int64_t patience_ns = 0;

    weir_testing_clock_start();
    do {
        stage = (struct stage){.sem = WEIR_SEM_INIT(2),
                               .barrier = WEIR_BARRIER_INIT(ACTORS),
                               .latch = WEIR_LATCH_INIT(ACTORS),
                               .strike_at = INT32_MAX};
        patience_ns += WEIR_US / 2;
        r = weir_run(NULL, play_in_time, &patience_ns);
        CHECK(r == 0 || r == WEIR_ETIMEDOUT);
        timed_out += r < 0;
    } while (r < 0);
    weir_testing_clock_stop();
    CHECK(timed_out > 30);
}
