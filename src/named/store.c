/* SPDX-License-Identifier: MIT */
#include "named/store.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/fork.h"
#include "named/why.h"

/* ---- checks ------------------------------------------------------------------------ */

int check_id(const char *text, uint8_t id[ID_BYTES])
{
    if (!id_parse(text, id))
        return why(WEIR_EINVAL, "a lease's id is %d hexadecimal digits", WEIR_ID_LENGTH);
    return 0;
}

int store_enter(const struct weir_store *store)
{
    why_clear();
    if (store->forks != fork_count())
        return why(WEIR_ECONTEXT, "the store was opened before a fork: open it again");
    return 0;
}

/* ---- open and close -------------------------------------------------------------------- */

static int open_backend(const char *uri, const struct weir_store_options *options,
                        struct backend **ret)
{
    if (strcmp(uri, "mem:") == 0)
        return mem_open(options, ret);
    if (strcmp(uri, "shm:") == 0)
        return shm_open_store(NULL, options, ret);
    if (strncmp(uri, "shm:/", 5) == 0)
        return shm_open_store(uri + 4, options, ret);
    return why(WEIR_EINVAL, "\"%.100s\" is no store: mem:, shm: or shm:/directory", uri);
}

int weir_store_open(const char *uri, const struct weir_store_options *options,
                    struct weir_store **ret_store)
{
    why_clear();
    fork_watch();
    if (options && options->forget_after_ns < 0)
        return why(WEIR_EINVAL, "names cannot be forgotten before they are unused");
    struct weir_store *store = mem_alloc(sizeof *store);
    if (store == NULL)
        return WEIR_ENOMEM;
    int r = open_backend(uri, options, &store->backend);
    if (r < 0) {
        mem_free(store);
        return r;
    }
    store->forks = fork_count();
    store->keeper.store = store;
    store->backend->keeper = &store->keeper;
    *ret_store = store;
    return 0;
}

int weir_store_fd(struct weir_store *store)
{
    struct backend *b = store->backend;
    int r = store_enter(store);

    if (r < 0)
        return r;
    return b->ops->fd ? b->ops->fd(b) : why(WEIR_EINVAL, "leases of this store have no descriptor");
}

static struct weir_store *default_store; /* (a) */

void weir_store_close(struct weir_store *store)
{
    if (store == NULL || store == atomic_get(&default_store))
        return;
    bool forked = store_enter(store) < 0;
    if (!forked && keeper_is_self(&store->keeper))
        BUG("a store was closed inside on_lost or by an observer on its keeper's thread");
    if (!forked)
        keeper_stop(&store->keeper); /* in a forked child there is no such thread */
    tended_close(store, forked);
    store->backend->ops->close(store->backend, forked);
    mem_free(store);
}

/* In the child of a fork another one: the parent's locks may be held by nobody. */
struct weir_store *weir_store_default(void)
{
    struct weir_store *store = atomic_get(&default_store), *mine;

    if (store && store->forks == fork_count())
        return store;
    if (weir_store_open("mem:", NULL, &mine) < 0)
        return NULL;
    if (atomic_cas(&default_store, &store, mine))
        return mine;
    weir_store_close(mine); /* another thread was first */
    return store;
}

/* ---- looking and mending ------------------------------------------------------------------ */

int weir_store_visit(struct weir_store *store,
                     int (*each)(const struct weir_name_stats *stats, void *arg), void *arg)
{
    struct backend *b = store->backend;
    int r = store_enter(store);

    return r < 0 ? r : b->ops->visit(b, each, arg);
}

int weir_store_resize(struct weir_store *store, const char *name, uint64_t limit)
{
    struct backend *b = store->backend;
    struct name_key key;
    int r = store_enter(store);

    if (r == 0)
        r = name_key(name, &key);
    if (r == 0 && (limit == 0 || limit > WEIR_LIMIT_MAX))
        r = why(WEIR_EINVAL, "a limit is 1 to 2^53");
    return r < 0 ? r : b->ops->resize(b, &key, limit);
}

int weir_store_evict(struct weir_store *store, const char *name, const char *id_text)
{
    struct backend *b = store->backend;
    struct name_key key;
    uint8_t id[ID_BYTES];
    int r = store_enter(store);

    if (r == 0)
        r = name_key(name, &key);
    if (r == 0)
        r = check_id(id_text, id);
    return r < 0 ? r : b->ops->evict(b, &key, id);
}
