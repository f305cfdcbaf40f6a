/* SPDX-License-Identifier: MIT */
/* overflow - say which task ran over the end of its stack before the program dies. */
#ifndef WEIR_TASK_OVERFLOW_H
#define WEIR_TASK_OVERFLOW_H

/* Set the handlers for SIGSEGV and SIGBUS; the last of as many releases puts back what
 * was there. */
void overflow_catch(void);
void overflow_release(void);

/* Give the calling thread a stack to handle signals on, since its own may be used up;
 * NULL when that cannot be had, or it has one. */
void *overflow_stack(void);
void overflow_stack_free(void *stack);

#endif
