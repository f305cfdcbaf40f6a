/* SPDX-License-Identifier: MIT */
/* map - a command for each item, so many at a time: what its parts share.
 *
 *     cmd_map.c       the command line
 *     map_loop.c      one epoll: output of jobs, their ends, input, signals, time
 *     map_start.c     jobs from their items to their processes
 *     map_end.c       and from what these write to their end
 *     map_input.c     items           map_template.c  items to commands
 *     map_spawn.c     processes       map_permit.c    leases, with --sem
 *     map_capture.c   what they write, until map_output.c may show it
 *     map_log.c       --joblog, --resume, --results
 *     map_bar.c       --bar
 *
 * Everything is done by one thread, which never waits but in the epoll, or, when nobody reads
 * what it shows, in a poll that hears signals as well.  Only a lease is waited for by another.
 *
 * A map goes through these stages, never back: */
#ifndef WEIR_CLI_MAP_H
#define WEIR_CLI_MAP_H

#include <signal.h>

#include "cli/map_input.h"
#include "cli/map_job.h"

enum map_stage {
    MAP_GOING,
    MAP_ENDING,   /* no new job is started; those that run may end               */
    MAP_STOPPING, /* they were asked to, and are killed when the grace is over    */
    MAP_KILLING,  /* they were killed                                             */
};

struct map_halt {
    bool never, now, is_percent;
    uint64_t failures; /* or percent */
};

struct map {
    /* ---- as asked for, and never changed ---- */
    struct template template;
    uint64_t items_per_job, retries;
    int64_t timeout_ns; /* 0: none */
    int64_t grace_ns;
    struct map_halt halt;
    bool keep_order, by_line, dry_run, resume, quiet;
    bool logs_commands; /* --joblog or --results */
    bool has_permits;   /* --sem */
    bool has_terminal;

    /* ---- what is ---- */
    enum map_stage stage;
    int signal; /* that ends us; 0: none                                         */
    int status; /* that we exit with, if no job has failed and no signal ends us */
    struct input input;
    bool wants_input;   /* nothing can be started before more is read */
    bool input_awaited; /* the epoll will tell                        */
    unsigned limit;     /* jobs at once; SIGUSR1 and SIGUSR2 change it */
    unsigned running;
    struct job **slots; /* NULL: free */
    unsigned slot_count;
    struct job *ready;        /* it has items, but not all of them, or no slot or lease */
    struct job *waiting;      /* to be tried again, the next one first                  */
    struct job *first, *last; /* with -k: not shown yet, in order                       */
    unsigned unshown, waiting_count;
    struct job *spare;
    uint64_t made, done, failed, skipped; /* jobs */
    uint64_t starts;
    uint64_t first_failed; /* its number */
    int first_failed_as;   /* and its exit status */
    int epoll_fd;
};

/* What the epoll says of a job: which of all starts, which slot and stream. */
static inline uint64_t map_event(uint64_t start, unsigned slot, int stream)
{
    return start << 16 | slot << 1 | (unsigned)stream;
}

/* ---- map_start.c ------------------------------------------------------------------------- */

/* Start what can be.  True if it stopped only to let the loop look at other things. */
bool map_start_jobs(struct map *m);

/* ---- map_end.c --------------------------------------------------------------------------- */

/* Something was written by a job, or nobody can write any more. */
void map_read_job(struct map *m, struct job *job, int stream, bool has_data);

/* A child has ended: which of those that we wait for? */
void map_reap_jobs(struct map *m);

/* With a terminal: is there a job that was stopped because it wants it?  It would be for ever. */
void map_check_stopped(struct map *m);

/* Whose time is over?  Returns when to ask again. */
int64_t map_check_times(struct map *m);

/* The lease of a job was lost. */
void map_stop_lost(struct map *m, const char *lease_id);

/* On to a later stage. */
void map_halt(struct map *m, enum map_stage stage);

bool map_is_over(const struct map *m);

/* Its process is gone, or could not be made. */
void map_end_job(struct map *m, struct job *job);
void map_drop_job(struct map *m, struct job *job);

/* Its command, for people; good until the next call. */
const struct buffer *map_printed(const struct map *m, const struct job *job);

/* ---- map_loop.c -------------------------------------------------------------------------- */

/* Until it is over.  `job_mask`: what was blocked before map_block_signals. */
void map_block_signals(sigset_t *ret_job_mask);
void map_loop(struct map *m);

/* For map_output.h. */
bool map_until_writable(int fd);

#endif
