/* SPDX-License-Identifier: MIT */
/* process_spawn - how long does it take to start a program from one that fills 1 GiB?
 *
 * The time of the call: until the new program is the one that runs in the child, and a
 * failure to start it would be known.  With fork the child tells that by a pipe that
 * closes.  How long the program runs and is waited for does not count.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/process.h>

#include "bench.h"

enum { SPAWNS = 10 };

static const char *const program[] = {"/bin/true", NULL};
static char *const no_environment[] = {NULL};

/* In ordinary pages: how much of a program lies in large ones is a matter of luck. */
static void fill_memory(void)
{
    static char *memory;
    size_t bytes = (size_t)bench_times(1024) * 1024 * 1024;

    if (memory)
        return;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BENCH_CHECK(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* or there are none */
    memset(memory, 1, bytes);
}

static void reap(pid_t pid)
{
    int status;

    BENCH_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- what is measured ------------------------------------------------------------ */

static int64_t by_weir(void)
{
    struct weir_process_options options = {
        .argv = program,
        .envp = (const char *const *)no_environment,
    };
    struct weir_process child;
    int64_t start = bench_now_ns();
    int status;

    BENCH_CHECK(weir_process_spawn(&options, &child) == 0);
    start = bench_now_ns() - start;
    BENCH_CHECK(weir_process_wait(&child, WEIR_FOREVER, &status) == 0 && status == 0);
    weir_process_release(&child);
    return start;
}

static int64_t by_posix_spawn(void)
{
    int64_t start = bench_now_ns();
    pid_t pid;

    BENCH_CHECK(posix_spawn(&pid, program[0], NULL, NULL, (char **)program, no_environment) == 0);
    start = bench_now_ns() - start;
    reap(pid);
    return start;
}

static int64_t by_fork(void)
{
    int64_t start = bench_now_ns();
    int ends[2];
    char nothing;

    BENCH_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    BENCH_CHECK(pid >= 0);
    if (pid == 0) {
        execve(program[0], (char **)program, no_environment);
        _exit(1);
    }
    close(ends[1]);
    BENCH_CHECK(read(ends[0], &nothing, 1) == 0); /* closed by the exec */
    start = bench_now_ns() - start;
    close(ends[0]);
    reap(pid);
    return start;
}

/* ---- measurement ----------------------------------------------------------------- */

static double microseconds(int64_t (*spawn)(void))
{
    int64_t total = 0;
    long spawns = bench_times(SPAWNS);

    fill_memory();
    for (long i = 0; i < spawns; i++)
        total += spawn();
    return (double)total / 1000 / (double)spawns;
}

static double weir_spawn(void)
{
    return microseconds(by_weir);
}

static double bare_posix_spawn(void)
{
    return microseconds(by_posix_spawn);
}

static double fork_and_exec(void)
{
    return microseconds(by_fork);
}

static const struct bench_question question = {
    .name = "process_spawn",
    .unit = "us",
    .cpus_needed = 1,
    .cases =
        {
            {"weir", BENCH_WEIR, weir_spawn},
            {"fork_exec", BENCH_PEER, fork_and_exec},
            {"posix_spawn", BENCH_WEAKER, bare_posix_spawn},
        },
    .goals = {{NULL, BENCH_AT_MOST, 500}},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, &question, 1);
}
