/* SPDX-License-Identifier: MIT */
/* child - a command that is run as a shell would run it.
 *
 *   ALONE       there is no terminal, or it is not ours: a process group of its own
 *   FOREGROUND  we have the terminal: its own group, which is given the terminal, so that
 *               keys reach the command and not us
 *   SHARED      we have the terminal, but not for ourselves: input is something else, as
 *               shells have it for what they run with &, or output is a pipe, as in
 *               `weir run ... | less`.  The command stays in our group, and gets keys as
 *               everybody in it
 *
 * When it is stopped, so are we; when we are continued, so is it.  Signals that are sent to
 * us go to it, and to its group if it has one.  When we are killed, so is it. */
#ifndef WEIR_CLI_CHILD_H
#define WEIR_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include <weir/time.h>

enum child_group { CHILD_ALONE, CHILD_FOREGROUND, CHILD_SHARED };

struct child {
    pid_t pid; /* and group, unless it shares ours                          */
    enum child_group group;
    int tty;        /* of ours; -1 when there is none                       */
    int signals_fd; /* readable when there are some                         */
    int others_fd;  /* readable at its end, when no descendant is left      */
};

/* From now on signals wait for child_wait.  To be called before any thread is started. */
void child_prepare(void);

/* Start it, with one more descriptor left open.  Returns 0, or what exec said. */
int child_start(struct child *c, char *const argv[], int keep_fd);

enum { CHILD_ENDED = 1, CHILD_READABLE, CHILD_LATE };

/* Until it has ended, and then *ret_waited is what wait(2) says; or until `fd` (-1: none) is
 * readable, or the deadline has passed. */
int child_wait(struct child *c, int fd, struct weir_deadline deadline, int *ret_waited);

/* To the command, and its group if it has one. */
void child_signal(const struct child *c, int signo);

/* Has it left descendants behind that kept the descriptor? */
bool child_left_others(const struct child *c);

/* It died of Ctrl-C or Ctrl-\: so do we, and so does the script that we are part of, since
 * nobody but the command got the key. */
void child_die_alike(const struct child *c, int waited);

#endif
