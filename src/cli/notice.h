/* SPDX-License-Identifier: MIT */
/* notice - who waits on a terminal for more than a second is told for whom. */
#ifndef WEIR_CLI_NOTICE_H
#define WEIR_CLI_NOTICE_H

#include <weir/store.h>

void notice_begin(struct weir_store *store, const char *name);

/* Does nothing if it was not begun. */
void notice_end(void);

#endif
