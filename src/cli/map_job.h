/* SPDX-License-Identifier: MIT */
/* map_job - what is known of one job.
 *
 *     ready ──started──▶ running ──ended──▶ done ──shown──▶ spare
 *                           ▲                 │
 *                           └──── waiting ◀───┘ failed, and to be tried again
 *
 * A job runs until nobody has its output open and its command has ended. */
#ifndef WEIR_CLI_MAP_JOB_H
#define WEIR_CLI_MAP_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/store.h>

#include "cli/map_capture.h"
#include "cli/map_template.h"

struct job {
    struct job *next;          /* in the list of spare, or of waiting ones                */
    struct job *next_in_order; /* with -k: the one that was made after it                 */
    uint64_t number;           /* from 1                                                  */
    struct items items;
    struct command_line command;
    unsigned slot;
    uint64_t start;  /* of all that were made: tells the events of one in the slot from another's */
    bool done;       /* it has ended and will not be tried again                */
    pid_t pid;       /* and group; 0: it does not run                           */
    int fd[2];       /* what it writes, standard output and error; -1: all read */
    int copy_fd[2];  /* --results; -1: none                                     */
    bool in_line[2]; /* the last byte shown was no end of a line                */
    struct capture output[2];
    uint64_t output_bytes; /* on standard output                                      */
    uint64_t tries;
    int stopped_by; /* what we sent it last; 0: nothing                             */
    bool timed_out, lost;
    int64_t started_ns, ended_ns; /* monotonic                                      */
    int64_t started_real_ns;      /* for the log                                    */
    int64_t next_ns;              /* when to stop it; or to start it again, while it waits       */
    int status;                   /* as wait(2) says                                             */
    struct weir_lease lease;      /* id[0] is 0: none                                    */
};

static inline bool job_has_closed(const struct job *job)
{
    return job->fd[0] < 0 && job->fd[1] < 0;
}

#endif
