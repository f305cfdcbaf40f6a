/* SPDX-License-Identifier: MIT */
/* offload - a call that blocks, made so that other tasks run on. */
#include <unistd.h>

#include "example.h"

static int turns;
static int pipe_ends[2];

// [begin]
// Blocks in something that weir does not know.
static int look_up(void *arg)
{
    return read(pipe_ends[0], arg, 1) == 1 ? 0 : -EIO;
}

static int other(void *arg)
{
    (void)arg;
    while (turns < 3) {
        turns++;
        weir_task_yield();
    }
    return write(pipe_ends[1], "!", 1) == 1 ? 0 : -EIO; // the answer
}

static int program(void *arg)
{
    char got = 0;

    (void)arg;
    int r = weir_task_spawn(other, NULL, NULL);
    if (r == 0)
        r = weir_offload(look_up, &got, WEIR_FOREVER);
    printf("got %c after %d turns of the other\n", got, turns);
    return r;
}
// [end]

int main(void)
{
    MUST(pipe(pipe_ends) == 0);
    MUST(weir_run(NULL, program, NULL) == 0);
    return 0;
}
