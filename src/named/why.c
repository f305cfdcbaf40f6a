/* SPDX-License-Identifier: MIT */
#include "named/why.h"

#include <stdarg.h>
#include <stdio.h>

#include <weir/store.h>

static __thread char sentence[384];

int why(int r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was begun just now */
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return r;
}

void why_clear(void)
{
    sentence[0] = '\0';
}

const char *weir_store_why(void)
{
    return sentence;
}
