/* SPDX-License-Identifier: MIT */
#include "cli/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/store.h>

/* One write, so that the sentences of many processes do not mix. */
static void print(const char *format, va_list args)
{
    char line[1024] = "weir: ";
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): whoever calls has begun it */
    int length = 6 + vsnprintf(line + 6, sizeof line - 7, format, args);

    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    for (int i = 0; i < length; i++) /* names may have any bytes, and a sentence is a line */
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written; /* whom else to tell? */
}

void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(format, args);
    va_end(args);
}

void fail(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(format, args);
    va_end(args);
    exit(status);
}

void fail_store(int r, const char *name)
{
    const char *why = weir_store_why();
    int status = r == WEIR_EUNREACHABLE ? EXIT_UNREACHABLE : EXIT_WEIR;

    if (r == WEIR_ENOTHELD)
        fail(EXIT_WEIR, "that lease of \"%s\" is not held: released, expired, or never there",
             name);
    fail(status, "%s", why[0] ? why : weir_strerror(r));
}
