/* SPDX-License-Identifier: MIT */
/* Tasks inside libevent: the loop's descriptor is polled, and all else goes on. */
#include <event2/event.h>

#include "task/tasks.h"

struct host {
    struct event_base *base;
    struct event *readable, *timer;
    struct weir_loop *loop;
    int ticks, steps, refused;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct host *h = arg;

    CHECK_EQ(fd, weir_loop_fd(h->loop));
    CHECK_EQ(what, EV_READ);
    CHECK(weir_loop_step(h->loop) >= 0);
    h->steps++;
}

/* A callback of the host's: a blocking call in it would stop the loop. */
static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct host *h = arg;
    struct weir_event never = WEIR_EVENT_INIT;

    (void)fd;
    (void)what;
    h->ticks++;
    h->refused += h->steps > 0 && weir_event_wait(&never, WEIR_FOREVER) == WEIR_ECONTEXT;
}

static void open_host(struct host *h)
{
    *h = (struct host){.base = event_base_new()};
    CHECK(h->base != NULL);
    CHECK_EQ(weir_loop_open(NULL, &h->loop), 0);
    h->readable = event_new(h->base, weir_loop_fd(h->loop), EV_READ | EV_PERSIST, on_readable, h);
    h->timer = event_new(h->base, -1, EV_PERSIST, on_tick, h);
    CHECK_EQ(event_add(h->readable, NULL), 0);
    CHECK_EQ(event_add(h->timer, &(struct timeval){.tv_usec = 1000}), 0);
}

static void close_host(struct host *h)
{
    event_free(h->readable);
    event_free(h->timer);
    event_base_free(h->base);
    weir_loop_close(h->loop);
}

/* Let the host run until the task has ended; what it returned. */
static int run_until_joined(struct host *h, struct weir_task task)
{
    int result = NOT_YET;

    while (weir_task_join(task, WEIR_NO_WAIT, &result) == WEIR_ETIMEDOUT)
        CHECK_EQ(event_base_loop(h->base, EVLOOP_ONCE), 0);
    return result;
}

static int sleep_and_say(void *arg)
{
    for (int i = 0; i < 5 && weir_task_sleep(weir_within(2 * WEIR_MS)) == 0; i++)
        say_it(arg);
    return 7;
}

TEST(timers_of_tasks_and_of_libevent_both_go_off)
{
    struct host host;

    open_host(&host);
    struct weir_task task = start_in(weir_loop_runtime(host.loop), sleep_and_say, "x");
    CHECK_EQ(run_until_joined(&host, task), 7);
    while (host.ticks < 5)
        CHECK_EQ(event_base_loop(host.base, EVLOOP_ONCE), 0);
    CHECK_STR(said, "xxxxx");
    CHECK(host.steps < 100); /* it was stepped when there was something to do */
    close_host(&host);
}

TEST(a_blocking_call_in_a_callback_of_libevent_is_refused)
{
    struct host host;

    open_host(&host);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(host.loop), sleep_and_say, "x", NULL), 0);
    while (host.refused < 3)
        CHECK_EQ(event_base_loop(host.base, EVLOOP_ONCE), 0);
    close_host(&host);
}

struct exchange {
    struct weir_sem there, back;
    int rounds;
};

static void serve_as_thread(void *arg)
{
    struct exchange *x = arg;

    for (int i = 0; i < x->rounds; i++) {
        CHECK_EQ(weir_sem_acquire(&x->there, 1, WEIR_FOREVER), 0);
        CHECK_EQ(weir_sem_release(&x->back, 1), 0);
    }
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

TEST(a_task_in_libevent_and_a_plain_thread_talk_to_each_other)
{
    struct host host;
    struct exchange x = {WEIR_SEM_INIT(1), WEIR_SEM_INIT(1), test_scaled(300)};

    CHECK_EQ(weir_sem_try_acquire(&x.there, 1), 0);
    CHECK_EQ(weir_sem_try_acquire(&x.back, 1), 0);
    open_host(&host);
    test_spawn(serve_as_thread, &x);
    struct weir_task task = start_in(weir_loop_runtime(host.loop), ask, &x);
    CHECK_EQ(run_until_joined(&host, task), 0);
    test_join_all();
    close_host(&host);
}
