/* SPDX-License-Identifier: MIT */
/* weir/event.h - "it has happened", told to everyone who waits for it.
 *
 *     static struct weir_event ready = WEIR_EVENT_INIT;
 *
 *     weir_event_set(&ready);                          // once, by whoever knows
 *     r = weir_event_wait(&ready, WEIR_FOREVER);       // by anyone, any number
 *
 * A weir_event is set once and stays set: after that every wait returns at once,
 * for ever.  A weir_revent can be cleared and set again.
 *
 * Waking.  set wakes all who wait, in O(n); when it returns, each of them has been
 * made runnable, oldest first (threads asleep together in the order in which they
 * fell asleep).  What was written before set is seen after the wait.
 *
 * Cost.  Waiting for what is set, setting what is set and clearing what is clear
 * are one load.  Setting when nobody waits is one atomic operation.
 *
 * End of life: as for a semaphore; see weir/sem.h.
 */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/storage.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

/* clang-format off */
struct weir_event { struct weir_waitq_ queue_; };
struct weir_revent { struct weir_waitq_ queue_; };

/* Not set. */
#define WEIR_EVENT_INIT  {WEIR_WAITQ_INIT_(0)}
#define WEIR_REVENT_INIT {WEIR_WAITQ_INIT_(0)}
/* clang-format on */

WEIR_API void weir_event_init(struct weir_event *event) WEIR_NONNULL(1);
WEIR_API void weir_event_set(struct weir_event *event) WEIR_NONNULL(1);
WEIR_API bool weir_event_is_set(const struct weir_event *event) WEIR_NONNULL(1);

/* Returns 0 once the event is set, or WEIR_ETIMEDOUT, WEIR_ECANCELED or
 * WEIR_ECONTEXT. */
WEIR_API int weir_event_wait(struct weir_event *event, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

WEIR_API void weir_revent_init(struct weir_revent *event) WEIR_NONNULL(1);

/* Wakes exactly those who wait at this moment: they return 0 even when a clear
 * comes before they have run. */
WEIR_API void weir_revent_set(struct weir_revent *event) WEIR_NONNULL(1);
WEIR_API void weir_revent_clear(struct weir_revent *event) WEIR_NONNULL(1);
WEIR_API bool weir_revent_is_set(const struct weir_revent *event) WEIR_NONNULL(1);

/* Returns 0 if the event is set, or is set while waiting; or as above. */
WEIR_API int weir_revent_wait(struct weir_revent *event, struct weir_deadline deadline)
    WEIR_MUST_CHECK WEIR_NONNULL(1);

WEIR_END

#endif
