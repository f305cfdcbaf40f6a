/* SPDX-License-Identifier: MIT */
/* As badargs_test.c, for io.h. */
#include <weir/weir.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "harness/test.h"
#include "task/contexts.h"
#include "task/descriptors.h"

/* ---- helpers ---------------------------------------------------------------- */

static int fds[2];     /* what the calls below are made with */
enum { UNUSED = 900 }; /* a number that is no descriptor's */

static struct sockaddr *as_address(void *address)
{
    return (struct sockaddr *)address;
}

/* ---- io.h: waiting, reading and writing --------------------------------------- */

static void wait_for_no_event(void)
{
    static const unsigned none[] = {0, 2, 8, 1 | 2, 4 | 16, 1U << 31, UINT_MAX};

    for (int i = 0; i < 7; i++) {
        CHECK_EQ(weir_fd_wait(fds[IN], none[i], WEIR_FOREVER), WEIR_EINVAL);
        CHECK_EQ(weir_fd_wait(fds[OUT], none[i], WEIR_NO_WAIT), WEIR_EINVAL); /* ready */
        CHECK_EQ(weir_fd_wait(-1, none[i], WEIR_FOREVER), WEIR_EINVAL);
    }
}

TEST(other_events_cannot_be_waited_for)
{
    new_pipe(fds, 0);
    everywhere(wait_for_no_event);
    close_both(fds);
}

static void use_what_is_not_open(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    char text[4] = "abc";

    CHECK_EQ(weir_fd_wait(fd, WEIR_READABLE, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_fd_wait(fd, WEIR_READABLE | WEIR_WRITABLE, WEIR_NO_WAIT), -EBADF);
    CHECK_EQ(weir_read(fd, text, sizeof text, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_read(fd, text, 1, WEIR_NO_WAIT), -EBADF);
    CHECK_EQ(weir_read(fd, text, 0, WEIR_NO_WAIT), -EBADF);
    CHECK_STR(text, "abc");
    CHECK_EQ(weir_write(fd, text, 3, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_write(fd, text, 0, WEIR_NO_WAIT), -EBADF);
    CHECK_EQ(weir_accept(fd, as_address(&address), &length, WEIR_FOREVER), -EBADF);
    CHECK_EQ(length, sizeof address);
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_close(fd), -EBADF);
}

static void use_all_that_are_not_open(void)
{
    static const int none[] = {-1, -2, INT_MIN, INT_MAX, 1 << 20, UNUSED};

    for (int i = 0; i < 6; i++)
        use_what_is_not_open(none[i]);
}

TEST(what_is_not_open_is_refused_by_every_call)
{
    new_pipe(fds, 0);
    everywhere(use_all_that_are_not_open);
    CHECK_EQ(fcntl(fds[IN], F_GETFD), FD_CLOEXEC); /* the others are as they were */
    CHECK_EQ(fcntl(fds[OUT], F_GETFD), FD_CLOEXEC);
    close_both(fds);
}

static void use_the_wrong_end(void)
{
    char text[4] = "abc";
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(weir_read(fds[OUT], text, sizeof text, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_read(fds[OUT], text, 0, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_write(fds[IN], text, 3, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_write(fds[IN], text, 0, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_read(directory, text, sizeof text, WEIR_FOREVER), -EISDIR);
    CHECK_EQ(weir_write(directory, text, 3, WEIR_FOREVER), -EBADF);
    CHECK_STR(text, "abc");
    CHECK_EQ(weir_close(directory), 0);
    CHECK_EQ(weir_close(directory), -EBADF);
}

TEST(what_cannot_be_read_or_written_is_not_waited_for)
{
    SKIP_IF(TEST_QEMU, "qemu has no preadv2, and waits never end for the wrong end of a pipe");
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        new_pipe(fds, flags);
        everywhere(use_the_wrong_end);
        close_both(fds);
    }
}

static void use_without_waiting(void)
{
    char text[4] = "abc";

    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_read(fds[IN], text, sizeof text, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_read(fds[IN], NULL, 0, past[i]), 0);
        CHECK_STR(text, "abc");
        CHECK_EQ(weir_write(fds[OUT], NULL, 0, past[i]), 0);
        CHECK_EQ(weir_write(fds[OUT], "xy", 2, past[i]), 2);
        CHECK_EQ(weir_read(fds[IN], text, 1, past[i]), 1);
        CHECK_EQ(weir_read(fds[IN], text, sizeof text, past[i]), 1);
        memcpy(text, "abc", sizeof text);
    }
}

TEST(descriptors_take_any_deadline)
{
    new_pipe(fds, 0);
    everywhere(use_without_waiting);
    close_both(fds);
}

static void read_nothing(void)
{
    char text[4] = "abc";

    CHECK_EQ(weir_read(fds[IN], text, 0, WEIR_FOREVER), 0); /* nothing is there */
    CHECK_EQ(weir_write(fds[OUT], "xy", 2, WEIR_FOREVER), 2);
    CHECK_EQ(weir_read(fds[IN], NULL, 0, WEIR_FOREVER), 0);
    CHECK_STR(text, "abc");
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_NO_WAIT), 2);
}

TEST(to_read_nothing_waits_for_nothing_and_takes_nothing)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, fds), 0);
        everywhere(read_nothing);
        close_both(fds);
    }
    new_pipe(fds, 0);
    everywhere(read_nothing);
    close_both(fds);
}

/* Cancelled: what cannot be is said first, then that; and a close is none of it. */
static void use_although_cancelled(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char text[4];

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    wait_for_no_event();
    CHECK_EQ(weir_fd_wait(UNUSED, WEIR_READABLE, WEIR_NO_WAIT), WEIR_ECANCELED);
    CHECK_EQ(weir_read(UNUSED, text, sizeof text, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_write(UNUSED, text, 1, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_accept(UNUSED, NULL, NULL, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(connect_to(UNUSED, &address, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_close(UNUSED), -EBADF);
}

TEST(a_cancelled_task_is_told_so_whatever_the_descriptor)
{
    new_pipe(fds, 0);
    run_as_task(use_although_cancelled);
    close_both(fds);
}

/* ---- io.h: sockets ------------------------------------------------------------ */

static void use_what_is_no_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int flags = fcntl(fds[IN], F_GETFL);

    CHECK_EQ(weir_accept(fds[IN], as_address(&address), &length, WEIR_FOREVER), -ENOTSOCK);
    CHECK_EQ(length, sizeof address);
    CHECK_EQ(connect_to(fds[IN], &address, WEIR_FOREVER), -ENOTSOCK);
    CHECK_EQ(fcntl(fds[IN], F_GETFL), flags); /* as blocking as it was */
}

TEST(what_is_no_socket_neither_accepts_nor_connects_and_stays_as_it_was)
{
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        new_pipe(fds, flags);
        everywhere(use_what_is_no_socket);
        close_both(fds);
    }
}

static void check_cannot_accept(int fd, int want)
{
    int flags = fcntl(fd, F_GETFL);

    CHECK_EQ(weir_accept(fd, NULL, NULL, WEIR_FOREVER), want);
    CHECK_EQ(weir_accept(fd, NULL, NULL, WEIR_NO_WAIT), want);
    CHECK_EQ(fcntl(fd, F_GETFL), flags);
    CHECK_EQ(weir_close(fd), 0);
}

static void accept_from_who_does_not_listen(void)
{
    for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
        check_cannot_accept(new_tcp(flags), -EINVAL);
        check_cannot_accept(socket(AF_INET, SOCK_DGRAM | flags, 0), -EOPNOTSUPP);
        new_pair(fds, flags);
        check_cannot_accept(fds[IN], -EINVAL);
        check_cannot_accept(fds[OUT], -EINVAL);
    }
}

static void accept_without_waiting(void)
{
    struct sockaddr_in address;
    int fd = listen_tcp(&address, 0, 1);

    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_accept(fd, NULL, NULL, past[i]), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_close(fd), 0);
}

TEST(nobody_is_accepted_from_who_does_not_listen_or_where_nobody_comes)
{
    everywhere(accept_from_who_does_not_listen);
    everywhere(accept_without_waiting);
}

static void connect_to_what_is_no_address(void)
{
    static const socklen_t lengths[] = {0, 1, sizeof(struct sockaddr_in) - 1, 4096, UINT32_MAX};
    struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
    struct sockaddr_in address = {.sin_family = 255};
    int fd = new_tcp(0);

    for (int i = 0; i < 5; i++)
        CHECK_EQ(weir_connect(fd, as_address(&address), lengths[i], WEIR_FOREVER), -EINVAL);
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), -EAFNOSUPPORT);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR);
    CHECK_EQ(weir_close(fd), 0);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(weir_connect(fd, as_address(&nowhere), sizeof nowhere, WEIR_FOREVER), -ENOENT);
    CHECK_EQ(weir_close(fd), 0);
}

static void connect_twice(void)
{
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 0, 1), fd = new_tcp(0);

    CHECK_EQ(connect(fd, as_address(&address), sizeof address), 0);
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), -EISCONN);
    CHECK_EQ(connect_to(listener, &address, WEIR_FOREVER), -EISCONN);
    CHECK_EQ(weir_close(fd), 0);
    CHECK_EQ(weir_close(listener), 0);
}

TEST(what_is_no_address_cannot_be_connected_to)
{
    everywhere(connect_to_what_is_no_address);
}

TEST(what_is_connected_or_listens_cannot_be_connected)
{
    everywhere(connect_twice);
}

/* ---- io.h: signals -------------------------------------------------------------- */

static void wait_for_what_is_not_blocked(void)
{
    static const int signals[] = {SIGKILL, SIGSTOP, SIGSEGV};
    sigset_t set;

    for (int i = 0; i < 3; i++) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2); /* which is */
        sigaddset(&set, signals[i]);
        CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), WEIR_EINVAL);
        CHECK_EQ(weir_signal_wait(&set, WEIR_NO_WAIT), WEIR_EINVAL);
    }
    sigfillset(&set);
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), WEIR_EINVAL);
    memset(&set, 0xff, sizeof set); /* with those that the libc keeps for itself */
    CHECK_EQ(weir_signal_wait(&set, WEIR_FOREVER), WEIR_EINVAL);
}

static void wait_for_signals_in_no_time(void)
{
    sigset_t none, one;

    sigemptyset(&none);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    for (int i = 0; i < PASTS; i++) {
        CHECK_EQ(weir_signal_wait(&none, past[i]), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_signal_wait(&one, past[i]), WEIR_ETIMEDOUT);
    }
}

static void wait_for_signals_where_one_may_not(void)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    CHECK_EQ(weir_signal_wait(&one, WEIR_FOREVER), WEIR_ECONTEXT);
}

TEST(only_signals_that_are_blocked_are_waited_for_by_any_deadline)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
    everywhere(wait_for_what_is_not_blocked);
    everywhere(wait_for_signals_in_no_time);
    where_one_may_not_wait(wait_for_signals_where_one_may_not);
}
