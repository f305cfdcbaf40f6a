/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

#include <pthread.h>

/* Start one that takes no signal, which are the program's business, but for those that are
 * its own fault.  Returns 0, or what the system said. */
int thread_start(pthread_t *ret_thread, void *(*main)(void *), void *arg);

#endif
