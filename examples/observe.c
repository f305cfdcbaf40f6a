/* SPDX-License-Identifier: MIT */
/* observe - log what happens to leases, and find the task that forgets to give one back. */
#include "example.h"

// [begin]
static void log_it(const struct weir_notice *n, void *arg)
{
    const char *name = n->name, *who = n->label;
    int slot = (int)n->slot, limit = (int)n->limit;

    (void)arg;
    if (n->what == WEIR_NOTICE_ACQUIRED)
        printf("%s: %s has slot %d of %d\n", name, who, slot, limit);
    else if (n->what == WEIR_NOTICE_RELEASED)
        printf("%s: %s is done\n", name, who);
    else if (n->what == WEIR_NOTICE_ABANDONED)
        printf("%s: %s was left behind by %s\n", name, who, n->task);
}
// [end]

static struct weir_store *store;

static int take(const char *label, struct weir_lease *lease)
{
    struct weir_lease_request ask = {.name = "database", .limit = 8, .label = label};

    return weir_lease_acquire(store, &ask, WEIR_FOREVER, lease);
}

static int remember(void)
{
    struct weir_lease lease;
    int r = take("report", &lease);

    return r < 0 ? r : weir_lease_release(store, "database", lease.id);
}

static int forget(void *arg)
{
    struct weir_lease lease;

    (void)arg;
    weir_task_set_name("importer");
    return take("import", &lease);
}

int main(void)
{
    store = weir_store_default();
    MUST(store != NULL);
    weir_observe(log_it, NULL);
    MUST(remember() == 0);
    MUST(weir_run(NULL, forget, NULL) == 0);
    return 0;
}
