/* SPDX-License-Identifier: MIT */
/* map_spawn - processes of jobs, none of which is left behind.
 *
 * Each job leads a process group.  When its command has ended and nobody has its output open,
 * whoever is left of the group is killed, and only then is the command waited for, so that
 * its number cannot be a stranger's yet.
 *
 * If we are killed, the kernel kills the commands, and the warden, a child of ours in a group
 * of its own that does nothing else, kills their groups.  It reads them in a table that it
 * shares with us, into which a job writes itself before it is the command. */
#ifndef WEIR_CLI_MAP_SPAWN_H
#define WEIR_CLI_MAP_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SLOTS_MAX = 32768 };

struct spawn {
    const char *path;
    char *const *argv; /* argv[-1] may be written to */
    char *const *envp;
    int output[2]; /* standard output and error                 */
    int keep_fd;   /* left open as well, unless it is negative  */
    unsigned slot; /* below SLOTS_MAX                           */
};

/* `mask`: the signals that are blocked in jobs.  `slots`: that many at once, as far as the
 * limit on descriptors can be raised. */
void spawn_begin(const sigset_t *mask, unsigned slots);

/* Returns 0, or what the kernel said. */
int spawn_start(const struct spawn *s, pid_t *ret_pid);

void spawn_signal(pid_t pid, int signo); /* to its group */

/* Has the command ended?  Then kill the rest of its group and reap it. */
bool spawn_has_ended(pid_t pid, unsigned slot, int *ret_status);

/* Kill everything that still runs.  Also called by exit(3). */
void spawn_end(void);

#endif
