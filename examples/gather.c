/* SPDX-License-Identifier: MIT */
/* gather - the same for each of a few arguments, all at once, and all the results. */
#include <string.h>

#include "example.h"

// [begin]
static int measure(void *arg)
{
    int r = weir_task_sleep(weir_within(WEIR_MS)); // takes a moment

    return r < 0 ? r : (int)strlen(arg);
}

static int program(void *arg)
{
    void *const words[] = {"weir", "semaphore", "task"};
    struct weir_deadline end = weir_within(10 * WEIR_S);
    int letters[3];
    int r = weir_gather(3, measure, words, letters, end);

    (void)arg;
    for (int i = 0; i < 3 && r == 0; i++)
        printf("%s: %d\n", (const char *)words[i], letters[i]);
    return r;
}
// [end]

int main(void)
{
    MUST(weir_run(NULL, program, NULL) == 0);
    return 0;
}
