/* SPDX-License-Identifier: MIT */
/* Child processes: the promises of weir/process.h, in that order. */
#include <weir/io.h>
#include <weir/process.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness/test.h"
#include "task/descriptors.h"
#include "task/workers.h"

/* ---- helpers ---------------------------------------------------------------- */

/* There posix_spawn returns before the child has begun: nobody knows yet that it fails, nor
 * has it a group. */
static const char NO_VFORK[] = "qemu's vfork is a fork";

static const char *const TRUE[] = {"/bin/true", NULL};
static const char *const CAT[] = {"/bin/cat", NULL};

static struct weir_process spawn_as(const struct weir_process_options *options)
{
    struct weir_process process = {0};

    CHECK_EQ(weir_process_spawn(options, &process), 0);
    CHECK(process.pid > 0);
    CHECK(process.pidfd >= 0);
    return process;
}

static struct weir_process spawn_argv(const char *const *argv)
{
    return spawn_as(&(struct weir_process_options){.argv = argv});
}

/* Wait for it and let go of it.  Returns its status, and it is no zombie. */
static int end(struct weir_process *process)
{
    int status = -1;

    CHECK_EQ(weir_process_wait(process, WEIR_FOREVER, &status), 0);
    CHECK_EQ(waitpid(process->pid, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
    weir_process_release(process);
    return status;
}

/* Run it with a pipe for its standard output; returns its exit status. */
static int run_as(struct weir_process_options o, const char *const *argv, char *ret_said,
                  size_t room)
{
    struct weir_process_fd fds[8];
    size_t got = 0;
    int out[2];
    ssize_t n;

    new_pipe(out, 0);
    CHECK(o.fd_count < 8);
    for (size_t i = 0; i < o.fd_count; i++)
        fds[i] = o.fds[i];
    fds[o.fd_count] = (struct weir_process_fd){out[OUT], 1};
    o.argv = argv;
    o.fds = fds;
    o.fd_count++;
    struct weir_process process = spawn_as(&o);
    close(out[OUT]);
    while ((n = weir_read(out[IN], ret_said + got, room - 1 - got, WEIR_FOREVER)) > 0)
        got += (size_t)n;
    CHECK_EQ(n, 0);
    ret_said[got] = '\0';
    close(out[IN]);
    int status = end(&process);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int shell_as(struct weir_process_options o, const char *line, char *ret_said, size_t room)
{
    return run_as(o, (const char *const[]){"/bin/sh", "-c", line, NULL}, ret_said, room);
}

#define CHECK_SAYS(options, line, text)                                \
    do {                                                               \
        char said_[4096];                                              \
        CHECK_EQ(shell_as((options), (line), said_, sizeof said_), 0); \
        CHECK_STR(said_, (text));                                      \
    } while (0)

static const struct weir_process_options DEFAULTS = {0};

/* A child that lives until it is signalled, or its standard input is closed. */
static struct weir_process spawn_cat(int ret_in[2])
{
    struct weir_process_fd fds[] = {{-1, 0}, {-1, 1}};

    new_pipe(ret_in, 0);
    fds[0].parent = ret_in[IN];
    return spawn_as(&(struct weir_process_options){.argv = CAT, .fds = fds, .fd_count = 2});
}

/* ---- spawning ----------------------------------------------------------------- */

TASK_TEST(a_program_is_run_and_its_status_returned)
{
    struct weir_process one = spawn_argv(TRUE);
    struct weir_process two = spawn_argv((const char *const[]){"/bin/sh", "-c", "exit 7", NULL});

    CHECK(one.pid != two.pid);
    CHECK_EQ(end(&two), W_EXITCODE(7, 0));
    CHECK_EQ(end(&one), 0);
    return 0;
}

TASK_TEST(a_program_without_a_slash_is_looked_for_in_the_path)
{
    struct weir_process one = spawn_argv((const char *const[]){"true", NULL});

    CHECK_EQ(end(&one), 0);
    return 0;
}

static int spawn_result(const struct weir_process_options *o)
{
    struct weir_process untouched = {.pid = 12345};
    int r = weir_process_spawn(o, &untouched);

    CHECK_EQ(untouched.pid, 12345);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
    return r;
}

TASK_TEST(a_program_that_is_not_there_is_an_error)
{
    struct weir_process_options o = {.argv = (const char *const[]){"/nowhere/nothing", NULL}};

    SKIP_IF(TEST_QEMU, NO_VFORK);
    CHECK_EQ(spawn_result(&o), -ENOENT);
    o.argv = (const char *const[]){"no-program-has-this-name", NULL};
    CHECK_EQ(spawn_result(&o), -ENOENT);
    o.argv = (const char *const[]){"/", NULL};
    CHECK_EQ(spawn_result(&o), -EACCES);
    o.argv = TRUE;
    o.cwd = "/nowhere";
    CHECK_EQ(spawn_result(&o), -ENOENT);
    return 0;
}

TASK_TEST(what_can_never_work_is_refused)
{
    struct weir_process_options o = {0};
    struct weir_process_fd fds[] = {{0, 3}, {1, 3}};

    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    o.argv = (const char *const[]){NULL};
    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    o.argv = TRUE;
    o.flags = 1u << 31;
    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    o.flags = 0;
    o.fds = fds;
    o.fd_count = 2;
    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    fds[1] = (struct weir_process_fd){1, -1};
    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    fds[1] = (struct weir_process_fd){1, 1024};
    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    fds[1] = (struct weir_process_fd){-2, 4}; /* open it will never be */
    CHECK_EQ(spawn_result(&o), -EBADF);
    return 0;
}

TASK_TEST(without_memory_nothing_is_started)
{
    struct weir_process_fd fd = {-1, 0};
    struct weir_process_options o = {.argv = TRUE, .fds = &fd, .fd_count = 1};

    test_fail_allocation(1);
    CHECK_EQ(spawn_result(&o), WEIR_ENOMEM);
    struct weir_process one = spawn_as(&o);
    CHECK_EQ(end(&one), 0);
    return 0;
}

TASK_TEST(without_descriptors_nothing_is_left_behind)
{
    struct weir_process_options o = {.argv = TRUE};
    struct rlimit before, none;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(lowest);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = spawn_result(&o); /* started, and no pidfd to be had */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(r, -EMFILE);
    return 0;
}

/* ---- environment, directory, descriptors ------------------------------------------- */

TASK_TEST(a_child_has_the_callers_environment_or_the_one_given)
{
    const char *envp[] = {"WEIR_TEST_WORD=given", NULL};

    setenv("WEIR_TEST_WORD", "inherited", 1);
    CHECK_SAYS(DEFAULTS, "printf %s \"$WEIR_TEST_WORD\"", "inherited");
    CHECK_SAYS(((struct weir_process_options){.envp = envp}), "printf %s \"$WEIR_TEST_WORD\"",
               "given");
    return 0;
}

TASK_TEST(a_child_runs_in_the_directory_given)
{
    CHECK_SAYS(((struct weir_process_options){.cwd = "/"}), "pwd", "/\n");
    return 0;
}

TASK_TEST(what_goes_in_at_one_end_comes_out_at_the_other)
{
    int in[2], out[2];
    char text[16] = "";

    new_pipe(in, 0);
    new_pipe(out, 0);
    struct weir_process_fd fds[] = {{in[IN], 0}, {out[OUT], 1}};
    struct weir_process one =
        spawn_as(&(struct weir_process_options){.argv = CAT, .fds = fds, .fd_count = 2});
    close(in[IN]);
    close(out[OUT]);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_write(in[OUT], "hello", 5, WEIR_FOREVER), 5);
        CHECK_EQ(weir_read(out[IN], text, sizeof text, WEIR_FOREVER), 5);
        CHECK_STR(text, "hello");
    }
    close(in[OUT]);
    CHECK_EQ(weir_read(out[IN], text, sizeof text, WEIR_FOREVER), 0);
    close(out[IN]);
    CHECK_EQ(end(&one), 0);
    return 0;
}

TASK_TEST(minus_one_is_the_null_device)
{
    struct weir_process_fd fds[] = {{-1, 0}, {-1, 2}, {-1, 5}};
    struct weir_process_options o = {.fds = fds, .fd_count = 3};

    CHECK_SAYS(o, "cat; echo lost >&2; echo lost >&5; cat <&5; echo done", "done\n");
    return 0;
}

/* A pipe that holds one word, at a number of our choice. */
static void word_at(int fd, const char *word)
{
    int fds[2];

    new_pipe(fds, 0);
    put(fds[OUT], word);
    close(fds[OUT]);
    CHECK_EQ(dup3(fds[IN], fd, O_CLOEXEC), fd);
    close(fds[IN]);
}

TASK_TEST(descriptors_may_change_places)
{
    struct weir_process_fd fds[] = {{50, 51}, {51, 52}, {52, 50}, {53, 53}, {50, 54}};
    struct weir_process_options o = {.fds = fds, .fd_count = 5};

    word_at(50, "one");
    word_at(51, "two");
    word_at(52, "three");
    word_at(53, "four");
    CHECK_SAYS(o, "cat /dev/fd/51; cat /dev/fd/52; cat /dev/fd/50; cat /dev/fd/53",
               "onetwothreefour");
    for (int fd = 50; fd <= 53; fd++) {
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC); /* the caller's are as they were */
        close(fd);
    }
    return 0;
}

TASK_TEST(one_that_makes_room_for_the_null_device_is_kept)
{
    struct weir_process_fd fds[] = {{-1, 50}, {50, 51}};
    struct weir_process_options o = {.fds = fds, .fd_count = 2};

    word_at(50, "word");
    CHECK_SAYS(o, "cat /dev/fd/50; cat /dev/fd/51", "word");
    close(50);
    return 0;
}

TASK_TEST(a_descriptor_that_is_not_open_cannot_be_given)
{
    struct weir_process_fd fds[] = {{999, 998}, {998, 999}};
    struct weir_process_options o = {.argv = TRUE, .fds = fds, .fd_count = 1};

    SKIP_IF(TEST_QEMU, NO_VFORK);
    CHECK_EQ(spawn_result(&o), -EBADF);
    o.fd_count = 2;
    CHECK_EQ(spawn_result(&o), -EBADF);
    return 0;
}

/* Also those that a careless library left open over exec. */
TASK_TEST(a_child_has_no_other_descriptors)
{
    struct weir_process_fd fds[] = {{-1, 0}, {-1, 2}, {-1, 60}, {-1, 64}};
    struct weir_process_options o = {.fds = fds, .fd_count = 4};
    int fd = open("/dev/null", O_RDONLY); // NOLINT(android-cloexec-open): on purpose

    CHECK_EQ(dup2(fd, 62), 62);
    CHECK_EQ(dup2(fd, 70), 70);
    /* The shell's own is the directory that it reads. */
    CHECK_SAYS(o, "cd /proc/self/fd && for f in *; do [ -e $f ] && printf '%s ' $f; done",
               "0 1 2 60 64 ");
    close(fd);
    close(62);
    close(70);
    return 0;
}

/* ---- signals and groups ---------------------------------------------------------------- */

/* No shell in between, which would unblock them itself. */
static int look_at_signals(void *arg)
{
    const char *argv[] = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL};
    const uint64_t of_libc = UINT64_C(3) << 31; /* two that are its own */
    unsigned long long blocked = 1, ignored = 1;
    char said[128];
    sigset_t set;

    (void)arg;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK_EQ(run_as(DEFAULTS, argv, said, sizeof said), 0);
    CHECK_EQ(sscanf(said, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    CHECK_EQ(blocked, 0);
    CHECK_EQ(ignored & ~of_libc, 0);
    return 0;
}

TEST(a_child_blocks_no_signals_and_ignores_none)
{
    struct weir_runtime *runtime;
    struct weir_task one;

    SKIP_IF(TEST_QEMU, "qemu ignores two real-time signals, and so do its children");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    CHECK_EQ(look_at_signals(NULL), 0);
    CHECK_EQ(weir_runtime_open(NULL, &runtime), 0); /* whose workers block all */
    CHECK_EQ(weir_runtime_spawn(runtime, look_at_signals, NULL, &one), 0);
    CHECK_EQ(join(one), 0);
    CHECK_EQ(weir_runtime_close(runtime, WEIR_FOREVER), 0);
}

TASK_TEST(a_child_leads_a_group_of_its_own)
{
    int in[2];

    SKIP_IF(TEST_QEMU, NO_VFORK);
    struct weir_process one = spawn_cat(in);
    CHECK_EQ(getpgid(one.pid), one.pid);
    CHECK(getpgid(0) != one.pid);
    close_both(in);
    CHECK_EQ(end(&one), 0);
    return 0;
}

TASK_TEST(unless_it_is_to_stay_in_the_callers)
{
    struct weir_process_options o = {.argv = CAT, .flags = WEIR_PROCESS_SAME_GROUP};
    struct weir_process_fd fd = {-1, 0};
    int in[2];

    new_pipe(in, 0);
    fd = (struct weir_process_fd){in[IN], 0};
    o.fds = &fd;
    o.fd_count = 1;
    struct weir_process one = spawn_as(&o);
    CHECK_EQ(getpgid(one.pid), getpgid(0));
    CHECK_EQ(weir_process_signal(&one, SIGTERM), 0); /* and not to us */
    CHECK_EQ(end(&one), W_EXITCODE(0, SIGTERM));
    close_both(in);
    return 0;
}

/* ---- limits ---------------------------------------------------------------------------- */

TASK_TEST(limits_hold_for_the_child_alone)
{
    const char *argv[] = {"/bin/sh", "-c", "read go; ulimit -n; ulimit -c", NULL};
    struct weir_process_limit limits[] = {{RLIMIT_NOFILE, 77}, {RLIMIT_CORE, 0}};
    struct rlimit before, after;
    char said[16] = "";
    int in[2], out[2];

    new_pipe(in, 0);
    new_pipe(out, 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct weir_process_fd fds[] = {{in[IN], 0}, {out[OUT], 1}};
    struct weir_process one = spawn_as(&(struct weir_process_options){
        .argv = argv, .fds = fds, .fd_count = 2, .limits = limits, .limit_count = 2});
    put(in[OUT], "go\n"); /* now it looks at what was set */
    CHECK_EQ(end(&one), 0);
    CHECK(weir_read(out[IN], said, sizeof said, WEIR_FOREVER) > 0);
    CHECK_STR(said, "77\n0\n");
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    CHECK_EQ(before.rlim_cur, after.rlim_cur);
    close_both(in);
    close_both(out);
    return 0;
}

TASK_TEST(a_limit_that_cannot_be_set_ends_the_child)
{
    struct weir_process_limit limit = {9999, 1};
    struct weir_process_options o = {.argv = TRUE, .limits = &limit, .limit_count = 1};

    CHECK_EQ(spawn_result(&o), WEIR_EINVAL);
    return 0;
}

/* ---- waiting ------------------------------------------------------------------------------ */

TASK_TEST(the_wait_lets_other_tasks_run)
{
    int in[2], status = -1;
    struct weir_process one = spawn_cat(in);

    CHECK_EQ(weir_process_wait(&one, WEIR_NO_WAIT, &status), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_process_wait(&one, weir_within(WEIR_MS), &status), WEIR_ETIMEDOUT);
    CHECK_EQ(status, -1);
    close_both(in);
    CHECK_EQ(weir_process_wait(&one, WEIR_FOREVER, NULL), 0);
    weir_process_release(&one);
    return 0;
}

static int wait_for_ever(void *arg)
{
    return weir_process_wait(arg, WEIR_FOREVER, NULL);
}

TASK_TEST(the_wait_is_ended_by_a_cancel)
{
    int in[2];
    struct weir_process one = spawn_cat(in);
    struct weir_task waiter = spawn_waiting(wait_for_ever, &one);

    CHECK_EQ(weir_task_cancel(waiter), 0);
    CHECK_EQ(join(waiter), WEIR_ECANCELED);
    waiter = spawn_waiting(wait_for_ever, &one);
    close_both(in);
    CHECK_EQ(join(waiter), 0);
    weir_process_release(&one);
    return 0;
}

TASK_TEST(a_process_is_waited_for_once)
{
    struct weir_process one = spawn_argv(TRUE);
    int status = -1;

    CHECK_EQ(weir_process_wait(&one, WEIR_FOREVER, &status), 0);
    CHECK_EQ(status, 0);
    status = -1;
    CHECK_EQ(weir_process_wait(&one, WEIR_FOREVER, &status), -ECHILD);
    CHECK_EQ(status, -1);
    weir_process_release(&one);
    CHECK_EQ(weir_process_wait(&one, WEIR_FOREVER, &status), -EBADF);
    return 0;
}

TASK_TEST(a_death_by_signal_is_told_as_such)
{
    struct weir_process one =
        spawn_argv((const char *const[]){"/bin/sh", "-c", "kill -KILL $$", NULL});

    CHECK_EQ(end(&one), W_EXITCODE(0, SIGKILL));
    return 0;
}

static void wait_as_thread(void *arg)
{
    CHECK_EQ(weir_process_wait(arg, WEIR_FOREVER, NULL), 0);
}

TEST(a_thread_spawns_and_waits)
{
    int in[2], before = open_descriptors();
    struct weir_process one = spawn_cat(in);

    CHECK_EQ(weir_process_wait(&one, WEIR_NO_WAIT, NULL), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_process_wait(&one, weir_within(WEIR_MS), NULL), WEIR_ETIMEDOUT);
    test_spawn(wait_as_thread, &one);
    close_both(in);
    test_join_all();
    weir_process_release(&one);
    CHECK_SAYS(DEFAULTS, "echo hello", "hello\n");
    CHECK_EQ(open_descriptors(), before);
}

static int run_one(void *arg)
{
    struct weir_process one =
        spawn_argv((const char *const[]){"/bin/sh", "-c", "exit $1", "sh", arg, NULL});
    int status = end(&one);

    return WEXITSTATUS(status);
}

TASK_TEST(many_are_waited_for_at_once)
{
    enum { CHILDREN = 20 };
    struct weir_task tasks[CHILDREN];
    char numbers[CHILDREN][12];

    for (int i = 0; i < CHILDREN; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        tasks[i] = spawn(run_one, numbers[i]);
    }
    for (int i = 0; i < CHILDREN; i++)
        CHECK_EQ(join(tasks[i]), i);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    return 0;
}

/* ---- signalling ------------------------------------------------------------------------------ */

TASK_TEST(a_signal_ends_a_child)
{
    int in[2];

    SKIP_IF(TEST_QEMU, NO_VFORK);
    struct weir_process one = spawn_cat(in);
    CHECK_EQ(weir_process_signal(&one, 0), 0);
    CHECK_EQ(weir_process_signal(&one, 9999), WEIR_EINVAL);
    CHECK_EQ(weir_process_signal(&one, SIGTERM), 0);
    CHECK_EQ(end(&one), W_EXITCODE(0, SIGTERM));
    close_both(in);
    return 0;
}

/* A shell and a child of it, which hold the write end of a pipe; it says when both run. */
static struct weir_process spawn_family(const char *line, int ret_out[2])
{
    const char *argv[] = {"/bin/sh", "-c", line, NULL};
    char text[16] = "";

    new_pipe(ret_out, 0);
    struct weir_process_fd fd = {ret_out[OUT], 1};
    struct weir_process one =
        spawn_as(&(struct weir_process_options){.argv = argv, .fds = &fd, .fd_count = 1});
    close(ret_out[OUT]);
    CHECK_EQ(weir_read(ret_out[IN], text, sizeof text, WEIR_FOREVER), 6);
    CHECK_STR(text, "ready\n");
    return one;
}

/* Nobody has the other end any more. */
static void check_family_is_gone(const int out[2])
{
    char text[16];

    CHECK_EQ(weir_read(out[IN], text, sizeof text, WEIR_FOREVER), 0);
    close(out[IN]);
}

TASK_TEST(a_signal_reaches_the_whole_group)
{
    int out[2];
    struct weir_process one = spawn_family("sleep 1000 & echo ready; wait", out);

    CHECK_EQ(weir_process_signal(&one, SIGKILL), 0);
    CHECK_EQ(end(&one), W_EXITCODE(0, SIGKILL));
    check_family_is_gone(out);
    return 0;
}

TASK_TEST(what_a_child_left_behind_is_reached_before_it_is_waited_for)
{
    int out[2];
    struct weir_process one = spawn_family("sleep 1000 & echo ready", out);

    CHECK_EQ(weir_fd_wait(one.pidfd, WEIR_READABLE, WEIR_FOREVER), WEIR_READABLE);
    CHECK_EQ(weir_process_signal(&one, SIGKILL), 0);
    check_family_is_gone(out);
    CHECK_EQ(end(&one), 0);
    return 0;
}

TASK_TEST(nobody_else_is_reached_afterwards)
{
    int out[2];

    SKIP_IF(TEST_QEMU, "qemu has no PR_SET_CHILD_SUBREAPER");
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the child's child becomes ours, to be reaped */
    struct weir_process one = spawn_family("sleep 1000 & echo ready", out);

    CHECK_EQ(weir_process_wait(&one, WEIR_FOREVER, NULL), 0);
    int r = weir_process_signal(&one, SIGKILL);
    if (r == -ESRCH) /* an older kernel: then by hand, since here nobody else can have it */
        CHECK_EQ(kill(-one.pid, SIGKILL), 0);
    else
        CHECK_EQ(r, 0);
    check_family_is_gone(out);
    CHECK(waitpid(-1, NULL, 0) > 0);
    CHECK_EQ(weir_process_signal(&one, SIGKILL), -ESRCH);
    weir_process_release(&one);
    CHECK_EQ(weir_process_signal(&one, SIGKILL), -EBADF);
    return 0;
}

TASK_TEST(releasing_twice_is_allowed)
{
    struct weir_process one = spawn_argv(TRUE);

    CHECK_EQ(end(&one), 0);
    CHECK_EQ(one.pidfd, -1);
    weir_process_release(&one);
    return 0;
}

static int release_it(void *arg)
{
    weir_process_release(arg);
    return 0;
}

/* As closing any other descriptor. */
TASK_TEST(releasing_ends_the_waits_for_it)
{
    int in[2];
    struct weir_process one = spawn_cat(in), copy = one;
    struct weir_task waiter = spawn_waiting(wait_for_ever, &one);

    CHECK_EQ(join(spawn(release_it, &copy)), 0);
    CHECK_EQ(join(waiter), -EBADF);
    close_both(in);
    CHECK_EQ(waitpid(one.pid, NULL, 0), one.pid);
    return 0;
}
