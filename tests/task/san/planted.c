/* SPDX-License-Identifier: MIT */
/* planted BUG - a program of tasks with one bug in it, for a sanitizer to find.
 *
 * Not part of the tests' own processes: san_test runs it, and expects the report.  "none"
 * does the same as the others without the bug, and must be clean. */
#include <weir/weir.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int zero; /* so that no compiler sees the bug coming */

/* Switch to others and back, so that the bug happens on a stack that was left before. */
static void be_away(void)
{
    for (int i = 0; i < 3; i++) {
        weir_task_yield();
        weir_task_sleep(weir_within(WEIR_US));
    }
}

/* ---- the bugs ----------------------------------------------------------------------------------- */

static int no_bug(void *arg)
{
    char *heap = malloc(16), local[16];

    (void)arg;
    be_away();
    memset(heap, 1, 16);
    memset(local, 1, 16);
    int sum = heap[15 + zero] + local[15 + zero];
    free(heap);
    return sum == 2 ? 0 : -1;
}

static int heap_overflow(void *arg)
{
    char *heap = malloc(16);

    (void)arg;
    be_away();
    heap[16 + zero] = 1;
    free(heap);
    return 0;
}

static void *volatile kept;

static int use_after_free(void *arg)
{
    (void)arg;
    kept = malloc(16);
    be_away();
    free(kept);
    return *(volatile char *)kept;
}

/* Out of sight of UBSan, which would know how long the array is. */
__attribute__((noinline)) static void write_at(char *at)
{
    *at = 1;
}

static int stack_buffer_overflow(void *arg)
{
    char local[16];

    (void)arg;
    be_away();
    write_at(local + 16 + zero);
    return local[zero];
}

/* Each frame looks into the one above, so that no compiler makes a loop of it. */
__attribute__((noinline)) static int recurse(int depth, volatile char *above)
{
    volatile char frame[512];

    frame[0] = (char)(above[0] + 1);
    return depth <= 0 ? 0 : recurse(depth - 1, frame) + frame[0];
}

static int stack_overflow(void *arg)
{
    (void)arg;
    be_away();
    return recurse(1 << 20, &(volatile char){0});
}

static volatile uintptr_t address;

__attribute__((noinline)) static void leave_address_of_local(void)
{
    volatile int local = 1;

    address = (uintptr_t)&local;
}

static int use_after_return(void *arg)
{
    (void)arg;
    leave_address_of_local();
    be_away();
    return *(volatile int *)address;
}

static int shared; /* by a task and a thread that do not wait for each other */

static void *count_in_thread(void *arg)
{
    for (int i = 0; i < 10000; i++)
        shared++;
    return arg;
}

static int race(void *arg)
{
    pthread_t thread;

    (void)arg;
    be_away();
    pthread_create(&thread, NULL, count_in_thread, NULL);
    for (int i = 0; i < 10000; i++)
        shared++;
    pthread_join(thread, NULL);
    return 0;
}

/* The same with a mutex of weir's around it: no race. */
static struct weir_mutex mutex = WEIR_MUTEX_INIT;

static void count_locked(void)
{
    for (int i = 0; i < 1000; i++) {
        if (weir_mutex_lock(&mutex, WEIR_FOREVER) < 0)
            return;
        shared++;
        weir_mutex_unlock(&mutex);
    }
}

static void *count_locked_in_thread(void *arg)
{
    count_locked();
    return arg;
}

static int locked_task(void *arg)
{
    (void)arg;
    be_away();
    count_locked();
    return 0;
}

static int no_race(void *arg)
{
    pthread_t thread;
    struct weir_task task;
    int result;

    (void)arg;
    pthread_create(&thread, NULL, count_locked_in_thread, NULL);
    weir_task_spawn(locked_task, NULL, &task);
    count_locked();
    int r = weir_task_join(task, WEIR_FOREVER, &result);
    while (weir_mutex_lock(&mutex, WEIR_FOREVER) == 0) {
        int all = shared;

        weir_mutex_unlock(&mutex);
        if (all == 3000)
            break;
        weir_task_sleep(weir_within(WEIR_US));
    }
    pthread_join(thread, NULL);
    return r < 0 ? r : result;
}

/* ---- the program ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    weir_fn *fn;
} bugs[] = {
    {"none", no_bug},
    {"heap-overflow", heap_overflow},
    {"use-after-free", use_after_free},
    {"stack-buffer-overflow", stack_buffer_overflow},
    {"stack-overflow", stack_overflow},
    {"use-after-return", use_after_return},
    {"race", race},
    {"no-race", no_race},
};

static int other(void *arg)
{
    be_away();
    (void)arg;
    return 0;
}

static int program(void *fn)
{
    struct weir_task task;
    int result;

    for (int i = 0; i < 4; i++)
        weir_task_spawn(other, NULL, NULL);
    if (weir_task_spawn(*(weir_fn **)fn, NULL, &task) < 0)
        return -1;
    return weir_task_join(task, WEIR_FOREVER, &result) < 0 ? -1 : result;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof bugs / sizeof *bugs; i++) {
        weir_fn *fn = bugs[i].fn;

        if (strcmp(argv[1], bugs[i].name) == 0)
            return weir_run(NULL, program, &fn) < 0;
    }
    fprintf(stderr, "usage: planted BUG\n");
    return 2;
}
