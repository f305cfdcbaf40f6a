/* SPDX-License-Identifier: MIT */
/* Callbacks, and the inbox that leaves them to a loop. */
#include "scenarios/world.h"

#include "base/cpu.h"

static void releases(void)
{
    MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0);
}

static void take(uint64_t n)
{
    weir_sem_init(&the.sem, n);
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, n), 0);
}

static void cancels_second(void)
{
    cancel_note(1);
}

static void cancels_first(void)
{
    cancel_note(0);
}

/* ---- callbacks that release ---------------------------------------------------------------------- */

static void gives_back(struct weir_op *op, int result)
{
    int turns = the.turns;

    MODEL_CHECK_EQ(weir_sem_acquire(&the.sem, 2, WEIR_FOREVER), WEIR_ECONTEXT);
    releases();
    MODEL_CHECK_EQ(the.turns, turns); /* whom it serves is called after it has returned */
    take_note(op, result);
}

static void the_first_of_two_gives_back(void)
{
    take(2);
    MODEL_CHECK_EQ(weir_sem_acquire_async(&the.sem, 1, &the.note[0].op, gives_back), 0);
    queue_note(1, 1);
}

static void first_called_and_second_called_or_cancelled(void)
{
    MODEL_CHECK(was_called(0, 0));
    MODEL_CHECK(the.cancelled[1] == 1 ? was_not_called(1) : was_called(1, 0));
    check_permits(2, 2 - (uint64_t)the.cancelled[1]);
}

/* ---- the inbox ---------------------------------------------------------------------------------------- */

static void queue_for_inbox(int i)
{
    the.note[i].op.inbox = the.inbox;
    queue_note(i, 1);
}

static void one_for_the_inbox(void)
{
    take(1);
    MODEL_CHECK_EQ(weir_inbox_open(&the.inbox), 0);
    queue_for_inbox(0);
}

static void two_for_the_inbox(void)
{
    take(2);
    MODEL_CHECK_EQ(weir_inbox_open(&the.inbox), 0);
    queue_for_inbox(0);
    queue_for_inbox(1);
}

/* An event loop: sleeps until there is something to drain. */
static void drains_two(void)
{
    while (the.turns < 2) {
        model_wait_readable(weir_inbox_fd(the.inbox));
        MODEL_CHECK(weir_inbox_drain(the.inbox) >= 0);
    }
}

/* A loop that looks without being told, and closes when there is nothing to come. */
static void drains_one_and_closes(void)
{
    while (the.turns < 1) {
        weir_inbox_drain(the.inbox);
        cpu_yield();
    }
    weir_inbox_close(the.inbox);
}

static void drains_two_and_closes(void)
{
    drains_two();
    weir_inbox_close(the.inbox);
}

static void drains_once(void)
{
    MODEL_CHECK(weir_inbox_drain(the.inbox) >= 0);
}

static void both_called(void)
{
    MODEL_CHECK(was_called(0, 0) && was_called(1, 0));
    check_permits(2, 2);
}

static void one_called(void)
{
    MODEL_CHECK(was_called(0, 0));
    check_permits(1, 1);
}

static void cancelled_or_called(void)
{
    drains_once();
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    check_permits(1, the.cancelled[0] == 0);
}

const struct scenario op_scenarios[] = {
    {"a callback that gives back against a cancel of the next",
     the_first_of_two_gives_back,
     {releases, cancels_second},
     first_called_and_second_called_or_cancelled},
    {"a release to an inbox against a cancel and a drain",
     one_for_the_inbox,
     {cancels_first, releases, drains_once},
     cancelled_or_called},
    {"two releases to an inbox both reach the loop",
     two_for_the_inbox,
     {releases, releases, drains_two},
     both_called},
    {"an inbox is closed right after its last callback",
     one_for_the_inbox,
     {releases, drains_one_and_closes},
     one_called,
     .patient = true},
    {"an inbox is closed right after the last of two callbacks",
     two_for_the_inbox,
     {releases, releases, drains_two_and_closes},
     both_called},
    {0},
};
