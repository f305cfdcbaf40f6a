/* SPDX-License-Identifier: MIT */
/* Random programs of tasks, threads and callbacks over all primitives, on several
 * workers, with deadlines, and with cancels from a thread that strikes at random.  What
 * each of them sees must fit together, and at the end nothing may be missing. */
#include <weir/weir.h>

#include <stdio.h>

#include "harness/sanitizer.h"
#include "task/tasks.h"

enum { PARTIES = 3, PERMITS = 4, TASKS = 24, THREADS = 3, ERRANDS = 4, STEPS = 400 };

/* ---- the world ------------------------------------------------------------------------------------ */

static struct world {
    struct weir_sem sem;
    int held;

    struct weir_mutex mutex; /* guards: */
    int inside, coins;
    struct weir_cond more_coins;

    struct weir_countdown countdown;
    struct weir_barrier barrier;
    int indices[PARTIES];

    struct weir_revent revent;

    int earned, spent, struck, ended, over;
} world;

static void count(int *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
}

static int peek(const int *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* ---- actors --------------------------------------------------------------------------------------- */

struct errand {
    struct weir_op op;
    void (*finish)(int result);
    int pending;
};

struct actor {
    struct errand errands[ERRANDS];
    uint64_t random; /* its own: tasks of one thread take turns at random */
    struct weir_task task;
    int began; /* its handle may be used */
    uint64_t up;
};

static struct actor actors[TASKS + THREADS];

static uint32_t draw(struct actor *a, uint32_t below)
{
    a->random = a->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(a->random >> 33) % below;
}

static struct weir_deadline some_deadline(struct actor *a)
{
    uint32_t what = draw(a, 8);

    return what == 0 ? WEIR_NO_WAIT : weir_within((1 + draw(a, 100)) * WEIR_US);
}

static void check_result(int r)
{
    CHECK(r == 0 || r == WEIR_ETIMEDOUT || r == WEIR_ECANCELED);
}

/* ---- deeds ---------------------------------------------------------------------------------------- */

static int use_permits(struct actor *a)
{
    uint32_t n = 1 + draw(a, PERMITS);
    int r = weir_sem_acquire(&world.sem, n, some_deadline(a));

    check_result(r);
    if (r < 0)
        return r;
    CHECK(__atomic_add_fetch(&world.held, (int)n, __ATOMIC_RELAXED) <= PERMITS);
    r = draw(a, 2) ? weir_task_yield() : 0;
    __atomic_sub_fetch(&world.held, (int)n, __ATOMIC_RELAXED);
    CHECK_EQ(weir_sem_release(&world.sem, n), 0);
    return r;
}

static int earn(struct actor *a)
{
    int r = weir_mutex_lock(&world.mutex, WEIR_FOREVER);

    if (r < 0)
        return r;
    CHECK_EQ(world.inside++, 0);
    world.coins++;
    world.earned++;
    weir_cond_signal(&world.more_coins, 1 + draw(a, 2));
    world.inside--;
    weir_mutex_unlock(&world.mutex);
    return 0;
}

static int spend(struct actor *a)
{
    struct weir_deadline deadline = some_deadline(a);
    int r = weir_mutex_lock(&world.mutex, WEIR_FOREVER);

    if (r < 0)
        return r;
    CHECK_EQ(world.inside++, 0);
    while (r == 0 && world.coins == 0) {
        world.inside--;
        r = weir_cond_wait(&world.more_coins, &world.mutex, deadline);
        CHECK_EQ(world.inside++, 0); /* ours again, whatever it says */
    }
    check_result(r);
    if (r == 0) {
        world.coins--;
        world.spent++;
    }
    world.inside--;
    weir_mutex_unlock(&world.mutex);
    return r;
}

static int count_up_and_down(struct actor *a)
{
    uint64_t n = 1 + draw(a, 5);

    if (a->up < n) {
        CHECK_EQ(weir_countdown_up(&world.countdown, n), 0);
        a->up += n;
    } else {
        CHECK_EQ(weir_countdown_down(&world.countdown, n), 0);
        a->up -= n;
    }
    return 0;
}

static int wait_for_zero(struct actor *a)
{
    int r = weir_countdown_wait(&world.countdown, some_deadline(a));

    check_result(r);
    CHECK(r < 0 || a->up == 0);
    return r;
}

static void met(int result)
{
    if (result >= 0) {
        CHECK(result < PARTIES);
        count(&world.indices[result]);
        return;
    }
    CHECK(result == WEIR_ETIMEDOUT || result == WEIR_EBROKEN || result == WEIR_ECANCELED);
    weir_barrier_reset(&world.barrier);
}

static int meet(struct actor *a)
{
    uint32_t index = 0;
    int r = weir_barrier_wait(&world.barrier, some_deadline(a), &index);

    met(r < 0 ? r : (int)index);
    return r == WEIR_ECANCELED ? r : 0;
}

static int set_and_clear(struct actor *a)
{
    (void)a;
    weir_revent_set(&world.revent);
    weir_revent_clear(&world.revent);
    return 0;
}

static int wait_for_set(struct actor *a)
{
    int r = weir_revent_wait(&world.revent, some_deadline(a));

    check_result(r);
    return r;
}

static int child_uses_permits(void *seed)
{
    struct actor own = {.random = (uintptr_t)seed};

    return use_permits(&own);
}

static void *some_seed(struct actor *a)
{
    return (void *)(uintptr_t)draw(a, UINT32_MAX);
}

static int use_child(struct actor *a)
{
    struct weir_task task;
    struct weir_shield shield;
    int r = weir_task_spawn(child_uses_permits, some_seed(a), &task);

    if (r == WEIR_ECONTEXT)
        return 0; /* a thread */
    CHECK_EQ(r, 0);
    r = weir_task_join(task, some_deadline(a), NULL);
    if (r == 0)
        return 0;
    check_result(r);
    CHECK_EQ(weir_task_cancel(task), 0);
    weir_shield_begin(&shield, WEIR_FOREVER);
    finish(task);
    weir_shield_end(&shield);
    return r;
}

static int use_scope(struct actor *a)
{
    struct weir_scope scope;

    if (weir_runtime_self() == NULL)
        return 0;
    weir_scope_open(&scope, some_deadline(a));
    for (uint32_t i = draw(a, 4); i > 0; i--)
        CHECK_EQ(weir_scope_spawn(&scope, child_uses_permits, some_seed(a)), 0);
    if (draw(a, 4) == 0)
        weir_scope_cancel(&scope);
    int r = weir_scope_close(&scope);
    check_result(r);
    return r;
}

/* ---- errands: callbacks ------------------------------------------------------------------------------ */

static void called_back(struct weir_op *op, int result)
{
    struct errand *e = (struct errand *)op;

    CHECK_EQ(peek(&e->pending), 1); /* exactly once, and not after it was taken back */
    e->finish(result);
    __atomic_store_n(&e->pending, 0, __ATOMIC_RELEASE);
}

static void give_back(int result)
{
    if (result == 0)
        CHECK_EQ(weir_sem_release(&world.sem, 1), 0);
}

static void be_inside(int result)
{
    if (result < 0)
        return;
    CHECK_EQ(world.inside++, 0);
    world.inside--;
    weir_mutex_unlock(&world.mutex);
}

static void ignore(int result)
{
    (void)result;
}

static int begin_errand(struct actor *a)
{
    struct errand *e = &a->errands[draw(a, ERRANDS)];
    int r, had = 0;

    if (peek(&e->pending)) {
        if (weir_op_cancel(&e->op) == 1) {
            e->finish(WEIR_ECANCELED);
            __atomic_store_n(&e->pending, 0, __ATOMIC_RELEASE);
        }
        return 0;
    }
    __atomic_store_n(&e->pending, 1, __ATOMIC_RELAXED);
    switch (draw(a, 4)) {
    case 0:
        e->finish = give_back;
        r = weir_sem_acquire_async(&world.sem, 1, &e->op, called_back);
        break;
    case 1:
        e->finish = be_inside;
        r = weir_mutex_lock_async(&world.mutex, &e->op, called_back);
        break;
    case 2:
        e->finish = met;
        r = weir_barrier_wait_async(&world.barrier, &e->op, called_back);
        had = PARTIES - 1;
        break;
    default:
        e->finish = ignore;
        r = weir_countdown_wait_async(&world.countdown, &e->op, called_back);
    }
    if (r != 0) {
        e->finish(r == 1 ? had : r);
        __atomic_store_n(&e->pending, 0, __ATOMIC_RELEASE);
    }
    return 0;
}

/* Those still under way when the actor ends are taken back, or waited for. */
static void end_errands(struct actor *a)
{
    for (struct errand *e = a->errands; e < a->errands + ERRANDS; e++) {
        if (!peek(&e->pending))
            continue;
        if (weir_op_cancel(&e->op) == 1)
            e->finish(WEIR_ECANCELED);
        else
            EVENTUALLY(!peek(&e->pending));
    }
}

/* ---- programs ----------------------------------------------------------------------------------------- */

static int (*const deeds[])(struct actor *) = {
    use_permits, earn,          spend,        count_up_and_down, wait_for_zero, meet,
    use_child,   set_and_clear, wait_for_set, use_scope,         begin_errand,  use_permits,
};

enum { DEEDS = sizeof deeds / sizeof *deeds };

static int act(void *arg)
{
    struct actor *a = arg;
    int r = 0;

    for (int i = 0; i < STEPS && r != WEIR_ECANCELED; i++)
        r = deeds[draw(a, DEEDS)](a);
    if (r == WEIR_ECANCELED) /* and it stays so */
        CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    end_errands(a);
    CHECK_EQ(weir_countdown_down(&world.countdown, a->up), 0);
    count(&world.ended);
    return r == WEIR_ECANCELED;
}

static void act_as_thread(void *arg)
{
    CHECK_EQ(act(arg), 0);
}

/* Cancel some tasks, now and then. */
static void strike(void *arg)
{
    (void)arg;
    while (!peek(&world.over)) {
        struct actor *a = &actors[test_random(TASKS)];

        if (test_random(4) == 0 && peek(&a->began)) {
            int r = weir_task_cancel(a->task);

            CHECK(r == 0 || r == WEIR_EINVAL);
            count(&world.struck);
        }
        test_yield();
    }
}

static void run_world(uint32_t workers)
{
    struct weir_runtime *runtime = open_runtime(workers);
    int cancelled = 0;

    world = (struct world){.sem = WEIR_SEM_INIT(PERMITS), .barrier = WEIR_BARRIER_INIT(PARTIES)};
    for (int i = 0; i < TASKS + THREADS; i++)
        actors[i] = (struct actor){.random = test_random(UINT32_MAX)};
    test_spawn(strike, NULL);
    for (int i = 0; i < TASKS; i++) {
        actors[i].task = start_in(runtime, act, &actors[i]);
        __atomic_store_n(&actors[i].began, 1, __ATOMIC_RELEASE);
    }
    for (int i = TASKS; i < TASKS + THREADS; i++)
        test_spawn(act_as_thread, &actors[i]);
    for (int i = 0; i < TASKS; i++)
        cancelled += finish(actors[i].task);
    __atomic_store_n(&world.over, 1, __ATOMIC_RELEASE);
    test_join_all();
    CHECK(cancelled <= peek(&world.struck));
    CHECK_EQ(world.ended, TASKS + THREADS);
    close_runtime(runtime);
}

static void check_world(void)
{
    CHECK_EQ(weir_sem_available(&world.sem), PERMITS);
    CHECK_EQ(weir_sem_waiting(&world.sem), 0);
    CHECK_EQ(weir_mutex_try_lock(&world.mutex), 0);
    CHECK_EQ(world.coins, world.earned - world.spent);
    CHECK_EQ(queued(&world.more_coins), 0);
    CHECK_EQ(weir_countdown_value(&world.countdown), 0);
    CHECK_EQ(queued(&world.countdown), 0);
    CHECK_EQ(weir_barrier_waiting(&world.barrier), 0);
    CHECK_EQ(queued(&world.revent), 0);
    for (int i = 1; i < PARTIES; i++)
        CHECK_EQ(world.indices[i], world.indices[0]);
}

TEST_WITHIN(tasks_threads_and_callbacks_keep_every_promise_on_one_worker, 60)
{
    for (int i = test_scaled(5); i > 0; i--) {
        run_world(1);
        check_world();
    }
}

TEST_WITHIN(tasks_threads_and_callbacks_keep_every_promise_on_three_workers, 60)
{
    for (int i = test_scaled(5); i > 0; i--) {
        run_world(3);
        check_world();
    }
}

/* ---- handing over under load ---------------------------------------------------------------------------- */

static struct weir_sem narrow;
static int done_in_turns;

static int go_through(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(weir_sem_acquire(&narrow, 1, WEIR_FOREVER), 0);
        __atomic_add_fetch(&done_in_turns, 1, __ATOMIC_RELAXED);
        CHECK_EQ(weir_sem_release(&narrow, 1), 0);
    }
    return 0;
}

static int send_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < test_scaled(1000); i++)
        CHECK_EQ(weir_task_spawn(go_through, NULL, NULL), 0);
    return 0;
}

TEST_WITHIN(many_tasks_of_two_workers_all_get_through_a_narrow_semaphore, 60)
{
    struct weir_run_options two = {.workers = 2};

    CHECK_EQ(weir_sem_init(&narrow, 8), 0);
    CHECK_EQ(weir_run(&two, send_many, NULL), 0);
    CHECK_EQ(done_in_turns, 100 * test_scaled(1000));
    CHECK_EQ(weir_sem_available(&narrow), 8);
}

/* ---- a great many ----------------------------------------------------------------------------------------- */

static struct weir_event gate;

static int wait_at_gate(void *arg)
{
    (void)arg;
    return weir_event_wait(&gate, WEIR_FOREVER);
}

static uint64_t free_bytes(void)
{
    unsigned long long kib = 0;
    char text[128];
    FILE *f = fopen("/proc/meminfo", "r");

    CHECK(f != NULL);
    while (fgets(text, sizeof text, f))
        if (sscanf(text, "MemAvailable: %llu", &kib) == 1)
            break;
    fclose(f);
    return kib * 1024;
}

/* A million in a soak (WEIR_TEST_SCALE=10), where there is room for their stacks. */
TEST_WITHIN(tasks_beyond_number_wait_at_once, 30)
{
    AS_TASK(tasks_beyond_number_wait_at_once);
    int n = test_scaled(TEST_ASAN || TEST_TSAN ? 1000 : 100000);

    if (n > 100000 && free_bytes() < UINT64_C(6) << 30)
        n = 100000;
    if (n > 1000000)
        n = 1000000;
    printf("%d tasks\n", n);
    for (int i = 0; i < n; i++)
        CHECK_EQ(weir_task_spawn(wait_at_gate, NULL, NULL), 0);
    YIELD_UNTIL(queued(&gate) == (uint32_t)n);
    CHECK_EQ(live_tasks(weir_runtime_self()), n + 1);
    weir_event_set(&gate);
    YIELD_UNTIL(live_tasks(weir_runtime_self()) == 1);
}
