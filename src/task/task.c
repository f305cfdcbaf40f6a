/* SPDX-License-Identifier: MIT */
/* The life of a task, and the calls that take a handle.
 *
 * A record's life is the word of the queue in which those wait who join it, so that a
 * handle is checked and its task held, joined or ended in one step:
 *
 *     63           32   31       30        29       28      27     3 2       0
 *     +--------------+-------+----------+--------+---------+---------+---------+
 *     | generation   | ENDED | DETACHED | JOINED | JOINING | holders |  flags  |
 *     +--------------+-------+----------+--------+---------+---------+---------+
 *                                                                     (waitq.h)
 *
 * The generation counts how often the record was freed.  A handle that names another
 * one is stale, whatever the record is used for now.  A record that is free has its next
 * generation and that one's holders already, the running side and the handle: to use it
 * changes nothing here.
 *
 * JOINING means that whoever joins it stands in the queue.  It holds nothing: whoever ends
 * the task gives the handle's reference up for it, and leaves the result in its waiter.
 * From then on it does not look at the record, which may be another task's by the time
 * that it runs; a waiter that gives up too late finds there that it is not queued. */
#include "task/task.h"

#include "base/container.h"
#include "core/op.h"
#include "task/sched.h"

static const uint64_t ENDED = UINT64_C(1) << 31;
static const uint64_t DETACHED = UINT64_C(1) << 30;
static const uint64_t JOINED = UINT64_C(1) << 29;
static const uint64_t JOINING = UINT64_C(1) << 28;
static const uint64_t HOLDERS = (UINT64_C(1) << 28) - (UINT64_C(1) << WORD_SHIFT);

static uint32_t generation_of(uint64_t life)
{
    return (uint32_t)(life >> 32);
}

/* A life that begins: held by the running side, and by the handle. */
uint64_t life_begun(uint32_t generation)
{
    return (uint64_t)generation << 32 | word_of(2);
}

/* ---- holding ---------------------------------------------------------------- */

task *task_new(struct worker *here, weir_fn *fn, void *arg, task_ended_fn *ended)
{
    task *t = record_take(here);

    if (t == NULL)
        return NULL;
    t->parker.ops = &task_parker_ops;
    t->next = NULL;
    t->fn = fn;
    t->arg = arg;
    t->ended = ended;
    t->next_poked = NULL;
    atomic_poke(&t->body, NULL);
    atomic_poke(&t->cancelled, 0);
    atomic_poke(&t->poked, 0);
    return t;
}

/* Does the handle name this life, and is it not past that? */
static bool is_open(uint64_t life, struct weir_task handle, uint64_t past)
{
    return generation_of(life) == handle.generation_ && !(life & past);
}

/* With more flags, and more or fewer holders; without any, the next life begins. */
static uint64_t changed(uint64_t life, uint64_t flags, int holders)
{
    life = (life | flags) + word_of((uint64_t)holders);
    return life & HOLDERS ? life : life_begun(generation_of(life) + 1);
}

/* Whoever has changed a life so that it ended frees the record. */
static void free_if_over(task *t, uint64_t before, uint64_t after)
{
    if (generation_of(before) != generation_of(after))
        record_free(t);
}

/* Change what the handle names, unless `past` says that it is past that, while somebody is
 * in the queue or at its lock. */
__attribute__((noinline)) static bool change_locked(struct weir_task handle, uint64_t past,
                                                    uint64_t flags, int holders)
{
    task *t = handle.slot_;
    uint64_t life = waitq_lock(&t->queue);
    bool open = is_open(life, handle, past);
    uint64_t after = open ? changed(life, flags, holders) : life;

    waitq_unlock(&t->queue, after);
    free_if_over(t, life, after);
    return open;
}

static bool change(struct weir_task handle, uint64_t past, uint64_t flags, int holders)
{
    task *t = handle.slot_;

    if (t == NULL)
        return false;
    uint64_t life = atomic_get(&t->queue.word);
    while (is_open(life, handle, past)) {
        if (life & WORD_FLAGS)
            return change_locked(handle, past, flags, holders);
        uint64_t after = changed(life, flags, holders);
        if (atomic_cas(&t->queue.word, &life, after)) {
            free_if_over(t, life, after);
            return true;
        }
    }
    return false;
}

struct weir_task task_handle(const task *t)
{
    return (struct weir_task){(task *)t, generation_of(atomic_peek(&t->queue.word))};
}

task *task_hold(struct weir_task handle)
{
    return change(handle, JOINED, 0, 1) ? handle.slot_ : NULL;
}

void task_hold_again(task *t)
{
    change(task_handle(t), 0, 0, 1);
}

void task_drop(task *t)
{
    change(task_handle(t), 0, 0, -1);
}

/* ---- ending and joining ------------------------------------------------------ */

/* Somebody waits for it: tell all of them, and for the one who joins, let go. */
__attribute__((noinline)) static void finish_watched(task *t, int result)
{
    batch all = {0};
    uint64_t life = waitq_lock(&t->queue);
    uint64_t after =
        life & JOINING ? changed(life & ~JOINING, ENDED | JOINED, -2) : changed(life, ENDED, -1);

    waitq_detach(&t->queue, &all);
    waitq_unlock(&t->queue, after);
    for (waiter *w = all.first; w; w = w->next)
        w->want = (uint32_t)result;
    free_if_over(t, life, after);
    waitq_deliver(&all);
}

void task_finish(task *t, int result)
{
    atomic_put(&t->home, NULL); /* from now on nobody goes from here to the worker */
    atomic_poke(&t->result, result);

    uint64_t life = atomic_peek(&t->queue.word);
    while (!(life & WORD_FLAGS)) {
        uint64_t after = changed(life, ENDED, -1);

        if (atomic_cas(&t->queue.word, &life, after)) {
            free_if_over(t, life, after);
            return;
        }
    }
    finish_watched(t, result);
}

static task *task_of_queue(waitq *q)
{
    return container_of(q, task, queue);
}

/* Under the lock.  `want` is the generation, and becomes the result. */
static int join_or_queue(task *t, uint64_t *life, waiter *w) REQUIRES(t->queue)
{
    struct weir_task handle = {t, (uint32_t)w->want};

    if (!is_open(*life, handle, JOINED | JOINING | DETACHED))
        return WEIR_EINVAL;
    if (*life & ENDED) {
        w->want = (uint32_t)atomic_peek(&t->result);
        *life = changed(*life, JOINED, -1);
        return 1;
    }
    int r = waitq_push_crowd(&t->queue, w);
    *life |= r == 0 ? JOINING : 0;
    return r;
}

static int task_join(waitq *q, waiter *w)
{
    task *t = task_of_queue(q);
    uint64_t life = waitq_lock(&t->queue), after = life;
    int r = join_or_queue(t, &after, w);

    waitq_unlock(&t->queue, after);
    free_if_over(t, life, after);
    return r;
}

static uint64_t task_left(waitq *q, uint64_t life, waiter *w, batch *others)
{
    (void)q;
    (void)w;
    (void)others;
    return life & ~JOINING;
}

static const wait_kind joining = {.name = "task", .join = task_join, .left = task_left};

/* For whoever only wants to be told. */
static int task_watch(waitq *q, waiter *w)
{
    task *t = task_of_queue(q);
    struct weir_task handle = {t, (uint32_t)w->want};
    uint64_t life = waitq_lock(&t->queue);
    int r = !is_open(life, handle, JOINED | JOINING | DETACHED) ? WEIR_EINVAL
            : life & ENDED                                      ? 1
                                                                : waitq_push(&t->queue, w);

    waitq_unlock(&t->queue, life);
    return r;
}

static const wait_kind watching = {.name = "task", .join = task_watch};

task *task_current(void)
{
    struct worker *w = worker_current;

    return w && w->current && parker_current == &w->current->parker ? w->current : NULL;
}

/* ---- public ----------------------------------------------------------------- */

int weir_task_spawn(weir_fn *fn, void *arg, struct weir_task *ret_task)
{
    struct worker *w = worker_current;

    return w ? runtime_spawn(w->runtime, fn, arg, NULL, ret_task) : WEIR_ECONTEXT;
}

/* What has ended, and nobody looks at just now, is joined in one step. */
static bool join_ended(struct weir_task handle, int *ret_result)
{
    task *t = handle.slot_;
    uint64_t life = atomic_get(&t->queue.word);

    while (is_open(life, handle, JOINED | JOINING | DETACHED) && (life & ENDED) &&
           !(life & WORD_FLAGS)) {
        int result = atomic_peek(&t->result);
        uint64_t after = changed(life, JOINED, -1);

        if (atomic_cas(&t->queue.word, &life, after)) {
            free_if_over(t, life, after);
            *ret_result = result;
            return true;
        }
    }
    return false;
}

/* A task of this worker that has not begun does so before whoever waits for it goes on, and
 * most end in the same turn.  So give way to it first: if it has ended then, nobody has to
 * stand in a queue, and be taken out of it again. */
static void let_begin(struct weir_task handle, struct weir_deadline deadline)
{
    const task *t = handle.slot_, *self = task_current();

    if (self && atomic_peek(&t->home) == self->home && atomic_peek(&t->body) == NULL &&
        generation_of(atomic_peek(&t->queue.word)) == handle.generation_ &&
        park_refusal(deadline) == 0)
        park_give_way();
}

static int join_waiting(struct weir_task handle, struct weir_deadline deadline, int *ret_result)
{
    waitq *q = &handle.slot_->queue;

    if (handle.slot_ == task_current() && is_open(atomic_peek(&q->word), handle, 0))
        return WEIR_ECONTEXT;
    _Alignas(64) waiter w = {
        .want = handle.generation_,
        .kind = &joining,
        .sleeper = sleeper_self(),
        .result = park_refusal(deadline),
    };
    int r = task_join(q, &w);

    if (r == 0)
        r = waitq_wait(q, &w, deadline);
    if (r < 0)
        return r;
    *ret_result = (int)(uint32_t)w.want;
    return 0;
}

int weir_task_join(struct weir_task handle, struct weir_deadline deadline, int *ret_result)
{
    int result;

    if (handle.slot_ == NULL)
        return WEIR_EINVAL;
    if (!join_ended(handle, &result)) {
        let_begin(handle, deadline);
        int r = join_ended(handle, &result) ? 0 : join_waiting(handle, deadline, &result);
        if (r < 0)
            return r;
    }
    if (ret_result)
        *ret_result = result;
    return 0;
}

int weir_task_join_async(struct weir_task handle, struct weir_op *op, weir_done *done)
{
    if (handle.slot_ == NULL)
        return WEIR_EINVAL;
    return op_start(op, &handle.slot_->queue, &watching, handle.generation_, done);
}

int weir_task_detach(struct weir_task handle)
{
    return change(handle, JOINED | JOINING | DETACHED, DETACHED, -1) ? 0 : WEIR_EINVAL;
}

int weir_task_cancel(struct weir_task handle)
{
    task *t = task_hold(handle);
    struct worker *here = worker_current;

    if (t == NULL)
        return WEIR_EINVAL;
    task_visitor_comes();
    if (atomic_swap(&t->cancelled, 1) == 0) {
        struct worker *home = atomic_get(&t->home);

        if (home && home == here)
            task_on_poke(here, t);
        else if (home)
            worker_poke(home, t);
    }
    task_visitor_goes();
    task_drop(t);
    return 0;
}

struct weir_task weir_task_self(void)
{
    struct worker *w = worker_current;

    return w && w->current ? task_handle(w->current) : (struct weir_task){0};
}
