/* SPDX-License-Identifier: MIT */
/* Who waits for which descriptor, and how that ends; see poll.h. */
#include "task/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <weir/error.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/testpoint.h"
#include "core/park.h"

/* On the stack of the task that waits.  (l) until it is over, then whoever ended it. */
struct fd_wait {
    struct fd_wait *next;
    uint32_t want; /* events                                       */
    bool over;     /* somebody has taken it out, and will say so   */
    int got;       /* events, or an error, once it is over         */
    sleeper sleeper;
};

struct fd_slot {
    struct fd_wait *waits; /* newest first                               */
    bool known;            /* to epoll, unless closed behind our back    */
};

static const uint32_t ALWAYS = EPOLLERR | EPOLLHUP; /* cannot be masked */

/* How many are being closed.  Descriptors that share a place hold each other's waits up
 * for the length of a system call. */
static uint32_t *closing_of(int fd)
{
    static uint32_t closing[64]; /* atomic */

    return &closing[(uint32_t)fd % 64];
}

/* ---- the table --------------------------------------------------------------- */

/* A number that is no descriptor's is refused here, before it makes a table for itself. */
static int make_room(struct poller *p, int fd)
{
    size_t count = p->slot_count ? (size_t)p->slot_count : 64;

    if (fd < p->slot_count)
        return 0;
    if (fcntl(fd, F_GETFD) < 0)
        return -errno;
    while (count <= (size_t)fd)
        count *= 2;
    struct fd_slot *slots = mem_alloc(count * sizeof *slots), *before;
    if (slots == NULL)
        return WEIR_ENOMEM;

    lock_take(&p->lock);
    before = p->slots;
    if (before)
        memcpy(slots, before, (size_t)p->slot_count * sizeof *slots);
    p->slots = slots;
    p->slot_count = (int)count;
    lock_drop(&p->lock);
    mem_free(before);
    return 0;
}

static uint32_t all_wanted(const struct fd_slot *slot)
{
    uint32_t want = 0;

    for (const struct fd_wait *wait = slot->waits; wait; wait = wait->next)
        want |= wait->want;
    return want;
}

/* Take out those waits, but for `spared`, that the events end, oldest first.  What they
 * get is `error`, or 0 for the events: whatever they asked for if there is an error or a
 * hang-up, which their next call will report. */
static struct fd_wait *take_waits(struct poller *p, int fd, uint32_t events, int error,
                                  const struct fd_wait *spared) REQUIRES(p->lock)
{
    struct fd_wait **link = &p->slots[fd].waits, *wait, *taken = NULL;

    while ((wait = *link)) {
        if (wait == spared || !(events & (wait->want | ALWAYS))) {
            link = &wait->next;
            continue;
        }
        *link = wait->next;
        wait->got = error ? error : (int)(events & ALWAYS ? wait->want : events & wait->want);
        wait->over = true;
        wait->next = taken;
        taken = wait;
    }
    return taken;
}

/* Tell their tasks.  Call with no lock held. */
static void deliver(struct fd_wait *wait)
{
    while (wait) {
        struct fd_wait *next = wait->next;

        sleeper_done(&wait->sleeper); /* our last access to it */
        wait = next;
    }
}

static void end_all_but(struct poller *p, int fd, const struct fd_wait *spared)
{
    lock_take(&p->lock);
    struct fd_wait *taken = take_waits(p, fd, UINT32_MAX, -EBADF, spared);
    lock_drop(&p->lock);
    deliver(taken);
}

static int control(struct poller *p, int op, int fd, uint32_t want)
{
    struct epoll_event event = {.events = want | EPOLLONESHOT, .data.u64 = (uint64_t)fd};

    return epoll_ctl(p->epoll_fd, op, fd, &event) < 0 ? -errno : 0;
}

void poller_fd_event(struct poller *p, int fd, uint32_t events)
{
    lock_take(&p->lock);
    struct fd_wait *taken = take_waits(p, fd, events, 0, NULL);
    uint32_t want = all_wanted(&p->slots[fd]);
    atomic_poke(&p->arming, want ? fd : -1);
    lock_drop(&p->lock);

    deliver(taken);
    if (want && control(p, EPOLL_CTL_MOD, fd, want) < 0)
        end_all_but(p, fd, NULL); /* closed by somebody who did not say so */
    atomic_put(&p->arming, -1);
}

/* ---- closing ----------------------------------------------------------------- */

/* epoll is told, too: it would watch the file for as long as a copy of the descriptor
 * exists, and report it under a number that has come to mean another.  So a worker that
 * was arming it already has to be done with that first. */
static void end_waits(struct poller *p, int fd)
{
    struct fd_wait *taken = NULL;
    bool known = false;

    lock_take(&p->lock);
    if (fd < p->slot_count) {
        taken = take_waits(p, fd, UINT32_MAX, -EBADF, NULL);
        known = p->slots[fd].known;
        p->slots[fd].known = false;
    }
    lock_drop(&p->lock);
    while (atomic_get(&p->arming) == fd)
        cpu_yield();
    if (known)
        control(p, EPOLL_CTL_DEL, fd, 0);
    TESTPOINT("poll: waits taken, not told");
    deliver(taken);
}

int poller_fd_close(int fd)
{
    if (fd < 0)
        return -EBADF;
    atomic_add(closing_of(fd), 1);
    for (struct poller *p = poller_next(NULL); p; p = poller_next(p))
        end_waits(p, fd);
    TESTPOINT("poll: waits ended, not closed");
    int r = close(fd) < 0 && errno != EINTR ? -errno : 0; /* EINTR: it is closed */
    atomic_add(closing_of(fd), (uint32_t)-1);
    return r;
}

/* ---- waiting ----------------------------------------------------------------- */

/* Returns all events that are now waited for; and whether epoll knows the descriptor. */
static uint32_t begin_wait(struct poller *p, int fd, struct fd_wait *wait, bool *ret_known)
{
    lock_take(&p->lock);
    struct fd_slot *slot = &p->slots[fd];
    wait->next = slot->waits;
    slot->waits = wait;
    *ret_known = slot->known;
    slot->known = true;
    uint32_t want = all_wanted(slot);
    atomic_poke(&p->arming, fd);
    lock_drop(&p->lock);
    return want;
}

/* False if it is over already. */
static bool withdraw(struct poller *p, int fd, const struct fd_wait *wait)
{
    struct fd_wait **link;

    lock_take(&p->lock);
    bool mine = !wait->over;
    for (link = &p->slots[fd].waits; mine && *link != wait; link = &(*link)->next)
        ;
    if (mine)
        *link = wait->next;
    lock_drop(&p->lock);
    return mine;
}

static int arm(struct poller *p, int fd, uint32_t want, bool known, const struct fd_wait *mine)
{
    int r = control(p, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, want);

    if (r == -EEXIST)
        return control(p, EPOLL_CTL_MOD, fd, want);
    if (r != -ENOENT)
        return r;
    /* Closed and opened again behind our back: nobody will ever hear of the old one. */
    end_all_but(p, fd, mine);
    return control(p, EPOLL_CTL_ADD, fd, mine->want);
}

/* WEIR_EAGAIN: the descriptor is about to be closed, perhaps. */
static int wait_once(struct poller *p, int fd, struct fd_wait *wait, struct weir_deadline deadline)
{
    bool known;
    uint32_t want = begin_wait(p, fd, wait, &known);
    int r = atomic_get(closing_of(fd)) ? WEIR_EAGAIN : arm(p, fd, want, known, wait);

    atomic_put(&p->arming, -1);
    if (r == 0) {
        p->waiting++;
        r = park(&wait->sleeper, deadline);
        p->waiting--;
        if (r == 0)
            return wait->got;
        wait->sleeper.flags |= SLEEP_AGAIN;
    }
    if (withdraw(p, fd, wait))
        return r;
    wait->sleeper.flags |= SLEEP_FIRM;
    park(&wait->sleeper, WEIR_FOREVER);
    return wait->got;
}

int poller_fd_wait(struct poller *p, int fd, uint32_t events, struct weir_deadline deadline)
{
    int r = make_room(p, fd);

    while (r == 0) {
        struct fd_wait wait = {.want = events, .sleeper = sleeper_self()};

        wait.sleeper.flags = SLEEP_FD;
        r = wait_once(p, fd, &wait, deadline);
        if (r == WEIR_EAGAIN) {
            park_give_way(); /* rather than wait: it is as short as a close */
            r = park_refusal(deadline);
        }
    }
    return r;
}
