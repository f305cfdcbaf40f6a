/* SPDX-License-Identifier: MIT */
/* Tasks inside libuv: the loop's descriptor is polled, and all else goes on. */
#include <uv.h>

#include "task/tasks.h"

struct host {
    uv_loop_t uv;
    uv_poll_t poll;
    uv_timer_t timer;
    struct weir_loop *loop;
    int ticks, steps, refused;
};

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct host *h = poll->data;

    (void)events;
    CHECK_EQ(status, 0);
    CHECK(weir_loop_step(h->loop) >= 0);
    h->steps++;
}

/* A callback of the host's: a blocking call in it would stop the loop. */
static void on_tick(uv_timer_t *timer)
{
    struct host *h = timer->data;
    struct weir_event never = WEIR_EVENT_INIT;

    h->ticks++;
    h->refused += h->steps > 0 && weir_event_wait(&never, WEIR_FOREVER) == WEIR_ECONTEXT;
}

static void open_host(struct host *h)
{
    *h = (struct host){0};
    CHECK_EQ(weir_loop_open(NULL, &h->loop), 0);
    CHECK_EQ(uv_loop_init(&h->uv), 0);
    CHECK_EQ(uv_poll_init(&h->uv, &h->poll, weir_loop_fd(h->loop)), 0);
    h->poll.data = h->timer.data = h;
    CHECK_EQ(uv_poll_start(&h->poll, UV_READABLE, on_readable), 0);
    CHECK_EQ(uv_timer_init(&h->uv, &h->timer), 0);
    h->timer.data = h;
    CHECK_EQ(uv_timer_start(&h->timer, on_tick, 1, 1), 0);
}

static void close_host(struct host *h)
{
    uv_close((uv_handle_t *)&h->poll, NULL);
    uv_close((uv_handle_t *)&h->timer, NULL);
    CHECK_EQ(uv_run(&h->uv, UV_RUN_DEFAULT), 0);
    CHECK_EQ(uv_loop_close(&h->uv), 0);
    weir_loop_close(h->loop);
}

/* Let the host run until the task has ended; what it returned. */
static int run_until_joined(struct host *h, struct weir_task task)
{
    int result = NOT_YET;

    while (weir_task_join(task, WEIR_NO_WAIT, &result) == WEIR_ETIMEDOUT)
        uv_run(&h->uv, UV_RUN_ONCE);
    return result;
}

static int sleep_and_say(void *arg)
{
    for (int i = 0; i < 5 && weir_task_sleep(weir_within(2 * WEIR_MS)) == 0; i++)
        say_it(arg);
    return 7;
}

TEST(timers_of_tasks_and_of_libuv_both_go_off)
{
    struct host host;

    open_host(&host);
    struct weir_task task = start_in(weir_loop_runtime(host.loop), sleep_and_say, "x");
    CHECK_EQ(run_until_joined(&host, task), 7);
    while (host.ticks < 5)
        uv_run(&host.uv, UV_RUN_ONCE);
    CHECK_STR(said, "xxxxx");
    CHECK(host.steps < 100); /* it was stepped when there was something to do */
    close_host(&host);
}

TEST(a_blocking_call_in_a_callback_of_libuv_is_refused)
{
    struct host host;

    open_host(&host);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(host.loop), sleep_and_say, "x", NULL), 0);
    while (host.refused < 3)
        uv_run(&host.uv, UV_RUN_ONCE);
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

TEST(a_task_in_libuv_and_a_plain_thread_talk_to_each_other)
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
