/* SPDX-License-Identifier: MIT */
#include "task/switch.h"

#include <pthread.h>
#include <stdint.h>

void switch_stacks(void **save_sp, void *to_sp);
void switch_begin(void **save_sp, void *top, void (*fn)(void *arg), void *arg);
extern const char switch_entry[];

/* ---- what the watchers are told --------------------------------------------- */

/* Inlined, come what may: a function that is entered on one stack and left on another
 * would confuse TSan, which counts both. */
#define HOOK static inline __attribute__((always_inline))

#ifdef SWITCH_ASAN
#include <sanitizer/common_interface_defs.h>

HOOK void before_switch(void **fake_stack, const struct context *to)
{
    __sanitizer_start_switch_fiber(fake_stack, to->bottom, to->bytes);
}

HOOK void after_switch(void *fake_stack)
{
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}
#else
HOOK void after_switch(void *fake_stack)
{
    (void)fake_stack;
}
#endif

#ifdef SWITCH_TSAN
#include <sanitizer/tsan_interface.h>

void __tsan_func_exit(void);

HOOK void before_switch(void **fake_stack, const struct context *to)
{
    (void)fake_stack;
    __tsan_switch_to_fiber(to->fiber, 0);
}

void *context_fiber_create(void)
{
    return __tsan_create_fiber(0);
}

void context_fiber_destroy(void *fiber)
{
    __tsan_destroy_fiber(fiber);
}
#else
void *context_fiber_create(void)
{
    return NULL;
}

void context_fiber_destroy(void *fiber)
{
    (void)fiber;
}
#endif

#if !defined(SWITCH_ASAN) && !defined(SWITCH_TSAN)
HOOK void before_switch(void **fake_stack, const struct context *to)
{
    (void)fake_stack;
    (void)to;
}
#endif

/* ---- switching -------------------------------------------------------------- */

void context_of_thread(struct context *c)
{
    *c = (struct context){0};
#ifdef SWITCH_ASAN
    pthread_attr_t attr;
    void *bottom;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &bottom, &c->bytes);
        pthread_attr_destroy(&attr);
        c->bottom = bottom;
    }
#endif
#ifdef SWITCH_TSAN
    c->fiber = __tsan_get_current_fiber();
#endif
}

void context_prepare(struct context *c, void *top, void (*fn)(void *arg), void *arg)
{
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15);

    c->fake_stack = NULL;
#if defined(__x86_64__)
    *--sp = 0; /* fn's return address; the stack is aligned as after a call */
    *--sp = (uintptr_t)switch_entry;
    *--sp = 0;              /* rbp */
    *--sp = 0;              /* rbx */
    *--sp = (uintptr_t)fn;  /* r12 */
    *--sp = (uintptr_t)arg; /* r13 */
    *--sp = 0;              /* r14 */
    *--sp = 0;              /* r15 */
#elif defined(__aarch64__)
    for (int i = 0; i < 20; i++)
        *--sp = 0;
    sp[0] = (uintptr_t)fn;            /* x19 */
    sp[1] = (uintptr_t)arg;           /* x20 */
    sp[11] = (uintptr_t)switch_entry; /* x30 */
#else
#error "weir tasks: write a switch_<arch>.S for this machine"
#endif
    c->sp = sp;
}

void context_entered(void)
{
    after_switch(NULL);
}

void context_switch(struct context *from, struct context *to)
{
    before_switch(&from->fake_stack, to);
    switch_stacks(&from->sp, to->sp);
    after_switch(from->fake_stack);
}

void context_enter(struct context *from, struct context *to, void *top, void (*fn)(void *arg),
                   void *arg)
{
    to->fake_stack = NULL;
    before_switch(&from->fake_stack, to);
    switch_begin(&from->sp, (void *)((uintptr_t)top & ~(uintptr_t)15), fn, arg);
    after_switch(from->fake_stack);
}

_Noreturn void context_leave(struct context *to, bool back)
{
#ifdef SWITCH_TSAN
    /* Neither this function nor task_main will return, and TSan keeps the stack's name for
     * the next task on it: it would think that they are nested ever deeper. */
    __tsan_func_exit();
    __tsan_func_exit();
#endif
    before_switch(NULL, to); /* NULL: ASan frees what it kept for this stack */
#if defined(__x86_64__)
    if (back)
        __asm__ volatile("movq %0, %%rsp\n\tjmp switch_back" : : "r"(to->sp) : "memory");
    else
        __asm__ volatile("movq %0, %%rsp\n\tjmp switch_resume" : : "r"(to->sp) : "memory");
#elif defined(__aarch64__)
    if (back)
        __asm__ volatile("mov sp, %0\n\tb switch_back" : : "r"(to->sp) : "memory");
    else
        __asm__ volatile("mov sp, %0\n\tb switch_resume" : : "r"(to->sp) : "memory");
#endif
    __builtin_unreachable();
}
