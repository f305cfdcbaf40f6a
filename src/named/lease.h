/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NAMED_LEASE_H
#define WEIR_NAMED_LEASE_H

#include <weir/store.h>

#include "base/id.h"

/* The running task ends and still holds it: give it back, and tell the observer. */
void lease_abandon(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES]);

#endif
