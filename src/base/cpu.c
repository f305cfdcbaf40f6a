/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"

#include <unistd.h>

static uint32_t count = 1;

/* Counted when the library is loaded: a thread that later binds itself to one CPU
 * would count one, though those it waits for run elsewhere. */
__attribute__((constructor)) static void count_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        count = (uint32_t)CPU_COUNT(&set);
    } else { /* more CPUs than a cpu_set_t has bits */
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online > 0 ? (uint32_t)online : 1;
    }
}

uint32_t cpu_count(void)
{
    return count;
}
