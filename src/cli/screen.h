/* SPDX-License-Identifier: MIT */
/* screen - what is at the other end of standard output. */
#ifndef WEIR_CLI_SCREEN_H
#define WEIR_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

struct screen {
    bool terminal;
    int width, height; /* 0: no limit */
    bool colour;       /* a terminal that has some, and nobody said NO_COLOR */
};

struct screen screen_now(void);
bool colour_is_wanted(void);

/* From now on INT, TERM and HUP do not end the program, but the next wait: that of
 * screen_wait, and of a write that is stuck. */
void screen_watch(void);
bool screen_is_over(void);

enum screen_event { SCREEN_TIME, SCREEN_INPUT, SCREEN_OVER };

/* Until then, until such a signal, or until something can be read from `fd` (-1: never) or
 * any other signal is handled. */
enum screen_event screen_wait(int fd, int64_t until_ns);

#endif
