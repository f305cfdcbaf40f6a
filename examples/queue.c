/* SPDX-License-Identifier: MIT */
/* queue - a bounded queue between threads: one mutex and two conditions. */
#include "example.h"

// [begin]
static struct weir_mutex lock = WEIR_MUTEX_INIT;
static struct weir_cond not_empty = WEIR_COND_INIT;
static struct weir_cond not_full = WEIR_COND_INIT;
static int ring[4];
static unsigned put_in, taken_out;

static int put(int item, struct weir_deadline deadline)
{
    int r = weir_mutex_lock(&lock, deadline);
    if (r < 0)
        return r;
    while (r == 0 && put_in - taken_out == 4)
        r = weir_cond_wait(&not_full, &lock, deadline);
    if (r == 0) {
        ring[put_in++ % 4] = item;
        weir_cond_signal(&not_empty, 1);
    }
    weir_mutex_unlock(&lock); // ours, whatever the wait returned
    return r;
}
// [end]

static int take(int *ret_item, struct weir_deadline deadline)
{
    int r = weir_mutex_lock(&lock, deadline);
    if (r < 0)
        return r;
    while (r == 0 && put_in == taken_out)
        r = weir_cond_wait(&not_empty, &lock, deadline);
    if (r == 0) {
        *ret_item = ring[taken_out++ % 4];
        weir_cond_signal(&not_full, 1);
    }
    weir_mutex_unlock(&lock);
    return r;
}

static void *producer(void *arg)
{
    (void)arg;
    for (int i = 1; i <= 100; i++)
        MUST(put(i, WEIR_FOREVER) == 0);
    return NULL;
}

int main(void)
{
    pthread_t thread = start(producer, NULL);
    int sum = 0, item;

    for (int i = 1; i <= 100; i++) {
        MUST(take(&item, WEIR_FOREVER) == 0 && item == i);
        sum += item;
    }
    finish(thread);
    printf("100 items in order, sum %d\n", sum);
    MUST(take(&item, weir_within(5 * WEIR_MS)) == WEIR_ETIMEDOUT);
    puts("then none in time");
    return 0;
}
