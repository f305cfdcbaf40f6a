/* SPDX-License-Identifier: MIT */
/* weir/map.h - a function over many items, so many at a time.
 *
 *     static int fetch(void *ctx, size_t i) { ... pages[i] = ...; return 0; }
 *
 *     r = weir_map_limit(n, 8, fetch, pages, weir_within(60 * WEIR_S));
 *
 * At most `limit` calls run at once, each as a task.  A negative result is an error: no
 * new item is started after the first one, those that run finish, and it is returned.
 * If the deadline passes or the caller is cancelled, no new item is started, those that
 * run are cancelled, and WEIR_ETIMEDOUT or WEIR_ECANCELED is returned.  Whatever happens,
 * nothing that was started still runs when it returns.
 *
 * Returns 0; or as above; or WEIR_EINVAL for a limit of 0, WEIR_ENOMEM or WEIR_ENOSPC if
 * not even one task could be had, WEIR_ECONTEXT outside a task.  weir_map_limit over 0 items
 * is 0 anywhere, whatever the deadline.
 */
#ifndef WEIR_MAP_H
#define WEIR_MAP_H

#include <stddef.h>

#include <weir/error.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

/* fn(ctx, 0) to fn(ctx, n - 1), begun in that order. */
WEIR_API int weir_map_limit(size_t n, size_t limit, int (*fn)(void *ctx, size_t index), void *ctx,
                            struct weir_deadline deadline) WEIR_MUST_CHECK WEIR_NONNULL(3);

/* The same over what `next` yields: it returns 1 and an item, 0 at the end, or an error,
 * which ends the map.  It is called by one task at a time, and may wait. */
WEIR_API int weir_map_limit_next(int (*next)(void *ctx, void **ret_item), size_t limit,
                                 int (*fn)(void *ctx, void *item), void *ctx,
                                 struct weir_deadline deadline) WEIR_MUST_CHECK WEIR_NONNULL(1, 3);

WEIR_END

#endif
