/* SPDX-License-Identifier: MIT */
/* lease_ttl - a lease that ends by itself, and a holder that is told. */
#include "example.h"

// [begin]
// Called on a thread of the store.
static void stop(const char *n, const struct weir_lease *l, void *p)
{
    printf("%s: lost slot %d\n", n, (int)l->slot);
    weir_event_set(p);
}

static int work(struct weir_store *store)
{
    struct weir_event lost = WEIR_EVENT_INIT;
    struct weir_lease_request ask = {
        .name = "job",
        .ttl_ns = 60 * WEIR_S,
        .on_lost = stop,
        .arg = &lost,
    };
    struct weir_lease lease;
    int r = weir_lease_acquire(store, &ask, WEIR_FOREVER, &lease);

    for (int step = 1; r == 0 && step <= 3; step++) {
        printf("step %d\n", step);
        r = weir_lease_renew(store, "job", &lease, 60 * WEIR_S);
    }
    if (r == 0) // or .flags = WEIR_LEASE_RENEW: it renews itself
        r = weir_lease_renew(store, "job", &lease, 50 * WEIR_MS);
    if (r == 0)
        r = weir_event_wait(&lost, WEIR_FOREVER); // we are late
    if (r == 0)
        r = weir_lease_renew(store, "job", &lease, 60 * WEIR_S);
    return r; // what is lost does not come back
}
// [end]

int main(void)
{
    struct weir_store *store;

    MUST(weir_store_open("mem:", NULL, &store) == 0);
    printf("work: %s\n", weir_strerror(work(store)));
    weir_store_close(store);
    return 0;
}
