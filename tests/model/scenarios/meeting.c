/* SPDX-License-Identifier: MIT */
/* Where flows meet: latches and barriers. */
#include "scenarios/world.h"

/* ---- latch ----------------------------------------------------------------------------------------- */

static void latch_of_two(void)
{
    weir_latch_init(&the.latch, 2);
}

static void latch_of_three(void)
{
    weir_latch_init(&the.latch, 3);
}

static void arrives_and_waits(void)
{
    the.result[model_self()] = weir_latch_wait(&the.latch, WEIR_FOREVER);
}

static void arrives_and_waits_soon(void)
{
    the.result[model_self()] = weir_latch_wait(&the.latch, SOON);
}

static void arrives(void)
{
    the.result[model_self()] = weir_latch_arrive(&the.latch, 1);
}

static void aborts_latch(void)
{
    weir_latch_abort(&the.latch);
}

static void is_open(void)
{
    MODEL_CHECK_EQ(the.latch.queue_.word, 0);
    MODEL_CHECK_EQ(the.latch.queue_.length, 0);
    for (int i = 0; i < FLOWS_MAX; i++)
        MODEL_CHECK(the.result[i] == 0 || the.result[i] == NOTHING_YET);
}

/* Open for both or broken for whoever waited; C aborts. */
static void open_or_broken_for_all(void)
{
    if (!weir_latch_is_broken(&the.latch)) {
        is_open();
        return;
    }
    MODEL_CHECK_EQ(the.result[0], WEIR_EBROKEN);
    MODEL_CHECK(the.result[1] == 0 || the.result[1] == WEIR_EBROKEN);
    MODEL_CHECK_EQ(the.latch.queue_.length, 0);
}

static void both_or_neither(void)
{
    if (the.result[0] == 0)
        is_open();
    else
        MODEL_CHECK_EQ(the.result[0], WEIR_ETIMEDOUT);
    MODEL_CHECK_EQ(the.result[1], the.result[0] == 0 ? 0 : WEIR_EBROKEN);
    MODEL_CHECK_EQ(weir_latch_is_broken(&the.latch), the.result[0] != 0);
}

static void waits_and_frees_the_latch(void)
{
    arrives_and_waits();
    model_gone(&the.latch, sizeof the.latch);
}

static void a_note_arrives(void)
{
    latch_of_two();
    MODEL_CHECK_EQ(weir_latch_wait_async(&the.latch, &the.note[0].op, take_note), 0);
}

static void cancels(void)
{
    cancel_note(0);
}

static void cancelled_or_open(void)
{
    bool cancelled = the.cancelled[0] == 1;

    MODEL_CHECK(cancelled ? was_not_called(0) : was_called(0, 0));
    MODEL_CHECK_EQ(the.result[1], cancelled ? WEIR_EBROKEN : 0);
    MODEL_CHECK_EQ(weir_latch_is_broken(&the.latch), cancelled);
}

/* ---- barrier --------------------------------------------------------------------------------------- */

static void barrier_of_two(void)
{
    weir_barrier_init(&the.barrier, 2);
}

static void barrier_of_three(void)
{
    weir_barrier_init(&the.barrier, 3);
}

/* Remembers its index, or why not. */
static void meet(struct weir_deadline deadline)
{
    uint32_t index = 0;
    int r = weir_barrier_wait(&the.barrier, deadline, &index);

    the.result[model_self()] = r < 0 ? r : (int)index;
}

static void meets(void)
{
    meet(WEIR_FOREVER);
}

static void meets_soon(void)
{
    meet(SOON);
}

static void meets_twice(void)
{
    meets();
    MODEL_CHECK(the.result[model_self()] >= 0);
    meets();
}

static void meets_and_frees_it_unless_last(void)
{
    meets();
    if (the.result[model_self()] == 0)
        model_gone(&the.barrier, sizeof the.barrier);
}

static void aborts(void)
{
    weir_barrier_abort(&the.barrier);
}

static void resets(void)
{
    weir_barrier_reset(&the.barrier);
}

static void two_met(void)
{
    MODEL_CHECK_EQ(the.result[0] + the.result[1], 1); /* 0 and 1, in some order */
    MODEL_CHECK_EQ(the.barrier.queue_.word, 0);
    MODEL_CHECK_EQ(the.barrier.queue_.length, 0);
}

static void three_met(void)
{
    MODEL_CHECK_EQ(1 << the.result[0] | 1 << the.result[1] | 1 << the.result[2], 7);
    MODEL_CHECK_EQ(the.barrier.queue_.word, 0);
}

static bool met(int flow)
{
    return the.result[flow] >= 0;
}

/* C aborts: both met before that, or neither did. */
static void met_or_broken_for_both(void)
{
    MODEL_CHECK_EQ(met(0), met(1));
    if (!met(0))
        MODEL_CHECK(the.result[0] == WEIR_EBROKEN && the.result[1] == WEIR_EBROKEN);
    MODEL_CHECK(weir_barrier_is_broken(&the.barrier));
    MODEL_CHECK_EQ(the.barrier.queue_.length, 0);
}

/* A gave up first and B finds it broken, or they met. */
static void met_or_timed_out(void)
{
    MODEL_CHECK_EQ(met(0), met(1));
    if (!met(0))
        MODEL_CHECK(the.result[0] == WEIR_ETIMEDOUT && the.result[1] == WEIR_EBROKEN);
    MODEL_CHECK_EQ(weir_barrier_is_broken(&the.barrier), !met(0));
    MODEL_CHECK_EQ(the.barrier.queue_.length, 0);
}

static void one_timed_out_at_most(void)
{
    for (int i = 0; i < 2; i++)
        MODEL_CHECK(met(i) || the.result[i] == WEIR_ETIMEDOUT || the.result[i] == WEIR_EBROKEN);
    MODEL_CHECK_EQ(met(0), met(1));
    MODEL_CHECK_EQ(weir_barrier_is_broken(&the.barrier), !met(0));
}

/* C resets: whoever waited then is sent away, and would otherwise wait for ever. */
static void first_waits_soon_at_a_reset_barrier(void)
{
    meets_soon();
}

static void met_or_sent_away(void)
{
    MODEL_CHECK_EQ(met(0), met(1));
    MODEL_CHECK_EQ(the.barrier.queue_.length, 0);
}

static void a_note_meets(void)
{
    barrier_of_two();
    MODEL_CHECK_EQ(weir_barrier_wait_async(&the.barrier, &the.note[0].op, take_note), 0);
}

static void cancelled_or_met(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    MODEL_CHECK_EQ(the.result[1], the.cancelled[0] == 1 ? WEIR_EBROKEN : 1);
    MODEL_CHECK_EQ(weir_barrier_is_broken(&the.barrier), the.cancelled[0] == 1);
}

const struct scenario meeting_scenarios[] = {
    {"the last arrival opens the latch for all",
     latch_of_three,
     {arrives_and_waits, arrives_and_waits, arrives},
     is_open},
    {"the last arrival at a latch against an abort",
     latch_of_two,
     {arrives_and_waits, arrives, aborts_latch},
     open_or_broken_for_all},
    {"the last arrival at a latch against a deadline",
     latch_of_two,
     {arrives_and_waits_soon, arrives_and_waits},
     both_or_neither},
    {"the last arrival at a latch against the cancel of a callback",
     a_note_arrives,
     {cancels, arrives},
     cancelled_or_open},
    {"a latch is freed right after its wait",
     latch_of_two,
     {waits_and_frees_the_latch, arrives},
     NULL},
    {"two meet at a barrier twice",
     barrier_of_two,
     {meets_twice, meets_twice},
     two_met,
     .preemptions = 4},
    {"three meet at a barrier", barrier_of_three, {meets, meets, meets}, three_met},
    {"two meet at a barrier and spin", barrier_of_two, {meets, meets}, two_met, .cpus = 4},
    {"the last arrival at a barrier against an abort",
     barrier_of_two,
     {meets, meets, aborts},
     met_or_broken_for_both},
    {"the last arrival at a barrier against a deadline",
     barrier_of_two,
     {meets_soon, meets},
     met_or_timed_out},
    {"two deadlines at a barrier", barrier_of_two, {meets_soon, meets_soon}, one_timed_out_at_most},
    {"the last arrival at a barrier against a reset",
     barrier_of_two,
     {first_waits_soon_at_a_reset_barrier, meets_soon, resets},
     met_or_sent_away},
    {"the last arrival at a barrier against the cancel of a callback",
     a_note_meets,
     {cancels, meets},
     cancelled_or_met},
    {"a barrier is freed right after its wait",
     barrier_of_two,
     {meets_and_frees_it_unless_last, meets_and_frees_it_unless_last},
     NULL},
    {0},
};
