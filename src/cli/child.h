/* SPDX-License-Identifier: MIT */
/* child - a command in a process group of its own, as a shell would run it.
 *
 * On a terminal the group is the foreground one, so that keys reach the command and not us;
 * when it is stopped, we give the terminal back and stop as well, and when we are continued,
 * so is it.  Signals that are sent to us go to the group.  When we are killed, so is it. */
#ifndef WEIR_CLI_CHILD_H
#define WEIR_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;     /* and group                                                  */
    bool terminal; /* the group was given the terminal                           */
    int others_fd; /* readable at its end, when no descendant is left            */
};

/* From now on signals wait for child_wait.  To be called before any thread is started. */
void child_prepare(void);

/* Start it, with one more descriptor left open.  Returns 0, or what exec said. */
int child_start(struct child *c, char *const argv[], int keep_fd);

/* From another thread: the command is to end, by `signo` and, if it has not ended after
 * `grace_ns`, by SIGKILL. */
void child_stop(int signo, int64_t grace_ns);

/* Until it has ended.  Returns what wait(2) says; *ret_stopped: child_stop was called. */
int child_wait(struct child *c, bool *ret_stopped);

/* Has it left descendants behind that kept the descriptor? */
bool child_left_others(const struct child *c);

#endif
