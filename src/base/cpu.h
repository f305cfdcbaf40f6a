/* SPDX-License-Identifier: MIT */
/* What the processor can be asked, and told while there is nothing to do. */
#ifndef WEIR_BASE_CPU_H
#define WEIR_BASE_CPU_H

#include <sched.h>
#include <stdint.h>
#include <sys/rseq.h>

/* "I am spinning." */
static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` is a no-op on most cores */
#endif
}

static inline void cpu_yield(void)
{
    sched_yield();
}

/* The number of the CPU that we run on, from 1; 0 when it cannot be told.  The kernel
 * keeps it up to date in memory that glibc gave it, so it is a load. */
static inline uint16_t cpu_here(void)
{
    const char *thread = __builtin_thread_pointer();
    const struct rseq *rseq = (const struct rseq *)(const void *)(thread + __rseq_offset);
    int cpu = (int)*(const volatile uint32_t *)&rseq->cpu_id;

    return (uint16_t)((cpu < 0 ? sched_getcpu() : cpu) + 1); /* < 0: an old kernel, or qemu */
}

/* How many CPUs the process was allowed to use when it started. */
uint32_t cpu_count(void);

#endif
