/* SPDX-License-Identifier: MIT */
/* scope - tasks that end together: one fails, and the others are not waited for in vain. */
#include <string.h>

#include "example.h"

/* One page is not there; the others take their time. */
static int get(const char *page)
{
    if (strcmp(page, "lost") == 0)
        return -ENOENT;
    return weir_task_sleep(weir_within(60 * WEIR_S));
}

// [begin]
static int fetch(void *arg)
{
    int r = get(arg);

    printf("%s: %s\n", (const char *)arg, weir_strerror(r));
    return r;
}

static int fetch_all(void *arg)
{
    const char *pages[] = {"one", "lost", "two"}; // lost cancels all
    struct weir_scope scope;
    int r = 0;

    (void)arg;
    weir_scope_open(&scope, weir_within(30 * WEIR_S));
    for (int i = 0; i < 3 && r == 0; i++)
        r = weir_scope_spawn(&scope, fetch, (void *)pages[i]);
    if (r < 0)
        weir_scope_cancel(&scope);
    int first = weir_scope_close(&scope); // all have ended here
    return r < 0 ? r : first;
}
// [end]

int main(void)
{
    printf("all: %s\n", weir_strerror(weir_run(NULL, fetch_all, NULL)));
    return 0;
}
