/* SPDX-License-Identifier: MIT */
/* The victim of kill_test: does one thing to a store, once, and stops before and after it.
 *
 *     victim URI DEED [MILLISECONDS]
 *
 * A program of its own, so that it is libweir as it is installed that is killed, at its own
 * instructions: without testpoints and without a harness. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store.h>

static const char *uri;
static int64_t patience_ns;
static struct weir_store *store;
static struct weir_lease lease;

static struct weir_lease_request request = {.name = "n"};

/* ---- before ---------------------------------------------------------------------------- */

static int open_store(void)
{
    return weir_store_open(uri, NULL, &store);
}

/* In a directory that is not there yet. */
static int open_fresh(void)
{
    static char fresh[128];

    snprintf(fresh, sizeof fresh, "%s/fresh", uri);
    return weir_store_open(fresh, NULL, &store);
}

static int open_forgetful(void)
{
    return weir_store_open(uri, &(struct weir_store_options){.forget_after_ns = 1}, &store);
}

static int acquire(void)
{
    return weir_lease_acquire(store, &request, WEIR_NO_WAIT, &lease);
}

static int release(void)
{
    return weir_lease_release(store, "n", lease.id);
}

static int hold(void)
{
    int r = open_store();

    return r < 0 ? r : acquire();
}

static int hold_ttl(void)
{
    request.ttl_ns = 3600 * WEIR_S;
    return hold();
}

/* The name is mapped, and nothing is held. */
static int know(void)
{
    int r = hold();

    return r < 0 ? r : release();
}

/* ---- deeds --------------------------------------------------------------------------------- */

static int acquire_ttl(void)
{
    request.ttl_ns = 3600 * WEIR_S;
    return acquire();
}

static int wait_in_vain(void)
{
    int r = weir_lease_acquire(store, &request, weir_within(patience_ns), &lease);

    return r == WEIR_ETIMEDOUT ? 0 : -1;
}

static int ask_in_vain(void)
{
    return acquire() == WEIR_ETIMEDOUT ? 0 : -1;
}

static int wait_and_have(void)
{
    return weir_lease_acquire(store, &request, WEIR_FOREVER, &lease);
}

static int renew(void)
{
    return weir_lease_renew(store, "n", &lease, 7200 * WEIR_S);
}

static int look_away(const struct weir_name_stats *stats, void *arg)
{
    (void)stats;
    (void)arg;
    return 0;
}

static int visit(void)
{
    return weir_store_visit(store, look_away, NULL);
}

static int resize(void)
{
    return weir_store_resize(store, "n", 3);
}

static int close_store(void)
{
    weir_store_close(store);
    return 0;
}

static int nothing(void)
{
    return 0;
}

static const struct deed {
    const char *name;
    int (*before)(void), (*act)(void);
} deeds[] = {
    {"open", nothing, open_store},
    {"open fresh", nothing, open_fresh},
    {"create", open_store, acquire},
    {"acquire", know, acquire},
    {"acquire with TTL", know, acquire_ttl},
    {"ask in vain", know, ask_in_vain},
    {"wait in vain", know, wait_in_vain},
    {"wait and have", know, wait_and_have},
    {"renew", hold_ttl, renew},
    {"release", hold, release},
    {"visit", know, visit},
    {"forget", open_forgetful, visit},
    {"resize", know, resize},
    {"close", hold, close_store},
};

static const struct deed *find(const char *name)
{
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return &deeds[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct deed *deed = argc >= 3 ? find(argv[2]) : NULL;
    pid_t self = getpid();

    if (deed == NULL)
        return 2;
    uri = argv[1];
    patience_ns = argc > 3 ? atoi(argv[3]) * WEIR_MS : 0;
    if (deed->before() < 0) {
        fprintf(stderr, "before %s: %s\n", deed->name, weir_store_why());
        return 3;
    }
    kill(self, SIGSTOP);
    int r = deed->act();
    kill(self, SIGSTOP);
    return r < 0 ? 1 : 0;
}
