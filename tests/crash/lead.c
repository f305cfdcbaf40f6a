/* SPDX-License-Identifier: MIT */
#include "crash/lead.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

/* Memory is set and copied by instructions one can be killed between, and not by one that
 * is as long as the memory. */
static char *const environment[] = {
    (char[]){"GLIBC_TUNABLES=glibc.cpu.x86_rep_stosb_threshold=1000000000:"
             "glibc.cpu.x86_rep_movsb_threshold=1000000000"},
    NULL,
};

/* By which signal it stands, when it does again. */
static int stands(pid_t pid)
{
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSTOPPED(status));
    return WSTOPSIG(status);
}

static int run(pid_t pid)
{
    CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, 0), 0);
    return stands(pid);
}

/* False: it stands at its own stop, and did nothing. */
static bool step(pid_t pid)
{
    CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
    int signal = stands(pid);
    CHECK(signal == SIGTRAP || signal == SIGSTOP);
    return signal == SIGTRAP;
}

pid_t lead_start(const char *const *arguments)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execve(arguments[0], (char *const *)(uintptr_t)arguments, environment);
        _exit(127);
    }
    CHECK_EQ(stands(pid), SIGTRAP); /* in exec */
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL), 0);
    CHECK_EQ(run(pid), SIGSTOP);
    return pid;
}

void lead_home(pid_t pid)
{
    int status;

    CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, 0), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- paths ------------------------------------------------------------------------------ */

static void path_add(struct path *p, uint64_t place)
{
    if (p->length == p->room) {
        p->room = p->room ? p->room * 2 : 1024;
        p->at = realloc(p->at, (size_t)p->room * sizeof *p->at);
        CHECK(p->at != NULL);
    }
    p->at[p->length++] = place;
}

static bool is_new(const struct path *p, long k)
{
    long i = 0;

    while (p->at[i] != p->at[k])
        i++;
    return i == k;
}

void path_learn(struct path *p, pid_t pid)
{
    do
        path_add(p, break_where(pid));
    while (step(pid));
    p->news = calloc((size_t)p->length, sizeof *p->news);
    CHECK(p->news != NULL);
    for (long k = 1; k < p->length; k++)
        p->news[k] = is_new(p, k) ? k : p->news[k - 1];
}

void path_forget(struct path *p)
{
    free(p->at);
    free(p->news);
    *p = (struct path){0};
}

bool path_follow(const struct path *p, pid_t pid, long k)
{
    long i = p->news[k];
    bool there = true;

    if (i > 0 && break_at(pid, p->at[i])) {
        there = run(pid) == SIGTRAP;
        break_at(pid, 0);
    } else {
        i = 0;
    }
    for (; there && i < k; i++)
        there = step(pid);
    return there;
}
