/* SPDX-License-Identifier: MIT */
/* hang - who waits for what, and since when? */
#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(1);
static struct weir_event ready = WEIR_EVENT_INIT;

static int reader(void *arg)
{
    (void)arg;
    weir_task_set_name("reader");
    return weir_sem_acquire(&slots, 1, WEIR_FOREVER);
}

static int writer(void *arg)
{
    (void)arg;
    weir_task_set_name("writer");
    return weir_event_wait(&ready, WEIR_FOREVER);
}

// [begin]
static void show(const struct weir_task_info *info, void *arg)
{
    const char *name = info->name;
    int seconds = (int)(info->parked_ns / WEIR_S);

    (void)arg;
    if (info->state == WEIR_TASK_PARKED)
        printf("%s: %s, %d s\n", name, info->waits_for, seconds);
}

static void watchdog(void)
{
    // or weir_dump_tasks(weir_runtime_self(), STDERR_FILENO);
    weir_visit_tasks(weir_runtime_self(), show, NULL);
}
// [end]

/* An hour of nothing, by the virtual clock. */
static int program(void *arg)
{
    (void)arg;
    weir_testing_clock_start();
    MUST(weir_sem_try_acquire(&slots, 1) == 0); // and forgets it
    MUST(weir_task_spawn(reader, NULL, NULL) == 0);
    MUST(weir_task_spawn(writer, NULL, NULL) == 0);
    MUST(weir_task_sleep(weir_within(3600 * WEIR_S)) == 0);
    watchdog();
    weir_sem_close(&slots);
    weir_event_set(&ready);
    return 0;
}

int main(void)
{
    MUST(weir_run(NULL, program, NULL) == 0);
    weir_testing_clock_stop();
    return 0;
}
