/* SPDX-License-Identifier: MIT */
/* weir_offload, as weir/task.h promises it, in that order. */
#include <weir/event.h>
#include <weir/op.h>
#include <weir/sem.h>
#include <weir/task.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "harness/sanitizer.h"
#include "harness/test.h"
#include "task/sched.h"
#include "task/workers.h"

enum { MOST = 3 }; /* threads; see workers.h */

static int seven(void *arg)
{
    (void)arg;
    return 7;
}

/* A call that stays until it is let go, as a system call would. */
struct stay {
    struct weir_event begun, go;
    int runs_after; /* set when it has ended */
};

static void stay_init(struct stay *s)
{
    *s = (struct stay){WEIR_EVENT_INIT, WEIR_EVENT_INIT, 0};
}

static int stay(void *arg)
{
    struct stay *s = arg;

    weir_event_set(&s->begun);
    CHECK_EQ(weir_event_wait(&s->go, WEIR_FOREVER), 0);
    __atomic_store_n(&s->runs_after, 1, __ATOMIC_RELEASE);
    return 5;
}

static int offload_stay(void *arg)
{
    return weir_offload(stay, arg, WEIR_FOREVER);
}

/* ---- on another thread ----------------------------------------------------------- */

static int is_other_thread(void *arg)
{
    return !pthread_equal(*(pthread_t *)arg, pthread_self()) && weir_runtime_self() == NULL;
}

TASK_TEST(a_call_runs_on_another_thread_and_its_result_comes_back)
{
    pthread_t self = pthread_self();

    CHECK_EQ(weir_offload(is_other_thread, &self, WEIR_FOREVER), 1);
    CHECK_EQ(weir_offload(seven, NULL, WEIR_FOREVER), 7);
    CHECK(pthread_equal(self, pthread_self()));
    return 0;
}

static int fail(void *arg)
{
    (void)arg;
    return -123;
}

TASK_TEST(so_does_a_failure)
{
    CHECK_EQ(weir_offload(fail, NULL, WEIR_FOREVER), -123);
    return 0;
}

TASK_TEST(other_tasks_run_meanwhile)
{
    struct stay s;

    stay_init(&s);
    struct weir_task one = spawn(offload_stay, &s);
    CHECK_EQ(weir_event_wait(&s.begun, WEIR_FOREVER), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(weir_task_yield(), 0);
    weir_event_set(&s.go);
    CHECK_EQ(join(one), 5);
    return 0;
}

static int nothing_unusual_is_blocked(void *arg)
{
    sigset_t blocked;

    (void)arg;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    return sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGPIPE) &&
           sigismember(&blocked, SIGCHLD) && !sigismember(&blocked, SIGSEGV);
}

TASK_TEST(its_threads_take_no_signals)
{
    sigset_t before, after;

    pthread_sigmask(SIG_BLOCK, NULL, &before);
    CHECK_EQ(weir_offload(nothing_unusual_is_blocked, NULL, WEIR_FOREVER), 1);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    CHECK_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    return 0;
}

/* ---- how many at once ------------------------------------------------------------ */

static int running, most_running;

static int count_running(void *arg)
{
    int now = __atomic_add_fetch(&running, 1, __ATOMIC_ACQ_REL), most = load(&most_running);

    (void)arg;
    while (now > most && !__atomic_compare_exchange_n(&most_running, &most, now, 0,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    for (int i = 0; i < 10; i++)
        sched_yield();
    __atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL);
    return 1;
}

static int offload_count_running(void *arg)
{
    return weir_offload(count_running, arg, WEIR_FOREVER);
}

static int threads_of_process(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = -2; /* . and .. */

    CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* One is there already, and so is the thread that TSan starts with the first. */
static int threads_with_one_of_the_pool(void)
{
    CHECK_EQ(weir_offload(seven, NULL, WEIR_FOREVER), 7);
    return threads_of_process();
}

TASK_TEST(at_most_so_many_run_at_once)
{
    enum { TASKS = 40 };
    struct weir_task tasks[TASKS];

    int before = threads_with_one_of_the_pool();
    most_running = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = spawn(offload_count_running, NULL);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(join(tasks[i]), 1);
    CHECK(load(&most_running) <= MOST);
    CHECK(threads_of_process() < before + MOST);
    return 0;
}

TASK_TEST(as_many_as_that_do_run_at_once)
{
    struct stay s[MOST];
    struct weir_task tasks[MOST];

    for (int i = 0; i < MOST; i++) {
        stay_init(&s[i]);
        tasks[i] = spawn(offload_stay, &s[i]);
    }
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(weir_event_wait(&s[i].begun, WEIR_FOREVER), 0);
    for (int i = 0; i < MOST; i++)
        weir_event_set(&s[i].go);
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(join(tasks[i]), 5);
    return 0;
}

TASK_TEST(one_after_the_other_needs_one_thread)
{
    int before = threads_with_one_of_the_pool();

    for (int i = 0; i < 100; i++)
        CHECK_EQ(weir_offload(seven, NULL, WEIR_FOREVER), 7);
    CHECK_EQ(threads_of_process(), before);
    return 0;
}

static int order[20], order_count;

static int note_order(void *arg)
{
    order[__atomic_fetch_add(&order_count, 1, __ATOMIC_ACQ_REL)] = *(int *)arg;
    return 0;
}

static int offload_note_order(void *arg)
{
    return weir_offload(note_order, arg, WEIR_FOREVER);
}

static int calls_begin_in_the_order_in_which_they_came_task(void *arg)
{
    struct stay s;
    struct weir_task tasks[20];
    int numbers[20];

    (void)arg;
    stay_init(&s);
    struct weir_task first = spawn(offload_stay, &s);
    CHECK_EQ(weir_event_wait(&s.begun, WEIR_FOREVER), 0);
    for (int i = 0; i < 20; i++) {
        numbers[i] = i;
        tasks[i] = spawn(offload_note_order, &numbers[i]);
    }
    CHECK_EQ(weir_task_yield(), 0); /* now they wait in order */
    weir_event_set(&s.go);
    CHECK_EQ(join(first), 5);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(join(tasks[i]), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(order[i], i);
    return 0;
}

TEST(calls_begin_in_the_order_in_which_they_came)
{
    struct weir_run_options options = {.max_offload = 1};

    CHECK_EQ(weir_run(&options, calls_begin_in_the_order_in_which_they_came_task, NULL), 0);
}

/* ---- deadline and cancel: until it has started ------------------------------------- */

/* Every thread is busy until `go`. */
static void fill(struct stay s[MOST], struct weir_task tasks[MOST])
{
    for (int i = 0; i < MOST; i++) {
        stay_init(&s[i]);
        tasks[i] = spawn(offload_stay, &s[i]);
    }
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(weir_event_wait(&s[i].begun, WEIR_FOREVER), 0);
}

static void empty(struct stay s[MOST], struct weir_task tasks[MOST])
{
    for (int i = 0; i < MOST; i++)
        weir_event_set(&s[i].go);
    for (int i = 0; i < MOST; i++)
        CHECK_EQ(join(tasks[i]), 5);
}

static int must_not_run(void *arg)
{
    (void)arg;
    test_fail(__FILE__, __LINE__, "must_not_run was called");
}

static int offload_must_not_run(void *arg)
{
    (void)arg;
    return weir_offload(must_not_run, NULL, WEIR_FOREVER);
}

TASK_TEST(a_call_that_cannot_start_in_time_is_not_made)
{
    struct stay s[MOST];
    struct weir_task tasks[MOST];

    fill(s, tasks);
    CHECK_EQ(weir_offload(must_not_run, NULL, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_offload(must_not_run, NULL, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    empty(s, tasks);
    CHECK_EQ(weir_offload(seven, NULL, WEIR_FOREVER), 7);
    return 0;
}

TASK_TEST(a_call_that_can_start_at_once_is_made_and_waited_for_whatever_the_deadline)
{
    CHECK_EQ(weir_offload(seven, NULL, WEIR_NO_WAIT), 7);
    return 0;
}

TASK_TEST(a_task_cancelled_before_the_start_does_not_start_it)
{
    struct stay s[MOST];
    struct weir_task tasks[MOST];

    fill(s, tasks);
    struct weir_task late = spawn(offload_must_not_run, NULL);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(weir_task_cancel(late), 0);
    CHECK_EQ(join(late), WEIR_ECANCELED);
    empty(s, tasks);
    return 0;
}

static int cancel_self_and_offload(void *arg)
{
    (void)arg;
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    return weir_offload(must_not_run, NULL, WEIR_FOREVER);
}

TASK_TEST(a_cancelled_task_does_not_start_one_even_if_there_is_room)
{
    CHECK_EQ(join(spawn(cancel_self_and_offload, NULL)), WEIR_ECANCELED);
    return 0;
}

TASK_TEST(a_call_that_has_started_is_waited_for_though_its_task_is_cancelled)
{
    struct stay s;

    stay_init(&s);
    struct weir_task one = spawn(offload_stay, &s);
    CHECK_EQ(weir_event_wait(&s.begun, WEIR_FOREVER), 0);
    CHECK_EQ(weir_task_cancel(one), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(weir_task_join(one, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    weir_event_set(&s.go);
    CHECK_EQ(join(one), 5);
    CHECK_EQ(load(&s.runs_after), 1);
    return 0;
}

/* ---- when there is nothing to be had ------------------------------------------------ */

TASK_TEST(without_memory_the_call_is_not_made)
{
    int n = 0, r;

    do {
        test_fail_allocation(++n);
        r = weir_offload(seven, NULL, WEIR_FOREVER);
        CHECK(r == 7 || r == WEIR_ENOMEM);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK(n > 2); /* the pool, and the thread */
    CHECK_EQ(weir_offload(seven, NULL, WEIR_FOREVER), 7);
    return 0;
}

static int without_threads_task(void *arg)
{
    struct rlimit none = {0, 0}, before;

    (void)arg;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    none.rlim_max = before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
    int r = weir_offload(must_not_run, NULL, WEIR_FOREVER);
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK(r == WEIR_EAGAIN || r == WEIR_ENOMEM);
    return weir_offload(seven, NULL, WEIR_FOREVER) == 7 ? 0 : -1;
}

TEST(without_a_thread_to_be_had_the_call_is_not_made)
{
    SKIP_IF(TEST_QEMU, "qemu has no RLIMIT_AS");
    if (!TEST_ASAN && !TEST_TSAN) /* which need address space themselves */
        CHECK_EQ(weir_run(NULL, without_threads_task, NULL), 0);
}

/* ---- elsewhere ---------------------------------------------------------------------- */

static int is_this_thread(void *arg)
{
    return pthread_equal(*(pthread_t *)arg, pthread_self()) != 0;
}

TEST(on_a_plain_thread_it_is_called_directly)
{
    pthread_t self = pthread_self();

    CHECK_EQ(weir_offload(is_this_thread, &self, WEIR_FOREVER), 1);
    CHECK_EQ(weir_offload(is_this_thread, &self, WEIR_NO_WAIT), 1);
}

static int offload_again(void *arg)
{
    pthread_t self = pthread_self();

    (void)arg;
    return weir_offload(is_this_thread, &self, WEIR_FOREVER);
}

TASK_TEST(a_call_that_offloads_is_called_directly)
{
    CHECK_EQ(weir_offload(offload_again, NULL, WEIR_FOREVER), 1);
    return 0;
}

static int in_callback;

static void offload_in_callback(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
    in_callback = weir_offload(must_not_run, NULL, WEIR_FOREVER);
}

TEST(in_a_callback_it_is_refused)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, offload_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(in_callback, WEIR_ECONTEXT);
}

/* ---- all together --------------------------------------------------------------------- */

static int offload_many(void *arg)
{
    int n = 0;

    for (int i = 0; i < *(int *)arg; i++) {
        int r = weir_offload(count_running, NULL,
                             test_random(4) ? WEIR_FOREVER : weir_within(10 * WEIR_US));

        CHECK(r == 1 || r == WEIR_ETIMEDOUT);
        n += r == 1;
    }
    return n;
}

TASK_TEST(many_tasks_share_few_threads)
{
    enum { TASKS = 30 };
    struct weir_task tasks[TASKS];
    int each = test_scaled(20);

    most_running = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = spawn(offload_many, &each);
    for (int i = 0; i < TASKS; i++)
        CHECK(join(tasks[i]) > 0);
    CHECK(load(&most_running) <= MOST);
    return 0;
}

TASK_TEST(what_runs_is_counted)
{
    struct stay s;

    stay_init(&s);
    struct weir_task one = spawn(offload_stay, &s);
    CHECK_EQ(weir_event_wait(&s.begun, WEIR_FOREVER), 0);
    CHECK_EQ(atomic_get(&weir_runtime_self()->offloading), 1);
    weir_event_set(&s.go);
    CHECK_EQ(join(one), 5);
    CHECK_EQ(atomic_get(&weir_runtime_self()->offloading), 0);
    return 0;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST(its_threads_are_gone_with_the_runtime)
{
    test_spawn(do_nothing, NULL); /* with which TSan's comes */
    test_join_all();
    int before = threads_of_process();

    for (int i = 0; i < 3; i++)
        as_many_as_that_do_run_at_once();
    EVENTUALLY(threads_of_process() <= before); /* joined, but perhaps still on their way out */
}
