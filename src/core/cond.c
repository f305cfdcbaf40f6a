/* SPDX-License-Identifier: MIT */
/* The word has no value: a condition is only a queue.  A waiter wants its mutex; to be
 * signalled is to be granted a place in the mutex's queue, so that from then on neither
 * deadline nor cancel can end the wait before it owns the mutex. */
#include <weir/cond.h>

#include "base/testpoint.h"
#include "core/mutex.h"
#include "core/waitq.h"

_Static_assert(sizeof(struct weir_cond) <= 32, "weir_cond is part of the ABI");

static const wait_kind waiting = {.name = "condition"}; /* leaving changes nothing for the others */

static void cond_queue_up(struct weir_cond *cond, waiter *w)
{
    waitq_lock(&cond->queue_);
    waitq_push(&cond->queue_, w);
    waitq_unlock(&cond->queue_, 0);
}

void weir_cond_init(struct weir_cond *cond)
{
    *cond = (struct weir_cond)WEIR_COND_INIT;
}

int weir_cond_wait(struct weir_cond *cond, struct weir_mutex *mutex, struct weir_deadline deadline)
{
    int r = park_refusal(deadline);
    waiter w = {.want = (uintptr_t)mutex, .kind = &waiting, .sleeper = sleeper_self()};

    if (r < 0)
        return r;
    cond_queue_up(cond, &w);
    weir_mutex_unlock(mutex);
    r = waitq_wait(&cond->queue_, &w, deadline);
    if (r < 0)
        mutex_lock_firmly(mutex); /* it left the queue, so nobody will hand it over */
    return r;
}

void weir_cond_signal(struct weir_cond *cond, uint32_t n)
{
    batch signalled = {0};
    waiter *w;

    if (atomic_get(&cond->queue_.word) == 0)
        return; /* nobody waits, and nobody is inside */
    waitq_lock(&cond->queue_);
    for (; n > 0 && (w = waitq_first(&cond->queue_)); n--)
        waitq_grant(&cond->queue_, w, &signalled);
    waitq_unlock(&cond->queue_, 0);
    TESTPOINT("cond: about to admit");
    mutex_admit(&signalled);
}

void weir_cond_broadcast(struct weir_cond *cond)
{
    batch signalled = {0};

    if (atomic_get(&cond->queue_.word) == 0)
        return;
    waitq_lock(&cond->queue_);
    waitq_detach(&cond->queue_, &signalled);
    waitq_unlock(&cond->queue_, 0);
    TESTPOINT("cond: about to admit");
    mutex_admit(&signalled);
}
