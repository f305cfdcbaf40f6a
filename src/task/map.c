/* SPDX-License-Identifier: MIT */
/* A map is a scope of runners.  Each takes the next item, makes sure that another runner
 * stands by if the limit allows one, and runs the function; so that there are never more
 * runners than items or than the limit, and a map over a million costs `limit` tasks. */
#include <weir/map.h>

#include <stdint.h>

#include <weir/mutex.h>
#include <weir/scope.h>

#include "task/sched.h"

/* Locking key: (m) under turn  (a) atomic  (c) constant */
struct map {
    int (*next)(void *ctx, void **ret_item); /* (c) */
    int (*fn)(void *ctx, void *item);        /* (c) */
    void *ctx;                               /* (c) */
    size_t limit;                            /* (c) */
    struct weir_scope *scope;                /* (c) */
    struct weir_mutex turn;                  /*     to take an item */
    size_t runners;                          /* (m) */
    bool ended;                              /* (m) no item is to be taken any more */
    int failure;                             /* (a) the first */
};

/* That a call was cancelled because the map was is not its failure. */
static void fail(struct map *map, int error)
{
    int none = 0;

    if (error != WEIR_ECANCELED || !task_is_struck(task_current()))
        atomic_cas(&map->failure, &none, error);
}

static int run_items(void *arg);

/* Returns 1 and an item, or 0 when this runner is to end. */
static int take(struct map *map, void **ret_item)
{
    if (weir_mutex_lock(&map->turn, WEIR_FOREVER) < 0)
        return 0; /* cancelled: whoever closes the scope knows why */

    int r = 0;
    if (!map->ended && atomic_get(&map->failure) == 0 && !task_is_struck(task_current()))
        r = map->next(map->ctx, ret_item);
    if (r < 0)
        fail(map, r);
    if (r <= 0)
        map->ended = true;
    else if (map->runners < map->limit && weir_scope_spawn(map->scope, run_items, map) == 0)
        map->runners++; /* without one, this runner will have to do */
    weir_mutex_unlock(&map->turn);
    return r > 0;
}

static int run_items(void *arg)
{
    struct map *map = arg;
    void *item;

    while (take(map, &item)) {
        int r = map->fn(map->ctx, item);

        if (r < 0)
            fail(map, r);
    }
    return 0; /* an error of the function is not one that cancels the others */
}

int weir_map_limit_next(int (*next)(void *ctx, void **ret_item), size_t limit,
                        int (*fn)(void *ctx, void *item), void *ctx, struct weir_deadline deadline)
{
    struct weir_scope scope;
    struct map map = {.next = next,
                      .fn = fn,
                      .ctx = ctx,
                      .limit = limit,
                      .scope = &scope,
                      .turn = WEIR_MUTEX_INIT,
                      .runners = 1};

    if (limit == 0)
        return WEIR_EINVAL;
    if (task_current() == NULL)
        return WEIR_ECONTEXT;
    weir_scope_open(&scope, deadline);
    int r = weir_scope_spawn(&scope, run_items, &map);
    if (r < 0)
        return r;
    r = weir_scope_close(&scope);
    return map.failure < 0 ? map.failure : r;
}

/* ---- over indices ------------------------------------------------------------ */

struct indices {
    size_t n, next;
    int (*fn)(void *ctx, size_t index);
    void *ctx;
};

static int next_index(void *ctx, void **ret_item)
{
    struct indices *indices = ctx;

    if (indices->next == indices->n)
        return 0;
    *ret_item = (void *)(uintptr_t)indices->next++;
    return 1;
}

static int with_index(void *ctx, void *item)
{
    struct indices *indices = ctx;

    return indices->fn(indices->ctx, (size_t)(uintptr_t)item);
}

int weir_map_limit(size_t n, size_t limit, int (*fn)(void *ctx, size_t index), void *ctx,
                   struct weir_deadline deadline)
{
    struct indices indices = {.n = n, .fn = fn, .ctx = ctx};

    if (limit == 0)
        return WEIR_EINVAL;
    if (n == 0)
        return 0;
    return weir_map_limit_next(next_index, limit, with_index, &indices, deadline);
}
