/* SPDX-License-Identifier: MIT */
/* map_output - what jobs have written, to where it belongs.
 *
 * When nobody reads it, a signal is still heard: before each write that could block, it asks
 * to be told whether to go on. */
#ifndef WEIR_CLI_MAP_OUTPUT_H
#define WEIR_CLI_MAP_OUTPUT_H

#include <stdbool.h>

#include "cli/map_job.h"

struct output_options {
    bool tag;                       /* each line begins with the job's items        */
    bool whole_lines;               /* the last line of a job ends, whatever it was */
    void (*before)(void);           /* before anything is written                   */
    bool (*until_writable)(int fd); /* false: do not write any more                 */
};

void output_open(const struct output_options *options);

/* Everything that a job has written so far to its standard output (0) or error (1). */
void output_all(struct job *job, int stream);

/* That, but for the `keep` bytes behind its last whole line. */
void output_lines(struct job *job, int stream, size_t keep);

/* A line of our own, on standard output; collected until output_flush. */
void output_line(const char *text, size_t length);
void output_flush(void);

/* Why nothing is written any more: 0, EPIPE, or what the kernel said. */
int output_error(void);

#endif
