/* SPDX-License-Identifier: MIT */
/* cancel_flat - does it cost more to leave a queue of a million than one of 5,000?
 *
 * A queue of callbacks, all of which are taken back, in three orders.  Newest first is
 * the order in which timers armed together go off after a stall, and the one in which a
 * queue that searches from its head is at its worst.
 *
 * 80 MB of records do not fit into any cache, so in random order everyone waits for
 * memory.  Unlinking the same records from a plain list is the limit: without a lock around
 * each, the processor waits for several of them at once.
 */
#include <stdlib.h>

#include <weir/op.h>
#include <weir/sem.h>

#include "bench.h"

enum { MANY = 1000 * 1000, FEW = 5 * 1000, MEASURED_AT_LEAST = 200 * 1000 };

enum order { NEWEST_FIRST, OLDEST_FIRST, RANDOM };

struct link {
    struct link *next, *prev;
};

/* The list gets records of the same size, in the same memory. */
union record {
    struct weir_op op;
    struct link link;
};

static union record *records;
static uint32_t *turn; /* who leaves when */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void shuffle(uint32_t count)
{
    uint64_t state = 1;

    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(next_random(&state) % (i + 1)), mine = turn[i];

        turn[i] = turn[other];
        turn[other] = mine;
    }
}

static void prepare(uint32_t count, enum order order)
{
    if (!records) {
        records = calloc(MANY, sizeof *records);
        turn = calloc(MANY, sizeof *turn);
        BENCH_CHECK(records && turn);
    }
    for (uint32_t i = 0; i < count; i++)
        turn[i] = order == NEWEST_FIRST ? count - 1 - i : i;
    if (order == RANDOM)
        shuffle(count);
}

/* ---- weir ---------------------------------------------------------------------- */

static void never_called(struct weir_op *op, int result)
{
    (void)op, (void)result;
    bench_fail("a callback that had been taken back");
}

static int64_t cancel_all(uint32_t count)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    int64_t start;

    BENCH_CHECK(weir_sem_try_acquire(&sem, 1) == 0);
    for (uint32_t i = 0; i < count; i++) {
        weir_op_init(&records[i].op);
        BENCH_CHECK(weir_sem_acquire_async(&sem, 1, &records[i].op, never_called) == 0);
    }
    start = bench_now_ns();
    for (uint32_t i = 0; i < count; i++)
        BENCH_CHECK(weir_op_cancel(&records[turn[i]].op) == 1);
    start = bench_now_ns() - start;
    BENCH_CHECK(weir_sem_waiting(&sem) == 0);
    return start;
}

/* ---- a plain list -------------------------------------------------------------- */

static int64_t unlink_all(uint32_t count)
{
    struct link list = {&list, &list};
    int64_t start;

    for (uint32_t i = 0; i < count; i++) {
        struct link *link = &records[i].link;

        link->prev = list.prev;
        link->next = &list;
        list.prev->next = link;
        list.prev = link;
    }
    start = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct link *link = &records[turn[i]].link;

        link->prev->next = link->next;
        link->next->prev = link->prev;
    }
    start = bench_now_ns() - start;
    BENCH_CHECK(list.next == &list);
    return start;
}

/* ---- measurement --------------------------------------------------------------- */

/* A small queue is emptied many times, or the clock would be all that is measured. */
static double leaving(int64_t (*leave_all)(uint32_t), uint32_t full, enum order order)
{
    uint32_t count = (uint32_t)bench_times(full), rounds = 0;
    int64_t total = 0;

    bench_pin(0);
    prepare(count, order);
    for (; rounds * count < MEASURED_AT_LEAST; rounds++)
        total += leave_all(count);
    return (double)total / rounds / count;
}

static double newest_many(void)
{
    return leaving(cancel_all, MANY, NEWEST_FIRST);
}

static double newest_few(void)
{
    return leaving(cancel_all, FEW, NEWEST_FIRST);
}

static double newest_list(void)
{
    return leaving(unlink_all, MANY, NEWEST_FIRST);
}

static double oldest_many(void)
{
    return leaving(cancel_all, MANY, OLDEST_FIRST);
}

static double oldest_few(void)
{
    return leaving(cancel_all, FEW, OLDEST_FIRST);
}

static double oldest_list(void)
{
    return leaving(unlink_all, MANY, OLDEST_FIRST);
}

static double random_many(void)
{
    return leaving(cancel_all, MANY, RANDOM);
}

static double random_few(void)
{
    return leaving(cancel_all, FEW, RANDOM);
}

static double random_list(void)
{
    return leaving(unlink_all, MANY, RANDOM);
}

/* Flat: 200 times the waiters, and at most twice the time, for the caches' sake. */
static const struct bench_question questions[] = {
    {
        .name = "cancel_flat",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, newest_many},
                {"weir_at_5000", BENCH_LIMIT, newest_few},
                {"plain_list", BENCH_LIMIT, newest_list},
            },
        .goals = {{"weir_at_5000", BENCH_AT_MOST, 2.0}},
    },
    {
        .name = "cancel_flat_oldest",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, oldest_many},
                {"weir_at_5000", BENCH_LIMIT, oldest_few},
                {"plain_list", BENCH_LIMIT, oldest_list},
            },
        .goals = {{"weir_at_5000", BENCH_AT_MOST, 2.0}},
    },
    {
        .name = "cancel_flat_random",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, random_many},
                {"weir_at_5000", BENCH_LIMIT, random_few},
                {"plain_list", BENCH_LIMIT, random_list},
            },
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
