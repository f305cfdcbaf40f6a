/* SPDX-License-Identifier: MIT */
/* lead - to bring a process to the k-th instruction of what it does, and no further.
 *
 * The first time it is led step by step, and its path is written down.  From then on it may
 * run to the last place on the path where it has not been before, and is led from there: a
 * step takes 20 us, so that a test of all k would otherwise take hours.  That it will take
 * the same path again is likely, since its addresses are not random; whether it did is
 * known. */
#ifndef WEIR_CRASH_LEAD_H
#define WEIR_CRASH_LEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where it was before each of its instructions. */
struct path {
    uint64_t *at;
    long *news;  /* for each, the last one before it, or itself, at a place that was new then */
    long length; /* how many instructions                                                     */
    long room;
};

/* Run a program that stops itself twice, and let it come to the first stop.  It dies with
 * us.  The first argument is the program, the last is NULL. */
pid_t lead_start(const char *const *arguments);

/* Lead it to its second stop. */
void path_learn(struct path *p, pid_t pid);
void path_forget(struct path *p);

/* It stands before instruction k.  False: it took another path, and stands at its stop. */
bool path_follow(const struct path *p, pid_t pid, long k);

/* Let it run to its end, which must be a good one. */
void lead_home(pid_t pid);

/* ---- what a CPU must be able to (break_CPU.c) -------------------------------------------- */

/* Where is it?  0: cannot be known. */
uint64_t break_where(pid_t pid);

/* Let it stop when it comes to a place; 0: nowhere.  False: that cannot be done. */
bool break_at(pid_t pid, uint64_t place);

#endif
