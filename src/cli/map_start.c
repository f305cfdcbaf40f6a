/* SPDX-License-Identifier: MIT */
/* Jobs, from their items to their processes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "cli/map.h"
#include "cli/map_bar.h"
#include "cli/map_log.h"
#include "cli/map_output.h"
#include "cli/map_permit.h"
#include "cli/map_spawn.h"
#include "cli/say.h"

enum {
    AT_A_TIME = 1024,  /* started before the loop looks at other things                     */
    AHEAD_MOST = 4096, /* with -k: jobs behind the first that is not shown; or all that
                          wait to be tried again                                            */
};

/* ---- records ------------------------------------------------------------------------------ */

static struct job *new_job(struct map *m)
{
    struct job *job = m->spare;

    if (job) {
        m->spare = job->next;
    } else {
        job = must_resize(NULL, sizeof *job);
        memset(job, 0, sizeof *job);
        for (int i = 0; i < 2; i++)
            job->fd[i] = job->copy_fd[i] = -1;
    }
    job->next = job->next_in_order = NULL;
    job->items.text.length = job->items.count = 0;
    job->done = false;
    job->tries = 0;
    job->number = ++m->made;
    return job;
}

/* ---- starting ---------------------------------------------------------------------------------------- */

/* Has `ready` all of its items? */
static bool gather(struct map *m)
{
    for (;;) {
        const char *item;
        size_t length;

        if (m->ready && m->ready->items.count == m->items_per_job)
            return true;
        switch (input_next(&m->input, &item, &length)) {
        case INPUT_END:
            return m->ready != NULL;
        case INPUT_EMPTY:
            m->wants_input = !m->input.is_file;
            if (m->wants_input)
                return false;
            input_read(&m->input);
            break;
        case INPUT_ITEM:
            if (m->ready == NULL)
                m->ready = new_job(m);
            buffer_add(&m->ready->items.text, item, length);
            buffer_add_byte(&m->ready->items.text, '\0');
            m->ready->items.count++;
            break;
        }
    }
}

static struct job *next_job(struct map *m)
{
    if (m->waiting && m->waiting->next_ns <= weir_now_ns())
        return m->waiting;
    return m->waiting_count < AHEAD_MOST && gather(m) ? m->ready : NULL;
}

/* It is not among those any more that next_job chooses from. */
static void take_job(struct map *m, struct job *job)
{
    if (job == m->waiting) {
        m->waiting = job->next;
        m->waiting_count--;
        return;
    }
    m->ready = NULL;
    if (!m->keep_order)
        return;
    if (m->first)
        m->last->next_in_order = job;
    else
        m->first = job;
    m->last = job;
    m->unshown++;
}

static void only_print(struct map *m, struct job *job)
{
    const struct buffer *text;

    template_render(&m->template, &job->items, job->number, 1, &job->command);
    text = map_printed(m, job);
    output_line(text->at, text->length);
    m->ready = NULL;
    map_drop_job(m, job);
}

static bool has_succeeded_before(struct map *m, struct job *job)
{
    if (job->tries)
        return false;
    template_render(&m->template, &job->items, job->number, 1, &job->command);
    return log_has_success(job->number, map_printed(m, job), m->template.by_slot);
}

static unsigned free_slot(struct map *m)
{
    unsigned slot = 0;

    while (slot < m->slot_count && m->slots[slot])
        slot++;
    if (slot == m->slot_count) {
        m->slots = must_resize(m->slots, (m->slot_count + 1) * sizeof(struct job *));
        m->slots[m->slot_count++] = NULL;
    }
    return slot;
}

static void watch(const struct map *m, const struct job *job, int stream)
{
    struct epoll_event event = {EPOLLIN, {.u64 = map_event(job->start, job->slot, stream)}};

    if (epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, job->fd[stream], &event) < 0)
        fail(EXIT_WEIR, "cannot wait for a job: %s", strerror(errno));
}

static int64_t real_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * WEIR_S + now.tv_nsec;
}

/* Pipes and a process; nothing, if it fails. */
static int make_process(struct map *m, struct job *job, const char *path)
{
    int out[2], err[2], error = 0;

    if (pipe2(out, O_CLOEXEC) < 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) < 0) {
        error = errno;
    } else {
        struct spawn spawn = {
            .path = path,
            .argv = job->command.argv,
            .envp = m->has_permits ? permit_environment(&job->lease) : environ,
            .output = {out[1], err[1]},
            .keep_fd = m->has_permits ? permit_store_fd() : -1,
            .slot = job->slot,
        };
        error = spawn_start(&spawn, &job->pid);
        close(err[1]);
        if (error)
            close(err[0]);
    }
    close(out[1]);
    if (error)
        close(out[0]);
    job->fd[0] = error ? -1 : out[0];
    job->fd[1] = error ? -1 : err[0];
    return error;
}

static int start_process(struct map *m, struct job *job)
{
    static struct buffer path;
    int error = m->template.path ? 0 : find_program(job->command.argv[0], &path);

    return error ? error : make_process(m, job, m->template.path ? m->template.path : path.at);
}

static bool is_shortage(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* It cannot be executed.  If that is so for all of them, that is all. */
static void end_unstarted(struct map *m, struct job *job, int error)
{
    const char *name = m->template.path ? m->template.path : job->command.argv[0];
    int status = error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;

    bar_hide();
    if (m->template.path && (error == ENOENT || error == EACCES))
        fail(status, "cannot run \"%s\": %s", name, strerror(error));
    say("job %llu: cannot run \"%s\": %s", (unsigned long long)job->number, name, strerror(error));
    job->status = status << 8;
    map_end_job(m, job);
}

static void renew(struct map *m, struct job *job)
{
    job->slot = free_slot(m);
    job->start = ++m->starts;
    job->status = job->stopped_by = 0;
    job->timed_out = job->lost = false;
    job->output_bytes = 0;
    for (int i = 0; i < 2; i++) {
        capture_forget(&job->output[i]);
        job->in_line[i] = false;
    }
    template_render(&m->template, &job->items, job->number, job->slot + 1, &job->command);
    job->started_ns = weir_now_ns();
    job->next_ns = m->timeout_ns ? job->started_ns + m->timeout_ns : INT64_MAX;
}

/* False: there is no room for it now. */
static bool start_job(struct map *m, struct job *job)
{
    renew(m, job);
    int error = start_process(m, job);
    if (is_shortage(error) && m->running == 0) /* no job will end and make room */
        fail(EXIT_WEIR, "cannot start a job: %s", strerror(error));
    if (is_shortage(error))
        return false;
    take_job(m, job);
    job->tries++;
    m->slots[job->slot] = job;
    m->running++;
    if (m->logs_commands) {
        job->started_real_ns = real_now_ns();
        results_begin(job, map_printed(m, job));
    }
    if (error) {
        end_unstarted(m, job, error);
        return true;
    }
    for (int i = 0; i < 2; i++)
        watch(m, job, i);
    return true;
}

static bool has_permit(struct map *m, struct job *job)
{
    int r = m->has_permits ? permit_take(&job->lease) : 1;

    if (r < 0) {
        m->status = m->status ? m->status : -r;
        map_halt(m, MAP_ENDING);
    }
    return r > 0;
}

/* False: nothing more can be started now. */
static bool begin(struct map *m, struct job *job)
{
    if (m->resume && has_succeeded_before(m, job)) {
        m->ready = NULL;
        m->skipped++;
        map_drop_job(m, job);
        return true;
    }
    if (m->dry_run) {
        only_print(m, job);
        return true;
    }
    if (!has_permit(m, job))
        return false;
    if (start_job(m, job))
        return true;
    if (job->lease.id[0])
        permit_give(&job->lease);
    return false;
}

bool map_start_jobs(struct map *m)
{
    for (int i = 0; i < AT_A_TIME; i++) {
        bool may = m->stage == MAP_GOING && m->running < m->limit && m->unshown < AHEAD_MOST;
        struct job *job = may ? next_job(m) : NULL;

        if (job == NULL || !begin(m, job))
            return false;
    }
    return true;
}
