/* SPDX-License-Identifier: MIT */
/* inside_libevent - tasks inside a libevent program. */
#include <event2/event.h>

#include "guest.h"

static struct event_base *base;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    host_timer();
}

// [begin]
static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    weir_loop_step(arg); // runs those tasks that can run
    if (over)
        event_base_loopbreak(base);
}

static void run(struct weir_loop *loop)
{
    int fd = weir_loop_fd(loop);
    short what = EV_READ | EV_PERSIST;
    struct event *watch = event_new(base, fd, what, on_ready, loop);

    event_add(watch, NULL);
    event_base_dispatch(base);
    event_free(watch);
}
// [end]

int main(void)
{
    struct timeval soon = {.tv_usec = 20000};
    struct weir_loop *loop = guest_open();

    base = event_base_new();
    MUST(base && event_base_once(base, -1, EV_TIMEOUT, on_timer, NULL, &soon) == 0);
    run(loop);
    weir_loop_close(loop);
    event_base_free(base);
    return 0;
}
