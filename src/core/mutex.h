/* SPDX-License-Identifier: MIT */
/* What a condition needs of a mutex beyond locking it. */
#ifndef WEIR_CORE_MUTEX_H
#define WEIR_CORE_MUTEX_H

#include <weir/mutex.h>

#include "core/waitq.h"

/* Queue waiters for the mutexes that their `want` points to; whoever finds its mutex
 * free owns it and is told. */
void mutex_admit(batch *b);

/* Lock it whatever happens: no deadline, no cancel. */
void mutex_lock_firmly(struct weir_mutex *mutex);

#endif
