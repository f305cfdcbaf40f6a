/* SPDX-License-Identifier: MIT */
/* Cancelling: level-triggered, from anywhere, of every wait there is; and shields. */
#include "task/tasks.h"

/* ---- every way to wait ------------------------------------------------------------- */

/* What a failed wait leaves: nobody queued; broken if it is a meeting, else as it was. */
static void check_left(const struct way_to_wait *way, struct things *t)
{
    CHECK_WAY(way, queued(thing_of(way, t)), 0);
    CHECK_WAY(way, weir_latch_is_broken(&t->latch), way->wait == wait_latch);
    CHECK_WAY(way, weir_barrier_is_broken(&t->barrier), way->wait == wait_barrier);
    CHECK_WAY(way, weir_barrier_waiting(&t->barrier), 0);
    CHECK_WAY(way, weir_sem_available(&t->sem), 0);
    CHECK_WAY(way, weir_mutex_try_lock(&t->mutex), WEIR_EAGAIN);
    CHECK_WAY(way, weir_mutex_try_lock(&t->cond_mutex), 0);
    weir_mutex_unlock(&t->cond_mutex);
}

TEST(a_wait_that_begins_after_the_cancel_is_struck)
{
    AS_TASK(a_wait_that_begins_after_the_cancel_is_struck);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

        things_init(&things);
        struct weir_task task = start(wait_as_told, &w);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_WAY(way, finish(task), WEIR_ECANCELED);
        check_left(way, &things);
    }
}

/* Start a wait and let it get as far as waiting. */
static struct weir_task start_waiting(struct waiting *w)
{
    void *object = thing_of(w->way, w->things);

    w->result = NOT_YET;
    struct weir_task task = start(wait_as_told, w);
    YIELD_UNTIL(queued(object) == 1);
    return task;
}

TEST(a_wait_that_has_begun_is_struck)
{
    AS_TASK(a_wait_that_has_begun_is_struck);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

        things_init(&things);
        struct weir_task task = start_waiting(&w);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_WAY(way, finish(task), WEIR_ECANCELED);
        CHECK_WAY(way, w.next, WEIR_ECANCELED);
        check_left(way, &things);
    }
}

static void cancel_it(void *task)
{
    CHECK_EQ(weir_task_cancel(*(struct weir_task *)task), 0);
}

TEST(a_wait_is_struck_from_another_thread)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

        things_init(&things);
        struct weir_task task = start_in(runtime, wait_as_told, &w);
        EVENTUALLY(queued(thing_of(way, &things)) == 1);
        test_spawn(cancel_it, &task);
        test_join_all();
        CHECK_WAY(way, finish(task), WEIR_ECANCELED);
        check_left(way, &things);
    }
    close_runtime(runtime);
}

TEST(a_wait_times_out_at_its_deadline)
{
    AS_TASK_IN_NO_TIME(a_wait_times_out_at_its_deadline);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct weir_deadline hour = weir_within(3600 * WEIR_S);
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = hour};

        things_init(&things);
        struct weir_task task = start_waiting(&w);
        CHECK_WAY(way, finish(task), WEIR_ETIMEDOUT);
        CHECK_WAY(way, weir_now_ns(), hour.at_ns + WEIR_MS); /* and what it slept after */
        check_left(way, &things);
    }
}

static int try_all_with_past_deadlines(void *arg)
{
    static const int64_t past[] = {0, -1, INT64_MIN, INT64_MIN + 1, 1};
    uint64_t before = *(uint64_t *)arg;

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT;
             way++) {
            struct things things;

            things_init(&things);
            CHECK_WAY(way, way->wait(&things, (struct weir_deadline){past[i]}), WEIR_ETIMEDOUT);
        }
        CHECK_EQ(weir_task_sleep((struct weir_deadline){past[i]}), 0);
    }
    struct weir_runtime_stats stats;
    weir_runtime_stats(weir_runtime_self(), &stats);
    CHECK_EQ(stats.switches, before);
    return 0;
}

TEST(with_a_deadline_in_the_past_a_task_never_waits)
{
    AS_TASK(with_a_deadline_in_the_past_a_task_never_waits);
    struct weir_runtime_stats stats;

    weir_runtime_stats(weir_runtime_self(), &stats);
    try_all_with_past_deadlines(&stats.switches);
}

TEST(a_deadline_in_the_far_future_is_waited_for)
{
    AS_TASK(a_deadline_in_the_far_future_is_waited_for);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = {INT64_MAX - 1}};

        things_init(&things);
        struct weir_task task = start_waiting(&w);
        let_others_run();
        CHECK_WAY(way, w.result, NOT_YET);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_WAY(way, finish(task), WEIR_ECANCELED);
    }
}

static int take_what_is_there(void *arg)
{
    const struct way_to_wait *way = arg;
    struct things things;

    things_init(&things);
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    way->end(&things);
    CHECK_WAY(way, way->wait(&things, WEIR_FOREVER), 0);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    return 0;
}

TEST(a_call_that_need_not_wait_succeeds_although_cancelled)
{
    AS_TASK(a_call_that_need_not_wait_succeeds_although_cancelled);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        if (way->lasts && way->wait != wait_latch)
            CHECK_EQ(finish(start(take_what_is_there, (void *)way)), 0);
    }
}

static int complete_meetings(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_barrier_wait(&t->barrier, WEIR_FOREVER, NULL), 0);
    CHECK_EQ(weir_latch_wait(&t->latch, WEIR_FOREVER), 0);
    CHECK_EQ(weir_latch_wait(&t->latch, WEIR_FOREVER), 0); /* it is open */
    return 0;
}

TEST(the_last_to_arrive_at_a_meeting_completes_it_although_cancelled)
{
    AS_TASK(the_last_to_arrive_at_a_meeting_completes_it_although_cancelled);
    struct things things;
    struct waiting barrier = {&ways_to_wait[6], &things, WEIR_FOREVER, NOT_YET, 0};
    struct waiting latch = {&ways_to_wait[5], &things, WEIR_FOREVER, NOT_YET, 0};

    things_init(&things);
    struct weir_task at_barrier = start_waiting(&barrier), at_latch = start_waiting(&latch);
    CHECK_EQ(finish(start(complete_meetings, &things)), 0);
    CHECK_EQ(finish(at_barrier), 0);
    CHECK_EQ(finish(at_latch), 0);
}

TEST(what_was_granted_before_the_cancel_is_a_success_and_the_next_wait_is_struck)
{
    AS_TASK(what_was_granted_before_the_cancel_is_a_success_and_the_next_wait_is_struck);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

        things_init(&things);
        struct weir_task task = start_waiting(&w);
        way->end(&things);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_WAY(way, finish(task), 0);
        CHECK_WAY(way, w.next, WEIR_ECANCELED);
        CHECK_WAY(way, queued(thing_of(way, &things)), 0);
    }
}

TEST(what_is_granted_before_the_cancel_was_noticed_is_a_success)
{
    AS_TASK(what_is_granted_before_the_cancel_was_noticed_is_a_success);
    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

        if (way->wait == wait_cond)
            continue; /* a signal goes to who still waits: below */
        things_init(&things);
        struct weir_task task = start_waiting(&w);
        CHECK_EQ(weir_task_cancel(task), 0);
        way->end(&things); /* it is to run, but has not, and stands in the queue */
        CHECK_WAY(way, finish(task), 0);
        CHECK_WAY(way, w.next, WEIR_ECANCELED);
        CHECK_WAY(way, queued(thing_of(way, &things)), 0);
    }
}

TEST(a_signal_reaches_who_was_cancelled_or_nobody)
{
    AS_TASK(a_signal_reaches_who_was_cancelled_or_nobody);
    struct things things;
    struct waiting w = {&ways_to_wait[8], &things, WEIR_FOREVER, NOT_YET, 0};

    things_init(&things);
    struct weir_task task = start_waiting(&w);
    CHECK_EQ(weir_task_cancel(task), 0);
    weir_cond_signal(&things.cond, 1);
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(queued(&things.cond), 0);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0); /* let go of */
}

/* Held on its way out of the queue by a testpoint; then the grant comes. */
TEST(a_grant_beats_a_cancel_that_is_under_way)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {way, &things, WEIR_FOREVER, NOT_YET, 0};

        if (way->wait == wait_cond)
            continue; /* its way out is another one */
        things_init(&things);
        struct weir_task task = start_in(runtime, wait_as_told, &w);
        EVENTUALLY(queued(thing_of(way, &things)) == 1);
        test_hold(ABOUT_TO_LEAVE);
        CHECK_EQ(weir_task_cancel(task), 0);
        test_reached(ABOUT_TO_LEAVE);
        way->end(&things);
        test_let_go(ABOUT_TO_LEAVE);
        CHECK_WAY(way, finish(task), 0);
        CHECK_WAY(way, w.next, WEIR_ECANCELED);
    }
    close_runtime(runtime);
}

/* Granted by another thread that is held before it says so; the cancel comes too late. */
static void end_wait(void *arg)
{
    struct waiting *w = arg;

    w->way->end(w->things);
}

TEST(a_task_that_was_granted_and_is_cancelled_waits_to_be_told)
{
    struct weir_runtime *runtime = open_runtime(1);

    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;
        struct waiting w = {way, &things, WEIR_FOREVER, NOT_YET, 0};

        if (way->wait == wait_cond)
            continue;
        things_init(&things);
        struct weir_task task = start_in(runtime, wait_as_told, &w);
        EVENTUALLY(queued(thing_of(way, &things)) == 1);
        test_hold(NOT_DELIVERED);
        test_spawn(end_wait, &w);
        test_reached(NOT_DELIVERED);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_EQ(finish(start_in(runtime, say_it, "a")), 0); /* the worker has looked */
        CHECK_WAY(way, waiting_result(&w), NOT_YET);
        test_let_go(NOT_DELIVERED);
        CHECK_WAY(way, finish(task), 0);
        test_join_all();
    }
    close_runtime(runtime);
}

/* ---- level-triggered ------------------------------------------------------------------ */

static int swallow_every_error(void *arg)
{
    struct things *t = arg;

    for (int i = 0; i < 5; i++) {
        CHECK_EQ(weir_event_wait(&t->event, WEIR_FOREVER), WEIR_ECANCELED);
        CHECK_EQ(weir_sem_acquire(&t->sem, 1, WEIR_FOREVER), WEIR_ECANCELED);
        CHECK_EQ(weir_task_sleep(WEIR_FOREVER), WEIR_ECANCELED);
        CHECK_EQ(weir_task_sleep(weir_within(WEIR_S)), WEIR_ECANCELED);
        CHECK_EQ(weir_task_sleep(WEIR_NO_WAIT), WEIR_ECANCELED); /* sleep always looks */
        CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
        CHECK_EQ(weir_cond_wait(&t->cond, &t->mutex, WEIR_FOREVER), WEIR_ECANCELED);
    }
    return 0;
}

TEST(every_later_wait_is_struck_until_the_task_ends)
{
    AS_TASK(every_later_wait_is_struck_until_the_task_ends);
    struct things things;

    things_init(&things);
    struct weir_task task = start(swallow_every_error, &things);
    YIELD_UNTIL(queued(&things.event) == 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), 0);
}

static int finish_anyway(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    CHECK_EQ(weir_sem_release(&t->sem, 1), 0);
    weir_event_set(&t->event);
    weir_revent_set(&t->revent);
    weir_revent_clear(&t->revent);
    CHECK_EQ(weir_countdown_down(&t->countdown, 1), 0);
    CHECK_EQ(weir_latch_arrive(&t->latch, 2), 0);
    weir_barrier_abort(&t->barrier);
    weir_mutex_unlock(&t->mutex);
    weir_cond_broadcast(&t->cond);
    return 0;
}

TEST(what_never_waits_never_fails_for_being_cancelled)
{
    AS_TASK(what_never_waits_never_fails_for_being_cancelled);
    struct things things;

    things_init(&things);
    CHECK_EQ(finish(start(finish_anyway, &things)), 0);
    CHECK_EQ(weir_sem_available(&things.sem), 1);
    CHECK_EQ(weir_mutex_try_lock(&things.mutex), 0);
    CHECK_EQ(weir_latch_wait(&things.latch, WEIR_NO_WAIT), 0);
}

static int spawn_although_cancelled(void *arg)
{
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_task_spawn(say_it, arg, NULL), 0);
    return weir_task_yield();
}

TEST(a_cancel_is_not_passed_on_to_tasks_spawned_after_it)
{
    AS_TASK(a_cancel_is_not_passed_on_to_tasks_spawned_after_it);
    CHECK_EQ(finish(start(spawn_although_cancelled, "a")), WEIR_ECANCELED);
    let_others_run();
    CHECK_STR(said, "a");
}

/* ---- whom ------------------------------------------------------------------------------ */

static int sleep_for_ever(void *arg)
{
    (void)arg;
    say('s');
    return weir_task_sleep(WEIR_FOREVER);
}

TEST(a_task_cancelled_before_it_starts_runs_and_is_struck_at_its_first_wait)
{
    AS_TASK(a_task_cancelled_before_it_starts_runs_and_is_struck_at_its_first_wait);
    struct weir_task task = start(sleep_for_ever, NULL);

    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    CHECK_STR(said, "s");
}

TEST(cancelling_twice_is_as_good_as_once)
{
    AS_TASK(cancelling_twice_is_as_good_as_once);
    struct weir_task task = start(sleep_for_ever, NULL);

    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_EQ(weir_task_yield(), 0);
    }
    CHECK_EQ(finish(task), WEIR_ECANCELED);
}

TEST(cancelling_what_has_ended_leaves_its_result)
{
    AS_TASK(cancelling_what_has_ended_leaves_its_result);
    struct weir_task task = start(say_it, "a");

    let_others_run();
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(weir_task_cancel(task), WEIR_EINVAL);
}

TEST(a_task_may_cancel_itself)
{
    AS_TASK(a_task_may_cancel_itself);
    struct weir_event never = WEIR_EVENT_INIT;

    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_event_wait(&never, WEIR_FOREVER), WEIR_ECANCELED);
}

TEST(the_next_task_on_the_same_record_and_stack_is_not_cancelled)
{
    AS_TASK(the_next_task_on_the_same_record_and_stack_is_not_cancelled);
    struct weir_task task = start(sleep_for_ever, NULL);

    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    struct weir_task next = start(say_it, "n");
    CHECK(next.slot_ == task.slot_);
    CHECK_EQ(finish(next), 0);
}

static int wait_long(void *event)
{
    return weir_event_wait(event, WEIR_FOREVER);
}

/* This worker is kept until the other has taken them over, all but one, and again until
 * those have been struck there. */
static int cancel_across(void *arg)
{
    enum { MANY = 4 };
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task tasks[MANY];

    (void)arg;
    for (int i = 0; i < MANY; i++)
        tasks[i] = start(wait_long, &never);
    EVENTUALLY(queued(&never) >= MANY - 1);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(weir_task_cancel(tasks[i]), 0);
    EVENTUALLY(queued(&never) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(finish(tasks[i]), WEIR_ECANCELED);
    return 0;
}

TEST(a_task_is_cancelled_from_another_worker)
{
    struct weir_run_options two = {.workers = 2};

    CHECK_EQ(weir_run(&two, cancel_across, NULL), 0);
}

static int cancel_unstarted_that_move(void *arg)
{
    enum { MANY = 64 };
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task tasks[MANY];
    int others = 0;

    (void)arg;
    for (int i = 0; i < MANY; i++)
        tasks[i] = start(wait_long, &never);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(weir_task_cancel(tasks[i]), 0);
    for (int i = 0; i < MANY; i++)
        others += finish(tasks[i]) != WEIR_ECANCELED;
    return others;
}

TEST(a_task_is_cancelled_while_another_worker_takes_it_over)
{
    struct weir_run_options two = {.workers = 2};

    for (int i = test_scaled(100); i > 0; i--)
        CHECK_EQ(weir_run(&two, cancel_unstarted_that_move, NULL), 0);
}

/* A cancel that begins before the task is joined and ends after. */
struct duel {
    struct weir_task task;
    struct weir_barrier *start;
};

static void cancel_in_a_duel(void *arg)
{
    struct duel *d = arg;

    for (int i = 0; i < test_scaled(3000); i++) {
        CHECK_EQ(weir_barrier_wait(d->start, WEIR_FOREVER, NULL), 0);
        int r = weir_task_cancel(d->task);
        CHECK(r == 0 || r == WEIR_EINVAL);
        CHECK_EQ(weir_barrier_wait(d->start, WEIR_FOREVER, NULL), 0);
    }
}

static int end_at_once(void *arg)
{
    (void)arg;
    return 3;
}

TEST(a_cancel_and_a_join_at_the_same_moment_do_not_disturb_each_other)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_barrier begin = WEIR_BARRIER_INIT(2);
    struct duel duel = {.start = &begin};

    test_spawn(cancel_in_a_duel, &duel);
    for (int i = 0; i < test_scaled(3000); i++) {
        duel.task = start_in(runtime, end_at_once, NULL);
        CHECK_EQ(weir_barrier_wait(&begin, WEIR_FOREVER, NULL), 0);
        CHECK_EQ(finish(duel.task), 3);
        CHECK_EQ(weir_barrier_wait(&begin, WEIR_FOREVER, NULL), 0);
        CHECK_EQ(weir_task_cancel(duel.task), WEIR_EINVAL);
    }
    test_join_all();
    close_runtime(runtime);
}

/* The same with the cancel held half-way: by the time it goes on, the task is gone. */
#define ABOUT_TO_POKE "task: about to poke"

enum { MORE_THAN_SPARES = 1024 };

/* As a task, with more children than there are records to spare: all live in peace, and
 * the handle in `arg` is stale.  Returns how many, itself included, have its record. */
static int live_in_peace(void *arg)
{
    static struct weir_task children[MORE_THAN_SPARES];
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task before = *(struct weir_task *)arg;
    int found = weir_task_self().slot_ == before.slot_;

    let_others_run(); /* and the worker look at its pokes */
    for (int i = 0; i < MORE_THAN_SPARES; i++) {
        children[i] = start(wait_long, &event);
        found += children[i].slot_ == before.slot_;
    }
    YIELD_UNTIL(queued(&event) == MORE_THAN_SPARES);
    CHECK_EQ(weir_task_cancel(before), WEIR_EINVAL);
    let_others_run();
    CHECK_EQ(queued(&event), MORE_THAN_SPARES);
    weir_event_set(&event);
    for (int i = 0; i < MORE_THAN_SPARES; i++)
        CHECK_EQ(finish(children[i]), 0);
    return found;
}

TEST(a_cancel_that_is_late_neither_finds_the_next_task_nor_keeps_the_record)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task task = start_in(runtime, wait_long, &gate);

    EVENTUALLY(queued(&gate) == 1);
    test_hold(ABOUT_TO_POKE);
    test_spawn(cancel_it, &task);
    test_reached(ABOUT_TO_POKE);
    weir_event_set(&gate); /* it ends by itself, and nobody disturbs it */
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(finish(start_in(runtime, live_in_peace, &task)), 0);
    test_let_go(ABOUT_TO_POKE);
    test_join_all();
    CHECK_EQ(finish(start_in(runtime, live_in_peace, &task)), 1);
    close_runtime(runtime);
}

TEST(of_two_cancels_at_once_one_pokes_and_both_let_go_of_the_record)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task task = start_in(runtime, wait_long, &never);

    EVENTUALLY(queued(&never) == 1);
    test_hold(ABOUT_TO_POKE);
    test_spawn(cancel_it, &task);
    test_reached(ABOUT_TO_POKE);
    cancel_it(&task);
    CHECK_EQ(queued(&never), 1); /* struck by the first, when it gets there */
    test_let_go(ABOUT_TO_POKE);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    test_join_all();
    CHECK_EQ(finish(start_in(runtime, live_in_peace, &task)), 1);
    close_runtime(runtime);
}

static void close_it(void *runtime)
{
    close_runtime(runtime);
}

TEST(a_runtime_is_not_gone_while_a_cancel_is_on_its_way_to_it)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct weir_event gate = WEIR_EVENT_INIT;
    struct weir_task task = start_in(runtime, wait_long, &gate);

    EVENTUALLY(queued(&gate) == 1);
    test_hold(ABOUT_TO_POKE);
    test_spawn(cancel_it, &task);
    test_reached(ABOUT_TO_POKE);
    weir_event_set(&gate);
    CHECK_EQ(finish(task), 0);
    test_spawn(close_it, runtime);
    for (int i = 0; i < 1000; i++)
        sched_yield(); /* as long as it would take to close it */
    test_let_go(ABOUT_TO_POKE);
    test_join_all(); /* and ASan sees whether it was written to */
}

/* ---- shields ---------------------------------------------------------------------------- */

static int wait_in_a_shield(void *event)
{
    struct weir_shield shield;

    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), 0);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_US)), 0);
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), 0);
    weir_shield_end(&shield);
    return weir_task_yield();
}

TEST(a_wait_in_a_shield_is_not_struck_and_the_next_after_it_is)
{
    AS_TASK(a_wait_in_a_shield_is_not_struck_and_the_next_after_it_is);
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task task = start(wait_in_a_shield, &event);

    YIELD_UNTIL(queued(&event) == 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&event), 1);
    weir_event_set(&event);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
}

static int shield_after_cancel(void *event)
{
    struct weir_shield shield;

    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), WEIR_ECANCELED);
    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_event_wait(event, WEIR_FOREVER), 0);
    weir_shield_end(&shield);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    return 0;
}

TEST(a_cancelled_task_may_wait_in_a_shield_to_tidy_up)
{
    AS_TASK(a_cancelled_task_may_wait_in_a_shield_to_tidy_up);
    struct weir_event event = WEIR_EVENT_INIT;
    struct weir_task task = start(shield_after_cancel, &event);

    YIELD_UNTIL(queued(&event) == 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&event), 1);
    weir_event_set(&event);
    CHECK_EQ(finish(task), 0);
}

struct shielded {
    int64_t grace_ns, deadline_ns, cancel_at_ns; /* from now; 0 for never */
    int result;
    int64_t ended_ns;
};

static struct weir_deadline in(int64_t ns)
{
    return ns ? weir_within(ns) : WEIR_FOREVER;
}

static int wait_within_grace(void *arg)
{
    struct shielded *s = arg;
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_shield shield;
    int64_t begun_ns = weir_now_ns();

    weir_shield_begin(&shield, in(s->grace_ns));
    s->result = weir_event_wait(&never, in(s->deadline_ns));
    weir_shield_end(&shield);
    s->ended_ns = weir_now_ns() - begun_ns;
    return 0;
}

static void run_shielded(struct shielded *s)
{
    struct weir_task task = start(wait_within_grace, s);

    CHECK_EQ(weir_task_yield(), 0);
    if (s->cancel_at_ns) {
        CHECK_EQ(weir_task_sleep(weir_within(s->cancel_at_ns)), 0);
        CHECK_EQ(weir_task_cancel(task), 0);
    }
    CHECK_EQ(finish(task), 0);
}

#define CHECK_SHIELDED(grace_s, deadline_s, cancel_s, want, want_s)                            \
    do {                                                                                       \
        struct shielded s_ = {(grace_s)*WEIR_S, (deadline_s)*WEIR_S, (cancel_s)*WEIR_S, 0, 0}; \
                                                                                               \
        run_shielded(&s_);                                                                     \
        CHECK_EQ(s_.result, (want));                                                           \
        CHECK_EQ(s_.ended_ns, (want_s)*WEIR_S);                                                \
    } while (0)

TEST(when_the_grace_is_over_a_wait_under_way_is_struck)
{
    AS_TASK_IN_NO_TIME(when_the_grace_is_over_a_wait_under_way_is_struck);
    CHECK_SHIELDED(100, 0, 1, WEIR_ECANCELED, 100);
    CHECK_SHIELDED(100, 500, 1, WEIR_ECANCELED, 100);
}

TEST(a_cancel_after_the_grace_strikes_at_once)
{
    AS_TASK_IN_NO_TIME(a_cancel_after_the_grace_strikes_at_once);
    CHECK_SHIELDED(100, 0, 200, WEIR_ECANCELED, 200);
    CHECK_SHIELDED(100, 500, 200, WEIR_ECANCELED, 200);
}

TEST(a_deadline_within_the_grace_counts_as_always)
{
    AS_TASK_IN_NO_TIME(a_deadline_within_the_grace_counts_as_always);
    CHECK_SHIELDED(100, 50, 1, WEIR_ETIMEDOUT, 50);
    CHECK_SHIELDED(100, 50, 0, WEIR_ETIMEDOUT, 50);
}

TEST(the_end_of_a_grace_ends_no_wait_of_a_task_that_is_not_cancelled)
{
    AS_TASK_IN_NO_TIME(the_end_of_a_grace_ends_no_wait_of_a_task_that_is_not_cancelled);
    CHECK_SHIELDED(100, 500, 0, WEIR_ETIMEDOUT, 500);
}

static int begin_too_late(void *arg)
{
    struct weir_shield shield;

    (void)arg;
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    weir_shield_begin(&shield, WEIR_NO_WAIT);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    CHECK_EQ(weir_task_sleep(WEIR_FOREVER), WEIR_ECANCELED);
    weir_shield_end(&shield);
    weir_shield_begin(&shield, weir_within(WEIR_S));
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_S / 2)), 0);
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_S)), WEIR_ECANCELED); /* half of it is left */
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    weir_shield_end(&shield);
    return 0;
}

TEST(a_shield_whose_grace_is_over_shields_nothing)
{
    AS_TASK_IN_NO_TIME(a_shield_whose_grace_is_over_shields_nothing);
    CHECK_EQ(finish(start(begin_too_late, NULL)), 0);
}

static int nest(void *arg)
{
    struct weir_shield outer, inner;

    (void)arg;
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    weir_shield_begin(&outer, WEIR_FOREVER);
    CHECK_EQ(weir_task_yield(), 0);
    weir_shield_begin(&inner, WEIR_NO_WAIT);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    weir_shield_end(&inner);
    CHECK_EQ(weir_task_yield(), 0);
    weir_shield_end(&outer);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);

    weir_shield_begin(&outer, WEIR_NO_WAIT);
    weir_shield_begin(&inner, WEIR_FOREVER);
    CHECK_EQ(weir_task_yield(), 0);
    weir_shield_end(&inner);
    CHECK_EQ(weir_task_yield(), WEIR_ECANCELED);
    weir_shield_end(&outer);
    return 0;
}

TEST(of_nested_shields_the_innermost_counts)
{
    AS_TASK(of_nested_shields_the_innermost_counts);
    CHECK_EQ(finish(start(nest, NULL)), 0);
}

TEST(outside_tasks_shields_do_nothing)
{
    struct weir_shield shield;

    weir_shield_begin(&shield, WEIR_FOREVER);
    CHECK_EQ(weir_task_yield(), 0);
    weir_shield_end(&shield);
}

/* ---- what is exempt ----------------------------------------------------------------------- */

static int wait_for_a_signal(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_mutex_lock(&t->cond_mutex, WEIR_FOREVER), 0);
    int r = weir_cond_wait(&t->cond, &t->cond_mutex, WEIR_FOREVER);
    say('w');
    weir_mutex_unlock(&t->cond_mutex);
    return r;
}

TEST(who_is_cancelled_in_a_condition_wait_owns_the_mutex_again_before_it_returns)
{
    AS_TASK(who_is_cancelled_in_a_condition_wait_owns_the_mutex_again_before_it_returns);
    struct things things;

    things_init(&things);
    struct weir_task task = start(wait_for_a_signal, &things);
    YIELD_UNTIL(queued(&things.cond) == 1);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&things.cond), 0);
    CHECK_EQ(queued(&things.cond_mutex), 1);
    CHECK_STR(said, "");
    say('m');
    weir_mutex_unlock(&things.cond_mutex);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    CHECK_STR(said, "mw");
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
}

TEST(who_was_signalled_and_is_cancelled_while_it_waits_for_the_mutex_is_not_struck)
{
    AS_TASK(who_was_signalled_and_is_cancelled_while_it_waits_for_the_mutex_is_not_struck);
    struct things things;

    things_init(&things);
    struct weir_task task = start(wait_for_a_signal, &things);
    YIELD_UNTIL(queued(&things.cond) == 1);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
    weir_cond_signal(&things.cond, 1);
    CHECK_EQ(queued(&things.cond_mutex), 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&things.cond_mutex), 1);
    weir_mutex_unlock(&things.cond_mutex);
    CHECK_EQ(finish(task), 0);
}

/* A signaller that is held when it has taken the task off the condition and not yet queued
 * it for its mutex. */
#define ABOUT_TO_ADMIT "cond: about to admit"

static void signal_it(void *cond)
{
    weir_cond_signal(cond, 1);
}

static void broadcast_it(void *cond)
{
    weir_cond_broadcast(cond);
}

TEST(who_was_signalled_and_is_cancelled_before_it_is_admitted_is_not_lost)
{
    void (*ways[])(void *) = {signal_it, broadcast_it};
    struct weir_runtime *runtime = open_runtime(1);

    for (int i = 0; i < 2; i++) {
        struct things things;

        things_init(&things);
        struct weir_task task = start_in(runtime, wait_for_a_signal, &things);
        EVENTUALLY(queued(&things.cond) == 1);
        test_hold(ABOUT_TO_ADMIT);
        test_spawn(ways[i], &things.cond);
        test_reached(ABOUT_TO_ADMIT);
        CHECK_EQ(weir_task_cancel(task), 0);
        CHECK_EQ(finish(start_in(runtime, say_it, "a")), 0); /* the worker has looked */
        CHECK_EQ(how_much_was_said(), 2 * i + 1);
        test_let_go(ABOUT_TO_ADMIT);
        CHECK_EQ(finish(task), 0);
        test_join_all();
        CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
    }
    CHECK_STR(said, "awaw");
    close_runtime(runtime);
}

static int cond_wait_cancelled(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_mutex_try_lock(&t->cond_mutex), 0);
    YIELD_UNTIL(queued(&t->cond_mutex) == 1); /* somebody wants it */
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    CHECK_EQ(weir_cond_wait(&t->cond, &t->cond_mutex, WEIR_FOREVER), WEIR_ECANCELED);
    say('o');
    weir_mutex_unlock(&t->cond_mutex);
    return 0;
}

static int lock_and_say(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_mutex_lock(&t->cond_mutex, WEIR_FOREVER), 0);
    say('l');
    weir_mutex_unlock(&t->cond_mutex);
    return 0;
}

TEST(a_condition_wait_of_a_cancelled_task_does_not_let_go_of_the_mutex)
{
    AS_TASK(a_condition_wait_of_a_cancelled_task_does_not_let_go_of_the_mutex);
    struct things things;

    things_init(&things);
    struct weir_task task = start(cond_wait_cancelled, &things);
    CHECK_EQ(weir_task_yield(), 0);
    struct weir_task other = start(lock_and_say, &things);
    CHECK_EQ(finish(task), 0);
    CHECK_EQ(finish(other), 0);
    CHECK_STR(said, "ol");
}

static int wait_a_second_for_a_signal(void *arg)
{
    struct things *t = arg;

    CHECK_EQ(weir_mutex_lock(&t->cond_mutex, WEIR_FOREVER), 0);
    int r = weir_cond_wait(&t->cond, &t->cond_mutex, weir_within(WEIR_S));
    say('w');
    weir_mutex_unlock(&t->cond_mutex);
    return r;
}

TEST(who_timed_out_and_is_cancelled_while_it_waits_for_the_mutex_is_not_struck)
{
    AS_TASK_IN_NO_TIME(who_timed_out_and_is_cancelled_while_it_waits_for_the_mutex_is_not_struck);
    struct things things;

    things_init(&things);
    struct weir_task task = start(wait_a_second_for_a_signal, &things);
    YIELD_UNTIL(queued(&things.cond) == 1);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
    CHECK_EQ(weir_task_sleep(weir_within(2 * WEIR_S)), 0);
    CHECK_EQ(queued(&things.cond_mutex), 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    let_others_run();
    CHECK_EQ(queued(&things.cond_mutex), 1);
    CHECK_STR(said, "");
    weir_mutex_unlock(&things.cond_mutex);
    CHECK_EQ(finish(task), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
}

/* ---- scopes, gather and map: passed on, then joined ----------------------------------------- */

static int child_that_tidies_up(void *event)
{
    struct weir_shield shield;
    int r = weir_event_wait(event, WEIR_FOREVER);

    CHECK_EQ(r, WEIR_ECANCELED);
    weir_shield_begin(&shield, WEIR_FOREVER);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_task_yield(), 0);
    weir_shield_end(&shield);
    say('t');
    return r;
}

static int close_a_scope(void *event)
{
    struct weir_scope scope;

    weir_scope_open(&scope, WEIR_FOREVER);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_scope_spawn(&scope, child_that_tidies_up, event), 0);
    int r = weir_scope_close(&scope);
    say('.');
    return r;
}

static int gather_three(void *event)
{
    void *args[] = {event, event, event};
    int results[3];
    int r = weir_gather(3, child_that_tidies_up, args, results, WEIR_FOREVER);

    for (int i = 0; i < 3; i++)
        CHECK_EQ(results[i], WEIR_ECANCELED);
    say('.');
    return r;
}

static int tidy_up_item(void *event, size_t i)
{
    (void)i;
    return child_that_tidies_up(event);
}

static int map_three(void *event)
{
    int r = weir_map_limit(10, 3, tidy_up_item, event, WEIR_FOREVER);

    say('.');
    return r;
}

static void cancel_parent(weir_fn *parent)
{
    struct weir_event never = WEIR_EVENT_INIT;
    struct weir_task task = start(parent, &never);

    YIELD_UNTIL(queued(&never) == 3);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    CHECK_STR(said, "ttt.");
    CHECK_EQ(queued(&never), 0);
    CHECK_EQ(live_tasks(weir_runtime_self()), 1);
}

TEST(a_scope_passes_the_cancel_on_and_joins_its_children)
{
    AS_TASK(a_scope_passes_the_cancel_on_and_joins_its_children);
    cancel_parent(close_a_scope);
}

TEST(gather_passes_the_cancel_on_and_joins)
{
    AS_TASK(gather_passes_the_cancel_on_and_joins);
    cancel_parent(gather_three);
}

TEST(map_limit_passes_the_cancel_on_and_joins_and_starts_no_more)
{
    AS_TASK(map_limit_passes_the_cancel_on_and_joins_and_starts_no_more);
    cancel_parent(map_three);
}
