/* SPDX-License-Identifier: MIT */
/* As badargs_test.c, for process.h. */
#include <weir/weir.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "task/contexts.h"
#include "task/descriptors.h"

static int fds[2];     /* what the calls below are made with */
enum { UNUSED = 900 }; /* a number that is no descriptor's */

/* ---- spawning ------------------------------------------------------------------ */

static const char *const TRUE[] = {"true", NULL};
static const char *const CAT[] = {"cat", NULL};

/* It is refused, and no child, descriptor or result is left. */
static void check_not_spawned(struct weir_process_options o, int want)
{
    struct weir_process process = {.pid = -7, .pidfd = -7};
    int before = open_descriptors();

    CHECK_EQ(weir_process_spawn(&o, &process), want);
    CHECK_EQ(process.pid, -7);
    CHECK_EQ(process.pidfd, -7);
    CHECK_EQ(open_descriptors(), before);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
}

static void spawn_what_is_no_program(void)
{
    static const char *const nothing[] = {NULL}, *const unnamed[] = {"", NULL};
    static const char *const missing[] = {"/nowhere/at/all", NULL}, *const root[] = {"/", NULL};
    struct weir_process_options o = {0};

    check_not_spawned(o, WEIR_EINVAL);
    o.argv = nothing;
    check_not_spawned(o, WEIR_EINVAL);
    o.argv = unnamed;
    check_not_spawned(o, -ENOENT);
    o.argv = missing;
    check_not_spawned(o, -ENOENT);
    o.argv = root;
    check_not_spawned(o, -EACCES);
    o.argv = TRUE;
    o.cwd = "/nowhere/at/all";
    check_not_spawned(o, -ENOENT);
    o.cwd = "";
    check_not_spawned(o, -ENOENT);
    o.cwd = "/dev/null";
    check_not_spawned(o, -ENOTDIR);
}

static void spawn_with_unknown_flags(void)
{
    static const uint32_t flags[] = {2, 3, UINT32_C(1) << 31, UINT32_MAX};

    for (int i = 0; i < 4; i++)
        check_not_spawned((struct weir_process_options){.argv = TRUE, .flags = flags[i]},
                          WEIR_EINVAL);
}

static void spawn_with_descriptors(int parent, int child, int want)
{
    struct weir_process_fd given[] = {{-1, UNUSED + 1}, {parent, child}};

    check_not_spawned((struct weir_process_options){.argv = TRUE, .fds = given, .fd_count = 2},
                      want);
}

static void spawn_with_impossible_descriptors(void)
{
    static const int none[] = {-1, INT_MIN, 1024, INT_MAX, UNUSED + 1};

    for (int i = 0; i < 5; i++) {
        spawn_with_descriptors(0, none[i], WEIR_EINVAL);
        spawn_with_descriptors(-1, none[i], WEIR_EINVAL);
    }
    spawn_with_descriptors(UNUSED, 3, -EBADF);
    spawn_with_descriptors(UNUSED, UNUSED, -EBADF);
    spawn_with_descriptors(INT_MAX, 3, -EBADF);
    spawn_with_descriptors(-2, 3, -EBADF); /* only -1 is /dev/null */
    spawn_with_descriptors(INT_MIN, 3, -EBADF);
    spawn_with_descriptors(UNUSED + 1, 3, -EBADF); /* to be replaced, and not there */
}

static void spawn_with_impossible_limits(void)
{
    struct weir_process_limit limits[] = {{RLIMIT_CORE, 0}, {-1, 0}};
    struct weir_process_options o = {.argv = CAT, .limits = limits, .limit_count = 2};
    static const int resources[] = {-1, INT_MIN, 1000, INT_MAX};

    for (int i = 0; i < 4; i++) {
        limits[1].resource = resources[i];
        check_not_spawned(o, WEIR_EINVAL);
    }
    limits[1] = (struct weir_process_limit){RLIMIT_NOFILE, RLIM_INFINITY};
    check_not_spawned(o, WEIR_EPERM); /* not even by root */
}

TEST(what_cannot_be_started_leaves_nothing_behind)
{
    SKIP_IF(TEST_QEMU, "qemu's vfork is a fork");
    new_pipe(fds, 0);
    everywhere(spawn_what_is_no_program);
    everywhere(spawn_with_unknown_flags);
    everywhere(spawn_with_impossible_descriptors);
    everywhere(spawn_with_impossible_limits);
    close_both(fds);
}

/* ---- waiting and signalling ------------------------------------------------------ */

static struct weir_process child;

static void start_child(void)
{
    struct weir_process_fd given[] = {{fds[IN], 0}};
    struct weir_process_options o = {.argv = CAT, .fds = given, .fd_count = 1};

    CHECK_EQ(weir_process_spawn(&o, &child), 0);
}

static void wait_for_child_in_no_time(void)
{
    int status = NOT_YET;

    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_process_wait(&child, past[i], &status), WEIR_ETIMEDOUT);
    CHECK_EQ(status, NOT_YET);
}

static void wait_for_child_where_one_may_not(void)
{
    int status = NOT_YET;

    CHECK_EQ(weir_process_wait(&child, WEIR_FOREVER, &status), WEIR_ECONTEXT);
    CHECK_EQ(status, NOT_YET);
}

static void send_child_what_is_no_signal(void)
{
    static const int none[] = {-1, 65, 1000, INT_MIN, INT_MAX};

    for (int i = 0; i < 5; i++)
        CHECK_EQ(weir_process_signal(&child, none[i]), -EINVAL);
    CHECK_EQ(weir_process_signal(&child, 0), 0); /* only asks whether it is there */
}

static void use_child_that_was_waited_for(void)
{
    int status = NOT_YET;

    CHECK_EQ(weir_process_wait(&child, WEIR_FOREVER, &status), -ECHILD);
    for (int i = 0; i < PASTS; i++)
        CHECK_EQ(weir_process_wait(&child, past[i], &status), -ECHILD);
    CHECK_EQ(status, NOT_YET);
    CHECK_EQ(weir_process_signal(&child, SIGKILL), -ESRCH);
    CHECK_EQ(weir_process_signal(&child, 0), -ESRCH);
}

static void use_child_that_was_released(void)
{
    int status = NOT_YET;

    weir_process_release(&child);
    CHECK_EQ(child.pidfd, -1);
    CHECK_EQ(weir_process_wait(&child, WEIR_FOREVER, &status), -EBADF);
    CHECK_EQ(weir_process_wait(&child, WEIR_NO_WAIT, &status), -EBADF);
    CHECK_EQ(status, NOT_YET);
    CHECK_EQ(weir_process_signal(&child, SIGKILL), -EBADF);
    CHECK_EQ(weir_process_signal(&child, 0), -EBADF);
}

static void use_zeroes(void)
{
    child = (struct weir_process){0};
    use_child_that_was_released();
    CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

TEST(a_process_of_zeroes_is_none_and_has_nothing_to_do_with_descriptor_0)
{
    new_pipe(fds, 0);
    CHECK_EQ(dup2(fds[IN], STDIN_FILENO), STDIN_FILENO);
    everywhere(use_zeroes);
    close_both(fds);
}

TEST(a_child_is_waited_for_and_signalled_only_while_and_where_it_can_be)
{
    int status = NOT_YET;

    new_pipe(fds, 0);
    start_child();
    everywhere(wait_for_child_in_no_time);
    where_one_may_not_wait(wait_for_child_where_one_may_not);
    everywhere(send_child_what_is_no_signal);
    close_both(fds); /* the end of its input, which it has lived to see */
    CHECK_EQ(weir_process_wait(&child, WEIR_FOREVER, &status), 0);
    CHECK_EQ(status, 0);
    everywhere(use_child_that_was_waited_for);
    everywhere(use_child_that_was_released);
}
