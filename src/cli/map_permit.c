/* SPDX-License-Identifier: MIT */
#include "cli/map_permit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/sem.h>

#include "base/atomic.h"
#include "base/id.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/map_bar.h"
#include "cli/map_buffer.h"
#include "cli/say.h"
#include "cli/units.h"

enum state { IDLE, IN_LINE, ANSWERED };

static struct {
    struct weir_store *store;
    struct weir_lease_request request;
    uint64_t limit;
    bool waits_for; /* -w was given */
    int64_t wait_ns;
    int lost_fd[2];

    /* between us and the thread, which has it from `asked` until `state` is ANSWERED */
    int state; /* (a) */
    int event_fd;
    struct weir_sem asked;
    char id[WEIR_ID_LENGTH + 1];
    struct weir_lease lease;
    int result;
    char why[256];
} permit;

/* ---- opening ------------------------------------------------------------------------------ */

static void on_lost(const char *name, const struct weir_lease *lease, void *arg)
{
    ssize_t written = write(permit.lost_fd[1], lease->id, WEIR_ID_LENGTH);

    (void)name;
    (void)arg;
    (void)written;
}

void permit_open(const struct options *o)
{
    const struct option_value *v = o->value;

    permit.store = open_store(o);
    permit.request = (struct weir_lease_request){
        .name = v[OPT_SEM].text,
        .limit = (uint64_t)v[OPT_SEM_LIMIT].number,
        .weight = (uint64_t)v[OPT_WEIGHT].number,
        .ttl_ns = v[OPT_TTL].number,
        .label = "map",
        .ret_limit = &permit.limit,
    };
    if (permit.request.ttl_ns) {
        permit.request.flags = WEIR_LEASE_RENEW;
        permit.request.on_lost = on_lost;
    }
    permit.waits_for = v[OPT_WAIT].given;
    permit.wait_ns = v[OPT_WAIT].number;
    permit.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (permit.event_fd < 0 || pipe2(permit.lost_fd, O_CLOEXEC | O_NONBLOCK) < 0)
        fail(EXIT_WEIR, "cannot begin: %s", strerror(errno));
}

int permit_fd(void)
{
    return permit.event_fd;
}

int permit_lost_fd(void)
{
    return permit.lost_fd[0];
}

int permit_store_fd(void)
{
    return permit.store ? weir_store_fd(permit.store) : -1;
}

/* ---- standing in line ----------------------------------------------------------------------- */

static void *stand_in_line(void *arg)
{
    uint64_t one = 1;

    (void)arg;
    for (;;) {
        if (weir_sem_acquire(&permit.asked, 1, WEIR_FOREVER) < 0)
            return NULL;
        struct weir_lease_request request = permit.request;
        struct weir_deadline deadline = WEIR_FOREVER;
        if (permit.waits_for)
            deadline = weir_within(permit.wait_ns);
        request.id = permit.id;
        permit.result = weir_lease_acquire(permit.store, &request, deadline, &permit.lease);
        snprintf(permit.why, sizeof permit.why, "%s", weir_store_why());
        atomic_put(&permit.state, ANSWERED);
        ssize_t written = write(permit.event_fd, &one, sizeof one);
        (void)written;
    }
}

static void ask(void)
{
    static bool has_thread;
    uint8_t id[ID_BYTES];
    pthread_t thread;

    if (!has_thread) {
        weir_sem_init(&permit.asked, 1);
        if (weir_sem_acquire(&permit.asked, 1, WEIR_NO_WAIT) < 0 ||
            thread_start(&thread, stand_in_line, NULL) != 0)
            fail(EXIT_WEIR, "cannot start a thread");
    }
    has_thread = true;
    id_make(id); /* of our own, to be called back by */
    id_print(id, permit.id);
    permit.state = IN_LINE;
    weir_sem_release(&permit.asked, 1);
}

static void say_busy(void)
{
    char text[DURATION_BYTES];

    say("no slot of \"%s\" was free within %s", permit.request.name,
        print_duration(permit.wait_ns, text));
}

/* Why there is no lease, and which exit status that is, negative. */
static int refused(int r)
{
    const char *name = permit.request.name;

    bar_hide();
    switch (r) {
    case WEIR_EMISMATCH:
        say("\"%s\" is in use with a limit of %llu, not %llu: leave --limit out", name,
            (unsigned long long)permit.limit, (unsigned long long)permit.request.limit);
        return -EXIT_MISMATCH;
    case WEIR_ETIMEDOUT:
        say_busy();
        return -EXIT_BUSY;
    case WEIR_ECANCELED:
        say("somebody evicted us from the queue of \"%s\"", name);
        return -EXIT_BUSY;
    default:
        say("%s", *permit.why ? permit.why : weir_strerror(r));
        return r == WEIR_EUNREACHABLE ? -EXIT_UNREACHABLE : -EXIT_WEIR;
    }
}

void permit_heard(void)
{
    uint64_t count;
    ssize_t got = read(permit.event_fd, &count, sizeof count);

    (void)got; /* there need not be anything: what it is about is in `state` */
}

static int answered(struct weir_lease *ret)
{
    permit.state = IDLE;
    if (permit.result < 0)
        return refused(permit.result);
    *ret = permit.lease;
    return 1;
}

int permit_take(struct weir_lease *ret)
{
    int state = atomic_get(&permit.state);

    if (state == IN_LINE)
        return 0;
    if (state == ANSWERED)
        return answered(ret);
    int r = weir_lease_acquire(permit.store, &permit.request, WEIR_NO_WAIT, ret);
    if (r == 0)
        return 1;
    if (r == WEIR_ETIMEDOUT && !(permit.waits_for && permit.wait_ns == 0)) {
        ask();
        return 0;
    }
    snprintf(permit.why, sizeof permit.why, "%s", weir_store_why());
    return refused(r);
}

void permit_give(struct weir_lease *lease)
{
    weir_lease_release(permit.store, permit.request.name, lease->id);
    lease->id[0] = '\0';
}

void permit_stop(void)
{
    struct weir_lease lease;

    if (atomic_get(&permit.state) == IN_LINE)
        weir_store_evict(permit.store, permit.request.name, permit.id);
    else if (atomic_get(&permit.state) == ANSWERED && permit.result == 0 && answered(&lease) == 1)
        permit_give(&lease);
}

bool permit_next_lost(char ret_id[WEIR_ID_LENGTH + 1])
{
    ret_id[WEIR_ID_LENGTH] = '\0';
    return read(permit.lost_fd[0], ret_id, WEIR_ID_LENGTH) == WEIR_ID_LENGTH;
}

/* ---- what jobs are told ------------------------------------------------------------------------ */

enum { VARIABLES = 5, VARIABLE_BYTES = WEIR_NAME_MAX + 16 };

char *const *permit_environment(const struct weir_lease *lease)
{
    static char text[VARIABLES][VARIABLE_BYTES];
    static char **all;

    if (all == NULL) {
        size_t count = 0, kept = VARIABLES;

        while (environ[count])
            count++;
        all = must_resize(NULL, (count + VARIABLES + 1) * sizeof *all);
        for (size_t i = 0; i < VARIABLES; i++)
            all[i] = text[i];
        for (size_t i = 0; i < count; i++)
            if (strncmp(environ[i], "WEIR_", 5) != 0 || strncmp(environ[i], "WEIR_STORE=", 11) == 0)
                all[kept++] = environ[i];
        all[kept] = NULL;
    }
    snprintf(text[0], VARIABLE_BYTES, "WEIR_NAME=%s", permit.request.name);
    snprintf(text[1], VARIABLE_BYTES, "WEIR_LEASE=%s", lease->id);
    snprintf(text[2], VARIABLE_BYTES, "WEIR_SLOT=%u", lease->slot);
    snprintf(text[3], VARIABLE_BYTES, "WEIR_TOKEN=%llu", (unsigned long long)lease->token);
    snprintf(text[4], VARIABLE_BYTES, "WEIR_LIMIT=%llu", (unsigned long long)permit.limit);
    return all;
}
