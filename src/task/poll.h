/* SPDX-License-Identifier: MIT */
/* poll - where a worker sleeps: epoll, for descriptors that tasks wait for, the next
 * timer, and an eventfd that other threads write.
 *
 * A descriptor is armed for one event each time somebody waits for it.  That is a system
 * call more than an edge-triggered registration that lasts, and survives what programs
 * do: close a descriptor and open another of the same number, which silently drops a
 * registration.  When arming finds it dropped, those who still wait for the old one are
 * told -EBADF.
 *
 * A descriptor that is closed through us ends the waits for it on all workers first.  The
 * table of waits has a lock for that, and all pollers are in one list.  A wait that begins
 * in between, after its worker's table was looked through and before the descriptor is
 * closed, would be forgotten by the kernel; so closing is announced before, and looked
 * for after a wait has been put into the table: one of the two sees the other.
 *
 * Who ends a wait takes it out of the table under the lock, and tells its task after.  A
 * task that gives up in between finds that it is too late, and waits to be told: its
 * record lies on its stack. */
#ifndef WEIR_TASK_POLL_H
#define WEIR_TASK_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/time.h>

#include "base/lock.h"

struct fd_slot;

/* Locking key: (c) constant  (w) its worker only  (a) atomic  (l) under lock
 *              (g) under the lock of the list of all pollers */
struct poller {
    int epoll_fd;          /* (c)                                                     */
    int wake_fd;           /* (c) an eventfd; anyone may write it                     */
    int timer_fd;          /* (c) only for a loop's worker; else -1                   */
    int64_t timer_ns;      /* (w) what it is set to; 0 for nothing known              */
    uint32_t waiting;      /* (w) tasks that wait                                     */
    lock lock;             /*     of the table                                        */
    struct fd_slot *slots; /* (l) by descriptor: those who wait for it                */
    int slot_count;        /* (l) length of that table                                */
    int arming;            /* (a) what its worker is telling epoll to watch, or -1    */
    uint32_t visitors;     /* (g) closing threads that look at it, and keep it alive  */
    struct poller *next;   /* (g)                                                     */
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

/* The one after p of all pollers, or the first for NULL.  It stays until it is passed here
 * in turn, so go on to the end. */
struct poller *poller_next(struct poller *p);

/* ---- descriptors (poll_fd.c) ---------------------------------------------------- */

/* Let the running task, which may wait, wait for EPOLLIN, EPOLLOUT or both on fd.  Returns
 * those that it is ready for, at least one of them, or an error; -EPERM if nobody can wait
 * for it, being always ready. */
int poller_fd_wait(struct poller *p, int fd, uint32_t events, struct weir_deadline deadline);

/* End all waits for fd, on whichever worker, with -EBADF, and close it.  Never waits. */
int poller_fd_close(int fd);

/* What epoll said of fd. */
void poller_fd_event(struct poller *p, int fd, uint32_t events);

#endif
