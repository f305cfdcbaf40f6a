/* SPDX-License-Identifier: MIT */
/* store - a backend, its keeper, and the leases that are tended here. */
#ifndef WEIR_NAMED_STORE_H
#define WEIR_NAMED_STORE_H

#include <weir/store.h>

#include "base/futex.h"
#include "named/backend.h"
#include "named/keeper.h"
#include "named/tended.h"

struct weir_store {
    struct backend *backend;
    struct keeper keeper;
    struct tended_leases tended;
    uint32_t forks; /* how often the process had been forked when it was opened */
};

/* 0 and the id, or WEIR_EINVAL and its sentence. */
int check_id(const char *text, uint8_t id[ID_BYTES]);

/* 0, or WEIR_ECONTEXT after a fork.  The sentence of the last failure is forgotten. */
int store_enter(const struct weir_store *store);

#endif
