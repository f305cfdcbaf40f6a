/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#ifdef WEIR_TESTPOINTS
void *(*alloc_hook)(size_t bytes);
#endif

void *mem_alloc(size_t bytes)
{
#ifdef WEIR_TESTPOINTS
    if (alloc_hook)
        return alloc_hook(bytes);
#endif
    return calloc(1, bytes);
}

void *mem_alloc_aligned(size_t alignment, size_t bytes)
{
    void *p = NULL;

#ifdef WEIR_TESTPOINTS
    if (alloc_hook) { /* it decides whether there is memory, not where */
        p = alloc_hook(1);
        if (p == NULL)
            return NULL;
        free(p);
    }
#endif
    if (posix_memalign(&p, alignment, bytes) != 0)
        return NULL;
    return memset(p, 0, bytes);
}

void mem_free(void *p)
{
    free(p);
}
