/* SPDX-License-Identifier: MIT */
/* Jobs, from what they write to their end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"
#include "cli/map.h"
#include "cli/map_bar.h"
#include "cli/map_log.h"
#include "cli/map_output.h"
#include "cli/map_permit.h"
#include "cli/map_spawn.h"
#include "cli/say.h"

enum {
    BACK_OFF_MS = 100,  /* before the second try; doubled each time */
    BACK_OFF_TIMES = 8, /* but not more often                       */
};

/* ---- records ------------------------------------------------------------------------------ */

void map_drop_job(struct map *m, struct job *job)
{
    job->next = m->spare;
    m->spare = job;
}

const struct buffer *map_printed(const struct map *m, const struct job *job)
{
    static struct buffer text;

    text.length = 0;
    command_print(&m->template, &job->command, &text);
    return &text;
}

/* ---- showing ---------------------------------------------------------------------------------- */

static void show(struct job *job)
{
    for (int i = 0; i < 2; i++)
        output_all(job, i);
}

static size_t behind_last_line(const struct buffer *b)
{
    const char *newline = b->length ? memrchr(b->at, '\n', b->length) : NULL;

    return newline ? (size_t)(b->at + b->length - newline - 1) : b->length;
}

static void show_lines(struct job *job, int stream)
{
    size_t keep = behind_last_line(&job->output[stream].memory);

    if (keep < job->output[stream].memory.length)
        output_lines(job, stream, keep);
}

static void show_in_order(struct map *m)
{
    while (m->first && m->first->done) {
        struct job *job = m->first;

        m->first = job->next_in_order;
        m->unshown--;
        show(job);
        map_drop_job(m, job);
    }
    for (int i = 0; m->first && m->by_line && i < 2; i++)
        show_lines(m->first, i);
}

/* ---- the end of a job ---------------------------------------------------------------------------- */

static int exit_status(const struct job *job)
{
    int status =
        WIFSIGNALED(job->status) ? EXIT_SIGNAL + WTERMSIG(job->status) : WEXITSTATUS(job->status);

    if (job->lost)
        return EXIT_LOST;
    return job->timed_out && status == 0 ? EXIT_BUSY : status; /* as timeout(1) says it */
}

static void check_halt(struct map *m)
{
    const struct map_halt *h = &m->halt;
    bool halts = m->failed >= h->failures;

    /* of those that have ended, since how many there will be is not known; three are the
     * least that a share can be told from */
    if (h->is_percent)
        halts = m->failed >= 3 && m->failed * 100 >= h->failures * m->done;
    if (!h->never && m->failed && halts)
        map_halt(m, h->now ? MAP_STOPPING : MAP_ENDING);
}

static void count(struct map *m, const struct job *job)
{
    int status = exit_status(job);

    m->done++;
    if (status == 0 || (m->stage >= MAP_STOPPING && job->stopped_by))
        return; /* that is not its fault */
    if (m->failed++ == 0) {
        m->first_failed = job->number;
        m->first_failed_as = status;
    }
    check_halt(m);
}

/* It will not be tried again. */
static void settle(struct map *m, struct job *job)
{
    bool signalled = WIFSIGNALED(job->status);

    if (m->logs_commands)
        log_job(job, signalled ? 0 : exit_status(job), signalled ? WTERMSIG(job->status) : 0,
                map_printed(m, job));
    job->done = true;
    count(m, job);
    if (m->keep_order) {
        for (int i = 0; i < 2; i++)
            capture_settle(&job->output[i]);
        show_in_order(m);
        return;
    }
    show(job);
    map_drop_job(m, job);
}

static int64_t back_off_ns(uint64_t tries)
{
    uint64_t doubled = tries - 1 < BACK_OFF_TIMES ? tries - 1 : BACK_OFF_TIMES;
    int64_t ns = (int64_t)(BACK_OFF_MS * WEIR_MS) << doubled;

    return ns / 2 + (int64_t)(id_random() % (uint64_t)ns); /* or all would come back at once */
}

static void try_later(struct map *m, struct job *job)
{
    struct job **at = &m->waiting;

    job->next_ns = job->ended_ns + back_off_ns(job->tries);
    while (*at && (*at)->next_ns <= job->next_ns)
        at = &(*at)->next;
    job->next = *at;
    *at = job;
    m->waiting_count++;
}

/* Its process is gone, or could not be made. */
void map_end_job(struct map *m, struct job *job)
{
    m->slots[job->slot] = NULL;
    m->running--;
    job->pid = 0;
    job->ended_ns = weir_now_ns();
    if (job->lease.id[0])
        permit_give(&job->lease);
    results_end(job, exit_status(job));
    if (exit_status(job) && job->tries <= m->retries && m->stage == MAP_GOING)
        try_later(m, job);
    else
        settle(m, job);
}

static void close_output(struct job *job, int stream)
{
    close(job->fd[stream]); /* which also takes it out of the epoll */
    job->fd[stream] = -1;
}

static void read_output(struct map *m, struct job *job, int stream)
{
    struct capture *c = &job->output[stream];
    ssize_t got = capture_read(c, job->fd[stream]);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        close_output(job, stream);
        return;
    }
    results_add(job, stream, c->memory.at + c->memory.length - got, (size_t)got);
    job->output_bytes += stream == 0 ? (uint64_t)got : 0;
    if (m->by_line && (!m->keep_order || job == m->first))
        show_lines(job, stream);
}

/* Somebody got away from the group, and has it open; but the job was killed. */
static void read_what_is_left(struct map *m, struct job *job)
{
    for (int i = 0; i < 2; i++) {
        int left = 0;

        while (job->fd[i] >= 0 && ioctl(job->fd[i], FIONREAD, &left) == 0 && left > 0)
            read_output(m, job, i);
        if (job->fd[i] >= 0)
            close_output(job, i);
    }
}

static void end_if_ended(struct map *m, struct job *job)
{
    if (!spawn_has_ended(job->pid, job->slot, &job->status))
        return;
    if (!job_has_closed(job))
        read_what_is_left(m, job);
    map_end_job(m, job);
}

void map_read_job(struct map *m, struct job *job, int stream, bool has_data)
{
    if (has_data)
        read_output(m, job, stream);
    else
        close_output(job, stream);
    if (job_has_closed(job))
        end_if_ended(m, job);
}

void map_reap_jobs(struct map *m)
{
    for (unsigned i = 0; i < m->slot_count; i++) {
        struct job *job = m->slots[i];

        if (job && (job_has_closed(job) || job->stopped_by == SIGKILL))
            end_if_ended(m, job);
    }
}

/* ---- stopping -------------------------------------------------------------------------------------- */

static void stop_job(const struct map *m, struct job *job, int signo)
{
    if (job->stopped_by == signo || job->stopped_by == SIGKILL)
        return;
    job->stopped_by = signo;
    job->next_ns = signo == SIGKILL ? INT64_MAX : weir_within(m->grace_ns).at_ns;
    spawn_signal(job->pid, signo);
    spawn_signal(job->pid, SIGCONT); /* so that one that is stopped gets it */
}

static void stop_if_it_wants_terminal(struct map *m, const siginfo_t *info)
{
    for (unsigned i = 0; i < m->slot_count; i++) {
        struct job *job = m->slots[i];

        if (job == NULL || job->pid != info->si_pid || job->stopped_by == SIGKILL)
            continue;
        bar_hide();
        say("job %llu wants to use the terminal, which jobs do not have; it is killed",
            (unsigned long long)job->number);
        stop_job(m, job, SIGKILL);
    }
}

void map_check_stopped(struct map *m)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid) {
        if (info.si_status == SIGTTIN || info.si_status == SIGTTOU)
            stop_if_it_wants_terminal(m, &info);
        info.si_pid = 0;
    }
}

int64_t map_check_times(struct map *m)
{
    int64_t next_ns = m->waiting ? m->waiting->next_ns : INT64_MAX, now_ns = weir_now_ns();
    bool killed = false;

    for (unsigned i = 0; i < m->slot_count; i++) {
        struct job *job = m->slots[i];

        if (job == NULL)
            continue;
        if (job->next_ns <= now_ns) {
            killed |= job->stopped_by == SIGTERM;
            job->timed_out |= job->stopped_by == 0;
            stop_job(m, job, job->stopped_by ? SIGKILL : SIGTERM);
        }
        next_ns = job->next_ns < next_ns ? job->next_ns : next_ns;
    }
    if (killed)
        map_reap_jobs(m); /* whose command has ended long ago, there is no further signal of */
    return next_ns;
}

void map_stop_lost(struct map *m, const char *lease_id)
{
    for (unsigned i = 0; i < m->slot_count; i++) {
        struct job *job = m->slots[i];

        if (job == NULL || strcmp(job->lease.id, lease_id) != 0)
            continue;
        bar_hide();
        say("the lease of job %llu was lost; stopping it", (unsigned long long)job->number);
        job->lost = true;
        stop_job(m, job, SIGTERM);
    }
}

static void give_up_waiting(struct map *m)
{
    while (m->waiting) {
        struct job *job = m->waiting;

        m->waiting = job->next;
        m->waiting_count--;
        settle(m, job);
    }
}

void map_halt(struct map *m, enum map_stage stage)
{
    if (stage <= m->stage)
        return;
    m->stage = stage;
    if (m->has_permits)
        permit_stop();
    for (unsigned i = 0; stage >= MAP_STOPPING && i < m->slot_count; i++)
        if (m->slots[i])
            stop_job(m, m->slots[i], stage == MAP_KILLING ? SIGKILL : SIGTERM);
    if (stage == MAP_KILLING)
        map_reap_jobs(m);
    give_up_waiting(m);
}

bool map_is_over(const struct map *m)
{
    if (m->running)
        return false;
    return m->stage > MAP_GOING || (m->input.ended && !m->input.left && !m->ready && !m->waiting);
}
