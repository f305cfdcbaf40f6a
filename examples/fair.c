/* SPDX-License-Identifier: MIT */
/* fair - a large request waits its turn, and small ones do not overtake it. */
#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(4);

static void *heavy(void *arg)
{
    (void)arg;
    MUST(weir_sem_acquire(&slots, 4, WEIR_FOREVER) == 0);
    puts("heavy: has all 4");
    weir_sem_release(&slots, 4);
    return NULL;
}

int main(void)
{
    pthread_t thread;

    // [begin]
    MUST(weir_sem_try_acquire(&slots, 1) == 0); // 3 of 4 are free
    thread = start(heavy, NULL);                // asks for all 4,
    UNTIL(weir_sem_waiting(&slots) == 1);       // and stands in line

    if (weir_sem_try_acquire(&slots, 1) == WEIR_EAGAIN)
        puts("light: 3 are free, but it is not my turn");

    puts("main: gives its one back");
    weir_sem_release(&slots, 1); // heavy holds all 4 before this returns
    // [end]
    finish(thread);
    return 0;
}
