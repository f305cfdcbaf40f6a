/* SPDX-License-Identifier: MIT */
/* completions - what may stand where on weir's command line, for shells.
 *
 * Each place has an action: a word that the functions in every script know.
 *
 *     none      anything
 *     names     of the store          ids       of the leases of the name before it
 *     commands  weir's own            programs  a command line of its own follows
 *     stores    files    dirs    signals
 *     a|b|c     one of these
 */
#ifndef WEIR_CLI_COMPLETIONS_H
#define WEIR_CLI_COMPLETIONS_H

#include "cli/options.h"

enum { ACTION_BYTES = 32, PLACES_MAX = 4 };

/* Of an option's value; "" for a flag. */
const char *option_action(enum option o);

/* Of the arguments; the last one is for all that follow.  Returns how many. */
int argument_actions(enum command c, char actions[PLACES_MAX][ACTION_BYTES]);

void print_bash(void);
void print_zsh(void);
void print_fish(void);

#endif
