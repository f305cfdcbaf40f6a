/* SPDX-License-Identifier: MIT */
/* A four-byte lock.  Nothing that may wait for somebody is done under it: no callback, no
 * park.  In core and task it protects a handful of loads and stores and nothing else; above
 * them an allocation, or the start of a thread, once. */
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
