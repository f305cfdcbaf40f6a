/* SPDX-License-Identifier: MIT */
/* Descriptors: what weir/io.h promises of waiting, reading and writing, and then what it
 * promises of all its calls.  Connections, closing and signals have files of their own. */
#include <weir/io.h>
#include <weir/loop.h>
#include <weir/op.h>
#include <weir/sem.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include "harness/test.h"
#include "task/descriptors.h"
#include "task/workers.h"

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

    SKIP_IF(TEST_QEMU, "qemu has no preadv2, and waits never end for the wrong end of a pipe");
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

static int unread(int fd)
{
    int n = -1;

    CHECK_EQ(ioctl(fd, FIONREAD, &n), 0);
    return n;
}

/* Both wake up, and what there is is enough for one.  Nobody may be left blocking. */
static void read_by_two(const int fds[2])
{
    struct call a = {.fd = fds[IN]}, b = {.fd = fds[IN]};
    struct weir_task one = spawn_waiting(call_read, &a), two = spawn_waiting(call_read, &b);

    put(fds[OUT], "x");
    TASK_EVENTUALLY(unread(fds[IN]) == 0 && waiting() == 1);
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
    struct weir_task one = spawn(write_all_of_it, &c);

    TASK_EVENTUALLY(weir_fd_wait(c.fd, WEIR_WRITABLE, WEIR_NO_WAIT) == WEIR_ETIMEDOUT &&
                    waiting() == 1);
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
        /* Again and again: TSan may keep one back. */
        EVENTUALLY(pthread_kill(reader.thread, SIGUSR1) == 0 && load(&interrupted) >= i);
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
