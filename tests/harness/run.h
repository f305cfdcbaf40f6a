/* SPDX-License-Identifier: MIT */
/* What the parts of the harness know of each other.  Not for tests. */
#ifndef WEIR_HARNESS_RUN_H
#define WEIR_HARNESS_RUN_H

#include <stdint.h>

#include "harness/test.h"

/* The seed of this run, and what WEIR_TEST_SCALE says; fixed before any test. */
extern uint64_t run_seed;
extern double run_scale;

/* EVENTUALLY gives up here: a little before the parent would kill, to say which. */
extern int64_t run_patience_ends_ns;

int64_t run_now_ns(void);

/* The calling thread's stream of random numbers starts afresh. */
void run_random_begin(uint64_t stream);

#endif
