/* SPDX-License-Identifier: MIT */
/* inside_epoll - tasks inside a plain epoll loop. */
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "guest.h"

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void on_timer(int timer)
{
    uint64_t times;

    MUST(read(timer, &times, sizeof times) == sizeof times);
    host_timer();
}

// [begin]
static void run(int epoll, int timer, struct weir_loop *loop)
{
    struct epoll_event event;

    watch(epoll, weir_loop_fd(loop)); // one descriptor for all tasks
    watch(epoll, timer);
    while (!over && epoll_wait(epoll, &event, 1, -1) == 1)
        if (event.data.fd == timer)
            on_timer(timer);
        else
            weir_loop_step(loop); // runs those tasks that can run
}
// [end]

int main(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 20 * WEIR_MS};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct weir_loop *loop = guest_open();

    MUST(timerfd_settime(timer, 0, &soon, NULL) == 0);
    run(epoll, timer, loop);
    weir_loop_close(loop);
    close(epoll);
    close(timer);
    return 0;
}
