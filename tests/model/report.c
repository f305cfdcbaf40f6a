/* SPDX-License-Identifier: MIT */
/* What is printed of a fault: the last steps, by name, and the schedule as a string. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_SHOWN = 40, PLACE_BYTES = 96 };

char pick_letter(int pick)
{
    if (pick < TIME)
        return (char)('A' + pick);
    return pick == TIME ? 'T' : (char)('a' + pick - SIGNAL);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_named(const struct named *n, const volatile void *at, char *ret_name, size_t bytes)
{
    for (; n->name; n++) {
        ptrdiff_t offset = (const volatile char *)at - (const char *)n->at;

        if (offset >= 0 && (size_t)offset < n->bytes) {
            snprintf(ret_name, bytes, "%s%s", n->name, n->field ? n->field((size_t)offset) : "");
            return true;
        }
    }
    return false;
}

void name_of(const volatile void *at, char *ret_name, size_t bytes)
{
    int owner = stack_owner(at);

    ret_name[0] = 0;
    if (owner >= 0)
        snprintf(ret_name, bytes, "%c's stack", pick_letter(owner));
    else if (at && !is_named(world_names, at, ret_name, bytes) &&
             !is_named(kernel_names, at, ret_name, bytes))
        snprintf(ret_name, bytes, "%p", (const void *)at); /* a static of the core */
}

/* Ask addr2line, which comes with the compiler, for all of them at once. */
static void places_of(const uintptr_t *pcs, int count, char (*ret_places)[PLACE_BYTES])
{
    char command[200 + 20 * STEPS_SHOWN], exe[128] = "", function[48], line[40];
    size_t used;

    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        exe[0] = 0;
    used = (size_t)snprintf(command, sizeof command, "addr2line -f -s -e '%s'", exe);
    for (int i = 0; i < count; i++) {
        snprintf(ret_places[i], PLACE_BYTES, "%#lx", (unsigned long)pcs[i]);
        used += (size_t)snprintf(command + used, sizeof command - used, " %#lx",
                                 (unsigned long)pcs[i] - 1);
    }
    FILE *answers = popen(command, "r");
    if (answers == NULL)
        return;
    for (int i = 0; i < count; i++) {
        if (fscanf(answers, "%47s %39s%*[^\n]", function, line) == 2 && pcs[i])
            snprintf(ret_places[i], PLACE_BYTES, "%s, %s", function, line);
    }
    pclose(answers);
}

void place_of(uintptr_t pc, char *ret_place, size_t bytes)
{
    char place[1][PLACE_BYTES];

    places_of(&pc, 1, place);
    snprintf(ret_place, bytes, "%s", place[0]);
}

/* ---- steps --------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [LOAD] = "load",
    [STORE] = "store",
    [SWAP] = "swap",
    [ADD] = "add",
    [CAS] = "cas",
    [CAS_FAILED] = "cas fails",
    [FUTEX_WAIT] = "futex wait",
    [FUTEX_WOKEN] = "wakes up",
    [FUTEX_TIMED_OUT] = "times out",
    [FUTEX_WAKE] = "futex wake",
    [PAUSE] = "pause",
    [CLOCK] = "clock",
    [FD_READ] = "read fd",
    [FD_WRITE] = "write fd",
    [FD_CLOSE] = "close fd",
    [FD_POLL] = "fd readable",
    [GONE] = "gives back",
    [TICK] = "time passes",
    [INTERRUPT] = "signal",
    [ENDED] = "ends",
};

static void values_of(const struct event *e, char *ret_text, size_t bytes)
{
    unsigned long long before = e->before, after = e->after;

    ret_text[0] = 0;
    switch ((enum step_kind)e->kind) {
    case STORE:
    case SWAP:
    case ADD:
    case CAS:
        snprintf(ret_text, bytes, "%#llx -> %#llx", before, after);
        break;
    case CAS_FAILED:
    case FUTEX_WAIT:
        snprintf(ret_text, bytes, "%#llx", before);
        break;
    case LOAD:
    case CLOCK:
    case TICK:
    case FUTEX_WAKE:
    case FD_READ:
    case FD_WRITE:
    case FD_POLL:
        snprintf(ret_text, bytes, "%#llx", after);
        break;
    default:
        break;
    }
}

static void print_steps(const struct event *events, int count)
{
    uintptr_t pcs[STEPS_SHOWN] = {0};
    char places[STEPS_SHOWN][PLACE_BYTES], name[64], values[64];
    int first = count > STEPS_SHOWN ? count - STEPS_SHOWN : 0;

    for (int i = first; i < count; i++)
        pcs[i - first] = events[i].pc;
    places_of(pcs, count - first, places);
    if (first > 0)
        printf("      ... %d steps before\n", first);
    for (int i = first; i < count; i++) {
        const struct event *e = &events[i];

        name_of(e->at, name, sizeof name);
        values_of(e, values, sizeof values);
        printf("    %c %-11s %-20s %-20s %s\n", pick_letter(e->who), kind_names[e->kind], name,
               values, e->pc ? places[i - first] : "");
    }
}

static void print_schedule(void)
{
    int count;
    const uint8_t *picks = sched_picks(&count);

    for (int i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && picks[i + n] == picks[i];)
            n++;
        putchar(pick_letter(picks[i]));
        if (n > 1)
            printf("%d", n);
    }
}

void report_fault(const struct event *events, int count)
{
    if (*sched_fault())
        printf("  %s\n", sched_fault());
    print_steps(events, count);
    printf("  again with: --replay ");
    print_schedule();
    printf(" '%s'\n", flow_scenario()->name);
}
