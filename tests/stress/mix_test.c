/* SPDX-License-Identifier: MIT */
/* Random programs over all primitives: threads and callbacks, deadlines and cancels, in
 * the same queues at the same time.  What each of them sees must fit together, and at
 * the end nothing may be missing. */
#include <weir/weir.h>

#include <sched.h>

#include "harness/test.h"

/* ---- the world ---------------------------------------------------------------- */

enum { PARTIES = 3, PERMITS = 4, ERRANDS = 6, MAX_THREADS = 8, STEPS = 4000 };
enum { GATES = 2000, LETTERS = 2000 };

/* Something that happens once; read by whoever was told so (plain data, for TSan). */
struct letter {
    struct weir_event sent;
    int text, taken;
};

/* A latch, and what became of those who came. */
struct gate {
    struct weir_latch latch;
    uint32_t tickets, passed, failed;
};

static struct world {
    struct weir_mutex mutex; /* guards: */
    int inside, entered;

    struct weir_mutex purse; /* guards: */
    int coins;
    struct weir_cond more_coins;

    struct weir_sem sem;
    int held;

    struct weir_countdown countdown;

    struct weir_revent revent;
    int setting, sets_begun, clears_done;

    struct weir_barrier barrier;
    int indices[PARTIES];

    struct gate gates[GATES];
    struct letter letters[LETTERS];
    int gate, letter; /* the current ones */
} world;

static int peek(const int *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static void count(int *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
}

/* ---- threads and their errands ------------------------------------------------- */

/* An asynchronous wait of a thread.  The owner makes it PENDING, the callback IDLE. */
enum errand_state { IDLE, PENDING };

struct errand {
    struct weir_op op;
    void (*finish)(struct errand *e, int result);
    struct gate *gate;
    struct letter *letter;
    int state;
};

struct actor {
    struct errand errands[ERRANDS];
    uint64_t up; /* its share of the countdown */
    int earned, spent, entered;
};

static struct actor actors[MAX_THREADS];

static void done(struct weir_op *op, int result)
{
    struct errand *e = (struct errand *)op;

    CHECK_EQ(peek(&e->state), PENDING); /* exactly once, and not after a cancel */
    e->finish(e, result);
    __atomic_store_n(&e->state, IDLE, __ATOMIC_RELEASE);
}

static struct errand *begin(struct actor *a, void (*finish)(struct errand *, int))
{
    struct errand *e = &a->errands[test_random(ERRANDS)];

    if (peek(&e->state) == PENDING)
        return NULL;
    e->finish = finish;
    __atomic_store_n(&e->state, PENDING, __ATOMIC_RELAXED);
    return e;
}

/* `r` is what the asynchronous call returned; `had` what its wait returns at once. */
static void begun(struct errand *e, int r, int had)
{
    if (r == 0)
        return;
    e->finish(e, r == 1 ? had : r);
    __atomic_store_n(&e->state, IDLE, __ATOMIC_RELEASE);
}

static void take_back(struct errand *e)
{
    if (peek(&e->state) == IDLE)
        return;
    if (weir_op_cancel(&e->op) == 0)
        EVENTUALLY(peek(&e->state) == IDLE);
    else
        begun(e, WEIR_ECANCELED, 0);
}

static struct weir_deadline some_deadline(void)
{
    return test_random(4) ? weir_within(test_random(100) * WEIR_US) : WEIR_NO_WAIT;
}

/* ---- mutex: one inside ---------------------------------------------------------- */

static void be_inside(void)
{
    CHECK_EQ(world.inside++, 0);
    world.entered++;
    if (test_random(16) == 0)
        sched_yield();
    world.inside--;
    weir_mutex_unlock(&world.mutex);
}

static int entered_by_errand;

static void finish_inside(struct errand *e, int result)
{
    (void)e;
    if (result == WEIR_ECANCELED)
        return;
    CHECK_EQ(result, 0);
    be_inside();
    count(&entered_by_errand);
}

static void do_mutex(struct actor *a)
{
    int r = weir_mutex_lock(&world.mutex, test_random(3) ? WEIR_FOREVER : some_deadline());

    CHECK(r == 0 || r == WEIR_ETIMEDOUT);
    if (r == 0) {
        be_inside();
        a->entered++;
    }
}

static void do_mutex_async(struct actor *a)
{
    struct errand *e = begin(a, finish_inside);

    if (e)
        begun(e, weir_mutex_lock_async(&world.mutex, &e->op, done), 0);
}

/* ---- condition: no coin is lost ------------------------------------------------- */

static void do_earn(struct actor *a)
{
    CHECK_EQ(weir_mutex_lock(&world.purse, WEIR_FOREVER), 0);
    world.coins++;
    a->earned++;
    if (test_random(2))
        weir_cond_signal(&world.more_coins, 1 + test_random(2));
    else
        weir_cond_broadcast(&world.more_coins);
    weir_mutex_unlock(&world.purse);
}

static void do_spend(struct actor *a)
{
    struct weir_deadline deadline = some_deadline();
    int r = weir_mutex_lock(&world.purse, WEIR_FOREVER);

    while (r == 0 && world.coins == 0)
        r = weir_cond_wait(&world.more_coins, &world.purse, deadline);
    CHECK(r == 0 || r == WEIR_ETIMEDOUT);
    if (r == 0) {
        world.coins--;
        a->spent++;
    }
    weir_mutex_unlock(&world.purse);
}

/* ---- semaphore: never more than there are ---------------------------------------- */

static void do_sem(struct actor *a)
{
    uint32_t n = 1 + test_random(PERMITS);
    int r = weir_sem_acquire(&world.sem, n, some_deadline());

    (void)a;
    CHECK(r == 0 || r == WEIR_ETIMEDOUT);
    if (r < 0)
        return;
    CHECK(__atomic_add_fetch(&world.held, (int)n, __ATOMIC_RELAXED) <= PERMITS);
    __atomic_sub_fetch(&world.held, (int)n, __ATOMIC_RELAXED);
    CHECK_EQ(weir_sem_release(&world.sem, n), 0);
}

/* ---- countdown: nobody is told zero who holds it up ------------------------------ */

static void do_count(struct actor *a)
{
    uint64_t n = 1 + test_random(5);

    if (a->up < n) {
        CHECK_EQ(weir_countdown_up(&world.countdown, n), 0);
        a->up += n;
    } else {
        CHECK_EQ(weir_countdown_down(&world.countdown, n), 0);
        a->up -= n;
    }
    CHECK(weir_countdown_value(&world.countdown) >= a->up);
}

static void do_wait_for_zero(struct actor *a)
{
    int r = weir_countdown_wait(&world.countdown, some_deadline());

    CHECK(r == WEIR_ETIMEDOUT || (r == 0 && a->up == 0));
}

static void finish_zero(struct errand *e, int result)
{
    (void)e;
    CHECK(result == 0 || result == WEIR_ECANCELED);
}

static void do_wait_for_zero_async(struct actor *a)
{
    struct errand *e = begin(a, finish_zero);

    if (e)
        begun(e, weir_countdown_wait_async(&world.countdown, &e->op, done), 0);
}

/* ---- reusable event: no wait ends but by a set ----------------------------------- */

static void do_set_and_clear(struct actor *a)
{
    (void)a;
    if (__atomic_exchange_n(&world.setting, 1, __ATOMIC_ACQUIRE))
        return; /* one at a time, so that the two numbers mean something */
    count(&world.sets_begun);
    weir_revent_set(&world.revent);
    weir_revent_clear(&world.revent);
    count(&world.clears_done);
    __atomic_store_n(&world.setting, 0, __ATOMIC_RELEASE);
}

static void do_wait_for_set(struct actor *a)
{
    int begun_before = peek(&world.sets_begun);
    bool was_clear = peek(&world.clears_done) == begun_before;
    int r = weir_revent_wait(&world.revent, some_deadline());

    (void)a;
    CHECK(r == 0 || r == WEIR_ETIMEDOUT);
    if (r == 0 && was_clear)
        CHECK(peek(&world.sets_begun) > begun_before);
}

static void do_wait_for_set_async(struct actor *a)
{
    struct errand *e = begin(a, finish_zero);

    if (e)
        begun(e, weir_revent_wait_async(&world.revent, &e->op, done), 0);
}

/* ---- barrier: a phase is for all or for none -------------------------------------- */

static void met(int result)
{
    if (result >= 0) {
        CHECK(result < PARTIES);
        count(&world.indices[result]);
        return;
    }
    CHECK(result == WEIR_ETIMEDOUT || result == WEIR_EBROKEN || result == WEIR_ECANCELED);
    weir_barrier_reset(&world.barrier);
}

static void finish_meeting(struct errand *e, int result)
{
    (void)e;
    met(result);
}

static void do_meet(struct actor *a)
{
    uint32_t index = 0;
    int r = weir_barrier_wait(&world.barrier, some_deadline(), &index);

    (void)a;
    met(r < 0 ? r : (int)index);
}

static void do_meet_async(struct actor *a)
{
    struct errand *e = begin(a, finish_meeting);

    if (e)
        begun(e, weir_barrier_wait_async(&world.barrier, &e->op, done), PARTIES - 1);
}

static void do_abort_meeting(struct actor *a)
{
    (void)a;
    if (test_random(8) == 0)
        weir_barrier_abort(&world.barrier);
}

/* ---- latch: open for all who waited, or broken for all ----------------------------- */

static void came(struct gate *g, int result)
{
    CHECK(result == 0 || result == WEIR_ETIMEDOUT || result == WEIR_EBROKEN ||
          result == WEIR_ECANCELED);
    __atomic_add_fetch(result == 0 ? &g->passed : &g->failed, 1, __ATOMIC_RELAXED);
}

static void finish_passing(struct errand *e, int result)
{
    came(e->gate, result);
}

/* The gate to go to; one ticket for each that it is for. */
static struct gate *next_gate(void)
{
    int i = peek(&world.gate);

    if (i == GATES)
        return NULL;
    struct gate *g = &world.gates[i];
    uint32_t ticket = __atomic_add_fetch(&g->tickets, 1, __ATOMIC_RELAXED);
    if (ticket == PARTIES)
        count(&world.gate);
    return ticket <= PARTIES ? g : NULL;
}

static void do_pass(struct actor *a)
{
    struct gate *g = next_gate();

    (void)a;
    if (g)
        came(g, weir_latch_wait(&g->latch, weir_within((50 + test_random(100)) * WEIR_US)));
}

static void do_pass_async(struct actor *a)
{
    struct errand *e = begin(a, finish_passing);

    if (e == NULL)
        return;
    e->gate = next_gate();
    if (e->gate)
        begun(e, weir_latch_wait_async(&e->gate->latch, &e->op, done), 0);
    else
        __atomic_store_n(&e->state, IDLE, __ATOMIC_RELEASE);
}

/* ---- event: what was written before is read after ---------------------------------- */

static void do_send(struct actor *a)
{
    int i = peek(&world.letter);

    (void)a;
    if (i == LETTERS || __atomic_exchange_n(&world.letters[i].taken, 1, __ATOMIC_RELAXED))
        return;
    world.letters[i].text = i + 1;
    weir_event_set(&world.letters[i].sent);
    count(&world.letter);
}

static void read_letter(const struct letter *l, int result)
{
    CHECK(result == 0 || result == WEIR_ETIMEDOUT || result == WEIR_ECANCELED);
    if (result == 0)
        CHECK_EQ(l->text, l - world.letters + 1);
}

static void finish_reading(struct errand *e, int result)
{
    read_letter(e->letter, result);
}

static struct letter *some_letter(void)
{
    uint32_t latest = (uint32_t)peek(&world.letter) + 2;

    return &world.letters[latest < LETTERS ? latest - test_random(3) : test_random(LETTERS)];
}

static void do_read(struct actor *a)
{
    struct letter *l = some_letter();

    (void)a;
    read_letter(l, weir_event_wait(&l->sent, some_deadline()));
}

static void do_read_async(struct actor *a)
{
    struct errand *e = begin(a, finish_reading);

    if (e == NULL)
        return;
    e->letter = some_letter();
    begun(e, weir_event_wait_async(&e->letter->sent, &e->op, done), 0);
}

static void do_take_back(struct actor *a)
{
    take_back(&a->errands[test_random(ERRANDS)]);
}

/* ---- programs ------------------------------------------------------------------- */

static void (*const deeds[])(struct actor *) = {
    do_mutex,         do_mutex_async,   do_earn,          do_spend,
    do_sem,           do_count,         do_wait_for_zero, do_wait_for_zero_async,
    do_set_and_clear, do_wait_for_set,  do_meet,          do_wait_for_set_async,
    do_meet_async,    do_abort_meeting, do_pass,          do_pass_async,
    do_send,          do_read,          do_read_async,    do_take_back,
};

enum { DEEDS = sizeof deeds / sizeof *deeds };

static void act(void *arg)
{
    struct actor *a = arg;

    for (int i = 0; i < STEPS; i++)
        deeds[test_random(DEEDS)](a);
    for (int i = 0; i < ERRANDS; i++)
        take_back(&a->errands[i]);
    CHECK_EQ(weir_countdown_down(&world.countdown, a->up), 0);
}

static void begin_world(void)
{
    world = (struct world){.sem = WEIR_SEM_INIT(PERMITS), .barrier = WEIR_BARRIER_INIT(PARTIES)};
    for (int i = 0; i < GATES; i++)
        CHECK_EQ(weir_latch_init(&world.gates[i].latch, PARTIES), 0);
    for (int i = 0; i < MAX_THREADS; i++)
        actors[i] = (struct actor){0};
    entered_by_errand = 0;
}

static void check_gates(void)
{
    for (int i = 0; i < GATES; i++) {
        const struct gate *g = &world.gates[i];

        CHECK(g->passed == 0 || g->failed == 0);
        CHECK(g->passed == 0 || g->passed == PARTIES);
        CHECK_EQ(weir_latch_is_broken(&g->latch), g->failed > 0);
    }
}

static void check_world(void)
{
    int earned = 0, spent = 0, entered = entered_by_errand;

    for (int i = 0; i < MAX_THREADS; i++) {
        earned += actors[i].earned;
        spent += actors[i].spent;
        entered += actors[i].entered;
    }
    CHECK_EQ(world.entered, entered);
    CHECK_EQ(weir_mutex_try_lock(&world.mutex), 0);
    CHECK_EQ(world.coins, earned - spent);
    CHECK_EQ(weir_mutex_try_lock(&world.purse), 0);
    CHECK_EQ(weir_sem_available(&world.sem), PERMITS);
    CHECK_EQ(weir_countdown_value(&world.countdown), 0);
    for (int i = 1; i < PARTIES; i++)
        CHECK_EQ(world.indices[i], world.indices[0]);
    CHECK_EQ(weir_barrier_waiting(&world.barrier), 0);
    check_gates();
}

static void run_world(int threads, int rounds)
{
    for (; rounds > 0; rounds--) {
        begin_world();
        for (int i = 0; i < threads; i++)
            test_spawn(act, &actors[i]);
        test_join_all();
        check_world();
    }
}

TEST_WITHIN(few_threads_and_many_callbacks_keep_every_promise, 60)
{
    run_world(2, test_scaled(10));
}

TEST_WITHIN(many_threads_and_callbacks_keep_every_promise, 60)
{
    run_world(MAX_THREADS, test_scaled(8));
}
