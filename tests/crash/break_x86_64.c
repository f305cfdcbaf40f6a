/* SPDX-License-Identifier: MIT */
/* The debug registers: the process stops before the instruction, and its code is as it was. */
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "crash/lead.h"
#include "harness/test.h"

static bool set_register(pid_t pid, int i, uint64_t value)
{
    size_t at = offsetof(struct user, u_debugreg) + (size_t)i * sizeof value;

    return ptrace(PTRACE_POKEUSER, pid, at, value) == 0;
}

uint64_t break_where(pid_t pid)
{
    errno = 0;
    long place = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), 0);
    CHECK_EQ(errno, 0);
    return (uint64_t)place;
}

/* The seventh says which of the others count: none, or the first. */
bool break_at(pid_t pid, uint64_t place)
{
    if (!set_register(pid, 7, 0))
        return false;
    return place == 0 || (set_register(pid, 0, place) && set_register(pid, 7, 1));
}
