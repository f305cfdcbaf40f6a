/* SPDX-License-Identifier: MIT */
/* callback_wake - what does it cost to wake a callback, when 100,000 wait?
 *
 * One release or one set ends the wait of all of them.  Through an inbox, the time of the
 * drain counts as well, since that is when they are called.
 *
 * The limit is a plain list of records of the same size, detached at once, without lock
 * or state, whose functions are called one by one.
 */
#include <stdlib.h>

#include <weir/event.h>
#include <weir/op.h>
#include <weir/sem.h>

#include "bench.h"

enum { WAITERS = 100 * 1000, ROUNDS = 5 };

struct item {
    struct item *next;
    void (*call)(struct item *item);
};

union record {
    struct weir_op op;
    struct item item;
};

static union record *records;
static long calls;

static void count_call(struct weir_op *op, int result)
{
    (void)op;
    calls += result == 0;
}

static void count_item(struct item *item)
{
    (void)item;
    calls++;
}

/* ---- what is measured ---------------------------------------------------------- */

static int64_t by_release(uint32_t count, struct weir_inbox *inbox)
{
    struct weir_sem sem;
    int64_t start;

    BENCH_CHECK(weir_sem_init(&sem, count) == 0);
    BENCH_CHECK(weir_sem_try_acquire(&sem, count) == 0);
    for (uint32_t i = 0; i < count; i++) {
        weir_op_init(&records[i].op);
        records[i].op.inbox = inbox;
        BENCH_CHECK(weir_sem_acquire_async(&sem, 1, &records[i].op, count_call) == 0);
    }
    start = bench_now_ns();
    BENCH_CHECK(weir_sem_release(&sem, count) == 0);
    if (inbox)
        BENCH_CHECK(weir_inbox_drain(inbox) == (int)count);
    return bench_now_ns() - start;
}

static int64_t by_set(uint32_t count, struct weir_inbox *inbox)
{
    struct weir_event event = WEIR_EVENT_INIT;
    int64_t start;

    for (uint32_t i = 0; i < count; i++) {
        weir_op_init(&records[i].op);
        records[i].op.inbox = inbox;
        BENCH_CHECK(weir_event_wait_async(&event, &records[i].op, count_call) == 0);
    }
    start = bench_now_ns();
    weir_event_set(&event);
    if (inbox)
        BENCH_CHECK(weir_inbox_drain(inbox) == (int)count);
    return bench_now_ns() - start;
}

static int64_t by_hand(uint32_t count, struct weir_inbox *inbox)
{
    struct item *list = NULL, **end = &list;
    int64_t start;

    (void)inbox;
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = &records[i].item;

        item->next = NULL;
        item->call = count_item;
        *end = item;
        end = &item->next;
    }
    start = bench_now_ns();
    for (struct item *item = list, *next; item; item = next) {
        next = item->next;
        item->call(item);
    }
    return bench_now_ns() - start;
}

/* ---- measurement --------------------------------------------------------------- */

static double waking(int64_t (*wake_all)(uint32_t, struct weir_inbox *), struct weir_inbox *inbox)
{
    uint32_t count = (uint32_t)bench_times(WAITERS);
    int64_t total = 0;

    if (!records)
        records = calloc(WAITERS, sizeof *records);
    BENCH_CHECK(records);
    bench_pin(0);
    calls = 0;
    for (int round = 0; round < ROUNDS; round++)
        total += wake_all(count, inbox);
    BENCH_CHECK(calls == (long)count * ROUNDS);
    return (double)total / ROUNDS / count;
}

static double release_all(void)
{
    return waking(by_release, NULL);
}

static double set_event(void)
{
    return waking(by_set, NULL);
}

static double call_list(void)
{
    return waking(by_hand, NULL);
}

static double through_inbox(int64_t (*wake_all)(uint32_t, struct weir_inbox *))
{
    struct weir_inbox *inbox;
    double cost;

    BENCH_CHECK(weir_inbox_open(&inbox) == 0);
    cost = waking(wake_all, inbox);
    weir_inbox_close(inbox);
    return cost;
}

static double release_through_inbox(void)
{
    return through_inbox(by_release);
}

static double set_through_inbox(void)
{
    return through_inbox(by_set);
}

static const struct bench_question questions[] = {
    {
        .name = "callback_wake",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, release_all},
                {"plain_list", BENCH_LIMIT, call_list},
            },
        .goals = {{NULL, BENCH_AT_MOST, 10}},
    },
    {
        .name = "callback_wake_event",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, set_event},
                {"plain_list", BENCH_LIMIT, call_list},
            },
        .goals = {{NULL, BENCH_AT_MOST, 10}},
    },
    {
        .name = "callback_wake_inbox",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, release_through_inbox},
                {"plain_list", BENCH_LIMIT, call_list},
            },
        .goals = {{NULL, BENCH_AT_MOST, 10}},
    },
    {
        .name = "callback_wake_event_inbox",
        .unit = "ns",
        .cpus_needed = 1,
        .cases =
            {
                {"weir", BENCH_WEIR, set_through_inbox},
                {"plain_list", BENCH_LIMIT, call_list},
            },
        .goals = {{NULL, BENCH_AT_MOST, 10}},
    },
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}
