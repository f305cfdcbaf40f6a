/* SPDX-License-Identifier: MIT */
#include "named/conformance/world.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/sanitizer.h"

/* ---- the world --------------------------------------------------------------------- */

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

struct weir_store *open_another(struct world *w)
{
    struct weir_store *store;

    CHECK_EQ(weir_store_open(w->uri, NULL, &store), 0);
    return store;
}

void reopen_forgetful(struct world *w, int64_t forget_after_ns)
{
    struct weir_store_options options = {.forget_after_ns = forget_after_ns};

    weir_store_close(w->store);
    CHECK_EQ(weir_store_open(w->uri, &options, &w->store), 0);
}

struct weir_runtime *runtime_of(struct world *w)
{
    if (w->runtime == NULL)
        CHECK_EQ(weir_runtime_open(NULL, &w->runtime), 0);
    return w->runtime;
}

/* Tasks that are left are cancelled, and that is as it should be. */
static void end_of_runtime(struct world *w)
{
    int r = w->runtime ? weir_runtime_close(w->runtime, WEIR_NO_WAIT) : 0;

    CHECK(r == 0 || r == WEIR_ETIMEDOUT);
}

void run_in_world(void (*row)(struct world *w))
{
    static struct world world;
    struct world *w = &world;
    int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");

    backend.begin(w);
    CHECK_EQ(weir_store_open(w->uri, NULL, &w->store), 0);
    row(w);
    end_of_runtime(w);
    test_join_all();
    weir_store_close(w->store);
    EVENTUALLY(entries("/proc/self/task") <= threads + TEST_TSAN); /* which has one of its own */
    CHECK_EQ(entries("/proc/self/fd"), descriptors + backend.kept_descriptors);
    backend.end(w);
}

/* ---- asking ------------------------------------------------------------------------ */

struct weir_lease_request ask(const char *name, uint64_t limit)
{
    return (struct weir_lease_request){
        .name = name, .limit = limit, .ttl_ns = backend.usual_ttl_ns};
}

struct weir_lease_request ask_weight(const char *name, uint64_t limit, uint64_t weight)
{
    struct weir_lease_request request = ask(name, limit);

    request.weight = weight;
    return request;
}

struct weir_lease_request ask_ttl(const char *name, uint64_t limit, int64_t ttl_ns)
{
    struct weir_lease_request request = ask(name, limit);

    request.ttl_ns = ttl_ns;
    return request;
}

struct weir_lease take_from(struct weir_store *store, struct weir_lease_request request)
{
    struct weir_lease lease;

    CHECK_EQ(weir_lease_acquire(store, &request, WEIR_NO_WAIT, &lease), 0);
    return lease;
}

struct weir_lease take(struct world *w, struct weir_lease_request request)
{
    return take_from(w->store, request);
}

void give_back(struct world *w, const char *name, const struct weir_lease *lease)
{
    CHECK_EQ(weir_lease_release(w->store, name, lease->id), 0);
}

int try_to_take(struct weir_store *store, struct weir_lease_request request)
{
    struct weir_lease lease;
    int r = weir_lease_acquire(store, &request, WEIR_NO_WAIT, &lease);

    if (r == 0)
        CHECK_EQ(weir_lease_release(store, request.name, lease.id), 0);
    return r;
}

static void asker_ask(struct asker *a)
{
    int r = weir_lease_acquire(a->store, &a->request, a->deadline, &a->lease);

    __atomic_store_n(&a->result, r, __ATOMIC_RELEASE);
}

static void asker_thread(void *arg)
{
    asker_ask(arg);
}

static int asker_task(void *arg)
{
    struct asker *a = arg;
    int r;

    asker_ask(a);
    r = weir_event_wait(&a->leave, WEIR_FOREVER);
    __atomic_store_n(&a->after, r, __ATOMIC_RELEASE);
    return 0;
}

static void asker_start_task(struct world *w, struct asker *a)
{
    CHECK_EQ(weir_runtime_spawn(runtime_of(w), asker_task, a, &a->task), 0);
    CHECK_EQ(weir_task_detach(a->task), 0); /* its handle is good until it has ended */
}

struct asker *begin_to_ask(struct world *w, struct weir_store *store, enum kind kind,
                           struct weir_lease_request request, struct weir_deadline deadline)
{
    struct asker *a = &w->askers[w->asked++];

    CHECK(w->asked <= ASKERS);
    *a = (struct asker){.store = store,
                        .request = request,
                        .deadline = deadline,
                        .leave = WEIR_EVENT_INIT,
                        .result = NOT_YET,
                        .after = NOT_YET};
    if (kind == TASK)
        asker_start_task(w, a);
    else
        test_spawn(asker_thread, a);
    return a;
}

struct asker *queue_up_at(struct world *w, struct weir_store *store, enum kind kind,
                          struct weir_lease_request request)
{
    size_t before = look_at(store, request.name).stats.waiters;
    struct asker *a = begin_to_ask(w, store, kind, request, WEIR_FOREVER);

    EVENTUALLY(look_at(store, request.name).stats.waiters == before + 1);
    return a;
}

struct asker *queue_up(struct world *w, enum kind kind, struct weir_lease_request request)
{
    return queue_up_at(w, w->store, kind, request);
}

bool is_answered(const struct asker *a)
{
    return __atomic_load_n(&a->result, __ATOMIC_ACQUIRE) != NOT_YET;
}

int answer_of(struct asker *a)
{
    EVENTUALLY(is_answered(a));
    return a->result;
}

void leave(struct asker *a)
{
    weir_event_set(&a->leave);
    EVENTUALLY(__atomic_load_n(&a->after, __ATOMIC_ACQUIRE) != NOT_YET);
}

/* ---- looking ------------------------------------------------------------------------ */

struct glance {
    const char *name;
    struct view *view;
};

static size_t shown(size_t n)
{
    return n < SHOWN ? n : SHOWN;
}

static int glance_at(const struct weir_name_stats *stats, void *arg)
{
    struct glance *g = arg;

    if (strcmp(stats->name, g->name) != 0)
        return 0;
    CHECK(!g->view->there); /* no name is shown twice */
    g->view->there = true;
    g->view->stats = *stats;
    if (stats->leases > 0)
        memcpy(g->view->lease, stats->lease, shown(stats->leases) * sizeof *stats->lease);
    if (stats->waiters > 0)
        memcpy(g->view->waiter, stats->waiter, shown(stats->waiters) * sizeof *stats->waiter);
    g->view->stats.name = NULL;
    g->view->stats.lease = g->view->stats.waiter = NULL;
    return 0;
}

struct view look_at(struct weir_store *store, const char *name)
{
    struct view view = {0};
    struct glance g = {name, &view};

    CHECK_EQ(weir_store_visit(store, glance_at, &g), 0);
    return view;
}

struct view look(struct world *w, const char *name)
{
    return look_at(w->store, name);
}

uint64_t held(struct world *w, const char *name)
{
    return look(w, name).stats.held;
}

size_t waiting(struct world *w, const char *name)
{
    return look(w, name).stats.waiters;
}

static int count_name(const struct weir_name_stats *stats, void *arg)
{
    (void)stats;
    ++*(size_t *)arg;
    return 0;
}

size_t names_in(struct weir_store *store)
{
    size_t n = 0;

    CHECK_EQ(weir_store_visit(store, count_name, &n), 0);
    return n;
}

/* ---- telling ------------------------------------------------------------------------ */

enum { KEPT = 64 };

static struct {
    pthread_mutex_t lock;
    struct told told[KEPT];
    int n;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

int this_thread(void)
{
    return (int)gettid();
}

static void hear(const struct weir_notice *n, void *arg)
{
    CHECK(arg == &heard);
    pthread_mutex_lock(&heard.lock);
    CHECK(heard.n < KEPT);
    struct told *t = &heard.told[heard.n++];
    *t = (struct told){.what = n->what,
                       .limit = n->limit,
                       .token = n->token,
                       .waited_ns = n->waited_ns,
                       .slot = n->slot,
                       .thread = this_thread()};
    snprintf(t->name, sizeof t->name, "%s", n->name);
    snprintf(t->id, sizeof t->id, "%s", n->id);
    snprintf(t->label, sizeof t->label, "%s", n->label);
    snprintf(t->task, sizeof t->task, "%s", n->task);
    pthread_mutex_unlock(&heard.lock);
}

void listen_to_notices(void)
{
    weir_observe(hear, &heard);
}

/* The nth of a kind and how many there are. */
static int find_notice(enum weir_notice_kind what, int nth, struct told *ret_told)
{
    int n = 0;

    pthread_mutex_lock(&heard.lock);
    for (int i = 0; i < heard.n; i++)
        if (heard.told[i].what == what && n++ == nth)
            *ret_told = heard.told[i];
    pthread_mutex_unlock(&heard.lock);
    return n;
}

int notices(enum weir_notice_kind what)
{
    struct told none;

    return find_notice(what, -1, &none);
}

struct told notice(enum weir_notice_kind what, int nth)
{
    struct told told = {0};

    EVENTUALLY(find_notice(what, nth, &told) > nth);
    return told;
}

void note_loss(const char *name, const struct weir_lease *lease, void *arg)
{
    struct loss *loss = arg;

    snprintf(loss->name, sizeof loss->name, "%s", name);
    loss->lease = *lease;
    loss->thread = this_thread();
    __atomic_add_fetch(&loss->times, 1, __ATOMIC_RELEASE);
}

int losses(const struct loss *loss)
{
    return __atomic_load_n(&loss->times, __ATOMIC_ACQUIRE);
}

/* ---- other things --------------------------------------------------------------------- */

void in_a_child(struct world *w, void (*fn)(struct world *w))
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        fn(w);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}
