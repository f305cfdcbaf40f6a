/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/futex.h"

enum { LOCK_PAUSES = 64 };

UNCHECKED void lock_take(lock *l)
{
    for (int i = 0; i < LOCK_PAUSES; i++) {
        uint32_t seen = 0;

        if (atomic_peek(&l->word) == 0 && atomic_cas(&l->word, &seen, 1))
            return;
        cpu_pause();
    }
    while (atomic_swap(&l->word, 2) != 0)
        futex_wait(&l->word, 2, INT64_MAX);
}

UNCHECKED bool lock_try(lock *l)
{
    uint32_t seen = 0;

    return atomic_peek(&l->word) == 0 && atomic_cas(&l->word, &seen, 1);
}

UNCHECKED void lock_drop(lock *l)
{
    if (atomic_swap(&l->word, 0) == 2)
        futex_wake(&l->word, 1);
}
