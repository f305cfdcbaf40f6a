/* SPDX-License-Identifier: MIT */
/* weir_inbox: the promises made in the second half of weir/op.h, in that order. */
#include <weir/op.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/sem.h>

#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------- */

/* An op that notes when, where and with what it was called. */
struct note {
    struct weir_op op;
    int calls;
    int result;
    int place; /* 1 for the first of all to be called */
    pthread_t thread;
};

static int called;

static void take_note(struct weir_op *op, int result)
{
    struct note *n = (struct note *)(void *)op;

    n->calls++;
    n->result = result;
    n->place = ++called;
    n->thread = pthread_self();
}

static struct weir_inbox *open_inbox(void)
{
    struct weir_inbox *inbox = NULL;

    CHECK_EQ(weir_inbox_open(&inbox), 0);
    CHECK(inbox != NULL);
    return inbox;
}

static void acquire_async(struct weir_sem *sem, uint64_t n, struct note *note,
                          struct weir_inbox *inbox)
{
    *note = (struct note){.op = WEIR_OP_INIT};
    note->op.inbox = inbox;
    CHECK_EQ(weir_sem_acquire_async(sem, n, &note->op, take_note), 0);
}

static void take(struct weir_sem *sem, uint64_t n)
{
    CHECK_EQ(weir_sem_acquire(sem, n, WEIR_NO_WAIT), 0);
}

static bool is_readable(const struct weir_inbox *inbox)
{
    struct pollfd p = {.fd = weir_inbox_fd(inbox), .events = POLLIN};

    CHECK(poll(&p, 1, 0) >= 0);
    return p.revents == POLLIN;
}

/* The number of the next descriptor to be opened: it grows if one is leaked. */
static int next_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
    return fd;
}

/* ---- open ------------------------------------------------------------------- */

TEST(a_new_inbox_is_empty)
{
    struct weir_inbox *inbox = open_inbox();

    CHECK(weir_inbox_fd(inbox) >= 0);
    CHECK(!is_readable(inbox));
    CHECK_EQ(weir_inbox_drain(inbox), 0);
    weir_inbox_close(inbox);
}

TEST(without_memory_no_inbox_is_opened)
{
    struct weir_inbox *inbox, *before = (void *)&inbox;
    int fd = next_fd(), n = 0, r;

    do {
        inbox = before;
        test_fail_allocation(++n);
        r = weir_inbox_open(&inbox);
        CHECK(r == 0 || (r == WEIR_ENOMEM && inbox == before && next_fd() == fd));
    } while (r < 0);
    CHECK(n > 1);
    weir_inbox_close(inbox);
}

TEST(without_a_descriptor_no_inbox_is_opened)
{
    struct weir_inbox *inbox, *before = (void *)&inbox;
    struct rlimit all, none;

    inbox = before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = (struct rlimit){(rlim_t)next_fd(), all.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(weir_inbox_open(&inbox), -EMFILE); /* and ASan sees that no memory is lost */
    CHECK(inbox == before);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &all), 0);
    CHECK_EQ(weir_inbox_open(&inbox), 0);
    weir_inbox_close(inbox);
}

/* ---- the descriptor --------------------------------------------------------- */

TEST(the_descriptor_is_readable_exactly_while_something_is_there)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;

    take(&sem, 1);
    for (int i = 0; i < 3; i++) {
        acquire_async(&sem, 1, &n, inbox);
        CHECK(!is_readable(inbox));
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK(is_readable(inbox));
        CHECK(is_readable(inbox)); /* looking does not change it */
        CHECK_EQ(n.calls, 0);
        CHECK_EQ(weir_inbox_drain(inbox), 1);
        CHECK_EQ(n.calls, 1);
        CHECK(!is_readable(inbox));
    }
    weir_inbox_close(inbox);
}

TEST(the_descriptor_is_written_once_for_all_that_arrive_before_a_drain)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(100);
    struct note n[100];
    uint64_t writes = 0;

    for (int round = 0; round < 3; round++) {
        take(&sem, 100);
        for (int i = 0; i < 100; i++)
            acquire_async(&sem, 1, &n[i], inbox);
        CHECK_EQ(weir_sem_release(&sem, 60), 0);
        for (int i = 0; i < 40; i++)
            CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK_EQ(read(weir_inbox_fd(inbox), &writes, sizeof writes), sizeof writes);
        CHECK_EQ(writes, 1); /* an eventfd adds up what is written */
        CHECK_EQ(weir_inbox_drain(inbox), 100);
        CHECK_EQ(weir_sem_release(&sem, 100), 0);
    }
    weir_inbox_close(inbox);
}

/* ---- drain ------------------------------------------------------------------ */

TEST(drain_calls_in_order_of_arrival_and_says_how_many)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(5);
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n[6];

    take(&sem, 5);
    n[0] = n[1] = (struct note){.op = {.inbox = inbox}};
    CHECK_EQ(weir_event_wait_async(&event, &n[0].op, take_note), 0);
    CHECK_EQ(weir_event_wait_async(&event, &n[1].op, take_note), 0);
    for (int i = 2; i < 6; i++)
        acquire_async(&sem, 1, &n[i], inbox);
    weir_event_set(&event);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    weir_sem_close(&sem);
    CHECK_EQ(called, 0);
    CHECK_EQ(weir_inbox_drain(inbox), 6);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(n[i].calls, 1);
        CHECK_EQ(n[i].place, i + 1);
        CHECK_EQ(n[i].result, i < 5 ? 0 : WEIR_ECLOSED);
    }
    CHECK_EQ(weir_inbox_drain(inbox), 0);
    weir_inbox_close(inbox);
}

static void release_one(void *arg)
{
    CHECK_EQ(weir_sem_release(arg, 1), 0);
}

TEST(callbacks_run_on_the_thread_that_drains)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n, inbox);
    test_spawn(release_one, &sem);
    test_join_all();
    CHECK_EQ(n.calls, 0);
    CHECK_EQ(weir_inbox_drain(inbox), 1);
    CHECK(pthread_equal(n.thread, pthread_self()));
    weir_inbox_close(inbox);
}

struct drainer {
    struct weir_op op;
    struct weir_inbox *inbox;
    int calls;
};

static void drain_inside(struct weir_op *op, int result)
{
    struct drainer *d = (struct drainer *)(void *)op;

    CHECK_EQ(result, 0);
    CHECK_EQ(weir_inbox_drain(d->inbox), WEIR_ECONTEXT);
    d->calls++;
}

TEST(drain_inside_a_callback_is_not_allowed)
{
    struct weir_inbox *inbox = open_inbox(), *other = open_inbox();
    struct weir_event event = WEIR_EVENT_INIT;
    struct note waits_in_other = {.op = {.inbox = other}};
    struct drainer d[3] = {
        {{.inbox = inbox}, inbox, 0}, /* its own */
        {{.inbox = inbox}, other, 0}, /* another */
        {{.inbox = NULL}, other, 0},  /* inside a direct callback */
    };

    CHECK_EQ(weir_event_wait_async(&event, &waits_in_other.op, take_note), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_event_wait_async(&event, &d[i].op, drain_inside), 0);
    weir_event_set(&event);
    CHECK_EQ(d[2].calls, 1);
    CHECK_EQ(weir_inbox_drain(inbox), 2);
    CHECK_EQ(d[0].calls + d[1].calls, 2);
    CHECK_EQ(waits_in_other.calls, 0); /* refused, it has changed nothing */
    CHECK(is_readable(other));
    CHECK_EQ(weir_inbox_drain(other), 1);
    weir_inbox_close(inbox);
    weir_inbox_close(other);
}

/* Goes round five times: each call queues it again and releases. */
struct regular {
    struct weir_op op;
    struct weir_sem *sem;
    int calls;
};

static void come_again(struct weir_op *op, int result)
{
    struct regular *r = (struct regular *)(void *)op;

    CHECK_EQ(result, 0);
    if (++r->calls == 5)
        return;
    CHECK_EQ(weir_sem_acquire_async(r->sem, 1, op, come_again), 0);
    CHECK_EQ(weir_sem_release(r->sem, 1), 0);
}

TEST(what_arrives_during_a_drain_is_left_for_the_next)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct regular r = {{.inbox = inbox}, &sem, 0};

    take(&sem, 1);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &r.op, come_again), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    for (int i = 1; i <= 5; i++) { /* so a drain ends, whatever the callbacks do */
        CHECK(is_readable(inbox));
        CHECK_EQ(weir_inbox_drain(inbox), 1);
        CHECK_EQ(r.calls, i);
    }
    CHECK(!is_readable(inbox));
    weir_inbox_close(inbox);
}

static void free_record(struct weir_op *op, int result)
{
    CHECK_EQ(result, 0);
    called++;
    memset(op, 0xff, sizeof *op);
    free(op);
}

TEST(a_callback_from_an_inbox_may_free_its_record)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_event event = WEIR_EVENT_INIT;

    for (int i = 0; i < 10; i++) {
        struct weir_op *op = calloc(1, sizeof *op);

        CHECK(op != NULL);
        op->inbox = inbox;
        CHECK_EQ(weir_event_wait_async(&event, op, free_record), 0);
    }
    weir_event_set(&event);
    CHECK_EQ(weir_inbox_drain(inbox), 10);
    CHECK_EQ(called, 10);
    weir_inbox_close(inbox);
}

static struct weir_event late = WEIR_EVENT_INIT;

/* Something arrives while the loop's callbacks run, and then one of them closes the inbox. */
static void close_with_something_in_it(struct weir_op *op, int result)
{
    CHECK_EQ(result, 0);
    weir_event_set(&late);
    weir_inbox_close(op->inbox);
}

TEST(closing_inside_a_callback_loses_nothing)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_op closer = {.inbox = inbox};
    struct note behind = {.op = {.inbox = inbox}}, arriving = {.op = {.inbox = inbox}};

    CHECK_EQ(weir_event_wait_async(&event, &closer, close_with_something_in_it), 0);
    CHECK_EQ(weir_event_wait_async(&event, &behind.op, take_note), 0);
    CHECK_EQ(weir_event_wait_async(&late, &arriving.op, take_note), 0);
    weir_event_set(&event);
    CHECK_EQ(weir_inbox_drain(inbox), 2);
    CHECK_EQ(behind.calls, 1);
    CHECK_EQ(arriving.calls, 1);
}

TEST(an_op_in_an_inbox_can_no_longer_be_taken_back)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct weir_event event = WEIR_EVENT_INIT;
    struct note taken_back, granted, woken = {.op = {.inbox = inbox}};

    take(&sem, 2);
    acquire_async(&sem, 1, &taken_back, inbox);
    acquire_async(&sem, 1, &granted, inbox);
    CHECK_EQ(weir_event_wait_async(&event, &woken.op, take_note), 0);
    CHECK_EQ(weir_op_cancel(&taken_back.op), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    weir_event_set(&event);
    CHECK_EQ(weir_op_cancel(&granted.op), 0);
    CHECK_EQ(weir_op_cancel(&woken.op), 0);
    CHECK_EQ(weir_inbox_drain(inbox), 2);
    CHECK_EQ(taken_back.calls, 0);
    CHECK_EQ(granted.calls, 1);
    CHECK_EQ(woken.calls, 1);
    weir_inbox_close(inbox);
}

/* ---- several threads ---------------------------------------------------------- */

enum { POSTERS = 4, POSTS = 2000 };

/* A thread with a semaphore of its own, on which all its notes wait in order. */
struct poster {
    struct weir_sem sem;
    struct counted {
        struct weir_op op;
        struct poster *poster;
        int number;
    } ops[POSTS];
    int next_number;
};

static void count(struct weir_op *op, int result)
{
    struct counted *c = (struct counted *)(void *)op;

    CHECK_EQ(result, 0);
    CHECK_EQ(c->number, c->poster->next_number++); /* exactly once, and in order */
    called++;
}

static void release_one_by_one(void *arg)
{
    struct poster *p = arg;

    for (int i = 0; i < POSTS; i++)
        CHECK_EQ(weir_sem_release(&p->sem, 1), 0);
}

TEST(several_threads_may_post_and_nothing_is_lost)
{
    struct weir_inbox *inbox = open_inbox();
    struct poster *posters = calloc(POSTERS, sizeof *posters);
    struct pollfd readable = {.fd = weir_inbox_fd(inbox), .events = POLLIN};

    CHECK(posters != NULL);
    for (struct poster *p = posters; p < posters + POSTERS; p++) {
        CHECK_EQ(weir_sem_init(&p->sem, POSTS), 0);
        take(&p->sem, POSTS);
        for (int i = 0; i < POSTS; i++) {
            p->ops[i] = (struct counted){{.inbox = inbox}, p, i};
            CHECK_EQ(weir_sem_acquire_async(&p->sem, 1, &p->ops[i].op, count), 0);
        }
    }
    for (int i = 0; i < POSTERS; i++)
        test_spawn(release_one_by_one, &posters[i]);
    for (int drained = 0; drained < POSTERS * POSTS;) {
        CHECK_EQ(poll(&readable, 1, -1), 1); /* hangs if a post did not tell */
        drained += weir_inbox_drain(inbox);
        CHECK_EQ(called, drained);
    }
    test_join_all();
    CHECK_EQ(weir_inbox_drain(inbox), 0);
    weir_inbox_close(inbox);
    free(posters);
}

/* ---- close ------------------------------------------------------------------ */

TEST(close_drains_and_closes_the_descriptor)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note n[2];
    int fd = weir_inbox_fd(inbox);

    take(&sem, 2);
    acquire_async(&sem, 1, &n[0], inbox);
    acquire_async(&sem, 1, &n[1], inbox);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    weir_inbox_close(inbox);
    CHECK_EQ(n[0].calls, 1);
    CHECK_EQ(n[1].calls, 1);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(close_of_nothing_does_nothing)
{
    weir_inbox_close(NULL);
}

/* A write of slow_fd takes its time: until the inbox is closed, or much longer than
 * that takes.  Instead of the libc's. */
static int slow_fd = -1, writing, closed;
static ssize_t slowly_written;

ssize_t write(int fd, const void *data, size_t bytes)
{
    bool slow = fd == __atomic_load_n(&slow_fd, __ATOMIC_ACQUIRE);

    if (slow) {
        __atomic_store_n(&writing, 1, __ATOMIC_RELEASE);
        for (int i = 0; i < 1000 && !__atomic_load_n(&closed, __ATOMIC_ACQUIRE); i++)
            sched_yield();
    }
    ssize_t written = syscall(SYS_write, fd, data, bytes);
    if (slow)
        slowly_written = written;
    return written;
}

/* A loop that has drained all it waited for may close the inbox, though a thread that
 * posted is only about to write: it must not write what has the same number next. */
TEST(close_waits_for_whoever_is_about_to_write_the_descriptor)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;

    take(&sem, 1);
    acquire_async(&sem, 1, &n, inbox);
    __atomic_store_n(&slow_fd, weir_inbox_fd(inbox), __ATOMIC_RELEASE);
    test_spawn(release_one, &sem);
    EVENTUALLY(__atomic_load_n(&writing, __ATOMIC_ACQUIRE));
    CHECK_EQ(weir_inbox_drain(inbox), 1);
    weir_inbox_close(inbox);
    __atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
    test_join_all();
    CHECK_EQ(slowly_written, sizeof(uint64_t));
}

/* The same with the thread that posts held between the two: whoever looks into the inbox
 * by itself finds what the descriptor does not say yet. */
#define NOT_SIGNALLED "inbox: pushed, not signalled"

static void post_and_hold(struct weir_sem *sem, struct note *n, struct weir_inbox *inbox)
{
    take(sem, 1);
    acquire_async(sem, 1, n, inbox);
    test_hold(NOT_SIGNALLED);
    test_spawn(release_one, sem);
    test_reached(NOT_SIGNALLED);
}

TEST(who_drains_between_push_and_signal_is_told_for_nothing_afterwards)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1), other = WEIR_SEM_INIT(1);
    struct note n, next;

    post_and_hold(&sem, &n, inbox);
    CHECK(!is_readable(inbox));
    CHECK_EQ(weir_inbox_drain(inbox), 1);
    CHECK_EQ(n.calls, 1);
    take(&other, 1);
    acquire_async(&other, 1, &next, inbox);
    release_one(&other); /* finds it empty, and does not count on the one who is held */
    CHECK(is_readable(inbox));
    CHECK_EQ(weir_inbox_drain(inbox), 1);
    test_let_go(NOT_SIGNALLED);
    test_join_all();
    CHECK(is_readable(inbox));
    CHECK_EQ(weir_inbox_drain(inbox), 0);
    CHECK(!is_readable(inbox));
    weir_inbox_close(inbox);
}

TEST(what_comes_between_push_and_signal_is_drained_with_the_first)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1), other = WEIR_SEM_INIT(1);
    struct note n, next;

    post_and_hold(&sem, &n, inbox);
    take(&other, 1);
    acquire_async(&other, 1, &next, inbox);
    release_one(&other); /* leaves the telling to the first */
    CHECK(!is_readable(inbox));
    test_let_go(NOT_SIGNALLED);
    test_join_all();
    CHECK(is_readable(inbox));
    CHECK_EQ(weir_inbox_drain(inbox), 2);
    CHECK_EQ(n.place, 1);
    CHECK_EQ(next.place, 2);
    weir_inbox_close(inbox);
}

struct end_of_inbox {
    struct weir_inbox *inbox;
    int drained, closed;
};

static void drain_and_close(void *arg)
{
    struct end_of_inbox *e = arg;

    __atomic_store_n(&e->drained, weir_inbox_drain(e->inbox), __ATOMIC_RELEASE);
    weir_inbox_close(e->inbox);
    __atomic_store_n(&e->closed, 1, __ATOMIC_RELEASE);
}

static bool is_closed(const struct end_of_inbox *e)
{
    return __atomic_load_n(&e->closed, __ATOMIC_ACQUIRE);
}

TEST(an_inbox_drained_and_closed_between_push_and_signal_stays_open_until_the_signal)
{
    struct end_of_inbox e = {.inbox = open_inbox()};
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;
    int fd = weir_inbox_fd(e.inbox);
    uint64_t told;

    post_and_hold(&sem, &n, e.inbox);
    test_spawn(drain_and_close, &e);
    EVENTUALLY(__atomic_load_n(&e.drained, __ATOMIC_ACQUIRE) == 1);
    for (int i = 0; i < 1000 && !is_closed(&e); i++)
        sched_yield(); /* as long as it would take */
    int foreign = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(foreign != fd); /* or what is to be signalled would have become this one */
    CHECK(!is_closed(&e));
    test_let_go(NOT_SIGNALLED);
    test_join_all();
    CHECK_EQ(read(foreign, &told, sizeof told), -1);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    CHECK_EQ(n.calls, 1);
    close(foreign);
}

/* ---- in a loop -------------------------------------------------------------- */

/* A request with a deadline that is a timer of the loop. */
struct request {
    struct weir_op op;
    int timer_fd;
    enum { WAITING, SERVED, TIMED_OUT } state;
};

static void on_served(struct weir_op *op, int result)
{
    struct request *r = (struct request *)(void *)op;

    CHECK_EQ(result, 0);
    CHECK_EQ(r->state, WAITING);
    r->state = SERVED;
}

static void on_timer(struct request *r)
{
    uint64_t expirations;

    if (read(r->timer_fd, &expirations, sizeof expirations) > 0 && r->state == WAITING &&
        weir_op_cancel(&r->op) == 1)
        r->state = TIMED_OUT;
}

static void watch(int loop_fd, int fd, void *what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};

    CHECK_EQ(epoll_ctl(loop_fd, EPOLL_CTL_ADD, fd, &e), 0);
}

static void start_request(struct request *r, struct weir_sem *sem, struct weir_inbox *inbox,
                          int loop_fd, int64_t timeout_ns)
{
    struct itimerspec when = {.it_value = {timeout_ns / WEIR_S, timeout_ns % WEIR_S}};

    *r = (struct request){.op = {.inbox = inbox}};
    r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    CHECK(r->timer_fd >= 0);
    CHECK_EQ(timerfd_settime(r->timer_fd, 0, &when, NULL), 0);
    watch(loop_fd, r->timer_fd, r);
    CHECK_EQ(weir_sem_acquire_async(sem, 1, &r->op, on_served), 0);
}

/* One turn of the loop. */
static void turn(int loop_fd, struct weir_inbox *inbox)
{
    struct epoll_event e[8];
    int n = epoll_wait(loop_fd, e, 8, -1);

    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        if (e[i].data.ptr == inbox)
            CHECK(weir_inbox_drain(inbox) >= 0);
        else
            on_timer(e[i].data.ptr);
    }
}

TEST(a_loop_waits_on_it_beside_timers_that_cancel)
{
    struct weir_inbox *inbox = open_inbox();
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct request r[3];
    int loop_fd = epoll_create1(EPOLL_CLOEXEC);

    take(&sem, 1);
    watch(loop_fd, weir_inbox_fd(inbox), inbox);
    start_request(&r[0], &sem, inbox, loop_fd, 100 * WEIR_S);
    start_request(&r[1], &sem, inbox, loop_fd, 1); /* gives up in the middle of the queue */
    start_request(&r[2], &sem, inbox, loop_fd, 100 * WEIR_S);
    while (r[1].state == WAITING)
        turn(loop_fd, inbox);
    CHECK_EQ(r[1].state, TIMED_OUT);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    for (int i = 0; i < 3; i += 2) {
        test_spawn(release_one, &sem);
        while (r[i].state == WAITING)
            turn(loop_fd, inbox);
        CHECK_EQ(r[i].state, SERVED);
    }
    CHECK_EQ(r[1].state, TIMED_OUT);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
    test_join_all();
    weir_inbox_close(inbox);
    for (int i = 0; i < 3; i++)
        close(r[i].timer_fd);
    close(loop_fd);
}
