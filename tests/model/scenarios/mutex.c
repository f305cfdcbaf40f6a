/* SPDX-License-Identifier: MIT */
/* Mutexes and conditions. */
#include "scenarios/world.h"

static void all_free(void)
{
    weir_mutex_init(&the.mutex);
    weir_cond_init(&the.cond);
}

static void is_locked(void)
{
    all_free();
    MODEL_CHECK_EQ(weir_mutex_try_lock(&the.mutex), 0);
}

static void locks(void)
{
    MODEL_CHECK_EQ(weir_mutex_lock(&the.mutex, WEIR_FOREVER), 0);
}

static void unlocks(void)
{
    weir_mutex_unlock(&the.mutex);
}

/* ---- mutex ---------------------------------------------------------------------------------------- */

static void increments(void)
{
    locks();
    the.value++; /* plain: it is the mutex that orders it */
    unlocks();
}

static void increments_soon(void)
{
    the.result[model_self()] = weir_mutex_lock(&the.mutex, SOON);
    if (the.result[model_self()] == 0) {
        the.value++;
        unlocks();
    }
}

static void tries(void)
{
    the.result[model_self()] = weir_mutex_try_lock(&the.mutex);
    if (the.result[model_self()] == 0) {
        the.value++;
        unlocks();
    }
}

static void all_is_free(void)
{
    MODEL_CHECK_EQ(the.mutex.queue_.word, 0);
    MODEL_CHECK_EQ(the.mutex.queue_.length, 0);
    MODEL_CHECK_EQ(the.cond.queue_.word, 0);
    MODEL_CHECK_EQ(the.cond.queue_.length, 0);
}

static void counted(void)
{
    int missed = 0;

    for (int i = 0; i < FLOWS_MAX; i++)
        missed += the.result[i] < 0;
    MODEL_CHECK_EQ(the.value + missed, 2);
    all_is_free();
}

static void counted_three(void)
{
    MODEL_CHECK_EQ(the.value, 3);
    all_is_free();
}

static void counted_one(void)
{
    MODEL_CHECK_EQ(the.value, 1);
    all_is_free();
}

static void timed_out_or_counted(void)
{
    MODEL_CHECK(the.result[0] == 0 || the.result[0] == WEIR_ETIMEDOUT);
    MODEL_CHECK_EQ(the.value, the.result[0] == 0);
    all_is_free();
}

static void a_note_wants_it(void)
{
    is_locked();
    MODEL_CHECK_EQ(weir_mutex_lock_async(&the.mutex, &the.note[0].op, take_note), 0);
}

static void cancels(void)
{
    cancel_note(0);
}

static void cancelled_or_owner(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    MODEL_CHECK_EQ(the.mutex.queue_.word, the.cancelled[0] == 1 ? 0 : 8);
}

static void locks_and_frees_it(void)
{
    locks();
    model_gone(&the.mutex, sizeof the.mutex);
}

/* ---- condition ------------------------------------------------------------------------------------ */

static int wait_for_value(struct weir_deadline deadline)
{
    int r = 0;

    locks();
    while (r == 0 && the.value == 0)
        r = weir_cond_wait(&the.cond, &the.mutex, deadline);
    return the.result[model_self()] = r;
}

static void waits_for_value(void)
{
    wait_for_value(WEIR_FOREVER);
    MODEL_CHECK_EQ(the.value, 1); /* the mutex is ours */
    unlocks();
}

static void waits_soon_for_value(void)
{
    int r = wait_for_value(SOON);

    MODEL_CHECK(r == WEIR_ETIMEDOUT || the.value == 1);
    unlocks();
}

static void gives_value_and_signals(void)
{
    locks();
    the.value = 1;
    weir_cond_signal(&the.cond, 1);
    unlocks();
}

static void gives_value_and_signals_outside(void)
{
    locks();
    the.value = 1;
    unlocks();
    weir_cond_signal(&the.cond, 1);
}

static void gives_value_and_tells_all(void)
{
    locks();
    the.value = 1;
    weir_cond_broadcast(&the.cond);
    unlocks();
}

/* One signal for two who wait.  A may give up, and then it was B who was signalled; if it was
 * A, it passes the signal on. */
static void waits_soon_and_passes_it_on(void)
{
    if (wait_for_value(SOON) == 0)
        weir_cond_signal(&the.cond, 1);
    unlocks();
}

static void waits_and_frees_the_condition(void)
{
    wait_for_value(WEIR_FOREVER);
    model_gone(&the.cond, sizeof the.cond);
    unlocks();
}

/* So that A, signalled, may have to wait for the mutex while its deadline passes. */
static void locks_for_a_moment(void)
{
    locks();
    unlocks();
}

static void the_mutex_is_free(void)
{
    MODEL_CHECK_EQ(the.mutex.queue_.word, 0);
}

const struct scenario mutex_scenarios[] = {
    {"two who lock are never inside together", all_free, {increments, increments}, counted},
    {"three who lock are never inside together",
     all_free,
     {increments, increments, increments},
     counted_three},
    {"an unlock hands over to whoever waits", is_locked, {increments, unlocks}, counted_one},
    {"an unlock hands over to whoever spins",
     is_locked,
     {increments, unlocks},
     counted_one,
     .cpus = 4},
    {"a try_lock against an unlock and a lock", is_locked, {increments, unlocks, tries}, counted},
    {"a deadline against an unlock", is_locked, {increments_soon, unlocks}, timed_out_or_counted},
    {"a cancel against an unlock", a_note_wants_it, {cancels, unlocks}, cancelled_or_owner},
    {"a mutex is freed right after it was handed over",
     is_locked,
     {locks_and_frees_it, unlocks},
     NULL},
    {"a signal wakes whoever waits",
     all_free,
     {waits_for_value, gives_value_and_signals},
     all_is_free},
    {"a signal outside the mutex wakes whoever waits",
     all_free,
     {waits_for_value, gives_value_and_signals_outside},
     all_is_free},
    {"a signal against a deadline",
     all_free,
     {waits_soon_for_value, gives_value_and_signals_outside},
     all_is_free,
     .preemptions = 4},
    {"a signal against a deadline and somebody who holds the mutex",
     all_free,
     {waits_soon_for_value, gives_value_and_signals_outside, locks_for_a_moment},
     all_is_free},
    {"a signal is not lost to a deadline",
     all_free,
     {waits_soon_and_passes_it_on, waits_for_value, gives_value_and_signals},
     all_is_free},
    {"a broadcast wakes two",
     all_free,
     {waits_for_value, waits_for_value, gives_value_and_tells_all},
     all_is_free},
    {"a broadcast against a deadline",
     all_free,
     {waits_soon_for_value, waits_for_value, gives_value_and_tells_all},
     all_is_free},
    {"a condition is freed right after its wait",
     all_free,
     {waits_and_frees_the_condition, gives_value_and_signals},
     the_mutex_is_free},
    {0},
};
