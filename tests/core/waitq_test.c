/* SPDX-License-Identifier: MIT */
/* What src/core/waitq.h and park.h promise to the primitives, seen from inside. */
#include "base/atomic.h"

/* A semaphore of our own that counts how often it changes memory atomically. */
static _Thread_local int changes;
#undef atomic_swap
#undef atomic_add
#undef atomic_cas
#define atomic_swap(p, v) (changes++, __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST))
#define atomic_add(p, v)  (changes++, __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST))
#define atomic_cas(p, seen, v) \
    (changes++,                \
     __atomic_compare_exchange_n((p), (seen), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

#define weir_sem_init            counted_init
#define weir_sem_acquire         counted_acquire
#define weir_sem_acquire_async   counted_acquire_async
#define weir_sem_try_acquire     counted_try_acquire
#define weir_sem_release         counted_release
#define weir_sem_wait_idle       counted_wait_idle
#define weir_sem_wait_idle_async counted_wait_idle_async
#define weir_sem_resize          counted_resize
#define weir_sem_close           counted_close
#define weir_sem_capacity        counted_capacity
#define weir_sem_available       counted_available
#define weir_sem_waiting         counted_waiting
#include "core/sem.c"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/event.h>

#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------- */

static const wait_kind plain = {0};

static waiter new_waiter(void)
{
    return (waiter){.kind = &plain, .sleeper = sleeper_self()};
}

static void push(waitq *q, waiter *w)
{
    uint64_t word = waitq_lock(q);

    *w = new_waiter();
    CHECK_EQ(waitq_push(q, w), 0);
    waitq_unlock(q, word);
}

/* Grant the oldest; NULL if there is none. */
static waiter *grant_first(waitq *q)
{
    batch b = {0};
    uint64_t word = waitq_lock(q);
    waiter *w = waitq_first(q);

    if (w)
        waitq_grant(q, w, &b);
    waitq_unlock(q, word);
    CHECK(b.first == w && b.last == w);
    waitq_deliver(&b);
    return w;
}

static int flags_of(const waitq *q)
{
    return (int)(atomic_get(&q->word) & WORD_FLAGS);
}

/* Is the thread in the kernel, waiting for something? */
static bool is_asleep(const int *tid)
{
    char path[64], stat[512] = "";
    int id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);

    if (id == 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    char *read = fgets(stat, sizeof stat, f), *name_end = read ? strrchr(stat, ')') : NULL;
    fclose(f);
    return name_end && name_end[2] == 'S';
}

static void announce(int *tid)
{
    __atomic_store_n(tid, gettid(), __ATOMIC_RELEASE);
}

/* ---- the word --------------------------------------------------------------- */

TEST(an_uncontended_acquire_and_release_are_one_atomic_operation_each)
{
    struct weir_sem sem = WEIR_SEM_INIT(WEIR_SEM_MAX);

    for (uint64_t n = 1; n <= WEIR_SEM_MAX / 2; n = n * 4 + 1) {
        changes = 0;
        CHECK_EQ(weir_sem_acquire(&sem, n, WEIR_FOREVER), 0);
        CHECK_EQ(changes, 1);
        CHECK_EQ(weir_sem_try_acquire(&sem, n), 0);
        CHECK_EQ(changes, 2);
        CHECK_EQ(weir_sem_release(&sem, n), 0);
        CHECK_EQ(changes, 3);
        CHECK_EQ(weir_sem_release(&sem, n), 0);
        CHECK_EQ(changes, 4);
    }
    CHECK_EQ(weir_sem_available(&sem), WEIR_SEM_MAX);
}

TEST(locking_keeps_the_value_and_hides_the_flags)
{
    waitq q = WEIR_WAITQ_INIT_(UINT64_C(1) << 59);
    waiter w;

    push(&q, &w);
    CHECK_EQ(waitq_lock(&q), word_of(UINT64_C(1) << 59));
    CHECK_EQ(flags_of(&q), WORD_LOCKED | WORD_BUSY);
    waitq_unlock(&q, word_of(UINT64_MAX)); /* as wide as it gets */
    CHECK_EQ(flags_of(&q), WORD_BUSY);
    CHECK_EQ(waitq_lock(&q), word_of(UINT64_MAX));
    waitq_unlock(&q, 0);
    CHECK(grant_first(&q) == &w);
    CHECK_EQ(q.word, 0);
}

TEST(a_queue_is_busy_exactly_while_somebody_waits_or_it_is_shut)
{
    waitq q = WEIR_WAITQ_INIT_(5);
    waiter w[2];

    CHECK_EQ(flags_of(&q), 0);
    push(&q, &w[0]);
    CHECK_EQ(flags_of(&q), WORD_BUSY);
    push(&q, &w[1]);
    CHECK(waitq_leave(&q, &w[0]));
    CHECK_EQ(flags_of(&q), WORD_BUSY);
    CHECK(grant_first(&q) == &w[1]);
    CHECK_EQ(flags_of(&q), 0);
    uint64_t word = waitq_lock(&q);
    q.shut = 1;
    waitq_unlock(&q, word);
    CHECK_EQ(flags_of(&q), WORD_BUSY);
    CHECK_EQ(word_value(q.word), 5);
}

/* ---- the lock --------------------------------------------------------------- */

struct locker {
    waitq *queue;
    int *plain;
    int rounds, tid;
};

static void lock_and_count(void *arg)
{
    struct locker *l = arg;

    announce(&l->tid);
    for (int i = 0; i < l->rounds; i++) {
        uint64_t word = waitq_lock(l->queue);

        ++*l->plain; /* not atomic: TSan watches, and so does the sum */
        waitq_unlock(l->queue, word + word_of(1));
    }
}

TEST_WITHIN(the_lock_excludes_all_others, 30)
{
    enum { LOCKERS = 8 };
    waitq q = WEIR_WAITQ_INIT_(0);
    struct locker l[LOCKERS];
    int sum = 0, rounds = test_scaled(200000);

    for (int i = 0; i < LOCKERS; i++) {
        l[i] = (struct locker){&q, &sum, rounds, 0};
        test_spawn(lock_and_count, &l[i]);
    }
    test_join_all();
    CHECK_EQ(sum, LOCKERS * rounds);
    CHECK_EQ(q.word, word_of((uint64_t)(LOCKERS * rounds))); /* no flag is left behind */
}

TEST(those_who_fell_asleep_before_the_lock_all_get_it)
{
    enum { LOCKERS = 4 };
    waitq q = WEIR_WAITQ_INIT_(0);
    struct locker l[LOCKERS];
    int sum = 0;
    uint64_t word = waitq_lock(&q);

    for (int i = 0; i < LOCKERS; i++) {
        l[i] = (struct locker){&q, &sum, 1, 0};
        test_spawn(lock_and_count, &l[i]);
    }
    for (int i = 0; i < LOCKERS; i++)
        EVENTUALLY(is_asleep(&l[i].tid));
    CHECK_EQ(flags_of(&q), WORD_LOCKED | WORD_SLEEPER);
    waitq_unlock(&q, word); /* wakes one, who wakes the next */
    test_join_all();
    CHECK_EQ(sum, LOCKERS);
    CHECK_EQ(q.word, word_of(LOCKERS));
}

/* ---- the queue -------------------------------------------------------------- */

enum { POOL = 12 };

/* A queue, and what should be in it, oldest first. */
struct model {
    waitq queue;
    waiter pool[POOL];
    waiter *queued[POOL];
    int count;
};

static bool model_has(const struct model *m, const waiter *w)
{
    for (int i = 0; i < m->count; i++)
        if (m->queued[i] == w)
            return true;
    return false;
}

static void model_remove(struct model *m, const waiter *w)
{
    int i = 0;

    while (m->queued[i] != w)
        i++;
    memmove(&m->queued[i], &m->queued[i + 1], (size_t)(--m->count - i) * sizeof *m->queued);
}

static void check_model(const struct model *m)
{
    const waitq *q = &m->queue;
    const waiter *w = q->newest;

    CHECK_EQ(flags_of(q), m->count > 0 ? WORD_BUSY : 0);
    CHECK_EQ(q->length, m->count);
    CHECK_EQ(w == NULL, m->count == 0);
    for (int i = 0; i < m->count; i++, w = w->next) {
        CHECK(w->next == m->queued[i]);
        CHECK(i == 0 || w->next->prev == w); /* the oldest's says nothing */
        CHECK(w->next->queue == q && w->next->epoch == q->epoch);
    }
    CHECK(w == q->newest);
}

static void detach_all(struct model *m)
{
    batch b = {.result = -5};
    uint64_t word = waitq_lock(&m->queue);
    waiter *next;
    int i = 0;

    waitq_detach(&m->queue, &b);
    waitq_unlock(&m->queue, word);
    for (waiter *w = b.first; w; w = next) {
        CHECK(w == m->queued[i++]);
        CHECK(!waitq_leave(&m->queue, w)); /* it names the queue, but is no longer in it */
        next = w->next;
    }
    CHECK_EQ(i, m->count);
    waitq_deliver(&b);
    for (i = 0; i < m->count; i++)
        CHECK(m->queued[i]->result == -5 && m->queued[i]->sleeper.state == DONE);
    m->count = 0;
}

TEST(the_queue_is_what_was_pushed_and_has_not_left)
{
    struct model m = {.queue = WEIR_WAITQ_INIT_(3)};

    for (int i = test_scaled(20000); i > 0; i--) {
        waiter *w = &m.pool[test_random(POOL)];

        if (model_has(&m, w)) {
            CHECK(waitq_leave(&m.queue, w));
            model_remove(&m, w);
        } else if (test_random(4) > 0) {
            push(&m.queue, w);
            m.queued[m.count++] = w;
        } else if (test_random(4) > 0) {
            waiter *first = m.count > 0 ? m.queued[0] : NULL;
            CHECK(grant_first(&m.queue) == first);
            if (first)
                model_remove(&m, first);
        } else {
            detach_all(&m);
        }
        check_model(&m);
    }
}

TEST(who_may_not_wait_is_not_queued)
{
    waitq q = WEIR_WAITQ_INIT_(0);
    waiter w = new_waiter();

    w.result = WEIR_ETIMEDOUT;
    uint64_t word = waitq_lock(&q);
    CHECK_EQ(waitq_push(&q, &w), WEIR_ETIMEDOUT);
    CHECK_EQ(waitq_push_crowd(&q, &w), WEIR_ETIMEDOUT);
    waitq_unlock(&q, word);
    CHECK_EQ(q.word, 0);
    CHECK(q.newest == NULL && q.length == 0);
    CHECK(!waitq_leave(&q, &w));
}

TEST(whoever_was_granted_cannot_leave)
{
    waitq q = WEIR_WAITQ_INIT_(0);
    waiter w[2];

    push(&q, &w[0]);
    push(&q, &w[1]);
    CHECK(grant_first(&q) == &w[0]);
    CHECK(!waitq_leave(&q, &w[0]));
    CHECK(waitq_first(&q) == &w[1]);
    CHECK_EQ(q.length, 1);
}

TEST(the_epoch_may_wrap_around)
{
    waitq q = WEIR_WAITQ_INIT_(0);
    waiter old, new;
    batch b = {0};

    q.epoch = (UINT32_C(1) << 31) - 1;
    push(&q, &old);
    uint64_t word = waitq_lock(&q);
    waitq_detach(&q, &b);
    waitq_unlock(&q, word);
    CHECK_EQ(q.epoch, 0);
    CHECK_EQ(q.shut, 0);
    push(&q, &new);
    CHECK(!waitq_leave(&q, &old));
    CHECK(waitq_leave(&q, &new));
    waitq_deliver(&b);
}

TEST(a_waiter_moved_to_another_queue_can_leave_neither_way_by_mistake)
{
    waitq from = WEIR_WAITQ_INIT_(0), to = WEIR_WAITQ_INIT_(0);
    waiter w;
    batch b = {0};

    from.epoch = 7;
    push(&from, &w);
    uint64_t word = waitq_lock(&from);
    waitq_detach(&from, &b);
    waitq_unlock(&from, word);
    word = waitq_lock(&to);
    waitq_push_granted(&to, &w);
    waitq_unlock(&to, word);
    CHECK(!waitq_leave(&from, &w)); /* what its deadline would do */
    CHECK_EQ(w.epoch, 7);           /* which may be comparing it at any time */
    CHECK_EQ(flags_of(&from), 0);
    CHECK_EQ(flags_of(&to), WORD_BUSY);
    CHECK(grant_first(&to) == &w);
    CHECK_EQ(w.sleeper.state, DONE);
}

/* ---- sleeping --------------------------------------------------------------- */

TEST(spinning_pays_when_the_other_side_runs_on_another_cpu)
{
    static const struct {
        uint16_t here, giver, taker;
        bool spins;
    } cases[] = {
        {1, 2, 1, true},  /* the last to give is over there                       */
        {1, 2, 2, true},  /*                                                      */
        {1, 1, 2, true},  /* it was us, and the one we gave it to is over there   */
        {1, 1, 1, false}, /* all of it happens here                               */
        {2, 2, 2, false}, /*                                                      */
        {2, 1, 2, true},  /* whatever the number is                               */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sleeper s = {.cpu = cases[i].here};
        struct weir_cpus_ cpus = {cases[i].giver, cases[i].taker};

        CHECK_EQ(sleeper_should_spin(&s, &cpus, 0), cases[i].spins && cpu_count() > 1);
        CHECK(!sleeper_should_spin(&s, &cpus, cpu_count() - 1)); /* they cannot all run */
    }
}

static void ignore(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
}

TEST(a_semaphore_remembers_where_it_was_given_and_taken)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;
    cpu_set_t all, one;

    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
        CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, ignore), 0);
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK_EQ(sem.cpus_.giver, cpu + 1);
        CHECK_EQ(sem.cpus_.taker, cpu + 1);
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
    }
}

/* So that a close need not look at every waiter when none of them may stay. */
TEST(a_semaphore_counts_those_who_wait_for_idleness)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op[3] = {WEIR_OP_INIT, WEIR_OP_INIT, WEIR_OP_INIT};

    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_wait_idle_async(&sem, &op[0], ignore), 0);
    CHECK_EQ(weir_sem_wait_idle_async(&sem, &op[1], ignore), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op[2], ignore), 0);
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(sem.idlers_, 2);
    CHECK_EQ(weir_op_cancel(&op[0]), 1);
    CHECK_EQ(sem.idlers_, 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(sem.idlers_, 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

static uint8_t crowd_of(const void *key)
{
    sleeper s = sleeper_self();

    sleeper_join_crowd(&s, key);
    return s.crowd;
}

TEST(every_object_has_a_crowd_and_keeps_it)
{
    static struct weir_event events[10000];
    int seen[256] = {0};

    for (int i = 0; i < 10000; i++) {
        CHECK(crowd_of(&events[i]) != 0);
        CHECK_EQ(crowd_of(&events[i]), crowd_of(&events[i]));
        seen[crowd_of(&events[i])]++;
    }
    for (int i = 1; i < 256; i++)
        CHECK(seen[i] > 0); /* they do not all share a few */
}

struct attendant {
    struct weir_event *event;
    int tid, returned;
};

static void attend(void *arg)
{
    struct attendant *a = arg;

    announce(&a->tid);
    CHECK_EQ(weir_event_wait(a->event, WEIR_FOREVER), 0);
    CHECK(weir_event_is_set(a->event));
    __atomic_store_n(&a->returned, 1, __ATOMIC_RELEASE);
}

static bool has_returned(const struct attendant *a)
{
    return __atomic_load_n(&a->returned, __ATOMIC_ACQUIRE);
}

TEST(two_crowds_that_share_a_word_do_not_end_each_others_waits)
{
    static struct weir_event events[10000]; /* one word in 255 is the same */
    struct attendant a[2] = {{.event = &events[0]}, {.event = &events[1]}};

    while (crowd_of(a[1].event) != crowd_of(a[0].event))
        CHECK(++a[1].event < events + 10000);
    for (int i = 0; i < 2; i++)
        test_spawn(attend, &a[i]);
    for (int i = 0; i < 2; i++)
        EVENTUALLY(is_asleep(&a[i].tid));
    weir_event_set(a[0].event); /* which wakes both threads */
    EVENTUALLY(has_returned(&a[0]));
    EVENTUALLY(is_asleep(&a[1].tid));
    CHECK(!has_returned(&a[1]));
    weir_event_set(a[1].event);
    test_join_all();
}
