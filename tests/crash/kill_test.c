/* SPDX-License-Identifier: MIT */
/* SIGKILL after exactly k instructions, for every k, of everything one does to a store.
 *
 * A victim (victim.c) stops before its deed.  The stage is set; then it is led on one
 * instruction at a time, and killed.  Whatever it was doing, the survivors must have all
 * permits, nobody may have more, who waits must be served, and all invariants must hold.
 *
 * `make test` kills at a few places in each deed, others each time; `make soak` at all. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/atomic.h"
#include "crash/arena.h"
#include "crash/lead.h"
#include "named/backend/shm.h"

enum { A_FEW = 40, WAITERS = 2 };

/* ---- the stage --------------------------------------------------------------------------- */

struct stage {
    struct arena arena;
    const struct scene *scene;
    struct weir_store *forgetful;
    struct weir_lease *held; /* by the survivor */
    uint64_t holds;
    pid_t waiter[WAITERS], other;
    struct shared {
        uint64_t token[WAITERS];
        int64_t had_at_ns[WAITERS];
    } * shared;
    int64_t killed_at_ns, longest_ns; /* from a kill until a waiter was served */
    struct path path;
    long kills, in_lock, strays;
};

/* A deed, and what the survivor does around it. */
struct scene {
    const char *title, *deed;
    uint64_t limit;
    void (*before)(struct stage *s);  /* the victim is started; may be NULL   */
    void (*arrange)(struct stage *s); /* it stands before its deed; the same  */
    void (*after)(struct stage *s);   /* it is dead                           */
    long stride;                      /* from kill to kill; default 1         */
};

static void hold(struct stage *s, uint64_t count)
{
    s->held = calloc(count, sizeof *s->held);
    s->holds = count;
    for (uint64_t i = 0; i < count; i++)
        s->held[i] = arena_take(&s->arena, s->arena.store, "n", s->scene->limit);
}

static void hold_all(struct stage *s)
{
    hold(s, s->scene->limit);
}

static void let_go(struct stage *s)
{
    for (uint64_t i = 0; i < s->holds; i++)
        CHECK_EQ(weir_lease_release(s->arena.store, "n", s->held[i].id), 0);
    free(s->held);
    s->held = NULL;
    s->holds = 0;
}

static void forget_all(struct stage *s)
{
    arena_visit(s->forgetful);
    CHECK_EQ(arena_files(&s->arena), 0);
}

/* Nobody sleeps as far as anybody knows, so that who does is seen to. */
static void clear_asleep(struct stage *s)
{
    ledger *l = arena_lock(s->arena.store, "n");

    for (uint32_t i = 1; i <= l->head->fresh; i++)
        atomic_put(&l->entries[i].asleep, 0);
    arena_unlock(s->arena.store, "n");
}

static uint32_t asleep(struct weir_store *store)
{
    const ledger *l = arena_lock(store, "n");
    uint32_t count = 0;

    for (uint32_t i = l->head->queue.first; i; i = l->entries[i].next)
        count += atomic_get(&l->entries[i].asleep);
    arena_unlock(store, "n");
    return count;
}

/* ---- waiters ------------------------------------------------------------------------------- */

struct waiting {
    struct stage *stage;
    int i;
};

static void wait_for_it(void *arg)
{
    const struct waiting *w = arg;
    struct arena *a = &w->stage->arena;

    a->store = arena_open(a);
    struct weir_lease lease = arena_take(a, a->store, "n", 0);
    w->stage->shared->had_at_ns[w->i] = weir_now_ns();
    w->stage->shared->token[w->i] = lease.token;
    CHECK_EQ(weir_lease_release(a->store, "n", lease.id), 0);
    weir_store_close(a->store);
}

static void start_waiters(struct stage *s)
{
    clear_asleep(s);
    for (int i = 0; i < WAITERS; i++) {
        struct waiting w = {s, i};

        s->shared->token[i] = 0;
        s->waiter[i] = arena_start(wait_for_it, &w);
        EVENTUALLY(asleep(s->arena.store) == (uint32_t)i + 1);
    }
}

/* They were served, in their order. */
static void join_waiters(struct stage *s)
{
    for (int i = 0; i < WAITERS; i++) {
        int64_t took_ns;

        arena_join(s->waiter[i]);
        CHECK(s->shared->token[i] > s->arena.last_token);
        s->arena.last_token = s->shared->token[i];
        took_ns = s->shared->had_at_ns[i] - s->killed_at_ns;
        if (took_ns > s->longest_ns)
            s->longest_ns = took_ns;
    }
}

/* ---- one kill, and all --------------------------------------------------------------------- */

static void check_all(struct stage *s)
{
    arena_check(&s->arena, "n", s->scene->limit);
}

/* `patience` is how many milliseconds the victim waits, if it does.  Not too few: step by
 * step, it takes long to come to that.  Not so many that it looks again on its own. */
static pid_t set_stage(struct stage *s, const char *patience)
{
    const char *arguments[] = {VICTIM, s->arena.uri, s->scene->deed, patience, NULL};

    if (s->scene->before)
        s->scene->before(s);
    pid_t pid = lead_start(arguments);
    if (s->scene->arrange)
        s->scene->arrange(s);
    return pid;
}

static void rehearse(struct stage *s)
{
    pid_t pid = set_stage(s, "200");

    path_learn(&s->path, pid);
    lead_home(pid);
    s->killed_at_ns = weir_now_ns();
    s->scene->after(s);
}

static void kill_before(struct stage *s, long k)
{
    pid_t pid = set_stage(s, "20");

    s->strays += !path_follow(&s->path, pid, k);
    s->killed_at_ns = weir_now_ns();
    arena_kill(pid);
    s->kills++;
    s->in_lock += arena_lock_is_orphaned(s->arena.store, "n");
    arena_prove(s->arena.store, "n");
    s->scene->after(s);
}

static long stride_for(const struct scene *scene, long length)
{
    long stride = scene->stride ? scene->stride : 1;

    return test_scaled(1) > 1 ? stride : stride * (length / A_FEW + 1);
}

/* All on one CPU: a step is a switch then, and no message to another. */
static void stay_here(void)
{
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    CHECK_EQ(sched_setaffinity(0, sizeof here, &here), 0);
}

static void play(const struct scene *scene)
{
    struct stage s = {.scene = scene, .shared = arena_share(sizeof *s.shared)};

    stay_here();
    arena_begin(&s.arena);
    s.forgetful = arena_open_forgetful(&s.arena);
    arena_check(&s.arena, "n", scene->limit);
    rehearse(&s);
    long stride = stride_for(scene, s.path.length);
    for (long k = (long)test_random((uint32_t)stride); k < s.path.length; k += stride)
        kill_before(&s, k);
    printf("%s: %ld instructions, killed at %ld, %ld with the lock", scene->title, s.path.length,
           s.kills - s.strays, s.in_lock);
    if (s.strays)
        printf(", %ld elsewhere", s.strays);
    if (s.longest_ns)
        printf("; next one served after at most %.1f ms", (double)s.longest_ns / 1e6);
    printf("\n");
    path_forget(&s.path);
    weir_store_close(s.forgetful);
    arena_end(&s.arena);
}

/* ---- acquire, release, hand-off --------------------------------------------------------------- */

static void hold_one(struct stage *s)
{
    hold(s, 1);
}

static void let_one_go_and_check(struct stage *s)
{
    let_go(s);
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_acquires_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "acquire",
        .deed = "acquire",
        .limit = 3,
        .arrange = hold_one,
        .after = let_one_go_and_check,
    });
}

TEST_WITHIN(whoever_dies_while_it_acquires_with_a_ttl_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "acquire with TTL",
        .deed = "acquire with TTL",
        .limit = 3,
        .arrange = hold_one,
        .after = let_one_go_and_check,
    });
}

TEST_WITHIN(whoever_dies_while_it_releases_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "release",
        .deed = "release",
        .limit = 3,
        .arrange = hold_one,
        .after = let_one_go_and_check,
    });
}

static void join_and_check(struct stage *s)
{
    join_waiters(s);
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_hands_over_has_handed_over, 60)
{
    play(&(struct scene){
        .title = "hand-off",
        .deed = "release",
        .limit = 1,
        .arrange = start_waiters,
        .after = join_and_check,
    });
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* The victim comes last in the queue. */
static void hold_all_and_start_waiters(struct stage *s)
{
    hold_all(s);
    start_waiters(s);
}

static void let_go_and_check(struct stage *s)
{
    s->killed_at_ns = weir_now_ns();
    let_go(s);
    join_and_check(s);
}

TEST_WITHIN(whoever_dies_while_it_waits_in_vain_is_in_nobodys_way, 60)
{
    play(&(struct scene){
        .title = "queue and time out",
        .deed = "wait in vain",
        .limit = 2,
        .arrange = hold_all_and_start_waiters,
        .after = let_go_and_check,
    });
}

/* Holds it until somebody sleeps for it. */
static void hold_until_wanted(void *arg)
{
    struct stage *s = arg;

    s->arena.store = arena_open(&s->arena);
    hold(s, 1);
    s->shared->token[0] = s->held[0].token;
    EVENTUALLY(asleep(s->arena.store) == 1);
    let_go(s);
    weir_store_close(s->arena.store);
}

static void start_holder(struct stage *s)
{
    clear_asleep(s);
    s->shared->token[0] = 0;
    s->other = arena_start(hold_until_wanted, s);
    EVENTUALLY(atomic_get(&s->shared->token[0]) != 0);
    s->arena.last_token = s->shared->token[0];
}

static void kill_holder_and_check(struct stage *s)
{
    arena_kill(s->other);
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_is_served_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "queue and be served",
        .deed = "wait and have",
        .limit = 1,
        .arrange = start_holder,
        .after = kill_holder_and_check,
    });
}

/* ---- the rest of what one does to a lease --------------------------------------------------- */

TEST_WITHIN(whoever_dies_while_it_renews_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "renew",
        .deed = "renew",
        .limit = 3,
        .arrange = hold_one,
        .after = let_one_go_and_check,
    });
}

TEST_WITHIN(whoever_dies_while_it_looks_has_changed_nothing, 60)
{
    play(&(struct scene){
        .title = "visit",
        .deed = "visit",
        .limit = 3,
        .arrange = hold_one,
        .after = let_one_go_and_check,
    });
}

/* Whoever is served by one who is not its predecessor, and who dies before it can tell, looks
 * by itself half a second later.  Hence not all. */
TEST_WITHIN(whoever_dies_while_it_resizes_leaves_one_limit_or_the_other, 60)
{
    play(&(struct scene){
        .title = "resize",
        .deed = "resize",
        .limit = 2,
        .arrange = hold_all_and_start_waiters,
        .after = let_go_and_check,
        .stride = 4,
    });
}

TEST_WITHIN(whoever_dies_while_it_closes_holds_nothing, 60)
{
    play(&(struct scene){
        .title = "close",
        .deed = "close",
        .limit = 1,
        .arrange = start_waiters,
        .after = join_and_check,
    });
}

/* ---- names and files ------------------------------------------------------------------------- */

TEST_WITHIN(whoever_dies_while_it_makes_a_name_leaves_it_whole_or_not_at_all, 60)
{
    play(&(struct scene){
        .title = "make a name",
        .deed = "create",
        .limit = 2,
        .before = forget_all,
        .after = check_all,
    });
}

/* Tokens from the future, which no clock can give: who forgets them begins again below. */
static void use_it(struct stage *s)
{
    ledger *l = arena_lock(s->arena.store, "n");

    if (l->head->last_token < UINT64_C(1) << 60)
        l->head->last_token = UINT64_C(1) << 60;
    arena_unlock(s->arena.store, "n");
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_forgets_a_name_has_not_forgotten_its_tokens, 60)
{
    play(&(struct scene){
        .title = "clean up",
        .deed = "forget",
        .limit = 2,
        .before = use_it,
        .after = check_all,
    });
}

enum { ROOM = SHM_FIRST_ENTRIES - 1 };

static void fill_up(struct stage *s)
{
    hold(s, ROOM);
    CHECK_EQ(arena_lock(s->arena.store, "n")->head->capacity, SHM_FIRST_ENTRIES);
    arena_unlock(s->arena.store, "n");
}

TEST_WITHIN(whoever_dies_while_a_file_grows_leaves_room_for_the_others, 60)
{
    play(&(struct scene){
        .title = "growth of a file",
        .deed = "acquire",
        .limit = ROOM + 20,
        .before = forget_all,
        .arrange = fill_up,
        .after = let_one_go_and_check,
    });
}

/* ---- opening ------------------------------------------------------------------------------------ */

static void open_and_check(struct stage *s)
{
    struct weir_store *other = arena_open(&s->arena);

    CHECK(arena_client(other)->index < 8); /* records are used again */
    weir_store_close(other);
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_opens_a_store_leaves_its_place_to_others, 60)
{
    play(&(struct scene){
        .title = "open",
        .deed = "open",
        .limit = 2,
        .after = open_and_check,
    });
}

/* A process for it: whoever has used a directory keeps it open. */
static void check_fresh(void *arg)
{
    struct stage *s = arg;
    struct arena fresh = s->arena;

    strcat(fresh.uri, "/fresh");
    fresh.store = arena_open(&fresh);
    arena_check(&fresh, "n", s->scene->limit);
    arena_end(&fresh);
}

static void join_checker(struct stage *s)
{
    arena_join(arena_start(check_fresh, s));
    check_all(s);
}

TEST_WITHIN(whoever_dies_while_it_opens_the_first_store_leaves_it_whole_or_not_at_all, 60)
{
    play(&(struct scene){
        .title = "first open",
        .deed = "open fresh",
        .limit = 2,
        .after = join_checker,
    });
}

/* ---- repair ---------------------------------------------------------------------------------------- */

/* Everything that is derived, spoilt. */
static void spoil(ledger *l)
{
    struct ledger_head *head = l->head;

    head->free = 9;
    head->queue = (struct chain){5, 3, 7};
    head->held = (struct chain){0, 2, 1};
    head->in_use = 77;
    head->next_deadline_ns = 1;
    head->full_slots = 1;
    memset(l->buckets, 0x03, 64 * sizeof *l->buckets);
    l->slots[0] = UINT64_C(0x5555);
    for (uint32_t i = 1; i <= head->fresh; i++)
        l->entries[i].next = l->entries[i].prev = l->entries[i].next_in_bucket = i % 3;
}

/* Dies with the lock, having begun to take an entry and to change everything. */
static void die_inside(void *arg)
{
    struct stage *s = arg;
    struct weir_store *store = arena_open(&s->arena);

    CHECK_EQ(weir_store_resize(store, "n", s->scene->limit), 0);
    ledger *l = arena_lock(store, "n");
    l->entries[l->head->free ? l->head->free : ++l->head->fresh].weight = 1000;
    spoil(l);
    raise(SIGKILL);
}

static void stop(pid_t pid)
{
    int status;

    CHECK_EQ(kill(pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
}

/* Those who wait stand still, so that it is the victim who repairs. */
static void ruin(struct stage *s)
{
    hold_all_and_start_waiters(s);
    for (int i = 0; i < WAITERS; i++)
        stop(s->waiter[i]);
    pid_t pid = arena_start(die_inside, s);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK(arena_lock_is_orphaned(s->arena.store, "n"));
}

static void rise_again(struct stage *s)
{
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(kill(s->waiter[i], SIGCONT), 0);
    let_go_and_check(s);
}

TEST_WITHIN(whoever_dies_while_it_repairs_leaves_it_to_the_next, 60)
{
    play(&(struct scene){
        .title = "repair",
        .deed = "ask in vain",
        .limit = 4,
        .arrange = ruin,
        .after = rise_again,
    });
}
