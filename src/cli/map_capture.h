/* SPDX-License-Identifier: MIT */
/* map_capture - what a job writes, until it may be shown.
 *
 * The end of it is in memory.  When the memory of all captures together is used up, what comes
 * before goes to the spool: one unlinked file in $TMPDIR for all of them, in which each has its
 * extents, so that neither memory nor descriptors grow with the output.  What was shown is
 * punched out of the file again. */
#ifndef WEIR_CLI_MAP_CAPTURE_H
#define WEIR_CLI_MAP_CAPTURE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/map_buffer.h"

struct extent {
    off_t offset;
    size_t length;
};

struct capture {
    struct buffer memory;
    struct extent *extents;
    size_t count, capacity; /* of extents */
};

/* One read(2) from a pipe that has something.  Returns what it gives. */
ssize_t capture_read(struct capture *c, int fd);

/* Hand everything over, but for the last `keep` bytes in memory, and forget it. */
void capture_take(struct capture *c, size_t keep,
                  void (*sink)(void *arg, const char *bytes, size_t length), void *arg);

void capture_forget(struct capture *c);

/* It will be kept for a while and not grow: take no more memory than it needs. */
void capture_settle(struct capture *c);

#endif
