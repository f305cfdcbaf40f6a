/* SPDX-License-Identifier: MIT */
/* Who is dead, who only looks like it, and who stands in the way: forks, programs that
 * were exec'ed, threads that ended, processes that are stopped, and other pid namespaces. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/testpoint.h"
#include "crash/arena.h"
#include "named/backend/shm.h"

/* What the processes of a test know of each other. */
struct plot {
    struct arena arena;
    struct shared {
        uint32_t ready, go; /* (a) how many have come so far; how many may go on */
        pid_t pid;
    } * shared;
    uint64_t limit;
};

static void plot_begin(struct plot *p, uint64_t limit)
{
    *p = (struct plot){.shared = arena_share(sizeof *p->shared), .limit = limit};
    arena_begin(&p->arena);
    arena_check(&p->arena, "n", limit);
}

static int try_to_take(struct plot *p)
{
    struct weir_lease_request request = {.name = "n", .limit = p->limit};
    struct weir_lease lease;

    return weir_lease_acquire(p->arena.store, &request, WEIR_NO_WAIT, &lease);
}

static void be_ready(struct plot *p)
{
    atomic_add(&p->shared->ready, 1);
}

static void until_ready(struct plot *p, uint32_t count)
{
    EVENTUALLY(atomic_get(&p->shared->ready) == count);
}

/* ---- holders ----------------------------------------------------------------------------- */

static void stay(void)
{
    for (;;)
        pause();
}

/* Open the store and hold a lease, as another process. */
static void hold(struct plot *p)
{
    struct weir_lease_request request = {.name = "n"};
    struct weir_lease lease;

    p->arena.store = arena_open(&p->arena);
    CHECK_EQ(weir_lease_acquire(p->arena.store, &request, WEIR_FOREVER, &lease), 0);
}

static void hold_and_stay(void *arg)
{
    struct plot *p = arg;

    hold(p);
    be_ready(p);
    stay();
}

static pid_t start_holder(struct plot *p, void (*fn)(void *arg))
{
    pid_t pid = arena_start(fn, p);

    until_ready(p, 1);
    CHECK_EQ(try_to_take(p), WEIR_ETIMEDOUT);
    return pid;
}

/* It can be had again, by one who waits for it. */
static void check_freed(struct plot *p)
{
    arena_check(&p->arena, "n", p->limit);
    arena_end(&p->arena);
}

TEST(a_holder_that_is_killed_holds_nothing)
{
    struct plot p;

    plot_begin(&p, 1);
    arena_kill(start_holder(&p, hold_and_stay));
    check_freed(&p);
}

/* ---- fork ----------------------------------------------------------------------------------- */

static void hold_and_fork(void *arg)
{
    struct plot *p = arg;

    hold(p);
    pid_t pid = fork();
    if (pid == 0)
        stay();
    p->shared->pid = pid;
    be_ready(p);
    stay();
}

TEST(a_child_does_not_keep_its_parents_leases)
{
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, hold_and_fork);
    CHECK_EQ(kill(p.shared->pid, 0), 0);
    arena_kill(pid);
    arena_check(&p.arena, "n", 1);
    CHECK_EQ(kill(p.shared->pid, SIGKILL), 0); /* it was there all the time */
    arena_end(&p.arena);
}

static void hold_and_lose_a_child(void *arg)
{
    struct plot *p = arg;

    hold(p);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    pid = fork();
    if (pid == 0) {
        weir_store_close(p->arena.store);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    be_ready(p);
    stay();
}

TEST(a_lease_survives_the_death_of_its_holders_children)
{
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, hold_and_lose_a_child);
    arena_kill(pid);
    check_freed(&p);
}

/* ---- exec ------------------------------------------------------------------------------------ */

static char *const sleeping[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};

static void hold_and_exec(void *arg)
{
    struct plot *p = arg;

    hold(p);
    be_ready(p);
    while (!atomic_get(&p->shared->go))
        sched_yield();
    execvp(sleeping[0], sleeping);
    _exit(127);
}

static bool is_sleeping(pid_t pid)
{
    char path[64], name[16] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK(fgets(name, sizeof name, file) != NULL);
    fclose(file);
    return strcmp(name, "sleep\n") == 0;
}

TEST(exec_ends_leases)
{
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, hold_and_exec);
    atomic_put(&p.shared->go, 1);
    arena_check(&p.arena, "n", 1);
    CHECK(is_sleeping(pid));
    arena_kill(pid);
    arena_end(&p.arena);
}

static void keep_across_exec(struct plot *p)
{
    CHECK_EQ(fcntl(weir_store_fd(p->arena.store), F_SETFD, 0), 0);
}

static void hold_and_exec_with_it(void *arg)
{
    struct plot *p = arg;

    hold(p);
    keep_across_exec(p);
    be_ready(p);
    execvp(sleeping[0], sleeping);
    _exit(127);
}

TEST(a_lease_whose_descriptor_was_left_open_outlives_exec)
{
    struct weir_lease_request request = {.name = "n"};
    struct weir_lease lease;
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, hold_and_exec_with_it);
    EVENTUALLY(is_sleeping(pid));
    CHECK_EQ(weir_lease_acquire(p.arena.store, &request, weir_within(100 * WEIR_MS), &lease),
             WEIR_ETIMEDOUT);
    arena_kill(pid);
    check_freed(&p);
}

/* Not by fork, after which the descriptor is closed. */
static void hold_and_spawn(void *arg)
{
    struct plot *p = arg;
    char *const none[] = {NULL};

    hold(p);
    keep_across_exec(p);
    CHECK_EQ(posix_spawnp(&p->shared->pid, sleeping[0], NULL, NULL, sleeping, none), 0);
    be_ready(p);
    stay();
}

TEST(a_lease_whose_descriptor_a_child_was_given_is_taken_until_that_is_gone)
{
    struct weir_lease_request request = {.name = "n"};
    struct weir_lease lease;
    struct plot p;

    plot_begin(&p, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* to be told when it is gone */
    pid_t pid = start_holder(&p, hold_and_spawn);
    arena_kill(pid);
    CHECK_EQ(weir_lease_acquire(p.arena.store, &request, weir_within(100 * WEIR_MS), &lease),
             WEIR_ETIMEDOUT);
    arena_kill(p.shared->pid);
    check_freed(&p);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *hold_in_thread(void *arg)
{
    hold(arg);
    return NULL;
}

static void hold_by_a_thread_that_ends(void *arg)
{
    struct plot *p = arg;
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, hold_in_thread, p), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    be_ready(p);
    stay();
}

TEST(a_lease_outlives_the_thread_that_opened_the_store)
{
    struct weir_lease_request request = {.name = "n"};
    struct weir_lease lease;
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, hold_by_a_thread_that_ends);
    CHECK_EQ(weir_lease_acquire(p.arena.store, &request, weir_within(100 * WEIR_MS), &lease),
             WEIR_ETIMEDOUT);
    arena_kill(pid);
    check_freed(&p);
}

/* The other thread takes over being watched, and its death is noticed at once. */
static void go_on_in_another_thread(void *arg)
{
    struct plot *p = arg;
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, hold_in_thread, p), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(try_to_take(p), WEIR_ETIMEDOUT);
    be_ready(p);
    stay();
}

TEST(whoever_goes_on_when_that_thread_has_ended_is_watched_instead)
{
    struct futex_watch watch;
    struct plot p;

    plot_begin(&p, 1);
    pid_t pid = start_holder(&p, go_on_in_another_thread);
    const ledger *l = arena_lock(p.arena.store, "n");
    const struct entry *e = &l->entries[l->head->held.first];
    CHECK(shm_watch_death(arena_client(p.arena.store), e->client, e->life, &watch));
    arena_unlock(p.arena.store, "n");
    arena_kill(pid);
    check_freed(&p);
}

/* ---- stopped ------------------------------------------------------------------------------------ */

static void stop_inside(void *arg)
{
    struct plot *p = arg;

    p->arena.store = arena_open(&p->arena);
    CHECK_EQ(weir_store_resize(p->arena.store, "n", p->limit), 0);
    arena_lock(p->arena.store, "n");
    raise(SIGSTOP);
    arena_unlock(p->arena.store, "n");
    weir_store_close(p->arena.store);
}

static pid_t start_stopped(struct plot *p, void (*fn)(void *arg))
{
    pid_t pid = arena_start(fn, p);
    int status;

    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
    return pid;
}

static void check_busy(int r, pid_t pid)
{
    char number[16];

    snprintf(number, sizeof number, "%d", (int)pid);
    CHECK_EQ(r, WEIR_EBUSY);
    if (strstr(weir_store_why(), number) == NULL)
        test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", weir_store_why(), number);
}

TEST_WITHIN(who_is_stopped_inside_is_named_and_when_it_goes_on_so_do_all, 30)
{
    struct plot p;

    plot_begin(&p, 2);
    struct weir_lease lease = arena_take(&p.arena, p.arena.store, "n", 2);
    pid_t pid = start_stopped(&p, stop_inside);
    check_busy(try_to_take(&p), pid);
    check_busy(weir_lease_release(p.arena.store, "n", lease.id), pid);
    CHECK_EQ(kill(pid, SIGCONT), 0);
    arena_join(pid);
    CHECK_EQ(weir_lease_release(p.arena.store, "n", lease.id), 0);
    check_freed(&p);
}

TEST(who_is_stopped_inside_can_be_killed)
{
    struct plot p;

    plot_begin(&p, 2);
    arena_kill(start_stopped(&p, stop_inside));
    check_freed(&p);
}

static void stop_here(const char *point)
{
    if (strcmp(point, "shm: about to register") == 0)
        raise(SIGSTOP);
}

/* The list of clients has a lock, too. */
static void stop_while_opening(void *arg)
{
    struct plot *p = arg;

    testpoint_hook = stop_here;
    weir_store_close(arena_open(&p->arena));
}

TEST_WITHIN(who_is_stopped_while_it_opens_keeps_others_from_opening_for_a_bounded_time, 30)
{
    struct weir_store *store;
    struct plot p;

    plot_begin(&p, 2);
    pid_t pid = start_stopped(&p, stop_while_opening);
    CHECK_EQ(weir_store_open(p.arena.uri, NULL, &store), WEIR_EBUSY);
    CHECK(weir_store_why()[0] != '\0');
    arena_check(&p.arena, "n", 2); /* what is open can be used */
    CHECK_EQ(kill(pid, SIGCONT), 0);
    arena_join(pid);
    weir_store_close(arena_open(&p.arena));
    arena_end(&p.arena);
}

/* ---- pid namespaces ----------------------------------------------------------------------------- */

/* A child that is process 1 of a pid namespace of its own. */
static pid_t start_alone(struct plot *p, void (*fn)(void *arg))
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWPID) < 0)
            _exit(77);
        atomic_put(&p->shared->pid, 0);
        pid_t inner = fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (!atomic_get(&p->shared->pid)) /* until we can be killed by it */
                sched_yield();
            fn(p);
            _exit(0);
        }
        atomic_put(&p->shared->pid, inner);
        waitpid(inner, NULL, 0);
        _exit(0);
    }
    return pid;
}

static void probe_alone(void *arg)
{
    struct plot *p = arg;

    p->shared->go = (uint32_t)getpid();
}

static void skip_unless_alone(struct plot *p)
{
    pid_t pid = start_alone(p, probe_alone);

    waitpid(pid, NULL, 0);
    bool alone = atomic_swap(&p->shared->go, 0) == 1;
    if (!alone)
        arena_end(&p->arena);
    SKIP_IF(!alone, "pid namespaces are not allowed here");
}

static void kill_alone(struct plot *p, pid_t outer)
{
    CHECK_EQ(kill(p->shared->pid, SIGKILL), 0);
    arena_join(outer);
}

TEST(between_pid_namespaces_a_dead_holder_is_recovered_and_a_living_one_is_not)
{
    struct plot p;

    plot_begin(&p, 1);
    skip_unless_alone(&p);
    pid_t one = start_alone(&p, hold_and_stay);
    until_ready(&p, 1);
    CHECK_EQ(try_to_take(&p), WEIR_ETIMEDOUT);
    kill_alone(&p, one);
    arena_check(&p.arena, "n", 1);
    pid_t two = start_alone(&p, hold_and_stay);
    until_ready(&p, 2);
    CHECK_EQ(try_to_take(&p), WEIR_ETIMEDOUT);
    kill_alone(&p, two);
    check_freed(&p);
}

static void lock_and_stay(void *arg)
{
    struct plot *p = arg;

    CHECK_EQ(getpid(), 1);
    p->arena.store = arena_open(&p->arena);
    CHECK_EQ(weir_store_resize(p->arena.store, "n", p->limit), 0);
    be_ready(p);
    while (!atomic_get(&p->shared->go))
        sched_yield();
    arena_lock(p->arena.store, "n");
    be_ready(p);
    while (atomic_get(&p->shared->go) == 1)
        sched_yield();
    arena_unlock(p->arena.store, "n");
    weir_store_close(p->arena.store);
}

/* Comes to the lock when another one has it. */
static void want_lock(void *arg)
{
    struct plot *p = arg;

    CHECK_EQ(getpid(), 1);
    p->arena.store = arena_open(&p->arena);
    CHECK_EQ(weir_store_resize(p->arena.store, "n", p->limit), 0);
    be_ready(p);
    while (atomic_get(&p->shared->ready) != 3)
        sched_yield();
    try_to_take(p);
}

/* Two processes of the same number, in different namespaces.  One is inside, the other waits
 * for the lock and is killed there: the kernel must not take it for the owner. */
TEST_WITHIN(who_dies_waiting_for_the_lock_is_not_taken_for_a_namesake_inside, 20)
{
    struct plot p;

    plot_begin(&p, 1);
    skip_unless_alone(&p);
    pid_t one = start_alone(&p, lock_and_stay);
    until_ready(&p, 1);
    pid_t two = start_alone(&p, want_lock);
    until_ready(&p, 2);
    pid_t inner = p.shared->pid;
    atomic_put(&p.shared->go, 1);
    until_ready(&p, 3);
    EVENTUALLY(arena_lock_is_wanted(p.arena.store, "n"));
    CHECK_EQ(kill(inner, SIGKILL), 0);
    arena_join(two);
    CHECK(!arena_lock_is_orphaned(p.arena.store, "n"));
    atomic_put(&p.shared->go, 2);
    arena_join(one);
    check_freed(&p);
}

/* ---- many ----------------------------------------------------------------------------------------- */

enum { HOLDERS = 150, WAITERS = 200 };

static void wait_and_give_back(void *arg)
{
    struct plot *p = arg;

    p->arena.store = arena_open(&p->arena);
    struct weir_lease lease = arena_take(&p->arena, p->arena.store, "n", 0);
    CHECK_EQ(weir_lease_release(p->arena.store, "n", lease.id), 0);
    weir_store_close(p->arena.store);
}

/* More holders than can be watched at once, more waiters than fit the first file. */
TEST_WITHIN(many_who_wait_are_served_when_many_who_hold_are_killed, 30)
{
    pid_t holder[HOLDERS], waiter[WAITERS];
    struct plot p;

    plot_begin(&p, HOLDERS);
    for (int i = 0; i < HOLDERS; i++)
        holder[i] = arena_start(hold_and_stay, &p);
    until_ready(&p, HOLDERS);
    for (int i = 0; i < WAITERS; i++)
        waiter[i] = arena_start(wait_and_give_back, &p);
    EVENTUALLY(arena_waiting(p.arena.store, "n") == WAITERS);
    for (int i = HOLDERS - 1; i >= 0; i--)
        arena_kill(holder[i]);
    for (int i = 0; i < WAITERS; i++)
        arena_join(waiter[i]);
    check_freed(&p);
}

TEST_WITHIN(the_last_of_many_holders_is_noticed_too, 30)
{
    pid_t holder[HOLDERS];
    struct plot p;

    plot_begin(&p, HOLDERS);
    for (int i = 0; i < HOLDERS; i++) {
        holder[i] = arena_start(hold_and_stay, &p);
        until_ready(&p, (uint32_t)i + 1);
    }
    pid_t waiter = arena_start(wait_and_give_back, &p);
    EVENTUALLY(arena_waiting(p.arena.store, "n") == 1);
    arena_kill(holder[HOLDERS - 1]);
    arena_join(waiter);
    for (int i = 0; i < HOLDERS - 1; i++)
        arena_kill(holder[i]);
    check_freed(&p);
}
