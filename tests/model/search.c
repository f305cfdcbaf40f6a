/* SPDX-License-Identifier: MIT */
/* Who makes the next step: depth-first over all schedules, at random, or as a replay
 * string says.  See engine.h. */
#include "engine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES_MAX = 8192, STATES_MAX = 1 << 23 };

/* A pick that had alternatives. */
struct node {
    uint8_t picks[PICKS_MAX];
    uint8_t count, chosen;
};

/* States gone into, and with how many preemptions to spare: open addressing. */
struct met {
    uint64_t state; /* 0 is empty */
    int32_t spare;
};

static struct {
    struct search how;
    struct node path[CHOICES_MAX];
    int length, depth;  /* of the path; how far along it we are */
    int preemptions;    /* spent in this execution */
    const char *replay; /* the rest of it */
    char told;          /* its last letter */
    int repeat;         /* which still stands for so many picks */
    uint64_t random;
    struct met *met;
    size_t met_size, met_count;
} search;

/* ---- states met before --------------------------------------------------------------- */

static struct met *met_slot(struct met *table, size_t size, uint64_t state)
{
    size_t i = state & (size - 1);

    while (table[i].state && table[i].state != state)
        i = (i + 1) & (size - 1);
    return &table[i];
}

static void met_grow(void)
{
    size_t size = search.met_size ? search.met_size * 2 : 1 << 12;
    struct met *table = calloc(size, sizeof *table);

    if (table == NULL)
        abort();
    for (size_t i = 0; i < search.met_size; i++) {
        if (search.met[i].state)
            *met_slot(table, size, search.met[i].state) = search.met[i];
    }
    free(search.met);
    search.met = table;
    search.met_size = size;
}

/* Has this state been gone into with as much to spare?  If not, it is now.  When there
 * are too many to remember, those not remembered are gone into again. */
static bool was_met(uint64_t state, int spare)
{
    if (search.met_count * 2 >= search.met_size && search.met_size < STATES_MAX)
        met_grow();

    struct met *m = met_slot(search.met, search.met_size, state | 1);
    if (m->state && m->spare >= spare)
        return true;
    if (m->state == 0) {
        if (search.met_count * 8 >= search.met_size * 7)
            return false;
        search.met_count++;
    }
    *m = (struct met){state | 1, spare};
    return false;
}

static void forget_met(void)
{
    free(search.met);
    search.met = NULL;
    search.met_size = search.met_count = 0;
}

/* ---- three ways to pick ----------------------------------------------------------------- */

static int spare(void)
{
    return search.how.preemptions < 0 ? 1 : search.how.preemptions - search.preemptions;
}

bool search_may_preempt(void)
{
    return search.how.replay || search.how.random_walks || spare() > 0;
}

static int pick_along_path(const uint8_t *picks, int count)
{
    struct node *n = &search.path[search.depth];

    if (search.depth == search.length) {
        if (!search.how.unpruned && was_met(sched_state(), spare()))
            return -1;
        if (search.length == CHOICES_MAX)
            model_fail("more than %d choices", CHOICES_MAX);
        *n = (struct node){.count = (uint8_t)count};
        memcpy(n->picks, picks, (size_t)count);
        search.length++;
    }
    if (n->count != count || memcmp(n->picks, picks, (size_t)count) != 0)
        model_fail("the scenario is not deterministic");
    search.depth++;
    return n->picks[n->chosen];
}

static uint64_t next_random(void)
{
    search.random ^= search.random << 13;
    search.random ^= search.random >> 7;
    search.random ^= search.random << 17;
    return search.random;
}

/* Mostly on with the same flow: faults need few changes, but at the right places. */
static int pick_at_random(const uint8_t *picks, int count, bool held)
{
    if (held && next_random() % 8 != 0)
        return picks[0];
    return picks[next_random() % (unsigned)count];
}

/* "A12" is twelve picks of A; without a number it is one. */
static char next_told(void)
{
    if (search.repeat == 0) {
        if (*search.replay == 0)
            return 0;
        search.told = *search.replay++;
        search.repeat = isdigit((unsigned char)*search.replay)
                            ? (int)strtol(search.replay, (char **)&search.replay, 10)
                            : 1;
    }
    search.repeat--;
    return search.told;
}

static int pick_as_told(const uint8_t *picks, int count)
{
    char told = next_told();

    if (told == 0)
        return picks[0]; /* it ends here; go on as depth-first begins */
    for (int i = 0; i < count; i++) {
        if (pick_letter(picks[i]) == told)
            return picks[i];
    }
    model_fail("the replay string does not fit: %c cannot go on here", told);
}

int search_pick(const uint8_t *picks, int count, bool held)
{
    int pick = picks[0];

    if (search.how.replay)
        pick = pick_as_told(picks, count);
    else if (count > 1)
        pick = search.how.random_walks ? pick_at_random(picks, count, held)
                                       : pick_along_path(picks, count);
    search.preemptions += held && pick != picks[0] && pick < TIME;
    return pick;
}

/* ---- all schedules ------------------------------------------------------------------------- */

/* The next alternative of the deepest pick that has one. */
static bool next_path(void)
{
    while (search.length > 0) {
        struct node *n = &search.path[search.length - 1];

        if (++n->chosen < n->count)
            return true;
        search.length--;
    }
    return false;
}

static bool another(uint64_t schedules)
{
    if (search.how.replay)
        return false;
    if (search.how.random_walks)
        return schedules < search.how.random_walks;
    return next_path();
}

static enum verdict run_one(const struct scenario *scenario, struct tally *tally)
{
    search.depth = search.preemptions = search.repeat = 0;
    search.replay = search.how.replay;
    enum verdict verdict = sched_run(scenario);

    if (verdict == CLEAN && !was_met(mix(sched_ending(), FLOWS_MAX), 0)) {
        tally->endings++;
        tally->fingerprint += sched_ending();
    }
    tally->schedules++;
    return verdict;
}

struct tally search_all(const struct scenario *scenario, const struct search *how)
{
    struct tally tally = {0};

    forget_met();
    search.how = *how;
    search.random = how->seed | 1;
    search.length = 0;
    do {
        tally.faulty = run_one(scenario, &tally) == FAULTY;
    } while (!tally.faulty && another(tally.schedules));
    return tally;
}
