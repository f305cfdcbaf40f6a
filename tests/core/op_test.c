/* SPDX-License-Identifier: MIT */
/* Callbacks: the promises made in the first half of weir/op.h, in that order.  The
 * inbox has a file of its own. */
#include <weir/weir.h>

#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------- */

/* An op that notes when and with what it was called. */
struct note {
    struct weir_op op;
    int calls;
    int result;
    int place; /* 1 for the first of all to be called */
};

enum { NOT_CALLED = 12345 };

static int called;

static struct note new_note(void)
{
    return (struct note){.op = WEIR_OP_INIT, .result = NOT_CALLED};
}

static struct note *note_of(struct weir_op *op)
{
    return (struct note *)(void *)op;
}

static void take_note(struct weir_op *op, int result)
{
    struct note *n = note_of(op);

    n->calls++;
    n->result = result;
    n->place = ++called;
}

#define CHECK_NOT_CALLED(note) CHECK_EQ((note).calls, 0)
#define CHECK_CALLED(note, with)         \
    do {                                 \
        CHECK_EQ((note).calls, 1);       \
        CHECK_EQ((note).result, (with)); \
    } while (0)

static void must_not_be_called(struct weir_op *op, int result)
{
    (void)op;
    CHECK_EQ(result, NOT_CALLED);
}

static void acquire_async(struct weir_sem *sem, uint64_t n, struct note *note)
{
    *note = new_note();
    CHECK_EQ(weir_sem_acquire_async(sem, n, &note->op, take_note), 0);
}

static void take(struct weir_sem *sem, uint64_t n)
{
    CHECK_EQ(weir_sem_acquire(sem, n, WEIR_NO_WAIT), 0);
}

/* A thread that waits for one permit. */
struct caller {
    struct weir_sem *sem;
    int result;
    int returned;
};

static void call(void *arg)
{
    struct caller *c = arg;

    c->result = weir_sem_acquire(c->sem, 1, WEIR_FOREVER);
    __atomic_store_n(&c->returned, 1, __ATOMIC_RELEASE);
}

static void queue_up(struct caller *c)
{
    uint64_t before = weir_sem_waiting(c->sem);

    test_spawn(call, c);
    EVENTUALLY(weir_sem_waiting(c->sem) == before + 1);
}

static int result_of(const struct caller *c)
{
    EVENTUALLY(__atomic_load_n(&c->returned, __ATOMIC_ACQUIRE));
    return c->result;
}

/* ---- every asynchronous form: 1 at once, 0 and a call later, or an error --------- */

TEST(a_static_and_a_called_initialiser_are_the_same)
{
    static const struct weir_op by_macro = WEIR_OP_INIT;
    struct weir_op by_call;

    memset(&by_call, 0xff, sizeof by_call);
    weir_op_init(&by_call);
    CHECK(by_call.inbox == NULL);
    CHECK_EQ(memcmp(&by_call, &by_macro, sizeof by_call), 0);
}

TEST(a_semaphore_calls_back_when_permits_are_there)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct note at_once = new_note(), later;

    CHECK_EQ(weir_sem_acquire_async(&sem, 2, &at_once.op, must_not_be_called), 1);
    CHECK_EQ(weir_sem_available(&sem), 1);
    acquire_async(&sem, 3, &later);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_NOT_CALLED(later);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_CALLED(later, 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(a_semaphore_refuses_at_once_what_blocking_would_refuse_at_once)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct note n = new_note();

    CHECK_EQ(weir_sem_acquire_async(&sem, 0, &n.op, must_not_be_called), WEIR_EINVAL);
    CHECK_EQ(weir_sem_acquire_async(&sem, 4, &n.op, must_not_be_called), WEIR_EINVAL);
    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &n.op, must_not_be_called), WEIR_ECLOSED);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(a_semaphore_calls_back_with_the_reason_when_it_cannot_serve)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct note too_large, closed;

    take(&sem, 3);
    acquire_async(&sem, 3, &too_large);
    acquire_async(&sem, 1, &closed);
    CHECK_EQ(weir_sem_resize(&sem, 2), 0);
    CHECK_CALLED(too_large, WEIR_EINVAL);
    CHECK_NOT_CALLED(closed);
    weir_sem_close(&sem);
    CHECK_CALLED(closed, WEIR_ECLOSED);
}

TEST(a_semaphore_calls_back_when_it_is_idle)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct note at_once = new_note(), later = new_note();

    CHECK_EQ(weir_sem_wait_idle_async(&sem, &at_once.op, must_not_be_called), 1);
    take(&sem, 2);
    CHECK_EQ(weir_sem_wait_idle_async(&sem, &later.op, take_note), 0);
    weir_sem_close(&sem); /* does not end it */
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_NOT_CALLED(later);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_CALLED(later, 0);
}

TEST(an_event_calls_back_when_it_is_set)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note at_once = new_note(), later = new_note();

    CHECK_EQ(weir_event_wait_async(&event, &later.op, take_note), 0);
    CHECK_NOT_CALLED(later);
    weir_event_set(&event);
    CHECK_CALLED(later, 0);
    CHECK_EQ(weir_event_wait_async(&event, &at_once.op, must_not_be_called), 1);
    weir_event_set(&event);
    CHECK_CALLED(later, 0);
}

TEST(a_reusable_event_calls_back_each_time_it_is_set)
{
    struct weir_revent event = WEIR_REVENT_INIT;
    struct note at_once = new_note();

    for (int i = 0; i < 3; i++) {
        struct note later = new_note();

        CHECK_EQ(weir_revent_wait_async(&event, &later.op, take_note), 0);
        CHECK_NOT_CALLED(later);
        weir_revent_set(&event);
        CHECK_CALLED(later, 0);
        CHECK_EQ(weir_revent_wait_async(&event, &at_once.op, must_not_be_called), 1);
        weir_revent_clear(&event);
    }
}

TEST(a_countdown_calls_back_at_zero)
{
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(0);
    struct note at_once = new_note(), later = new_note(), cleared = new_note();

    CHECK_EQ(weir_countdown_wait_async(&countdown, &at_once.op, must_not_be_called), 1);
    CHECK_EQ(weir_countdown_up(&countdown, 3), 0);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &later.op, take_note), 0);
    CHECK_EQ(weir_countdown_down(&countdown, 2), 0);
    CHECK_NOT_CALLED(later);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    CHECK_CALLED(later, 0);
    CHECK_EQ(weir_countdown_up(&countdown, 3), 0);
    CHECK_EQ(weir_countdown_wait_async(&countdown, &cleared.op, take_note), 0);
    weir_countdown_clear(&countdown);
    CHECK_CALLED(cleared, 0);
}

TEST(a_latch_calls_back_when_it_opens)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct note first = new_note(), last = new_note(), late = new_note();

    CHECK_EQ(weir_latch_wait_async(&latch, &first.op, take_note), 0);
    CHECK_EQ(weir_latch_arrive(&latch, 1), 0);
    CHECK_NOT_CALLED(first);
    CHECK_EQ(weir_latch_wait_async(&latch, &last.op, must_not_be_called), 1);
    CHECK_CALLED(first, 0);
    CHECK_EQ(weir_latch_wait_async(&latch, &late.op, must_not_be_called), 1);
}

TEST(a_latch_calls_back_when_it_breaks)
{
    struct weir_latch latch = WEIR_LATCH_INIT(3);
    struct note first = new_note(), late = new_note();

    CHECK_EQ(weir_latch_wait_async(&latch, &first.op, take_note), 0);
    weir_latch_abort(&latch);
    CHECK_CALLED(first, WEIR_EBROKEN);
    CHECK_EQ(weir_latch_wait_async(&latch, &late.op, must_not_be_called), WEIR_EBROKEN);
}

TEST(a_barrier_calls_back_with_the_index)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);

    for (int phase = 0; phase < 3; phase++) {
        struct note n[3] = {new_note(), new_note(), new_note()};

        called = 0;
        CHECK_EQ(weir_barrier_wait_async(&barrier, &n[0].op, take_note), 0);
        CHECK_EQ(weir_barrier_wait_async(&barrier, &n[1].op, take_note), 0);
        CHECK_NOT_CALLED(n[0]);
        CHECK_EQ(weir_barrier_wait_async(&barrier, &n[2].op, must_not_be_called), 1);
        for (int i = 0; i < 2; i++) {
            CHECK_CALLED(n[i], i);
            CHECK_EQ(n[i].place, i + 1);
        }
        CHECK_EQ(weir_barrier_waiting(&barrier), 0);
    }
}

TEST(a_barrier_calls_back_when_it_breaks_or_is_reset)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct note reset = new_note(), broken = new_note(), late = new_note();

    CHECK_EQ(weir_barrier_wait_async(&barrier, &reset.op, take_note), 0);
    weir_barrier_reset(&barrier);
    CHECK_CALLED(reset, WEIR_EBROKEN);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &broken.op, take_note), 0);
    weir_barrier_abort(&barrier);
    CHECK_CALLED(broken, WEIR_EBROKEN);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &late.op, must_not_be_called), WEIR_EBROKEN);
}

TEST(a_mutex_calls_back_when_it_is_handed_over)
{
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct note at_once = new_note(), n[2] = {new_note(), new_note()};

    CHECK_EQ(weir_mutex_lock_async(&mutex, &at_once.op, must_not_be_called), 1);
    CHECK_EQ(weir_mutex_lock_async(&mutex, &n[0].op, take_note), 0);
    CHECK_EQ(weir_mutex_lock_async(&mutex, &n[1].op, take_note), 0);
    weir_mutex_unlock(&mutex);
    CHECK_CALLED(n[0], 0);
    CHECK_NOT_CALLED(n[1]);
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    weir_mutex_unlock(&mutex);
    CHECK_CALLED(n[1], 0);
    weir_mutex_unlock(&mutex);
    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
}

/* ---- one queue -------------------------------------------------------------- */

TEST(callbacks_and_threads_stand_in_one_queue)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller threads[2] = {{.sem = &sem}, {.sem = &sem}};
    struct note notes[3];

    take(&sem, 1);
    acquire_async(&sem, 1, &notes[0]);
    queue_up(&threads[0]);
    acquire_async(&sem, 1, &notes[1]);
    queue_up(&threads[1]);
    acquire_async(&sem, 1, &notes[2]);
    for (int turn = 0; turn < 5; turn++) { /* callbacks have the even turns */
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK_EQ(weir_sem_waiting(&sem), 4 - turn);
        if (turn % 2 == 1)
            CHECK_EQ(result_of(&threads[turn / 2]), 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(notes[i].calls, 2 * i <= turn);
    }
}

TEST(those_woken_together_are_called_in_order)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n[100];

    for (int i = 0; i < 100; i++) {
        n[i] = new_note();
        CHECK_EQ(weir_event_wait_async(&event, &n[i].op, take_note), 0);
    }
    weir_event_set(&event);
    for (int i = 0; i < 100; i++) {
        CHECK_CALLED(n[i], 0);
        CHECK_EQ(n[i].place, i + 1);
    }
}

static void wait_for_event(void *arg)
{
    CHECK_EQ(weir_event_wait(arg, WEIR_FOREVER), 0);
}

TEST(an_event_wakes_callbacks_and_threads_together)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n[4];

    for (int i = 0; i < 4; i++) {
        n[i] = new_note();
        test_hold("park: about to sleep");
        test_spawn(wait_for_event, &event);
        test_reached("park: about to sleep"); /* so it is in the queue */
        CHECK_EQ(weir_event_wait_async(&event, &n[i].op, take_note), 0);
    }
    test_let_go("park: about to sleep");
    weir_event_set(&event);
    test_join_all();
    for (int i = 0; i < 4; i++)
        CHECK_CALLED(n[i], 0);
}

/* ---- who calls -------------------------------------------------------------- */

TEST(every_call_that_ends_a_wait_calls_back_before_it_returns)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct note n[5];

    take(&sem, 4);
    for (int i = 0; i < 5; i++)
        acquire_async(&sem, i == 1 ? 4 : 1, &n[i]);
    weir_sem_release(&sem, 1);
    CHECK_CALLED(n[0], 0);
    CHECK_EQ(weir_op_cancel(&n[1].op), 1);
    weir_sem_resize(&sem, 5);
    CHECK_CALLED(n[2], 0);
    weir_sem_release(&sem, 1);
    CHECK_CALLED(n[3], 0);
    weir_sem_close(&sem);
    CHECK_CALLED(n[4], WEIR_ECLOSED);
    CHECK_NOT_CALLED(n[1]);
}

static int leaving;

static void run_out_of_time(void *arg)
{
    do { /* again, if it was too late even to queue */
        CHECK_EQ(weir_sem_acquire(arg, 2, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    } while (!__atomic_load_n(&leaving, __ATOMIC_ACQUIRE));
}

TEST(a_thread_that_gives_up_calls_back_those_behind_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note n;

    take(&sem, 1);
    test_hold("waitq: about to leave");
    test_spawn(run_out_of_time, &sem);
    test_reached("waitq: about to leave");
    __atomic_store_n(&leaving, 1, __ATOMIC_RELEASE);
    acquire_async(&sem, 1, &n);
    CHECK_NOT_CALLED(n);
    test_let_go("waitq: about to leave");
    test_join_all();
    CHECK_CALLED(n, 0);
}

/* ---- never nested ----------------------------------------------------------- */

enum { CHAIN = 20000 };

/* Each call releases the permit that the next one waits for. */
struct link {
    struct weir_op op;
    struct weir_sem *sem;
    int *next_number, *depth;
    int number;
};

static void release_for_the_next(struct weir_op *op, int result)
{
    struct link *l = (struct link *)(void *)op;

    CHECK_EQ(result, 0);
    CHECK_EQ(++*l->depth, 1); /* nobody's callback is running */
    CHECK_EQ(l->number, (*l->next_number)++);
    CHECK_EQ(weir_sem_release(l->sem, 1), 0);
    CHECK_EQ(*l->next_number, l->number + 1); /* the next has not been called yet */
    --*l->depth;
}

TEST(a_callback_that_serves_another_returns_before_that_one_is_called)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct link *links = calloc(CHAIN, sizeof *links);
    int depth = 0, next_number = 0;

    CHECK(links != NULL);
    take(&sem, 1);
    for (int i = 0; i < CHAIN; i++) {
        links[i] = (struct link){WEIR_OP_INIT, &sem, &next_number, &depth, i};
        CHECK_EQ(weir_sem_acquire_async(&sem, 1, &links[i].op, release_for_the_next), 0);
    }
    CHECK_EQ(weir_sem_release(&sem, 1), 0); /* and all of them are called in it */
    CHECK_EQ(next_number, CHAIN);
    CHECK_EQ(weir_sem_available(&sem), 1);
    free(links);
}

/* Several are served by one call inside a callback, and one of those serves more. */
struct spreader {
    struct note note;
    struct weir_event *sets;
};

static void set_another(struct weir_op *op, int result)
{
    struct spreader *s = (struct spreader *)(void *)op;
    int before = called;

    if (s->sets)
        weir_event_set(s->sets);
    CHECK_EQ(called, before);
    take_note(op, result);
}

TEST(callbacks_put_off_are_called_in_order)
{
    struct weir_event events[3] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT, WEIR_EVENT_INIT};
    struct spreader s[6];

    for (int i = 0; i < 6; i++) { /* 0 and 1 wait for the first, 2 and 3 for the second, ... */
        s[i] = (struct spreader){new_note(), i < 4 ? &events[i / 2 + 1] : NULL};
        CHECK_EQ(weir_event_wait_async(&events[i / 2], &s[i].note.op, set_another), 0);
    }
    weir_event_set(&events[0]);
    for (int i = 0; i < 6; i++)
        CHECK_CALLED(s[i].note, 0);
    CHECK_EQ(s[0].note.place, 1);
    CHECK(s[2].note.place < s[3].note.place);
    CHECK(s[3].note.place < s[4].note.place); /* though 2 had served 4 before that */
    CHECK(s[4].note.place < s[5].note.place);
}

/* ---- the record ------------------------------------------------------------- */

static void free_record(struct weir_op *op, int result)
{
    CHECK_EQ(result, 0);
    called++;
    memset(op, 0xff, sizeof *op);
    free(op);
}

TEST(a_callback_may_free_its_record)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_sem sem = WEIR_SEM_INIT(8);

    take(&sem, 8);
    for (int i = 0; i < 16; i++) {
        struct weir_op *op = malloc(sizeof *op);

        CHECK(op != NULL);
        weir_op_init(op);
        if (i < 8)
            CHECK_EQ(weir_event_wait_async(&event, op, free_record), 0);
        else
            CHECK_EQ(weir_sem_acquire_async(&sem, 1, op, free_record), 0);
    }
    weir_event_set(&event);
    CHECK_EQ(called, 8);
    CHECK_EQ(weir_sem_release(&sem, 8), 0);
    CHECK_EQ(called, 16);
}

/* Comes back for more until it has been served ten times. */
struct regular {
    struct weir_op op;
    struct weir_sem *sem;
    int visits;
};

static void come_again(struct weir_op *op, int result)
{
    struct regular *r = (struct regular *)(void *)op;

    CHECK_EQ(result, 0);
    if (++r->visits == 10)
        return;
    CHECK_EQ(weir_sem_acquire_async(r->sem, 1, op, come_again), 0);
    CHECK_EQ(weir_sem_release(r->sem, 1), 0); /* which serves it itself, or another */
}

TEST(a_callback_may_queue_its_record_again)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct regular r[2] = {{WEIR_OP_INIT, &sem, 0}, {WEIR_OP_INIT, &sem, 0}};

    take(&sem, 1);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &r[0].op, come_again), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &r[1].op, come_again), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(r[0].visits, 10);
    CHECK_EQ(r[1].visits, 9); /* the other kept its last permit */
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(r[1].visits, 10);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

static void free_semaphore(struct weir_op *op, int result)
{
    struct regular *r = (struct regular *)(void *)op;

    CHECK(result == 0 || result == WEIR_ECLOSED);
    memset(r->sem, 0xff, sizeof *r->sem);
    free(r->sem);
    free(r);
}

TEST(the_last_callback_may_free_the_object)
{
    for (int i = 0; i < 3; i++) {
        struct regular *r = malloc(sizeof *r);
        struct weir_sem *sem = malloc(sizeof *sem);

        CHECK(r != NULL && sem != NULL);
        *r = (struct regular){WEIR_OP_INIT, sem, 0};
        CHECK_EQ(weir_sem_init(sem, 1), 0);
        take(sem, 1);
        CHECK_EQ(weir_sem_acquire_async(sem, 1, &r->op, free_semaphore), 0);
        if (i == 0)
            weir_sem_release(sem, 1);
        else if (i == 1)
            weir_sem_resize(sem, 2);
        else
            weir_sem_close(sem);
    }
}

/* ---- no lock is held ---------------------------------------------------------- */

struct busybody {
    struct weir_op op;
    struct weir_sem *sem;
    int calls;
};

static void use_the_same_semaphore(struct weir_op *op, int result)
{
    struct busybody *b = (struct busybody *)(void *)op;
    struct weir_sem *sem = b->sem;
    struct note n;

    CHECK_EQ(result, 0);
    b->calls++;
    CHECK_EQ(weir_sem_available(sem), 1);
    CHECK_EQ(weir_sem_acquire(sem, 1, WEIR_FOREVER), 0);
    CHECK_EQ(weir_sem_try_acquire(sem, 1), WEIR_EAGAIN);
    acquire_async(sem, 2, &n);
    CHECK_EQ(weir_sem_waiting(sem), 1);
    CHECK_EQ(weir_op_cancel(&n.op), 1);
    CHECK_EQ(weir_sem_resize(sem, 3), 0);
    CHECK_EQ(weir_sem_release(sem, 1), 0);
    CHECK_EQ(weir_sem_release(sem, 2), WEIR_EOVERFLOW);
    weir_sem_close(sem);
}

TEST(a_callback_may_use_the_object_that_called_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct busybody b = {WEIR_OP_INIT, &sem, 0};

    take(&sem, 2);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &b.op, use_the_same_semaphore), 0);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(b.calls, 1);
    CHECK_EQ(weir_sem_capacity(&sem), 3);
    CHECK_EQ(weir_sem_available(&sem), 2);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_ECLOSED);
}

struct party {
    struct note note;
    struct weir_barrier *barrier;
};

static void meet_again(struct weir_op *op, int result)
{
    struct party *p = (struct party *)(void *)op;

    take_note(op, result);
    if (p->note.calls < 5)
        CHECK(weir_barrier_wait_async(p->barrier, op, meet_again) >= 0);
}

TEST(a_callback_may_arrive_at_its_barrier_again)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(2);
    struct party p = {new_note(), &barrier};
    struct note last = new_note();

    CHECK_EQ(weir_barrier_wait_async(&barrier, &p.note.op, meet_again), 0);
    for (int i = 1; i <= 5; i++) {
        CHECK_EQ(weir_barrier_wait_async(&barrier, &last.op, must_not_be_called), 1);
        CHECK_EQ(p.note.calls, i);
        CHECK_EQ(p.note.result, 0);
    }
}

/* ---- waiting inside a callback -------------------------------------------------- */

/* One of each, in a state in which a wait on it has to wait. */
struct objects {
    struct weir_op op;
    struct weir_sem sem;
    struct weir_event event;
    struct weir_revent revent;
    struct weir_countdown countdown;
    struct weir_latch latch;
    struct weir_barrier barrier;
    struct weir_mutex mutex;
    struct weir_cond cond;
    struct weir_inbox *inbox;
    int calls;
};

static struct objects new_objects(void)
{
    struct objects o = {
        .op = WEIR_OP_INIT,
        .sem = WEIR_SEM_INIT(1),
        .event = WEIR_EVENT_INIT,
        .revent = WEIR_REVENT_INIT,
        .countdown = WEIR_COUNTDOWN_INIT(1),
        .latch = WEIR_LATCH_INIT(2),
        .barrier = WEIR_BARRIER_INIT(2),
        .mutex = WEIR_MUTEX_INIT,
        .cond = WEIR_COND_INIT,
    };

    take(&o.sem, 1);
    CHECK_EQ(weir_mutex_try_lock(&o.mutex), 0);
    CHECK_EQ(weir_inbox_open(&o.inbox), 0);
    return o;
}

/* What every wait gives, in a context where it gives the same everywhere. */
static void check_all_give(struct objects *o, struct weir_deadline deadline, int want)
{
    CHECK_EQ(weir_sem_acquire(&o->sem, 1, deadline), want);
    CHECK_EQ(weir_sem_wait_idle(&o->sem, deadline), want);
    CHECK_EQ(weir_event_wait(&o->event, deadline), want);
    CHECK_EQ(weir_revent_wait(&o->revent, deadline), want);
    CHECK_EQ(weir_countdown_wait(&o->countdown, deadline), want);
    CHECK_EQ(weir_mutex_lock(&o->mutex, deadline), want);
    CHECK_EQ(weir_cond_wait(&o->cond, &o->mutex, deadline), want);
}

static void try_to_wait(struct weir_op *op, int result)
{
    struct objects *o = (struct objects *)(void *)op;
    uint32_t index = 77;

    CHECK_EQ(result, 0);
    o->calls++;
    check_all_give(o, WEIR_FOREVER, WEIR_ECONTEXT);
    check_all_give(o, weir_within(10 * WEIR_S), WEIR_ECONTEXT);
    check_all_give(o, WEIR_NO_WAIT, WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_try_acquire(&o->sem, 1), WEIR_EAGAIN);
    CHECK_EQ(weir_mutex_try_lock(&o->mutex), WEIR_EAGAIN);
    CHECK_EQ(weir_latch_wait(&o->latch, WEIR_FOREVER), WEIR_ECONTEXT);
    CHECK_EQ(weir_barrier_wait(&o->barrier, WEIR_FOREVER, &index), WEIR_ECONTEXT);
    CHECK_EQ(weir_barrier_enter(&o->barrier, WEIR_FOREVER, &index), WEIR_ECONTEXT);
    CHECK_EQ(weir_inbox_drain(o->inbox), WEIR_ECONTEXT);
    CHECK_EQ(index, 77);
}

/* Nothing was queued, taken, counted or broken. */
static void check_unchanged(struct objects *o)
{
    struct note n = new_note();

    CHECK_EQ(weir_sem_available(&o->sem), 0);
    CHECK_EQ(weir_sem_waiting(&o->sem), 0);
    CHECK(!weir_event_is_set(&o->event));
    CHECK(!weir_revent_is_set(&o->revent));
    CHECK_EQ(weir_countdown_value(&o->countdown), 1);
    CHECK(!weir_latch_is_broken(&o->latch));
    CHECK_EQ(weir_latch_arrive(&o->latch, 2), 0); /* nobody had arrived */
    CHECK(!weir_barrier_is_broken(&o->barrier));
    CHECK_EQ(weir_barrier_waiting(&o->barrier), 0);
    CHECK_EQ(weir_mutex_lock_async(&o->mutex, &n.op, take_note), 0); /* held, and nobody waits */
    weir_mutex_unlock(&o->mutex);
    CHECK_CALLED(n, 0);
}

TEST(a_callback_that_would_have_to_wait_gets_econtext)
{
    struct objects o = new_objects();
    struct weir_event start = WEIR_EVENT_INIT;

    CHECK_EQ(weir_event_wait_async(&start, &o.op, try_to_wait), 0);
    weir_event_set(&start);
    CHECK_EQ(o.calls, 1);
    check_unchanged(&o);
    CHECK_EQ(weir_sem_acquire(&o.sem, 1, weir_within(WEIR_MS)), WEIR_ETIMEDOUT); /* here it may */
    weir_inbox_close(o.inbox);
}

static void wait_without_waiting(struct weir_op *op, int result)
{
    struct objects *o = (struct objects *)(void *)op;
    uint32_t index = 77;

    CHECK_EQ(result, 0);
    o->calls++;
    CHECK_EQ(weir_sem_wait_idle(&o->sem, WEIR_FOREVER), 0);
    CHECK_EQ(weir_sem_acquire(&o->sem, 1, WEIR_FOREVER), 0);
    CHECK_EQ(weir_event_wait(&o->event, WEIR_FOREVER), 0);
    CHECK_EQ(weir_revent_wait(&o->revent, WEIR_FOREVER), 0);
    CHECK_EQ(weir_countdown_wait(&o->countdown, WEIR_FOREVER), 0);
    CHECK_EQ(weir_latch_wait(&o->latch, WEIR_FOREVER), 0); /* the last to arrive */
    CHECK_EQ(weir_latch_wait(&o->latch, WEIR_FOREVER), 0); /* open */
    CHECK_EQ(weir_barrier_wait(&o->barrier, WEIR_FOREVER, &index), 0);
    CHECK_EQ(index, 1);
    CHECK_EQ(weir_mutex_lock(&o->mutex, WEIR_FOREVER), 0);
}

TEST(a_callback_that_need_not_wait_succeeds)
{
    struct objects o = new_objects();
    struct weir_event start = WEIR_EVENT_INIT;
    struct note other = new_note();

    CHECK_EQ(weir_sem_release(&o.sem, 1), 0);
    weir_event_set(&o.event);
    weir_revent_set(&o.revent);
    weir_countdown_clear(&o.countdown);
    CHECK_EQ(weir_latch_arrive(&o.latch, 1), 0);
    CHECK_EQ(weir_barrier_wait_async(&o.barrier, &other.op, take_note), 0);
    weir_mutex_unlock(&o.mutex);
    CHECK_EQ(weir_event_wait_async(&start, &o.op, wait_without_waiting), 0);
    weir_event_set(&start);
    CHECK_EQ(o.calls, 1);
    CHECK_CALLED(other, 0);
    weir_inbox_close(o.inbox);
}

/* ---- cancel ----------------------------------------------------------------- */

TEST(an_op_taken_back_is_never_called_and_holds_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct note n;

    take(&sem, 2);
    acquire_async(&sem, 1, &n);
    CHECK_EQ(weir_op_cancel(&n.op), 1);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_op_cancel(&n.op), 0); /* it is no longer queued */
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(weir_sem_available(&sem), 2);
    CHECK_NOT_CALLED(n);
}

TEST(an_op_that_was_called_cannot_be_taken_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_event *event = malloc(sizeof *event);
    struct note granted, woken = new_note();

    CHECK(event != NULL);
    weir_event_init(event);
    take(&sem, 1);
    acquire_async(&sem, 1, &granted);
    CHECK_EQ(weir_event_wait_async(event, &woken.op, take_note), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    weir_event_set(event);
    free(event); /* its last wait is over */
    CHECK_EQ(weir_op_cancel(&granted.op), 0);
    CHECK_EQ(weir_op_cancel(&woken.op), 0);
    CHECK_CALLED(granted, 0);
    CHECK_CALLED(woken, 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

static void cancel_itself(struct weir_op *op, int result)
{
    CHECK_EQ(weir_op_cancel(op), 0);
    take_note(op, result);
}

TEST(inside_its_callback_it_is_too_late_to_cancel)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct note n = new_note();

    CHECK_EQ(weir_event_wait_async(&event, &n.op, cancel_itself), 0);
    weir_event_set(&event);
    CHECK_CALLED(n, 0);
}

TEST(an_op_that_was_never_queued_cannot_be_taken_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_op_cancel(&op), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, must_not_be_called), 1);
    CHECK_EQ(weir_op_cancel(&op), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_acquire_async(&sem, 2, &op, must_not_be_called), WEIR_EINVAL);
    CHECK_EQ(weir_op_cancel(&op), 0);
}

TEST(an_op_taken_back_can_be_queued_again)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n;

    take(&sem, 1);
    for (int i = 0; i < 3; i++) {
        acquire_async(&sem, 1, &n);
        CHECK_EQ(weir_op_cancel(&n.op), 1);
    }
    acquire_async(&sem, 1, &n);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_CALLED(n, 0);
}

TEST(when_a_large_op_is_taken_back_those_behind_it_are_served)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller thread = {.sem = &sem};
    struct note large, small, last;

    take(&sem, 2);
    acquire_async(&sem, 4, &large);
    acquire_async(&sem, 1, &small);
    queue_up(&thread);
    acquire_async(&sem, 1, &last);
    CHECK_EQ(weir_op_cancel(&large.op), 1);
    CHECK_CALLED(small, 0);
    CHECK_EQ(result_of(&thread), 0);
    CHECK_NOT_CALLED(large);
    CHECK_NOT_CALLED(last);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_op_cancel(&last.op), 1);
}

TEST(an_op_in_the_middle_can_be_taken_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct note n[5];

    take(&sem, 1);
    for (int i = 0; i < 5; i++)
        acquire_async(&sem, 1, &n[i]);
    CHECK_EQ(weir_op_cancel(&n[2].op), 1);
    CHECK_EQ(weir_op_cancel(&n[4].op), 1);
    CHECK_EQ(weir_op_cancel(&n[0].op), 1);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_CALLED(n[1], 0);
    CHECK_NOT_CALLED(n[3]);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_CALLED(n[3], 0);
    CHECK_EQ(called, 2);
}

TEST(taking_one_back_leaves_the_others_waiting)
{
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_countdown countdown = WEIR_COUNTDOWN_INIT(1);
    struct weir_mutex mutex = WEIR_MUTEX_INIT;
    struct note gone[3], kept[3];

    CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
    for (int i = 0; i < 2; i++) {
        struct note *n = i == 0 ? gone : kept;

        n[0] = n[1] = n[2] = new_note();
        CHECK_EQ(weir_event_wait_async(&event, &n[0].op, take_note), 0);
        CHECK_EQ(weir_countdown_wait_async(&countdown, &n[1].op, take_note), 0);
        CHECK_EQ(weir_mutex_lock_async(&mutex, &n[2].op, take_note), 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_op_cancel(&gone[i].op), 1);
    weir_event_set(&event);
    CHECK_EQ(weir_countdown_down(&countdown, 1), 0);
    weir_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++) {
        CHECK_NOT_CALLED(gone[i]);
        CHECK_CALLED(kept[i], 0);
    }
}

static void wait_at_broken_latch(void *arg)
{
    CHECK_EQ(weir_latch_wait(arg, WEIR_FOREVER), WEIR_EBROKEN);
}

TEST(taking_one_back_breaks_a_latch)
{
    struct weir_latch latch = WEIR_LATCH_INIT(4);
    struct note gone = new_note(), other = new_note();

    CHECK_EQ(weir_latch_wait_async(&latch, &gone.op, take_note), 0);
    CHECK_EQ(weir_latch_wait_async(&latch, &other.op, take_note), 0);
    test_hold("park: about to sleep");
    test_spawn(wait_at_broken_latch, &latch);
    test_reached("park: about to sleep"); /* so it is in the queue */
    test_let_go("park: about to sleep");
    CHECK_EQ(weir_op_cancel(&gone.op), 1);
    CHECK(weir_latch_is_broken(&latch));
    CHECK_NOT_CALLED(gone);
    CHECK_CALLED(other, WEIR_EBROKEN);
    CHECK_EQ(weir_latch_arrive(&latch, 1), WEIR_EBROKEN);
    test_join_all();
}

static void wait_at_broken_barrier(void *arg)
{
    CHECK_EQ(weir_barrier_wait(arg, WEIR_FOREVER, NULL), WEIR_EBROKEN);
}

TEST(taking_one_back_breaks_a_barrier)
{
    struct weir_barrier barrier = WEIR_BARRIER_INIT(4);
    struct note gone = new_note(), other = new_note();

    CHECK_EQ(weir_barrier_wait_async(&barrier, &gone.op, take_note), 0);
    CHECK_EQ(weir_barrier_wait_async(&barrier, &other.op, take_note), 0);
    test_spawn(wait_at_broken_barrier, &barrier);
    EVENTUALLY(weir_barrier_waiting(&barrier) == 3);
    CHECK_EQ(weir_op_cancel(&gone.op), 1);
    CHECK(weir_barrier_is_broken(&barrier));
    CHECK_NOT_CALLED(gone);
    CHECK_CALLED(other, WEIR_EBROKEN);
    test_join_all();
    weir_barrier_reset(&barrier);
    CHECK(!weir_barrier_is_broken(&barrier));
    CHECK_EQ(weir_barrier_waiting(&barrier), 0);
}
