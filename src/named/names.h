/* SPDX-License-Identifier: MIT */
/* names - the named semaphores that this process knows in one store.
 *
 * A name is freed only when nobody uses it: who does has its lock, or has pinned it.  While
 * the table's lock is held, a name's lock is tried and never waited for. */
#ifndef WEIR_NAMED_NAMES_H
#define WEIR_NAMED_NAMES_H

#include <weir/event.h>

#include "base/lock.h"
#include "named/key.h"
#include "named/ledger.h"

/* A call of this process that waits for an entry and cannot sleep on its word: on the stack
 * of whoever called. */
struct call {
    struct call *next, *prev; /* among those of its name, under the name's lock         */
    uint32_t index, word;     /* of the entry, when it began to wait                    */
    uint32_t ahead;           /* in the queue, when it joined that                      */
    int64_t patience_ns;      /* shm: how long it last slept without seeing             */
    bool joined;              /* the entry is somebody else's                           */
    bool told;                /* off the list: `event` is set, or will be in an instant */
    struct weir_event event;
};

/* Locking key: (t) the table's lock  (n) the name's lock  (c) constant */
struct name {
    struct name *next;                   /* (t) in its bucket                    */
    uint64_t hash;                       /* (c)                                  */
    uint32_t pins;                       /* (t,a) raised under it                */
    uint32_t joiners;                    /* (n) calls that joined                */
    ledger ledger;                       /* (n) what it is all about             */
    struct call *first_call, *last_call; /* (n,a)                                */
    uint32_t length;                     /* (c) of the text                      */
    char text[WEIR_NAME_MAX + 1];        /* (c)                                  */
};

struct names {
    lock lock;
    struct name **buckets; /* (t) NULL until there is a name */
    uint32_t mask, count;  /* (t)                            */
};

/* Make it the name of n, which is not in the table yet. */
void name_set_key(struct name *n, const struct name_key *key);

/* Pinned, or NULL. */
struct name *names_find(struct names *names, const struct name_key *key);

/* The same; but if it could be locked at once, it is, and not pinned: *ret_locked. */
typedef bool try_lock_fn(void *arg, struct name *n);
struct name *names_find_and_lock(struct names *names, const struct name_key *key,
                                 try_lock_fn *try_lock, void *arg, bool *ret_locked);

/* Put a new one in, pinned; or, if another thread was first, pin and return that one.
 * NULL: no memory. */
struct name *names_add(struct names *names, struct name *n);

void name_pin(struct name *n); /* by one who has its lock */
void name_unpin(struct name *n);

/* Take out all names that nobody has pinned and `unwanted` says may go.  Returns them
 * linked by `next`. */
struct name *names_remove(struct names *names, bool (*unwanted)(const struct name *n, void *arg),
                          void *arg);

/* All of them, pinned, in memory to be freed.  Returns how many, or WEIR_ENOMEM. */
int64_t names_pin_all(struct names *names, struct name ***ret);

/* Take out all, whoever uses them, and free the table. */
struct name *names_close(struct names *names);

#endif
