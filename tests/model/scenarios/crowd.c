/* SPDX-License-Identifier: MIT */
/* What wakes all at once: events and countdowns. */
#include "scenarios/world.h"

static void nothing_set(void)
{
    weir_event_init(&the.event);
    weir_revent_init(&the.revent);
}

/* ---- events -------------------------------------------------------------------------------------- */

static void waits(void)
{
    MODEL_CHECK_EQ(weir_event_wait(&the.event, WEIR_FOREVER), 0);
    MODEL_CHECK_EQ(the.value, 7); /* what was written before the set is seen */
}

static void waits_soon(void)
{
    the.result[model_self()] = weir_event_wait(&the.event, SOON);
    if (the.result[model_self()] == 0)
        MODEL_CHECK_EQ(the.value, 7);
}

static void sets(void)
{
    the.value = 7;
    weir_event_set(&the.event);
}

static void sets_again(void)
{
    weir_event_set(&the.event);
}

static void waits_for_either(void)
{
    MODEL_CHECK_EQ(weir_event_wait(&the.event, WEIR_FOREVER), 0);
}

static void it_is_set(void)
{
    MODEL_CHECK_EQ(the.event.queue_.word, 8);
    MODEL_CHECK_EQ(the.event.queue_.length, 0);
}

static void waits_and_frees_it(void)
{
    waits();
    model_gone(&the.event, sizeof the.event);
}

static void two_notes_wait(void)
{
    nothing_set();
    for (int i = 0; i < 2; i++)
        MODEL_CHECK_EQ(weir_event_wait_async(&the.event, &the.note[i].op, take_note), 0);
}

static void cancels_first(void)
{
    cancel_note(0);
}

static void cancels_second(void)
{
    cancel_note(1);
}

/* A may have cancelled the first, C the second. */
static void each_cancelled_or_called(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    MODEL_CHECK(the.cancelled[2] == 1 ? was_not_called(1) : was_called(1, 0));
    it_is_set();
}

static void called_in_order(void)
{
    MODEL_CHECK(was_called(0, 0) && was_called(1, 0));
    MODEL_CHECK(the.note[0].turn < the.note[1].turn);
    it_is_set();
}

/* The record of a wait that is over still names its queue, which may be gone. */
static void sets_and_frees_it(void)
{
    weir_event_set(&the.event);
    model_gone(&the.event, sizeof the.event);
    __atomic_store_n(&the.flag, 1, __ATOMIC_RELEASE);
}

static void cancels_what_is_over(void)
{
    if (__atomic_load_n(&the.flag, __ATOMIC_ACQUIRE)) {
        cancel_note(0);
        MODEL_CHECK_EQ(the.cancelled[model_self()], 0);
    }
}

/* ---- the reusable event ---------------------------------------------------------------------------- */

static void rsets(void)
{
    weir_revent_set(&the.revent);
}

static void rsets_and_clears(void)
{
    weir_revent_set(&the.revent);
    weir_revent_clear(&the.revent);
}

static void rclears(void)
{
    weir_revent_clear(&the.revent);
}

/* Whoever waited before the set is woken by it, even if it is cleared at once. */
static void rwaits_soon(void)
{
    the.result[model_self()] = weir_revent_wait(&the.revent, SOON);
    MODEL_CHECK(the.result[model_self()] == 0 || the.result[model_self()] == WEIR_ETIMEDOUT);
}

static void a_note_waits_for_it(void)
{
    nothing_set();
    MODEL_CHECK_EQ(weir_revent_wait_async(&the.revent, &the.note[0].op, take_note), 0);
}

/* Joins after the set, perhaps, and then takes the older one back: their queue is the same. */
static void comes_late_and_cancels_the_other(void)
{
    int r = weir_revent_wait_async(&the.revent, &the.note[1].op, take_note);

    the.result[model_self()] = r; /* 1: it was set just then */
    cancel_note(0);
}

static void is_clear_again(void)
{
    MODEL_CHECK_EQ(the.revent.queue_.word, 0);
    MODEL_CHECK_EQ(the.revent.queue_.length, 0);
}

static void late_one_waits_unless_called(void)
{
    MODEL_CHECK(the.cancelled[1] == 1 ? was_not_called(0) : was_called(0, 0));
    if (the.result[1] == 0 && the.note[1].calls == 0) {
        MODEL_CHECK_EQ(the.revent.queue_.length, 1);
        weir_revent_set(&the.revent);
        weir_revent_clear(&the.revent);
    }
    MODEL_CHECK(the.result[1] == 1 ? was_not_called(1) : was_called(1, 0));
    is_clear_again();
}

static void is_set_or_clear(void)
{
    MODEL_CHECK(the.revent.queue_.word == 0 || the.revent.queue_.word == 8);
    MODEL_CHECK_EQ(the.revent.queue_.length, 0);
}

static void sets_before_anybody_clears(void)
{
    nothing_set();
    weir_revent_set(&the.revent);
}

/* ---- countdown ---------------------------------------------------------------------------------------- */

static void two_to_go(void)
{
    weir_countdown_init(&the.countdown, 2);
}

static void one_to_go(void)
{
    weir_countdown_init(&the.countdown, 1);
}

static void counts_down(void)
{
    MODEL_CHECK_EQ(weir_countdown_down(&the.countdown, 1), 0);
}

static void counts_up_and_down(void)
{
    MODEL_CHECK_EQ(weir_countdown_up(&the.countdown, 1), 0);
    counts_down();
}

static void waits_for_zero(void)
{
    MODEL_CHECK_EQ(weir_countdown_wait(&the.countdown, WEIR_FOREVER), 0);
}

static void waits_soon_for_zero(void)
{
    the.result[model_self()] = weir_countdown_wait(&the.countdown, SOON);
}

static void waits_for_zero_and_frees_it(void)
{
    waits_for_zero();
    model_gone(&the.countdown, sizeof the.countdown);
}

static void clears(void)
{
    weir_countdown_clear(&the.countdown);
}

static void is_zero(void)
{
    MODEL_CHECK_EQ(the.countdown.queue_.word, 0);
    MODEL_CHECK_EQ(the.countdown.queue_.length, 0);
}

static void a_note_waits_for_zero(void)
{
    one_to_go();
    MODEL_CHECK_EQ(weir_countdown_wait_async(&the.countdown, &the.note[0].op, take_note), 0);
}

static void cancelled_or_zero(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    is_zero();
}

const struct scenario crowd_scenarios[] = {
    {"a set wakes everyone who waits", nothing_set, {waits, waits, sets}, it_is_set},
    {"a set wakes whoever spins", nothing_set, {waits, sets}, it_is_set, .cpus = 4},
    {"a signal does not end a wait for an event",
     nothing_set,
     {waits, sets},
     it_is_set,
     .signals = 1},
    {"two sets and a wait", nothing_set, {waits_for_either, sets_again, sets_again}, it_is_set},
    {"a set against two deadlines", nothing_set, {waits_soon, waits_soon, sets}, it_is_set},
    {"a set calls back in order", two_notes_wait, {sets, waits}, called_in_order},
    {"a set against the cancels of two callbacks",
     two_notes_wait,
     {cancels_first, sets, cancels_second},
     each_cancelled_or_called},
    {"an event is freed right after its wait", nothing_set, {waits_and_frees_it, sets}, NULL},
    {"a wait that is over can be cancelled though its event is gone",
     two_notes_wait,
     {sets_and_frees_it, cancels_what_is_over},
     NULL},
    {"set and clear against a wait and its deadline",
     nothing_set,
     {rwaits_soon, rsets_and_clears},
     is_clear_again},
    {"set and clear against set and clear and a wait",
     nothing_set,
     {rwaits_soon, rsets_and_clears, rsets_and_clears},
     is_clear_again},
    {"a clear against a set and a wait that needs one of them",
     sets_before_anybody_clears,
     {rclears, rsets, rwaits_soon},
     is_set_or_clear},
    {"a wake-all against a late arrival that cancels one of the woken",
     a_note_waits_for_it,
     {rsets_and_clears, comes_late_and_cancels_the_other},
     late_one_waits_unless_called},
    {"the last of two counts wakes whoever waits",
     two_to_go,
     {counts_down, counts_down, waits_for_zero},
     is_zero},
    {"a count up against the last count down",
     one_to_go,
     {counts_up_and_down, counts_down, waits_for_zero},
     is_zero},
    {"a clear against a deadline", two_to_go, {waits_soon_for_zero, clears}, is_zero},
    {"a cancel against the last count",
     a_note_waits_for_zero,
     {cancels_first, counts_down},
     cancelled_or_zero},
    {"a countdown is freed right after its wait",
     one_to_go,
     {waits_for_zero_and_frees_it, counts_down},
     NULL},
    {0},
};
