/* SPDX-License-Identifier: MIT */
/* map_bar - one line at the bottom of the terminal, on standard error.
 *
 * It is there only while nothing else is written: whoever writes hides it first, and it comes
 * back by itself. */
#ifndef WEIR_CLI_MAP_BAR_H
#define WEIR_CLI_MAP_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct bar_numbers {
    uint64_t done, failed, running;
    uint64_t total; /* 0: not known yet */
    bool ending;    /* no new jobs are started */
};

void bar_open(void);
bool bar_is_open(void);

/* Draw it if it is time to.  Returns when it will be the next time; INT64_MAX: never. */
int64_t bar_draw(const struct bar_numbers *numbers);
void bar_hide(void);

#endif
