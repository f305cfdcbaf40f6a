/* SPDX-License-Identifier: MIT */
/* weir/store.h - semaphores by name, and leases on them.
 *
 *     struct weir_store *store;
 *     struct weir_lease lease;
 *
 *     weir_store_open("shm:", NULL, &store);
 *     struct weir_lease_request ask = {.name = "database", .limit = 8};
 *     r = weir_lease_acquire(store, &ask, weir_within(WEIR_S), &lease);
 *     ...
 *     weir_lease_release(store, "database", lease.id);
 *
 * A store holds named semaphores: the same name in the same store is the same semaphore,
 * whichever handle, task, thread or process asks.
 *
 *     mem:      this process; each one that is opened is a store of its own
 *     shm:      every process of this user on this machine; see weir-store(7)
 *     shm:/dir  the same, in a directory of yours
 *
 * Order.  Everybody who waits for a name stands in one queue, first come, first served.
 *
 * A lease is plain data: an id of 32 hexadecimal digits; a slot, the lowest that was free
 * from 0, shared with no other holder; and a token that grows with every grant of the
 * name, even after the name was forgotten and made again, so that whatever the lease
 * guards can refuse a holder that is late.
 *
 * Ownership.  A lease belongs to the process and, if there is one, the task that acquired
 * it, and ends with them, unless it was acquired WEIR_LEASE_DETACHED.  With `shm:` the
 * death of the process, by whatever means, gives it to the next in line at once.
 *
 * TTL.  A lease with one is taken back when it is neither renewed nor released in time.
 * The holder stops counting on it a tenth of the TTL earlier (`expires_at_ns`): then it is
 * told, if it asked to be.  WEIR_LEASE_RENEW renews by itself at a third of the TTL.
 *
 * Threads.  Every call may be made from any thread or task at any time.  A store starts a
 * thread of its own, its keeper, when there is first something to be done by itself: to
 * renew, to tell of a loss, to wait on behalf of tasks, or for `mem:` to take back.
 *
 * fork.  In the child every call on a store is WEIR_ECONTEXT but weir_store_close, which
 * gives back only the child's memory; open it again.  The parent's leases stay its own.
 * exec.  Leases end, unless their descriptor was left open across it: weir_store_fd.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/time.h>
#include <weir/visibility.h>

WEIR_BEGIN

struct weir_store;

enum {
    WEIR_NAME_MAX = 200, /* bytes in a name, at least 1 */
    WEIR_LABEL_MAX = 79, /* bytes in a label; longer ones are cut */
    WEIR_ID_LENGTH = 32, /* hexadecimal digits */
};

#define WEIR_LIMIT_MAX (UINT64_C(1) << 53) /* the largest limit, and weight */

/* ---- stores ------------------------------------------------------------------ */

/* Zero means default. */
struct weir_store_options {
    int64_t forget_after_ns; /* a name that nobody holds, waits for or uses; default 60 s */
};

/* Returns 0; WEIR_EINVAL for a URI that says nothing to us; WEIR_ENOMEM; or why the store
 * cannot be used (see weir_store_why): WEIR_EPERM for what belongs to somebody else,
 * WEIR_EPROTO for what is not a store of this version, WEIR_ENOSPC, or what the kernel
 * said. */
WEIR_API int weir_store_open(const char *uri, const struct weir_store_options *options,
                             struct weir_store **ret_store) WEIR_MUST_CHECK WEIR_NONNULL(1, 3);

/* Give back every lease that was acquired through it, detached ones excepted, and close.
 * No other call may be running on it.  NULL and the default store are left alone. */
WEIR_API void weir_store_close(struct weir_store *store);

/* The descriptor that the store's leases live by.  It is closed on exec; where it is left
 * open instead, in a child or across an exec, the leases are held until it is closed there,
 * too, whoever has died meanwhile.  Returns it, or WEIR_EINVAL for a store that has none. */
WEIR_API int weir_store_fd(struct weir_store *store) WEIR_NONNULL(1);

/* "mem:", made when first asked for; NULL when there is no memory for it. */
WEIR_API struct weir_store *weir_store_default(void);

/* The last failure of a store call on this thread, as a sentence for people; "" if there
 * was nothing to add to weir_strerror.  Good until the next store call of the thread. */
WEIR_API const char *weir_store_why(void);

/* ---- leases ------------------------------------------------------------------ */

struct weir_lease {
    char id[WEIR_ID_LENGTH + 1];
    uint32_t slot;
    uint64_t token;
    int64_t expires_at_ns; /* monotonic: do not count on it from then on; INT64_MAX: never.
                            * Of one that renews by itself, when it would end if it did not */
    int64_t waited_ns;
};

/* Called on the keeper's thread, once, when the holder can no longer count on the lease:
 * it was not renewed in time, or was taken away.  It may use the store, but not wait, and
 * not close it.  From then on the lease can be released, if it is still there, and not
 * renewed. */
typedef void weir_on_lost(const char *name, const struct weir_lease *lease, void *arg);

enum {
    WEIR_LEASE_RENEW = 1,         /* renew by itself; needs a TTL                           */
    WEIR_LEASE_CANCEL_HOLDER = 2, /* when lost, cancel the task that acquired it            */
    WEIR_LEASE_RESIZE = 4,        /* give the name this limit, whatever it was              */
    WEIR_LEASE_DETACHED = 8,      /* belongs to nobody; needs a TTL                         */
};

/* What is asked for.  Zero means default; only the name is needed.  All text is copied. */
struct weir_lease_request {
    const char *name;
    uint64_t limit;    /* of the name; 0: what it is, and 1 for a new one               */
    uint64_t weight;   /* permits that this lease takes; default 1                      */
    int64_t ttl_ns;    /* 0: for as long as its owner lives                             */
    unsigned flags;    /* WEIR_LEASE_...                                                */
    const char *id;    /* chosen by the caller: asking again joins, and takes no more   */
    const char *label; /* shown to people                                               */
    weir_on_lost *on_lost;
    void *arg;           /* its third argument                                          */
    uint64_t *ret_limit; /* unless NULL: the limit that the name has; also on WEIR_EMISMATCH */
};

/* Take a lease, waiting for it until `deadline`.
 *
 * Returns 0; or, holding nothing:
 *   WEIR_EINVAL     name, limit, weight (0 to the limit), ttl (0 to 73 years), flags or id
 *                   cannot be; only a task can be cancelled with its lease, and a detached
 *                   one has no holder to be renewed for or told
 *   WEIR_EMISMATCH  the name is in use with another limit
 *   WEIR_ETIMEDOUT  the deadline passed first
 *   WEIR_ECANCELED  the calling task was cancelled, or the wait was evicted
 *   WEIR_ECONTEXT   it would have to wait where waiting is not allowed; after a fork
 *   WEIR_EBUSY      `shm:` a process that is stopped is in the way; weir_store_why says which
 *   WEIR_ENOMEM, WEIR_ENOSPC (too many for one name, or no room for the file), or what
 *   weir_store_open can give, since a name is opened when it is first used. */
WEIR_API int weir_lease_acquire(struct weir_store *store, const struct weir_lease_request *request,
                                struct weir_deadline deadline, struct weir_lease *ret_lease)
    WEIR_MUST_CHECK WEIR_NONNULL(1, 2, 4);

/* Let the lease end ttl_ns from now (0: never, but for a detached one) and write that into
 * *lease; also from then on, if it renews by itself.  Never brings back one that is lost.
 * Returns 0, WEIR_ENOTHELD, or WEIR_EINVAL. */
WEIR_API int weir_lease_renew(struct weir_store *store, const char *name, struct weir_lease *lease,
                              int64_t ttl_ns) WEIR_NONNULL(1, 2, 3);

/* Give it back, from anywhere; to a holder that did not do so itself, it is lost.  Returns 0, WEIR_EINVAL, or WEIR_ENOTHELD: released before,
 * expired, or never held.  That frees nobody else's slot. */
WEIR_API int weir_lease_release(struct weir_store *store, const char *name, const char *id)
    WEIR_NONNULL(1, 2, 3);

/* A descriptor that becomes readable when the lease is lost.  It is the store's: do not
 * close it; it is good until the lease is released through this store.  Returns it,
 * WEIR_EINVAL, WEIR_ENOTHELD, WEIR_ENOMEM, or what the kernel said. */
WEIR_API int weir_lease_lost_fd(struct weir_store *store, const char *name,
                                const struct weir_lease *lease) WEIR_NONNULL(1, 2, 3);

/* ---- looking and mending ------------------------------------------------------- */

/* One lease, or one who waits for one. */
struct weir_lease_info {
    char id[WEIR_ID_LENGTH + 1];
    char label[WEIR_LABEL_MAX + 1];
    int pid;        /* of its owner, in the owner's pid namespace; 0 when detached */
    uint32_t slot;  /* of a lease                                                  */
    uint64_t token; /* of a lease                                                  */
    uint64_t weight;
    int64_t since_ns;      /* monotonic: held or waiting since then                       */
    int64_t expires_at_ns; /* when a lease will be taken back; INT64_MAX: never           */
};

/* Pointers are good until `each` returns. */
struct weir_name_stats {
    const char *name;
    uint64_t limit, held;    /* permits; held may exceed the limit after a shrink   */
    unsigned percent;        /* held of limit                                       */
    int64_t longest_wait_ns; /* of all that were granted                            */
    uint64_t granted, released, timed_out, cancelled, expired, recovered, evicted;
    uint64_t lapsed; /* grants not taken up within a second, and queued again */
    size_t leases, waiters;
    const struct weir_lease_info *lease;  /* oldest first */
    const struct weir_lease_info *waiter; /* next in line first */
};

/* Call each(stats, arg) for every name, in no order, with no lock held.  A result other
 * than 0 stops, and is returned; else 0, or an error. */
WEIR_API int weir_store_visit(struct weir_store *store,
                              int (*each)(const struct weir_name_stats *stats, void *arg),
                              void *arg) WEIR_NONNULL(1, 2);

/* Change a name's limit.  Growing serves those who wait; shrinking revokes nothing, and
 * who waits for more than the new limit gets WEIR_EINVAL.  A new name is made.
 * Returns 0, WEIR_EINVAL, or as weir_lease_acquire. */
WEIR_API int weir_store_resize(struct weir_store *store, const char *name, uint64_t limit)
    WEIR_NONNULL(1, 2);

/* Take a lease away from whoever holds it, or send a waiter away with WEIR_ECANCELED.
 * Returns 0, WEIR_EINVAL, or WEIR_ENOTHELD. */
WEIR_API int weir_store_evict(struct weir_store *store, const char *name, const char *id)
    WEIR_NONNULL(1, 2, 3);

/* ---- WEIR_SCOPED_LEASE: a lease for the length of a block ------------------------ */

struct weir_scoped_lease_ {
    struct weir_store *store;
    const char *name;
    struct weir_lease lease;
    int entered;
};

static inline struct weir_scoped_lease_ weir_scoped_begin_(struct weir_store *store,
                                                           const struct weir_lease_request *request)
{
    struct weir_scoped_lease_ scope = {store, request->name, {{0}, 0, 0, 0, 0}, 0};

    if (weir_lease_acquire(store, request, WEIR_FOREVER, &scope.lease) < 0)
        scope.store = 0;
    return scope;
}

static inline void weir_scoped_end_(struct weir_scoped_lease_ *scope)
{
    if (scope->store)
        weir_lease_release(scope->store, scope->name, scope->lease.id);
}

/* Run the block that follows with a lease, a const struct weir_lease * by the name `var`,
 * and give it back however the block is left: at its end, by break, return or goto.
 *
 *     WEIR_SCOPED_LEASE(lease, store, &ask) {
 *         write_row(lease->token);
 *     }
 *
 * It waits for ever.  When the lease cannot be had the block is not run; where that
 * matters, call weir_lease_acquire.  The request's name must stay where it is. */
#define WEIR_SCOPED_LEASE(var, from, request)                                                \
    for (struct weir_scoped_lease_ var##_scope_                                              \
         __attribute__((cleanup(weir_scoped_end_))) = weir_scoped_begin_((from), (request)); \
         var##_scope_.store && !var##_scope_.entered; var##_scope_.entered = 1)              \
        for (const struct weir_lease *var = &var##_scope_.lease; var; var = 0)

WEIR_END

#endif
