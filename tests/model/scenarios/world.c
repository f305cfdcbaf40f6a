/* SPDX-License-Identifier: MIT */
/* Compiled without instrumentation: counting is not part of what is watched. */
#include "scenarios/world.h"

#include <string.h>

#include "engine.h"

struct world the;

void world_clear(void)
{
    memset(&the, 0, sizeof the);
    for (int i = 0; i < FLOWS_MAX; i++)
        the.result[i] = the.cancelled[i] = NOTHING_YET;
    for (int i = 0; i < 3; i++)
        the.note[i].result = NOTHING_YET;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *queue_field(size_t offset)
{
    if (offset < 8)
        return ".word";
    if (offset < 16)
        return ".newest";
    if (offset < 20)
        return ".length";
    return offset < 24 ? ".epoch" : "";
}

static const char *note_field(size_t offset)
{
    static const struct {
        size_t end;
        const char *name;
    } fields[] = {
        {8, ".inbox"},  {16, ".done"},   {24, ".next"},  {32, ".prev"},
        {40, ".queue"}, {48, ".want"},   {56, ".kind"},  {64, ".parker"},
        {68, ".state"}, {70, ".cpu"},    {71, ".crowd"}, {72, ".flags"},
        {76, ".epoch"}, {80, ".result"}, {84, ".calls"}, {SIZE_MAX, ".seen"},
    };
    int i = 0;

    while (offset >= fields[i].end)
        i++;
    return fields[i].name;
}

#define NAMED(member, field)                           \
    {                                                  \
        &the.member, sizeof the.member, #member, field \
    }
const struct named world_names[] = {
    NAMED(sem, queue_field),
    NAMED(event, queue_field),
    NAMED(revent, queue_field),
    NAMED(countdown, queue_field),
    NAMED(latch, queue_field),
    NAMED(barrier, queue_field),
    NAMED(mutex, queue_field),
    NAMED(cond, queue_field),
    NAMED(note[0], note_field),
    NAMED(note[1], note_field),
    NAMED(note[2], note_field),
    NAMED(queue, queue_field),
    NAMED(small_lock, NULL),
    NAMED(sleeper, NULL),
    NAMED(value, NULL),
    NAMED(flag, NULL),
    {&the, sizeof the, "the world", NULL},
    {0},
};

/* ---- counting --------------------------------------------------------------------------------- */

void holds(int64_t n, uint64_t of)
{
    the.held += (uint64_t)n;
    if (the.held > of)
        model_fail("over-admission: %d permits held of %d", (int)the.held, (int)of);
}

void check_permits(uint64_t capacity, uint64_t held)
{
    MODEL_CHECK_EQ(weir_sem_waiting(&the.sem), 0);
    MODEL_CHECK_EQ(weir_sem_capacity(&the.sem), capacity);
    MODEL_CHECK_EQ(the.sem.queue_.word, (capacity - held) << 3); /* neither lost nor won, no flag */
    MODEL_CHECK(the.sem.queue_.newest == NULL);
}

/* ---- callbacks ----------------------------------------------------------------------------------- */

void take_note(struct weir_op *op, int result)
{
    struct note *n = (struct note *)(void *)op;

    n->calls++;
    n->result = result;
    n->turn = ++the.turns;
}

bool was_called(int i, int result)
{
    return the.note[i].calls == 1 && the.note[i].result == result;
}

bool was_not_called(int i)
{
    return the.note[i].calls == 0;
}

bool is_queued(int i)
{
    return the.note[i].op.waiter_.queue != NULL;
}

void queue_note(int i, uint64_t n)
{
    MODEL_CHECK_EQ(weir_sem_acquire_async(&the.sem, n, &the.note[i].op, take_note), 0);
}

void cancel_note(int i)
{
    the.cancelled[model_self()] = weir_op_cancel(&the.note[i].op);
}
