/* SPDX-License-Identifier: MIT */
/* errors - a failed call says why, and has changed nothing. */
#include "example.h"

int main(void)
{
    int r;

    // [begin]
    struct weir_sem slots = WEIR_SEM_INIT(2);

    r = weir_sem_release(&slots, 1); // one that nobody had taken
    if (r < 0)
        fprintf(stderr, "release: %s\n", weir_strerror(r));
    // [end]
    MUST(r == WEIR_EOVERFLOW && weir_sem_available(&slots) == 2);
    puts("refused; still 2 of 2 free");
    return 0;
}
