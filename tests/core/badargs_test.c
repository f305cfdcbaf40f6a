/* SPDX-License-Identifier: MIT */
/* Every public function with every kind of argument that it cannot work with, header
 * by header: the answer is the documented code, and nothing has changed.  (NULL where
 * an object is required is a programming error, as in libc.) */
#include <weir/weir.h>

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------- */

static const struct weir_deadline past[] = {{0}, {1}, {-1}, {INT64_MIN}};
enum { PASTS = sizeof past / sizeof *past };

/* Counts that no semaphore of 3 can ever serve. */
static const uint64_t never[] = {
    0, 4, WEIR_SEM_MAX, WEIR_SEM_MAX + 1, UINT64_C(1) << 61, UINT64_C(1) << 63, UINT64_MAX,
};
enum { NEVERS = sizeof never / sizeof *never };

/* Sizes that nothing can have. */
static const uint64_t sizes[] = {
    0, WEIR_SEM_MAX + 1, UINT64_C(1) << 61, UINT64_C(1) << 63, UINT64_MAX,
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void must_not_be_called(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, INT_MIN); /* which it never is */
}

static void must_succeed(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, 0);
}

/* ---- error.h ---------------------------------------------------------------- */

static const int codes[] = {
    WEIR_OK,      WEIR_EAGAIN,  WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_EINVAL,   WEIR_EOVERFLOW,
    WEIR_EBROKEN, WEIR_ECLOSED, WEIR_ENOTHELD,  WEIR_EMISMATCH, WEIR_ECONTEXT, WEIR_EUNREACHABLE,
    WEIR_EBUSY,   WEIR_ELIMIT,  WEIR_ENOMEM,    WEIR_ENOSPC,    WEIR_EPERM,    WEIR_EPROTO,
};
enum { CODES = sizeof codes / sizeof *codes };

TEST(every_code_has_a_phrase_of_its_own)
{
    for (int i = 0; i < CODES; i++) {
        CHECK(strcmp(weir_strerror(codes[i]), "unknown error") != 0);
        for (int j = 0; j < i; j++) {
            CHECK(codes[i] != codes[j]);
            CHECK(strcmp(weir_strerror(codes[i]), weir_strerror(codes[j])) != 0);
        }
    }
}

/* Programs are compiled with these numbers in them: each is that of its errno on Linux,
 * for good. */
static const struct {
    int code, error, value;
} for_good[CODES] = {
    {WEIR_OK, 0, 0},
    {WEIR_EAGAIN, EAGAIN, -11},
    {WEIR_ETIMEDOUT, ETIMEDOUT, -110},
    {WEIR_ECANCELED, ECANCELED, -125},
    {WEIR_EINVAL, EINVAL, -22},
    {WEIR_EOVERFLOW, EOVERFLOW, -75},
    {WEIR_EBROKEN, ENOTRECOVERABLE, -131},
    {WEIR_ECLOSED, ESHUTDOWN, -108},
    {WEIR_ENOTHELD, ESTALE, -116},
    {WEIR_EMISMATCH, EEXIST, -17},
    {WEIR_ECONTEXT, EDEADLK, -35},
    {WEIR_EUNREACHABLE, EHOSTUNREACH, -113},
    {WEIR_EBUSY, EBUSY, -16},
    {WEIR_ELIMIT, EDQUOT, -122},
    {WEIR_ENOMEM, ENOMEM, -12},
    {WEIR_ENOSPC, ENOSPC, -28},
    {WEIR_EPERM, EPERM, -1},
    {WEIR_EPROTO, EPROTO, -71},
};

TEST(every_code_is_the_number_that_it_has_always_been)
{
    for (int i = 0; i < CODES; i++) {
        CHECK_EQ(for_good[i].code, codes[i]);
        CHECK_EQ(codes[i], for_good[i].value);
        CHECK_EQ(codes[i], -for_good[i].error);
    }
}

TEST(any_number_has_a_phrase)
{
    static const int odd[] = {INT_MIN, INT_MIN + 1, -1000000, 1, 4096, INT_MAX};

    for (int n = -5000; n <= 5000; n++)
        CHECK(weir_strerror(n) != NULL && weir_strerror(n)[0] != '\0');
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        CHECK(weir_strerror(odd[i]) != NULL && weir_strerror(odd[i])[0] != '\0');
    CHECK_STR(weir_strerror(-ENOENT), "No such file or directory"); /* the errno it negates */
    CHECK_STR(weir_strerror(INT_MIN), "unknown error");
    CHECK_STR(weir_strerror(-4095), "unknown error");
    CHECK_STR(weir_strerror(7), weir_strerror(WEIR_OK)); /* a count is a success */
    CHECK_STR(weir_strerror(INT_MAX), weir_strerror(WEIR_OK));
}

/* ---- time.h ----------------------------------------------------------------- */

TEST(a_duration_of_nothing_or_less_is_no_wait)
{
    CHECK_EQ(weir_within(0).at_ns, WEIR_NO_WAIT.at_ns);
    CHECK_EQ(weir_within(-1).at_ns, WEIR_NO_WAIT.at_ns);
    CHECK_EQ(weir_within(-WEIR_S).at_ns, WEIR_NO_WAIT.at_ns);
    CHECK_EQ(weir_within(INT64_MIN).at_ns, WEIR_NO_WAIT.at_ns);
}

TEST(a_duration_too_long_to_be_told_is_for_ever)
{
    CHECK_EQ(weir_within(INT64_MAX).at_ns, WEIR_FOREVER.at_ns);
    CHECK_EQ(weir_within(INT64_MAX - 1).at_ns, WEIR_FOREVER.at_ns);
    CHECK(weir_within(INT64_MAX / 2).at_ns > INT64_MAX / 2); /* this one can be told */
    CHECK(weir_within(INT64_MAX / 2).at_ns < INT64_MAX);
}

TEST(any_other_duration_counts_from_now)
{
    int64_t before_ns = weir_now_ns(), at_ns = weir_within(7 * WEIR_S).at_ns;

    CHECK(before_ns > 0);
    CHECK(at_ns >= before_ns + 7 * WEIR_S);
    CHECK(at_ns <= weir_now_ns() + 7 * WEIR_S);
}

/* ---- version.h -------------------------------------------------------------- */

TEST(the_version_is_the_same_in_all_its_forms)
{
    char numbers[32];

    snprintf(numbers, sizeof numbers, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR,
             WEIR_VERSION_PATCH);
    CHECK_STR(weir_version(), numbers);
    CHECK_STR(WEIR_VERSION, numbers);
}

/* ---- sem.h ------------------------------------------------------------------ */

#define CHECK_SEM(sem, capacity, available, waiting)       \
    do {                                                   \
        CHECK_EQ(weir_sem_capacity(&(sem)), (capacity));   \
        CHECK_EQ(weir_sem_available(&(sem)), (available)); \
        CHECK_EQ(weir_sem_waiting(&(sem)), (waiting));     \
    } while (0)

TEST(a_semaphore_cannot_be_of_such_a_size)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), 0);
    for (int i = 0; i < SIZES; i++) {
        CHECK_EQ(weir_sem_init(&sem, sizes[i]), WEIR_EINVAL);
        CHECK_SEM(sem, 3, 2, 0);
        CHECK_EQ(weir_sem_resize(&sem, sizes[i]), WEIR_EINVAL);
        CHECK_SEM(sem, 3, 2, 0);
    }
}

static void acquire_what_can_never_be(struct weir_sem *sem)
{
    struct weir_op op = WEIR_OP_INIT;

    for (int i = 0; i < NEVERS; i++) {
        CHECK_EQ(weir_sem_acquire(sem, never[i], WEIR_FOREVER), WEIR_EINVAL);
        CHECK_EQ(weir_sem_try_acquire(sem, never[i]), WEIR_EINVAL);
        CHECK_EQ(weir_sem_acquire_async(sem, never[i], &op, must_not_be_called), WEIR_EINVAL);
        CHECK_EQ(weir_op_cancel(&op), 0);
        for (int j = 0; j < PASTS; j++)
            CHECK_EQ(weir_sem_acquire(sem, never[i], past[j]), WEIR_EINVAL);
        WEIR_HOLD(sem, never[i]) {
            CHECK(false);
        }
    }
}

TEST(a_weight_that_can_never_fit_is_invalid_free_or_not)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct weir_op op = WEIR_OP_INIT;

    acquire_what_can_never_be(&sem);
    CHECK_SEM(sem, 3, 3, 0);
    CHECK_EQ(weir_sem_acquire(&sem, 2, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 2, &op, must_succeed), 0);
    acquire_what_can_never_be(&sem);
    CHECK_SEM(sem, 3, 1, 1);
    CHECK_EQ(weir_op_cancel(&op), 1);
}

TEST(a_release_of_what_is_not_held_changes_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct weir_op op = WEIR_OP_INIT;

    for (int i = 0; i < 4; i++) { /* free, held, with somebody waiting, closed */
        if (i == 1)
            CHECK_EQ(weir_sem_acquire(&sem, 2, WEIR_NO_WAIT), 0);
        if (i == 2)
            CHECK_EQ(weir_sem_wait_idle_async(&sem, &op, must_succeed), 0);
        if (i == 3)
            weir_sem_close(&sem);
        for (int j = 0; j < NEVERS; j++) {
            bool no_count = never[j] == 0 || never[j] > WEIR_SEM_MAX;
            CHECK_EQ(weir_sem_release(&sem, never[j]), no_count ? WEIR_EINVAL : WEIR_EOVERFLOW);
        }
        CHECK_EQ(weir_sem_release(&sem, 3), WEIR_EOVERFLOW);
        CHECK_SEM(sem, 3, i == 0 ? 3 : 1, i >= 2);
    }
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
}

TEST(a_semaphore_initialised_with_nothing_gives_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(0);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EINVAL);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, must_not_be_called), WEIR_EINVAL);
    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_FOREVER), 0);
    CHECK_SEM(sem, 0, 0, 0);
    CHECK_EQ(weir_sem_resize(&sem, 2), 0); /* and can be mended */
    CHECK_EQ(weir_sem_try_acquire(&sem, 2), 0);
}

TEST(a_semaphore_takes_any_deadline)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);

    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_sem_wait_idle(&sem, past[i]), 0);
        CHECK_EQ(weir_sem_acquire(&sem, 1, past[i]), 0);
        CHECK_EQ(weir_sem_acquire(&sem, 1, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_sem_wait_idle(&sem, past[i]), WEIR_ETIMEDOUT);
        CHECK_SEM(sem, 1, 0, 0);
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
    }
}

static void acquire_before_the_end_of_time(void *arg)
{
    CHECK_EQ(weir_sem_acquire(arg, 1, (struct weir_deadline){INT64_MAX - 1}), 0);
}

TEST(a_deadline_in_the_far_future_is_waited_for)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);

    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), 0);
    test_hold("park: about to sleep");
    test_spawn(acquire_before_the_end_of_time, &sem);
    test_reached("park: about to sleep");
    test_let_go("park: about to sleep");
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    test_join_all();
}

/* ---- event.h ---------------------------------------------------------------- */

TEST(events_take_any_deadline)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_revent revent = WEIR_REVENT_INIT;

    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_event_wait(&event, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_revent_wait(&revent, past[i]), WEIR_ETIMEDOUT);
    }
    CHECK(!weir_event_is_set(&event));
    CHECK(!weir_revent_is_set(&revent));
    weir_event_set(&event);
    weir_revent_set(&revent);
    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_event_wait(&event, past[i]), 0);
        CHECK_EQ(weir_revent_wait(&revent, past[i]), 0);
    }
}

/* ---- countdown.h ------------------------------------------------------------ */

TEST(a_countdown_cannot_start_above_its_maximum)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(5);

    for (int i = 1; i < SIZES; i++) {
        CHECK_EQ(weir_countdown_init(&countdown, sizes[i]), WEIR_EINVAL);
        CHECK_EQ(weir_countdown_value(&countdown), 5);
    }
    CHECK_EQ(weir_countdown_init(&countdown, WEIR_COUNTDOWN_MAX), 0);
    CHECK_EQ(weir_countdown_value(&countdown), WEIR_COUNTDOWN_MAX);
}

TEST(a_countdown_can_neither_rise_above_its_maximum_nor_fall_below_zero)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(5);
    struct weir_op op = WEIR_OP_INIT;

    for (int i = 0; i < 2; i++) { /* nobody waits, then somebody */
        CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX - 4), WEIR_EOVERFLOW);
        CHECK_EQ(weir_countdown_down(&countdown, 6), WEIR_EOVERFLOW);
        for (int j = 1; j < SIZES; j++) {
            CHECK_EQ(weir_countdown_up(&countdown, sizes[j]), WEIR_EOVERFLOW);
            CHECK_EQ(weir_countdown_down(&countdown, sizes[j]), WEIR_EOVERFLOW);
        }
        CHECK_EQ(weir_countdown_value(&countdown), 5);
        if (i == 0)
            CHECK_EQ(weir_countdown_wait_async(&countdown, &op, must_succeed), 0);
    }
    CHECK_EQ(weir_countdown_up(&countdown, WEIR_COUNTDOWN_MAX - 5), 0); /* just not above */
    CHECK_EQ(weir_countdown_down(&countdown, WEIR_COUNTDOWN_MAX), 0);
    CHECK_EQ(weir_countdown_down(&countdown, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
}

TEST(counting_by_nothing_does_nothing)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(0);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_countdown_down(&countdown, 0), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 0), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 2), 0);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &op, must_not_be_called), 0);
    CHECK_EQ(weir_countdown_down(&countdown, 0), 0);
    CHECK_EQ(weir_countdown_up(&countdown, 0), 0);
    CHECK_EQ(weir_countdown_value(&countdown), 2);
    CHECK_EQ(weir_op_cancel(&op), 1);
}

TEST(a_countdown_takes_any_deadline)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);

    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_countdown_wait(&countdown, past[i]), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_countdown_value(&countdown), 1);
    weir_countdown_clear(&countdown);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_countdown_wait(&countdown, past[i]), 0);
}

/* ---- latch.h ---------------------------------------------------------------- */

TEST(a_latch_cannot_be_for_nobody)
{
    struct weir_latch latch = WEIR_LATCH_INIT(2);

    CHECK_EQ(weir_latch_init(&latch, 0), WEIR_EINVAL);
    CHECK_EQ(weir_latch_arrive(&latch, 2), 0); /* two were still missing */
    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
}

TEST(a_latch_initialised_for_nobody_is_open)
{
    struct weir_latch latch = WEIR_LATCH_INIT(0);

    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 1), WEIR_EOVERFLOW);
    CHECK(!weir_latch_is_broken(&latch));
}

TEST(more_than_are_missing_cannot_arrive_at_a_latch)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_latch_arrive(&latch, 4), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_wait_async(&latch, &op, must_succeed), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 3), WEIR_EOVERFLOW); /* one of the three has come */
    CHECK_EQ(weir_latch_arrive(&latch, 0), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 2), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 0), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 1), WEIR_EOVERFLOW); /* open */
    CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), 0);
}

TEST(the_largest_latch_works)
{
    struct weir_latch latch = WEIR_LATCH_INIT(UINT32_MAX);

    CHECK_EQ(weir_latch_init(&latch, UINT32_MAX), 0);
    CHECK(!weir_latch_is_broken(&latch));
    CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX - 1), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 2), WEIR_EOVERFLOW);
    CHECK_EQ(weir_latch_wait(&latch, WEIR_NO_WAIT), 0); /* the last */
}

TEST(a_broken_latch_says_so_whatever_it_is_asked)
{
    for (int i = 0; i < PASTS; i++) {
        struct weir_latch latch = WEIR_LATCH_INIT(3);

        CHECK_EQ(weir_latch_wait(&latch, past[i]), WEIR_ETIMEDOUT);
        CHECK(weir_latch_is_broken(&latch));
        CHECK_EQ(weir_latch_wait(&latch, past[i]), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_wait(&latch, WEIR_FOREVER), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(&latch, 1), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(&latch, UINT32_MAX), WEIR_EBROKEN);
        CHECK_EQ(weir_latch_arrive(&latch, 0), WEIR_EBROKEN);
        weir_latch_abort(&latch);
        CHECK(weir_latch_is_broken(&latch));
    }
}

/* ---- barrier.h -------------------------------------------------------------- */

static const uint32_t no_parties[] = {0, (uint32_t)WEIR_BARRIER_MAX + 1, UINT32_MAX};

TEST(a_barrier_cannot_be_for_nobody_or_too_many)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(1);
    uint32_t index = 77;

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_barrier_init(&barrier, no_parties[i]), WEIR_EINVAL);
    CHECK_EQ(weir_barrier_wait(&barrier, WEIR_FOREVER, &index), 0); /* still for one */
    CHECK_EQ(index, 0);
    CHECK_EQ(weir_barrier_init(&barrier, WEIR_BARRIER_MAX), 0);
    CHECK_EQ(weir_barrier_wait(&barrier, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
}

TEST(a_barrier_initialised_for_nobody_or_too_many_lets_nobody_wait)
{
    for (int i = 0; i < 3; i++) {
        struct weir_barrier barrier = WEIR_BARRIER_INIT(no_parties[i]);
        struct weir_op op = WEIR_OP_INIT;
        uint32_t index = 77;

        CHECK_EQ(weir_barrier_wait(&barrier, WEIR_FOREVER, &index), WEIR_EINVAL);
        CHECK_EQ(weir_barrier_wait(&barrier, WEIR_NO_WAIT, &index), WEIR_EINVAL);
        CHECK_EQ(weir_barrier_enter(&barrier, WEIR_FOREVER, &index), WEIR_EINVAL);
        CHECK_EQ(weir_barrier_wait_async(&barrier, &op, must_not_be_called), WEIR_EINVAL);
        CHECK_EQ(index, 77);
        CHECK_EQ(weir_barrier_waiting(&barrier), 0);
        CHECK(!weir_barrier_is_broken(&barrier));
    }
}

TEST(a_barrier_takes_any_deadline_and_breaks_unless_it_is_complete)
{
    for (int i = 0; i < PASTS; i++) {
        struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
        struct weir_op op = WEIR_OP_INIT;
        uint32_t index = 77;

        CHECK_EQ(weir_barrier_wait_async(&barrier, &op, must_succeed), 0);
        CHECK_EQ(weir_barrier_wait(&barrier, past[i], &index), 0); /* the last */
        CHECK_EQ(index, 1);
        CHECK_EQ(weir_barrier_enter(&barrier, past[i], &index), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_barrier_wait(&barrier, past[i], &index), WEIR_EBROKEN);
        CHECK_EQ(index, 1);
    }
}

/* ---- mutex.h ---------------------------------------------------------------- */

TEST(a_mutex_takes_any_deadline)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;

    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_mutex_lock(&mutex, past[i]), 0);
        CHECK_EQ(weir_mutex_lock(&mutex, past[i]), WEIR_ETIMEDOUT);
        weir_mutex_unlock(&mutex);
    }
}

TEST(unlocking_a_free_mutex_stops_the_program)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;

    CHECK_ABORTS(weir_mutex_unlock(&mutex), "weir: BUG: ");
    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
    weir_mutex_unlock(&mutex);
    CHECK_ABORTS(weir_mutex_unlock(&mutex), "weir: BUG: ");
}

/* ---- cond.h ----------------------------------------------------------------- */

TEST(a_past_deadline_does_not_let_go_of_the_mutex)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct weir_cond cond = WEIR_COND_INIT;
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
    CHECK_EQ(weir_mutex_lock_async(&mutex, &op, must_not_be_called), 0);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_cond_wait(&cond, &mutex, past[i]), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_op_cancel(&op), 1);
    weir_cond_signal(&cond, 1); /* nobody is left behind in it */
    weir_mutex_unlock(&mutex);
}

struct place {
    struct weir_mutex mutex;
    struct weir_cond cond;
    int waiting, woken;
};

static void wait_for_signal(void *arg)
{
    struct place *p = arg;

    CHECK_EQ(weir_mutex_lock(&p->mutex, WEIR_FOREVER), 0);
    p->waiting++;
    CHECK_EQ(weir_cond_wait(&p->cond, &p->mutex, WEIR_FOREVER), 0);
    p->woken++;
    weir_mutex_unlock(&p->mutex);
}

static int read_under(struct place *p, const int *what)
{
    CHECK_EQ(weir_mutex_lock(&p->mutex, WEIR_FOREVER), 0);
    int value = *what;
    weir_mutex_unlock(&p->mutex);
    return value;
}

TEST(a_signal_is_for_any_number_of_waiters)
{
    struct place p = {.mutex = WEIR_MUTEX_INIT, .cond = WEIR_COND_INIT};

    weir_cond_signal(&p.cond, 0); /* nobody is there */
    weir_cond_signal(&p.cond, UINT32_MAX);
    weir_cond_broadcast(&p.cond);
    for (int i = 0; i < 3; i++)
        test_spawn(wait_for_signal, &p);
    EVENTUALLY(read_under(&p, &p.waiting) == 3);
    weir_cond_signal(&p.cond, 0);
    CHECK_EQ(read_under(&p, &p.woken), 0); /* one that was moved would have had its turn */
    weir_cond_signal(&p.cond, UINT32_MAX);
    test_join_all();
    CHECK_EQ(p.woken, 3);
}

/* ---- op.h ------------------------------------------------------------------- */

TEST(cancelling_what_does_not_wait_does_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op by_macro = WEIR_OP_INIT, by_call;

    weir_op_init(&by_call);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(weir_op_cancel(&by_macro), 0);
        CHECK_EQ(weir_op_cancel(&by_call), 0);
    }
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &by_call, must_not_be_called), 1);
    CHECK_EQ(weir_op_cancel(&by_call), 0);
    CHECK_SEM(sem, 1, 0, 0);
}

TEST(what_is_closed_or_broken_queues_no_callback)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_latch latch = WEIR_LATCH_INIT(2);
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct weir_op op = WEIR_OP_INIT;

    weir_sem_close(&sem);
    weir_latch_abort(&latch);
    weir_barrier_leave(&barrier, false);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, must_not_be_called), WEIR_ECLOSED);
    CHECK_EQ(weir_latch_wait_async(&latch, &op, must_not_be_called), WEIR_EBROKEN);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &op, must_not_be_called), WEIR_EBROKEN);
    CHECK_EQ(weir_op_cancel(&op), 0);
    CHECK_EQ(weir_barrier_waiting(&barrier), 0);
    CHECK_SEM(sem, 1, 1, 0);
}
