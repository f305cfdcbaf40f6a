/* SPDX-License-Identifier: MIT */
#include "named/observe.h"

#include "base/atomic.h"
#include "base/lock.h"

/* Under the lock both, so that no observer is called with another's argument. */
static struct {
    lock lock;
    weir_observer *tell; /* (a) */
    void *arg;
} observer;

void weir_observe(weir_observer *tell, void *arg)
{
    lock_take(&observer.lock);
    atomic_poke(&observer.tell, tell);
    observer.arg = arg;
    lock_drop(&observer.lock);
}

bool observed(void)
{
    return atomic_peek(&observer.tell) != NULL;
}

void observe(const struct weir_notice *notice)
{
    if (!observed())
        return;
    lock_take(&observer.lock);
    weir_observer *tell = observer.tell;
    void *arg = observer.arg;
    lock_drop(&observer.lock);
    if (tell)
        tell(notice, arg);
}

void observe_item(const char *name, const struct item *item, const char *task)
{
    char id[WEIR_ID_LENGTH + 1];

    if (!observed())
        return;
    id_print(item->id, id);
    observe(&(struct weir_notice){
        .what = item->what,
        .name = name,
        .id = id,
        .label = item->label,
        .task = task,
        .limit = item->limit,
        .token = item->token,
        .slot = item->slot,
    });
}
