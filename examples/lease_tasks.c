/* SPDX-License-Identifier: MIT */
/* lease_tasks - as many requests to each host at once as it bears, by its name. */
#include <string.h>

#include "example.h"

static int running[2], most[2], done;

/* Takes a moment, as a network would. */
static void get(const char *host)
{
    int i = strcmp(host, "slow.example") == 0;

    if (++running[i] > most[i])
        most[i] = running[i];
    weir_task_sleep(weir_within(WEIR_MS));
    running[i]--;
    done++;
}

// [begin]
static int fetch(void *ctx, size_t index)
{
    const char *const *hosts = ctx;
    struct weir_lease_request ask = {
        .name = hosts[index],
        .limit = hosts[index][0] == 's' ? 1 : 3,
    };
    struct weir_store *store = weir_store_default();

    WEIR_SCOPED_LEASE(lease, store, &ask) {
        if (lease->slot < ask.limit) // 0 to 2: a connection each
            get(hosts[index]);
    }
    return 0;
}

static int fetch_all(void *arg)
{
    return weir_map_limit(9, 9, fetch, arg, WEIR_FOREVER);
}
// [end]

int main(void)
{
    const char *fast = "fast.example", *slow = "slow.example";
    const char *hosts[9] = {fast, slow, fast, fast, fast, slow, fast, fast, slow};

    MUST(weir_run(NULL, fetch_all, hosts) == 0);
    printf("%d requests\n", done);
    printf("%s: at most %d at once\n", fast, most[0]);
    printf("%s: at most %d at once\n", slow, most[1]);
    return 0;
}
