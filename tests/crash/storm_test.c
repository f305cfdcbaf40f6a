/* SPDX-License-Identifier: MIT */
/* Storms: many processes take and give back leases of one name, and are killed at random
 * until only the survivors are left, who must not have noticed.
 *
 * Everybody writes down what it was given.  In the end, in the order of the tokens, no
 * token may be there twice, and of those who waited nobody before one who stood before him
 * in the queue.
 *
 * `make test` kills 150 processes in each storm, `make soak` 2,000. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "crash/arena.h"

enum {
    SURVIVORS = 6,
    MOST_SLOTS = 64,
    RECORDS = 1 << 22,
    NOBODY = 0, /* in a slot; processes are numbered from 1 */
};

static const int64_t STUCK_NS = 20 * WEIR_S;

/* What one was given. */
struct record {
    uint64_t token;  /* written last */
    uint64_t ticket; /* 0: it did not wait */
};

struct survivor {
    uint64_t leases;
    int64_t last_ns, longest_gap_ns;
};

/* Shared by all processes of a storm. */
struct sky {
    uint32_t ready, go, over; /* (a) */
    uint32_t killed_so_far;
    uint32_t slot[MOST_SLOTS]; /* (a) who has it                             */
    uint32_t *doomed;          /* (a) by process: it is dead, or about to be */
    struct survivor survivor[SURVIVORS];
    uint64_t records; /* (a) */
    struct record record[RECORDS];
};

struct storm {
    struct arena arena;
    struct sky *sky;
    int victims;
    uint64_t limit;
    int64_t ttl_ns;
    pid_t *pid;
    uint32_t number; /* of this process */
    uint32_t chance; /* and of its own  */
};

/* ---- chance: each process has its own ------------------------------------------------ */

static uint32_t draw(struct storm *s, uint32_t below)
{
    s->chance = s->chance * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)s->chance * below >> 32);
}

/* ---- what everybody does --------------------------------------------------------------- */

/* Our place in the queue, from our entry.  False: it is not ours any more. */
static bool read_ticket(struct storm *s, const struct weir_lease *lease, uint64_t *ret)
{
    const ledger *l = arena_lock(s->arena.store, "n");
    uint8_t id[ID_BYTES];

    CHECK(id_parse(lease->id, id));
    uint32_t index = ledger_find(l, id);
    *ret = lease->waited_ns ? l->entries[index].ticket : 0;
    arena_unlock(s->arena.store, "n");
    return index != NO_ENTRY;
}

static void write_down(struct storm *s, const struct weir_lease *lease)
{
    uint64_t ticket;

    if (!read_ticket(s, lease, &ticket) && s->ttl_ns == 0)
        test_fail(__FILE__, __LINE__, "a lease was lost that never expires");
    uint64_t i = atomic_add(&s->sky->records, 1) - 1;
    if (i >= RECORDS)
        return;
    s->sky->record[i].ticket = ticket;
    atomic_put(&s->sky->record[i].token, lease->token);
}

/* Who had the slot before us has left it, or has been killed. */
static void enter_slot(struct storm *s, const struct weir_lease *lease)
{
    CHECK(lease->slot < s->limit);
    uint32_t before = atomic_swap(&s->sky->slot[lease->slot], s->number);
    if (before != NOBODY && s->ttl_ns == 0)
        CHECK(atomic_get(&s->sky->doomed[before]));
}

static void leave_slot(struct storm *s, const struct weir_lease *lease)
{
    uint32_t us = s->number;
    bool ours = atomic_cas(&s->sky->slot[lease->slot], &us, NOBODY);

    CHECK(ours || s->ttl_ns);
}

static void work(struct storm *s)
{
    switch (draw(s, 4)) {
    case 2:
        usleep(draw(s, 100));
        break;
    case 3:
        for (uint32_t i = draw(s, 2000); i > 0; i--)
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
        break;
    }
}

/* Returns what acquire did. */
static int turn(struct storm *s, struct weir_deadline deadline)
{
    struct weir_lease_request request = {.name = "n", .limit = s->limit, .ttl_ns = s->ttl_ns};
    struct weir_lease lease;
    int r = weir_lease_acquire(s->arena.store, &request, deadline, &lease);

    if (r < 0)
        return r;
    write_down(s, &lease);
    enter_slot(s, &lease);
    work(s);
    leave_slot(s, &lease);
    r = weir_lease_release(s->arena.store, "n", lease.id);
    CHECK(r == 0 || (r == WEIR_ENOTHELD && s->ttl_ns));
    return 0;
}

/* ---- processes ------------------------------------------------------------------------- */

static void get_ready(struct storm *s)
{
    struct sky *sky = s->sky;

    s->chance = test_random(UINT32_MAX) + s->number * 7919;
    s->arena.store = arena_open(&s->arena);
    atomic_add(&sky->ready, 1);
    while (!atomic_get(&sky->go))
        futex_wait_shared(&(struct futex_watch){&sky->go, 0}, 1, INT64_MAX);
}

/* One in eight does not wait for long. */
static void be_victim(void *arg)
{
    struct storm *s = arg;

    get_ready(s);
    for (;;) {
        bool patient = draw(s, 8);
        int r = turn(s, patient ? WEIR_FOREVER : weir_within(draw(s, 3) * WEIR_MS));
        if (r != 0 && (patient || r != WEIR_ETIMEDOUT))
            test_fail(__FILE__, __LINE__, "%s; %s", weir_strerror(r), weir_store_why());
    }
}

static void be_survivor(void *arg)
{
    struct storm *s = arg;
    struct survivor *self = &s->sky->survivor[s->number - 1];

    get_ready(s);
    self->last_ns = weir_now_ns();
    while (!atomic_get(&s->sky->over)) {
        CHECK_EQ(turn(s, weir_within(STUCK_NS)), 0);
        int64_t now_ns = weir_now_ns(), gap_ns = now_ns - self->last_ns;
        if (gap_ns > self->longest_gap_ns)
            self->longest_gap_ns = gap_ns;
        self->last_ns = now_ns;
        atomic_add(&self->leases, 1);
    }
    weir_store_close(s->arena.store);
}

/* Survivors are the first. */
static void start_all(struct storm *s)
{
    int all = SURVIVORS + s->victims;

    for (int i = 0; i < all; i++) {
        s->number = (uint32_t)i + 1;
        s->pid[i] = arena_start(i < SURVIVORS ? be_survivor : be_victim, s);
    }
    EVENTUALLY(atomic_get(&s->sky->ready) == (uint32_t)all);
    atomic_put(&s->sky->go, 1);
    futex_wake_shared(&s->sky->go, INT32_MAX);
}

static void shuffle(pid_t *pid, uint32_t *number, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)test_random((uint32_t)i + 1);
        pid_t p = pid[i];
        uint32_t n = number[i];

        pid[i] = pid[j], number[i] = number[j];
        pid[j] = p, number[j] = n;
    }
}

static void kill_all(struct storm *s)
{
    uint32_t *number = calloc((size_t)s->victims, sizeof *number);

    for (int i = 0; i < s->victims; i++)
        number[i] = (uint32_t)(SURVIVORS + i + 1);
    shuffle(s->pid + SURVIVORS, number, s->victims);
    for (int i = 0; i < s->victims; i++) {
        usleep(test_random(3000));
        atomic_put(&s->sky->doomed[number[i]], 1);
        arena_kill(s->pid[SURVIVORS + i]);
    }
    free(number);
}

/* Everybody gets on without the dead, and then ends. */
static void let_survivors_end(struct storm *s)
{
    for (int i = 0; i < SURVIVORS; i++) {
        uint64_t before = atomic_get(&s->sky->survivor[i].leases);
        EVENTUALLY(atomic_get(&s->sky->survivor[i].leases) > before);
    }
    atomic_put(&s->sky->over, 1);
    for (int i = 0; i < SURVIVORS; i++)
        arena_join(s->pid[i]);
}

/* ---- afterwards ------------------------------------------------------------------------ */

static int by_token(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    return (x->token > y->token) - (x->token < y->token);
}

static void check_records(struct sky *sky)
{
    size_t count = sky->records < RECORDS ? sky->records : RECORDS;
    uint64_t last_ticket = 0, waited = 0;

    qsort(sky->record, count, sizeof *sky->record, by_token);
    for (size_t i = 0; i < count; i++) {
        const struct record *r = &sky->record[i];

        if (r->token == 0)
            continue; /* killed with the pen in its hand */
        if (i > 0)
            CHECK(r->token != r[-1].token);
        if (r->ticket == 0)
            continue;
        CHECK(r->ticket > last_ticket);
        last_ticket = r->ticket;
        waited++;
    }
    printf("%zu leases, %llu of them waited for, ", count, (unsigned long long)waited);
}

static int64_t longest_gap_ns(const struct sky *sky)
{
    int64_t longest_ns = 0;

    for (int i = 0; i < SURVIVORS; i++)
        if (sky->survivor[i].longest_gap_ns > longest_ns)
            longest_ns = sky->survivor[i].longest_gap_ns;
    return longest_ns;
}

static void rage(uint64_t limit, int64_t ttl_ns)
{
    struct storm s = {
        .victims = test_scaled(1) > 1 ? 2000 : 150,
        .limit = limit,
        .ttl_ns = ttl_ns,
        .sky = arena_share(sizeof *s.sky),
    };

    arena_begin(&s.arena);
    s.pid = calloc((size_t)(SURVIVORS + s.victims), sizeof *s.pid);
    s.sky->doomed = arena_share((size_t)(SURVIVORS + s.victims + 1) * sizeof *s.sky->doomed);
    start_all(&s);
    kill_all(&s);
    let_survivors_end(&s);
    printf("limit %llu%s, %d killed: ", (unsigned long long)limit, ttl_ns ? " with TTL" : "",
           s.victims);
    check_records(s.sky);
    printf("longest gap of a survivor %.1f ms\n", (double)longest_gap_ns(s.sky) / 1e6);
    arena_check(&s.arena, "n", limit);
    free(s.pid);
    arena_end(&s.arena);
}

TEST_WITHIN(a_storm_over_a_limit_of_1_leaves_order_and_permits, 60)
{
    rage(1, 0);
}

TEST_WITHIN(a_storm_over_a_limit_of_4_leaves_order_and_permits, 60)
{
    rage(4, 0);
}

TEST_WITHIN(a_storm_over_a_limit_of_64_leaves_order_and_permits, 60)
{
    rage(64, 0);
}

TEST_WITHIN(a_storm_over_leases_of_5_ms_leaves_order_and_permits, 60)
{
    rage(4, 5 * WEIR_MS);
}
