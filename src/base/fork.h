/* SPDX-License-Identifier: MIT */
/* Has the process been forked?  A child must not use what its parent shares with others. */
#ifndef WEIR_BASE_FORK_H
#define WEIR_BASE_FORK_H

#include <stdint.h>

#include "base/atomic.h"

extern uint32_t fork_counter;

/* How many forks lie between this process and the one that first asked to be told. */
static inline uint32_t fork_count(void)
{
    return atomic_peek(&fork_counter);
}

/* From now on count.  Any number of times. */
void fork_watch(void);

#endif
