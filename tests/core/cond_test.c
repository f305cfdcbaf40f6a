/* SPDX-License-Identifier: MIT */
/* weir_cond: the promises made in weir/cond.h, in that order. */
#include <weir/cond.h>
#include <weir/event.h>

#include "core/waiting.h"

/* ---- helpers --------------------------------------------------------------- */

/* A condition and a mutex; it begins with the condition's queue. */
struct room {
    struct weir_cond changed;
    struct weir_mutex mutex;
    int owners;   /* under the mutex: who is inside */
    int returned; /* under the mutex: how many waits have returned */
};

static const struct room NEW_ROOM = {.changed = WEIR_COND_INIT, .mutex = WEIR_MUTEX_INIT};

static void enter(struct room *room)
{
    CHECK_EQ(weir_mutex_lock(&room->mutex, WEIR_FOREVER), 0);
    CHECK_EQ(room->owners++, 0);
}

static void leave(struct room *room)
{
    room->owners--;
    weir_mutex_unlock(&room->mutex);
}

/* The wait as such; whatever it returns, the mutex is ours before and after. */
static int wait_inside(struct room *room, struct weir_deadline deadline)
{
    room->owners--;
    int r = weir_cond_wait(&room->changed, &room->mutex, deadline);
    CHECK_EQ(room->owners++, 0);
    CHECK_EQ(weir_mutex_try_lock(&room->mutex), WEIR_EAGAIN);
    return r;
}

/* Enter, wait once, leave.  Returns as which of all the wait returned, from 1 on. */
static int wait_in_room(void *arg, struct weir_deadline deadline)
{
    struct room *room = arg;

    enter(room);
    int r = wait_inside(room, deadline);
    if (r == 0)
        r = ++room->returned;
    leave(room);
    return r;
}

static void check_empty(struct room *room)
{
    CHECK_EQ(queued(&room->changed), 0);
    CHECK_EQ(queued(&room->mutex), 0);
    CHECK_EQ(weir_mutex_try_lock(&room->mutex), 0);
    weir_mutex_unlock(&room->mutex);
}

static void queue_up_in(struct room *room, struct visitor *v, int n)
{
    for (int i = 0; i < n; i++) {
        v[i] = (struct visitor){.wait = wait_in_room, .object = room};
        queue_up(&v[i], 1);
        EVENTUALLY(queued(&room->mutex) == 0);
    }
}

/* ---- wait -------------------------------------------------------------------- */

TEST(wait_gives_the_mutex_up_and_owns_it_again_when_signalled)
{
    struct room room = {0};
    struct visitor v;

    weir_cond_init(&room.changed);
    weir_mutex_init(&room.mutex);
    queue_up_in(&room, &v, 1);
    enter(&room); /* or it would not have given the mutex up */
    leave(&room);
    CHECK_EQ(result_of(&v), NOT_YET);
    weir_cond_signal(&room.changed, 1);
    test_join_all(); /* wait_inside checks that it owned the mutex */
    CHECK_EQ(v.result, 1);
    check_empty(&room);
}

TEST(wait_gives_up_at_its_deadline_and_owns_the_mutex_again)
{
    struct room room = NEW_ROOM;
    struct weir_deadline deadline = weir_within(2 * WEIR_MS);

    enter(&room);
    CHECK_EQ(wait_inside(&room, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    leave(&room);
    check_empty(&room);
}

TEST(who_gives_up_waits_for_the_mutex_however_long_it_is_held)
{
    struct room room = NEW_ROOM;
    struct visitor v = {.wait = wait_in_room, .object = &room};

    queue_up_and_hold_leaving(&v);
    enter(&room);
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(queued(&room.mutex) == 1); /* its deadline has passed long since */
    CHECK_EQ(queued(&room.changed), 0);
    CHECK_EQ(result_of(&v), NOT_YET);
    EVENTUALLY(state_of(nth_waiter(&room.mutex, 0)) == ASLEEP);
    leave(&room);
    test_join_all();
    CHECK_EQ(v.result, WEIR_ETIMEDOUT);
    check_empty(&room);
}

static void lock_and_unlock(void *mutex)
{
    CHECK_EQ(weir_mutex_lock(mutex, WEIR_FOREVER), 0);
    weir_mutex_unlock(mutex);
}

TEST(with_a_deadline_in_the_past_the_mutex_is_not_let_go)
{
    struct room room = NEW_ROOM;

    enter(&room);
    test_spawn(lock_and_unlock, &room.mutex);
    EVENTUALLY(queued(&room.mutex) == 1);
    CHECK_EQ(weir_cond_wait(&room.changed, &room.mutex, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_cond_wait(&room.changed, &room.mutex, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
    CHECK_EQ(queued(&room.mutex), 1); /* or it would have been handed over */
    CHECK_EQ(queued(&room.changed), 0);
    leave(&room);
    test_join_all();
    check_empty(&room);
}

struct inside {
    struct weir_op op;
    struct room *room;
    int result;
};

static void wait_in_callback(struct weir_op *op, int result)
{
    struct inside *i = (struct inside *)op;

    CHECK_EQ(result, 0);
    enter(i->room);
    i->result = wait_inside(i->room, WEIR_FOREVER);
    leave(i->room);
}

TEST(inside_a_callback_one_may_not_wait_and_keeps_the_mutex)
{
    struct room room = NEW_ROOM;
    struct weir_event event = WEIR_EVENT_INIT;
    struct inside i = {.room = &room};

    CHECK_EQ(weir_event_wait_async(&event, &i.op, wait_in_callback), 0);
    weir_event_set(&event);
    CHECK_EQ(i.result, WEIR_ECONTEXT);
    check_empty(&room);
}

static void wait_without_the_mutex(void)
{
    struct room room = NEW_ROOM;

    CHECK_EQ(weir_cond_wait(&room.changed, &room.mutex, WEIR_FOREVER), 0);
}

TEST(waiting_without_the_mutex_stops_the_program)
{
    CHECK_ABORTS(wait_without_the_mutex(),
                 "weir: BUG: weir_mutex_unlock of a mutex that is not locked");
}

/* ---- signal ------------------------------------------------------------------ */

TEST(a_signal_lets_exactly_so_many_go_on_oldest_first)
{
    struct room room = NEW_ROOM;
    struct visitor v[6];

    queue_up_in(&room, v, 6);
    weir_cond_signal(&room.changed, 2);
    EVENTUALLY(result_of(&v[0]) == 1 && result_of(&v[1]) == 2);
    CHECK_EQ(queued(&room.changed), 4);
    weir_cond_signal(&room.changed, 0);
    CHECK_EQ(queued(&room.changed), 4);
    weir_cond_signal(&room.changed, 1);
    EVENTUALLY(result_of(&v[2]) == 3);
    CHECK_EQ(queued(&room.changed), 3);
    CHECK_EQ(result_of(&v[3]), NOT_YET);
    weir_cond_signal(&room.changed, UINT32_MAX); /* more than there are */
    test_join_all();
    for (int i = 3; i < 6; i++)
        CHECK_EQ(v[i].result, i + 1);
    check_empty(&room);
}

TEST(a_broadcast_lets_all_go_on_oldest_first)
{
    struct room room = NEW_ROOM;
    struct visitor v[6];

    queue_up_in(&room, v, 6);
    weir_cond_broadcast(&room.changed);
    test_join_all();
    for (int i = 0; i < 6; i++)
        CHECK_EQ(v[i].result, i + 1);
    check_empty(&room);
}

TEST(a_signal_when_nobody_waits_is_not_kept)
{
    struct room room = NEW_ROOM;

    weir_cond_signal(&room.changed, 3);
    weir_cond_broadcast(&room.changed);
    enter(&room);
    CHECK_EQ(wait_inside(&room, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    leave(&room);
}

/* Those let go on while the mutex is held: in its queue, in their order, and asleep. */
static void check_moves_to_the_mutex(bool broadcast)
{
    struct room room = NEW_ROOM;
    struct visitor v[4];

    queue_up_in(&room, v, 3);
    for (int i = 0; i < 3; i++)
        EVENTUALLY(state_of(nth_waiter(&room.changed, i)) == ASLEEP);
    enter(&room);
    v[3] = (struct visitor){.wait = wait_in_room, .object = &room, .result = NOT_YET};
    test_spawn(visit, &v[3]);
    EVENTUALLY(queued(&room.mutex) == 1); /* it came for the mutex first, so it is served first */
    waiter *w[3] = {nth_waiter(&room.changed, 0), nth_waiter(&room.changed, 1),
                    nth_waiter(&room.changed, 2)};
    if (broadcast)
        weir_cond_broadcast(&room.changed);
    else
        weir_cond_signal(&room.changed, 3);
    CHECK_EQ(queued(&room.changed), 0);
    CHECK_EQ(queued(&room.mutex), 4);
    for (int i = 0; i < 3; i++) {
        CHECK(nth_waiter(&room.mutex, i + 1) == w[i]);
        CHECK_EQ(state_of(w[i]), ASLEEP);
    }
    leave(&room);
    EVENTUALLY(queued(&room.changed) == 1); /* the fourth has been inside, and waits */
    for (int i = 0; i < 3; i++)
        EVENTUALLY(result_of(&v[i]) == i + 1);
    weir_cond_signal(&room.changed, 1);
    test_join_all();
    CHECK_EQ(v[3].result, 4);
    check_empty(&room);
}

TEST(those_signalled_are_moved_to_the_queue_of_the_mutex_and_sleep_on)
{
    check_moves_to_the_mutex(false);
}

TEST(a_broadcast_moves_all_to_the_queue_of_the_mutex_and_they_sleep_on)
{
    check_moves_to_the_mutex(true);
}

static void signal_two(void *room)
{
    weir_cond_signal(&((struct room *)room)->changed, 2);
}

TEST(if_the_mutex_is_free_the_oldest_owns_it_before_signal_returns)
{
    struct room room = NEW_ROOM;
    struct visitor v[2];

    queue_up_in(&room, v, 2);
    enter(&room); /* past this, the second has given the mutex up */
    leave(&room);
    test_hold(NOT_DELIVERED);
    test_spawn(signal_two, &room);
    test_reached(NOT_DELIVERED); /* the new owner does not know of its luck */
    CHECK_EQ(weir_mutex_try_lock(&room.mutex), WEIR_EAGAIN);
    CHECK_EQ(queued(&room.mutex), 1);
    CHECK_EQ(queued(&room.changed), 0);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(v[0].result, 1);
    CHECK_EQ(v[1].result, 2);
    check_empty(&room);
}

TEST(a_signal_beats_a_deadline_that_is_noticed_after_it)
{
    struct room room = NEW_ROOM;
    struct visitor v = {.wait = wait_in_room, .object = &room}, other;

    queue_up_and_hold_leaving(&v);
    queue_up_in(&room, &other, 1);
    enter(&room);
    weir_cond_signal(&room.changed, 1); /* goes to v, which is still queued */
    CHECK_EQ(queued(&room.mutex), 1);
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(state_of(nth_waiter(&room.mutex, 0)) == ASLEEP);
    CHECK_EQ(queued(&room.mutex), 1); /* its deadline does not end the wait for the mutex */
    CHECK_EQ(result_of(&v), NOT_YET);
    leave(&room);
    EVENTUALLY(result_of(&v) != NOT_YET);
    CHECK_EQ(result_of(&v), 1);         /* so the signal is not lost, */
    CHECK_EQ(queued(&room.changed), 1); /* and has let one go on only */
    CHECK_EQ(result_of(&other), NOT_YET);
    weir_cond_broadcast(&room.changed);
    test_join_all();
    CHECK_EQ(other.result, 2);
    check_empty(&room);
}

TEST(a_broadcast_beats_a_deadline_that_is_noticed_after_it)
{
    struct room room = NEW_ROOM;
    struct visitor v = {.wait = wait_in_room, .object = &room};

    queue_up_and_hold_leaving(&v);
    weir_cond_broadcast(&room.changed);
    CHECK_EQ(weir_mutex_try_lock(&room.mutex), WEIR_EAGAIN); /* v has it */
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(v.result, 1);
    check_empty(&room);
}

TEST(a_signal_passes_by_one_who_has_given_up)
{
    struct room room = NEW_ROOM;
    struct visitor v = {.wait = wait_in_room, .object = &room}, other;

    queue_up_and_hold_leaving(&v);
    queue_up_in(&room, &other, 1);
    enter(&room);
    test_let_go(ABOUT_TO_LEAVE);
    EVENTUALLY(queued(&room.changed) == 1); /* v has left; it waits for the mutex only */
    weir_cond_signal(&room.changed, 1);
    leave(&room);
    test_join_all();
    CHECK_EQ(v.result, WEIR_ETIMEDOUT);
    CHECK_EQ(other.result, 1);
    check_empty(&room);
}

static void signal_one(void *room)
{
    weir_cond_signal(&((struct room *)room)->changed, 1);
}

TEST(signalling_needs_no_mutex)
{
    struct room room = NEW_ROOM;
    struct visitor v[3];

    queue_up_in(&room, v, 3);
    enter(&room); /* nor does it wait for it */
    weir_cond_signal(&room.changed, 1);
    leave(&room);
    for (int i = 0; i < 2; i++)
        test_spawn(signal_one, &room);
    test_join_all();
    CHECK_EQ(v[0].result, 1);
    CHECK_EQ(v[1].result + v[2].result, 2 + 3);
    check_empty(&room);
}

/* ---- between signal and mutex ------------------------------------------------- */

/* A signaller that is held when it has taken waiters off the condition and not yet queued
 * them for their mutex: they are in no queue at all, and nobody may lose them. */
#define ABOUT_TO_ADMIT "cond: about to admit"

static void broadcast(void *room)
{
    weir_cond_broadcast(&((struct room *)room)->changed);
}

static void (*const ways_to_signal[])(void *) = {signal_one, broadcast};

static void hold_signaller(void (*way)(void *), struct room *room)
{
    test_hold(ABOUT_TO_ADMIT);
    test_spawn(way, room);
    test_reached(ABOUT_TO_ADMIT);
}

TEST(who_was_signalled_is_not_lost_though_its_deadline_passes_before_it_is_admitted)
{
    for (int i = 0; i < 2; i++) {
        struct room room = NEW_ROOM;
        struct visitor v = {.wait = wait_in_room, .object = &room};

        queue_up_and_hold_leaving(&v);
        waiter *w = nth_waiter(&room.changed, 0);
        hold_signaller(ways_to_signal[i], &room);
        test_let_go(ABOUT_TO_LEAVE);
        EVENTUALLY(state_of(w) == ASLEEP); /* it has seen that it cannot leave any more */
        enter(&room);
        CHECK_EQ(queued(&room.mutex), 0);
        leave(&room);
        CHECK_EQ(result_of(&v), NOT_YET);
        test_let_go(ABOUT_TO_ADMIT);
        test_join_all();
        CHECK_EQ(v.result, 1);
        check_empty(&room);
    }
}

TEST(who_was_signalled_while_the_mutex_was_held_owns_it_if_it_is_free_by_then)
{
    for (int i = 0; i < 2; i++) {
        struct room room = NEW_ROOM;
        struct visitor v;

        queue_up_in(&room, &v, 1);
        enter(&room);
        hold_signaller(ways_to_signal[i], &room);
        leave(&room); /* finds nobody to hand it over to */
        CHECK_EQ(result_of(&v), NOT_YET);
        test_let_go(ABOUT_TO_ADMIT);
        test_join_all();
        CHECK_EQ(v.result, 1);
        check_empty(&room);
    }
}

TEST(who_was_signalled_while_the_mutex_was_free_waits_for_it_if_it_is_held_by_then)
{
    for (int i = 0; i < 2; i++) {
        struct room room = NEW_ROOM;
        struct visitor v;

        queue_up_in(&room, &v, 1);
        enter(&room); /* past this, it has given the mutex up */
        leave(&room);
        hold_signaller(ways_to_signal[i], &room);
        enter(&room);
        test_let_go(ABOUT_TO_ADMIT);
        EVENTUALLY(queued(&room.mutex) == 1);
        CHECK_EQ(result_of(&v), NOT_YET);
        leave(&room);
        test_join_all();
        CHECK_EQ(v.result, 1);
        check_empty(&room);
    }
}

TEST(a_signal_that_comes_before_the_last_one_is_through_goes_to_the_next)
{
    for (int i = 0; i < 2; i++) {
        struct room room = NEW_ROOM;
        struct visitor v, next;

        queue_up_in(&room, &v, 1);
        hold_signaller(ways_to_signal[i], &room);
        queue_up_in(&room, &next, 1);
        weir_cond_signal(&room.changed, 1);
        EVENTUALLY(result_of(&next) == 1);
        CHECK_EQ(result_of(&v), NOT_YET);
        test_let_go(ABOUT_TO_ADMIT);
        test_join_all();
        CHECK_EQ(v.result, 2);
        check_empty(&room);
    }
}

/* ---- one condition, two mutexes ----------------------------------------------- */

static struct weir_cond shared;
static struct weir_mutex mutexes[2];
static int returned[2];

static int wait_with(int i, struct weir_deadline deadline)
{
    CHECK_EQ(weir_mutex_lock(&mutexes[i], WEIR_FOREVER), 0);
    CHECK_EQ(weir_cond_wait(&shared, &mutexes[i], deadline), 0);
    CHECK_EQ(weir_mutex_try_lock(&mutexes[i]), WEIR_EAGAIN);
    int place = ++returned[i];
    weir_mutex_unlock(&mutexes[i]);
    return place;
}

static int wait_with_first(void *cond, struct weir_deadline deadline)
{
    (void)cond;
    return wait_with(0, deadline);
}

static int wait_with_second(void *cond, struct weir_deadline deadline)
{
    (void)cond;
    return wait_with(1, deadline);
}

TEST(each_is_moved_to_the_mutex_with_which_it_waits)
{
    static const int which[] = {0, 1, 1, 0, 0, 1, 0};
    static const int place[] = {1, 1, 2, 2, 3, 3, 4};
    struct visitor v[7];

    for (int i = 0; i < 7; i++) {
        v[i] = (struct visitor){which[i] ? wait_with_second : wait_with_first, &shared, 0, 0};
        queue_up(&v[i], 1);
    }
    CHECK_EQ(weir_mutex_lock(&mutexes[0], WEIR_FOREVER), 0);
    CHECK_EQ(weir_mutex_lock(&mutexes[1], WEIR_FOREVER), 0);
    weir_cond_signal(&shared, 3);
    CHECK_EQ(queued(&mutexes[0]), 1);
    CHECK_EQ(queued(&mutexes[1]), 2);
    weir_cond_broadcast(&shared);
    CHECK_EQ(queued(&mutexes[0]), 4);
    CHECK_EQ(queued(&mutexes[1]), 3);
    weir_mutex_unlock(&mutexes[0]);
    weir_mutex_unlock(&mutexes[1]);
    test_join_all();
    for (int i = 0; i < 7; i++)
        CHECK_EQ(v[i].result, place[i]);
}

/* ---- a bounded queue ---------------------------------------------------------- */

/* Room for one item, so that every signal counts: a lost one stops everything.  Some
 * consumers have little patience, and go away without another look at the buffer. */
enum { PRODUCERS = 2, PATIENT = 1, IMPATIENT = 2 };

struct buffer {
    struct weir_mutex mutex;
    struct weir_cond not_empty, not_full;
    int items, value;
    int to_come; /* how many are still to be consumed */
    int64_t put, taken;
};

static void put(struct buffer *b, int value)
{
    CHECK_EQ(weir_mutex_lock(&b->mutex, WEIR_FOREVER), 0);
    while (b->items > 0)
        CHECK_EQ(weir_cond_wait(&b->not_full, &b->mutex, WEIR_FOREVER), 0);
    b->items++;
    b->value = value;
    b->put += value;
    weir_cond_signal(&b->not_empty, 1);
    weir_mutex_unlock(&b->mutex);
}

/* Returns false when there is no more to come. */
static bool take(struct buffer *b, bool patient)
{
    int r = 0;

    CHECK_EQ(weir_mutex_lock(&b->mutex, WEIR_FOREVER), 0);
    while (r == 0 && b->items == 0 && b->to_come > 0)
        r = weir_cond_wait(&b->not_empty, &b->mutex,
                           patient ? WEIR_FOREVER : weir_within(test_random(50) * WEIR_US));
    CHECK(r == 0 || (r == WEIR_ETIMEDOUT && !patient));
    if (r == 0 && b->items > 0) {
        b->items--;
        b->taken += b->value;
        b->to_come--;
        weir_cond_signal(&b->not_full, 1);
        if (b->to_come == 0)
            weir_cond_broadcast(&b->not_empty);
    }
    bool more = b->to_come > 0;
    weir_mutex_unlock(&b->mutex);
    return more;
}

static void produce(void *b)
{
    for (int i = test_scaled(1000); i > 0; i--)
        put(b, 1 + (int)test_random(1000));
}

static void consume(void *b)
{
    while (take(b, true))
        ;
}

static void consume_impatiently(void *b)
{
    while (take(b, false))
        ;
}

TEST(nothing_is_lost_in_a_bounded_queue)
{
    struct buffer b = {.to_come = PRODUCERS * test_scaled(1000)};

    for (int i = 0; i < PRODUCERS; i++)
        test_spawn(produce, &b);
    for (int i = 0; i < PATIENT; i++)
        test_spawn(consume, &b);
    for (int i = 0; i < IMPATIENT; i++)
        test_spawn(consume_impatiently, &b);
    test_join_all();
    CHECK_EQ(b.items, 0);
    CHECK_EQ(b.taken, b.put);
    CHECK_EQ(queued(&b.not_empty), 0);
    CHECK_EQ(queued(&b.not_full), 0);
}

/* ---- end of life ------------------------------------------------------------- */

static void init_room(void *room)
{
    *(struct room *)room = NEW_ROOM;
}

static void signal_when_it_waits(void *room)
{
    while (queued(room) == 0)
        sched_yield();
    signal_one(room);
}

static void signal_inside_when_it_waits(void *arg)
{
    struct room *room = arg;

    while (queued(room) == 0)
        sched_yield();
    enter(room);
    weir_cond_broadcast(&room->changed);
    leave(room);
}

TEST(condition_and_mutex_may_be_freed_the_moment_the_wait_returns)
{
    void (*ends[])(void *) = {signal_when_it_waits, signal_inside_when_it_waits};

    for (int i = 0; i < 2; i++)
        live_short_lives((struct short_lives){
            .size = sizeof(struct room),
            .init = init_room,
            .wait = wait_in_room,
            .end_wait = ends[i],
        });
}
