/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static char directory[] = "/dev/shm/weir-bench-XXXXXX";
static pid_t directory_owner;

/* There are no directories in it. */
static void remove_directory(void)
{
    DIR *files = getpid() == directory_owner ? opendir(directory) : NULL;

    if (!files)
        return;
    for (struct dirent *file; (file = readdir(files));)
        unlinkat(dirfd(files), file->d_name, 0);
    closedir(files);
    rmdir(directory);
}

const char *own_directory(void)
{
    if (!directory_owner) {
        BENCH_CHECK(mkdtemp(directory));
        directory_owner = getpid();
        BENCH_CHECK(atexit(remove_directory) == 0);
    }
    return directory;
}

void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    BENCH_CHECK(memory != MAP_FAILED);
    return memory;
}

pid_t process_start(void (*fn)(void *), void *arg)
{
    pid_t parent = getpid(), pid;

    fflush(stdout);
    pid = fork();
    BENCH_CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        BENCH_CHECK(getppid() == parent);
        fn(arg);
        _exit(0);
    }
    return pid;
}

void process_join(pid_t pid)
{
    int status;

    BENCH_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static char process_state(pid_t pid)
{
    char path[64], text[256] = "";
    const char *end;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    BENCH_CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    end = strrchr(text, ')'); /* behind the name, which may hold any letter */
    return end && end[1] == ' ' ? end[2] : '?';
}

void process_until_asleep(pid_t pid)
{
    while (process_state(pid) != 'S')
        sched_yield();
}
