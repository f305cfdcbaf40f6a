/* SPDX-License-Identifier: MIT */
#include "base/bug.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void bug(const char *what)
{
    /* Not stdio: its locks may be held by the very thread that got here. */
    ssize_t written = write(STDERR_FILENO, what, strlen(what));

    (void)written; /* nobody is left to be told */
    abort();
}
