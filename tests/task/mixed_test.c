/* SPDX-License-Identifier: MIT */
/* Tasks, threads and callbacks on the same primitives, in the same queues. */
#include "task/tasks.h"

enum kind { TASK, THREAD, CALLBACK, KINDS };

/* One that waits, and what its wait gave. */
struct member {
    struct weir_op op;
    enum kind kind;
    const struct way_to_wait *way;
    struct things *things;
    char letter;
    int result;
};

static void come_out(struct member *m, int result)
{
    __atomic_store_n(&m->result, result, __ATOMIC_RELEASE);
    say(m->letter);
}

static int member_result(const struct member *m)
{
    return __atomic_load_n(&m->result, __ATOMIC_ACQUIRE);
}

static int be_a_task(void *arg)
{
    struct member *m = arg;

    come_out(m, m->way->wait(m->things, WEIR_FOREVER));
    return 0;
}

static void be_a_thread(void *arg)
{
    be_a_task(arg);
}

static void be_called(struct weir_op *op, int result)
{
    come_out((struct member *)op, result);
}

/* The asynchronous form of each way to wait, in the same order; a condition has none. */
static int begin_async(struct member *m)
{
    struct things *t = m->things;

    switch (m->way - ways_to_wait) {
    case 0:
        return weir_sem_acquire_async(&t->sem, 1, &m->op, be_called);
    case 1:
        return weir_sem_wait_idle_async(&t->sem, &m->op, be_called);
    case 2:
        return weir_event_wait_async(&t->event, &m->op, be_called);
    case 3:
        return weir_revent_wait_async(&t->revent, &m->op, be_called);
    case 4:
        return weir_countdown_wait_async(&t->countdown, &m->op, be_called);
    case 5:
        return weir_latch_wait_async(&t->latch, &m->op, be_called);
    case 6:
        return weir_barrier_wait_async(&t->barrier, &m->op, be_called);
    default:
        return weir_mutex_lock_async(&t->mutex, &m->op, be_called);
    }
}

/* Let it queue up, and return when it has. */
static void queue_member(struct weir_runtime *runtime, struct member *m)
{
    void *object = thing_of(m->way, m->things);
    uint32_t before = queued(object);

    m->result = NOT_YET;
    if (m->kind == TASK)
        CHECK_EQ(weir_runtime_spawn(runtime, be_a_task, m, NULL), 0);
    else if (m->kind == THREAD)
        test_spawn(be_a_thread, m);
    else
        CHECK_EQ(begin_async(m), 0);
    EVENTUALLY(queued(object) == before + 1);
}

static void init_members(struct member *members, int n, const struct way_to_wait *way,
                         struct things *things, bool callbacks)
{
    for (int i = 0; i < n; i++)
        members[i] = (struct member){.op = WEIR_OP_INIT,
                                     .kind = (enum kind)(i % (callbacks ? KINDS : CALLBACK)),
                                     .way = way,
                                     .things = things,
                                     .letter = (char)('a' + i)};
}

/* ---- handed over one at a time ------------------------------------------------------- */

/* Nine of them, of all kinds, are served in order: each hand-over reaches the next. */
static void check_fifo(const struct way_to_wait *way, uint32_t workers)
{
    enum { MEMBERS = 9 };
    struct weir_runtime *runtime = open_runtime(workers);
    struct things things;
    struct member members[MEMBERS];

    things_init(&things);
    init_members(members, MEMBERS, way, &things, way->wait != wait_cond);
    for (int i = 0; i < MEMBERS; i++)
        queue_member(runtime, &members[i]);
    for (int i = 0; i < MEMBERS; i++) {
        way->end(&things);
        EVENTUALLY(how_much_was_said() == i + 1);
        CHECK_EQ(member_result(&members[i]), 0);
    }
    CHECK_STR(said, "abcdefghi");
    CHECK_EQ(queued(thing_of(way, &things)), 0);
    test_join_all();
    close_runtime(runtime);
}

TEST(a_semaphore_serves_all_kinds_in_one_order)
{
    check_fifo(&ways_to_wait[0], 1);
}

TEST(a_semaphore_serves_all_kinds_in_one_order_with_two_workers)
{
    check_fifo(&ways_to_wait[0], 2);
}

TEST(a_mutex_is_handed_to_all_kinds_in_one_order)
{
    check_fifo(&ways_to_wait[7], 1);
}

TEST(a_condition_lets_tasks_and_threads_go_on_in_one_order)
{
    check_fifo(&ways_to_wait[8], 1);
}

/* ---- told all together ----------------------------------------------------------------- */

static void check_all_are_told(const struct way_to_wait *way)
{
    enum { MEMBERS = 6 };
    struct weir_runtime *runtime = open_runtime(2);
    struct things things;
    struct member members[MEMBERS];

    things_init(&things);
    CHECK_EQ(weir_latch_init(&things.latch, MEMBERS + 1), 0);
    CHECK_EQ(weir_barrier_init(&things.barrier, MEMBERS + 1), 0);
    init_members(members, MEMBERS, way, &things, true);
    for (int i = 0; i < MEMBERS; i++)
        queue_member(runtime, &members[i]);
    CHECK_EQ(how_much_was_said(), 0);
    way->end(&things);
    EVENTUALLY(how_much_was_said() == MEMBERS);
    for (int i = 0; i < MEMBERS; i++) { /* a barrier's callback is given its index */
        bool is_index = way->wait == wait_barrier && members[i].kind == CALLBACK;

        CHECK_EQ(member_result(&members[i]), is_index ? i : 0);
    }
    CHECK_EQ(queued(thing_of(way, &things)), 0);
    test_join_all();
    close_runtime(runtime);
}

TEST(wait_idle_ends_for_all_kinds)
{
    check_all_are_told(&ways_to_wait[1]);
}

TEST(an_event_is_told_to_all_kinds)
{
    check_all_are_told(&ways_to_wait[2]);
}

TEST(a_reusable_event_is_told_to_all_kinds)
{
    check_all_are_told(&ways_to_wait[3]);
}

TEST(a_countdown_ends_for_all_kinds)
{
    check_all_are_told(&ways_to_wait[4]);
}

TEST(a_latch_opens_for_all_kinds)
{
    check_all_are_told(&ways_to_wait[5]);
}

TEST(a_barrier_is_met_by_all_kinds)
{
    check_all_are_told(&ways_to_wait[6]);
}

static void broadcast(struct things *t)
{
    weir_cond_broadcast(&t->cond);
}

TEST(a_broadcast_reaches_tasks_and_threads)
{
    enum { MEMBERS = 6 };
    struct weir_runtime *runtime = open_runtime(1);
    struct things things;
    struct member members[MEMBERS];

    things_init(&things);
    init_members(members, MEMBERS, &ways_to_wait[8], &things, false);
    for (int i = 0; i < MEMBERS; i++)
        queue_member(runtime, &members[i]);
    broadcast(&things);
    EVENTUALLY(how_much_was_said() == MEMBERS);
    test_join_all();
    close_runtime(runtime);
    CHECK_EQ(weir_mutex_try_lock(&things.cond_mutex), 0);
}

/* ---- broken for all ------------------------------------------------------------------- */

static void check_broken_for_all(const struct way_to_wait *way)
{
    enum { MEMBERS = 6 };
    struct weir_runtime *runtime = open_runtime(1);
    struct things things;
    struct member members[MEMBERS];
    struct waiting doomed = {.way = way, .things = &things, .deadline = WEIR_FOREVER};

    things_init(&things);
    CHECK_EQ(weir_latch_init(&things.latch, 20), 0);
    CHECK_EQ(weir_barrier_init(&things.barrier, 20), 0);
    init_members(members, MEMBERS, way, &things, true);
    for (int i = 0; i < MEMBERS; i++)
        queue_member(runtime, &members[i]);
    struct weir_task task = start_in(runtime, wait_as_told, &doomed);
    EVENTUALLY(queued(thing_of(way, &things)) == MEMBERS + 1);
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    EVENTUALLY(how_much_was_said() == MEMBERS);
    for (int i = 0; i < MEMBERS; i++)
        CHECK_EQ(member_result(&members[i]), WEIR_EBROKEN);
    test_join_all();
    close_runtime(runtime);
}

TEST(a_cancelled_task_breaks_a_latch_for_all_kinds)
{
    check_broken_for_all(&ways_to_wait[5]);
}

TEST(a_cancelled_task_breaks_a_barrier_for_all_kinds)
{
    check_broken_for_all(&ways_to_wait[6]);
}

/* ---- leaving the queue ------------------------------------------------------------------ */

TEST(those_behind_a_cancelled_task_are_served_at_once)
{
    struct weir_runtime *runtime = open_runtime(1);
    struct things things;
    struct member members[3];
    struct weir_sem *sem = &things.sem;

    things_init(&things);
    CHECK_EQ(weir_sem_init(sem, 3), 0);
    CHECK_EQ(weir_sem_try_acquire(sem, 2), 0);
    struct waiting heavy = {&ways_to_wait[1], &things, WEIR_FOREVER, NOT_YET, 0};
    struct weir_task task = start_in(runtime, wait_as_told, &heavy); /* until all are back */
    EVENTUALLY(weir_sem_waiting(sem) == 1);
    init_members(members, 3, &ways_to_wait[0], &things, true);
    queue_member(runtime, &members[0]);
    CHECK_EQ(how_much_was_said(), 0); /* there is a permit, but it is not its turn */
    CHECK_EQ(weir_task_cancel(task), 0);
    CHECK_EQ(finish(task), WEIR_ECANCELED);
    EVENTUALLY(how_much_was_said() == 1);
    CHECK_EQ(weir_sem_available(sem), 0);
    close_runtime(runtime);
}

/* ---- barriers and the order in which tasks go on ------------------------------------------ */

struct arrival {
    struct weir_barrier *barrier;
    char letter;
    uint32_t index;
};

static int arrive(void *arg)
{
    struct arrival *a = arg;

    CHECK_EQ(weir_barrier_wait(a->barrier, WEIR_FOREVER, &a->index), 0);
    say(a->letter);
    return 0;
}

TEST(at_a_barrier_tasks_of_one_worker_go_on_in_order_of_arrival_the_last_last)
{
    AS_TASK(at_a_barrier_tasks_of_one_worker_go_on_in_order_of_arrival_the_last_last);
    enum { PARTIES = 5 };
    struct weir_barrier barrier = WEIR_BARRIER_INIT(PARTIES);
    struct arrival arrivals[PARTIES];
    struct weir_task tasks[PARTIES];

    for (int i = 0; i < PARTIES; i++) {
        arrivals[i] = (struct arrival){&barrier, (char)('a' + i), 99};
        tasks[i] = start(arrive, &arrivals[i]);
    }
    for (uint32_t i = 0; i < PARTIES; i++) {
        CHECK_EQ(finish(tasks[i]), 0);
        CHECK_EQ(arrivals[i].index, i);
    }
    CHECK_STR(said, "abcde");
}

TEST(two_phases_of_a_barrier_each_go_on_in_order)
{
    AS_TASK(two_phases_of_a_barrier_each_go_on_in_order);
    struct weir_barrier barrier = WEIR_BARRIER_INIT(3);
    struct arrival arrivals[6];

    for (int i = 0; i < 6; i++) {
        arrivals[i] = (struct arrival){&barrier, (char)('a' + i), 99};
        CHECK_EQ(weir_task_spawn(arrive, &arrivals[i], NULL), 0);
    }
    let_others_run();
    CHECK_STR(said, "abcdef");
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ(arrivals[i].index, i % 3);
}

static void arrive_as_thread(void *arg)
{
    arrive(arg);
}

TEST(threads_and_tasks_share_a_barrier_phase_after_phase)
{
    enum { PARTIES = 6, PHASES = 40 };
    struct weir_runtime *runtime = open_runtime(2);
    struct weir_barrier barrier = WEIR_BARRIER_INIT(PARTIES);

    for (int phase = 0; phase < PHASES; phase++) {
        struct arrival arrivals[PARTIES];
        struct weir_task tasks[PARTIES / 2];
        uint32_t seen = 0;

        for (int i = 0; i < PARTIES; i++)
            arrivals[i] = (struct arrival){&barrier, 'x', 99};
        for (int i = 0; i < PARTIES / 2; i++) {
            test_spawn(arrive_as_thread, &arrivals[i]);
            tasks[i] = start_in(runtime, arrive, &arrivals[PARTIES / 2 + i]);
        }
        for (int i = 0; i < PARTIES / 2; i++)
            CHECK_EQ(finish(tasks[i]), 0);
        test_join_all();
        for (int i = 0; i < PARTIES; i++) {
            CHECK(arrivals[i].index < PARTIES);
            seen |= 1U << arrivals[i].index;
        }
        CHECK_EQ(seen, (1U << PARTIES) - 1); /* each index once */
    }
    close_runtime(runtime);
}

static int wait_then_say(void *arg)
{
    struct member *m = arg;

    CHECK_EQ(weir_event_wait(&m->things->event, WEIR_FOREVER), 0);
    say(m->letter);
    return 0;
}

TEST(tasks_woken_together_run_in_the_order_in_which_they_waited)
{
    AS_TASK(tasks_woken_together_run_in_the_order_in_which_they_waited);
    struct things things;
    struct member members[8];

    things_init(&things);
    init_members(members, 8, &ways_to_wait[2], &things, false);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(weir_task_spawn(wait_then_say, &members[i], NULL), 0);
    YIELD_UNTIL(queued(&things.event) == 8);
    weir_event_set(&things.event);
    say('.'); /* set does not wait */
    CHECK_EQ(weir_task_yield(), 0);
    CHECK_STR(said, ".abcdefgh");
}

/* ---- visibility and hand-off ---------------------------------------------------------------- */

/* A token that goes round between tasks of two workers and threads; plain data travels
 * with it, for TSan to see. */
enum { STATIONS = 4 };

static struct {
    struct weir_sem turns[STATIONS];
    int rounds, token;
} ring;

static int pass_on(void *arg)
{
    int me = (int)(uintptr_t)arg;

    for (int i = 0; i < ring.rounds; i++) {
        CHECK_EQ(weir_sem_acquire(&ring.turns[me], 1, WEIR_FOREVER), 0);
        CHECK_EQ(ring.token++ % STATIONS, me);
        CHECK_EQ(weir_sem_release(&ring.turns[(me + 1) % STATIONS], 1), 0);
    }
    return 0;
}

static void pass_on_as_thread(void *arg)
{
    pass_on(arg);
}

TEST(what_one_wrote_before_it_released_the_next_reads_task_or_thread)
{
    struct weir_runtime *runtime = open_runtime(2);

    ring.rounds = test_scaled(1000);
    for (int i = 0; i < STATIONS; i++) {
        CHECK_EQ(weir_sem_init(&ring.turns[i], 1), 0);
        if (i > 0)
            CHECK_EQ(weir_sem_try_acquire(&ring.turns[i], 1), 0);
    }
    for (uintptr_t i = 0; i < STATIONS; i++) {
        if (i % 2)
            test_spawn(pass_on_as_thread, (void *)i);
        else
            CHECK_EQ(weir_runtime_spawn(runtime, pass_on, (void *)i, NULL), 0);
    }
    test_join_all();
    close_runtime(runtime);
    CHECK_EQ(ring.token, ring.rounds * STATIONS);
}

/* ---- callbacks on a worker -------------------------------------------------------------------- */

static void try_to_wait(struct weir_op *op, int result)
{
    struct member *m = (struct member *)op;

    for (const struct way_to_wait *way = ways_to_wait; way < ways_to_wait + WAYS_TO_WAIT; way++) {
        struct things things;

        things_init(&things);
        CHECK_WAY(way, way->wait(&things, WEIR_FOREVER), WEIR_ECONTEXT);
        CHECK_WAY(way, queued(thing_of(way, &things)), 0);
    }
    come_out(m, result);
}

TEST(in_a_callback_on_a_worker_every_wait_is_refused)
{
    AS_TASK(in_a_callback_on_a_worker_every_wait_is_refused);
    struct weir_event event = WEIR_EVENT_INIT;
    struct member member = {.op = WEIR_OP_INIT, .letter = 'c'};

    CHECK_EQ(weir_event_wait_async(&event, &member.op, try_to_wait), 0);
    weir_event_set(&event);
    CHECK_STR(said, "c");
    CHECK_EQ(weir_task_yield(), 0); /* and the task may wait again */
    CHECK_EQ(weir_task_sleep(weir_within(WEIR_US)), 0);
}
