/* SPDX-License-Identifier: MIT */
/* weir/observe.h - what happens to leases, told to the program.
 *
 *     static void log_it(const struct weir_notice *n, void *arg)
 *     {
 *         if (n->what == WEIR_NOTICE_ACQUIRED)
 *             printf("%s: slot %u of %lu after %ld ns\n", n->name, ...);
 *     }
 *
 *     weir_observe(log_it, NULL);
 *
 * The library prints nothing.  One function, set by the program, is told instead.  It is
 * called on the thread where the thing happened (a keeper's, for what happens by itself),
 * with no lock held, and may call weir, but should not wait: what it delays is the caller.
 */
#ifndef WEIR_OBSERVE_H
#define WEIR_OBSERVE_H

#include <stdint.h>

#include <weir/visibility.h>

WEIR_BEGIN

enum weir_notice_kind {
    WEIR_NOTICE_ACQUIRED = 1, /* a call here was given a lease                          */
    WEIR_NOTICE_RELEASED,     /* a call here gave one back                              */
    WEIR_NOTICE_EXPIRED,      /* a TTL had passed, and the lease was taken back         */
    WEIR_NOTICE_RECOVERED,    /* a process had died, and the lease was taken back       */
    WEIR_NOTICE_LOST,         /* a holder of this process can no longer count on it     */
    WEIR_NOTICE_ABANDONED,    /* a task ended without giving it back, so we did         */
};

/* Pointers are good until the observer returns. */
struct weir_notice {
    enum weir_notice_kind what;
    const char *name;  /* of the semaphore                                     */
    const char *id;    /* of the lease                                         */
    const char *label; /* what the holder called it, or ""                     */
    const char *task;  /* ABANDONED: the task's name, else ""                  */
    uint64_t limit;    /* of the semaphore; 0 when LOST                        */
    uint64_t token;
    int64_t waited_ns; /* ACQUIRED: for how long                               */
    uint32_t slot;
};

typedef void weir_observer(const struct weir_notice *notice, void *arg);

/* From now on tell `observer`; NULL: nobody.  Meant for the start of a program: a call
 * that is under way may still tell the former one. */
WEIR_API void weir_observe(weir_observer *observer, void *arg);

WEIR_END

#endif
