/* SPDX-License-Identifier: MIT */
/* keeper - the one thread of a store, for what must happen by itself: renewing, telling of
 * losses, taking back (`mem:`), waiting on behalf of tasks (`shm:`).  It is started when
 * there is first something to do. */
#ifndef WEIR_NAMED_KEEPER_H
#define WEIR_NAMED_KEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct weir_store;

/* Locking key: (l) under lock  (a) atomic  (c) constant */
struct keeper {
    struct weir_store *store; /* (c)                                                   */
    lock lock;
    pthread_t thread;    /* (l) once started                                           */
    bool started;        /* (l,a)                                                      */
    bool stop;           /* (a)                                                        */
    int64_t wakes_at_ns; /* (a) when it will look by itself; INT64_MAX while it works  */
};

/* See to it that there is one.  Returns 0, or why there is not. */
int keeper_start(struct keeper *k);

/* There will be something to do at that time.  Does nothing if there is no keeper. */
void keeper_expect(struct keeper *k, int64_t at_ns);

/* Look now. */
void keeper_ring(struct keeper *k);

bool keeper_is_self(const struct keeper *k);

/* Ends the thread. */
void keeper_stop(struct keeper *k);

#endif
