/* SPDX-License-Identifier: MIT */
/* Task-local values, as weir/task.h promises them, in that order. */
#include <weir/op.h>
#include <weir/sem.h>
#include <weir/task.h>

#include <pthread.h>
#include <stdlib.h>

#include "harness/test.h"
#include "task/workers.h"

static int destroyed;           /* calls of destroy, in all */
static uintptr_t destroyed_sum; /* of what they were called with */

static void reset_destroyed(void)
{
    __atomic_store_n(&destroyed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&destroyed_sum, 0, __ATOMIC_RELEASE);
}

static void destroy(void *value)
{
    __atomic_add_fetch(&destroyed_sum, (uintptr_t)value, __ATOMIC_RELEASE);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELEASE);
}

static int destroyed_now(void)
{
    return __atomic_load_n(&destroyed, __ATOMIC_ACQUIRE);
}

static void *value_of(uintptr_t n)
{
    return (void *)n; // NOLINT(performance-no-int-to-ptr): only ever compared
}

static struct weir_key new_key(void (*destroy_value)(void *))
{
    struct weir_key key = {0};

    CHECK_EQ(weir_key_create(&key, destroy_value), 0);
    return key;
}

static void run_as_task(weir_fn *fn, void *arg)
{
    CHECK_EQ(join(spawn(fn, arg)), 0);
}

/* ---- a value for each task ---------------------------------------------------- */

static struct weir_key shared_key;

static int set_own_value(void *arg)
{
    CHECK(weir_key_get(shared_key) == NULL);
    CHECK_EQ(weir_key_set(shared_key, arg), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK(weir_key_get(shared_key) == arg);
    return 0;
}

TASK_TEST(each_task_has_a_value_of_its_own)
{
    enum { TASKS = 20 };
    struct weir_task tasks[TASKS];

    shared_key = new_key(NULL);
    CHECK_EQ(weir_key_set(shared_key, value_of(1000)), 0);
    for (uintptr_t i = 0; i < TASKS; i++)
        CHECK_EQ(weir_task_spawn(set_own_value, value_of(i + 1), &tasks[i]), 0);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(weir_task_join(tasks[i], WEIR_FOREVER, NULL), 0);
    CHECK(weir_key_get(shared_key) == value_of(1000));
    return 0;
}

/* One task after the other on the same stack. */
TASK_TEST(a_new_task_begins_without_values)
{
    shared_key = new_key(NULL);
    for (uintptr_t i = 1; i < 10; i++)
        run_as_task(set_own_value, value_of(i));
    return 0;
}

TASK_TEST(keys_do_not_disturb_each_other)
{
    struct weir_key a = new_key(NULL), b = new_key(NULL);

    CHECK_EQ(weir_key_set(a, value_of(1)), 0);
    CHECK_EQ(weir_key_set(b, value_of(2)), 0);
    CHECK_EQ(weir_key_set(a, value_of(3)), 0);
    CHECK(weir_key_get(a) == value_of(3));
    CHECK(weir_key_get(b) == value_of(2));
    CHECK_EQ(weir_key_set(b, NULL), 0);
    CHECK(weir_key_get(b) == NULL);
    return 0;
}

/* ---- and for each thread -------------------------------------------------------- */

static void set_as_thread(void *arg)
{
    CHECK(weir_key_get(shared_key) == NULL);
    CHECK_EQ(weir_key_set(shared_key, arg), 0);
    CHECK(weir_key_get(shared_key) == arg);
}

TEST(each_plain_thread_has_a_value_of_its_own)
{
    shared_key = new_key(NULL);
    CHECK_EQ(weir_key_set(shared_key, value_of(99)), 0);
    for (uintptr_t i = 1; i <= 8; i++)
        test_spawn(set_as_thread, value_of(i));
    test_join_all();
    CHECK(weir_key_get(shared_key) == value_of(99));
}

static int expect_nothing(void *arg)
{
    (void)arg;
    CHECK(weir_key_get(shared_key) == NULL);
    return weir_key_set(shared_key, value_of(2));
}

TEST(a_task_does_not_see_the_values_of_its_thread)
{
    shared_key = new_key(NULL);
    CHECK_EQ(weir_key_set(shared_key, value_of(1)), 0);
    CHECK_EQ(weir_run(NULL, expect_nothing, NULL), 0);
    CHECK(weir_key_get(shared_key) == value_of(1));
}

static void *seen_in_callback;

static void look_in_callback(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, 0);
    seen_in_callback = weir_key_get(shared_key);
}

TASK_TEST(a_callback_sees_the_values_of_the_thread_that_runs_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;

    shared_key = new_key(NULL);
    seen_in_callback = &sem;
    CHECK_EQ(weir_key_set(shared_key, value_of(5)), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, look_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK(seen_in_callback == NULL);
    CHECK(weir_key_get(shared_key) == value_of(5));
    return 0;
}

/* ---- at the end ------------------------------------------------------------------ */

static int set_and_end(void *arg)
{
    return weir_key_set(shared_key, arg);
}

TASK_TEST(a_value_is_destroyed_when_its_task_ends)
{
    reset_destroyed();
    shared_key = new_key(destroy);
    run_as_task(set_and_end, value_of(7));
    CHECK_EQ(destroyed_now(), 1);
    CHECK_EQ(destroyed_sum, 7);
    return 0;
}

TASK_TEST(nothing_is_destroyed_where_the_value_is_null)
{
    reset_destroyed();
    shared_key = new_key(destroy);
    run_as_task(set_and_end, NULL);
    CHECK_EQ(destroyed_now(), 0);
    return 0;
}

static void set_and_end_as_thread(void *arg)
{
    CHECK_EQ(weir_key_set(shared_key, arg), 0);
}

TEST(a_value_is_destroyed_when_its_thread_ends)
{
    shared_key = new_key(destroy);
    test_spawn(set_and_end_as_thread, value_of(7));
    test_spawn(set_and_end_as_thread, value_of(8));
    test_join_all();
    CHECK_EQ(destroyed_now(), 2);
    CHECK_EQ(destroyed_sum, 15);
}

static struct weir_key other_key;
static void *seen_while_destroying;

static void look_while_destroying(void *value)
{
    CHECK(weir_key_get(shared_key) == NULL); /* the one that is being destroyed */
    seen_while_destroying = weir_key_get(other_key);
    destroy(value);
}

static int set_two(void *arg)
{
    (void)arg;
    CHECK_EQ(weir_key_set(shared_key, value_of(1)), 0);
    return weir_key_set(other_key, value_of(2));
}

static void set_two_as_thread(void *arg)
{
    CHECK_EQ(set_two(arg), 0);
}

TASK_TEST(destroy_sees_the_other_values_of_its_task)
{
    reset_destroyed();
    seen_while_destroying = NULL;
    shared_key = new_key(look_while_destroying);
    other_key = new_key(NULL);
    run_as_task(set_two, NULL);
    CHECK_EQ(destroyed_now(), 1);
    CHECK(seen_while_destroying == value_of(2));
    return 0;
}

TEST(destroy_sees_the_other_values_of_its_thread)
{
    shared_key = new_key(look_while_destroying);
    other_key = new_key(NULL);
    test_spawn(set_two_as_thread, NULL);
    test_join_all();
    CHECK(seen_while_destroying == value_of(2));
}

/* As long as there is one more to set, fewer than the limit. */
static void set_again(void *value)
{
    uintptr_t n = (uintptr_t)value;

    destroy(value);
    if (n > 1)
        CHECK_EQ(weir_key_set(shared_key, value_of(n - 1)), 0);
}

TASK_TEST(a_value_set_by_destroy_is_destroyed_in_its_turn)
{
    reset_destroyed();
    shared_key = new_key(set_again);
    run_as_task(set_and_end, value_of(3));
    CHECK_EQ(destroyed_now(), 3);
    CHECK_EQ(destroyed_sum, 3 + 2 + 1);
    return 0;
}

TEST(so_it_is_at_the_end_of_a_thread)
{
    shared_key = new_key(set_again);
    test_spawn(set_and_end_as_thread, value_of(3));
    test_join_all();
    CHECK_EQ(destroyed_now(), 3);
    CHECK_EQ(destroyed_sum, 3 + 2 + 1);
}

TASK_TEST(a_destroy_that_always_sets_another_is_given_up_on)
{
    reset_destroyed();
    shared_key = new_key(set_again);
    run_as_task(set_and_end, value_of(1000000));
    CHECK_EQ(destroyed_now(), 4);
    return 0;
}

static struct weir_sem sem_of_destroy;

static void wait_while_destroying(void *value)
{
    CHECK_EQ(weir_sem_acquire(&sem_of_destroy, 1, WEIR_FOREVER), 0);
    destroy(value);
}

TASK_TEST(destroy_may_wait_as_its_task)
{
    struct weir_task task;

    reset_destroyed();
    CHECK_EQ(weir_sem_init(&sem_of_destroy, 1), 0);
    CHECK_EQ(weir_sem_acquire(&sem_of_destroy, 1, WEIR_FOREVER), 0);
    shared_key = new_key(wait_while_destroying);
    CHECK_EQ(weir_task_spawn(set_and_end, value_of(1), &task), 0);
    while (weir_sem_waiting(&sem_of_destroy) == 0)
        CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(destroyed_now(), 0);
    CHECK_EQ(weir_sem_release(&sem_of_destroy, 1), 0);
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, NULL), 0);
    CHECK_EQ(destroyed_now(), 1);
    return 0;
}

/* ---- limits and errors ----------------------------------------------------------- */

TEST(there_are_so_many_keys_and_no_more)
{
    struct weir_key keys[WEIR_KEYS_MAX], one_more = {77};

    for (int i = 0; i < WEIR_KEYS_MAX; i++)
        CHECK_EQ(weir_key_create(&keys[i], NULL), 0);
    CHECK_EQ(weir_key_create(&one_more, NULL), WEIR_ENOSPC);
    CHECK_EQ(one_more.index_, 77);
    for (uintptr_t i = 0; i < WEIR_KEYS_MAX; i++)
        CHECK_EQ(weir_key_set(keys[i], value_of(i + 1)), 0);
    for (uintptr_t i = 0; i < WEIR_KEYS_MAX; i++)
        CHECK(weir_key_get(keys[i]) == value_of(i + 1));
}

TEST(a_key_that_was_not_created_is_refused)
{
    struct weir_key none = {0}, unborn = {1}, nonsense = {UINT32_MAX};

    CHECK_EQ(weir_key_set(none, &none), WEIR_EINVAL);
    CHECK_EQ(weir_key_set(unborn, &none), WEIR_EINVAL);
    CHECK_EQ(weir_key_set(nonsense, &none), WEIR_EINVAL);
    CHECK(weir_key_get(none) == NULL);
    CHECK(weir_key_get(unborn) == NULL);
    CHECK(weir_key_get(nonsense) == NULL);
}

TASK_TEST(without_memory_nothing_is_set)
{
    struct weir_key key = new_key(NULL);

    test_fail_allocation(1);
    CHECK_EQ(weir_key_set(key, value_of(1)), WEIR_ENOMEM);
    CHECK(weir_key_get(key) == NULL);
    CHECK_EQ(weir_key_set(key, value_of(1)), 0);
    CHECK(weir_key_get(key) == value_of(1));
    return 0;
}

TEST(nor_on_a_thread)
{
    struct weir_key key = new_key(NULL);

    test_fail_allocation(1);
    CHECK_EQ(weir_key_set(key, value_of(1)), WEIR_ENOMEM);
    CHECK(weir_key_get(key) == NULL);
    CHECK_EQ(weir_key_set(key, value_of(1)), 0);
}

TASK_TEST(a_null_needs_no_memory)
{
    struct weir_key key = new_key(NULL);

    test_fail_allocation(1);
    CHECK_EQ(weir_key_set(key, NULL), 0);
    test_fail_allocation(0);
    return 0;
}
