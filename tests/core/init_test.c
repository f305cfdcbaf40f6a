/* SPDX-License-Identifier: MIT */
/* Static initialisers with numbers that nothing can have: there is nobody to be given an
 * error when the object is made, so its first use must say so, and never hang. */
#include <weir/weir.h>

#include "harness/test.h"

enum { BAD = 5 };

static struct weir_sem sems[BAD] = {
    WEIR_SEM_INIT(0),
    WEIR_SEM_INIT(-1),
    WEIR_SEM_INIT(WEIR_SEM_MAX + 1),
    WEIR_SEM_INIT((UINT64_C(1) << 61) + 5),
    WEIR_SEM_INIT(UINT64_MAX),
};

static void must_not_be_called(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
    CHECK(false);
}

TEST(a_semaphore_of_an_impossible_size_has_no_permits)
{
    for (int i = 0; i < BAD; i++) {
        struct weir_op op = WEIR_OP_INIT;

        CHECK_EQ(weir_sem_capacity(&sems[i]), 0);
        CHECK_EQ(weir_sem_available(&sems[i]), 0);
        CHECK_EQ(weir_sem_acquire(&sems[i], 1, WEIR_FOREVER), WEIR_EINVAL);
        CHECK_EQ(weir_sem_acquire(&sems[i], 1, WEIR_NO_WAIT), WEIR_EINVAL);
        CHECK_EQ(weir_sem_try_acquire(&sems[i], 1), WEIR_EINVAL);
        CHECK_EQ(weir_sem_try_acquire(&sems[i], WEIR_SEM_MAX), WEIR_EINVAL);
        CHECK_EQ(weir_sem_acquire_async(&sems[i], 1, &op, must_not_be_called), WEIR_EINVAL);
        CHECK_EQ(weir_sem_release(&sems[i], 1), WEIR_EOVERFLOW);
        CHECK_EQ(weir_sem_wait_idle(&sems[i], WEIR_FOREVER), 0);
    }
}

TEST(a_resize_makes_it_usable)
{
    CHECK_EQ(weir_sem_resize(&sems[0], 2), 0);
    CHECK_EQ(weir_sem_try_acquire(&sems[0], 2), 0);
    CHECK_EQ(weir_sem_try_acquire(&sems[0], 1), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_release(&sems[0], 2), 0);
}

TEST(the_largest_semaphore_is_one)
{
    static struct weir_sem largest = WEIR_SEM_INIT(WEIR_SEM_MAX);

    CHECK_EQ(weir_sem_try_acquire(&largest, WEIR_SEM_MAX), 0);
    CHECK_EQ(weir_sem_try_acquire(&largest, 1), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_release(&largest, WEIR_SEM_MAX), 0);
}

TEST(a_latch_for_an_impossible_number_is_broken)
{
    static struct weir_latch latches[BAD] = {
        WEIR_LATCH_INIT((UINT64_C(1) << 33) - 1),
        WEIR_LATCH_INIT(-1),
        WEIR_LATCH_INIT(UINT64_C(1) << 32),
        WEIR_LATCH_INIT((UINT64_C(1) << 32) + 1),
        WEIR_LATCH_INIT(UINT64_MAX),
    };

    for (int i = 0; i < BAD; i++) {
        CHECK(weir_latch_is_broken(&latches[i]));
        CHECK_EQ(weir_latch_wait(&latches[i], WEIR_FOREVER), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(&latches[i], 1), WEIR_EBROKEN);
    }
}

TEST(a_latch_for_as_many_as_can_be_waits_for_them)
{
    static struct weir_latch latch = WEIR_LATCH_INIT(UINT32_MAX);

    CHECK(!weir_latch_is_broken(&latch));
    CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX - 1), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 2), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
}

TEST(a_countdown_from_too_high_starts_at_the_highest)
{
    static struct weir_countdown countdowns[] = {
        WEIR_COUNTDOWN_INIT(WEIR_COUNTDOWN_MAX),
        WEIR_COUNTDOWN_INIT(WEIR_COUNTDOWN_MAX + 1),
        WEIR_COUNTDOWN_INIT(UINT64_C(1) << 61),
        WEIR_COUNTDOWN_INIT(UINT64_MAX),
    };

    for (size_t i = 0; i < sizeof countdowns / sizeof *countdowns; i++) {
        CHECK_EQ(weir_countdown_value(&countdowns[i]), WEIR_COUNTDOWN_MAX);
        CHECK_EQ(weir_countdown_up(&countdowns[i], 1), WEIR_EOVERFLOW);
        CHECK_EQ(weir_countdown_wait(&countdowns[i], WEIR_NO_WAIT), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_countdown_down(&countdowns[i], WEIR_COUNTDOWN_MAX), 0);
        CHECK_EQ(weir_countdown_wait(&countdowns[i], WEIR_FOREVER), 0);
    }
}

TEST(a_barrier_for_an_impossible_number_is_invalid)
{
    static struct weir_barrier barriers[] = {
        WEIR_BARRIER_INIT(0),
        WEIR_BARRIER_INIT((uint32_t)WEIR_BARRIER_MAX + 1),
        WEIR_BARRIER_INIT(UINT32_MAX),
    };

    for (size_t i = 0; i < sizeof barriers / sizeof *barriers; i++)
        CHECK_EQ(weir_barrier_wait(&barriers[i], WEIR_FOREVER, NULL), WEIR_EINVAL);
}
