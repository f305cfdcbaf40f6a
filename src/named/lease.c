/* SPDX-License-Identifier: MIT */
/* What a lease is to its holder, whatever store it is kept in. */
#include "named/lease.h"

#include <string.h>

#include <weir/task.h>

#include "named/observe.h"
#include "named/owner.h"
#include "named/store.h"
#include "named/why.h"

static const unsigned ALL_FLAGS =
    WEIR_LEASE_RENEW | WEIR_LEASE_CANCEL_HOLDER | WEIR_LEASE_RESIZE | WEIR_LEASE_DETACHED;

/* ---- what is asked for ------------------------------------------------------------ */

static int check_ttl(int64_t ttl_ns)
{
    if (ttl_ns < 0 || ttl_ns > INT64_MAX / 4)
        return why(WEIR_EINVAL, "a TTL is not negative, and at most 73 years");
    return 0;
}

static int check_flags(const struct weir_lease_request *request)
{
    unsigned flags = request->flags;

    if (flags & ~ALL_FLAGS)
        return why(WEIR_EINVAL, "unknown flags 0x%x in a lease request", flags & ~ALL_FLAGS);
    if ((flags & (WEIR_LEASE_RENEW | WEIR_LEASE_DETACHED)) && request->ttl_ns == 0)
        return why(WEIR_EINVAL, "a lease that is renewed or detached needs a TTL");
    if ((flags & WEIR_LEASE_DETACHED) &&
        ((flags & (WEIR_LEASE_RENEW | WEIR_LEASE_CANCEL_HOLDER)) || request->on_lost))
        return why(WEIR_EINVAL, "a detached lease has no holder to be renewed for or told");
    if ((flags & WEIR_LEASE_CANCEL_HOLDER) && !owner_is_task())
        return why(WEIR_EINVAL, "only a task can be cancelled with its lease");
    return 0;
}

static int check_request(const struct weir_lease_request *request)
{
    if (request->limit > WEIR_LIMIT_MAX || request->weight > WEIR_LIMIT_MAX)
        return why(WEIR_EINVAL, "a limit or weight is at most 2^53");
    if (request->limit && request->weight > request->limit)
        return why(WEIR_EINVAL, "a weight of %llu can never fit a limit of %llu",
                   (unsigned long long)request->weight, (unsigned long long)request->limit);
    int r = check_ttl(request->ttl_ns);
    return r < 0 ? r : check_flags(request);
}

static int make_ask(const struct weir_lease_request *request, struct ask *ask)
{
    int r = check_request(request);

    if (r < 0)
        return r;
    *ask = (struct ask){
        .limit = request->limit,
        .weight = request->weight ? request->weight : 1,
        .ttl_ns = request->ttl_ns,
        .label = request->label,
        .resize = request->flags & WEIR_LEASE_RESIZE,
        .flags = (request->flags & WEIR_LEASE_DETACHED) ? ENTRY_DETACHED : 0,
    };
    if (request->on_lost || (request->flags & WEIR_LEASE_CANCEL_HOLDER))
        ask->flags |= ENTRY_BELL;
    if (request->id)
        return check_id(request->id, ask->id);
    id_make(ask->id);
    return 0;
}

/* ---- acquire ------------------------------------------------------------------------- */

static void tell_acquired(const struct weir_lease_request *request, const struct grant *grant,
                          const struct weir_lease *lease)
{
    if (!observed())
        return;
    observe(&(struct weir_notice){
        .what = WEIR_NOTICE_ACQUIRED,
        .name = request->name,
        .id = lease->id,
        .label = request->label ? request->label : "",
        .task = "",
        .limit = grant->limit,
        .token = lease->token,
        .waited_ns = lease->waited_ns,
        .slot = lease->slot,
    });
}

/* Everything that can fail is done before the lease is had. */
static int prepare(struct weir_store *store, const struct weir_lease_request *request,
                   struct tended **ret)
{
    bool tended = tended_is_needed(request);
    int r = 0;

    *ret = NULL;
    if ((request->ttl_ns && store->backend->needs_keeper) || request->on_lost ||
        (request->flags & (WEIR_LEASE_RENEW | WEIR_LEASE_CANCEL_HOLDER)))
        r = keeper_start(&store->keeper);
    if (r == 0 && tended)
        r = tended_prepare(store, request, ret);
    return r;
}

int weir_lease_acquire(struct weir_store *store, const struct weir_lease_request *request,
                       struct weir_deadline deadline, struct weir_lease *ret_lease)
{
    struct backend *b = store->backend;
    struct tended *tended;
    struct name_key key;
    struct grant grant;
    struct ask ask;
    int r = store_enter(store);

    if (r == 0)
        r = name_key(request->name, &key);
    if (r == 0)
        r = make_ask(request, &ask);
    if (r == 0)
        r = prepare(store, request, &tended);
    if (r != 0)
        return r;

    r = b->ops->acquire(b, &key, &ask, deadline, &grant);
    if (tended && (r < 0 || grant.joined))
        tended_discard(store, tended);
    if (request->ret_limit && (r == 0 || r == WEIR_EMISMATCH))
        *request->ret_limit = grant.limit;
    if (r < 0)
        return r;
    *ret_lease = (struct weir_lease){
        .slot = grant.slot,
        .token = grant.token,
        .expires_at_ns = grant.expires_at_ns,
        .waited_ns = grant.waited_ns,
    };
    id_print(ask.id, ret_lease->id);
    if (tended && !grant.joined)
        tended_begin(store, tended, ret_lease, grant.limit);
    tell_acquired(request, &grant, ret_lease);
    return 0;
}

/* ---- renew and release ------------------------------------------------------------------ */

int weir_lease_renew(struct weir_store *store, const char *name, struct weir_lease *lease,
                     int64_t ttl_ns)
{
    struct backend *b = store->backend;
    struct name_key key;
    uint8_t id[ID_BYTES];
    int64_t expires_at_ns;
    int r = store_enter(store);

    if (r == 0)
        r = name_key(name, &key);
    if (r == 0)
        r = check_id(lease->id, id);
    if (r == 0)
        r = check_ttl(ttl_ns);
    if (r == 0 && ttl_ns && b->needs_keeper)
        r = keeper_start(&store->keeper);
    if (r == 0 && tended_is_lost(store, name, id))
        r = WEIR_ENOTHELD;
    if (r == 0)
        r = b->ops->renew(b, &key, id, ttl_ns, &expires_at_ns);
    if (r != 0)
        return r;
    lease->expires_at_ns = expires_at_ns;
    tended_renewed(store, name, lease, ttl_ns);
    return 0;
}

int weir_lease_release(struct weir_store *store, const char *name, const char *id_text)
{
    struct backend *b = store->backend;
    struct name_key key;
    struct item released;
    uint8_t id[ID_BYTES];
    int r = store_enter(store);

    if (r == 0)
        r = name_key(name, &key);
    if (r == 0)
        r = check_id(id_text, id);
    if (r < 0)
        return r;
    tended_end(store, name, id);
    r = b->ops->release(b, &key, id, &released);
    if (r == 0 && observed())
        observe_item(name, &released, "");
    return r;
}

void lease_abandon(struct weir_store *store, const char *name, const uint8_t id[ID_BYTES])
{
    struct backend *b = store->backend;
    struct name_key key;
    struct item released;

    tended_end(store, name, id);
    if (store_enter(store) < 0 || name_key(name, &key) < 0 ||
        b->ops->release(b, &key, id, &released) < 0)
        return;
    released.what = WEIR_NOTICE_ABANDONED;
    observe_item(name, &released, weir_task_name());
}

int weir_lease_lost_fd(struct weir_store *store, const char *name, const struct weir_lease *lease)
{
    struct name_key key;
    int r = store_enter(store);

    if (r == 0)
        r = name_key(name, &key);
    return r < 0 ? r : tended_lost_fd(store, &key, lease);
}
