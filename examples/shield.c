/* SPDX-License-Identifier: MIT */
/* shield - a task is cancelled, and cleans up behind a shield. */
#include "example.h"

static struct weir_event answer = WEIR_EVENT_INIT; // which nobody sets

static void say_goodbye(void)
{
    MUST(weir_task_sleep(weir_within(WEIR_MS)) == 0);
    puts("talk: has said goodbye");
}

// [begin]
static int talk(void *arg)
{
    struct weir_shield shield;

    (void)arg;
    int r = weir_event_wait(&answer, WEIR_FOREVER);
    printf("talk: %s\n", weir_strerror(r));
    if (weir_task_sleep(weir_within(WEIR_S)) == WEIR_ECANCELED)
        puts("talk: and so is every other wait");

    weir_shield_begin(&shield, weir_within(WEIR_S));
    say_goodbye(); // may wait, for a second
    weir_shield_end(&shield);
    return r;
}

static int program(void *arg)
{
    struct weir_task task;
    int result = 0, r;

    (void)arg;
    r = weir_task_spawn(talk, NULL, &task);
    if (r < 0)
        return r;
    weir_task_yield();      // it waits for its answer now
    weir_task_cancel(task); // asks; does not wait
    r = weir_task_join(task, WEIR_FOREVER, &result);
    return r < 0 ? r : result;
}
// [end]

int main(void)
{
    MUST(weir_run(NULL, program, NULL) == WEIR_ECANCELED);
    return 0;
}
