/* SPDX-License-Identifier: MIT */
/* child - run a program, for so long and no longer. */
#include <signal.h>
#include <sys/wait.h>

#include "example.h"

// [begin]
// Returns its status, or why there is none.
static int run(const char *const argv[], struct weir_deadline end)
{
    struct weir_process_options how = {.argv = argv};
    struct weir_process child;
    int status, r = weir_process_spawn(&how, &child);

    if (r < 0)
        return r;
    r = weir_process_wait(&child, end, &status);
    if (r < 0) { // it takes too long, or we were cancelled
        struct weir_shield shield;

        weir_process_signal(&child, SIGKILL); // and its children
        weir_shield_begin(&shield, WEIR_FOREVER);
        if (weir_process_wait(&child, WEIR_FOREVER, NULL) < 0)
            puts("its status is lost");
        weir_shield_end(&shield);
    }
    weir_process_release(&child);
    return r < 0 ? r : status;
}
// [end]

static int program(void *arg)
{
    const char *const quick[] = {"sh", "-c", "exit 3", NULL};
    const char *const slow[] = {"sh", "-c", "sleep 60 & sleep 60", NULL};
    const char *const none[] = {"weir-no-such-program", NULL};
    int status = run(quick, weir_within(20 * WEIR_S));

    (void)arg;
    MUST(status >= 0 && WIFEXITED(status));
    printf("quick: status %d\n", WEXITSTATUS(status));
    printf("slow: %s\n", weir_strerror(run(slow, weir_within(50 * WEIR_MS))));
    printf("none: %s\n", weir_strerror(run(none, weir_within(WEIR_S))));
    return 0;
}

int main(void)
{
    MUST(weir_run(NULL, program, NULL) == 0);
    return 0;
}
