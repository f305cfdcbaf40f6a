/* SPDX-License-Identifier: MIT */
/* The allocation that fails. */
#include "harness/test.h"

#include <stdlib.h>

#include "base/alloc.h"

/* How many allocations are left before the one that fails; below 1, none does. */
static int before_failure;

static void *allocate_or_fail(size_t bytes)
{
    if (__atomic_load_n(&before_failure, __ATOMIC_RELAXED) > 0 &&
        __atomic_sub_fetch(&before_failure, 1, __ATOMIC_RELAXED) == 0)
        return NULL;
    return calloc(1, bytes);
}

/* Like the testpoint hook, it stands before any thread starts. */
__attribute__((constructor)) static void install(void)
{
    alloc_hook = allocate_or_fail;
}

void test_fail_allocation(int n)
{
    __atomic_store_n(&before_failure, n, __ATOMIC_RELAXED);
}
