/* SPDX-License-Identifier: MIT */
/* A program of somebody else: it knows only what was installed. */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

int main(void)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);

    if (strcmp(weir_version(), WEIR_VERSION) != 0)
        return 1;
    if (weir_sem_acquire(&sem, 2, WEIR_FOREVER) != 0 || weir_sem_release(&sem, 2) != 0)
        return 2;
    printf("weir %s works\n", weir_version());
    return 0;
}
