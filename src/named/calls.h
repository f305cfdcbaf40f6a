/* SPDX-License-Identifier: MIT */
/* calls - those of this process who wait for an entry by an event: all of them in `mem:`,
 * tasks in `shm:`.  Everything but calls_wake under the name's lock. */
#ifndef WEIR_NAMED_CALLS_H
#define WEIR_NAMED_CALLS_H

#include "named/names.h"

void call_link(struct name *n, struct call *c);
void call_unlink(struct name *n, struct call *c);

/* Move those whose wait for an entry is over (for any entry: NO_ENTRY) to a list. */
void calls_take(struct name *n, uint32_t index, struct call **list);

/* Tell everyone on the list.  Call with no lock held. */
void calls_wake(struct call *list);

#endif
