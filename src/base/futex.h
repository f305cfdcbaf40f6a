/* SPDX-License-Identifier: MIT */
/* Sleeping in the kernel until a word changes. */
#ifndef WEIR_BASE_FUTEX_H
#define WEIR_BASE_FUTEX_H

#include <stdint.h>

/* Sleep while *word is `expected`, until woken or until the monotonic clock reaches
 * at_ns (INT64_MAX: no limit).  Returns -ETIMEDOUT, or 0 for every other reason, of
 * which there are many (a signal, a wake meant for an earlier owner of the address):
 * look again. */
int futex_wait(const uint32_t *word, uint32_t expected, int64_t at_ns);

/* Wake up to `count` sleepers.  The word is an address and not an object here: it
 * may be freed memory by now, and then the call does nothing, or wakes somebody
 * who looks again. */
void futex_wake(const uint32_t *word, int count);

/* ---- the same between processes: words in shared memory -------------------------- */

struct futex_watch {
    const uint32_t *word;
    uint32_t expected;
};

enum { FUTEX_WATCH_MAX = 128 }; /* the kernel's own limit */

/* Sleep while each of the words is as expected; else as futex_wait.  A kernel older than
 * 5.16 can watch one only: the others are then not watched. */
int futex_wait_shared(const struct futex_watch *watches, uint32_t count, int64_t at_ns);
void futex_wake_shared(const uint32_t *word, int count);

#endif
