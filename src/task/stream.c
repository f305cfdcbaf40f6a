/* SPDX-License-Identifier: MIT */
/* Reading and writing: try, and if that would block, wait and try again.
 *
 * How to try without blocking depends on what the descriptor is, which the kernel tells
 * soonest if it is asked to do it. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <weir/io.h>

#include "task/io.h"

enum manner {
    AS_SOCKET,  /* MSG_DONTWAIT                                                         */
    AS_PIPE,    /* RWF_NOWAIT, since Linux 6.5 also for pipes                           */
    PLAINLY,    /* it is non-blocking itself, or a file                                 */
    AFTER_WAIT, /* it blocks, and there is no way to try: not before it is ready        */
};

struct stream {
    int fd;
    enum manner manner;
    bool ready; /* it was waited for, and nothing done since */
};

/* ---- trying ----------------------------------------------------------------- */

static bool is_file(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

/* RWF_NOWAIT gave `r`.  If this kind of file does not know that, or is one which may never
 * come into memory unless somebody waits for it, find another manner. */
static bool needs_other_manner(struct stream *s, ssize_t r)
{
    bool unknown = r == -EOPNOTSUPP || r == -ENOSYS;

    if (!unknown && r != -EAGAIN)
        return false;
    if (is_file(s->fd))
        s->manner = PLAINLY;
    else if (unknown)
        s->manner = fcntl(s->fd, F_GETFL) & O_NONBLOCK ? PLAINLY : AFTER_WAIT;
    return s->manner != AS_PIPE;
}

/* What a system call returned, as we return it. */
static ssize_t result_of(ssize_t n)
{
    return n < 0 ? -errno : n;
}

static ssize_t read_file(struct stream *s, struct iovec iov)
{
    if (s->manner == AS_PIPE) {
        ssize_t got = result_of(preadv2(s->fd, &iov, 1, -1, RWF_NOWAIT));

        if (!needs_other_manner(s, got))
            return got;
    }
    if (s->manner == AFTER_WAIT && !s->ready)
        return WEIR_EAGAIN;
    return result_of(read(s->fd, iov.iov_base, iov.iov_len));
}

/* Could it be read?  readv(2) of nothing says so, and goes no further: a driver could wait
 * all the same, a socket take a datagram. */
static ssize_t read_nothing(int fd)
{
    return result_of(readv(fd, &(struct iovec){0}, 1));
}

static ssize_t try_read(struct stream *s, void *data, size_t n)
{
    if (n == 0)
        return read_nothing(s->fd);
    if (s->manner == AS_SOCKET) {
        ssize_t got = result_of(recv(s->fd, data, n, MSG_DONTWAIT));

        if (got != -ENOTSOCK)
            return got;
        s->manner = AS_PIPE;
    }
    return read_file(s, (struct iovec){.iov_base = data, .iov_len = n});
}

static ssize_t write_file(struct stream *s, struct iovec iov)
{
    if (s->manner == AS_PIPE) {
        ssize_t put = result_of(pwritev2(s->fd, &iov, 1, -1, RWF_NOWAIT));

        if (!needs_other_manner(s, put))
            return put;
    }
    if (s->manner == AFTER_WAIT && !s->ready)
        return WEIR_EAGAIN;
    /* Ready means room for so many bytes, and more would block. */
    if (s->manner == AFTER_WAIT && iov.iov_len > PIPE_BUF)
        iov.iov_len = PIPE_BUF;
    return result_of(write(s->fd, iov.iov_base, iov.iov_len));
}

void io_hold_sigpipe(sigset_t *ret_before)
{
    sigset_t sigpipe;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, ret_before);
}

/* If it was not blocked before, then the one that is pending after the error is ours. */
void io_let_go_of_sigpipe(const sigset_t *before, bool raised)
{
    sigset_t sigpipe;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    if (raised && !sigismember(before, SIGPIPE))
        sigtimedwait(&sigpipe, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static ssize_t write_file_quietly(struct stream *s, struct iovec iov)
{
    sigset_t before;

    io_hold_sigpipe(&before);
    ssize_t put = write_file(s, iov);
    io_let_go_of_sigpipe(&before, put == -EPIPE);
    return put;
}

static ssize_t try_write(struct stream *s, const char *data, size_t n)
{
    if (s->manner == AS_SOCKET) {
        ssize_t put = result_of(send(s->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL));

        if (put != -ENOTSOCK)
            return put;
        s->manner = AS_PIPE;
    }
    return write_file_quietly(s, (struct iovec){.iov_base = (char *)data, .iov_len = n});
}

/* `r` came of a try: 0 if it is worth another one. */
static int try_again(struct stream *s, ssize_t r, unsigned event, struct weir_deadline deadline)
{
    s->ready = false;
    if (r == -EINTR)
        return 0;
    if (r != WEIR_EAGAIN)
        return (int)r;
    int waited = weir_fd_wait(s->fd, event, deadline);
    s->ready = waited > 0;
    return waited < 0 ? waited : 0;
}

/* ---- public ----------------------------------------------------------------- */

ssize_t weir_read(int fd, void *ret_data, size_t n, struct weir_deadline deadline)
{
    struct stream s = {.fd = fd};
    int r = io_begin();

    while (r == 0) {
        ssize_t got = try_read(&s, ret_data, n);

        if (got >= 0) {
            io_end();
            return got;
        }
        r = try_again(&s, got, WEIR_READABLE, deadline);
    }
    return r;
}

ssize_t weir_write(int fd, const void *data, size_t n, struct weir_deadline deadline)
{
    struct stream s = {.fd = fd};
    size_t done = 0;
    int r = io_begin();

    while (r == 0) {
        ssize_t put = try_write(&s, (const char *)data + done, n - done);

        if (put >= 0) {
            done += (size_t)put;
            s.ready = false;
            io_end();
            if (done == n)
                return (ssize_t)n;
        } else {
            r = try_again(&s, put, WEIR_WRITABLE, deadline);
        }
    }
    return done > 0 ? (ssize_t)done : r;
}
