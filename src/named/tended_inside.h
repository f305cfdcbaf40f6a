/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NAMED_TENDED_INSIDE_H
#define WEIR_NAMED_TENDED_INSIDE_H

#include <weir/event.h>
#include <weir/task.h>

#include "named/owner.h"
#include "named/tended.h"

enum { TENDED_BUCKETS = 1024 };

/* Locking key: (l) under the lock of the store's tended leases  (c) constant  (k) keeper */
struct tended {
    struct tended *next;     /* (l) in its bucket                                       */
    struct timer timer;      /* (l) when to look at it                                  */
    struct weir_lease lease; /* (l)                                                     */
    uint8_t id[ID_BYTES];    /* (c)                                                     */
    int64_t ttl_ns;          /* (l)                                                     */
    unsigned flags;          /* (c)                                                     */
    weir_on_lost *on_lost;   /* (c)                                                     */
    void *arg;               /* (c)                                                     */
    struct weir_task holder; /* (c) to be cancelled                                     */
    int fd;                  /* (l) to become readable; -1 when nobody asked            */
    uint64_t limit;
    bool watched;           /* (l) somebody wants to be told of its loss               */
    bool lost;              /* (l)                                                     */
    uint32_t checked;       /* (l) the last round in which it was asked for            */
    bool telling;           /* (l) its holder is being told of the loss                */
    bool released;          /* (l) inside that call: whoever tells is to free it       */
    struct weir_event told; /*     that call has returned                              */
    struct owned owned;     /*     by a task; owner.c                                  */
    char label[WEIR_LABEL_MAX + 1];
    char name[WEIR_NAME_MAX + 1];
};

struct tended *tended_find(const struct tended_leases *all, const char *name,
                           const uint8_t id[ID_BYTES]);

/* When to look at it next: to renew it, or to give it up. */
void tended_arm(struct weir_store *store, struct tended *t, int64_t now_ns);

void tended_free(struct tended *t);

#endif
