/* SPDX-License-Identifier: MIT */
/* What the core asks of the system, each call one step: sleeping on a word, the clock, the
 * CPU, event descriptors, memory.  No call orders anything for the race detector: the core
 * must not lean on what the kernel happens to order. */
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/futex.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* model_read and its like */

#define PC ((uintptr_t)__builtin_return_address(0))

/* ---- sleeping ------------------------------------------------------------------------------ */

/* Both are writes as far as histories go: the order of sleepers and wakers matters. */
int futex_wait(const uint32_t *word, uint32_t expected, int64_t at_ns)
{
    step_begin(FUTEX_WAIT, word, PC);
    memory_touch(word, sizeof *word, ATOMIC_READ, PC);
    history_write(sched_running(), word);
    step_result(FUTEX_WAIT, *word, expected);
    if (*word != expected)
        return 0;
    if (flow_sleep(word, at_ns)) {
        step_note(FUTEX_WOKEN, word, PC);
        return 0;
    }
    history_write(sched_running(), word);
    flow_now_ns();
    step_note(FUTEX_TIMED_OUT, word, PC);
    return -ETIMEDOUT;
}

/* An address, and nothing is read there. */
void futex_wake(const uint32_t *word, int count)
{
    if (sched_running() < 0)
        return; /* in setup and check nobody sleeps */
    step_begin(FUTEX_WAKE, word, PC);
    history_write(sched_running(), word);
    step_result(FUTEX_WAKE, 0, (uint64_t)flow_wake(word, count));
    flow_wrote();
}

/* ---- the clock and the CPU ------------------------------------------------------------------ */

int64_t clock_now_ns(void)
{
    if (sched_running() < 0)
        return 1;
    step_begin(CLOCK, NULL, PC);

    int64_t now_ns = flow_now_ns();
    step_result(CLOCK, 0, (uint64_t)now_ns);
    return now_ns;
}

int clock_has_passed(int64_t at_ns)
{
    if (at_ns <= 0 || at_ns == INT64_MAX)
        return at_ns <= 0;
    if (sched_running() >= 0)
        flow_asks_about(at_ns);
    return at_ns <= clock_now_ns();
}

int clock_long_passed(int64_t at_ns)
{
    return clock_has_passed(at_ns);
}

void cpu_pause(void)
{
    if (sched_running() >= 0)
        flow_pause();
}

void cpu_yield(void)
{
    cpu_pause();
}

uint16_t cpu_here(void)
{
    return (uint16_t)(sched_running() + 1);
}

uint32_t cpu_count(void)
{
    uint32_t cpus = flow_scenario()->cpus;

    return cpus ? cpus : 1;
}

/* ---- descriptors: only eventfds ---------------------------------------------------------------- */

enum { FDS_MAX = 4, FIRST_FD = 100 };

static struct descriptor {
    uint64_t count;
    bool open;
} fds[FDS_MAX];

static struct descriptor *use_fd(int fd, enum step_kind kind, uintptr_t pc)
{
    struct descriptor *d = &fds[fd - FIRST_FD];

    if (sched_running() >= 0) {
        step_begin(kind, d, pc);
        history_write(sched_running(), d);
        step_result(kind, 0, d->count);
        flow_wrote();
    }
    if (!d->open)
        model_fail("%c uses a descriptor that is closed", pick_letter(sched_running()));
    return d;
}

int model_eventfd(unsigned count, int flags)
{
    (void)flags;
    for (int i = 0; i < FDS_MAX; i++) {
        if (!fds[i].open) {
            fds[i] = (struct descriptor){.count = count, .open = true};
            return FIRST_FD + i;
        }
    }
    errno = EMFILE;
    return -1;
}

ssize_t model_read(int fd, void *ret_data, size_t bytes)
{
    struct descriptor *d = use_fd(fd, FD_READ, PC);

    if (d->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(ret_data, &d->count, bytes);
    d->count = 0;
    return (ssize_t)bytes;
}

ssize_t model_write(int fd, const void *data, size_t bytes)
{
    uint64_t more;

    memcpy(&more, data, sizeof more);
    use_fd(fd, FD_WRITE, PC)->count += more;
    return (ssize_t)bytes;
}

int model_close(int fd)
{
    use_fd(fd, FD_CLOSE, PC)->open = false;
    return 0;
}

void model_wait_readable(int fd)
{
    struct descriptor *d = &fds[fd - FIRST_FD];

    flow_poll(&d->count);
    use_fd(fd, FD_POLL, PC);
}

/* ---- memory: never used twice in one execution ------------------------------------------------------ */

enum { HEAP_BYTES = 4096, BLOCKS_MAX = 16 };

static _Alignas(64) char heap[HEAP_BYTES];
static size_t heap_used;
static struct {
    void *at;
    size_t bytes;
} blocks[BLOCKS_MAX];
static int blocks_used;

void *mem_alloc(size_t bytes)
{
    return mem_alloc_aligned(64, bytes);
}

void *mem_alloc_aligned(size_t alignment, size_t bytes)
{
    size_t begin = (heap_used + alignment - 1) & ~(alignment - 1);

    if (begin + bytes > HEAP_BYTES || blocks_used == BLOCKS_MAX)
        return NULL;
    heap_used = begin + bytes;
    blocks[blocks_used].at = heap + begin;
    blocks[blocks_used++].bytes = bytes;
    return memset(heap + begin, 0, bytes);
}

void mem_free(void *p)
{
    for (int i = 0; i < blocks_used && sched_running() >= 0; i++) {
        if (blocks[i].at == p)
            model_gone(p, blocks[i].bytes);
    }
}

void model_gone(const void *p, size_t bytes)
{
    step_begin(GONE, p, PC);
    history_write(sched_running(), p);
    memory_gone(p, bytes, PC);
    step_result(GONE, 0, bytes);
}

const struct named kernel_names[] = {
    {fds, sizeof fds, "descriptor", NULL},
    {heap, sizeof heap, "heap", NULL},
    {0},
};

/* ---- the end ------------------------------------------------------------------------------------------ */

_Noreturn void bug(const char *what)
{
    model_fail("%.*s", (int)strcspn(what, "\n"), what);
}

void kernel_forget(void)
{
    memset(fds, 0, sizeof fds);
    heap_used = 0;
    blocks_used = 0;
}
