/* SPDX-License-Identifier: MIT */
/* An inbox is a stack of ops that any thread may push on, and a descriptor that is
 * readable while it is not empty.  Only the push that finds it empty writes the
 * descriptor, so that a thousand wake-ups in a row cost one system call. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/container.h"
#include "base/cpu.h"
#include "base/testpoint.h"
#include "core/op.h"

/* Locking key: (a) atomic  (c) constant */
struct weir_inbox {
    waiter *newest;      /* (a) linked by next, newest first                        */
    uint32_t signalling; /* (a) threads that may be about to write the descriptor   */
    int fd;              /* (c) an eventfd                                          */
};

static void signal_fd(int fd)
{
    ssize_t written = write(fd, &(uint64_t){1}, sizeof(uint64_t));

    (void)written; /* it can only fail by being full, and then it is readable */
}

/* Push on an empty inbox and tell the loop.  Announced before the push: once that is
 * done, another thread may drain this op and close the inbox, and our write must not
 * hit a descriptor that has become somebody else's. */
static bool push_first(struct weir_inbox *inbox, waiter *w)
{
    waiter *empty = NULL;

    w->next = NULL;
    atomic_add(&inbox->signalling, 1);
    bool pushed = atomic_cas(&inbox->newest, &empty, w);
    if (pushed) {
        TESTPOINT("inbox: pushed, not signalled");
        signal_fd(inbox->fd);
    }
    atomic_add(&inbox->signalling, (uint32_t)-1); /* our last access to the inbox */
    return pushed;
}

/* Push on an inbox with something in it: whoever pushed that tells the loop. */
static bool push_another(struct weir_inbox *inbox, waiter *newest, waiter *w)
{
    w->next = newest;
    return atomic_cas(&inbox->newest, &newest, w);
}

void inbox_post(struct weir_inbox *inbox, struct weir_op *op)
{
    waiter *w = &op->waiter_;
    bool pushed;

    do {
        waiter *newest = atomic_peek(&inbox->newest);

        pushed = newest ? push_another(inbox, newest, w) : push_first(inbox, w);
    } while (!pushed);
}

static waiter *reversed(waiter *newest)
{
    waiter *oldest = NULL;

    while (newest) {
        waiter *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

int weir_inbox_open(struct weir_inbox **ret_inbox)
{
    struct weir_inbox *inbox = mem_alloc(sizeof *inbox);

    if (inbox == NULL)
        return WEIR_ENOMEM;
    inbox->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (inbox->fd < 0) {
        int r = -errno;

        mem_free(inbox);
        return r;
    }
    *ret_inbox = inbox;
    return 0;
}

int weir_inbox_fd(const struct weir_inbox *inbox)
{
    return inbox->fd;
}

/* Does not touch the inbox after the first callback, which may be the one to close it. */
static int call_all(struct weir_inbox *inbox)
{
    uint64_t told;
    int count = 0;

    /* First the descriptor, then the stack: the other way round, what is pushed in
     * between would stay behind an unreadable descriptor. */
    ssize_t taken = read(inbox->fd, &told, sizeof told);
    (void)taken; /* nothing there: then drain was called for another reason */

    waiter *w = reversed(atomic_swap(&inbox->newest, NULL));
    while (w) {
        waiter *next = w->next;

        op_call(container_of(w, struct weir_op, waiter_));
        w = next;
        count++;
    }
    return count;
}

int weir_inbox_drain(struct weir_inbox *inbox)
{
    return op_is_calling() ? WEIR_ECONTEXT : call_all(inbox);
}

void weir_inbox_close(struct weir_inbox *inbox)
{
    if (inbox == NULL)
        return;
    call_all(inbox);
    while (atomic_get(&inbox->signalling) != 0)
        cpu_yield();
    close(inbox->fd);
    mem_free(inbox);
}
