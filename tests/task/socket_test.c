/* SPDX-License-Identifier: MIT */
/* Connections: what weir/io.h promises of accept and connect, and many at once. */
#include <weir/event.h>
#include <weir/io.h>

#include <sys/un.h>

#include "harness/test.h"
#include "task/descriptors.h"
#include "task/workers.h"

/* ---- accept --------------------------------------------------------------------------- */

TASK_TEST(accept_returns_a_connection_that_does_not_block_and_is_closed_by_exec)
{
    struct sockaddr_in address, peer, own;
    socklen_t length = sizeof peer, own_length = sizeof own;
    int listener = listen_tcp(&address, SOCK_NONBLOCK, 8), fd = new_tcp(SOCK_NONBLOCK);

    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), 0);
    int accepted = weir_accept(listener, (struct sockaddr *)&peer, &length, WEIR_FOREVER);
    CHECK(accepted >= 0);
    CHECK(fcntl(accepted, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(accepted, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&own, &own_length), 0);
    CHECK_EQ(length, sizeof peer);
    CHECK_EQ(peer.sin_port, own.sin_port);
    close(accepted);
    close(fd);
    close(listener);
    return 0;
}

TASK_TEST(accept_waits_for_a_connection)
{
    for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
        struct sockaddr_in address;
        int listener = listen_tcp(&address, flags, 8), fd = new_tcp(flags);
        struct call c = {.fd = listener};
        struct weir_task one = spawn_waiting(call_accept, &c);

        CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), 0);
        int accepted = join(one);
        CHECK(accepted >= 0);
        close(accepted);
        close(fd);
        close(listener);
    }
    return 0;
}

TASK_TEST(accept_ends_at_its_deadline_or_by_a_cancel)
{
    for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
        struct sockaddr_in address;
        int listener = listen_tcp(&address, flags, 8);
        struct call c = {.fd = listener};

        CHECK_EQ(weir_accept(listener, NULL, NULL, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_accept(listener, NULL, NULL, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
        struct weir_task one = spawn_waiting(call_accept, &c);
        CHECK_EQ(weir_task_cancel(one), 0);
        CHECK_EQ(join(one), WEIR_ECANCELED);
        close(listener);
    }
    return 0;
}

TASK_TEST(accept_says_what_the_kernel_says)
{
    int fds[2], socket_fd = new_tcp(SOCK_NONBLOCK);

    new_pipe(fds, O_NONBLOCK);
    CHECK_EQ(weir_accept(fds[IN], NULL, NULL, WEIR_FOREVER), -ENOTSOCK);
    close_both(fds);
    CHECK_EQ(weir_accept(fds[IN], NULL, NULL, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_accept(-1, NULL, NULL, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_accept(socket_fd, NULL, NULL, WEIR_FOREVER), WEIR_EINVAL);
    close(socket_fd);
    return 0;
}

/* ---- connect -------------------------------------------------------------------------- */

TASK_TEST(connect_leaves_the_descriptor_as_blocking_as_it_was)
{
    for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
        struct sockaddr_in address;
        int listener = listen_tcp(&address, 0, 8), fd = new_tcp(flags);

        CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), 0);
        CHECK_EQ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, flags != 0);
        close(fd);
        close(listener);
    }
    return 0;
}

TASK_TEST(connect_says_that_nobody_listens)
{
    struct sockaddr_in address;
    int fd = new_tcp(0);

    close(listen_tcp(&address, 0, 8)); /* nobody has that port now */
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), -ECONNREFUSED);
    close(fd);
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), -EBADF);
    return 0;
}

/* Connections to a listener that accepts none, until one has to wait for room. */
struct crowd {
    struct sockaddr_in address;
    int listener, count, fds[64];
};

static int connect_last(void *arg)
{
    struct crowd *crowd = arg;

    return connect_to(crowd->fds[crowd->count - 1], &crowd->address, WEIR_FOREVER);
}

static void make_crowd(struct crowd *crowd)
{
    int r;

    crowd->listener = listen_tcp(&crowd->address, SOCK_NONBLOCK, 1);
    crowd->count = 0;
    do {
        CHECK(crowd->count < 64);
        crowd->fds[crowd->count] = new_tcp(0);
        r = connect_to(crowd->fds[crowd->count++], &crowd->address, weir_within(20 * WEIR_MS));
    } while (r == 0);
    CHECK_EQ(r, WEIR_ETIMEDOUT);
}

static void disperse(struct crowd *crowd)
{
    for (int i = 0; i < crowd->count; i++)
        close(crowd->fds[i]);
    close(crowd->listener);
}

TASK_TEST(connect_ends_at_its_deadline_or_by_a_cancel)
{
    struct crowd crowd;

    make_crowd(&crowd); /* the last of which has seen its deadline pass */
    struct weir_task one = spawn_waiting(connect_last, &crowd);
    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    disperse(&crowd);
    return 0;
}

/* Takes the second after which the kernel knocks again. */
ONE_WORKER_TEST(a_connect_that_was_given_up_may_be_taken_up_again)
{
    struct crowd crowd;

    make_crowd(&crowd);
    struct weir_task one = spawn_waiting(connect_last, &crowd);
    for (int i = 0; i < crowd.count; i++)
        close(weir_accept(crowd.listener, NULL, NULL, WEIR_FOREVER));
    CHECK_EQ(join(one), 0);
    disperse(&crowd);
    return 0;
}

TASK_TEST(a_unix_listener_without_room_is_an_error_at_once)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t); /* alone: the kernel finds a name */
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[8], count = 0, r;

    CHECK_EQ(bind(listener, (struct sockaddr *)&address, length), 0);
    length = sizeof address;
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    CHECK_EQ(listen(listener, 1), 0);
    do {
        CHECK(count < 8);
        fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = weir_connect(fds[count++], (struct sockaddr *)&address, length, WEIR_FOREVER);
    } while (r == 0);
    CHECK_EQ(r, WEIR_EAGAIN);
    while (count > 0)
        close(fds[--count]);
    close(listener);
    return 0;
}

static void thread_connects(void *arg)
{
    int fd = new_tcp(0);
    char text[4];

    CHECK_EQ(connect_to(fd, arg, WEIR_FOREVER), 0);
    CHECK_EQ(weir_read(fd, text, sizeof text, WEIR_FOREVER), 2);
    CHECK_EQ(weir_close(fd), 0);
}

TEST(threads_connect_and_accept)
{
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 0, 8);

    CHECK_EQ(weir_accept(listener, NULL, NULL, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    test_spawn(thread_connects, &address);
    int fd = weir_accept(listener, NULL, NULL, WEIR_FOREVER);
    CHECK_EQ(weir_write(fd, "ok", 2, WEIR_FOREVER), 2);
    CHECK_EQ(weir_close(fd), 0);
    CHECK_EQ(weir_close(listener), 0);
}

/* ---- many at once -------------------------------------------------------------------- */

enum { CLIENTS = 200 };

static int echo(void *arg)
{
    int fd = *(int *)arg;
    char text[64];
    ssize_t n;

    while ((n = weir_read(fd, text, sizeof text, WEIR_FOREVER)) > 0)
        CHECK_EQ(weir_write(fd, text, (size_t)n, WEIR_FOREVER), n);
    CHECK_EQ(n, 0);
    return weir_close(fd);
}

struct server {
    struct sockaddr_in address;
    int listener;
    int fds[CLIENTS];
};

static int serve(void *arg)
{
    struct server *server = arg;
    struct weir_task tasks[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        server->fds[i] = weir_accept(server->listener, NULL, NULL, WEIR_FOREVER);
        CHECK(server->fds[i] >= 0);
        tasks[i] = spawn(echo, &server->fds[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(join(tasks[i]), 0);
    return 0;
}

static struct weir_event all_connected;
static int connected;

static int talk(void *arg)
{
    const struct sockaddr_in *address = arg;
    int fd = new_tcp(SOCK_NONBLOCK);

    CHECK_EQ(connect_to(fd, address, WEIR_FOREVER), 0);
    if (__atomic_add_fetch(&connected, 1, __ATOMIC_ACQ_REL) == CLIENTS)
        weir_event_set(&all_connected);
    CHECK_EQ(weir_event_wait(&all_connected, WEIR_FOREVER), 0);
    for (int i = 0; i < test_scaled(10); i++) {
        char sent[32], got[32];
        size_t n = 1 + test_random(sizeof sent), have = 0;

        for (size_t k = 0; k < n; k++)
            sent[k] = (char)test_random(256);
        CHECK_EQ(weir_write(fd, sent, n, WEIR_FOREVER), (ssize_t)n);
        while (have < n) {
            ssize_t r = weir_read(fd, got + have, n - have, WEIR_FOREVER);

            CHECK(r > 0);
            have += (size_t)r;
        }
        CHECK_EQ(memcmp(sent, got, n), 0);
    }
    return weir_close(fd);
}

TASK_TEST(two_hundred_connections_are_echoed_at_once)
{
    static struct server server;
    struct weir_task clients[CLIENTS];

    weir_event_init(&all_connected);
    connected = 0;
    server.listener = listen_tcp(&server.address, SOCK_NONBLOCK, CLIENTS);
    struct weir_task one = spawn(serve, &server);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = spawn(talk, &server.address);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(join(clients[i]), 0);
    CHECK_EQ(join(one), 0);
    CHECK_EQ(weir_close(server.listener), 0);
    return 0;
}
