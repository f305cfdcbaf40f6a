/* SPDX-License-Identifier: MIT */
/* Random programs against a reference.
 *
 * Tasks and callbacks wait for one primitive, are cancelled and time out (under the
 * virtual clock), while the first task releases, resizes, resets ... at random.  Beside
 * it a model of the primitive, a list of who waits and a few lines of what it promises,
 * says after each command who must have come out, with what, and of tasks in which
 * order, and how many still wait.  The programs are the same for the same seed. */
#include "task/tasks.h"

enum { SLOTS = 10 };

/* One who waits, in the model and in truth. */
struct slot {
    struct weir_op op;
    enum { EMPTY, WAITING_TASK, WAITING_CALLBACK } kind;
    struct weir_task task;
    struct weir_deadline deadline;
    uint64_t want;
    bool idle; /* a wait_idle: wants nothing to be held */

    int result, order;     /* as it came out: NOT_YET until then */
    int expected, granted; /* by the model; granted is the order */
};

static struct slot slots[SLOTS];

/* What the model knows of any primitive: who waits, oldest first. */
static struct slot *line[SLOTS];
static int line_length, came_out, let_out;

/* What is to be known about a primitive. */
struct subject {
    void *object;
    int (*wait)(struct slot *s);
    int (*wait_async)(struct slot *s);
    int (*join)(struct slot *s); /* model: an answer at once, or NOT_YET and it queues */
    void (*left)(void);          /* model: one who waited has left unserved */
    void (*act)(void);           /* something else, in truth and in the model */
};

static const struct subject *subject;

/* ---- in truth ---------------------------------------------------------------------------------- */

static void come_out(struct slot *s, int result)
{
    s->order = came_out++;
    s->result = result;
}

static int wait_as_task(void *arg)
{
    struct slot *s = arg;

    come_out(s, subject->wait(s));
    return 0;
}

static void called_back(struct weir_op *op, int result)
{
    come_out((struct slot *)op, result);
}

/* ---- in the model ------------------------------------------------------------------------------ */

static void let(struct slot *s, int result)
{
    s->granted = let_out++;
    s->expected = result;
}

static void line_remove(int i)
{
    memmove(&line[i], &line[i + 1], sizeof *line * (size_t)(--line_length - i));
}

/* Serve the oldest. */
static void let_first(int result)
{
    struct slot *s = line[0];

    line_remove(0);
    let(s, result);
}

static void let_all(int result)
{
    while (line_length > 0)
        let_first(result);
}

static void leave_line(struct slot *s, int why)
{
    for (int i = 0; i < line_length; i++) {
        if (line[i] == s) {
            line_remove(i);
            let(s, why);
            subject->left();
            return;
        }
    }
}

static void nothing_changes(void)
{
}

/* ---- commands ------------------------------------------------------------------------------------ */

static struct slot *some_slot(bool empty)
{
    int from = (int)test_random(SLOTS);

    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[(from + i) % SLOTS];

        if ((s->kind == EMPTY) == empty)
            return s;
    }
    return NULL;
}

static void begin_waiting(struct slot *s, bool by_task)
{
    static int64_t unlike; /* no two deadlines are the same */

    s->result = s->expected = NOT_YET;
    s->kind = by_task ? WAITING_TASK : WAITING_CALLBACK;
    s->deadline = WEIR_FOREVER;
    if (by_task && test_random(2))
        s->deadline = weir_within((1 + test_random(20)) * WEIR_S + ++unlike);
    int at_once = subject->join(s);
    if (at_once == NOT_YET)
        line[line_length++] = s;
    else
        let(s, at_once);
    if (by_task) {
        s->task = start(wait_as_task, s);
        return;
    }
    int r = subject->wait_async(s);
    if (r == 1)
        come_out(s, at_once); /* which of them a barrier's last is, it says itself */
    else if (r < 0)
        come_out(s, r);
}

static void cancel_some(void)
{
    struct slot *s = some_slot(false);

    if (s == NULL)
        return;
    if (s->kind == WAITING_TASK) {
        CHECK_EQ(weir_task_cancel(s->task), 0);
    } else {
        CHECK_EQ(weir_op_cancel(&s->op), s->expected == NOT_YET);
        if (s->expected == NOT_YET)
            come_out(s, WEIR_ECANCELED);
    }
    leave_line(s, WEIR_ECANCELED);
}

/* The waiting task whose deadline comes first, if it is before `until`. */
static struct slot *next_to_time_out(struct weir_deadline until)
{
    struct slot *first = NULL;

    for (int i = 0; i < line_length; i++)
        if (line[i]->deadline.at_ns <= until.at_ns)
            until = (first = line[i])->deadline;
    return first;
}

static void let_time_pass(void)
{
    struct weir_deadline until = weir_within((1 + test_random(5)) * WEIR_S);
    struct slot *s;

    CHECK_EQ(weir_task_sleep(until), 0);
    while ((s = next_to_time_out(until)))
        leave_line(s, WEIR_ETIMEDOUT);
}

static void compare(void)
{
    int last_order = -1, last_granted = -1, left = 0;

    let_others_run();
    CHECK_EQ(queued(subject->object), line_length);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].kind != EMPTY)
            CHECK_EQ(slots[i].result, slots[i].expected);
    do { /* those tasks that came out, in the order in which they were let out */
        struct slot *next = NULL;

        for (int i = 0; i < SLOTS; i++) {
            struct slot *s = &slots[i];

            if (s->kind == WAITING_TASK && s->expected != NOT_YET && s->granted > last_granted &&
                (next == NULL || s->granted < next->granted))
                next = s;
        }
        left = next != NULL;
        if (next) {
            CHECK(next->order > last_order);
            last_order = next->order;
            last_granted = next->granted;
        }
    } while (left);
}

static void forget_those_who_came_out(void)
{
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[i];

        if (s->kind == EMPTY || s->result == NOT_YET)
            continue;
        if (s->kind == WAITING_TASK)
            CHECK_EQ(finish(s->task), 0);
        s->kind = EMPTY;
    }
}

static void run_program(const struct subject *about, int commands)
{
    subject = about;
    for (; commands > 0; commands--) {
        uint32_t what = test_random(16);
        struct slot *s = some_slot(true);

        if (what < 7 && s)
            begin_waiting(s, test_random(3) > 0);
        else if (what < 9)
            cancel_some();
        else if (what < 11)
            let_time_pass();
        else
            subject->act();
        compare();
        forget_those_who_came_out();
    }
    for (int i = 0; i < SLOTS; i++) { /* send all home */
        struct slot *s = &slots[i];

        if (s->kind == WAITING_TASK) {
            CHECK_EQ(weir_task_cancel(s->task), 0);
            CHECK_EQ(finish(s->task), 0);
        } else if (s->kind == WAITING_CALLBACK) {
            (void)weir_op_cancel(&s->op);
        }
    }
    CHECK_EQ(queued(subject->object), 0);
}

/* ---- semaphore -------------------------------------------------------------------------------------- */

static struct weir_sem sem;
static uint64_t capacity, held;

static int sem_wait_(struct slot *s)
{
    return s->idle ? weir_sem_wait_idle(&sem, s->deadline)
                   : weir_sem_acquire(&sem, s->want, s->deadline);
}

static int sem_wait_async(struct slot *s)
{
    return s->idle ? weir_sem_wait_idle_async(&sem, &s->op, called_back)
                   : weir_sem_acquire_async(&sem, s->want, &s->op, called_back);
}

static bool fits(const struct slot *s)
{
    return s->idle ? held == 0 : held + s->want <= capacity;
}

static void sem_serve(void)
{
    while (line_length > 0 && fits(line[0])) {
        held += line[0]->want;
        let_first(0);
    }
}

static int sem_join(struct slot *s)
{
    s->idle = test_random(8) == 0;
    s->want = s->idle ? 0 : test_random((uint32_t)capacity + 2);
    if (!s->idle && (s->want == 0 || s->want > capacity))
        return WEIR_EINVAL;
    if (line_length > 0 || !fits(s))
        return NOT_YET;
    held += s->want;
    return 0;
}

static void sem_resize(void)
{
    capacity = 1 + test_random(6);
    CHECK_EQ(weir_sem_resize(&sem, capacity), 0);
    for (int i = 0; i < line_length;) {
        struct slot *s = line[i];

        if (s->idle || s->want <= capacity) {
            i++;
            continue;
        }
        line_remove(i);
        let(s, WEIR_EINVAL);
    }
    sem_serve();
}

static void sem_act(void)
{
    uint64_t n = 1 + test_random(6);

    if (test_random(8) == 0) {
        sem_resize();
    } else if (test_random(4) == 0) {
        int r = weir_sem_try_acquire(&sem, n);

        if (n > capacity)
            CHECK_EQ(r, WEIR_EINVAL);
        else if (line_length > 0 || held + n > capacity)
            CHECK_EQ(r, WEIR_EAGAIN);
        else
            CHECK_EQ(r, 0);
        held += r == 0 ? n : 0;
    } else {
        CHECK_EQ(weir_sem_release(&sem, n), n > held ? WEIR_EOVERFLOW : 0);
        held -= n > held ? 0 : n;
        sem_serve();
    }
    CHECK_EQ(weir_sem_available(&sem), held < capacity ? capacity - held : 0);
}

TEST_WITHIN(a_semaphore_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_semaphore_does_what_its_model_does);
    static const struct subject about = {&sem,     sem_wait_, sem_wait_async,
                                         sem_join, sem_serve, sem_act};

    capacity = 4;
    CHECK_EQ(weir_sem_init(&sem, capacity), 0);
    run_program(&about, test_scaled(5000));
}

/* ---- mutex ------------------------------------------------------------------------------------------- */

static struct weir_mutex mutex;
static bool locked;

static int mutex_wait(struct slot *s)
{
    return weir_mutex_lock(&mutex, s->deadline);
}

static int mutex_wait_async(struct slot *s)
{
    return weir_mutex_lock_async(&mutex, &s->op, called_back);
}

static int mutex_join(struct slot *s)
{
    (void)s;
    if (locked)
        return NOT_YET;
    locked = true;
    return 0;
}

static void mutex_act(void)
{
    if (!locked) {
        CHECK_EQ(weir_mutex_try_lock(&mutex), 0);
        locked = true;
        return;
    }
    CHECK_EQ(weir_mutex_try_lock(&mutex), WEIR_EAGAIN);
    weir_mutex_unlock(&mutex);
    if (line_length > 0)
        let_first(0);
    else
        locked = false;
}

TEST_WITHIN(a_mutex_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_mutex_does_what_its_model_does);
    static const struct subject about = {&mutex,     mutex_wait,      mutex_wait_async,
                                         mutex_join, nothing_changes, mutex_act};

    run_program(&about, test_scaled(3000));
}

/* ---- reusable event ---------------------------------------------------------------------------------- */

static struct weir_revent revent;
static bool is_set;

static int revent_wait(struct slot *s)
{
    return weir_revent_wait(&revent, s->deadline);
}

static int revent_wait_async(struct slot *s)
{
    return weir_revent_wait_async(&revent, &s->op, called_back);
}

static int revent_join(struct slot *s)
{
    (void)s;
    return is_set ? 0 : NOT_YET;
}

static void revent_act(void)
{
    uint32_t what = test_random(6);

    if (what < 3) {
        weir_revent_set(&revent);
        is_set = true;
        let_all(0);
    }
    if (what > 0) { /* perhaps before anyone who was woken has run */
        weir_revent_clear(&revent);
        is_set = false;
    }
    CHECK_EQ(weir_revent_is_set(&revent), is_set);
}

TEST_WITHIN(a_reusable_event_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_reusable_event_does_what_its_model_does);
    static const struct subject about = {&revent,     revent_wait,     revent_wait_async,
                                         revent_join, nothing_changes, revent_act};

    run_program(&about, test_scaled(3000));
}

/* ---- countdown --------------------------------------------------------------------------------------- */

static struct weir_countdown countdown;
static uint64_t value;

static int countdown_wait(struct slot *s)
{
    return weir_countdown_wait(&countdown, s->deadline);
}

static int countdown_wait_async(struct slot *s)
{
    return weir_countdown_wait_async(&countdown, &s->op, called_back);
}

static int countdown_join(struct slot *s)
{
    (void)s;
    return value == 0 ? 0 : NOT_YET;
}

static void countdown_act(void)
{
    uint64_t n = test_random(4);

    if (test_random(16) == 0) {
        weir_countdown_clear(&countdown);
        value = 0;
    } else if (test_random(2)) {
        CHECK_EQ(weir_countdown_up(&countdown, n), 0);
        value += n;
    } else {
        CHECK_EQ(weir_countdown_down(&countdown, n), n > value ? WEIR_EOVERFLOW : 0);
        value -= n > value ? 0 : n;
    }
    if (value == 0)
        let_all(0);
    CHECK_EQ(weir_countdown_value(&countdown), value);
}

TEST_WITHIN(a_countdown_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_countdown_does_what_its_model_does);
    static const struct subject about = {&countdown,     countdown_wait,  countdown_wait_async,
                                         countdown_join, nothing_changes, countdown_act};

    run_program(&about, test_scaled(3000));
}

/* ---- barrier ----------------------------------------------------------------------------------------- */

enum { PARTIES = 3 };

static struct weir_barrier barrier;
static bool broken;

static int barrier_wait(struct slot *s)
{
    uint32_t index = NOT_YET;
    int r = weir_barrier_wait(&barrier, s->deadline, &index);

    return r < 0 ? r : (int)index;
}

static int barrier_wait_async(struct slot *s)
{
    return weir_barrier_wait_async(&barrier, &s->op, called_back);
}

static int barrier_join(struct slot *s)
{
    (void)s;
    if (broken)
        return WEIR_EBROKEN;
    if (line_length + 1 < PARTIES)
        return NOT_YET;
    for (int i = 0; i < PARTIES - 1; i++)
        let_first(i);
    return PARTIES - 1;
}

static void barrier_break(void)
{
    broken = true;
    let_all(WEIR_EBROKEN);
}

static void barrier_act(void)
{
    if (test_random(8) == 0) {
        weir_barrier_abort(&barrier);
        barrier_break();
    } else if (broken || test_random(8) == 0) {
        weir_barrier_reset(&barrier);
        let_all(WEIR_EBROKEN);
        broken = false;
    }
    CHECK_EQ(weir_barrier_is_broken(&barrier), broken);
}

TEST_WITHIN(a_barrier_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_barrier_does_what_its_model_does);
    static const struct subject about = {&barrier,     barrier_wait,  barrier_wait_async,
                                         barrier_join, barrier_break, barrier_act};

    CHECK_EQ(weir_barrier_init(&barrier, PARTIES), 0);
    run_program(&about, test_scaled(3000));
}

/* ---- latch ------------------------------------------------------------------------------------------- */

static struct weir_latch latch;
static uint32_t missing;

static int latch_wait(struct slot *s)
{
    return weir_latch_wait(&latch, s->deadline);
}

static int latch_wait_async(struct slot *s)
{
    return weir_latch_wait_async(&latch, &s->op, called_back);
}

static int latch_join(struct slot *s)
{
    (void)s;
    if (broken)
        return WEIR_EBROKEN;
    if (missing == 0)
        return 0;
    if (--missing > 0)
        return NOT_YET;
    let_all(0);
    return 0;
}

/* It is used once: a new one as soon as this one is open or broken, and nobody is there. */
static void latch_act(void)
{
    uint32_t n = 1 + test_random(2);

    if ((broken || missing == 0) && line_length == 0) {
        missing = 2 + test_random(4);
        CHECK_EQ(weir_latch_init(&latch, missing), 0);
        broken = false;
    } else if (test_random(8) == 0) {
        weir_latch_abort(&latch);
        if (missing > 0)
            barrier_break();
    } else {
        int want = broken ? WEIR_EBROKEN : n > missing ? WEIR_EOVERFLOW : 0;

        CHECK_EQ(weir_latch_arrive(&latch, n), want);
        missing -= want == 0 ? n : 0;
        if (want == 0 && missing == 0)
            let_all(0);
    }
    CHECK_EQ(weir_latch_is_broken(&latch), broken);
}

TEST_WITHIN(a_latch_does_what_its_model_does, 20)
{
    AS_TASK_IN_NO_TIME(a_latch_does_what_its_model_does);
    static const struct subject about = {&latch,     latch_wait,    latch_wait_async,
                                         latch_join, barrier_break, latch_act};

    missing = 3;
    CHECK_EQ(weir_latch_init(&latch, missing), 0);
    run_program(&about, test_scaled(3000));
}
