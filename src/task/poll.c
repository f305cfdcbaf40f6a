/* SPDX-License-Identifier: MIT */
#include "task/poll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"

/* In place of a descriptor: our own eventfd and timerfd. */
static const uint64_t WAKE = UINT64_MAX, TIMER = UINT64_MAX - 1;

static struct {
    lock lock;
    struct poller *first; /* under lock */
} pollers;

/* ---- all of them -------------------------------------------------------------- */

static void list(struct poller *p)
{
    lock_take(&pollers.lock);
    p->next = pollers.first;
    pollers.first = p;
    lock_drop(&pollers.lock);
}

static void unlist(struct poller *p)
{
    struct poller **link;

    lock_take(&pollers.lock);
    while (p->visitors > 0) {
        lock_drop(&pollers.lock);
        cpu_yield();
        lock_take(&pollers.lock);
    }
    for (link = &pollers.first; *link && *link != p; link = &(*link)->next)
        ;
    if (*link)
        *link = p->next;
    lock_drop(&pollers.lock);
}

struct poller *poller_next(struct poller *p)
{
    lock_take(&pollers.lock);
    struct poller *next = p ? p->next : pollers.first;
    if (p)
        p->visitors--;
    if (next)
        next->visitors++;
    lock_drop(&pollers.lock);
    return next;
}

/* ---- one ----------------------------------------------------------------------- */

int poller_init(struct poller *p)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE};

    *p = (struct poller){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                         .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                         .timer_fd = -1,
                         .arming = -1};
    if (p->epoll_fd < 0 || p->wake_fd < 0 ||
        epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &event) < 0) {
        int r = -errno;

        poller_fini(p);
        return r;
    }
    list(p);
    return 0;
}

static void close_if_open(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Also after a poller_init that failed, and again. */
void poller_fini(struct poller *p)
{
    unlist(p);
    close_if_open(&p->epoll_fd);
    close_if_open(&p->wake_fd);
    close_if_open(&p->timer_fd);
    mem_free(p->slots);
    p->slots = NULL;
}

void poller_wake(struct poller *p)
{
    ssize_t written = write(p->wake_fd, &(uint64_t){1}, sizeof(uint64_t));

    (void)written; /* it can only fail by being full, and then it is readable */
}

int poller_add_timer(struct poller *p)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = TIMER};

    p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (p->timer_fd < 0 || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->timer_fd, &event) < 0)
        return -errno;
    return 0;
}

void poller_set_timer(struct poller *p, int64_t at_ns)
{
    struct itimerspec at = {0};

    if (at_ns == p->timer_ns)
        return;
    p->timer_ns = at_ns;
    if (at_ns != INT64_MAX) { /* else zero, which disarms; as would a time of zero */
        at.it_value.tv_sec = at_ns / WEIR_S;
        at.it_value.tv_nsec = at_ns % WEIR_S;
    }
    timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- waiting ---------------------------------------------------------------- */

static int wait_events(struct poller *p, struct epoll_event *events, int most, int64_t at_ns)
{
    int64_t left_ns = at_ns == 0 || at_ns == INT64_MAX ? 0 : at_ns - clock_real_ns();
    struct timespec left = {0};

    if (left_ns > 0) {
        left.tv_sec = left_ns / WEIR_S;
        left.tv_nsec = left_ns % WEIR_S;
    }
    int n = epoll_pwait2(p->epoll_fd, events, most, at_ns == INT64_MAX ? NULL : &left, NULL);
    if (n < 0 && errno == ENOSYS) { /* before Linux 5.11: whole milliseconds, rounded up */
        int64_t ms = left_ns > 0 ? (left_ns + WEIR_MS - 1) / WEIR_MS : 0;

        n = epoll_wait(p->epoll_fd, events, most,
                       at_ns == INT64_MAX ? -1 : (int)(ms < 1000000 ? ms : 1000000));
    }
    return n;
}

/* Make an eventfd or timerfd unreadable again. */
static int64_t clear(int fd)
{
    uint64_t told;
    ssize_t taken = read(fd, &told, sizeof told);

    (void)taken; /* nothing: then it is unreadable */
    return 0;
}

void poller_wait(struct poller *p, int64_t at_ns)
{
    struct epoll_event events[64];
    int n = wait_events(p, events, 64, at_ns);

    for (int i = 0; i < n; i++) {
        uint64_t what = events[i].data.u64;

        if (what == WAKE)
            clear(p->wake_fd);
        else if (what == TIMER)
            p->timer_ns = clear(p->timer_fd);
        else
            poller_fd_event(p, (int)what, events[i].events);
    }
}
