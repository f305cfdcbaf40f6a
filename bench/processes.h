/* SPDX-License-Identifier: MIT */
/* processes.h - for questions that are put to several processes. */
#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

/* A directory under /dev/shm that nobody else uses; removed when this process ends. */
const char *own_directory(void);

/* Zeroed memory that the processes started from now on share. */
void *shared_memory(size_t bytes);

/* Call fn(arg) in a process of its own, which ends with it, or with this one. */
pid_t process_start(void (*fn)(void *), void *arg);

/* Wait for its end, which must be a good one. */
void process_join(pid_t pid);

/* Wait until it sleeps in the kernel. */
void process_until_asleep(pid_t pid);

#endif
