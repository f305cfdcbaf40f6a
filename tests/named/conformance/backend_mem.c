/* SPDX-License-Identifier: MIT */
/* The column `mem:`. */
#include <stdio.h>

#include "named/conformance/world.h"

static void begin(struct world *w)
{
    snprintf(w->uri, sizeof w->uri, "mem:");
}

static void end(struct world *w)
{
    (void)w;
}

const struct backend backend = {
    .begin = begin,
    .end = end,
    .brief_ttl_ns = 40 * WEIR_MS,
};
