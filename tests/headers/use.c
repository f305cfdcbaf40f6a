/* SPDX-License-Identifier: MIT */
/* What the public headers define, used in the way of a program, which may be C or C++. */
#include <weir/weir.h>

static struct weir_sem slots = WEIR_SEM_INIT(3);
static struct weir_event ready = WEIR_EVENT_INIT;
static struct weir_revent again = WEIR_REVENT_INIT;
static struct weir_countdown running = WEIR_COUNTDOWN_INIT(2);
static struct weir_latch gate = WEIR_LATCH_INIT(1);
static struct weir_barrier step = WEIR_BARRIER_INIT(1);
static struct weir_mutex mutex = WEIR_MUTEX_INIT;
static struct weir_cond changed = WEIR_COND_INIT;

static int nested_holds(void)
{
    int n = 0;

    WEIR_HOLD(&slots, 1) {
        n++;
        WEIR_HOLD(&slots, 2)
            n++;
    }
    return n;
}

/* The store may be any expression, and the name of the variable any name. */
static uint64_t nested_leases(void)
{
    struct {
        struct weir_store *of_mine;
    } box = {weir_store_default()};
    static struct weir_lease_request ask; /* of zeros */
    uint64_t tokens = 0;

    ask.name = "n";
    ask.limit = 2;
    WEIR_SCOPED_LEASE(outer, box.of_mine, &ask) {
        WEIR_SCOPED_LEASE(inner, weir_store_default(), &ask)
            tokens = outer->token + inner->token;
    }
    return tokens;
}

int main(void)
{
    struct weir_deadline soon = weir_within(5 * WEIR_MS);

    if (weir_event_wait(&ready, WEIR_NO_WAIT) != WEIR_ETIMEDOUT ||
        weir_revent_wait(&again, soon) != WEIR_ETIMEDOUT ||
        weir_countdown_down(&running, 2) != WEIR_OK ||
        weir_countdown_wait(&running, WEIR_FOREVER) != WEIR_OK ||
        weir_latch_wait(&gate, WEIR_FOREVER) != WEIR_OK ||
        weir_barrier_wait(&step, WEIR_FOREVER, 0) != WEIR_OK ||
        weir_mutex_lock(&mutex, WEIR_FOREVER) != WEIR_OK ||
        weir_cond_wait(&changed, &mutex, WEIR_NO_WAIT) != WEIR_ETIMEDOUT)
        return 1;
    weir_mutex_unlock(&mutex);
    return nested_holds() == 2 && nested_leases() > 0 ? 0 : 1;
}
