/* SPDX-License-Identifier: MIT */
/* base/clock.h as the explorer has it: time stands still until the search lets it pass. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

extern int64_t clock_virtual_ns; /* defined by time.c, used by nobody here */

int64_t clock_now_ns(void);

/* Has the moment come?  Whoever asks lets the explorer know that it matters. */
int clock_has_passed(int64_t at_ns);
int clock_long_passed(int64_t at_ns); /* the coarse clock does not lag here */

#endif
