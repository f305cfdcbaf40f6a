/* SPDX-License-Identifier: MIT */
/* What a store is, as a table.  Each STORE_TEST in this directory is a row: a sentence
 * that holds of every store, and how that is seen.  A backend is a column, one file of its
 * own here; the program named_conformance_BACKEND_test is all rows down that column.
 *
 *     STORE_TEST(release_frees_the_slot)
 *     {
 *         struct weir_lease lease = take(w, ask("database", 1));
 *         ...
 *     }
 *
 * A row is given a world `w`: a store that was just opened, empty, and those who ask it for
 * leases.  When the row has returned the world ends: tasks are cancelled, threads joined,
 * the store closed, and then no thread and no other descriptor may be left.
 *
 * Rows may wait for something to expire.  None may count on something that has not expired
 * yet, unless its TTL is longer than the test's time limit: LASTING_TTL, or `ask`'s own. */
#ifndef WEIR_TESTS_NAMED_WORLD_H
#define WEIR_TESTS_NAMED_WORLD_H

#include <weir/event.h>
#include <weir/observe.h>
#include <weir/op.h>
#include <weir/store.h>
#include <weir/task.h>

#include <string.h>

#include "harness/test.h"

struct world;

/* ---- the column ------------------------------------------------------------------ */

struct backend {
    void (*begin)(struct world *w); /* fill in the URI of a store that is empty */
    void (*end)(struct world *w);   /* and leave nothing of it behind            */
    int64_t brief_ttl_ns;           /* soon over, and not too short for the store */
    int64_t usual_ttl_ns;           /* of a lease that is to last; 0 where there need be none */
    int kept_descriptors;           /* that a process has for good once it has opened one */
};

extern const struct backend backend;

#define BRIEF_TTL   (backend.brief_ttl_ns)
#define LASTING_TTL (3600 * WEIR_S)

/* ---- the world --------------------------------------------------------------------- */

enum { NOT_YET = 1000000, ASKERS = 64 };

/* One who asks for a lease: a thread, which ends with the answer; or a task, which stays
 * until it is told to leave or is cancelled, since its lease ends with it. */
struct asker {
    struct weir_store *store;
    struct weir_lease_request request;
    struct weir_deadline deadline;
    struct weir_lease lease;
    struct weir_task task;
    struct weir_event leave;
    int result; /* NOT_YET until it has its answer; see answer_of */
    int after;  /* what a task's wait for `leave` returned; NOT_YET until then */
};

struct world {
    char uri[200];
    struct weir_store *store;
    struct weir_runtime *runtime; /* of tasks that ask; one worker, made when needed */
    struct asker askers[ASKERS];
    int asked;
};

void run_in_world(void (*row)(struct world *w));

#define STORE_TEST_WITHIN(sentence, limit_s)     \
    static void sentence##_row(struct world *w); \
    TEST_WITHIN(sentence, limit_s)               \
    {                                            \
        run_in_world(sentence##_row);            \
    }                                            \
    static void sentence##_row(struct world *w)

#define STORE_TEST(sentence) STORE_TEST_WITHIN(sentence, 10)

/* Another handle of the same URI; closed by the row. */
struct weir_store *open_another(struct world *w);

/* Close the world's store and open it once more, with names that are forgotten so soon. */
void reopen_forgetful(struct world *w, int64_t forget_after_ns);

struct weir_runtime *runtime_of(struct world *w);

/* ---- asking ------------------------------------------------------------------------ */

struct weir_lease_request ask(const char *name, uint64_t limit);
struct weir_lease_request ask_weight(const char *name, uint64_t limit, uint64_t weight);
struct weir_lease_request ask_ttl(const char *name, uint64_t limit, int64_t ttl_ns);

/* Take what must be free, and give back what must be held. */
struct weir_lease take_from(struct weir_store *store, struct weir_lease_request request);
struct weir_lease take(struct world *w, struct weir_lease_request request);
void give_back(struct world *w, const char *name, const struct weir_lease *lease);

/* Ask without waiting, and give back at once what was had. */
int try_to_take(struct weir_store *store, struct weir_lease_request request);

enum kind { THREAD, TASK };

struct asker *begin_to_ask(struct world *w, struct weir_store *store, enum kind kind,
                           struct weir_lease_request request, struct weir_deadline deadline);

/* The same, and return once it is in the queue; it waits for ever. */
struct asker *queue_up(struct world *w, enum kind kind, struct weir_lease_request request);
struct asker *queue_up_at(struct world *w, struct weir_store *store, enum kind kind,
                          struct weir_lease_request request);

bool is_answered(const struct asker *a);
int answer_of(struct asker *a); /* waits for it */
void leave(struct asker *a);    /* a task ends, and returns once its answer is in `after` */

/* ---- looking ------------------------------------------------------------------------ */

enum { SHOWN = 16 };

/* A name as it is now; the first SHOWN of each list. */
struct view {
    bool there;
    struct weir_name_stats stats; /* without its pointers */
    struct weir_lease_info lease[SHOWN], waiter[SHOWN];
};

struct view look_at(struct weir_store *store, const char *name);
struct view look(struct world *w, const char *name);

/* What it has, where nothing is for a name that is not there. */
uint64_t held(struct world *w, const char *name);
size_t waiting(struct world *w, const char *name);
size_t names_in(struct weir_store *store);

/* ---- telling ------------------------------------------------------------------------ */

/* A notice, with its words copied. */
struct told {
    enum weir_notice_kind what;
    char name[WEIR_NAME_MAX + 1], id[WEIR_ID_LENGTH + 1], label[WEIR_LABEL_MAX + 1], task[32];
    uint64_t limit, token;
    int64_t waited_ns;
    uint32_t slot;
    int thread; /* gettid */
};

/* From now on notices are kept. */
void listen_to_notices(void);
int notices(enum weir_notice_kind what);
struct told notice(enum weir_notice_kind what, int nth); /* waits for it; from 0 */

/* For on_lost, with one of these as its argument. */
struct loss {
    char name[WEIR_NAME_MAX + 1];
    struct weir_lease lease;
    int thread;
    int times; /* see losses */
};

void note_loss(const char *name, const struct weir_lease *lease, void *arg);
int losses(const struct loss *loss);

/* ---- other things --------------------------------------------------------------------- */

#define CHECK_SAME_LEASE(a, b)          \
    do {                                \
        CHECK_STR((a).id, (b).id);      \
        CHECK_EQ((a).slot, (b).slot);   \
        CHECK_EQ((a).token, (b).token); \
    } while (0)

#define AN_ID      "0123456789abcdef0123456789abcdef"
#define ANOTHER_ID "fedcba9876543210fedcba9876543210"

int this_thread(void);

/* Run fn(w) in a forked copy, which must end well. */
void in_a_child(struct world *w, void (*fn)(struct world *w));

#endif
