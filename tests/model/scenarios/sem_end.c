/* SPDX-License-Identifier: MIT */
/* The semaphore: closed, resized, idle, and gone. */
#include "scenarios/world.h"

static void take(uint64_t capacity, uint64_t n)
{
    weir_sem_init(&the.sem, capacity);
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, n), 0);
}

static void one_taken(void)
{
    take(1, 1);
}

static void two_taken(void)
{
    take(2, 2);
}

static void a_note_waits(void)
{
    one_taken();
    queue_note(0, 1);
}

static void acquires(void)
{
    the.result[model_self()] = weir_sem_acquire(&the.sem, 1, WEIR_FOREVER);
}

static void acquires_soon(void)
{
    the.result[model_self()] = weir_sem_acquire(&the.sem, 1, SOON);
}

static void releases(void)
{
    MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0);
}

static void cancels(void)
{
    cancel_note(0);
}

static void resizes_to(uint64_t permits)
{
    MODEL_CHECK_EQ(weir_sem_resize(&the.sem, permits), 0);
}

static void shrinks_to_one(void)
{
    resizes_to(1);
}

static void grows_to_two(void)
{
    resizes_to(2);
}

static void grows_to_three(void)
{
    resizes_to(3);
}

/* ---- close -------------------------------------------------------------------------------------- */

static void closes(void)
{
    weir_sem_close(&the.sem);
}

/* The value of the word; BUSY is set for good when it is closed. */
static void check_closed(uint64_t free)
{
    MODEL_CHECK_EQ(weir_sem_waiting(&the.sem), 0);
    MODEL_CHECK_EQ(the.sem.queue_.word, free << 3 | 2);
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, 1), WEIR_ECLOSED);
}

static void cancelled_or_closed(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, WEIR_ECLOSED));
    check_closed(0);
}

static void timed_out_or_closed(void)
{
    MODEL_CHECK(the.result[0] == WEIR_ETIMEDOUT || the.result[0] == WEIR_ECLOSED);
    check_closed(0);
}

static void served_or_closed(void)
{
    MODEL_CHECK(the.result[0] == 0 || the.result[0] == WEIR_ECLOSED);
    check_closed(the.result[0] != 0);
}

/* ---- resize ------------------------------------------------------------------------------------- */

static void a_request_for_two_waits(void)
{
    take(2, 1);
    queue_note(0, 2);
}

static void cancelled_or_too_large(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, WEIR_EINVAL));
    check_permits(1, 1);
}

static void cancelled_or_served_by_growth(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    check_permits(2, 1 + (the.cancelled[0] == 0));
}

static void timed_out_or_served_by_growth(void)
{
    MODEL_CHECK(the.result[0] == 0 || the.result[0] == WEIR_ETIMEDOUT);
    check_permits(2, 1 + (the.result[0] == 0));
}

static void one_held_of_one(void)
{
    check_permits(1, 1);
}

static void one_of_two_taken(void)
{
    take(2, 1);
}

static void tries(void)
{
    the.result[model_self()] = weir_sem_try_acquire(&the.sem, 1);
}

static void one_of_one_if_tried(void)
{
    MODEL_CHECK(the.result[2] == 0 || the.result[2] == WEIR_EAGAIN);
    check_permits(1, the.result[2] == 0);
}

static void last_resize_counts(void)
{
    uint64_t capacity = weir_sem_capacity(&the.sem);

    MODEL_CHECK(capacity == 1 || capacity == 3);
    MODEL_CHECK_EQ(the.sem.queue_.word, (capacity - 1) << 3);
}

/* Two of one are refused for good; two of two can be had. */
static void tries_two(void)
{
    the.result[model_self()] = weir_sem_try_acquire(&the.sem, 2);
}

static void one_free(void)
{
    weir_sem_init(&the.sem, 1);
}

static void refused_or_taken(void)
{
    MODEL_CHECK(the.result[0] == WEIR_EINVAL || the.result[0] == 0);
    check_permits(2, the.result[0] == 0 ? 2 : 0);
}

/* ---- idle --------------------------------------------------------------------------------------- */

static void waits_for_idleness(void)
{
    the.result[model_self()] = weir_sem_wait_idle(&the.sem, WEIR_FOREVER);
    MODEL_CHECK_EQ(the.result[model_self()], 0);
}

static void waits_soon_for_idleness(void)
{
    the.result[model_self()] = weir_sem_wait_idle(&the.sem, SOON);
}

static void a_note_waits_for_idleness(void)
{
    one_taken();
    MODEL_CHECK_EQ(weir_sem_wait_idle_async(&the.sem, &the.note[0].op, take_note), 0);
}

static void cancelled_or_idle(void)
{
    MODEL_CHECK(the.cancelled[0] == 1 ? was_not_called(0) : was_called(0, 0));
    MODEL_CHECK_EQ(the.sem.idlers_, 0);
    check_permits(1, 0);
}

static void uses_it_once(void)
{
    MODEL_CHECK_EQ(weir_sem_acquire(&the.sem, 1, WEIR_FOREVER), 0);
    releases();
}

static void all_is_free(void)
{
    check_permits(1, 0);
}

static void both_are_free(void)
{
    check_permits(2, 0);
}

static void closed_and_idle(void)
{
    check_closed(1);
}

/* ---- gone --------------------------------------------------------------------------------------- */

static void acquires_and_frees_it(void)
{
    acquires();
    model_gone(&the.sem, sizeof the.sem);
}

static void acquires_soon_and_frees_it(void)
{
    acquires_soon();
    if (the.result[model_self()] == 0)
        model_gone(&the.sem, sizeof the.sem);
}

static void waits_for_idleness_and_frees_it(void)
{
    waits_for_idleness();
    model_gone(&the.sem, sizeof the.sem);
}

/* A deadline that came first: then B's release found nobody, and all is there still. */
static void gone_or_given_back(void)
{
    if (the.result[0] == WEIR_ETIMEDOUT)
        check_permits(1, 0);
}

const struct scenario sem_end_scenarios[] = {
    {"a cancel against a close", a_note_waits, {cancels, closes}, cancelled_or_closed},
    {"a deadline against a close", one_taken, {acquires_soon, closes}, timed_out_or_closed},
    {"a close against an acquire and a release",
     one_taken,
     {acquires, closes, releases},
     served_or_closed},
    {"a cancel against a shrink that sends it away",
     a_request_for_two_waits,
     {cancels, shrinks_to_one},
     cancelled_or_too_large},
    {"a cancel against a growth that serves it",
     a_note_waits,
     {cancels, grows_to_two},
     cancelled_or_served_by_growth},
    {"a deadline against a growth that serves it",
     one_taken,
     {acquires_soon, grows_to_two},
     timed_out_or_served_by_growth},
    {"a shrink against a release takes one permit away",
     two_taken,
     {shrinks_to_one, releases},
     one_held_of_one},
    {"a shrink against a release and a try_acquire",
     one_of_two_taken,
     {shrinks_to_one, releases, tries},
     one_of_one_if_tried},
    {"a shrink against a growth and a release",
     two_taken,
     {shrinks_to_one, grows_to_three, releases},
     last_resize_counts},
    {"a try_acquire of two against a growth from one to two",
     one_free,
     {tries_two, grows_to_two},
     refused_or_taken},
    {"whoever waits for idleness against a release and a newcomer",
     one_taken,
     {waits_for_idleness, releases, uses_it_once},
     all_is_free},
    {"a deadline against idleness",
     two_taken,
     {waits_soon_for_idleness, releases, releases},
     both_are_free},
    {"a cancel against idleness",
     a_note_waits_for_idleness,
     {cancels, releases},
     cancelled_or_idle},
    {"a close lets those go on who wait for idleness",
     one_taken,
     {waits_for_idleness, closes, releases},
     closed_and_idle},
    {"a semaphore is freed right after its last acquire",
     one_taken,
     {acquires_and_frees_it, releases},
     NULL},
    {"a semaphore is freed right after a deadline that lost",
     one_taken,
     {acquires_soon_and_frees_it, releases},
     gone_or_given_back},
    {"a semaphore is freed as soon as it is idle",
     one_taken,
     {waits_for_idleness_and_frees_it, releases},
     NULL},
    {0},
};
