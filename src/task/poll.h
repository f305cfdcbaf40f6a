/* SPDX-License-Identifier: MIT */
/* poll - where a worker sleeps: epoll, for descriptors that tasks wait for, the next
 * timer, and an eventfd that other threads write.
 *
 * A descriptor is armed for one event each time somebody waits for it.  That is a system
 * call more than an edge-triggered registration that lasts, and survives what programs
 * do: close a descriptor and open another of the same number, which silently drops a
 * registration.  When arming finds it dropped, those who still wait for the old one are
 * told WEIR's -EBADF. */
#ifndef WEIR_TASK_POLL_H
#define WEIR_TASK_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/time.h>

struct fd_wait;

/* (w) throughout: one worker's, but for the eventfd. */
struct poller {
    int epoll_fd;
    int wake_fd;
    int timer_fd;           /* only for a loop's worker; else -1            */
    int64_t timer_ns;       /* what it is set to; 0 for nothing known       */
    struct fd_wait **waits; /* by descriptor: those who wait for it */
    int waits_count;        /* length of that table                 */
    uint32_t waiting;       /* waits in all                         */
};

int poller_init(struct poller *p);
void poller_fini(struct poller *p);

/* Have the epoll descriptor itself become readable at a time, for a host that watches
 * it.  INT64_MAX: never. */
int poller_add_timer(struct poller *p);
void poller_set_timer(struct poller *p, int64_t at_ns);

/* Write the eventfd.  From any thread. */
void poller_wake(struct poller *p);

/* Wait for something to happen until at_ns (0: only look; INT64_MAX: no limit), and end
 * the waits that it ends.  Current worker only. */
void poller_wait(struct poller *p, int64_t at_ns);

/* Let the running task wait for EPOLLIN, EPOLLOUT ... on fd.  Returns the events (at
 * least one), or an error. */
int poller_fd_wait(struct poller *p, int fd, uint32_t events, struct weir_deadline deadline);

/* fd is about to be closed: end all waits for it with -EBADF. */
void poller_fd_closing(struct poller *p, int fd);

#endif
