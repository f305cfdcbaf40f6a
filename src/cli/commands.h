/* SPDX-License-Identifier: MIT */
/* commands - one function for each sub-command.  It returns the exit status. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#include <weir/store.h>

#include "cli/options.h"

int cmd_run(const struct options *o);
int cmd_map(const struct options *o);
int cmd_ls(const struct options *o);
int cmd_stat(const struct options *o);
int cmd_top(const struct options *o); /* in the small weir: full.c starts the full one */
int cmd_acquire(const struct options *o);
int cmd_renew(const struct options *o);
int cmd_release(const struct options *o);
int cmd_resize(const struct options *o);
int cmd_evict(const struct options *o);
int cmd_gc(const struct options *o);
int cmd_doctor(const struct options *o);
int cmd_completions(const struct options *o);
int cmd_help(const struct options *o);
int cmd_version(const struct options *o);

/* ---- what they share (common.c) ------------------------------------------------------ */

/* Which store the options or the environment name. */
const char *store_uri(const struct options *o);

/* The store that the options or the environment name; ends the program if it cannot be. */
struct weir_store *open_store(const struct options *o);

/* A lease as the options ask for it.  `label` if they say nothing.  Waits, and on a terminal
 * says for whom; ends the program if there is none to be had. */
struct weir_lease_request lease_request(const struct options *o, const char *label);
void acquire_or_fail(struct weir_store *store, const struct options *o,
                     struct weir_lease_request *request, struct weir_lease *ret);

/* Does it belong to this process?  One that was asked for by an id that another holds does
 * not, and is not ours to give back. */
bool lease_is_ours(struct weir_store *store, const char *name, const struct weir_lease *lease);

#endif
