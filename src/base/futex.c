/* SPDX-License-Identifier: MIT */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec timespec_of(int64_t at_ns)
{
    return (struct timespec){.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
}

/* `op` is WAIT_BITSET, because unlike WAIT it takes an absolute monotonic time. */
static int wait_on(int op, const uint32_t *word, uint32_t expected, int64_t at_ns)
{
    struct timespec at = timespec_of(at_ns);
    struct timespec *limit = at_ns == INT64_MAX ? NULL : &at;

    long r = syscall(SYS_futex, word, op, expected, limit, NULL, FUTEX_BITSET_MATCH_ANY);
    return r < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

int futex_wait(const uint32_t *word, uint32_t expected, int64_t at_ns)
{
    return wait_on(FUTEX_WAIT_BITSET_PRIVATE, word, expected, at_ns);
}

void futex_wake(const uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

int futex_wait_shared(const struct futex_watch *watches, uint32_t count, int64_t at_ns)
{
    struct futex_waitv list[FUTEX_WATCH_MAX];
    struct timespec at = timespec_of(at_ns);

    if (count == 1)
        return wait_on(FUTEX_WAIT_BITSET, watches->word, watches->expected, at_ns);
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct futex_waitv){
            .uaddr = (uintptr_t)watches[i].word, .val = watches[i].expected, .flags = FUTEX_32};
    long r =
        syscall(SYS_futex_waitv, list, count, 0, at_ns == INT64_MAX ? NULL : &at, CLOCK_MONOTONIC);
    if (r < 0 && errno == ENOSYS)
        return wait_on(FUTEX_WAIT_BITSET, watches->word, watches->expected, at_ns);
    return r < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void futex_wake_shared(const uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}
