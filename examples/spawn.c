/* SPDX-License-Identifier: MIT */
/* spawn - start tasks, go on, and take their results. */
#include "example.h"

// [begin]
static int spell(void *arg)
{
    const char *word = arg;
    int letters = 0;

    while (word[letters]) {
        printf("%c\n", word[letters++]);
        weir_task_yield(); // or wait for anything: others run then
    }
    return letters; // a negative result would be a failure
}

static int program(void *arg)
{
    struct weir_task ab, xyz;
    int r, two, three;

    (void)arg;
    r = weir_task_spawn(spell, "ab", &ab); // begins when we wait
    if (r < 0)
        return r;
    r = weir_task_spawn(spell, "xyz", &xyz);
    if (r < 0) {
        weir_task_detach(ab); // ends by itself
        return r;
    }
    puts("spawned");
    r = weir_task_join(ab, WEIR_FOREVER, &two);
    if (r == 0)
        r = weir_task_join(xyz, WEIR_FOREVER, &three);
    if (r == 0)
        printf("%d letters\n", two + three);
    return r;
}

int main(void)
{
    return weir_run(NULL, program, NULL) < 0;
}
// [end]
