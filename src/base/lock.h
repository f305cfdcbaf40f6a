/* SPDX-License-Identifier: MIT */
/* A four-byte lock.  It protects a handful of loads and stores and nothing
 * else: no allocation, no system call but its own, no callback, no park. */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/visibility.h>

#include "base/annotate.h"

typedef struct WEIR_CAPABILITY_("lock") lock {
    uint32_t word; /* 0 free, 1 held, 2 held and someone sleeps on it */
} lock;

void lock_take(lock *l) ACQUIRES(*l);
bool lock_try(lock *l);
void lock_drop(lock *l) RELEASES(*l);

#endif
