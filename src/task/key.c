/* SPDX-License-Identifier: MIT */
/* Task-local values.  Those of a task hang on its body, those of a plain thread on one
 * pthread key; both are a table with a place for every key there can be, made when the
 * first value is set.  A callback counts as the thread that runs it. */
#include <pthread.h>

#include <weir/task.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "task/task.h"

/* A destroyed value may set another one, of its own key even.  pthreads give up after
 * four rounds, too. */
enum { ROUNDS = 4 };

typedef void destroy_fn(void *value);

/* Locking key: (l) under lock  (l,a) written under it, read by anyone
 *              (c) constant once `count` covers it */
static struct {
    lock lock;
    uint32_t count;                     /* (l,a) keys created                  */
    destroy_fn *destroy[WEIR_KEYS_MAX]; /* (c) by index, less one              */
} keys;

static pthread_key_t thread_values; /* once `thread_values_made` */
static pthread_once_t thread_values_once = PTHREAD_ONCE_INIT;
static int thread_values_made; /* 0, or an error */

/* True if any was there. */
static bool destroy_once(void **values)
{
    uint32_t count = atomic_get(&keys.count);
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        void *value = values[i];

        if (value == NULL || keys.destroy[i] == NULL)
            continue;
        values[i] = NULL;
        keys.destroy[i](value);
        any = true;
    }
    return any;
}

static void destroy_all(void **values)
{
    for (int round = 0; round < ROUNDS && destroy_once(values); round++)
        ;
}

void body_destroy_values(struct body *b)
{
    if (b->values == NULL)
        return;
    destroy_all(b->values); /* which see, and may set, what is still there */
    mem_free(b->values);
    b->values = NULL;
}

static void destroy_thread_values(void *values)
{
    pthread_setspecific(thread_values, values); /* is NULL by now, and must be seen */
    destroy_all(values);
    pthread_setspecific(thread_values, NULL);
    mem_free(values);
}

static void make_thread_values(void)
{
    thread_values_made = -pthread_key_create(&thread_values, destroy_thread_values);
}

/* The caller's table, or NULL if it has none yet.  There is a key, so `thread_values`
 * was made. */
static void **values_here(void)
{
    task *t = task_current();

    return t ? t->body->values : pthread_getspecific(thread_values);
}

static void **make_values_here(void)
{
    task *t = task_current();
    void **values = mem_alloc(WEIR_KEYS_MAX * sizeof *values);

    if (values == NULL)
        return NULL;
    if (t) {
        t->body->values = values;
    } else if (pthread_setspecific(thread_values, values) != 0) {
        mem_free(values);
        return NULL;
    }
    return values;
}

static bool exists(struct weir_key key)
{
    return key.index_ >= 1 && key.index_ <= atomic_get(&keys.count);
}

/* ---- public ----------------------------------------------------------------- */

int weir_key_create(struct weir_key *ret_key, void (*destroy)(void *value))
{
    int r = WEIR_ENOSPC;

    pthread_once(&thread_values_once, make_thread_values);
    if (thread_values_made < 0)
        return WEIR_ENOSPC; /* of the pthread library's keys, then */
    lock_take(&keys.lock);
    uint32_t count = keys.count;
    if (count < WEIR_KEYS_MAX) {
        keys.destroy[count] = destroy;
        atomic_put(&keys.count, count + 1);
        r = 0;
    }
    lock_drop(&keys.lock);
    if (r == 0)
        ret_key->index_ = count + 1;
    return r;
}

void *weir_key_get(struct weir_key key)
{
    void **values = exists(key) ? values_here() : NULL;

    return values ? values[key.index_ - 1] : NULL;
}

int weir_key_set(struct weir_key key, void *value)
{
    if (!exists(key))
        return WEIR_EINVAL;
    void **values = values_here();
    if (values == NULL && value == NULL)
        return 0;
    if (values == NULL && (values = make_values_here()) == NULL)
        return WEIR_ENOMEM;
    values[key.index_ - 1] = value;
    return 0;
}
