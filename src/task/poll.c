/* SPDX-License-Identifier: MIT */
#include "task/poll.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <weir/error.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/park.h"

/* On the stack of the task that waits. */
struct fd_wait {
    struct fd_wait *next;
    uint32_t want; /* events                                  */
    int got;       /* events, or an error, once it is over    */
    sleeper sleeper;
};

static const uint32_t ALWAYS = EPOLLERR | EPOLLHUP; /* cannot be masked */

/* In place of a descriptor: our own eventfd and timerfd. */
static const uint64_t WAKE = UINT64_MAX, TIMER = UINT64_MAX - 1;

int poller_init(struct poller *p)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE};

    *p = (struct poller){.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                         .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                         .timer_fd = -1};
    if (p->epoll_fd < 0 || p->wake_fd < 0 ||
        epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &event) < 0) {
        int r = -errno;

        poller_fini(p);
        return r;
    }
    return 0;
}

void poller_fini(struct poller *p)
{
    if (p->epoll_fd >= 0)
        close(p->epoll_fd);
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    if (p->timer_fd >= 0)
        close(p->timer_fd);
    mem_free(p->waits);
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

/* ---- who waits for what ------------------------------------------------------ */

static int make_room(struct poller *p, int fd)
{
    int count = p->waits_count ? p->waits_count : 64;

    if (fd < p->waits_count)
        return 0;
    while (count <= fd)
        count *= 2;
    struct fd_wait **waits = mem_alloc((size_t)count * sizeof(struct fd_wait *));
    if (waits == NULL)
        return WEIR_ENOMEM;
    if (p->waits)
        memcpy(waits, p->waits, (size_t)p->waits_count * sizeof(struct fd_wait *));
    mem_free(p->waits);
    p->waits = waits;
    p->waits_count = count;
    return 0;
}

static uint32_t all_wanted(const struct poller *p, int fd)
{
    uint32_t want = 0;

    for (const struct fd_wait *wait = p->waits[fd]; wait; wait = wait->next)
        want |= wait->want;
    return want;
}

/* End those waits that any of the events ends; `got` is what they are told, or 0 for
 * the events themselves. */
static void end_waits(struct poller *p, int fd, uint32_t events, int got)
{
    struct fd_wait **link = &p->waits[fd], *wait;

    while ((wait = *link)) {
        uint32_t hit = events & (wait->want | ALWAYS);

        if (hit == 0) {
            link = &wait->next;
            continue;
        }
        *link = wait->next;
        wait->got = got ? got : (int)hit;
        sleeper_done(&wait->sleeper);
    }
}

static void unlink_wait(struct poller *p, int fd, const struct fd_wait *wait)
{
    struct fd_wait **link = &p->waits[fd];

    while (*link && *link != wait)
        link = &(*link)->next;
    if (*link)
        *link = wait->next;
}

static int arm(struct poller *p, int fd, uint32_t want)
{
    struct epoll_event event = {.events = want | EPOLLONESHOT, .data.u64 = (uint64_t)fd};

    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    if (errno == ENOENT) {
        /* New, or closed and opened again behind our back: then nobody will ever hear
         * of the old one. */
        end_waits(p, fd, UINT32_MAX, -EBADF);
        if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
            return 0;
    }
    return -errno;
}

static void on_event(struct poller *p, int fd, uint32_t events)
{
    end_waits(p, fd, events, 0);
    if (p->waits[fd] && arm(p, fd, all_wanted(p, fd)) < 0)
        end_waits(p, fd, UINT32_MAX, -EBADF);
}

void poller_fd_closing(struct poller *p, int fd)
{
    if (fd >= 0 && fd < p->waits_count)
        end_waits(p, fd, UINT32_MAX, -EBADF);
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
        int64_t ms = (left_ns + WEIR_MS - 1) / WEIR_MS;

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
            on_event(p, (int)what, events[i].events);
    }
}

/* What epoll knows of, as poll does. */
static int look_once(int fd, uint32_t events)
{
    struct pollfd pfd = {.fd = fd, .events = (short)events};
    int n = poll(&pfd, 1, 0);

    if (n < 0)
        return -errno;
    if (pfd.revents & POLLNVAL)
        return -EBADF;
    return n == 0 ? WEIR_ETIMEDOUT : pfd.revents;
}

static int park_for(struct poller *p, int fd, struct fd_wait *wait, struct weir_deadline deadline)
{
    int r = arm(p, fd, all_wanted(p, fd) | wait->want);

    if (r == -EPERM)
        return (int)wait->want; /* a file or directory: always ready */
    if (r < 0)
        return r;
    wait->next = p->waits[fd];
    p->waits[fd] = wait;
    p->waiting++;
    r = park(&wait->sleeper, deadline);
    p->waiting--;
    unlink_wait(p, fd, wait);
    return r < 0 ? r : wait->got;
}

int poller_fd_wait(struct poller *p, int fd, uint32_t events, struct weir_deadline deadline)
{
    struct fd_wait wait = {.want = events, .sleeper = sleeper_self()};
    int r = park_refusal(deadline);

    if (r == WEIR_ETIMEDOUT)
        return look_once(fd, events);
    if (r < 0)
        return r;
    if (fd < 0)
        return -EBADF;
    wait.sleeper.flags = SLEEP_FD;
    r = make_room(p, fd);
    return r < 0 ? r : park_for(p, fd, &wait, deadline);
}
