/* SPDX-License-Identifier: MIT */
/* For rows with several processes. */
#ifndef WEIR_TESTS_NAMED_PROCESSES_H
#define WEIR_TESTS_NAMED_PROCESSES_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "named/conformance/world.h"

#define FIRST  "first" /* labels */
#define SECOND "second"

static inline struct weir_lease_request ask_labelled(const char *label)
{
    struct weir_lease_request request = ask("n", 1);

    request.label = label;
    return request;
}

/* A process that opens the store for itself, does this, and stays until it is killed.  To
 * be started before this one has threads. */
static inline pid_t start_process(struct world *w, void (*fn)(struct world *w))
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    weir_store_close(w->store);
    w->store = open_another(w);
    fn(w);
    for (;;)
        pause();
}

static inline void kill_process(pid_t pid)
{
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* All of its threads stand still when this returns. */
static inline void stop_process(pid_t pid)
{
    int status;

    CHECK_EQ(kill(pid, SIGSTOP), 0);
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
}

static inline void acquire(struct world *w, struct weir_lease_request request)
{
    struct weir_lease lease;

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), 0);
}

static inline void acquire_first(struct world *w)
{
    acquire(w, ask_labelled(FIRST));
}

static inline void acquire_second(struct world *w)
{
    acquire(w, ask_labelled(SECOND));
}

static inline bool holds(struct world *w, const char *label)
{
    struct view view = look(w, "n");

    return view.stats.leases > 0 && strcmp(view.lease[0].label, label) == 0;
}

#endif
