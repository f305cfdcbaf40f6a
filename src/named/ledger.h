/* SPDX-License-Identifier: MIT */
/* ledger - who holds a named semaphore, and who waits for it.
 *
 * One state machine for every store whose memory we own: `mem:` keeps a ledger on the heap
 * under a lock, `shm:` in a file under a lock that survives its owner.  A ledger knows
 * neither locks nor sleeping nor names; whoever calls it holds the lock, and afterwards
 * delivers the news.
 *
 * A lease is an entry.  Its word says what it is, and one store of that word is what
 * makes every change happen:
 *
 *                ask                  ask, with others waiting or no room
 *      FREE ------------> HELD       FREE ------------> WAITING <-----------.
 *                         ^  |                           |   |              | not confirmed
 *                 confirm |  | release, expire, evict    |   | serve        | within a second
 *                         |  v                           |   v              |
 *                         |  FREE                        |  GRANTED --------'
 *                         '------------------------------|---'
 *                                                        | evict, resize
 *      FREE <-- leave: deadline or cancel ---------------+----> ENDED --> FREE, by the waiter
 *
 * Invariants
 *   1. Authoritative are: an entry's word, and what its state gives meaning to, written
 *      before the word is; the limit; the last ticket and token, which only grow.
 *      Everything marked (d) is derived, and ledger_repair() derives it anew: so whoever
 *      dies in here, at whatever instruction, has either made his change or not.
 *   2. A word carries a generation that grows when the entry is freed.  Whoever remembers
 *      an index and a word can tell whether they still mean the same lease.
 *   3. Served is the waiter with the lowest ticket, or nobody.
 *   4. in_use is the sum of the weights that are GRANTED or HELD, and serving keeps it
 *      within the limit.
 */
#ifndef WEIR_NAMED_LEDGER_H
#define WEIR_NAMED_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/observe.h>
#include <weir/store.h>

#include "base/id.h"

enum { NO_ENTRY = 0 }; /* entries are numbered from 1, so that zeroed memory is an empty ledger */

enum entry_state { FREE, WAITING, GRANTED, HELD, ENDED };
enum { STATE_MASK = 7, STATE_BITS = 3 };

enum entry_flags {
    ENTRY_DETACHED = 1, /* outlives its owner                              */
    ENTRY_BELL = 2,     /* its owner's keeper wants to know of any change  */
    ENTRY_CALL = 4,     /* while it waits, the keeper watches for it       */
};

/* Locking key: (w) given meaning by the word  (d) derived  (a) atomic: read without the lock */
struct entry {
    uint32_t word;       /* (a) generation, and enum entry_state                     */
    uint32_t client;     /* (w) who asked: the store's business                      */
    uint32_t life;       /* (w) of the client                                        */
    uint32_t slot;       /* (w) GRANTED, HELD                                        */
    uint64_t weight;     /* (w)                                                      */
    uint64_t ticket;     /* (w) WAITING: place in the queue                          */
    uint64_t token;      /* (w) GRANTED, HELD                                        */
    int64_t ttl_ns;      /* (w) 0: none                                              */
    int64_t deadline_ns; /* (w) GRANTED: to be confirmed, HELD: to be renewed        */
    int64_t since_ns;    /* (w) when it got into this state                          */
    int64_t waited_ns;   /* (w) GRANTED, HELD                                        */
    uint8_t id[ID_BYTES];
    int32_t pid;             /* (w) for people                                      */
    int16_t reason;          /* (w) ENDED: what the waiter gets                     */
    uint16_t flags;          /* (w) enum entry_flags                                */
    uint32_t asleep;         /* (a) somebody may sleep on the word                  */
    uint32_t next, prev;     /* (d) in the chain of its state                       */
    uint32_t next_in_bucket; /* (d)                                                 */
    char label[WEIR_LABEL_MAX + 1];
};

struct chain {
    uint32_t first, last, count;
};

struct ledger_counts {
    uint64_t granted, released, timed_out, cancelled, expired, recovered, evicted, lapsed;
    int64_t longest_wait_ns;
};

struct ledger_head {
    uint64_t limit;
    uint64_t last_token, last_ticket;
    uint32_t capacity;        /* entries there is room for                                        */
    uint32_t fresh;           /* entries ever used; only grows                                    */
    uint32_t gone;            /* (a) the name was forgotten, and this ledger is nobody's any more */
    uint32_t shrunk;          /* some may wait for more than the limit                            */
    uint32_t free;            /* (d) first of those that were used and are FREE                   */
    struct chain queue;       /* (d) WAITING, by ticket                                          */
    struct chain held;        /* (d) GRANTED and HELD, by token                                  */
    uint64_t in_use;          /* (d)                                                      */
    int64_t next_deadline_ns; /* (d) no deadline is earlier                               */
    uint32_t full_slots;      /* (d) words of the slot map before this one are full       */
    int64_t used_at_ns;       /* for forgetting                                           */
    struct ledger_counts counts; /* of no consequence: the last one may be lost in a crash */
};

typedef struct ledger ledger;

struct ledger_ops {
    /* Make room for more entries.  May move everything; 0 or an error. */
    int (*grow)(ledger *l);
    /* Has the one who asked died?  NULL: nobody ever does. */
    bool (*is_dead)(const ledger *l, const struct entry *e);
};

/* Where the parts of a ledger are, as seen from this process. */
struct ledger {
    struct ledger_head *head;
    struct entry *entries; /* entries[0] is not used                     */
    uint32_t *buckets;     /* (d) by id: the first entry                 */
    uint32_t bucket_mask;
    uint64_t *slots; /* (d) a bit for each, set when taken         */
    const struct ledger_ops *ops;
};

/* ---- news: what is to be done once the lock is dropped --------------------------- */

/* Somebody whose entry changed. */
struct told {
    uint32_t index, client, life;
    bool bell; /* it is watched by its owner's keeper, as a lease or while it waits     */
    bool next; /* nothing happened to it but that it is the next in line now            */
};

/* Something the observer may want to hear of. */
struct item {
    enum weir_notice_kind what;
    uint8_t id[ID_BYTES];
    uint32_t slot;
    uint64_t token, limit;
    char label[WEIR_LABEL_MAX + 1];
};

enum { NEWS_TOLD = 16, NEWS_ITEMS = 8 };

/* Of bounded size, so that the lock is held for a bounded time: what serves or expires
 * stops when the news is full.  There may be more then: deliver it, and tend again. */
struct news {
    uint32_t tolds, items;
    struct told told[NEWS_TOLD];
    struct item item[NEWS_ITEMS];
};

static inline void news_clear(struct news *news)
{
    news->tolds = news->items = 0;
}

/* A step tells at most two: who was served, and who is next in line now. */
static inline bool news_is_full(const struct news *news)
{
    return news->tolds + 2 > NEWS_TOLD || news->items == NEWS_ITEMS;
}

/* ---- asking ------------------------------------------------------------------------ */

struct ask {
    uint8_t id[ID_BYTES];
    uint64_t limit, weight;
    int64_t ttl_ns;
    const char *label;
    uint32_t client, life;
    int32_t pid;
    uint16_t flags; /* enum entry_flags */
    bool resize, may_wait;
};

enum ask_result {
    ASK_QUEUED = 0,
    ASK_HELD = 1,   /* had at once                                  */
    ASK_JOINED = 2, /* the id waits or holds already: nothing taken */
};

/* Every limit and weight has been checked to be at most WEIR_LIMIT_MAX, and the weight to
 * be at least 1.  Returns an enum ask_result and the entry's index; or WEIR_EINVAL (the
 * weight exceeds the limit), WEIR_EMISMATCH, WEIR_ETIMEDOUT (it may not wait), or what
 * grow said. */
int ledger_ask(ledger *l, const struct ask *ask, int64_t now_ns, uint32_t *ret_index,
               struct news *news);

/* ---- the holder ---------------------------------------------------------------------- */

/* A waiter was granted its lease and knows it: the TTL starts.  False if it lapsed. */
bool ledger_confirm(ledger *l, uint32_t index, int64_t now_ns);

/* The index of an entry that waits for, was granted or holds the lease, or NO_ENTRY. */
uint32_t ledger_find(const ledger *l, const uint8_t id[ID_BYTES]);

/* 0, or WEIR_ENOTHELD.  *ret: what was released. */
int ledger_release(ledger *l, const uint8_t id[ID_BYTES], int64_t now_ns, struct item *ret,
                   struct news *news);
/* Or WEIR_EINVAL: a detached one must end. */
int ledger_renew(ledger *l, const uint8_t id[ID_BYTES], int64_t ttl_ns, int64_t now_ns,
                 struct news *news);

/* Whoever holds or waits: out.  0, or WEIR_ENOTHELD. */
int ledger_evict(ledger *l, const uint8_t id[ID_BYTES], int64_t now_ns, struct news *news);

/* A waiter that was not served leaves: WEIR_ETIMEDOUT or WEIR_ECANCELED. */
void ledger_leave(ledger *l, uint32_t index, int why, int64_t now_ns, struct news *news);

/* A waiter has read why its wait was ended. */
void ledger_collect(ledger *l, uint32_t index);

/* ---- the name -------------------------------------------------------------------------- */

void ledger_resize(ledger *l, uint64_t limit, int64_t now_ns, struct news *news);

/* Take back what has expired and what the dead held, and serve the queue. */
void ledger_tend(ledger *l, int64_t now_ns, struct news *news);

/* Give back every lease of one client that is not detached, when it closes. */
void ledger_drop_client(ledger *l, uint32_t client, int64_t now_ns, struct news *news);

static inline bool ledger_is_idle(const ledger *l)
{
    return l->head->held.count == 0 && l->head->queue.count == 0;
}

/* ---- repair (ledger_repair.c) ------------------------------------------------------------ */

/* Derive what is derived. */
void ledger_repair(ledger *l);

/* NULL, or which invariant does not hold. */
const char *ledger_fault(const ledger *l);

/* ---- entries, for those who wait on them --------------------------------------------------- */

static inline enum entry_state word_state(uint32_t word)
{
    return (enum entry_state)(word & STATE_MASK);
}

static inline bool same_generation(uint32_t a, uint32_t b)
{
    return a >> STATE_BITS == b >> STATE_BITS;
}

/* When the holder stops counting on it, a tenth of the TTL before it is taken back. */
static inline int64_t entry_expires_at_ns(const struct entry *e)
{
    return e->ttl_ns ? e->deadline_ns - e->ttl_ns / 10 : INT64_MAX;
}

#endif
