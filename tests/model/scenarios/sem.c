/* SPDX-License-Identifier: MIT */
/* The semaphore: taking, giving, waiting and giving up. */
#include "scenarios/world.h"

/* ---- what flows do -------------------------------------------------------------------------- */

static void take(uint64_t n)
{
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, n), 0);
}

static void one_free(void)
{
    weir_sem_init(&the.sem, 1);
}

static void one_taken(void)
{
    weir_sem_init(&the.sem, 1);
    take(1);
}

static void two_taken(void)
{
    weir_sem_init(&the.sem, 2);
    take(2);
}

static void one_of_two_taken(void)
{
    weir_sem_init(&the.sem, 2);
    take(1);
}

static int acquire(uint64_t n, struct weir_deadline deadline)
{
    return the.result[model_self()] = weir_sem_acquire(&the.sem, n, deadline);
}

static void acquires(void)
{
    MODEL_CHECK_EQ(acquire(1, WEIR_FOREVER), 0);
}

static void acquires_soon(void)
{
    acquire(1, SOON);
}

static void acquires_later(void)
{
    acquire(1, LATER);
}

static void acquires_two_soon(void)
{
    acquire(2, SOON);
}

static void releases(void)
{
    MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0);
}

static void tries(void)
{
    the.result[model_self()] = weir_sem_try_acquire(&the.sem, 1);
}

static bool has(int flow)
{
    return the.result[flow] == 0;
}

/* ---- hand-off ------------------------------------------------------------------------------------ */

static void one_is_held(void)
{
    check_permits(1, 1);
}

static void holds_for_a_moment(void)
{
    acquires();
    holds(1, 1);
    the.value++; /* what was written before a release is seen after the acquire */
    holds(-1, 1);
    releases();
}

static void holds_one_of_two(void)
{
    acquires();
    holds(1, 2);
    MODEL_CHECK(weir_sem_available(&the.sem) < 2); /* a step, in which others may come in */
    holds(-1, 2);
    releases();
}

static void two_free(void)
{
    weir_sem_init(&the.sem, 2);
}

static void both_are_free(void)
{
    check_permits(2, 0);
}

static void two_were_inside(void)
{
    check_permits(1, 0);
    MODEL_CHECK_EQ(the.value, 2);
}

static void three_were_inside(void)
{
    check_permits(1, 0);
    MODEL_CHECK_EQ(the.value, 3);
}

static void none_lost_of_two(void)
{
    check_permits(2, has(2));
}

/* If somebody waited before we asked, we may have a permit only after it has. */
static void tries_in_order(void)
{
    bool somebody_waited = weir_sem_waiting(&the.sem) == 1;

    tries();
    if (somebody_waited && has(model_self()))
        MODEL_CHECK_EQ(weir_sem_waiting(&the.sem), 0);
}

static void gives_back_what_it_tried(void)
{
    tries_in_order();
    if (has(model_self()))
        releases();
}

static void two_notes_wait(void)
{
    two_taken();
    queue_note(0, 1);
    queue_note(1, 1);
}

static void served_in_order(void)
{
    check_permits(2, 2);
    MODEL_CHECK(was_called(0, 0) && was_called(1, 0));
}

/* Both releases may be telling at once, so the calls have no order; the grants have. */
static void releases_in_order(void)
{
    releases();
    MODEL_CHECK(!(is_queued(0) && !is_queued(1)));
}

static void a_large_one_waits_before_a_small_one(void)
{
    two_taken();
    queue_note(0, 2);
    queue_note(1, 1);
}

static void the_large_one_has_both(void)
{
    MODEL_CHECK(was_called(0, 0) && was_not_called(1));
    MODEL_CHECK_EQ(weir_sem_waiting(&the.sem), 1);
    MODEL_CHECK_EQ(weir_sem_release(&the.sem, 2), 0);
    MODEL_CHECK(was_called(1, 0));
    check_permits(2, 1);
}

/* ---- giving up -------------------------------------------------------------------------------------- */

static void one_held_if_served(void)
{
    MODEL_CHECK(has(0) || the.result[0] == WEIR_ETIMEDOUT);
    check_permits(1, has(0));
}

static void one_held_by_either(void)
{
    MODEL_CHECK(has(0) || the.result[0] == WEIR_ETIMEDOUT);
    MODEL_CHECK(has(1) || the.result[1] == WEIR_ETIMEDOUT);
    MODEL_CHECK(!(has(0) && has(1)));
    check_permits(1, has(0) || has(1));
}

static void cancels_first(void)
{
    cancel_note(0);
}

static void cancels_second(void)
{
    cancel_note(1);
}

static void a_note_waits(void)
{
    one_taken();
    queue_note(0, 1);
}

static void cancelled_or_served(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    check_permits(1, the.cancelled[0] == 0);
}

static void cancelled_once(void)
{
    MODEL_CHECK_EQ(the.cancelled[0] + the.cancelled[1], 1);
    MODEL_CHECK(was_not_called(0));
    check_permits(1, 1);
}

/* A cancels the large one that stands before the small one, and B gives one back. */
static void a_heavy_head_waits(void)
{
    one_of_two_taken();
    queue_note(0, 2);
    queue_note(1, 1);
}

static void heavy_has_both_and_none_is_left(void)
{
    MODEL_CHECK(was_called(0, 0));
    MODEL_CHECK_EQ(the.result[0], WEIR_EAGAIN);
    check_permits(2, 2);
}

static void a_request_for_both_waits(void)
{
    one_of_two_taken();
    queue_note(0, 2);
}

static void heavy_left_and_light_is_served(void)
{
    if (the.cancelled[0] == 1) {
        MODEL_CHECK(was_not_called(0) && was_called(1, 0));
        check_permits(2, 1);
    } else {
        MODEL_CHECK(was_called(0, 0) && was_not_called(1));
        MODEL_CHECK_EQ(weir_op_cancel(&the.note[1].op), 1);
        check_permits(2, 2);
    }
}

static void both_cancelled_or_served(void)
{
    MODEL_CHECK_EQ(the.cancelled[0], 1);
    MODEL_CHECK(was_not_called(0));
    MODEL_CHECK(the.cancelled[1] == 1 ? was_not_called(1) : was_called(1, 0));
    check_permits(2, 2 - (uint64_t)the.cancelled[1]);
}

static void heavy_timed_out_and_light_is_served(void)
{
    MODEL_CHECK_EQ(the.result[0], WEIR_ETIMEDOUT);
    MODEL_CHECK(has(1)); /* B, the light one, would wait for ever */
    check_permits(2, 2);
}

static void heavy_waits_soon_and_gives_back(void)
{
    acquires_two_soon();
    if (has(0))
        MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0);
}

static void heavy_and_light_add_up(void)
{
    MODEL_CHECK(has(0) || the.result[0] == WEIR_ETIMEDOUT);
    MODEL_CHECK(has(1));
    check_permits(2, 1 + has(0));
}

const struct scenario sem_scenarios[] = {
    {"a release hands its permit to whoever waits", one_taken, {acquires, releases}, one_is_held},
    {"a waiter that spins is served as well",
     one_taken,
     {acquires, releases},
     one_is_held,
     .cpus = 4},
    {"a signal does not end a wait", one_taken, {acquires, releases}, one_is_held, .signals = 1},
    {"two who share one permit are never inside together",
     one_free,
     {holds_for_a_moment, holds_for_a_moment},
     two_were_inside},
    {"three who share one permit are never inside together",
     one_free,
     {holds_for_a_moment, holds_for_a_moment, holds_for_a_moment},
     three_were_inside},
    {"of three who share two permits there is always one outside",
     two_free,
     {holds_one_of_two, holds_one_of_two, holds_one_of_two},
     both_are_free},
    {"two releases and a try_acquire lose no permit",
     two_taken,
     {releases, releases, tries},
     none_lost_of_two},
    {"a try_acquire does not overtake whoever waits",
     one_taken,
     {acquires, releases, gives_back_what_it_tried},
     one_is_held},
    {"two releases serve two waiters in order",
     two_notes_wait,
     {releases_in_order, releases_in_order},
     served_in_order},
    {"a small request does not overtake a large one",
     a_large_one_waits_before_a_small_one,
     {releases, releases},
     the_large_one_has_both},
    {"a small request does not overtake a heavy head",
     a_request_for_both_waits,
     {tries, releases},
     heavy_has_both_and_none_is_left},
    {"a deadline against a grant", one_taken, {acquires_soon, releases}, one_held_if_served},
    {"two deadlines against one grant",
     one_taken,
     {acquires_soon, acquires_soon, releases},
     one_held_by_either},
    {"two deadlines, one after the other, against one grant",
     one_taken,
     {acquires_soon, acquires_later, releases},
     one_held_by_either},
    {"a deadline of a waiter that spins against a grant",
     one_taken,
     {acquires_soon, releases},
     one_held_if_served,
     .cpus = 4},
    {"a cancel against a grant", a_note_waits, {cancels_first, releases}, cancelled_or_served},
    {"of two cancels one takes it back",
     a_note_waits,
     {cancels_first, cancels_first},
     cancelled_once},
    {"the cancel of a heavy head against a release",
     a_heavy_head_waits,
     {cancels_first, releases},
     heavy_left_and_light_is_served},
    {"the cancel of a heavy head against the cancel of the next",
     a_heavy_head_waits,
     {cancels_first, cancels_second},
     both_cancelled_or_served},
    {"a heavy head that times out lets the next one through",
     one_of_two_taken,
     {acquires_two_soon, acquires},
     heavy_timed_out_and_light_is_served},
    {"the deadline of a heavy head against a release",
     one_of_two_taken,
     {heavy_waits_soon_and_gives_back, acquires, releases},
     heavy_and_light_add_up},
    {0},
};
