/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors, and the calls on sockets; for reading and writing see stream.c. */
#include "task/io.h"

#include <fcntl.h>
#include <poll.h>

#include <weir/io.h>

#include "base/clock.h"
#include "task/sched.h"

_Static_assert(WEIR_READABLE == POLLIN && WEIR_WRITABLE == POLLOUT, "as the kernel has it");

/* So many calls in a row that need not wait, until others get their turn. */
enum { CALLS_A_TURN = 64 };

int io_begin(void)
{
    const task *t = task_current();

    return t && task_is_struck(t) ? WEIR_ECANCELED : 0;
}

void io_end(void)
{
    static __thread uint32_t calls;

    if (++calls % CALLS_A_TURN == 0)
        park_give_way();
}

struct timespec io_left(int64_t at_ns)
{
    int64_t left_ns = clock_has_passed(at_ns) ? 0 : at_ns - clock_now_ns();

    if (left_ns <= 0)
        return (struct timespec){0};
    return (struct timespec){.tv_sec = left_ns / WEIR_S, .tv_nsec = left_ns % WEIR_S};
}

/* ---- waiting ---------------------------------------------------------------- */

/* poll(2) until at_ns, 0 to only look.  Returns events, 0 if there are none, or an error. */
static int poll_until(int fd, unsigned events, int64_t at_ns)
{
    struct pollfd pfd = {.fd = fd, .events = (short)events};
    struct timespec left = io_left(at_ns);
    int n = ppoll(&pfd, 1, at_ns == INT64_MAX ? NULL : &left, NULL);

    if (n <= 0)
        return n == 0 || errno == EINTR ? 0 : -errno;
    if (pfd.revents & POLLNVAL)
        return -EBADF;
    return (int)(pfd.revents & (POLLERR | POLLHUP) ? events : events & (unsigned)pfd.revents);
}

static int thread_wait(int fd, unsigned events, struct weir_deadline deadline)
{
    int r;

    while ((r = poll_until(fd, events, deadline.at_ns)) == 0)
        if (clock_has_passed(deadline.at_ns))
            return WEIR_ETIMEDOUT;
    return r;
}

static int task_wait(task *t, int fd, unsigned events, struct weir_deadline deadline)
{
    int r = poller_fd_wait(&t->home->poller, fd, events, deadline);

    return r == -EPERM ? (int)events : r;
}

int weir_fd_wait(int fd, unsigned events, struct weir_deadline deadline)
{
    task *t = task_current();

    if (events == 0 || (events & ~(unsigned)(WEIR_READABLE | WEIR_WRITABLE)))
        return WEIR_EINVAL;
    if (io_begin() < 0)
        return WEIR_ECANCELED;
    if (fd < 0)
        return -EBADF; /* to poll it would mean nothing */
    int refused = park_refusal(deadline);
    if (refused == 0)
        return t ? task_wait(t, fd, events, deadline) : thread_wait(fd, events, deadline);
    int r = poll_until(fd, events, 0);
    return r == 0 ? refused : r;
}

/* ---- sockets ---------------------------------------------------------------- */

/* For one call that must not block; and back, before anyone else can look. */
static void unblock(int fd, int flags)
{
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void block_again(int fd, int flags)
{
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags);
}

/* Does it listen?  1 or 0, or an error.  Kinds of sockets that weir does not know may say 0
 * although they do. */
static int is_listening(int fd)
{
    int listens = 0;
    socklen_t length = sizeof listens;

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0 ? -errno : listens;
}

/* WEIR_EAGAIN: there is none, or none any more. */
static int try_accept(int fd, struct sockaddr *ret_address, socklen_t *length)
{
    int accepted = accept4(fd, ret_address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED))
        return WEIR_EAGAIN;
    return accepted < 0 ? -errno : accepted;
}

/* Before it is waited for, since what cannot accept would never be ready.  A listener that
 * blocks is not tried: others may use it, too, and must not find it non-blocking. */
static int accept_at_once(int fd, struct sockaddr *ret_address, socklen_t *length)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    if (!(flags & O_NONBLOCK)) {
        int listens = is_listening(fd);

        if (listens != 0)
            return listens < 0 ? listens : WEIR_EAGAIN;
    }
    unblock(fd, flags);
    int r = try_accept(fd, ret_address, length);
    block_again(fd, flags);
    return r;
}

int weir_accept(int fd, struct sockaddr *ret_address, socklen_t *length,
                struct weir_deadline deadline)
{
    int r = io_begin();

    if (r == 0)
        r = accept_at_once(fd, ret_address, length);
    while (r == WEIR_EAGAIN) {
        r = weir_fd_wait(fd, WEIR_READABLE, deadline);
        if (r > 0)
            r = try_accept(fd, ret_address, length);
    }
    io_end();
    return r;
}

/* connect(2) without blocking.  Returns 0, or an error: -EINPROGRESS if it has begun, or had
 * before. */
static int begin_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    unblock(fd, flags);
    int r = connect(fd, address, length) < 0 ? -errno : 0;
    block_again(fd, flags);
    return r == -EALREADY || r == -EINTR ? -EINPROGRESS : r;
}

static int connect_result(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return -errno;
    return -error;
}

int weir_connect(int fd, const struct sockaddr *address, socklen_t length,
                 struct weir_deadline deadline)
{
    int r = io_begin();

    if (r == 0)
        r = begin_connect(fd, address, length);
    if (r != -EINPROGRESS)
        return r;
    r = weir_fd_wait(fd, WEIR_WRITABLE, deadline);
    return r < 0 ? r : connect_result(fd);
}

int weir_close(int fd)
{
    return poller_fd_close(fd);
}
