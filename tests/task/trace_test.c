/* SPDX-License-Identifier: MIT */
/* The life of an acquire of a task, step by step as ARCHITECTURE.md tells it, with the
 * worker, the queue and the record looked at between the steps. */
#include "task/tasks.h"

#include "harness/sanitizer.h"
#include "task/sched.h"

/* The worker of a runtime of one, and whom it serves. */
struct scene {
    struct weir_runtime *runtime;
    struct weir_sem slots;
    struct weir_task task;
    struct weir_deadline deadline;
    int result; /* NOT_YET until the acquire has returned */
};

static int acquire_two(void *arg)
{
    struct scene *s = arg;

    CHECK_EQ(weir_task_set_name("acquirer"), 0);
    int r = weir_sem_acquire(&s->slots, 2, s->deadline);
    __atomic_store_n(&s->result, r, __ATOMIC_RELEASE);
    return r;
}

static int result_now(const struct scene *s)
{
    return __atomic_load_n(&s->result, __ATOMIC_ACQUIRE);
}

static void open_scene(struct scene *s)
{
    *s = (struct scene){.slots = WEIR_SEM_INIT(2), .deadline = WEIR_FOREVER, .result = NOT_YET};
    s->runtime = open_runtime(1);
    CHECK_EQ(weir_sem_try_acquire(&s->slots, 2), 0);
}

static void begin(struct scene *s)
{
    s->task = start_in(s->runtime, acquire_two, s);
}

static void find_acquirer(const struct weir_task_info *info, void *arg)
{
    if (strcmp(info->name, "acquirer") == 0)
        *(enum weir_task_state *)arg = info->state;
}

static enum weir_task_state state_now(const struct scene *s)
{
    enum weir_task_state state = WEIR_TASK_UNSTARTED;

    weir_visit_tasks(s->runtime, find_acquirer, &state);
    return state;
}

/* Have the worker look at its clock, timers and inbox, and come back. */
static int look(void *arg)
{
    (void)arg;
    return weir_task_sleep(weir_within(WEIR_US));
}

static void let_worker_look(struct scene *s)
{
    CHECK_EQ(finish(start_in(s->runtime, look, NULL)), 0);
}

static void release_two(void *arg)
{
    struct scene *s = arg;

    CHECK_EQ(weir_sem_release(&s->slots, 2), 0);
}

/* 1 */
TEST(what_is_free_is_had_without_a_record_or_a_switch)
{
    AS_TASK(what_is_free_is_had_without_a_record_or_a_switch);
    struct weir_sem slots = WEIR_SEM_INIT(2);
    struct weir_runtime_stats before, after;

    weir_runtime_stats(weir_runtime_self(), &before);
    CHECK_EQ(weir_sem_acquire(&slots, 2, weir_within(WEIR_S)), 0);
    CHECK_EQ(queued(&slots), 0);
    weir_runtime_stats(weir_runtime_self(), &after);
    CHECK_EQ(after.switches, before.switches);
}

/* 2 */
TEST(whether_it_may_wait_at_all_is_asked_before_it_is_queued)
{
    AS_TASK(whether_it_may_wait_at_all_is_asked_before_it_is_queued);
    struct weir_sem slots = WEIR_SEM_INIT(2);
    struct weir_runtime_stats before, after;

    CHECK_EQ(weir_sem_try_acquire(&slots, 2), 0);
    CHECK_EQ(weir_task_cancel(weir_task_self()), 0);
    weir_runtime_stats(weir_runtime_self(), &before);
    CHECK_EQ(weir_sem_acquire(&slots, 2, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_acquire(&slots, 2, weir_within(WEIR_S)), WEIR_ECANCELED);
    weir_runtime_stats(weir_runtime_self(), &after);
    CHECK_EQ(after.switches, before.switches);
    CHECK_EQ(queued(&slots), 0);
}

/* 3 to 8, as one story. */
TEST(the_life_of_an_acquire)
{
    struct scene s;
    waiter *w;

    open_scene(&s);
    s.deadline = weir_within(3600 * WEIR_S);
    begin(&s);

    /* 3: its record, which lies on its stack, goes to the end of the queue. */
    EVENTUALLY(queued(&s.slots) == 1);
    w = nth_waiter(&s.slots, 0);
    CHECK_EQ(w->want, 2);
    CHECK_STR(w->kind->name, "semaphore");
    CHECK(w->sleeper.parker->ops == &task_parker_ops);
    CHECK_EQ(result_now(&s), NOT_YET);

    /* 4: the task is parked with a timer armed, and its worker does other things. */
    EVENTUALLY(state_now(&s) == WEIR_TASK_PARKED);
    CHECK_EQ(state_of(w), ASLEEP);
    let_worker_look(&s);
    CHECK_EQ(queued(&s.slots), 1);

    /* 5: another thread releases.  Under the lock the permits become the waiter's, who is
     * no longer queued and does not know. */
    test_hold(NOT_DELIVERED);
    test_spawn(release_two, &s);
    test_reached(NOT_DELIVERED);
    CHECK_EQ(queued(&s.slots), 0);
    CHECK_EQ(weir_sem_available(&s.slots), 0);
    CHECK_EQ(weir_sem_try_acquire(&s.slots, 1), WEIR_EAGAIN);
    CHECK(__atomic_load_n(&w->queue, __ATOMIC_RELAXED) == NULL);
    CHECK_EQ(state_of(w), ASLEEP);
    let_worker_look(&s);
    CHECK_EQ(result_now(&s), NOT_YET);

    /* 6 and 7: told, it runs, and returns 0. */
    test_let_go(NOT_DELIVERED);
    CHECK_EQ(finish(s.task), 0);
    CHECK_EQ(s.result, 0);
    CHECK_EQ(weir_sem_available(&s.slots), 0);

    /* 8: nothing is left of it: no timer, no waiter; and what it holds can be given back. */
    let_worker_look(&s);
    test_join_all();
    CHECK_EQ(weir_sem_release(&s.slots, 2), 0);
    CHECK_EQ(weir_sem_available(&s.slots), 2);
    CHECK_EQ(s.runtime->workers[0].timers.count, 0); /* read after the join above */
    close_runtime(s.runtime);
}

TEST(between_grant_and_delivery_its_deadline_comes_too_late)
{
    struct scene s;

    open_scene(&s);
    s.deadline = weir_within(30 * WEIR_MS);
    begin(&s);
    EVENTUALLY(queued(&s.slots) == 1 || result_now(&s) != NOT_YET);
    test_hold(NOT_DELIVERED);
    test_spawn(release_two, &s);
    EVENTUALLY(weir_sem_available(&s.slots) == 2 || queued(&s.slots) == 0);
    if (result_now(&s) == WEIR_ETIMEDOUT) { /* a slow machine: it was never granted */
        test_let_go(NOT_DELIVERED);
    } else {
        test_reached(NOT_DELIVERED);
        EVENTUALLY(weir_now_ns() > s.deadline.at_ns + WEIR_MS);
        let_worker_look(&s); /* its timer has gone off, it has tried to leave, and waits */
        CHECK_EQ(result_now(&s), NOT_YET);
        test_let_go(NOT_DELIVERED);
        EVENTUALLY(result_now(&s) != NOT_YET);
        CHECK_EQ(result_now(&s), 0);
    }
    finish(s.task);
    test_join_all();
    close_runtime(s.runtime);
}

/* The same steps between two tasks of one worker, where nobody but the worker moves. */
static int wait_step(void *arg)
{
    struct scene *s = arg;

    say('q');
    s->result = weir_sem_acquire(&s->slots, 2, s->deadline);
    say('r');
    return s->result;
}

TEST(on_one_worker_a_release_makes_the_waiter_ready_and_it_runs_in_its_turn)
{
    AS_TASK(on_one_worker_a_release_makes_the_waiter_ready_and_it_runs_in_its_turn);
    struct worker *w = worker_current;
    struct scene s = {.slots = WEIR_SEM_INIT(2), .deadline = weir_within(3600 * WEIR_S)};

    CHECK_EQ(weir_sem_try_acquire(&s.slots, 2), 0);
    s.task = start(wait_step, &s);
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, "q");
    waiter *record = nth_waiter(&s.slots, 0);
    const struct stack *stack = body_stack(s.task.slot_->body);
    CHECK(TEST_ASAN || ((const char *)record > stack->context.bottom && /* ASan moves locals */
                        (const char *)record < (const char *)stack));
    CHECK_EQ(w->timers.count, 1);
    CHECK(w->ready.first == NULL);

    CHECK_EQ(weir_sem_release(&s.slots, 2), 0);
    CHECK_EQ(state_of(record), DONE);
    CHECK(w->ready.first == s.task.slot_);
    CHECK_STR(said, "q"); /* release does not wait */
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, "qr");
    CHECK_EQ(w->timers.count, 0);
    CHECK_EQ(finish(s.task), 0);
}
