/* SPDX-License-Identifier: MIT */
/* map_permit - leases of a named semaphore, for a loop that must not wait.
 *
 * What is free is taken at once.  Otherwise one thread stands in line for one lease, and tells
 * by a descriptor that it has it; so that of many maps that share a name each gets its turn. */
#ifndef WEIR_CLI_MAP_PERMIT_H
#define WEIR_CLI_MAP_PERMIT_H

#include <stdbool.h>

#include <weir/store.h>

#include "cli/options.h"

/* Opens the store; ends the program if it cannot. */
void permit_open(const struct options *o);

/* Returns 1 and a lease; 0: permit_fd becomes readable when it is worth to ask again; or a
 * negative exit status, after it has said why. */
int permit_take(struct weir_lease *ret);
void permit_give(struct weir_lease *lease);
int permit_fd(void);
void permit_heard(void); /* that it is readable */

/* What was stood in line for is not wanted any more. */
void permit_stop(void);

/* What a job inherits to hold its lease by; -1: nothing. */
int permit_store_fd(void);

/* The environment of a job that has this lease. */
char *const *permit_environment(const struct weir_lease *lease);

/* The ids of leases that were lost, one per call.  Read when permit_lost_fd is readable. */
int permit_lost_fd(void);
bool permit_next_lost(char ret_id[WEIR_ID_LENGTH + 1]);

#endif
