/* SPDX-License-Identifier: MIT */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int futex_wait(const uint32_t *word, uint32_t expected, int64_t at_ns)
{
    struct timespec at = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    struct timespec *limit = at_ns == INT64_MAX ? NULL : &at;

    /* WAIT_BITSET, because unlike WAIT it takes an absolute monotonic time. */
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    return r < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void futex_wake(const uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
