/* SPDX-License-Identifier: MIT */
/* base/cpu.h as the explorer has it: a pause is a choice of who goes on. */
#ifndef WEIR_BASE_CPU_H
#define WEIR_BASE_CPU_H

#include <stdint.h>

void cpu_pause(void);
void cpu_yield(void);

/* Each flow has a CPU of its own. */
uint16_t cpu_here(void);

/* What the scenario says. */
uint32_t cpu_count(void);

#endif
