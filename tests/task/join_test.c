/* SPDX-License-Identifier: MIT */
/* Joining: who begins first, who is granted what just when a join is given up, and handles
 * whose record has long been another task's. */
#include "task/tasks.h"

#include "task/task.h"

/* ---- tasks that end when they are told to ------------------------------------------ */

/* Not by an event: those who set one pass the testpoints that are held here. */
struct ending {
    int told;
    int result;
};

static int end_when_told(void *arg)
{
    struct ending *e = arg;

    YIELD_UNTIL(__atomic_load_n(&e->told, __ATOMIC_ACQUIRE));
    return e->result;
}

static void tell(struct ending *e)
{
    __atomic_store_n(&e->told, 1, __ATOMIC_RELEASE);
}

static uint32_t joiners(struct weir_task one)
{
    return queued(&one.slot_->queue);
}

struct join {
    struct weir_task task;
    struct weir_deadline deadline;
    int joined; /* what the join returned, NOT_YET until then */
    int result;
    int next; /* what a wait after it returned */
};

static int do_join(void *arg)
{
    struct join *j = arg;
    int r = weir_task_join(j->task, j->deadline, &j->result);

    j->next = weir_task_sleep(weir_within(1));
    __atomic_store_n(&j->joined, r, __ATOMIC_RELEASE);
    return r;
}

static int joined(const struct join *j)
{
    return __atomic_load_n(&j->joined, __ATOMIC_ACQUIRE);
}

static void join_as_thread(void *arg)
{
    struct join *j = arg;

    j->deadline = weir_within(BRIEFLY);
    do_join(j);
}

#define JOIN_OF(of) ((struct join){(of), WEIR_FOREVER, NOT_YET, NOT_YET, NOT_YET})

static void check_stale(struct weir_task one)
{
    struct weir_op op = WEIR_OP_INIT;
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(one, WEIR_FOREVER, &result), WEIR_EINVAL);
    CHECK_EQ(weir_task_join(one, WEIR_NO_WAIT, &result), WEIR_EINVAL);
    CHECK_EQ(result, NOT_YET);
    CHECK_EQ(weir_task_join_async(one, &op, note), WEIR_EINVAL);
    CHECK_EQ(weir_task_detach(one), WEIR_EINVAL);
    CHECK_EQ(weir_task_cancel(one), WEIR_EINVAL);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* ---- the task begins first ---------------------------------------------------------- */

static int count_joiners(void *arg)
{
    (void)arg;
    return (int)joiners(weir_task_self());
}

static int yield_and_count_joiners(void *arg)
{
    CHECK_EQ(weir_task_yield(), 0);
    return count_joiners(arg);
}

TEST(whoever_joins_an_unstarted_task_queues_only_if_its_first_turn_is_not_its_last)
{
    AS_TASK(whoever_joins_an_unstarted_task_queues_only_if_its_first_turn_is_not_its_last);
    CHECK_EQ(finish(start(count_joiners, NULL)), 0);
    CHECK_EQ(finish(start(yield_and_count_joiners, NULL)), 1);
}

TEST(those_that_were_ready_before_the_joined_one_run_before_it)
{
    AS_TASK(those_that_were_ready_before_the_joined_one_run_before_it);
    struct weir_task a = start(say_it, "a"), b = start(say_it, "b"), c = start(say_it, "c");

    CHECK_EQ(finish(c), 0);
    CHECK_STR(said, "abc");
    CHECK_EQ(finish(a), 0);
    CHECK_EQ(finish(b), 0);
}

static int say_and_spawn(void *arg)
{
    const char *text = arg;

    say(text[0]);
    return weir_task_spawn(say_it, (void *)(text + 1), NULL);
}

TEST(whoever_joins_goes_on_behind_those_before_it_and_ahead_of_those_that_came_later)
{
    AS_TASK(whoever_joins_goes_on_behind_those_before_it_and_ahead_of_those_that_came_later);
    struct weir_task a = start(say_and_spawn, "aA"), b = start(say_and_spawn, "bB");

    CHECK_EQ(finish(a), 0);
    say('j');
    CHECK_EQ(finish(b), 0); /* has ended: nobody runs meanwhile */
    say('j');
    let_others_run();
    CHECK_STR(said, "abjjAB");
}

static int say_thrice(void *arg)
{
    for (int i = 0; i < 3; i++) {
        say_it(arg);
        CHECK_EQ(weir_task_yield(), 0);
    }
    return 0;
}

/* As a task: join one that says "1" or "2" three times, then say "a" or "b". */
static int join_and_say(void *arg)
{
    char *text = arg;
    int r = finish(start(say_thrice, text));

    say(text[1]);
    return r;
}

TEST(those_who_join_in_turn_hold_up_nobody)
{
    AS_TASK(those_who_join_in_turn_hold_up_nobody);
    struct weir_task a = start(join_and_say, "1a"), b = start(join_and_say, "2b");

    CHECK_EQ(finish(a), 0);
    CHECK_EQ(finish(b), 0);
    CHECK_STR(said, "121212ab");
}

TEST(a_join_that_may_not_wait_lets_nobody_begin)
{
    AS_TASK(a_join_that_may_not_wait_lets_nobody_begin);
    struct weir_task one = start(say_it, "a");
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(one, WEIR_NO_WAIT, &result), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_task_join(one, WEIR_FOREVER, &result), WEIR_ECANCELED);
    CHECK_EQ(result, NOT_YET);
    CHECK_EQ(how_much_was_said(), 0);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    CHECK_EQ(weir_task_join(one, WEIR_NO_WAIT, &result), 0);
    CHECK_EQ(result, 0);
}

static int cancel_and_end(void *joiner)
{
    CHECK_EQ(weir_task_cancel(*(struct weir_task *)joiner), 0);
    return 5;
}

static int cancel_and_yield(void *joiner)
{
    CHECK_EQ(weir_task_cancel(*(struct weir_task *)joiner), 0);
    CHECK_EQ(weir_task_yield(), 0);
    return 6;
}

TEST(a_joiner_is_cancelled_by_the_task_that_it_let_begin)
{
    AS_TASK(a_joiner_is_cancelled_by_the_task_that_it_let_begin);
    struct weir_task self = weir_task_self();
    struct weir_task ends = start(cancel_and_end, &self), stays = start(cancel_and_yield, &self);
    int result = NOT_YET;

    CHECK_EQ(weir_task_join(ends, WEIR_FOREVER, &result), 0); /* need not wait any more */
    CHECK_EQ(result, 5);
    CHECK_EQ(weir_task_join(stays, WEIR_FOREVER, &result), WEIR_ECANCELED);
    CHECK_EQ(result, 5);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    CHECK_EQ(weir_task_join(stays, WEIR_NO_WAIT, &result), 0);
    CHECK_EQ(result, 6);
}

TEST(of_two_who_let_a_task_begin_one_joins_it)
{
    AS_TASK(of_two_who_let_a_task_begin_one_joins_it);
    struct join other = JOIN_OF((struct weir_task){0});
    struct weir_task joiner = start(do_join, &other), one = start(say_it, "a");
    int r;

    other.task = one;
    r = weir_task_join(one, WEIR_FOREVER, NULL);
    YIELD_UNTIL(joined(&other) != NOT_YET);
    CHECK(r == 0 || r == WEIR_EINVAL);
    CHECK_EQ(joined(&other), r == 0 ? WEIR_EINVAL : 0);
    CHECK_EQ(finish(joiner), joined(&other));
    check_stale(one);
}

/* While somebody lets `task` begin: nobody is to join it, and another takes its place. */
struct takeover {
    struct weir_task task, next;
    struct ending ending;
};

static int detach_it(void *arg)
{
    return weir_task_detach(((struct takeover *)arg)->task);
}

static int spawn_next(void *arg)
{
    struct takeover *t = arg;

    t->next = start(end_when_told, &t->ending);
    return 0;
}

TEST(a_task_that_was_let_begin_and_is_gone_is_not_taken_for_the_next_in_its_place)
{
    AS_TASK(a_task_that_was_let_begin_and_is_gone_is_not_taken_for_the_next_in_its_place);
    struct takeover t = {.ending = {0, 8}};
    struct weir_task first = start(detach_it, &t), last;
    int result = NOT_YET;

    t.task = start(say_it, "a");
    last = start(spawn_next, &t);
    CHECK_EQ(weir_task_join(t.task, WEIR_FOREVER, &result), WEIR_EINVAL);
    CHECK_EQ(result, NOT_YET);
    CHECK_STR(said, "a");
    CHECK(t.next.slot_ == t.task.slot_); /* else this test says nothing */
    tell(&t.ending);
    CHECK_EQ(finish(t.next), 8);
    CHECK_EQ(finish(first), 0);
    CHECK_EQ(finish(last), 0);
}

/* ---- given up just when the task ends ------------------------------------------------ */

/* Begin another one in the place of one that ended there. */
static struct weir_task begin_in_place_of(struct weir_runtime *runtime, struct weir_task old,
                                          struct takeover *t)
{
    CHECK_EQ(finish(start_in(runtime, spawn_next, t)), 0);
    CHECK(t->next.slot_ == old.slot_); /* else this test says nothing */
    return t->next;
}

/* Its end has begun; the worker's next task finds it over. */
static void end_it(struct weir_runtime *runtime, struct ending *e)
{
    uint64_t before = live_tasks(runtime);

    tell(e);
    EVENTUALLY(live_tasks(runtime) == before - 1);
}

TEST(a_thread_whose_deadline_passed_first_joins_after_all_when_the_task_ends_before_it_left)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending ending = {0, 4};
    struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));

    test_hold(ABOUT_TO_LEAVE);
    test_spawn(join_as_thread, &join);
    test_reached(ABOUT_TO_LEAVE);
    CHECK_EQ(joiners(join.task), 1);
    CHECK_EQ(weir_task_detach(join.task), WEIR_EINVAL); /* it is still being joined */
    CHECK_EQ(weir_task_join(join.task, WEIR_NO_WAIT, NULL), WEIR_EINVAL);
    end_it(runtime, &ending);
    CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0);
    check_stale(join.task);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(joined(&join), 0);
    CHECK_EQ(join.result, 4);
    close_runtime(runtime);
}

TEST(a_thread_that_gives_up_too_late_does_not_disturb_who_joins_the_next_in_its_place)
{
    struct weir_runtime *runtime = open_runtime(1), *elsewhere = open_runtime(1);
    struct ending ending = {0, 4};
    struct takeover t = {.ending = {0, 8}};
    struct join late = JOIN_OF(start_in(runtime, end_when_told, &ending));

    test_hold(ABOUT_TO_LEAVE);
    test_spawn(join_as_thread, &late);
    test_reached(ABOUT_TO_LEAVE);
    end_it(runtime, &ending);
    struct join next = JOIN_OF(begin_in_place_of(runtime, late.task, &t));
    struct weir_task joiner = start_in(elsewhere, do_join, &next);
    EVENTUALLY(joiners(next.task) == 1);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(joined(&late), 0);
    CHECK_EQ(late.result, 4);
    CHECK_EQ(joiners(next.task), 1);
    CHECK_EQ(weir_task_detach(next.task), WEIR_EINVAL); /* it is still being joined */
    tell(&t.ending);
    CHECK_EQ(finish(joiner), 0);
    CHECK_EQ(next.result, 8);
    check_stale(next.task);
    close_runtime(elsewhere);
    close_runtime(runtime);
}

TEST(a_thread_that_left_in_time_leaves_a_handle_that_can_be_joined_or_detached)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending endings[2] = {{0, 1}, {0, 2}};

    for (int i = 0; i < 2; i++) {
        struct join join = JOIN_OF(start_in(runtime, end_when_told, &endings[i]));

        test_spawn(join_as_thread, &join);
        test_join_all();
        CHECK_EQ(joined(&join), WEIR_ETIMEDOUT);
        CHECK_EQ(join.result, NOT_YET);
        CHECK_EQ(joiners(join.task), 0);
        if (i == 0)
            CHECK_EQ(weir_task_detach(join.task), 0);
        tell(&endings[i]);
        if (i == 1)
            CHECK_EQ(finish(join.task), 2);
    }
    close_runtime(runtime);
}

TEST(a_thread_whose_deadline_passes_when_the_task_has_ended_waits_to_be_told)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending ending = {0, 4};
    struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));

    test_hold(ABOUT_TO_LEAVE);
    test_hold(NOT_DELIVERED);
    test_spawn(join_as_thread, &join);
    EVENTUALLY(joiners(join.task) == 1);
    tell(&ending);
    test_reached(NOT_DELIVERED);
    check_stale(join.task);
    test_reached(ABOUT_TO_LEAVE);
    test_let_go(ABOUT_TO_LEAVE);
    CHECK_EQ(joined(&join), NOT_YET);
    test_let_go(NOT_DELIVERED);
    test_join_all();
    CHECK_EQ(joined(&join), 0);
    CHECK_EQ(join.result, 4);
    close_runtime(runtime);
}

TEST(a_task_that_is_cancelled_joins_after_all_when_the_other_ends_before_it_left)
{
    struct weir_runtime *runtime = open_runtime(1), *elsewhere = open_runtime(1);
    struct ending ending = {0, 4};
    struct takeover t = {.ending = {0, 8}};
    struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));
    struct weir_task joiner = start_in(elsewhere, do_join, &join), next;

    EVENTUALLY(joiners(join.task) == 1);
    test_hold(ABOUT_TO_LEAVE);
    CHECK_EQ(weir_task_cancel(joiner), 0);
    test_reached(ABOUT_TO_LEAVE);
    end_it(runtime, &ending);
    next = begin_in_place_of(runtime, join.task, &t);
    test_let_go(ABOUT_TO_LEAVE);
    CHECK_EQ(finish(joiner), 0);
    CHECK_EQ(join.result, 4);
    CHECK_EQ(join.next, WEIR_ECANCELED);
    tell(&t.ending);
    CHECK_EQ(finish(next), 8);
    close_runtime(elsewhere);
    close_runtime(runtime);
}

TEST(a_task_that_is_cancelled_when_the_other_has_ended_waits_to_be_told)
{
    struct weir_runtime *runtime = open_runtime(1), *elsewhere = open_runtime(1);
    struct ending ending = {0, 4};
    struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));
    struct weir_task joiner = start_in(elsewhere, do_join, &join);

    EVENTUALLY(joiners(join.task) == 1);
    test_hold(NOT_DELIVERED);
    tell(&ending);
    test_reached(NOT_DELIVERED);
    test_hold(ABOUT_TO_LEAVE);
    CHECK_EQ(weir_task_cancel(joiner), 0);
    test_reached(ABOUT_TO_LEAVE); /* it was struck */
    test_let_go(ABOUT_TO_LEAVE);
    CHECK_EQ(weir_runtime_spawn(elsewhere, say_it, "a", NULL), 0);
    EVENTUALLY(how_much_was_said() == 1); /* it has parked again */
    CHECK_EQ(joined(&join), NOT_YET);
    test_let_go(NOT_DELIVERED);
    CHECK_EQ(finish(joiner), 0);
    CHECK_EQ(join.result, 4);
    CHECK_EQ(join.next, WEIR_ECANCELED);
    close_runtime(elsewhere);
    close_runtime(runtime);
}

TEST(a_task_that_is_cancelled_and_left_in_time_leaves_a_handle_that_can_be_joined)
{
    struct weir_runtime *runtime = open_runtime(1), *elsewhere = open_runtime(1);
    struct ending ending = {0, 4};
    struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));
    struct weir_task joiner = start_in(elsewhere, do_join, &join);

    EVENTUALLY(joiners(join.task) == 1);
    CHECK_EQ(weir_task_cancel(joiner), 0);
    CHECK_EQ(finish(joiner), WEIR_ECANCELED);
    CHECK_EQ(join.result, NOT_YET);
    tell(&ending);
    CHECK_EQ(finish(join.task), 4);
    close_runtime(elsewhere);
    close_runtime(runtime);
}

/* Whoever joins gives up and the task ends at any moment, side by side. */
static void join_soon(void *arg)
{
    struct join *j = arg;

    j->deadline = weir_within(test_random(40) * WEIR_US);
    do_join(j);
}

TEST_WITHIN(a_join_either_succeeds_or_leaves_the_handle_as_it_was, 60)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (int i = 0; i < test_scaled(500); i++) {
        struct ending ending = {0, i};
        struct join join = JOIN_OF(start_in(runtime, end_when_told, &ending));

        test_spawn(join_soon, &join);
        for (int64_t end_ns = weir_now_ns() + test_random(80) * WEIR_US; weir_now_ns() < end_ns;)
            ;
        tell(&ending);
        test_join_all();
        CHECK(joined(&join) == 0 || joined(&join) == WEIR_ETIMEDOUT);
        if (joined(&join) == 0)
            CHECK_EQ(join.result, i);
        else
            CHECK_EQ(finish(join.task), i);
        check_stale(join.task);
    }
    close_runtime(runtime);
}

/* ---- join_async, taken back just when the task ends ------------------------------------ */

struct taking_back {
    struct weir_op *op;
    int result;
};

static void take_back(void *arg)
{
    struct taking_back *t = arg;

    t->result = weir_op_cancel(t->op);
}

TEST(a_callback_that_is_taken_back_when_the_task_has_ended_is_called_once)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending ending = {0, 4};
    struct weir_task one = start_in(runtime, end_when_told, &ending);
    struct caller caller = {.op = WEIR_OP_INIT};

    CHECK_EQ(weir_task_join_async(one, &caller.op, note), 0);
    test_hold(NOT_DELIVERED);
    tell(&ending);
    test_reached(NOT_DELIVERED);
    CHECK_EQ(weir_op_cancel(&caller.op), 0);
    CHECK_EQ(calls(), 0);
    test_let_go(NOT_DELIVERED);
    EVENTUALLY(calls() == 1);
    CHECK_EQ(caller.result, 0);
    CHECK_EQ(weir_op_cancel(&caller.op), 0);
    CHECK_EQ(finish(one), 4);
    close_runtime(runtime);
    CHECK_EQ(caller.times, 1);
}

static int join_and_spawn_next(void *arg)
{
    struct takeover *t = arg;
    int result = finish(t->task);

    spawn_next(t);
    return result;
}

TEST(a_callback_that_is_taken_back_too_late_does_not_take_back_that_of_the_next_in_its_place)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending ending = {0, 4};
    struct weir_task one = start_in(runtime, end_when_told, &ending), next;
    struct takeover t = {.task = one, .ending = {0, 8}};
    struct caller late = {.op = WEIR_OP_INIT}, other = {.op = WEIR_OP_INIT};
    struct taking_back back = {&late.op, NOT_YET};

    CHECK_EQ(weir_task_join_async(one, &late.op, note), 0);
    test_hold(ABOUT_TO_LEAVE);
    test_spawn(take_back, &back);
    test_reached(ABOUT_TO_LEAVE);
    tell(&ending);
    EVENTUALLY(calls() == 1);
    CHECK_EQ(finish(start_in(runtime, join_and_spawn_next, &t)), 4);
    next = t.next;
    CHECK(next.slot_ == one.slot_); /* else this test says nothing */
    CHECK_EQ(weir_task_join_async(next, &other.op, note), 0);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(back.result, 0);
    CHECK_EQ(late.times, 1);
    CHECK_EQ(joiners(next), 1);
    tell(&t.ending);
    EVENTUALLY(calls() == 2);
    CHECK_EQ(other.times, 1);
    CHECK_EQ(finish(next), 8);
    close_runtime(runtime);
}

TEST(a_callback_that_is_taken_back_in_time_is_never_called_and_the_task_can_be_joined)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct ending ending = {0, 4};
    struct weir_task one = start_in(runtime, end_when_told, &ending);
    struct caller caller = {.op = WEIR_OP_INIT};
    struct taking_back back = {&caller.op, NOT_YET};

    CHECK_EQ(weir_task_join_async(one, &caller.op, note), 0);
    test_hold(ABOUT_TO_LEAVE);
    test_spawn(take_back, &back);
    test_reached(ABOUT_TO_LEAVE);
    test_let_go(ABOUT_TO_LEAVE);
    test_join_all();
    CHECK_EQ(back.result, 1);
    tell(&ending);
    CHECK_EQ(finish(one), 4);
    close_runtime(runtime);
    CHECK_EQ(caller.times, 0);
}

/* ---- old handles ----------------------------------------------------------------------- */

TEST_WITHIN(a_handle_is_stale_after_a_million_tasks_in_its_place, 120)
{
    AS_TASK(a_handle_is_stale_after_a_million_tasks_in_its_place);
    enum { TIMES = 1 << 20, LOOKS = 64 };
    struct weir_task old = start(do_nothing, NULL), new;

    CHECK_EQ(finish(old), 0);
    for (int i = 1; i <= TIMES; i++) {
        new = start(do_nothing, NULL);
        CHECK(new.slot_ == old.slot_); /* else this test says nothing */
        CHECK(new.generation_ != old.generation_);
        if (i % (TIMES / LOOKS) == 0)
            check_stale(old); /* unstarted; and to try lets it not begin */
        CHECK_EQ(finish(new), 0);
    }
    check_stale(old);
    check_stale(new);
}

/* ---- detach against join ------------------------------------------------------------------ */

enum { DUELS = 2000 };

struct duel {
    struct weir_task task;
    struct weir_barrier begin;
    int detached;
};

static void detach_in_a_duel(void *arg)
{
    struct duel *d = arg;

    for (int i = 0; i < test_scaled(DUELS); i++) {
        CHECK_EQ(weir_barrier_wait(&d->begin, WEIR_FOREVER, NULL), 0);
        d->detached = weir_task_detach(d->task);
        CHECK_EQ(weir_barrier_wait(&d->begin, WEIR_FOREVER, NULL), 0);
    }
}

TEST_WITHIN(of_a_join_and_a_detach_at_the_same_moment_one_succeeds, 60)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct duel d = {.begin = WEIR_BARRIER_INIT(2)};

    test_spawn(detach_in_a_duel, &d);
    for (int i = 0; i < test_scaled(DUELS); i++) {
        struct ending ending = {i % 2, 7}; /* every other one has ended by then, or nearly */
        int result = NOT_YET;

        d.task = start_in(runtime, end_when_told, &ending);
        CHECK_EQ(weir_barrier_wait(&d.begin, WEIR_FOREVER, NULL), 0);
        int r = weir_task_join(d.task, weir_within(test_random(20) * WEIR_US), &result);
        tell(&ending);
        CHECK_EQ(weir_barrier_wait(&d.begin, WEIR_FOREVER, NULL), 0);
        if (r == WEIR_ETIMEDOUT && d.detached < 0) /* it came while we were joining */
            r = weir_task_join(d.task, WEIR_FOREVER, &result);
        CHECK_EQ(result, r == 0 ? 7 : NOT_YET);
        CHECK_EQ(d.detached, r == 0 ? WEIR_EINVAL : 0);
        EVENTUALLY(live_tasks(runtime) == 0);
        CHECK_EQ(finish(start_in(runtime, do_nothing, NULL)), 0); /* its end is over */
        check_stale(d.task);
    }
    test_join_all();
    close_runtime(runtime);
}
