/* SPDX-License-Identifier: MIT */
/* Descriptors: the promises of weir/io.h, call by call; what they have in common, and
 * closing, comes last.  Signals have a file of their own. */
#include <weir/event.h>
#include <weir/io.h>
#include <weir/loop.h>
#include <weir/op.h>
#include <weir/sem.h>
#include <weir/task.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/test.h"
#include "task/workers.h"

/* ---- helpers ---------------------------------------------------------------- */

enum { IN = 0, OUT = 1 }; /* the ends of a pipe */

static void close_both(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static void new_pipe(int fds[2], int flags)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC | flags), 0);
}

static void new_pair(int fds[2], int flags)
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds), 0);
}

static void put(int fd, const char *text)
{
    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Write until it would block; returns how much that was. */
static size_t fill(int fd)
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

static void drain(int fd, size_t n)
{
    char text[4096];

    while (n > 0) {
        ssize_t got = read(fd, text, n < sizeof text ? n : sizeof text);

        CHECK(got > 0);
        n -= (size_t)got;
    }
}

/* A call that a task makes, and what it returned. */
struct call {
    int fd;
    unsigned events;
    char text[16];
};

static int call_wait(void *arg)
{
    struct call *c = arg;

    return weir_fd_wait(c->fd, c->events, WEIR_FOREVER);
}

static int call_read(void *arg)
{
    struct call *c = arg;

    return (int)weir_read(c->fd, c->text, sizeof c->text, WEIR_FOREVER);
}

static int call_write(void *arg)
{
    struct call *c = arg;

    return (int)weir_write(c->fd, "x", 1, WEIR_FOREVER);
}

static int call_accept(void *arg)
{
    struct call *c = arg;

    return weir_accept(c->fd, NULL, NULL, WEIR_FOREVER);
}

/* Once it waits. */
static struct weir_task spawn_waiting(weir_fn *fn, void *arg)
{
    int before = waiting();
    struct weir_task one = spawn(fn, arg);

    TASK_EVENTUALLY(waiting() == before + 1);
    return one;
}

/* A listening socket of the loopback's, on a port of the kernel's choice. */
static int listen_tcp(struct sockaddr_in *ret_address, int flags, int backlog)
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

static int new_tcp(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    CHECK(fd >= 0);
    return fd;
}

static int connect_to(int fd, const struct sockaddr_in *address, struct weir_deadline deadline)
{
    return weir_connect(fd, (const struct sockaddr *)address, sizeof *address, deadline);
}

/* ---- waiting ------------------------------------------------------------------ */

TASK_TEST(a_wait_returns_the_events_that_are_there)
{
    int fds[2];

    new_pair(fds, SOCK_NONBLOCK);
    CHECK_EQ(weir_fd_wait(fds[0], WEIR_READABLE | WEIR_WRITABLE, WEIR_FOREVER), WEIR_WRITABLE);
    put(fds[1], "x");
    CHECK_EQ(weir_fd_wait(fds[0], WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE);
    CHECK_EQ(weir_fd_wait(fds[0], WEIR_READABLE | WEIR_WRITABLE, WEIR_FOREVER),
             WEIR_READABLE | WEIR_WRITABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_wait_ends_when_there_is_something_to_read)
{
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    put(fds[OUT], "x");
    CHECK_EQ(join(one), WEIR_READABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_wait_ends_when_there_is_room_to_write)
{
    int fds[2];

    new_pipe(fds, 0);
    size_t full = fill(fds[OUT]);
    struct call c = {.fd = fds[OUT], .events = WEIR_WRITABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    drain(fds[IN], full);
    CHECK_EQ(join(one), WEIR_WRITABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_hang_up_makes_it_ready_for_whatever_was_asked)
{
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    close(fds[OUT]);
    CHECK_EQ(join(one), WEIR_READABLE);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_READABLE);
    close(fds[IN]);

    new_pipe(fds, 0);
    close(fds[IN]);
    CHECK_EQ(weir_fd_wait(fds[OUT], WEIR_WRITABLE, WEIR_FOREVER), WEIR_WRITABLE);
    close(fds[OUT]);
    return 0;
}

TASK_TEST(one_descriptor_is_waited_for_by_readers_and_writers_at_once)
{
    int fds[2];

    new_pair(fds, SOCK_NONBLOCK);
    size_t full = fill(fds[0]);
    struct call in = {.fd = fds[0], .events = WEIR_READABLE};
    struct call out = {.fd = fds[0], .events = WEIR_WRITABLE};
    struct call both = {.fd = fds[0], .events = WEIR_READABLE | WEIR_WRITABLE};
    struct weir_task reader = spawn_waiting(call_wait, &in);
    struct weir_task writer = spawn_waiting(call_wait, &out);
    struct weir_task either = spawn_waiting(call_wait, &both);

    put(fds[1], "x");
    CHECK_EQ(join(reader), WEIR_READABLE);
    CHECK_EQ(join(either), WEIR_READABLE);
    CHECK_EQ(weir_task_join(writer, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    drain(fds[1], full);
    CHECK_EQ(join(writer), WEIR_WRITABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(all_who_wait_for_the_same_are_woken)
{
    enum { TASKS = 10 };
    struct weir_task tasks[TASKS];
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    for (int i = 0; i < TASKS; i++)
        tasks[i] = spawn_waiting(call_wait, &c);
    put(fds[OUT], "x");
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(join(tasks[i]), WEIR_READABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_deadline_in_the_past_looks_once)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_fd_wait(fds[OUT], WEIR_WRITABLE, WEIR_NO_WAIT), WEIR_WRITABLE);
    put(fds[OUT], "x");
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_READABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_wait_ends_at_its_deadline)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    put(fds[OUT], "x"); /* nothing is left of it that could disturb the next one */
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE);
    close_both(fds);
    return 0;
}

TASK_TEST(a_wait_is_ended_by_a_cancel)
{
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN], .events = WEIR_READABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    close_both(fds);
    return 0;
}

TASK_TEST(what_cannot_be_waited_for_is_an_error)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_fd_wait(fds[OUT], 0, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_fd_wait(fds[OUT], WEIR_WRITABLE | 2, WEIR_FOREVER), WEIR_EINVAL);
    CHECK_EQ(weir_fd_wait(fds[OUT], 0x10000, WEIR_NO_WAIT), WEIR_EINVAL);
    close_both(fds);
    int never_open[] = {-1, INT_MIN, fds[IN], 1000000, INT_MAX};
    for (size_t i = 0; i < sizeof never_open / sizeof *never_open; i++) {
        CHECK_EQ(weir_fd_wait(never_open[i], WEIR_READABLE, WEIR_FOREVER), -EBADF);
        CHECK_EQ(weir_fd_wait(never_open[i], WEIR_READABLE, WEIR_NO_WAIT), -EBADF);
    }
    return 0;
}

TASK_TEST(without_memory_a_wait_is_refused)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(dup2(fds[OUT], 900), 900); /* a number that there is no place for yet */
    test_fail_allocation(1);
    CHECK_EQ(weir_fd_wait(900, WEIR_WRITABLE, WEIR_FOREVER), WEIR_ENOMEM);
    CHECK_EQ(weir_fd_wait(900, WEIR_WRITABLE, WEIR_FOREVER), WEIR_WRITABLE);
    close(900);
    close_both(fds);
    return 0;
}

TASK_TEST(files_are_always_ready)
{
    FILE *file = tmpfile();

    CHECK(file != NULL);
    CHECK_EQ(weir_fd_wait(fileno(file), WEIR_READABLE | WEIR_WRITABLE, WEIR_FOREVER),
             WEIR_READABLE | WEIR_WRITABLE);
    CHECK_EQ(weir_fd_wait(fileno(file), WEIR_READABLE, WEIR_NO_WAIT), WEIR_READABLE);
    fclose(file);
    return 0;
}

/* ---- reading ------------------------------------------------------------------- */

/* What is read comes from the other end of each of these. */
static void each_kind(void (*test)(const int fds[2]))
{
    int fds[2];

    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        new_pipe(fds, flags);
        test(fds);
        close_both(fds);
        new_pair(fds, flags ? SOCK_NONBLOCK : 0);
        test(fds);
        close_both(fds);
    }
}

static void read_what_is_there(const int fds[2])
{
    char text[16] = "";

    put(fds[OUT], "hello");
    CHECK_EQ(weir_read(fds[IN], text, 2, WEIR_FOREVER), 2);
    CHECK_STR(text, "he");
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_NO_WAIT), 3);
    CHECK_EQ(memcmp(text, "llo", 3), 0);
    CHECK_EQ(weir_read(fds[IN], text, 0, WEIR_FOREVER), 0);
}

TASK_TEST(reading_returns_what_is_there)
{
    each_kind(read_what_is_there);
    return 0;
}

static void wait_and_read(const int fds[2])
{
    struct call c = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &c);

    put(fds[OUT], "hello");
    CHECK_EQ(join(one), 5);
    CHECK_STR(c.text, "hello");
}

/* With one worker, none of the kinds can have blocked it. */
TASK_TEST(reading_waits_until_there_is_something)
{
    each_kind(wait_and_read);
    return 0;
}

static void read_in_vain(const int fds[2])
{
    char text[16] = "as before";

    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_STR(text, "as before");
}

TASK_TEST(reading_ends_at_its_deadline)
{
    each_kind(read_in_vain);
    return 0;
}

static void cancel_reading(const int fds[2])
{
    struct call c = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &c);

    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
}

TASK_TEST(reading_is_ended_by_a_cancel)
{
    each_kind(cancel_reading);
    return 0;
}

TASK_TEST(reading_returns_0_at_the_end)
{
    char text[4];
    int fds[2];

    new_pipe(fds, 0);
    put(fds[OUT], "x");
    close(fds[OUT]);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), 1);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), 0);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_NO_WAIT), 0);
    close(fds[IN]);
    new_pair(fds, 0);
    close(fds[1]);
    CHECK_EQ(weir_read(fds[0], text, sizeof text, WEIR_FOREVER), 0);
    close(fds[0]);
    return 0;
}

TASK_TEST(reading_says_what_the_kernel_says)
{
    char text[4];
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_read(fds[OUT], text, sizeof text, WEIR_FOREVER), -EBADF);
    close_both(fds);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), -EBADF);
    CHECK_EQ(weir_read(-1, text, sizeof text, WEIR_FOREVER), -EBADF);
    int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(weir_read(dir, text, sizeof text, WEIR_FOREVER), -EISDIR);
    close(dir);
    return 0;
}

/* Both wake up, and what there is is enough for one.  Nobody may be left blocking. */
static void read_by_two(const int fds[2])
{
    struct call a = {.fd = fds[IN]}, b = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &a), two = spawn_waiting(call_read, &b);

    put(fds[OUT], "x");
    TASK_EVENTUALLY(waiting() == 1);
    put(fds[OUT], "y");
    CHECK_EQ(join(one), 1);
    CHECK_EQ(join(two), 1);
    CHECK_EQ(a.text[0] + b.text[0], 'x' + 'y');
}

TASK_TEST(two_may_read_from_one)
{
    int fds[2];

    new_pair(fds, 0); /* also one that blocks; of pipes that holds since Linux 6.5 */
    read_by_two(fds);
    close_both(fds);
    new_pipe(fds, O_NONBLOCK);
    read_by_two(fds);
    close_both(fds);
    return 0;
}

/* ---- writing ------------------------------------------------------------------- */

enum { MUCH = 1000000 }; /* more than fits into any buffer here */

static char much[MUCH];

static int read_much(void *arg)
{
    static char got[MUCH];
    const struct call *c = arg;
    size_t n = 0;

    while (n < MUCH) {
        ssize_t r = weir_read(c->fd, got + n, MUCH - n, WEIR_FOREVER);

        CHECK(r > 0);
        n += (size_t)r;
    }
    CHECK_EQ(memcmp(got, much, MUCH), 0);
    return 0;
}

static void write_much(const int fds[2])
{
    struct call c = {.fd = fds[IN]};

    for (int i = 0; i < MUCH; i++)
        much[i] = (char)test_random(256);
    struct weir_task reader = spawn(read_much, &c);
    CHECK_EQ(weir_write(fds[OUT], much, MUCH, WEIR_FOREVER), MUCH);
    CHECK_EQ(join(reader), 0);
}

TASK_TEST(writing_writes_all)
{
    each_kind(write_much);
    return 0;
}

static void write_to_full(const int fds[2])
{
    size_t full = fill(fds[OUT]);

    CHECK_EQ(weir_write(fds[OUT], "x", 1, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_write(fds[OUT], "x", 1, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    struct call c = {.fd = fds[OUT]};
    struct weir_task one = spawn_waiting(call_write, &c);
    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    drain(fds[IN], full);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT); /* none */
}

TASK_TEST(writing_ends_at_its_deadline_or_by_a_cancel_having_written_nothing)
{
    each_kind(write_to_full);
    return 0;
}

static void write_some(const int fds[2])
{
    ssize_t n = weir_write(fds[OUT], much, MUCH, weir_within(WEIR_MS));

    CHECK(n > 0 && n < MUCH);
    CHECK_EQ(weir_write(fds[OUT], much, MUCH, WEIR_NO_WAIT), WEIR_ETIMEDOUT); /* here is why */
    drain(fds[IN], (size_t)n);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
}

TASK_TEST(writing_that_ends_half_way_returns_how_far_it_came)
{
    each_kind(write_some);
    return 0;
}

static int write_all_of_it(void *arg)
{
    const struct call *c = arg;

    return (int)weir_write(c->fd, much, MUCH, WEIR_FOREVER);
}

static void cancel_half_way(const int fds[2])
{
    struct call c = {.fd = fds[OUT]};
    struct weir_task one = spawn_waiting(write_all_of_it, &c);

    CHECK_EQ(weir_task_cancel(one), 0);
    int n = join(one);
    CHECK(n > 0 && n < MUCH);
    drain(fds[IN], (size_t)n);
}

TASK_TEST(so_does_one_that_is_cancelled)
{
    each_kind(cancel_half_way);
    return 0;
}

TASK_TEST(writing_nothing_is_done_at_once)
{
    int fds[2];

    new_pair(fds, 0);
    fill(fds[0]);
    CHECK_EQ(weir_write(fds[0], much, 0, WEIR_NO_WAIT), 0);
    close_both(fds);
    return 0;
}

static void write_to_nobody(void *arg)
{
    int fds[2];
    sigset_t pending;

    (void)arg;
    new_pair(fds, 0);
    close(fds[IN]);
    CHECK_EQ(weir_write(fds[OUT], "x", 1, WEIR_FOREVER), -EPIPE);
    close(fds[OUT]);
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        new_pipe(fds, flags);
        close(fds[IN]);
        CHECK_EQ(weir_write(fds[OUT], "x", 1, WEIR_FOREVER), -EPIPE);
        close(fds[OUT]);
    }
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, SIGPIPE) == 0 || weir_runtime_self() != NULL);
}

TASK_TEST(writing_to_what_nobody_reads_is_an_error_and_no_signal)
{
    write_to_nobody(NULL);
    return 0;
}

TEST(neither_is_it_one_on_a_thread)
{
    write_to_nobody(NULL);
    test_spawn(write_to_nobody, NULL);
}

/* ---- other kinds of descriptor ----------------------------------------------------- */

TASK_TEST(files_are_read_and_written)
{
    static char got[MUCH];
    FILE *file = tmpfile();
    int fd = fileno(file);
    size_t n = 0;

    CHECK_EQ(weir_write(fd, much, MUCH, WEIR_FOREVER), MUCH);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    while (n < MUCH) {
        ssize_t r = weir_read(fd, got + n, MUCH - n, WEIR_NO_WAIT);

        CHECK(r > 0);
        n += (size_t)r;
    }
    CHECK_EQ(memcmp(got, much, MUCH), 0);
    CHECK_EQ(weir_read(fd, got, 1, WEIR_FOREVER), 0);
    fclose(file);
    return 0;
}

/* Its pages are dropped from memory first, so that trying finds nothing. */
TASK_TEST(so_are_files_that_are_not_in_memory)
{
    char name[] = "io_test.XXXXXX", got[16];
    int fd = mkstemp(name);

    CHECK(fd >= 0);
    unlink(name);
    CHECK_EQ(weir_write(fd, much, MUCH, WEIR_FOREVER), MUCH);
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    CHECK_EQ(pread(fd, got, 0, 0), 0);
    CHECK_EQ(lseek(fd, MUCH / 2, SEEK_SET), MUCH / 2);
    CHECK_EQ(weir_read(fd, got, sizeof got, WEIR_NO_WAIT), sizeof got);
    close(fd);
    return 0;
}

TASK_TEST(counters_are_read_and_written)
{
    for (int flags = 0; flags <= EFD_NONBLOCK; flags += EFD_NONBLOCK) {
        int fd = eventfd(0, EFD_CLOEXEC | flags);
        struct call c = {.fd = fd};

        CHECK_EQ(weir_read(fd, c.text, 8, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
        struct weir_task one = spawn_waiting(call_read, &c);
        CHECK_EQ(weir_write(fd, &(uint64_t){3}, 8, WEIR_FOREVER), 8);
        CHECK_EQ(join(one), 8);
        CHECK_EQ(c.text[0], 3);
        close(fd);
    }
    return 0;
}

TASK_TEST(terminals_are_read_and_written)
{
    int fds[2];

    fds[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fds[0] < 0)
        return 0; /* there are none here */
    CHECK_EQ(grantpt(fds[0]), 0);
    CHECK_EQ(unlockpt(fds[0]), 0);
    fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(fds[1] >= 0);
    struct call c = {.fd = fds[1]};
    struct weir_task one = spawn_waiting(call_read, &c);
    CHECK_EQ(weir_write(fds[0], "hello\n", 6, WEIR_FOREVER), 6);
    CHECK_EQ(join(one), 6);
    CHECK_STR(c.text, "hello\n");
    close_both(fds);
    return 0;
}

/* ---- connections ------------------------------------------------------------------- */

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

/* ---- a cancelled task ------------------------------------------------------------------ */

static int everything_while_cancelled(void *arg)
{
    struct sockaddr_in address;
    int *fds = arg, listener = listen_tcp(&address, SOCK_NONBLOCK, 8), fd = new_tcp(0);
    char text[4];

    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), 0); /* so there is one to accept */
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_fd_wait(fds[0], WEIR_READABLE, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_fd_wait(fds[0], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ECANCELED);
    CHECK_EQ(weir_read(fds[0], text, sizeof text, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_read(fds[0], text, sizeof text, WEIR_NO_WAIT), WEIR_ECANCELED);
    CHECK_EQ(weir_write(fds[0], "x", 1, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_accept(listener, NULL, NULL, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(connect_to(fd, &address, WEIR_FOREVER), WEIR_ECANCELED);
    CHECK_EQ(weir_close(fd), 0);
    CHECK_EQ(weir_close(listener), 0);
    return 0;
}

TASK_TEST(a_cancelled_task_does_no_io_even_if_it_need_not_wait)
{
    int fds[2];
    char text[4];

    new_pair(fds, 0);
    put(fds[1], "x");
    CHECK_EQ(join(spawn(everything_while_cancelled, fds)), 0);
    CHECK_EQ(weir_read(fds[0], text, sizeof text, WEIR_NO_WAIT), 1);             /* still there  */
    CHECK_EQ(weir_fd_wait(fds[1], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT); /* not sent */
    close_both(fds);
    return 0;
}

static int read_shielded(void *arg)
{
    const int *fds = arg;
    struct weir_shield shield;
    char text[4];

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    weir_shield_begin(&shield, WEIR_FOREVER);
    ssize_t n = weir_read(fds[0], text, sizeof text, WEIR_FOREVER);
    weir_shield_end(&shield);
    CHECK_EQ(weir_read(fds[0], text, sizeof text, WEIR_FOREVER), WEIR_ECANCELED);
    return (int)n;
}

TASK_TEST(inside_a_shield_it_does)
{
    int fds[2];

    new_pair(fds, 0);
    struct weir_task one = spawn_waiting(read_shielded, fds);
    put(fds[1], "xyz");
    CHECK_EQ(join(one), 3);
    close_both(fds);
    return 0;
}

/* ---- on threads --------------------------------------------------------------------- */

static void thread_kind(const int fds[2])
{
    char text[16] = "";

    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_fd_wait(fds[OUT], WEIR_WRITABLE, WEIR_FOREVER), WEIR_WRITABLE);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_write(fds[OUT], "hello", 5, WEIR_FOREVER), 5);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), 5);
    CHECK_STR(text, "hello");
    size_t full = fill(fds[OUT]);
    CHECK_EQ(weir_write(fds[OUT], "x", 1, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    drain(fds[IN], full);
}

TEST(a_thread_waits_reads_and_writes)
{
    each_kind(thread_kind);
}

static void thread_writes_much(void *arg)
{
    const struct call *c = arg;

    CHECK_EQ(weir_write(c->fd, much, MUCH, WEIR_FOREVER), MUCH);
}

static void pass_much(const int fds[2])
{
    struct call in = {.fd = fds[IN]}, out = {.fd = fds[OUT]};

    test_spawn(thread_writes_much, &out);
    CHECK_EQ(read_much(&in), 0);
    test_join_all();
}

TEST(threads_pass_much_to_each_other)
{
    each_kind(pass_much);
}

TEST(a_thread_reads_and_writes_files)
{
    CHECK_EQ(files_are_always_ready_task(NULL), 0);
    CHECK_EQ(files_are_read_and_written_task(NULL), 0);
    CHECK_EQ(so_are_files_that_are_not_in_memory_task(NULL), 0);
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

static int interrupted;

static void interrupt(int signo)
{
    (void)signo;
    __atomic_add_fetch(&interrupted, 1, __ATOMIC_RELEASE);
}

struct reader {
    pthread_t thread;
    int fd, begun, result;
};

static void read_as_thread(void *arg)
{
    struct reader *reader = arg;
    char text[4];

    reader->thread = pthread_self();
    store(&reader->begun, 1);
    store(&reader->result, (int)weir_read(reader->fd, text, sizeof text, WEIR_FOREVER));
}

TEST(a_signal_handler_does_not_end_a_call)
{
    struct sigaction action = {.sa_handler = interrupt};
    struct reader reader = {.result = -1};
    int fds[2];

    sigaction(SIGUSR1, &action, NULL);
    new_pipe(fds, 0);
    reader.fd = fds[IN];
    test_spawn(read_as_thread, &reader);
    EVENTUALLY(load(&reader.begun));
    for (int i = 1; i <= 10; i++) {
        CHECK_EQ(pthread_kill(reader.thread, SIGUSR1), 0);
        EVENTUALLY(load(&interrupted) == i);
    }
    CHECK_EQ(load(&reader.result), -1);
    put(fds[OUT], "xy");
    EVENTUALLY(load(&reader.result) == 2);
    close_both(fds);
}

/* ---- where waiting is not allowed ------------------------------------------------------ */

static void io_without_waiting(const int fds[2])
{
    char text[4];

    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_fd_wait(fds[OUT], WEIR_WRITABLE, WEIR_FOREVER), WEIR_WRITABLE);
    CHECK_EQ(weir_write(fds[OUT], "xyz", 3, WEIR_FOREVER), 3);
    CHECK_EQ(weir_fd_wait(fds[IN], WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE);
    CHECK_EQ(weir_read(fds[IN], text, sizeof text, WEIR_FOREVER), 3);
}

static void io_in_callback(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
    each_kind(io_without_waiting);
    store(&interrupted, 77);
}

static void call_back(void)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, io_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(load(&interrupted), 77);
}

TEST(in_a_callback_what_need_not_wait_is_done_and_the_rest_refused)
{
    call_back();
}

TASK_TEST(also_in_one_that_a_task_calls)
{
    call_back();
    return 0;
}

TEST(so_it_is_on_a_thread_that_has_stepped_a_loop)
{
    struct weir_loop *loop;

    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    each_kind(io_without_waiting);
    weir_loop_close(loop);
}

static int read_and_tell(void *arg)
{
    struct call *c = arg;
    ssize_t n = weir_read(c->fd, c->text, sizeof c->text, WEIR_FOREVER);

    store((int *)&c->events, (int)n);
    return 0;
}

TEST(the_tasks_of_a_loop_wait_for_descriptors)
{
    struct weir_loop *loop;
    int fds[2];

    new_pipe(fds, 0);
    struct call c = {.fd = fds[IN]};
    CHECK_EQ(weir_loop_open(NULL, &loop), 0);
    CHECK_EQ(weir_runtime_spawn(weir_loop_runtime(loop), read_and_tell, &c, NULL), 0);
    CHECK_EQ(weir_loop_step(loop), 0);
    put(fds[OUT], "xyz");
    EVENTUALLY(weir_loop_step(loop) == 0 && c.events == 3);
    weir_loop_close(loop);
    close_both(fds);
}

/* ---- fairness ------------------------------------------------------------------------ */

static int stop_reading;

static int set_stop(void *arg)
{
    (void)arg;
    store(&stop_reading, 1);
    return 0;
}

ONE_WORKER_TEST(a_task_that_never_has_to_wait_lets_others_run)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    char text[4];

    for (int how = 0; how < 2; how++) {
        store(&stop_reading, 0);
        struct weir_task one = spawn(set_stop, NULL);
        while (!load(&stop_reading)) {
            if (how == 0)
                CHECK_EQ(weir_read(fd, text, sizeof text, WEIR_FOREVER), sizeof text);
            else
                CHECK_EQ(weir_write(fd, text, sizeof text, WEIR_FOREVER), sizeof text);
        }
        CHECK_EQ(join(one), 0);
    }
    close(fd);
    return 0;
}

/* ---- closing -------------------------------------------------------------------------- */

TASK_TEST(closing_ends_all_waits_for_the_descriptor)
{
    struct weir_task tasks[4];
    int fds[2];

    new_pair(fds, SOCK_NONBLOCK);
    fill(fds[0]);
    struct call in = {.fd = fds[0], .events = WEIR_READABLE};
    struct call out = {.fd = fds[0], .events = WEIR_WRITABLE};
    tasks[0] = spawn_waiting(call_wait, &in);
    tasks[1] = spawn_waiting(call_wait, &out);
    tasks[2] = spawn_waiting(call_read, &in);
    tasks[3] = spawn_waiting(call_write, &out);
    CHECK_EQ(weir_close(fds[0]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(join(tasks[i]), -EBADF);
    CHECK_EQ(fcntl(fds[0], F_GETFD), -1);
    close(fds[1]);
    return 0;
}

TASK_TEST(closing_a_listener_ends_accept)
{
    struct sockaddr_in address;
    struct call c = {.fd = listen_tcp(&address, SOCK_NONBLOCK, 8)};
    struct weir_task one = spawn_waiting(call_accept, &c);

    CHECK_EQ(weir_close(c.fd), 0);
    CHECK_EQ(join(one), -EBADF);
    return 0;
}

TASK_TEST(closing_leaves_waits_for_others_alone)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call c = {.fd = others[IN], .events = WEIR_READABLE};
    struct weir_task one = spawn_waiting(call_wait, &c);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(weir_close(fds[OUT]), 0);
    CHECK_EQ(waiting(), 1);
    put(others[OUT], "x");
    CHECK_EQ(join(one), WEIR_READABLE);
    close_both(others);
    return 0;
}

TASK_TEST(closing_what_is_not_open_is_an_error)
{
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_close(fds[0]), 0);
    CHECK_EQ(weir_close(fds[1]), 0);
    CHECK_EQ(weir_close(fds[1]), -EBADF);
    CHECK_EQ(weir_close(-1), -EBADF);
    CHECK_EQ(weir_close(INT_MAX), -EBADF);
    return 0;
}

/* A task of a runtime beside the test's own thread, which waits. */
struct other {
    struct weir_runtime *runtime;
    struct weir_task waiter;
    struct call call;
};

static void open_other(struct other *o, uint32_t workers, weir_fn *fn, int fd)
{
    struct weir_run_options options = {.workers = workers};

    o->call = (struct call){.fd = fd, .events = WEIR_READABLE};
    CHECK_EQ(weir_runtime_open(&options, &o->runtime), 0);
    CHECK_EQ(weir_runtime_spawn(o->runtime, fn, &o->call, &o->waiter), 0);
    EVENTUALLY(waiting_in(o->runtime) == 1);
}

static int close_other(struct other *o)
{
    int result = join(o->waiter);

    CHECK_EQ(weir_runtime_close(o->runtime, WEIR_FOREVER), 0);
    return result;
}

static int close_it(void *arg)
{
    return weir_close(*(int *)arg);
}

TEST(a_thread_closes_what_a_task_waits_for)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

TEST(a_task_closes_what_one_of_another_runtime_waits_for)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    CHECK_EQ(weir_run(NULL, close_it, &fds[IN]), 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

static pthread_t worker_of_waiter;

static int note_worker_and_read(void *arg)
{
    worker_of_waiter = pthread_self();
    return call_read(arg);
}

static int close_unless_on_that_worker(void *arg)
{
    return pthread_equal(worker_of_waiter, pthread_self()) ? 1 : close_it(arg);
}

TEST(a_task_closes_what_one_on_another_worker_waits_for)
{
    struct other o;
    int fds[2], r;

    new_pipe(fds, 0);
    open_other(&o, 2, note_worker_and_read, fds[IN]);
    do {
        struct weir_task closer;

        CHECK_EQ(weir_runtime_spawn(o.runtime, close_unless_on_that_worker, &fds[IN], &closer), 0);
        r = join(closer);
    } while (r == 1);
    CHECK_EQ(r, 0);
    CHECK_EQ(close_other(&o), -EBADF);
    close(fds[OUT]);
}

static int closed_by_callback;

static void close_in_callback(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, 0);
    CHECK_EQ(weir_close(closed_by_callback), 0);
}

TASK_TEST(a_callback_closes_what_a_task_waits_for)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;
    int fds[2];

    new_pipe(fds, 0);
    closed_by_callback = fds[IN];
    struct weir_task one = spawn_waiting(call_read, &(struct call){.fd = fds[IN]});
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, close_in_callback), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(join(one), -EBADF);
    close(fds[OUT]);
    return 0;
}

/* Make the number fd mean what `to` does; `to` is closed. */
static void reopen_as(int fd, int to)
{
    CHECK_EQ(dup2(to, fd), fd);
    close(to);
}

TASK_TEST(a_number_that_is_used_again_is_another_descriptor)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call before = {.fd = fds[IN]}, after = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &before);
    CHECK_EQ(weir_close(fds[IN]), 0);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn(call_read, &after);
    CHECK_EQ(join(one), -EBADF);
    TASK_EVENTUALLY(waiting() == 1);
    put(others[OUT], "new");
    CHECK_EQ(join(two), 3);
    CHECK_STR(after.text, "new");
    close(others[OUT]);
    close_both(fds);
    return 0;
}

/* epoll goes on watching a file of which there is a copy, under the number that it had. */
ONE_WORKER_TEST(what_happens_to_a_copy_of_the_old_one_does_not_end_a_wait_for_the_new)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call old = {.fd = fds[IN]}, new = {.fd = fds[IN], .events = WEIR_READABLE};
    int copy = dup(fds[IN]);
    struct weir_task one = spawn_waiting(call_read, &old);
    CHECK_EQ(weir_close(fds[IN]), 0);
    CHECK_EQ(join(one), -EBADF);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn_waiting(call_wait, &new);
    put(fds[OUT], "to the copy");
    CHECK_EQ(weir_fd_wait(copy, WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE); /* epoll knows */
    CHECK_EQ(waiting(), 1);
    put(others[OUT], "x");
    CHECK_EQ(join(two), WEIR_READABLE);
    close(copy);
    close(others[OUT]);
    close_both(fds);
    return 0;
}

/* As promised to those who do not use weir_close: not at once, but not never. */
ONE_WORKER_TEST(a_descriptor_closed_behind_our_back_is_missed_when_its_number_is_waited_for_again)
{
    int fds[2], others[2];

    new_pipe(fds, 0);
    new_pipe(others, 0);
    struct call before = {.fd = fds[IN]}, after = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &before);
    close(fds[IN]);
    reopen_as(fds[IN], others[IN]);
    struct weir_task two = spawn(call_read, &after);
    CHECK_EQ(join(one), -EBADF);
    put(others[OUT], "new");
    CHECK_EQ(join(two), 3);
    close(others[OUT]);
    close_both(fds);
    return 0;
}

static int read_for_a_while(void *arg)
{
    struct call *c = arg;

    return (int)weir_read(c->fd, c->text, sizeof c->text, weir_within(20 * WEIR_MS));
}

TASK_TEST(or_its_deadline_passes)
{
    int fds[2];

    new_pipe(fds, 0);
    struct weir_task one = spawn_waiting(read_for_a_while, &(struct call){.fd = fds[IN]});
    close(fds[IN]);
    CHECK_EQ(join(one), WEIR_ETIMEDOUT);
    close(fds[OUT]);
    return 0;
}

/* ---- closing while a wait begins or ends ------------------------------------------------- */

#define NOT_CLOSED "poll: waits ended, not closed"
#define NOT_TOLD   "poll: waits taken, not told"

static void close_as_thread(void *arg)
{
    CHECK_EQ(close_it(arg), 0);
}

static uint64_t switches(struct weir_runtime *runtime)
{
    struct weir_runtime_stats stats;

    weir_runtime_stats(runtime, &stats);
    return stats.switches;
}

/* Its worker was looked through, and the kernel would forget the wait. */
TEST(a_wait_that_begins_while_its_descriptor_is_being_closed_is_not_lost)
{
    struct weir_runtime *runtime;
    struct weir_task one;
    int fds[2], result = 0;

    new_pipe(fds, 0);
    CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
    test_hold(NOT_CLOSED);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_CLOSED);
    CHECK_EQ(weir_runtime_spawn(runtime, call_read, &(struct call){.fd = fds[IN]}, &one), 0);
    EVENTUALLY(switches(runtime) > 10); /* it has begun, and looks again and again */
    test_let_go(NOT_CLOSED);
    CHECK_EQ(weir_task_join(one, WEIR_FOREVER, &result), 0);
    CHECK_EQ(result, -EBADF);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
    close(fds[OUT]);
}

TEST(meanwhile_it_can_be_cancelled)
{
    struct weir_runtime *runtime;
    struct weir_task one;
    int fds[2];

    new_pipe(fds, 0);
    CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
    test_hold(NOT_CLOSED);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_CLOSED);
    CHECK_EQ(weir_runtime_spawn(runtime, call_read, &(struct call){.fd = fds[IN]}, &one), 0);
    EVENTUALLY(switches(runtime) > 10);
    CHECK_EQ(weir_task_cancel(one), 0);
    CHECK_EQ(join(one), WEIR_ECANCELED);
    test_let_go(NOT_CLOSED);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
    close(fds[OUT]);
}

/* The record of the wait is in the hands of whoever closes. */
TEST(a_wait_that_was_ended_by_a_close_is_not_ended_again_by_a_cancel)
{
    struct other o;
    int fds[2];

    new_pipe(fds, 0);
    open_other(&o, 1, call_read, fds[IN]);
    test_hold(NOT_TOLD);
    test_spawn(close_as_thread, &fds[IN]);
    test_reached(NOT_TOLD);
    uint64_t before = switches(o.runtime);
    CHECK_EQ(weir_task_cancel(o.waiter), 0);
    EVENTUALLY(switches(o.runtime) > before); /* it has run, and waits to be told */
    test_let_go(NOT_TOLD);
    CHECK_EQ(close_other(&o), -EBADF);
    test_join_all();
    close(fds[OUT]);
}

/* The runtime's end waits for whoever is looking through its workers. */
TEST(a_runtime_is_not_gone_while_a_close_looks_at_it)
{
    struct weir_runtime *runtime;
    int fds[2];

    for (int i = 0; i < test_scaled(100); i++) {
        new_pipe(fds, 0);
        CHECK_EQ(weir_runtime_open(NULL, &runtime), 0);
        test_spawn(close_as_thread, &fds[IN]);
        CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
        CHECK_EQ(weir_close(fds[OUT]), 0);
        test_join_all();
    }
}

struct race {
    int fd;
    struct weir_runtime *runtime;
};

static int wait_at_random(void *arg)
{
    const struct race *race = arg;
    int64_t patience_ns = test_random(100) * WEIR_US;
    struct weir_deadline deadline = test_random(2) ? WEIR_FOREVER : weir_within(patience_ns);

    return weir_fd_wait(race->fd, WEIR_READABLE, deadline);
}

TEST_WITHIN(waits_and_closes_may_meet_in_any_way, 30)
{
    enum { TASKS = 8 };
    struct weir_run_options options = {.workers = 2};
    struct race race;
    struct weir_task tasks[TASKS];
    int fds[2], result, before = open_descriptors();

    CHECK_EQ(weir_runtime_open(&options, &race.runtime), 0);
    for (int i = 0; i < test_scaled(1000); i++) {
        new_pipe(fds, 0);
        race.fd = fds[IN];
        for (int k = 0; k < TASKS; k++)
            CHECK_EQ(weir_runtime_spawn(race.runtime, wait_at_random, &race, &tasks[k]), 0);
        for (uint32_t k = test_random(2000); k > 0; k--)
            __asm__ volatile("");
        if (test_random(4) == 0)
            CHECK_EQ(weir_task_cancel(tasks[test_random(TASKS)]), 0);
        CHECK_EQ(weir_close(fds[IN]), 0);
        for (int k = 0; k < TASKS; k++) {
            CHECK_EQ(weir_task_join(tasks[k], WEIR_FOREVER, &result), 0);
            CHECK(result == -EBADF || result == WEIR_ETIMEDOUT || result == WEIR_ECANCELED);
        }
        close(fds[OUT]);
    }
    CHECK_EQ(weir_runtime_close(race.runtime, WEIR_FOREVER), 0);
    CHECK_EQ(open_descriptors(), before);
}
