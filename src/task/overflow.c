/* SPDX-License-Identifier: MIT */
#include "task/overflow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "task/sched.h"

enum { ALTERNATE_BYTES = 64 * 1024 };

static struct {
    lock lock;
    int users;                  /* under lock */
    struct sigaction segv, bus; /* under lock: what was there before */
} caught;

/* Only what may be called in a signal handler: no stdio but snprintf into our own
 * buffer, which takes no lock for %s and %zu. */
static void say(const struct body *b)
{
    char text[160];
    int n =
        snprintf(text, sizeof text,
                 "weir: task '%s' overflowed its stack of %zu bytes (stack_bytes sets the size)\n",
                 b->name, body_stack(b)->context.bytes);
    ssize_t written = write(STDERR_FILENO, text, n > 0 ? (size_t)n : 0);

    (void)written;
}

static void on_fault(int signo, siginfo_t *info, void *ucontext)
{
    struct worker *w = worker_current;
    task *t = w ? w->current : NULL;

    (void)ucontext;
    if (t && t->body && stack_guard_hit(body_stack(t->body), info->si_addr))
        say(t->body);

    /* Whoever handled it before us, or the default, gets it when the instruction faults
     * again. */
    sigaction(signo, signo == SIGSEGV ? &caught.segv : &caught.bus, NULL);
}

void overflow_catch(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    lock_take(&caught.lock);
    if (caught.users++ == 0) {
        sigaction(SIGSEGV, &action, &caught.segv);
        sigaction(SIGBUS, &action, &caught.bus);
    }
    lock_drop(&caught.lock);
}

void overflow_release(void)
{
    lock_take(&caught.lock);
    if (--caught.users == 0) {
        sigaction(SIGSEGV, &caught.segv, NULL);
        sigaction(SIGBUS, &caught.bus, NULL);
    }
    lock_drop(&caught.lock);
}

void *overflow_stack(void)
{
    stack_t now;

    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
        return NULL; /* the program has given it one */
    void *memory = mem_alloc(ALTERNATE_BYTES);
    stack_t mine = {.ss_sp = memory, .ss_size = ALTERNATE_BYTES};
    if (memory && sigaltstack(&mine, NULL) < 0) {
        mem_free(memory);
        memory = NULL;
    }
    return memory;
}

void overflow_stack_free(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    if (stack == NULL)
        return;
    sigaltstack(&none, NULL);
    mem_free(stack);
}
