/* SPDX-License-Identifier: MIT */
/* Runtimes: how they begin, what they do with their workers, and how they end. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "harness/sanitizer.h"
#include "task/tasks.h"

static int give_back(void *arg)
{
    return *(int *)arg;
}

static int wait_for(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int entries_of(const char *directory)
{
    DIR *d = opendir(directory);
    int n = 0;

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A thread that was joined is still listed for a moment; and TSan has some of its own, as
 * qemu has one. */
static void check_threads(int n)
{
    EVENTUALLY(TEST_TSAN || entries_of("/proc/self/task") == n + TEST_QEMU);
}

/* ---- weir_run ---------------------------------------------------------------------- */

TEST(run_returns_what_the_first_task_returned)
{
    int good = 17, bad = WEIR_EBUSY;

    CHECK_EQ(weir_run(NULL, give_back, &good), 17);
    CHECK_EQ(weir_run(NULL, give_back, &bad), WEIR_EBUSY);
}

static int say_late(void *arg)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_task_sleep(weir_within(WEIR_MS)), 0);
        CHECK_EQ(weir_task_yield(), 0);
    }
    return say_it(arg);
}

static int spawn_late_sayers(void *arg)
{
    CHECK_EQ(weir_task_spawn(say_late, arg, NULL), 0);
    CHECK_EQ(weir_task_detach(start(say_late, arg)), 0);
    start(say_late, arg); /* nobody will join it */
    say('.');
    return 5;
}

TEST(run_returns_only_when_every_task_has_ended)
{
    CHECK_EQ(weir_run(NULL, spawn_late_sayers, "a"), 5);
    CHECK_STR(said, ".aaa");
}

static int spawn_a_generation(void *arg)
{
    uintptr_t left = (uintptr_t)arg;

    say('0' + (char)left);
    if (left > 0)
        CHECK_EQ(weir_task_spawn(spawn_a_generation, (void *)(left - 1), NULL), 0);
    return 0;
}

TEST(run_waits_for_tasks_that_are_spawned_after_the_first_has_ended)
{
    CHECK_EQ(weir_run(NULL, spawn_a_generation, (void *)5), 0);
    CHECK_STR(said, "543210");
}

static void run_here(struct weir_op *op, int result)
{
    CHECK_EQ(weir_run(NULL, do_nothing, NULL), WEIR_ECONTEXT);
    note(op, result);
}

TEST(run_inside_a_task_or_callback_is_refused)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};

    if (weir_runtime_self()) {
        CHECK_EQ(weir_run(NULL, do_nothing, NULL), WEIR_ECONTEXT);
        return;
    }
    run_as_task(run_inside_a_task_or_callback_is_refused);
    CHECK_EQ(weir_event_wait_async(&event, &caller.op, run_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
}

TEST(a_run_leaves_no_descriptor_and_no_thread_behind)
{
    struct weir_run_options two = {.workers = 2};

    CHECK_EQ(weir_run(NULL, do_nothing, NULL), 0);
    int descriptors = entries_of("/proc/self/fd");
    for (int i = 0; i < 20; i++)
        CHECK_EQ(weir_run(i % 2 ? &two : NULL, do_nothing, NULL), 0);
    CHECK_EQ(entries_of("/proc/self/fd"), descriptors);
    check_threads(1);
}

TEST(after_a_run_the_thread_is_a_plain_one_again)
{
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_run(NULL, do_nothing, NULL), 0);
    CHECK(weir_runtime_self() == NULL);
    CHECK_EQ(weir_event_wait(&never, weir_within(WEIR_MS)), WEIR_ETIMEDOUT); /* it may wait */
}

/* ---- options ------------------------------------------------------------------------ */

#define CHECK_RUN(want, ...)                                        \
    do {                                                            \
        struct weir_run_options options_ = {__VA_ARGS__};           \
        struct weir_runtime *none_ = NULL;                          \
        int r_ = weir_run(&options_, do_nothing, NULL);             \
                                                                    \
        CHECK_EQ(r_, (want));                                       \
        if (r_ < 0) {                                               \
            CHECK_EQ(weir_runtime_open(&options_, &none_), (want)); \
            CHECK(none_ == NULL);                                   \
        }                                                           \
    } while (0)

TEST(options_that_cannot_be_are_refused)
{
    CHECK_RUN(WEIR_EINVAL, .stack_bytes = 1);
    CHECK_RUN(WEIR_EINVAL, .stack_bytes = 16 * 1024 - 1);
    CHECK_RUN(WEIR_EINVAL, .stack_bytes = SIZE_MAX);
    CHECK_RUN(WEIR_EINVAL, .workers = UINT32_MAX);
    CHECK_RUN(WEIR_EINVAL, .flags = 2);
    CHECK_RUN(WEIR_EINVAL, .flags = UINT32_MAX);
}

TEST(options_of_zeroes_and_small_ones_are_allowed)
{
    CHECK_RUN(0, .workers = 0);
    CHECK_RUN(0, .workers = 1, .stack_bytes = 16 * 1024, .max_tasks = 1);
    CHECK_RUN(0, .workers = 4, .stack_bytes = 16 * 1024 + 1);
    CHECK_RUN(0, .flags = WEIR_RUN_CATCH_OVERFLOW);
}

/* ---- a runtime beside the program ---------------------------------------------------- */

TEST(close_waits_for_every_task)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_runtime_spawn(runtime, say_late, "a", NULL), 0);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
    CHECK_STR(said, "aaa");
}

TEST(a_runtime_is_closed_the_moment_it_was_opened)
{
    for (int i = test_scaled(300); i > 0; i--)
        close_runtime(open_runtime(1 + (uint32_t)i % 2));
}

TEST(a_runtime_is_closed_the_moment_its_last_task_has_ended)
{
    for (int i = test_scaled(300); i > 0; i--) {
        struct weir_runtime *runtime = open_runtime(1 + (uint32_t)i % 2);

        finish(start_in(runtime, do_nothing, NULL));
        close_runtime(runtime);
    }
}

static int end_when_cancelled(void *arg)
{
    int r = weir_event_wait(arg, WEIR_FOREVER);

    say(r == WEIR_ECANCELED ? 'c' : '?');
    return r;
}

static int tidy_up_when_cancelled(void *arg)
{
    struct weir_shield shield;

    CHECK_EQ(weir_event_wait(arg, WEIR_FOREVER), WEIR_ECANCELED);
    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_task_sleep(weir_within(2 * WEIR_MS)), 0);
    weir_shield_end(&shield);
    say('t');
    return 0;
}

TEST(close_cancels_those_left_at_its_deadline_and_waits_for_them)
{
    struct weir_runtime *runtime = open_runtime(2);
    struct weir_event never = WEIR_EVENT_INIT;

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_runtime_spawn(runtime, tidy_up_when_cancelled, &never, NULL), 0);
    EVENTUALLY(queued(&never) == 3);
    CHECK_EQ(weir_runtime_close(runtime, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_STR(said, "ttt");
}

TEST(close_with_a_deadline_in_the_past_cancels_tasks_that_have_not_even_started)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event never = WEIR_EVENT_INIT;

    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_runtime_spawn(runtime, end_when_cancelled, &never, NULL), 0);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_STR(said, "ccc");
}

static int spawn_when_cancelled(void *event)
{
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_task_spawn(end_when_cancelled, event, NULL), 0);
    say('s');
    return 0;
}

TEST(close_cancels_those_too_that_are_spawned_by_whom_it_has_cancelled)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_runtime_spawn(runtime, spawn_when_cancelled, &never, NULL), 0);
    EVENTUALLY(queued(&never) == 1);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_STR(said, "sc");
}

static int close_it(void *runtime)
{
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_NO_WAIT), WEIR_ECONTEXT);
    return 0;
}

static struct weir_runtime *closed_in_callback;

static void close_here(struct weir_op *op, int result)
{
    close_it(closed_in_callback);
    note(op, result);
}

TEST(close_inside_a_task_or_callback_is_refused_and_nothing_happens)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event event = WEIR_EVENT_INIT, gate = WEIR_EVENT_INIT;
    struct caller caller = {.op = WEIR_OP_INIT};
    struct weir_task waits = start_in(runtime, wait_for, &gate);

    CHECK_EQ(finish(start_in(runtime, close_it, runtime)), 0);
    closed_in_callback = runtime;
    CHECK_EQ(weir_event_wait_async(&event, &caller.op, close_here), 0);
    weir_event_set(&event);
    CHECK_EQ(caller.times, 1);
    CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0);
    weir_event_set(&gate);
    CHECK_EQ(finish(waits), 0); /* it was not cancelled */
    close_runtime(runtime);
}

static int spawn_into(void *runtime)
{
    CHECK(weir_runtime_self() != runtime);
    return finish(start_in(runtime, do_nothing, NULL));
}

TEST(a_task_of_one_runtime_spawns_into_another_and_joins)
{
    struct weir_runtime *one = open_runtime(1), *two = open_runtime(1);

    CHECK_EQ(finish(start_in(one, spawn_into, two)), 0);
    close_runtime(one);
    close_runtime(two);
}

/* Keeps its worker, without waiting for anything. */
static int keep_busy(void *gate)
{
    say('<');
    EVENTUALLY(weir_event_is_set(gate));
    say('>');
    return 0;
}

TEST(what_comes_from_threads_runs_in_the_order_in_which_it_came)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event gate = WEIR_EVENT_INIT;

    CHECK_EQ(weir_runtime_spawn(runtime, keep_busy, &gate, NULL), 0);
    EVENTUALLY(how_much_was_said() == 1);
    for (const char *c = "abcdef"; *c; c++)
        CHECK_EQ(weir_runtime_spawn(runtime, say_it, (void *)c, NULL), 0);
    weir_event_set(&gate);
    close_runtime(runtime);
    CHECK_STR(said, "<>abcdef");
}

struct exchange {
    struct weir_sem there, back;
    int rounds;
};

static int serve(void *arg)
{
    struct exchange *x = arg;

    for (int i = 0; i < x->rounds; i++) {
        CHECK_EQ(weir_sem_acquire(&x->there, 1, WEIR_FOREVER), 0);
        CHECK_EQ(weir_sem_release(&x->back, 1), 0);
    }
    return 0;
}

static int ask(void *arg)
{
    struct exchange *x = arg;

    for (int i = 0; i < x->rounds; i++) {
        CHECK_EQ(weir_sem_release(&x->there, 1), 0);
        CHECK_EQ(weir_sem_acquire(&x->back, 1, WEIR_FOREVER), 0);
    }
    return 0;
}

TEST(tasks_of_two_runtimes_share_semaphores)
{
    struct weir_runtime *one = open_runtime(1), *two = open_runtime(1);
    struct exchange x = {WEIR_SEM_INIT(1), WEIR_SEM_INIT(1), test_scaled(2000)};

    CHECK_EQ(weir_sem_try_acquire(&x.there, 1), 0);
    CHECK_EQ(weir_sem_try_acquire(&x.back, 1), 0);
    struct weir_task server = start_in(one, serve, &x), client = start_in(two, ask, &x);
    CHECK_EQ(finish(server), 0);
    CHECK_EQ(finish(client), 0);
    close_runtime(one);
    close_runtime(two);
}

/* ---- limits -------------------------------------------------------------------------- */

static int spawn_up_to_three(void *gate)
{
    struct weir_task a = start(wait_for, gate), b = start(wait_for, gate), c = {0};

    CHECK_EQ(weir_task_spawn(wait_for, gate, &c), WEIR_ENOSPC);
    CHECK_EQ(weir_task_spawn(wait_for, gate, NULL), WEIR_ENOSPC);
    CHECK_EQ(weir_runtime_spawn(weir_runtime_self(), wait_for, gate, &c), WEIR_ENOSPC);
    CHECK(c.slot_ == NULL);
    weir_event_set(gate);
    CHECK_EQ(finish(a), 0);
    c = start(wait_for, gate); /* there is room again */
    CHECK_EQ(finish(b), 0);
    CHECK_EQ(finish(c), 0);
    return 0;
}

TEST(beyond_max_tasks_there_is_no_room_until_one_ends)
{
    struct weir_run_options three = {.max_tasks = 3};
    struct weir_event gate = WEIR_EVENT_INIT;

    CHECK_EQ(weir_run(&three, spawn_up_to_three, &gate), 0);
}

enum { ROOM = 50 };

struct crowd {
    struct weir_runtime *runtime;
    struct weir_event gate;
    int spawned;
};

static void spawn_as_many_as_fit(void *arg)
{
    struct crowd *c = arg;
    int r;

    while ((r = weir_runtime_spawn(c->runtime, wait_for, &c->gate, NULL)) == 0)
        __atomic_add_fetch(&c->spawned, 1, __ATOMIC_RELAXED);
    CHECK_EQ(r, WEIR_ENOSPC);
}

TEST(max_tasks_holds_however_many_threads_spawn)
{
    struct weir_run_options options = {.workers = 2, .max_tasks = ROOM};

    for (int round = test_scaled(20); round > 0; round--) {
        struct crowd crowd = {.gate = WEIR_EVENT_INIT};

        CHECK_EQ(weir_runtime_open(&options, &crowd.runtime), 0);
        for (int i = 0; i < 4; i++)
            test_spawn(spawn_as_many_as_fit, &crowd);
        test_join_all();
        CHECK_EQ(crowd.spawned, ROOM);
        weir_event_set(&crowd.gate);
        close_runtime(crowd.runtime);
    }
}

TEST(a_task_that_was_joined_has_made_room_for_another)
{
    struct weir_run_options one = {.max_tasks = 1};
    struct weir_runtime *runtime;

    CHECK_EQ(weir_runtime_open(&one, &runtime), 0);
    for (int i = test_scaled(2000); i > 0; i--)
        CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0);
    close_runtime(runtime);
}

/* ---- out of memory --------------------------------------------------------------------- */

/* What a program sees of it: each call worked or said so, and nothing else. */
static int short_of_memory;

static int use_a_bit(void *arg)
{
    struct weir_task task;
    int result, r = weir_task_spawn(do_nothing, arg, &task);

    if (r == 0) {
        CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
        CHECK(result == 0 || result == WEIR_ENOMEM);
        r = result;
    }
    CHECK(r == 0 || r == WEIR_ENOMEM);
    short_of_memory |= r < 0;
    return 0;
}

/* Let the first, second, third ... allocation fail until there is none left that can. */
static int fail_each_allocation_of(const struct weir_run_options *options)
{
    for (int n = 1;; n++) {
        short_of_memory = 0;
        test_fail_allocation(n);
        int r = weir_run(options, use_a_bit, NULL);
        test_fail_allocation(0);
        CHECK(r == 0 || r == WEIR_ENOMEM);
        if (r == 0 && !short_of_memory)
            return n - 1;
    }
}

TEST(a_run_without_memory_says_so)
{
    CHECK(fail_each_allocation_of(NULL) >= 5); /* runtime, worker, records, stacks, timers */
}

TEST(a_run_of_two_workers_without_memory_says_so)
{
    struct weir_run_options two = {.workers = 2};
    int descriptors = entries_of("/proc/self/fd");

    CHECK(fail_each_allocation_of(&two) >= 5);
    CHECK_EQ(entries_of("/proc/self/fd"), descriptors);
    check_threads(1);
}

TEST(a_runtime_that_cannot_be_opened_for_lack_of_memory_leaves_nothing_behind)
{
    struct weir_run_options two = {.workers = 2};
    struct weir_runtime *runtime = NULL;
    int n = 0, r, descriptors = entries_of("/proc/self/fd");

    do {
        test_fail_allocation(++n);
        r = weir_runtime_open(&two, &runtime);
        CHECK(r == 0 || (r == WEIR_ENOMEM && runtime == NULL));
        CHECK(r == 0 || entries_of("/proc/self/fd") == descriptors);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK(n > 2);
    CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0);
    close_runtime(runtime);
}

TEST(a_spawn_without_memory_for_a_record_changes_nothing)
{
    AS_TASK(a_spawn_without_memory_for_a_record_changes_nothing);
    struct weir_task tasks[2000], task;
    struct weir_event gate = WEIR_EVENT_INIT;
    int n = 0, r;

    test_fail_allocation(1);
    do { /* until those at hand are used up */
        r = weir_task_spawn(wait_for, &gate, &tasks[n]);
    } while (r == 0 && ++n < 2000);
    CHECK_EQ(r, WEIR_ENOMEM);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1 + n);
    CHECK_EQ(weir_task_spawn(wait_for, &gate, &task), 0);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
    while (n > 0)
        CHECK_EQ(finish(tasks[--n]), 0);
}

TEST(a_task_that_cannot_be_given_a_stack_ends_with_that_or_waits_for_one)
{
    AS_TASK(a_task_that_cannot_be_given_a_stack_ends_with_that_or_waits_for_one);
    struct weir_task task = start(do_nothing, NULL);
    int result;

    test_fail_allocation(1); /* room for one more timer, or a stack: whichever comes first */
    CHECK_EQ(weir_task_join(task, WEIR_FOREVER, &result), 0);
    CHECK(result == 0 || result == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(finish(start(do_nothing, NULL)), 0);
}

TEST(many_tasks_each_end_or_say_why_not_whichever_allocation_fails)
{
    AS_TASK(many_tasks_each_end_or_say_why_not_whichever_allocation_fails);
    enum { MANY = 200, FAILURES = 12 };
    static struct weir_task tasks[MANY];

    for (int n = 1; n <= FAILURES; n++) {
        struct weir_event gate = WEIR_EVENT_INIT;
        int spawned = 0, failed = 0, result;

        test_fail_allocation(n);
        for (int i = 0; i < MANY; i++) {
            int r = weir_task_spawn(wait_for, &gate, &tasks[spawned]);

            CHECK(r == 0 || r == WEIR_ENOMEM);
            spawned += r == 0;
        }
        let_others_run();
        weir_event_set(&gate);
        for (int i = 0; i < spawned; i++) {
            CHECK_EQ(weir_task_join(tasks[i], WEIR_FOREVER, &result), 0);
            CHECK(result == 0 || result == WEIR_ENOMEM);
            failed += result < 0;
        }
        test_fail_allocation(0);
        CHECK(failed <= 1);
        CHECK(spawned >= MANY - 1);
    }
}

/* ---- workers --------------------------------------------------------------------------- */

static int note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return 0;
}

TEST(one_worker_is_the_thread_that_runs)
{
    AS_TASK(one_worker_is_the_thread_that_runs);
    pthread_t thread;

    CHECK_EQ(finish(start(note_thread, &thread)), 0);
    CHECK(pthread_equal(thread, pthread_self()));
    check_threads(1);
}

static int keep_a_worker(void *arg)
{
    struct weir_runtime_stats stats;

    (void)arg;
    check_threads(2);
    forget_what_was_said();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_task_spawn(say_it, "x", NULL), 0);
    /* This worker does not get on.  It is left one, which it is taken to be about to run. */
    EVENTUALLY(how_much_was_said() >= 3);
    weir_runtime_stats(weir_runtime_self(), &stats);
    CHECK(stats.stolen >= 3);
    return 0;
}

TEST(an_idle_worker_takes_over_what_a_busy_one_has_not_started)
{
    struct weir_run_options two = {.workers = 2};

    for (int i = test_scaled(100); i > 0; i--) /* at whatever the other is, searching or asleep */
        CHECK_EQ(weir_run(&two, keep_a_worker, NULL), 0);
}

/* Started on one worker, woken from everywhere: always back on the same thread. */
struct wanderer {
    struct weir_sem *sem;
    int moves, started_on_other;
};

static pthread_t root_thread;

static int stay(void *arg)
{
    struct wanderer *w = arg;
    pthread_t home = pthread_self();

    w->started_on_other = !pthread_equal(home, root_thread);
    for (int i = 0; i < 200; i++) {
        switch (test_random(4)) {
        case 0:
            CHECK_EQ(weir_task_yield(), 0);
            break;
        case 1:
            CHECK_EQ(weir_task_sleep(weir_within(WEIR_US)), 0);
            break;
        case 2:
            CHECK_EQ(weir_sem_acquire(w->sem, 1, WEIR_FOREVER), 0);
            w->moves += !pthread_equal(home, pthread_self());
            CHECK_EQ(weir_sem_release(w->sem, 1), 0);
            break;
        default:
            CHECK_EQ(weir_task_join(start(do_nothing, NULL), WEIR_FOREVER, NULL), 0);
        }
        w->moves += !pthread_equal(home, pthread_self());
    }
    return 0;
}

static int started_elsewhere;

static int watch_wanderers(void *arg)
{
    enum { WANDERERS = 40 };
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct wanderer wanderers[WANDERERS];
    struct weir_task tasks[WANDERERS];

    (void)arg;
    root_thread = pthread_self();
    for (int i = 0; i < WANDERERS; i++) {
        wanderers[i] = (struct wanderer){.sem = &sem};
        tasks[i] = start(stay, &wanderers[i]);
    }
    for (int i = 0; i < WANDERERS; i++) {
        CHECK_EQ(finish(tasks[i]), 0);
        CHECK_EQ(wanderers[i].moves, 0);
        started_elsewhere += wanderers[i].started_on_other;
    }
    return 0;
}

TEST(a_started_task_stays_on_its_thread)
{
    struct weir_run_options three = {.workers = 3};

    do { /* until some have started on another worker: else it says nothing */
        CHECK_EQ(weir_run(&three, watch_wanderers, NULL), 0);
    } while (started_elsewhere == 0);
}

static int count_in_tree(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;

    if (depth == 0)
        return 1;
    struct weir_task left = start(count_in_tree, (void *)(depth - 1));
    struct weir_task right = start(count_in_tree, (void *)(depth - 1));
    return 1 + finish(left) + finish(right);
}

TEST(two_workers_lose_no_task_of_a_tree)
{
    struct weir_run_options two = {.workers = 2};

    for (int i = test_scaled(10); i > 0; i--)
        CHECK_EQ(weir_run(&two, count_in_tree, (void *)8), 511);
}

static int read_mask(void *arg)
{
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, arg), 0);
    return 0;
}

TEST(workers_with_threads_of_their_own_take_no_signals_but_their_own_faults)
{
    struct weir_runtime *runtime = open_runtime(1);
    sigset_t mask;

    CHECK_EQ(finish(start_in(runtime, read_mask, &mask)), 0);
    CHECK(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1) &&
          sigismember(&mask, SIGPIPE));
    CHECK(!sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGABRT));
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK(!sigismember(&mask, SIGTERM)); /* and here all is as it was */
    close_runtime(runtime);
}

/* ---- statistics -------------------------------------------------------------------------- */

TEST(statistics_count_tasks_switches_and_stacks)
{
    AS_TASK(statistics_count_tasks_switches_and_stacks);
    struct weir_runtime *runtime = weir_runtime_self();
    struct weir_runtime_stats s, later;
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task tasks[3];

    for (int i = 0; i < 3; i++)
        tasks[i] = start(wait_for, &gate);
    let_others_run();
    weir_runtime_stats(runtime, &s);
    CHECK_EQ(s.live, 4);
    CHECK_EQ(s.spawned, 4);
    CHECK_EQ(s.ended, 0);
    CHECK_EQ(s.stacks, 4);
    CHECK(s.stacks_unguarded <= s.stacks);
    CHECK_EQ(s.stack_bytes, 64 * 1024);
    CHECK_EQ(s.stolen, 0);
    CHECK(s.switches >= 4);

    weir_event_set(&gate);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(finish(tasks[i]), 0);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_MS)), 0);
    weir_runtime_stats(runtime, &later);
    CHECK_EQ(later.live, 1);
    CHECK_EQ(later.spawned, 4);
    CHECK_EQ(later.ended, 3);
    CHECK_EQ(later.stacks, 4);
    CHECK(later.switches > s.switches);
    CHECK(later.sleeps > s.sleeps);
}

TEST(statistics_can_be_read_by_threads)
{
    struct weir_runtime *runtime = open_runtime(2);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task a = start_in(runtime, wait_for, &gate), b = start_in(runtime, wait_for, &gate);

    CHECK_EQ(live_tasks(runtime), 2);
    weir_event_set(&gate);
    finish(a);
    finish(b);
    EVENTUALLY(live_tasks(runtime) == 0);
    close_runtime(runtime);
}

/* ---- no runtime ---------------------------------------------------------------------------- */

TEST(a_program_that_only_uses_primitives_starts_no_thread)
{
    struct things things;
    struct weir_inbox *inbox;

    things_init(&things);
    CHECK_EQ(weir_inbox_open(&inbox), 0);
    for (int i = 0; i < WAYS_TO_WAIT; i++) {
        const struct way_to_wait *way = &ways_to_wait[i];

        CHECK_WAY(way, way->wait(&things, weir_within(WEIR_US)), WEIR_ETIMEDOUT);
    }
    weir_inbox_close(inbox);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_US)), 0);
    check_threads(1);
}
