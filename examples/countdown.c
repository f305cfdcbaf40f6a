/* SPDX-License-Identifier: MIT */
/* countdown - wait until all workers have come to their end, however many there are. */
#include "example.h"

static int numbers[10];

static void start_detached(void *(*fn)(void *), void *arg)
{
    MUST(pthread_detach(start(fn, arg)) == 0);
}

// [begin]
static struct weir_countdown running = WEIR_COUNTDOWN_INIT(0);

static void *square(void *arg)
{
    int *number = arg;

    *number *= *number;
    weir_countdown_down(&running, 1);
    return NULL;
}

static int square_all(void)
{
    for (int i = 0; i < 10; i++) {
        weir_countdown_up(&running, 1); // before it starts
        start_detached(square, &numbers[i]);
    }
    return weir_countdown_wait(&running, WEIR_FOREVER);
}
// [end]

int main(void)
{
    for (int i = 0; i < 10; i++)
        numbers[i] = i;
    MUST(square_all() == 0);
    for (int i = 0; i < 10; i++)
        printf("%d%c", numbers[i], i < 9 ? ' ' : '\n');
    return 0;
}
