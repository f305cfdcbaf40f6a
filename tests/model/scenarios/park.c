/* SPDX-License-Identifier: MIT */
/* What everything stands on: one sleep and its end, crowds, and the lock of the queue. */
#include "scenarios/world.h"

#include "base/cpu.h"
#include "core/park.h"
#include "core/waitq.h"

static void nothing(void)
{
}

/* ---- one sleep ------------------------------------------------------------------------------------- */

static void publish(int i, sleeper *s)
{
    the.value = 1;
    __atomic_store_n(&the.sleeper[i], s, __ATOMIC_RELEASE);
}

static sleeper *await(int i)
{
    sleeper *s;

    while (!(s = __atomic_load_n(&the.sleeper[i], __ATOMIC_ACQUIRE)))
        cpu_yield();
    return s;
}

static void parks(void)
{
    sleeper s = sleeper_self();

    publish(0, &s);
    MODEL_CHECK_EQ(park(&s, WEIR_FOREVER), 0);
    MODEL_CHECK_EQ(the.value, 2);
}

/* As a wait does that was granted: too late to give up. */
static void parks_soon_and_then_firmly(void)
{
    sleeper s = sleeper_self();

    publish(0, &s);
    the.result[0] = park(&s, SOON);
    if (the.result[0] < 0) {
        s.flags = SLEEP_FIRM | SLEEP_AGAIN;
        MODEL_CHECK_EQ(park(&s, WEIR_FOREVER), 0);
    }
    MODEL_CHECK_EQ(the.value, 2);
}

static void ends_the_sleep(void)
{
    sleeper *s = await(0);

    the.value = 2;
    MODEL_CHECK_EQ(sleeper_done(s), 0);
}

/* ---- a crowd --------------------------------------------------------------------------------------- */

static void parks_in_crowd(void)
{
    sleeper s = sleeper_self();
    int self = model_self();

    sleeper_join_crowd(&s, &the);
    __atomic_store_n(&the.sleeper[self], &s, __ATOMIC_RELEASE);
    MODEL_CHECK_EQ(park(&s, WEIR_FOREVER), 0);
}

static void ends_the_crowd(void)
{
    uint8_t crowd = sleeper_done(await(0)) | sleeper_done(await(1));

    if (crowd)
        crowd_wake(crowd);
}

/* ---- another kind of flow ----------------------------------------------------------------------------- */

/* As a task: begins asleep, and whoever takes it out of that makes it run, once. */
static int strange_refusal(parker *self, struct weir_deadline deadline)
{
    (void)self;
    (void)deadline;
    return 0;
}

/* A cancel comes at any time; whoever is first, it or the waker, makes us run. */
static int strange_park(parker *self, sleeper *s, struct weir_deadline deadline)
{
    uint32_t seen = ASLEEP;

    (void)self;
    (void)deadline;
    if (!(s->flags & SLEEP_FIRM) && atomic_cas(&s->state, &seen, AWAKE))
        return WEIR_ECANCELED;
    if (s->flags & SLEEP_AGAIN) {
        seen = AWAKE;
        if (!atomic_cas(&s->state, &seen, ASLEEP))
            return 0;
    }
    while (atomic_get(&the.flag) == 0)
        cpu_yield();
    return 0;
}

static uint8_t strange_done(parker *self, sleeper *s)
{
    (void)self;
    if (sleeper_end(s))
        MODEL_CHECK_EQ(atomic_add(&the.flag, 1), 1);
    return 0;
}

static const struct parker_ops strange_ops = {
    .begins = ASLEEP,
    .refusal = strange_refusal,
    .park = strange_park,
    .done = strange_done,
};

static parker strange = {&strange_ops};

static void one_taken(void)
{
    weir_sem_init(&the.sem, 1);
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, 1), 0);
}

static void acquires_strangely(void)
{
    parker_current = &strange;
    the.result[0] = weir_sem_acquire(&the.sem, 1, WEIR_FOREVER);
    parker_current = NULL;
}

static void releases(void)
{
    MODEL_CHECK_EQ(weir_sem_release(&the.sem, 1), 0);
}

static void cancelled_or_served(void)
{
    MODEL_CHECK(the.result[0] == 0 || the.result[0] == WEIR_ECANCELED);
    check_permits(1, the.result[0] == 0);
}

/* ---- locks --------------------------------------------------------------------------- */

static void goes_inside(void)
{
    uint64_t word = waitq_lock(&the.queue);

    the.value++;
    waitq_unlock(&the.queue, word + word_of(1));
}

static void goes_inside_twice(void)
{
    goes_inside();
    goes_inside();
}

static void all_were_inside(void)
{
    MODEL_CHECK_EQ(word_value(the.queue.word), the.value);
    MODEL_CHECK_EQ(the.queue.word & WORD_FLAGS, 0);
}

static void takes_the_small_lock(void)
{
    lock_take(&the.small_lock);
    the.value++;
    lock_drop(&the.small_lock);
}

static void three_had_it(void)
{
    MODEL_CHECK_EQ(the.value, 3);
    MODEL_CHECK_EQ(the.small_lock.word, 0);
}

static void acquires(void)
{
    MODEL_CHECK_EQ(weir_sem_acquire(&the.sem, 1, WEIR_FOREVER), 0);
}

static void acquires_soon(void)
{
    the.result[0] = weir_sem_acquire(&the.sem, 1, SOON);
}

static void two_taken(void)
{
    weir_sem_init(&the.sem, 2);
    MODEL_CHECK_EQ(weir_sem_try_acquire(&the.sem, 2), 0);
}

static void one_of_two_held(void)
{
    check_permits(2, 1);
}

static void timed_out_or_served(void)
{
    check_permits(2, the.result[0] == 0);
}

const struct scenario park_scenarios[] = {
    {"a park against its unpark", nothing, {parks, ends_the_sleep}, nothing},
    {"a park against its unpark and a signal",
     nothing,
     {parks, ends_the_sleep},
     nothing,
     .signals = 2},
    {"a park against its unpark and its deadline",
     nothing,
     {parks_soon_and_then_firmly, ends_the_sleep},
     nothing},
    {"two park as a crowd and are woken together",
     nothing,
     {parks_in_crowd, parks_in_crowd, ends_the_crowd},
     nothing,
     .signals = 1},
    {"a flow of another kind is unparked once, by a grant or a cancel",
     one_taken,
     {acquires_strangely, releases},
     cancelled_or_served},
    {"three take the lock of a queue",
     nothing,
     {goes_inside, goes_inside, goes_inside},
     all_were_inside},
    {"three sleep on the lock of a queue",
     nothing,
     {goes_inside_twice, goes_inside, goes_inside},
     all_were_inside},
    {"a signal ends a sleep on the lock of a queue",
     nothing,
     {goes_inside, goes_inside, goes_inside},
     all_were_inside,
     .signals = 1},
    {"three take the small lock",
     nothing,
     {takes_the_small_lock, takes_the_small_lock, takes_the_small_lock},
     three_had_it},
    {"an acquire and two releases sleep on the lock",
     two_taken,
     {acquires, releases, releases},
     one_of_two_held},
    {"a deadline and two releases sleep on the lock",
     two_taken,
     {acquires_soon, releases, releases},
     timed_out_or_served},
    {0},
};
