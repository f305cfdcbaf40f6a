/* SPDX-License-Identifier: MIT */
/* Holding threads at testpoints.
 *
 *     FREE --test_hold--> ARMED --a thread comes by--> HELD --test_let_go--> LET_GO
 *      ^ ^                  |                                                  |
 *      | +----test_let_go---+                                                  |
 *      +-----------------------the thread goes on------------------------------+
 *
 * Only the test's own thread arms and lets go, so a FREE hold is its alone; the
 * hook claims an ARMED one by compare-and-swap.  A hold that was let go is not FREE
 * before its thread has noticed: armed again and reached by a second thread, it would
 * look to the first as if nothing had happened.  The hook stands from the start,
 * since a pointer that changes while threads run would be a race of its own. */
#include "harness/test.h"

#include <string.h>

#include "base/testpoint.h"

enum { MAX_HOLDS = 16 };
enum state { FREE, ARMED, HELD, LET_GO };

struct hold {
    const char *point; /* for good: who has found it ARMED may be late to claim it */
    enum state state;
};

static struct hold holds[MAX_HOLDS];
static int holds_used; /* how many of them were ever armed */

static void hold_here(const char *point);
void (*testpoint_hook)(const char *) = hold_here;

static enum state state_of(const struct hold *h)
{
    return __atomic_load_n(&h->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct hold *h, enum state to)
{
    __atomic_store_n(&h->state, to, __ATOMIC_RELEASE);
}

/* ARMED no more; false if somebody else was first. */
static bool disarm(struct hold *h, enum state to)
{
    enum state armed = ARMED;

    return __atomic_compare_exchange_n(&h->state, &armed, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static void hold_here(const char *point)
{
    int used = __atomic_load_n(&holds_used, __ATOMIC_ACQUIRE);

    for (struct hold *h = holds; h < holds + used; h++) {
        if (state_of(h) != ARMED || strcmp(h->point, point) != 0 || !disarm(h, HELD))
            continue;
        while (state_of(h) == HELD)
            test_still_waiting(__FILE__, __LINE__, "let go of", point);
        set_state(h, FREE);
        return;
    }
}

/* A FREE hold for the point; NULL while there is none. */
static struct hold *free_hold(const char *point)
{
    struct hold *h = holds;

    while (h < holds + holds_used && (state_of(h) != FREE || strcmp(h->point, point) != 0))
        h++;
    return h < holds + MAX_HOLDS ? h : NULL;
}

void test_hold(const char *point)
{
    struct hold *h;

    CHECK(testpoint_hook == hold_here);
    while ((h = free_hold(point)) == NULL) /* of those let go, one will be */
        test_still_waiting(__FILE__, __LINE__, "free: a hold at", point);
    if (h == holds + holds_used) {
        h->point = point;
        __atomic_store_n(&holds_used, holds_used + 1, __ATOMIC_RELEASE);
    }
    set_state(h, ARMED);
}

/* The next hold at the point after h (the first for NULL) that was not let go. */
static struct hold *next_hold(const char *point, struct hold *h)
{
    for (h = h ? h + 1 : holds; h < holds + holds_used; h++) {
        enum state state = state_of(h);

        if ((state == ARMED || state == HELD) && strcmp(h->point, point) == 0)
            return h;
    }
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
        if (!disarm(h, FREE))
            set_state(h, LET_GO);
}
