/* SPDX-License-Identifier: MIT */
/* Signals as something to wait for: the promises of weir_signal_wait in weir/io.h. */
#include <weir/io.h>
#include <weir/op.h>
#include <weir/sem.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "harness/test.h"
#include "task/workers.h"

/* ---- helpers ---------------------------------------------------------------- */

static sigset_t set_of(int first, int second)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, first);
    if (second)
        sigaddset(&set, second);
    return set;
}

/* As a program does that wants to wait for signals: before anything else.  Two at least,
 * whatever thread they are sent to. */
__attribute__((constructor)) static void block_signals(void)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2);

    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void send_signal(int signo)
{
    CHECK_EQ(kill(getpid(), signo), 0);
}

static int wait_for_usr1(void *arg)
{
    sigset_t set = set_of(SIGUSR1, 0);

    (void)arg;
    return weir_signal_wait(&set, WEIR_FOREVER);
}

static int wait_for_usr2(void *arg)
{
    sigset_t set = set_of(SIGUSR2, 0);

    (void)arg;
    return weir_signal_wait(&set, WEIR_FOREVER);
}

static struct weir_task spawn_waiting(weir_fn *fn)
{
    int before = waiting();
    struct weir_task one = spawn(fn, NULL);

    TASK_EVENTUALLY(waiting() == before + 1);
    return one;
}

/* ---- tasks -------------------------------------------------------------------- */

TASK_TEST(a_task_waits_for_a_signal)
{
    struct weir_task one = spawn_waiting(wait_for_usr1);

    send_signal(SIGUSR1);
    CHECK_EQ(join(one), SIGUSR1);
    return 0;
}

TASK_TEST(one_that_has_come_before_is_taken_at_once)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2);

    send_signal(SIGUSR2);
    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), SIGUSR2);
    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), WEIR_ETIMEDOUT); /* and is gone */
    send_signal(SIGUSR1);
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), SIGUSR1);
    return 0;
}

TASK_TEST(each_gets_the_signal_that_it_waits_for)
{
    struct weir_task one = spawn_waiting(wait_for_usr1), two = spawn_waiting(wait_for_usr2);

    send_signal(SIGUSR2);
    CHECK_EQ(join(two), SIGUSR2);
    CHECK_EQ(weir_task_join(one, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    send_signal(SIGUSR1);
    CHECK_EQ(join(one), SIGUSR1);
    return 0;
}

/* Both wake up, and one waits again. */
TASK_TEST(of_several_who_wait_one_gets_it)
{
    struct weir_task tasks[] = {spawn_waiting(wait_for_usr1), spawn_waiting(wait_for_usr1)};
    int first = -1;

    send_signal(SIGUSR1);
    while (first < 0) {
        for (int i = 0; i < 2; i++)
            if (weir_task_join(tasks[i], WEIR_NO_WAIT, NULL) == 0)
                first = i;
        CHECK_EQ(weir_task_yield(), 0);
    }
    TASK_EVENTUALLY(waiting() == 1);
    CHECK_EQ(weir_task_join(tasks[!first], WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    send_signal(SIGUSR1);
    CHECK_EQ(join(tasks[!first]), SIGUSR1);
    return 0;
}

TASK_TEST(queued_signals_are_taken_one_by_one)
{
    sigset_t set = set_of(SIGRTMIN, 0);

    for (int i = 0; i < 3; i++)
        CHECK_EQ(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), SIGRTMIN);
    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    return 0;
}

TASK_TEST(the_wait_ends_at_its_deadline)
{
    sigset_t set = set_of(SIGUSR1, 0);

    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_signal_wait(&set, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    return 0;
}

TASK_TEST(the_wait_is_ended_by_a_cancel)
{
    struct weir_task one = spawn_waiting(wait_for_usr1);

    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    return 0;
}

static int wait_while_cancelled(void *arg)
{
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    return wait_for_usr1(arg);
}

TASK_TEST(a_cancelled_task_takes_none_even_if_one_is_there)
{
    sigset_t set = set_of(SIGUSR1, 0);

    send_signal(SIGUSR1);
    CHECK_EQ(join(spawn(wait_while_cancelled, NULL)), WEIR_ECANCELED);
    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), SIGUSR1);
    return 0;
}

static int refuse_unblocked(void *arg)
{
    sigset_t set = set_of(SIGUSR1, SIGSEGV); /* which no thread of weir's blocks either */

    (void)arg;
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), WEIR_EINVAL);
    set = set_of(SIGKILL, 0);
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), WEIR_EINVAL);
    return 0;
}

TASK_TEST(one_that_is_not_blocked_is_refused)
{
    return refuse_unblocked(NULL);
}

TASK_TEST(an_empty_set_only_waits)
{
    sigset_t none;

    sigemptyset(&none);
    CHECK_EQ(weir_signal_wait(&none, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    return 0;
}

static int signals_are_blocked(void *arg)
{
    sigset_t blocked;

    (void)arg;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    CHECK(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGHUP));
    return 0;
}

TEST(the_workers_of_a_runtime_block_what_a_program_may_wait_for)
{
    struct weir_run_options options = {.workers = 2};
    struct weir_runtime *runtime;
    struct weir_task tasks[10];

    CHECK_EQ(weir_runtime_open(&options, &runtime), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(weir_runtime_spawn(runtime, signals_are_blocked, NULL, &tasks[i]), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(join(tasks[i]), 0);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
}

/* ---- threads ------------------------------------------------------------------ */

struct waiter_thread {
    pthread_t id;
    int begun, result;
};

static void wait_as_thread(void *arg)
{
    struct waiter_thread *w = arg;

    w->id = pthread_self();
    store(&w->begun, 1);
    store(&w->result, wait_for_usr1(NULL));
}

TEST(a_thread_waits_for_a_signal)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2);
    struct waiter_thread w = {0};

    CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_signal_wait(&set, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(refuse_unblocked(NULL), 0);
    send_signal(SIGUSR2);
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), SIGUSR2);
    test_spawn(wait_as_thread, &w);
    EVENTUALLY(load(&w.begun));
    send_signal(SIGUSR1);
    EVENTUALLY(load(&w.result) == SIGUSR1);
}

static int handled;

static void handle(int signo)
{
    (void)signo;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELEASE);
}

TEST(a_handler_of_another_signal_does_not_end_it)
{
    struct sigaction action = {.sa_handler = handle};
    struct waiter_thread w = {0};

    sigaction(SIGHUP, &action, NULL);
    test_spawn(wait_as_thread, &w);
    EVENTUALLY(load(&w.begun));
    for (int i = 1; i <= 5; i++)
        EVENTUALLY(pthread_kill(w.id, SIGHUP) == 0 && load(&handled) >= i);
    CHECK_EQ(load(&w.result), 0);
    send_signal(SIGUSR1);
    EVENTUALLY(load(&w.result) == SIGUSR1);
}

/* ---- callbacks ---------------------------------------------------------------- */

static int results[2];

static void wait_in_callback(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
    results[0] = wait_for_usr1(NULL);
    results[1] = wait_for_usr2(NULL);
}

TASK_TEST(in_a_callback_one_is_taken_if_it_is_there)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;

    send_signal(SIGUSR1);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, wait_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(results[0], SIGUSR1);
    CHECK_EQ(results[1], WEIR_ECONTEXT);
    return 0;
}
