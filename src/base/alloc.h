/* SPDX-License-Identifier: MIT */
/* The one door to the heap.  Primitives never come here: they live in the caller's
 * memory.  Tests make the Nth allocation fail through the hook. */
#ifndef WEIR_BASE_ALLOC_H
#define WEIR_BASE_ALLOC_H

#include <stddef.h>

void *mem_alloc(size_t bytes);                           /* zeroed; NULL when there is none */
void *mem_alloc_aligned(size_t alignment, size_t bytes); /* the same, on a boundary */
void mem_free(void *p);                                  /* NULL is allowed */

#ifdef WEIR_TESTPOINTS
extern void *(*alloc_hook)(size_t bytes); /* instead of the heap, unless NULL */
#endif

#endif
