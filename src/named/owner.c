/* SPDX-License-Identifier: MIT */
#include "named/owner.h"

#include <pthread.h>
#include <string.h>

#include <weir/task.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "named/key.h"
#include "named/lease.h"
#include "task/task.h"

struct owner {
    struct owned *first;
};

static lock owners_lock;
static struct weir_key owner_key;
static int owner_key_made;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The task has ended: give back what it still holds. */
static void task_ended(void *value)
{
    struct owner *owner = value;

    for (;;) {
        char name[WEIR_NAME_MAX + 1];
        uint8_t id[ID_BYTES];

        lock_take(&owners_lock);
        struct owned *o = owner->first;
        struct weir_store *store = o ? o->store : NULL;
        if (o) {
            name_copy(name, o->name);
            memcpy(id, o->id, ID_BYTES);
        }
        lock_drop(&owners_lock);
        if (o == NULL)
            break;
        lease_abandon(store, name, id); /* which removes it from here */
    }
    mem_free(owner);
}

static void make_key(void)
{
    owner_key_made = weir_key_create(&owner_key, task_ended);
}

bool owner_is_task(void)
{
    return task_current() != NULL;
}

int owner_prepare(struct owned *o)
{
    pthread_once(&once, make_key);
    if (owner_key_made < 0)
        return owner_key_made;
    struct owner *owner = weir_key_get(owner_key);
    if (owner == NULL) {
        owner = mem_alloc(sizeof *owner);
        int r = owner ? weir_key_set(owner_key, owner) : WEIR_ENOMEM;
        if (r < 0) {
            mem_free(owner);
            return r;
        }
    }
    o->owner = owner;
    return 0;
}

void owner_add(struct owned *o, struct weir_store *store, const char *name, const uint8_t *id)
{
    o->store = store;
    o->name = name;
    o->id = id;
    lock_take(&owners_lock);
    o->prev = NULL;
    o->next = o->owner->first;
    if (o->next)
        o->next->prev = o;
    o->owner->first = o;
    o->linked = true;
    lock_drop(&owners_lock);
}

void owner_remove(struct owned *o)
{
    lock_take(&owners_lock);
    if (o->linked) {
        if (o->prev)
            o->prev->next = o->next;
        else
            o->owner->first = o->next;
        if (o->next)
            o->next->prev = o->prev;
        o->linked = false;
    }
    lock_drop(&owners_lock);
}
