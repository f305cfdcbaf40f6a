/* SPDX-License-Identifier: MIT */
/* mutex - a lock in order of arrival, that one can also decline to wait for. */
#include "example.h"

// [begin]
static struct weir_mutex lock = WEIR_MUTEX_INIT;
static int balance;

static int deposit(int amount, struct weir_deadline deadline)
{
    int r = weir_mutex_lock(&lock, deadline);
    if (r < 0)
        return r; // WEIR_ETIMEDOUT: not locked, nothing deposited

    balance += amount;
    weir_mutex_unlock(&lock);
    return 0;
}
// [end]

static void *depositor(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        MUST(deposit(1, WEIR_FOREVER) == 0);
    return NULL;
}

int main(void)
{
    run_threads(4, depositor);
    printf("balance: %d\n", balance);

    MUST(weir_mutex_try_lock(&lock) == 0);
    MUST(deposit(1, weir_within(5 * WEIR_MS)) == WEIR_ETIMEDOUT);
    weir_mutex_unlock(&lock);
    printf("while locked: %d\n", balance);
    return 0;
}
