/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NAMED_OBSERVE_H
#define WEIR_NAMED_OBSERVE_H

#include <stdbool.h>

#include <weir/observe.h>

#include "named/ledger.h"

/* Is there anybody to be told? */
bool observed(void);

void observe(const struct weir_notice *notice);
void observe_item(const char *name, const struct item *item, const char *task);

#endif
