/* SPDX-License-Identifier: MIT */
/* offload - threads for calls that block in something weir does not know. */
#ifndef WEIR_TASK_OFFLOAD_H
#define WEIR_TASK_OFFLOAD_H

#include <stdbool.h>

struct weir_runtime;

/* Is this one of the threads of the runtime's pool? */
bool offload_is_of(const struct weir_runtime *rt);

/* Let the threads of the runtime's pool end, and wait for that.  Nothing runs on them
 * any more.  Does nothing if there is no pool. */
void offload_close(struct weir_runtime *rt);

#endif
