/* SPDX-License-Identifier: MIT */
/* io - what the calls of weir/io.h have in common. */
#ifndef WEIR_TASK_IO_H
#define WEIR_TASK_IO_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* At the beginning of each: 0, or WEIR_ECANCELED.  I/O always looks. */
int io_begin(void);

/* At the end of one that had not to wait: a task whose other side is as fast as itself
 * would keep its worker for ever, so it gives way at times. */
void io_end(void);

/* Around a write(2), which has no flag against SIGPIPE: hold that back on this thread, and
 * drop the one that it raised if it gave EPIPE.  (stream.c) */
void io_hold_sigpipe(sigset_t *ret_before);
void io_let_go_of_sigpipe(const sigset_t *before, bool raised);

/* How long from now until at_ns; nothing for a time that has passed. */
struct timespec io_left(int64_t at_ns);

#endif
