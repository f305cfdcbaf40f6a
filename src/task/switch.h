/* SPDX-License-Identifier: MIT */
/* switch - from one stack to another, on the same thread.
 *
 * A context is a stack that is not running: its stack pointer, under which the saved
 * registers lie.  Sanitizers and valgrind watch stacks, so they are told of each
 * switch; in a normal build none of that exists. */
#ifndef WEIR_TASK_SWITCH_H
#define WEIR_TASK_SWITCH_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define SWITCH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define SWITCH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWITCH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define SWITCH_TSAN 1
#endif
#endif

/* Only the owner thread touches a context. */
struct context {
    void *sp;           /* while it is not running                              */
    const char *bottom; /* lowest address of its stack                          */
    size_t bytes;       /* and how much there is                                */
    void *fake_stack;   /* ASan's, while it is not running                      */
    void *fiber;        /* TSan's name for it                                   */
};

/* The context of the thread that calls. */
void context_of_thread(struct context *c);

/* Make fn(arg), which must not return, what runs on c's stack from `top` down when it is
 * next switched to.  c's bottom, bytes and fiber are set already. */
void context_prepare(struct context *c, void *top, void (*fn)(void *arg), void *arg);

/* First call on a new stack. */
void context_entered(void);

void context_switch(struct context *from, struct context *to);

/* The same to a stack on which nothing runs yet, and without preparing it: fn(arg), which
 * must not return, from `top` down. */
void context_enter(struct context *from, struct context *to, void *top, void (*fn)(void *arg),
                   void *arg);

/* The same for good: the stack that we are on is not to be switched to again.  `back` is a
 * guess, for the processor's sake: that it was entered from `to`, and not left since. */
_Noreturn void context_leave(struct context *to, bool back);

/* TSan's name for a new stack; NULL in other builds.  Kept with the stack and not with
 * the task: making one takes 8 us. */
void *context_fiber_create(void);
void context_fiber_destroy(void *fiber);

#endif
