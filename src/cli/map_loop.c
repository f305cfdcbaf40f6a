/* SPDX-License-Identifier: MIT */
/* One epoll: what jobs write, their ends, input, leases, signals and time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/map.h"
#include "cli/map_bar.h"
#include "cli/map_output.h"
#include "cli/map_permit.h"
#include "cli/map_spawn.h"
#include "cli/say.h"

/* What else the epoll says, smaller than any map_event. */
enum { ON_SIGNAL, ON_INPUT, ON_PERMIT, ON_LOST };
_Static_assert(SLOTS_MAX == 1 << 15, "map_event has 15 bits for a slot");

static struct map *map; /* for those who write, and must hear signals meanwhile */
static int signal_fd;
static sigset_t heard;

/* What was heard, and is obeyed when the loop comes round. */
enum { INTERRUPTS_MOST = 8 };
static int interrupted_by[INTERRUPTS_MOST], interrupts;
static bool child_ended;

/* ---- signals ----------------------------------------------------------------------------- */

/* Signals are blocked and read, not handled: nothing is ever interrupted, and a job has no
 * handlers to put back.  Those that are ignored, under nohup for instance, stay so. */
void map_block_signals(sigset_t *ret_job_mask)
{
    static const int wanted[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
    sigset_t blocked;

    sigemptyset(&heard);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct sigaction now;

        if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&heard, wanted[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take away how jobs ended */
    sigaddset(&heard, SIGCHLD);
    blocked = heard;
    sigaddset(&blocked, SIGPIPE); /* a broken pipe is what write says */
    sigprocmask(SIG_BLOCK, &blocked, ret_job_mask);
}

static void on_interrupt(struct map *m, int signo)
{
    bool first = m->signal == 0;

    m->signal = signo;
    bar_hide();
    if (!first) {
        map_halt(m, m->stage == MAP_STOPPING ? MAP_KILLING : MAP_STOPPING);
        return;
    }
    map_halt(m, MAP_ENDING);
    if (m->running && !m->quiet)
        say("%u job%s still running; Ctrl-C again stops %s", m->running,
            m->running == 1 ? " is" : "s are", m->running == 1 ? "it" : "them");
}

static void on_terminate(struct map *m, int signo)
{
    m->signal = signo;
    map_halt(m, m->stage == MAP_STOPPING ? MAP_KILLING : MAP_STOPPING);
}

static void signal_jobs(const struct map *m, int signo)
{
    for (unsigned i = 0; i < m->slot_count; i++)
        if (m->slots[i])
            spawn_signal(m->slots[i]->pid, signo);
}

/* Ctrl-Z: the jobs are in groups of their own, and have to be told. */
static void on_stop(const struct map *m)
{
    bar_hide();
    signal_jobs(m, SIGSTOP);
    raise(SIGSTOP);
    signal_jobs(m, SIGCONT);
}

/* What changes no job can be done at any time. */
static void hear(struct map *m, int signo)
{
    switch (signo) {
    case SIGCHLD:
        child_ended = true;
        break;
    case SIGTSTP:
        on_stop(m);
        break;
    case SIGUSR1:
        m->limit += m->limit < SLOTS_MAX;
        break;
    case SIGUSR2:
        m->limit -= m->limit > 1;
        break;
    default:
        if (interrupts < INTERRUPTS_MOST)
            interrupted_by[interrupts++] = signo;
    }
}

static void read_signals(struct map *m)
{
    struct signalfd_siginfo info[8];
    ssize_t got = read(signal_fd, info, sizeof info);

    for (ssize_t i = 0; i < got / (ssize_t)sizeof *info; i++)
        hear(m, (int)info[i].ssi_signo);
}

static void obey_signals(struct map *m)
{
    for (int i = 0; i < interrupts; i++) {
        if (interrupted_by[i] == SIGINT)
            on_interrupt(m, SIGINT);
        else
            on_terminate(m, interrupted_by[i]);
    }
    interrupts = 0;
    if (child_ended) {
        child_ended = false;
        if (m->has_terminal)
            map_check_stopped(m);
        map_reap_jobs(m);
    }
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Would what was heard stop jobs?  The first Ctrl-C only waits for them. */
static bool is_urgent(const struct map *m)
{
    return interrupts > 1 || (interrupts == 1 && (interrupted_by[0] != SIGINT || m->signal));
}

/* In the middle of the end of a job nothing is done about others: what was heard is obeyed
 * when the loop comes round.  If nobody reads, and that cannot wait, writing is given up. */
bool map_until_writable(int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLOUT}, {.fd = signal_fd, .events = POLLIN}};

    for (;;) {
        poll(fds, 2, -1);
        if (fds[1].revents)
            read_signals(map);
        if (fds[0].revents)
            return true;
        if (is_urgent(map))
            return false;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void listen_to(const struct map *m, int fd, uint64_t what)
{
    struct epoll_event event = {EPOLLIN, {.u64 = what}};

    if (epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        fail(EXIT_WEIR, "cannot begin: %s", strerror(errno));
}

/* Asked for each time: it is readable most of the time, and only sometimes wanted.  True if
 * it was read instead, being a file, or what is read like one, such as /dev/null. */
static bool listen_to_input(struct map *m)
{
    static bool added;
    bool wanted = m->wants_input || (bar_is_open() && input_has_room(&m->input));
    struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.u64 = ON_INPUT}};

    if (m->input.ended || m->input_awaited || !wanted || m->stage > MAP_GOING)
        return false;
    if (!m->input.is_file) {
        int how = added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

        m->input_awaited = epoll_ctl(m->epoll_fd, how, STDIN_FILENO, &event) == 0;
        added = true;
    }
    if (m->input_awaited)
        return false;
    m->input.is_file = true;
    m->wants_input = false;
    input_read(&m->input);
    return true;
}

static void on_lost_leases(struct map *m)
{
    char id[WEIR_ID_LENGTH + 1];

    while (permit_next_lost(id))
        map_stop_lost(m, id);
}

/* A pipe that we have closed may be told of once more, when a new job is in its slot already:
 * a process that was started meanwhile has it open until its own exec is over, which is a
 * little later than vfork returns. */
static void on_job(struct map *m, const struct epoll_event *event)
{
    unsigned slot = event->data.u64 >> 1 & (SLOTS_MAX - 1);
    int stream = (int)(event->data.u64 & 1);
    struct job *job = slot < m->slot_count ? m->slots[slot] : NULL;

    if (job && event->data.u64 == map_event(job->start, slot, stream) && job->fd[stream] >= 0)
        map_read_job(m, job, stream, event->events & EPOLLIN);
}

static void on_event(struct map *m, const struct epoll_event *event)
{
    switch (event->data.u64) {
    case ON_SIGNAL:
        read_signals(m);
        break;
    case ON_INPUT:
        input_read(&m->input);
        m->wants_input = m->input_awaited = false;
        break;
    case ON_PERMIT:
        permit_heard(); /* the next start asks */
        break;
    case ON_LOST:
        on_lost_leases(m);
        break;
    default:
        on_job(m, event);
    }
}

/* ---- the loop ----------------------------------------------------------------------------------- */

static int64_t draw_bar(const struct map *m)
{
    uint64_t n = m->items_per_job, jobs_left = (m->input.left + n - 1) / n;
    struct bar_numbers numbers = {
        .done = m->done,
        .failed = m->failed,
        .running = m->running,
        .total = m->input.ended ? m->made - m->skipped + jobs_left : 0,
        .ending = m->stage > MAP_GOING,
    };

    return bar_draw(&numbers);
}

/* Where the output cannot go, there is nothing left to do. */
static void check_output(struct map *m)
{
    if (output_error())
        map_halt(m, MAP_STOPPING);
}

static int timeout_ms(int64_t at_ns)
{
    int64_t left_ns = at_ns - weir_now_ns();

    if (at_ns == INT64_MAX)
        return -1;
    if (left_ns <= 0)
        return 0;
    return left_ns > 1000 * WEIR_S ? 1000 * 1000 : (int)(left_ns / WEIR_MS) + 1;
}

static void wait_for_events(struct map *m, bool more)
{
    struct epoll_event events[64];
    int64_t next_ns = map_check_times(m), bar_ns = draw_bar(m);
    int timeout = more ? 0 : timeout_ms(bar_ns < next_ns ? bar_ns : next_ns);

    obey_signals(m); /* heard while something was written */
    if (map_is_over(m))
        return;
    int count = epoll_wait(m->epoll_fd, events, 64, timeout);
    for (int i = 0; i < count; i++)
        on_event(m, &events[i]);
    obey_signals(m);
}

void map_loop(struct map *m)
{
    map = m;
    m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    signal_fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    if (m->epoll_fd < 0 || signal_fd < 0)
        fail(EXIT_WEIR, "cannot begin: %s", strerror(errno));
    listen_to(m, signal_fd, ON_SIGNAL);
    if (m->has_permits) {
        listen_to(m, permit_fd(), ON_PERMIT);
        listen_to(m, permit_lost_fd(), ON_LOST);
    }
    while (!map_is_over(m)) {
        bool more = map_start_jobs(m);

        check_output(m);
        more |= listen_to_input(m);
        wait_for_events(m, more);
    }
    bar_hide();
}
