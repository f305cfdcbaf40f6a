/* SPDX-License-Identifier: MIT */
/* loop - weir inside a plain epoll loop: an inbox for callbacks, a timerfd for deadlines. */
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "example.h"

static struct weir_sem slots = WEIR_SEM_INIT(1);
static atomic_bool hasty_left;

static void watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    MUST(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) == 0);
}

// [begin]
static struct weir_op patient = WEIR_OP_INIT, hasty = WEIR_OP_INIT;
static int waiting = 2;

// Called on the loop's own thread, whoever released.
static void have_slot(struct weir_op *op, int result)
{
    const char *name = op == &patient ? "patient" : "hasty";

    if (result == 0)
        printf("%s: has the slot\n", name);
    waiting--;
}

static void too_late(int timer)
{
    uint64_t times;

    if (read(timer, &times, sizeof times) < 0)
        return;
    if (weir_op_cancel(&hasty) == 1) {
        puts("hasty: gives up"); // no callback will come
        hasty_left = true;
        waiting--;
    }
}

static void run(int loop, struct weir_inbox *inbox, int timer)
{
    struct epoll_event event;

    watch(loop, weir_inbox_fd(inbox));
    watch(loop, timer);
    while (waiting > 0 && epoll_wait(loop, &event, 1, -1) == 1)
        if (event.data.fd == timer)
            too_late(timer);
        else
            weir_inbox_drain(inbox); // calls have_slot
}
// [end]

/* Holds the slot until the hasty one has given up. */
static void *holder(void *arg)
{
    (void)arg;
    UNTIL(hasty_left);
    weir_sem_release(&slots, 1);
    return NULL;
}

int main(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 10 * WEIR_MS};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int loop = epoll_create1(EPOLL_CLOEXEC);
    struct weir_inbox *inbox;
    pthread_t thread;

    MUST(weir_inbox_open(&inbox) == 0);
    MUST(weir_sem_try_acquire(&slots, 1) == 0);
    patient.inbox = hasty.inbox = inbox;
    MUST(weir_sem_acquire_async(&slots, 1, &patient, have_slot) == 0);
    MUST(weir_sem_acquire_async(&slots, 1, &hasty, have_slot) == 0);
    MUST(timerfd_settime(timer, 0, &soon, NULL) == 0);
    thread = start(holder, NULL);
    run(loop, inbox, timer);

    finish(thread);
    weir_inbox_close(inbox);
    close(loop);
    close(timer);
    return 0;
}
