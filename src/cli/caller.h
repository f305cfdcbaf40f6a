/* SPDX-License-Identifier: MIT */
/* caller - the shell that called us. */
#ifndef WEIR_CLI_CALLER_H
#define WEIR_CLI_CALLER_H

#include <stddef.h>
#include <sys/types.h>

/* Our parent; or, if that is a fork of a shell, as in $(weir acquire db | cat), the shell: the
 * one that $$ stands for.  0 if it is outside of what we can see. */
pid_t caller_find(void);

/* What it is called, for people. */
void caller_name(pid_t pid, char *text, size_t bytes);

#endif
