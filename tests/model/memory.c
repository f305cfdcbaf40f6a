/* SPDX-License-Identifier: MIT */
/* What is remembered of memory, eight bytes at a time.
 *
 * Races are found as TSan does it: every access leaves who, when by its own clock, which
 * bytes and how.  Two accesses race if they touch the same byte, one of them writes, one
 * of them is plain, and the later flow has not acquired what the earlier one released
 * after its access.  Relaxed accesses release and acquire nothing, nor does the kernel. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* Static memory of this program, which is not position independent; and the part of it
 * that each flow has its own copy of. */
extern char __data_start[], _end[];
extern char __start_model_tls[], __stop_model_tls[];

enum { SEEN_MAX = 24, GUESTS_MAX = 64, TOUCHES_MAX = 1000000 };

struct seen {
    uint8_t flow, kind, bytes; /* one bit for each byte */
    uint32_t time;             /* the flow's own clock */
    uint32_t pc;
};

struct cell {
    uint32_t run; /* the execution it belongs to; of another one it is as good as empty */
    uint8_t gone; /* bytes that were given back */
    uint8_t count;
    uint32_t released[FLOWS_MAX]; /* what an acquire takes over */
    uint64_t last_write, reads;   /* invariant 2 */
    struct seen seen[SEEN_MAX];
};

/* Somebody else touched the stack of a flow, last at that time. */
struct guest {
    uintptr_t at; /* eight bytes */
    uint8_t flow;
    uint32_t time;
    uintptr_t pc;
};

static struct {
    struct guest guest[GUESTS_MAX];
    int count;
} guests[FLOWS_MAX]; /* by whose stack it is */

static struct cell *cells;
static uint32_t this_run;
static int touches;           /* in this execution */
static struct cell elsewhere; /* constants and the explorer's own stack: nobody writes them */

uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * UINT64_C(0x9E3779B97F4A7C15) + b;
    a ^= a >> 32;
    a *= UINT64_C(0xD6E8FEB86659FD93);
    return a ^ a >> 29;
}

void memory_init(void)
{
    cells = calloc((size_t)(_end - __data_start) / 8 + 2, sizeof *cells);
    if (cells == NULL)
        abort();
}

void memory_forget(void)
{
    this_run++;
    touches = 0;
    for (int i = 0; i < FLOWS_MAX; i++)
        guests[i].count = 0;
}

static bool is_watched(const volatile void *at)
{
    const volatile char *p = at;

    return p >= __data_start && p < _end && !(p >= __start_model_tls && p < __stop_model_tls);
}

static struct cell *cell_of(const volatile void *at)
{
    struct cell *c = &elsewhere;

    if (is_watched(at))
        c = &cells[((uintptr_t)at >> 3) - ((uintptr_t)__data_start >> 3)];
    if (c->run != this_run) {
        c->run = this_run;
        c->gone = c->count = 0;
        c->last_write = c->reads = 0;
        memset(c->released, 0, sizeof c->released);
    }
    return c;
}

/* ---- stacks --------------------------------------------------------------------------- */

static void remember_guest(int owner, const volatile void *at, uintptr_t pc)
{
    int self = sched_running(), i = 0;
    uintptr_t cell = (uintptr_t)at & ~(uintptr_t)7;
    struct guest *g = guests[owner].guest;

    while (i < guests[owner].count && !(g[i].at == cell && g[i].flow == self))
        i++;
    if (i == GUESTS_MAX)
        model_fail("the explorer remembers only %d accesses to a stack", GUESTS_MAX);
    g[i] = (struct guest){cell, (uint8_t)self, flow_clock(self)[self], pc};
    if (i == guests[owner].count)
        guests[owner].count++;
}

/* To return from a function is to write to its frame: whatever others did there must have
 * come before, in every respect. */
void memory_leave_frame(const void *below)
{
    int self = sched_running(), kept = 0;
    struct guest *g = guests[self].guest;
    char place[160];

    for (int i = 0; i < guests[self].count; i++) {
        if (g[i].at >= (uintptr_t)below) {
            g[kept++] = g[i];
        } else if (g[i].time > flow_clock(self)[g[i].flow]) {
            place_of(g[i].pc, place, sizeof place);
            model_fail("%c touches %c's stack (%s), %c returns from there, and nothing orders them",
                       pick_letter(g[i].flow), pick_letter(self), place, pick_letter(self));
        }
    }
    guests[self].count = kept;
}

/* ---- who may touch it ----------------------------------------------------------- */

static _Noreturn void touched_too_late(const volatile void *at, uintptr_t pc, const char *what)
{
    char name[64], place[160];

    name_of(at, name, sizeof name);
    place_of(pc, place, sizeof place);
    model_fail("%c touches %s (%s) %s", pick_letter(sched_running()), name, place, what);
}

static void check_owner(const volatile void *at, const struct cell *c, uint8_t bytes, uintptr_t pc)
{
    int owner = stack_owner(at);

    if (c->gone & bytes)
        touched_too_late(at, pc, "after it was given back");
    if (owner < 0 || owner == sched_running())
        return;
    if (!stack_is_live(owner, at))
        touched_too_late(at, pc, "after its owner has returned from there");
    remember_guest(owner, at, pc);
}

static bool conflict(const struct seen *s, enum access_kind kind)
{
    bool one_writes = (s->kind | kind) & 1;
    bool one_is_plain = !(s->kind & kind & 2);

    return one_writes && one_is_plain;
}

static const char *doing(enum access_kind kind)
{
    static const char *const words[] = {"reads", "writes", "atomically reads", "atomically writes"};

    return words[kind];
}

static _Noreturn void race(const volatile void *at, const struct seen *s, enum access_kind kind,
                           uintptr_t pc)
{
    char name[64], here[160], there[160];

    name_of(at, name, sizeof name);
    place_of(pc, here, sizeof here);
    place_of(s->pc, there, sizeof there);
    model_fail("data race on %s: %c %s (%s), %c %s (%s), and nothing orders them", name,
               pick_letter(s->flow), doing(s->kind), there, pick_letter(sched_running()),
               doing(kind), here);
}

static void touch_cell(const volatile void *at, uint8_t bytes, enum access_kind kind, uintptr_t pc)
{
    int self = sched_running();
    const uint32_t *clock = flow_clock(self);
    struct cell *c = cell_of(at);
    struct seen *mine = NULL;

    check_owner(at, c, bytes, pc);
    for (struct seen *s = c->seen; s < c->seen + c->count; s++) {
        if (s->flow == self) {
            if (s->kind == kind && s->bytes == bytes)
                mine = s;
        } else if ((s->bytes & bytes) && conflict(s, kind) && s->time > clock[s->flow]) {
            race(at, s, kind, pc);
        }
    }
    if (mine == NULL) {
        if (c->count == SEEN_MAX)
            model_fail("the explorer remembers only %d accesses to eight bytes", SEEN_MAX);
        mine = &c->seen[c->count++];
    }
    *mine = (struct seen){(uint8_t)self, (uint8_t)kind, bytes, clock[self], (uint32_t)pc};
}

void memory_touch(const volatile void *at, size_t bytes, enum access_kind kind, uintptr_t pc)
{
    const volatile char *p = at;

    if (sched_running() < 0 || !is_watched(at))
        return;
    if (++touches == TOUCHES_MAX)
        model_fail("livelock: no end after %d plain accesses", TOUCHES_MAX);
    while (bytes > 0) {
        size_t offset = (uintptr_t)p & 7;
        size_t n = bytes < 8 - offset ? bytes : 8 - offset;

        touch_cell(p, (uint8_t)(((1u << n) - 1) << offset), kind, pc);
        p += n;
        bytes -= n;
    }
}

void memory_gone(const void *p, size_t bytes, uintptr_t pc)
{
    memory_touch(p, bytes, PLAIN_WRITE, pc);
    for (size_t i = 0; i < bytes; i++) {
        const char *at = (const char *)p + i;

        cell_of(at)->gone |= (uint8_t)(1u << ((uintptr_t)at & 7));
    }
}

/* ---- what orders accesses --------------------------------------------------------- */

void memory_acquire(const volatile void *at)
{
    const struct cell *c = cell_of(at);
    uint32_t *clock = flow_clock(sched_running());

    for (int i = 0; i < FLOWS_MAX; i++) {
        if (clock[i] < c->released[i])
            clock[i] = c->released[i];
    }
}

/* A store replaces what was released there; a swap, an add or a cas adds to it. */
void memory_release(const volatile void *at, bool keeps_others)
{
    struct cell *c = cell_of(at);
    int self = sched_running();
    uint32_t *clock = flow_clock(self);

    for (int i = 0; i < FLOWS_MAX; i++) {
        if (!keeps_others || c->released[i] < clock[i])
            c->released[i] = clock[i];
    }
    clock[self]++;
}

void memory_no_release(const volatile void *at)
{
    memset(cell_of(at)->released, 0, sizeof(uint32_t[FLOWS_MAX]));
}

/* ---- history ------------------------------------------------------------------------ */

void history_read(int who, const volatile void *at)
{
    struct cell *c = cell_of(at);
    uint64_t *mine = flow_history(who);

    *mine = mix(mix(*mine, (uintptr_t)at), c->last_write);
    c->reads += *mine;
}

void history_write(int who, const volatile void *at)
{
    struct cell *c = cell_of(at);
    uint64_t *mine = flow_history(who);

    *mine = mix(mix(mix(*mine, (uintptr_t)at), c->last_write), c->reads);
    c->last_write = *mine;
    c->reads = 0;
}

uint64_t history_of(const volatile void *at)
{
    return cell_of(at)->last_write;
}
