/* SPDX-License-Identifier: MIT */
/* Holding threads at testpoints.
 *
 *     FREE --test_hold--> ARMED --a thread comes by--> HELD
 *       ^                   |                           |
 *       +----test_let_go----+----------test_let_go------+
 *
 * Only the test's own thread arms and lets go, so a FREE hold is its alone; the
 * hook claims an ARMED one by compare-and-swap.  The hook stands from the start,
 * since a pointer that changes while threads run would be a race of its own. */
#include "harness/test.h"

#include <string.h>

#include "base/testpoint.h"

enum { MAX_HOLDS = 16 };
enum state { FREE, ARMED, HELD };

struct hold {
    const char *point; /* written while FREE only */
    int state;
};

static struct hold holds[MAX_HOLDS];
static int holds_used; /* how many of them were ever armed */

static void hold_here(const char *point);
void (*testpoint_hook)(const char *) = hold_here;

static enum state state_of(const struct hold *h)
{
    return (enum state)__atomic_load_n(&h->state, __ATOMIC_ACQUIRE);
}

static bool claim(struct hold *h)
{
    int armed = ARMED;

    return __atomic_compare_exchange_n(&h->state, &armed, HELD, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static void hold_here(const char *point)
{
    int used = __atomic_load_n(&holds_used, __ATOMIC_ACQUIRE);

    for (struct hold *h = holds; h < holds + used; h++) {
        if (state_of(h) != ARMED || strcmp(h->point, point) != 0 || !claim(h))
            continue;
        while (state_of(h) == HELD)
            test_still_waiting(__FILE__, __LINE__, "let go of", point);
        return;
    }
}

void test_hold(const char *point)
{
    int i = 0;

    CHECK(testpoint_hook == hold_here);
    while (i < holds_used && state_of(&holds[i]) != FREE)
        i++;
    CHECK(i < MAX_HOLDS);
    holds[i].point = point;
    __atomic_store_n(&holds[i].state, ARMED, __ATOMIC_RELEASE);
    if (i == holds_used)
        __atomic_store_n(&holds_used, i + 1, __ATOMIC_RELEASE);
}

/* The next hold at the point after h (the first for NULL) that is not FREE. */
static struct hold *next_hold(const char *point, struct hold *h)
{
    for (h = h ? h + 1 : holds; h < holds + holds_used; h++)
        if (state_of(h) != FREE && strcmp(h->point, point) == 0)
            return h;
    return NULL;
}

static struct hold *first_hold(const char *point)
{
    struct hold *h = next_hold(point, NULL);

    if (h == NULL)
        test_fail(__FILE__, __LINE__, "no hold at \"%s\"", point);
    return h;
}

void test_reached(const char *point)
{
    for (struct hold *h = first_hold(point); h != NULL; h = next_hold(point, h))
        while (state_of(h) != HELD)
            test_still_waiting(__FILE__, __LINE__, "reached", point);
}

void test_let_go(const char *point)
{
    for (struct hold *h = first_hold(point); h != NULL; h = next_hold(point, h))
        __atomic_store_n(&h->state, FREE, __ATOMIC_RELEASE);
}
