/* SPDX-License-Identifier: MIT */
/* For tests of I/O: descriptors of all kinds, and tasks that wait for them. */
#ifndef WEIR_TESTS_TASK_DESCRIPTORS_H
#define WEIR_TESTS_TASK_DESCRIPTORS_H

#include <weir/io.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "task/workers.h"

/* ---- pipes and pairs ------------------------------------------------------------ */

enum { IN = 0, OUT = 1 }; /* the ends of a pipe */

static inline void close_both(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static inline void new_pipe(int fds[2], int flags)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC | flags), 0);
}

static inline void new_pair(int fds[2], int flags)
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds), 0);
}

/* One with a name: of those the kernel cannot say whether a call would block. */
static inline void new_fifo(int fds[2], int flags)
{
    char dir[] = P_tmpdir "/weir.XXXXXX", name[sizeof dir + 8];

    CHECK(mkdtemp(dir) != NULL);
    snprintf(name, sizeof name, "%s/fifo", dir);
    CHECK_EQ(mkfifo(name, 0600), 0);
    int both = open(name, O_RDWR | O_CLOEXEC); /* or the next one would wait for the other */
    fds[IN] = open(name, O_RDONLY | O_CLOEXEC | flags);
    fds[OUT] = open(name, O_WRONLY | O_CLOEXEC | flags);
    CHECK(both >= 0 && fds[IN] >= 0 && fds[OUT] >= 0);
    close(both);
    unlink(name);
    rmdir(dir);
}

static inline void put(int fd, const char *text)
{
    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Write until it would block; returns how much that was. */
static inline size_t fill(int fd)
{
    static const char zeros[4096];
    int flags = fcntl(fd, F_GETFL);
    size_t total = 0;
    ssize_t n;

    CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while ((n = write(fd, zeros, sizeof zeros)) > 0)
        total += (size_t)n;
    while (write(fd, zeros, 1) == 1)
        total++;
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
    return total;
}

static inline void drain(int fd, size_t n)
{
    char text[4096];

    while (n > 0) {
        ssize_t got = read(fd, text, n < sizeof text ? n : sizeof text);

        CHECK(got > 0);
        n -= (size_t)got;
    }
}

/* What is written to fds[OUT] can be read from fds[IN]: in all ways there are. */
static inline void each_kind(void (*test)(const int fds[2]))
{
    int fds[2];

    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        new_pipe(fds, flags);
        test(fds);
        close_both(fds);
        new_fifo(fds, flags);
        test(fds);
        close_both(fds);
        new_pair(fds, flags ? SOCK_NONBLOCK : 0);
        test(fds);
        close_both(fds);
    }
}

/* ---- tasks that wait ---------------------------------------------------------- */

/* A call that a task makes, and what it returned. */
struct call {
    int fd;
    unsigned events;
    char text[16];
};

static inline int call_wait(void *arg)
{
    struct call *c = arg;

    return weir_fd_wait(c->fd, c->events, WEIR_FOREVER);
}

static inline int call_read(void *arg)
{
    struct call *c = arg;

    return (int)weir_read(c->fd, c->text, sizeof c->text, WEIR_FOREVER);
}

static inline int call_write(void *arg)
{
    struct call *c = arg;

    return (int)weir_write(c->fd, "x", 1, WEIR_FOREVER);
}

static inline int call_accept(void *arg)
{
    struct call *c = arg;

    return weir_accept(c->fd, NULL, NULL, WEIR_FOREVER);
}

/* Once it waits. */
static inline struct weir_task spawn_waiting(weir_fn *fn, void *arg)
{
    int before = waiting();
    struct weir_task one = spawn(fn, arg);

    TASK_EVENTUALLY(waiting() == before + 1);
    return one;
}

/* ---- connections ---------------------------------------------------------------- */

/* A listening socket of the loopback's, on a port of the kernel's choice. */
static inline int listen_tcp(struct sockaddr_in *ret_address, int flags, int backlog)
{
    socklen_t length = sizeof *ret_address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    *ret_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)ret_address, length), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)ret_address, &length), 0);
    return fd;
}

static inline int new_tcp(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    CHECK(fd >= 0);
    return fd;
}

static inline int connect_to(int fd, const struct sockaddr_in *address,
                             struct weir_deadline deadline)
{
    return weir_connect(fd, (const struct sockaddr *)address, sizeof *address, deadline);
}

#endif
