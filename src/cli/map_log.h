/* SPDX-License-Identifier: MIT */
/* map_log - the files that a map leaves: the log of its jobs, which a later one may resume
 * from, and what each of them wrote.  The columns of the log are those of GNU parallel. */
#ifndef WEIR_CLI_MAP_LOG_H
#define WEIR_CLI_MAP_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/map_job.h"

/* What does it say?  It need not be there. */
void log_read(const char *path);

/* Write it anew, or behind what it says. */
void log_open(const char *path, bool append);

/* Does the log say that this job, with this command, has succeeded?  `any_command`: whatever
 * its command was. */
bool log_has_success(uint64_t number, const struct buffer *command, bool any_command);

void log_job(const struct job *job, int exit_value, int signal, const struct buffer *command);

/* ---- --results: DIR/NUMBER/command, stdout, stderr and status ------------------------- */

void results_open(const char *directory);
void results_begin(struct job *job, const struct buffer *command);
void results_add(const struct job *job, int stream, const char *bytes, size_t length);
void results_end(struct job *job, int exit_status);

#endif
