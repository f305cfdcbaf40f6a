/* SPDX-License-Identifier: MIT */
/* Closing what somebody waits for: the promises of weir_close in weir/io.h, and the moments
 * at which a close can meet a wait. */
#include <weir/io.h>
#include <weir/op.h>
#include <weir/sem.h>

#include <limits.h>
#include <pthread.h>

#include "harness/test.h"
#include "task/descriptors.h"
#include "task/workers.h"

/* ---- closing -------------------------------------------------------------------------- */

TASK_TEST(closing_ends_all_waits_for_the_descriptor)
{
    struct weir_task tasks[4];
    int fds[2];

    new_pair(fds, SOCK_NONBLOCK);
    fill(fds[0]);
    struct call in = {.fd = fds[0], .events = WEIR_READABLE};
    struct call out = {.fd = fds[0], .events = WEIR_WRITABLE};
    tasks[0] = spawn_waiting(call_wait, &in);
    tasks[1] = spawn_waiting(call_wait, &out);
    tasks[2] = spawn_waiting(call_read, &in);
    tasks[3] = spawn_waiting(call_write, &out);
    CHECK_EQ(weir_close(fds[0]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(join(tasks[i]), -EBADF);
    CHECK_EQ(fcntl(fds[0], F_GETFD), -1);
    close(fds[1]);
    return 0;
}

TASK_TEST(closing_a_listener_ends_accept)
{
    struct sockaddr_in address;
    struct call c = {.fd = listen_tcp(&address, SOCK_NONBLOCK, 8)};
    struct weir_task one = spawn_waiting(call_accept, &c);

    CHECK_EQ(weir_close(c.fd), 0);
    CHECK_EQ(join(one), -EBADF);
    return 0;
}

TASK_TEST(closing_leaves_waits_for_others_alone)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call c = {.fd = others[IN], .events = WEIR_READABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(weir_close(fds[OUT]), 0);
    CHECK_EQ(waiting(), 1);
    put(others[OUT], "x");
    CHECK_EQ(join(one), WEIR_READABLE);
    close_both(others);
    return 0;
}

TASK_TEST(closing_what_is_not_open_is_an_error)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_close(fds[0]), 0);
    CHECK_EQ(weir_close(fds[1]), 0);
    CHECK_EQ(weir_close(fds[1]), -EBADF);
    CHECK_EQ(weir_close(-1), -EBADF);
    CHECK_EQ(weir_close(INT_MAX), -EBADF);
    return 0;
}

/* A task of a runtime beside the test's own thread, which waits. */
struct other {
    struct weir_runtime *runtime;
    struct weir_task waiter;
    struct call call;
};

static void open_other(struct other *o, uint32_t workers, weir_fn *fn, int fd)
{
    struct weir_run_options options = {.workers = workers};

    o->call = (struct call){.fd = fd, .events = WEIR_READABLE};
    CHECK_EQ(weir_runtime_open(&options, &o->runtime), 0);
    CHECK_EQ(weir_runtime_spawn(o->runtime, fn, &o->call, &o->waiter), 0);
    EVENTUALLY(waiting_in(o->runtime) == 1);
}

static int close_other(struct other *o)
{
    int result = join(o->waiter);

    CHECK_EQ(weir_runtime_close(o->runtime, WEIR_FOREVER), 0);
    return result;
}

static int close_it(void *arg)
{
    return weir_close(*(int *)arg);
}

TEST(a_thread_closes_what_a_task_waits_for)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

TEST(a_task_closes_what_one_of_another_runtime_waits_for)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    CHECK_EQ(weir_run(NULL, close_it, &fds[IN]), 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

static pthread_t worker_of_waiter;

static int note_worker_and_read(void *arg)
{
    worker_of_waiter = pthread_self();
    return call_read(arg);
}

static int close_unless_on_that_worker(void *arg)
{
    return pthread_equal(worker_of_waiter, pthread_self()) ? 1 : close_it(arg);
}

TEST(a_task_closes_what_one_on_another_worker_waits_for)
{
    struct other o;
    int fds[2], r;

    new_pipe(fds, 0);
    open_other(&o, 2, note_worker_and_read, fds[IN]);
    do {
        struct weir_task closer;

        CHECK_EQ(weir_runtime_spawn(o.runtime, close_unless_on_that_worker, &fds[IN], &closer), 0);
        r = join(closer);
    } while (r == 1);
    CHECK_EQ(r, 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

static int closed_by_callback;

static void close_in_callback(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, 0);
    CHECK_EQ(weir_close(closed_by_callback), 0);
}

TASK_TEST(a_callback_closes_what_a_task_waits_for)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;
    int fds[2];

    new_pipe(fds, 0);
    closed_by_callback = fds[IN];
    struct weir_task one = spawn_waiting(call_read, &(struct call){.fd = fds[IN]});
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, close_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(join(one), -EBADF);
    close(fds[OUT]);
    return 0;
}

/* Make the number fd mean what `to` does; `to` is closed. */
static void reopen_as(int fd, int to)
{
    CHECK_EQ(dup2(to, fd), fd);
    close(to);
}

TASK_TEST(a_number_that_is_used_again_is_another_descriptor)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call before = {.fd = fds[IN]}, after = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &before);
    CHECK_EQ(weir_close(fds[IN]), 0);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn(call_read, &after);
    CHECK_EQ(join(one), -EBADF);
    TASK_EVENTUALLY(waiting() == 1);
    put(others[OUT], "new");
    CHECK_EQ(join(two), 3);
    CHECK_STR(after.text, "new");
    close(others[OUT]);
    close_both(fds);
    return 0;
}

/* epoll goes on watching a file of which there is a copy, under the number that it had. */
ONE_WORKER_TEST(what_happens_to_a_copy_of_the_old_one_does_not_end_a_wait_for_the_new)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call old = {.fd = fds[IN]}, new = {.fd = fds[IN], .events = WEIR_READABLE};
    int copy = dup(fds[IN]);
    struct weir_task one = spawn_waiting(call_read, &old);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(join(one), -EBADF);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn_waiting(call_wait, &new);
    put(fds[OUT], "to the copy");
    CHECK_EQ(weir_fd_wait(copy, WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE); /* epoll knows */
    CHECK_EQ(waiting(), 1);
    put(others[OUT], "x");
    CHECK_EQ(join(two), WEIR_READABLE);
    close(copy);
    close(others[OUT]);
    close_both(fds);
    return 0;
}

/* As promised to those who do not use weir_close: not at once, but not never. */
ONE_WORKER_TEST(a_descriptor_closed_behind_our_back_is_missed_when_its_number_is_waited_for_again)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call before = {.fd = fds[IN]}, after = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &before);
    close(fds[IN]);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn(call_read, &after);
    CHECK_EQ(join(one), -EBADF);
    put(others[OUT], "new");
    CHECK_EQ(join(two), 3);
    close(others[OUT]);
    close_both(fds);
    return 0;
}

static int read_for_a_while(void *arg)
{
    struct call *c = arg;

    return (int)weir_read(c->fd, c->text, sizeof c->text, weir_within(20 * WEIR_MS));
}

TASK_TEST(or_its_deadline_passes)
{
    int fds[2];

    new_pipe(fds, 0);
    struct weir_task one = spawn_waiting(read_for_a_while, &(struct call){.fd = fds[IN]});
    close(fds[IN]);
    CHECK_EQ(join(one), WEIR_ETIMEDOUT);
    close(fds[OUT]);
    return 0;
}

/* ---- closing while a wait begins or ends ------------------------------------------------- */

#define NOT_CLOSED "poll: waits ended, not closed"
#define NOT_TOLD   "poll: waits taken, not told"

static void close_as_thread(void *arg)
{
    CHECK_EQ(close_it(arg), 0);
}

static uint64_t switches(struct weir_runtime *runtime)
{
    struct weir_runtime_stats stats;

    weir_runtime_stats(runtime, &stats);
    return stats.switches;
}

/* Its worker was looked through, and the kernel would forget the wait. */
TEST(a_wait_that_begins_while_its_descriptor_is_being_closed_is_not_lost)
{
    struct weir_runtime *runtime;
    struct weir_task one;
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
    test_hold(NOT_CLOSED);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_CLOSED);
    CHECK_EQ(weir_runtime_spawn(runtime, call_wait, &c, &one), 0);
    EVENTUALLY(switches(runtime) > 10); /* it has begun, and looks again and again */
    test_let_go(NOT_CLOSED);
    CHECK_EQ(join(one), -EBADF);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
    close(fds[OUT]);
}

TEST(meanwhile_it_can_be_cancelled)
{
    struct weir_runtime *runtime;
    struct weir_task one;
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
    test_hold(NOT_CLOSED);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_CLOSED);
    CHECK_EQ(weir_runtime_spawn(runtime, call_wait, &c, &one), 0);
    EVENTUALLY(switches(runtime) > 10);
    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    test_let_go(NOT_CLOSED);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
    close(fds[OUT]);
}

/* The record of the wait is in the hands of whoever closes. */
TEST(a_wait_that_was_ended_by_a_close_is_not_ended_again_by_a_cancel)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    test_hold(NOT_TOLD);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_TOLD);
    uint64_t before = switches(o.runtime);
    CHECK_EQ(weir_task_cancel(o.waiter), 0);
    EVENTUALLY(switches(o.runtime) > before); /* it has run, and waits to be told */
    test_let_go(NOT_TOLD);
    CHECK_EQ(close_other(&o), -EBADF);
    test_join_all();
    close(fds[OUT]);
}

/* The runtime's end waits for whoever is looking through its workers. */
TEST(a_runtime_is_not_gone_while_a_close_looks_at_it)
{
    struct weir_runtime *runtime;
    int fds[2];

    for (int i = 0; i < test_scaled(100); i++) {
        new_pipe(fds, 0);
        CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
        test_spawn(close_as_thread, &fds[IN]);
        CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
        CHECK_EQ(weir_close(fds[OUT]), 0);
        test_join_all();
    }
}

struct race {
    int fd;
    struct weir_runtime *runtime;
};

static int wait_at_random(void *arg)
{
    const struct race *race = arg;
    int64_t patience_ns = test_random(100) * WEIR_US;
    struct weir_deadline deadline = test_random(2) ? WEIR_FOREVER : weir_within(patience_ns);

    return weir_fd_wait(race->fd, WEIR_READABLE, deadline);
}

TEST_WITHIN(waits_and_closes_may_meet_in_any_way, 30)
{
    enum { TASKS = 8 };
    struct weir_run_options options = {.workers = 2};
    struct race race;
    struct weir_task tasks[TASKS];
    int fds[2], result, before = open_descriptors();

    CHECK_EQ(weir_runtime_open(&options, &race.runtime), 0);
    for (int i = 0; i < test_scaled(1000); i++) {
        new_pipe(fds, 0);
        race.fd = fds[IN];
        for (int k = 0; k < TASKS; k++)
            CHECK_EQ(weir_runtime_spawn(race.runtime, wait_at_random, &race, &tasks[k]), 0);
        for (uint32_t k = test_random(2000); k > 0; k--)
            __asm__ volatile("");
        if (test_random(4) == 0)
            CHECK_EQ(weir_task_cancel(tasks[test_random(TASKS)]), 0);
        CHECK_EQ(weir_close(fds[IN]), 0);
        for (int k = 0; k < TASKS; k++) {
            CHECK_EQ(weir_task_join(tasks[k], WEIR_FOREVER, &result), 0);
            CHECK(result == -EBADF || result == WEIR_ETIMEDOUT || result == WEIR_ECANCELED);
        }
        close(fds[OUT]);
    }
    CHECK_EQ(weir_runtime_close(race.runtime, WEIR_FOREVER), 0);
    CHECK_EQ(open_descriptors(), before);
}
