/* SPDX-License-Identifier: MIT */
/* What the death of a process means, and its exec. */
#include <fcntl.h>
#include <stdio.h>

#include "named/conformance/processes.h"

/* ---- death ------------------------------------------------------------------------------------------ */

STORE_TEST(the_death_of_a_holder_serves_a_thread_that_waits)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    uint64_t token = look(w, "n").lease[0].token;
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    kill_process(pid);
    CHECK_EQ(answer_of(next), 0);
    CHECK(next->lease.token > token);
    CHECK_EQ(look(w, "n").stats.recovered, 1);
}

STORE_TEST(the_death_of_a_holder_serves_a_task_that_waits)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    struct asker *next = queue_up(w, TASK, ask("n", 1));
    kill_process(pid);
    CHECK_EQ(answer_of(next), 0);
}

/* The store has a keeper by then, which had nothing to do. */
STORE_TEST(the_death_of_a_holder_serves_tasks_that_came_late)
{
    struct loss loss = {.times = 0};
    struct weir_lease_request watched = ask("watched", 1);
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    watched.on_lost = note_loss;
    watched.arg = &loss;
    take(w, watched);
    struct asker *a = queue_up(w, TASK, ask("n", 1)), *b = queue_up(w, TASK, ask("n", 1));
    kill_process(pid);
    CHECK_EQ(answer_of(a), 0);
    leave(a);
    CHECK_EQ(answer_of(b), 0);
}

STORE_TEST(what_the_dead_held_is_free_for_who_does_not_wait)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    kill_process(pid);
    EVENTUALLY(try_to_take(w->store, ask("n", 1)) == 0);
    CHECK_EQ(look(w, "n").stats.recovered, 1);
}

STORE_TEST(what_the_dead_held_does_not_fix_the_limit)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    kill_process(pid);
    EVENTUALLY(try_to_take(w->store, ask("n", 5)) == 0);
}

STORE_TEST(the_observer_is_told_what_the_dead_held)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    struct weir_lease_info info = look(w, "n").lease[0];
    listen_to_notices();
    kill_process(pid);
    EVENTUALLY(held(w, "n") == 0);
    struct told t = notice(WEIR_NOTICE_RECOVERED, 0);
    CHECK_STR(t.name, "n");
    CHECK_STR(t.id, info.id);
    CHECK_STR(t.label, FIRST);
    CHECK_EQ(t.token, info.token);
    CHECK_EQ(t.slot, info.slot);
    CHECK_EQ(notices(WEIR_NOTICE_RECOVERED), 1);
}

STORE_TEST(a_waiter_that_dies_is_not_in_the_way)
{
    struct weir_lease holder = take(w, ask("n", 1));
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(waiting(w, "n") == 1);
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    kill_process(pid);
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(next), 0);
}

STORE_TEST(holder_and_first_in_line_may_die_together)
{
    pid_t a = start_process(w, acquire_first), b;

    EVENTUALLY(holds(w, FIRST));
    b = start_process(w, acquire_second);
    EVENTUALLY(waiting(w, "n") == 1);
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    CHECK_EQ(kill(a, SIGKILL) | kill(b, SIGKILL), 0);
    CHECK_EQ(answer_of(next), 0);
    kill_process(a);
    kill_process(b);
}

static void take_ten_names(struct world *w)
{
    for (char c = 'a'; c < 'k'; c++)
        take(w, ask((char[]){c, '\0'}, 1));
    acquire_first(w);
}

STORE_TEST(all_that_the_dead_held_is_recovered)
{
    pid_t pid = start_process(w, take_ten_names);

    EVENTUALLY(holds(w, FIRST));
    kill_process(pid);
    for (char c = 'a'; c < 'k'; c++)
        EVENTUALLY(try_to_take(w->store, ask((char[]){c, '\0'}, 1)) == 0);
}

static void exit_holding(struct world *w)
{
    acquire_first(w);
    acquire(w, ask("go", 1)); /* which it is told to */
    _exit(0);
}

STORE_TEST(a_lease_ends_with_a_process_that_exits)
{
    struct weir_lease stop = take(w, ask("go", 1));
    pid_t pid = start_process(w, exit_holding);

    EVENTUALLY(holds(w, FIRST));
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    give_back(w, "go", &stop);
    CHECK_EQ(answer_of(next), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void take_detached(struct world *w)
{
    struct weir_lease_request request = ask_labelled(FIRST);

    request.ttl_ns = LASTING_TTL;
    request.flags = WEIR_LEASE_DETACHED;
    acquire(w, request);
    acquire(w, ask("other", 1));
}

STORE_TEST(a_detached_lease_outlives_its_process)
{
    pid_t pid = start_process(w, take_detached);

    EVENTUALLY(held(w, "other") == 1);
    kill_process(pid);
    EVENTUALLY(held(w, "other") == 0); /* its death was noticed */
    CHECK(holds(w, FIRST));
    CHECK_EQ(look(w, "n").lease[0].pid, 0);
    CHECK_EQ(weir_lease_release(w->store, "n", look(w, "n").lease[0].id), 0);
}

static void leave_a_child_behind(struct world *w)
{
    acquire_first(w);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        for (;;) /* it lives on, until its group is killed */
            pause();
    acquire(w, ask("forked", 1));
}

STORE_TEST(a_child_that_lives_on_does_not_keep_the_leases_of_the_dead)
{
    pid_t pid = start_process(w, leave_a_child_behind);

    EVENTUALLY(held(w, "forked") == 1);
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    kill_process(pid);
    CHECK_EQ(answer_of(next), 0);
}

/* ---- exec, and the descriptor ----------------------------------------------------------------------- */

/* Has it become the program of that name? */
static bool is_sleep(pid_t pid)
{
    char path[32], name[16] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(name, sizeof name, file) != NULL);
    fclose(file);
    return strcmp(name, "sleep\n") == 0;
}

/* In a child: with a store of its own, wait for "go", and close what the parent left it. */
static void acquire_when_told(struct world *w, int copy)
{
    weir_store_close(w->store);
    w->store = open_another(w);
    acquire(w, ask("go", 1));
    close(copy);
}

static void become_another_program(struct world *w)
{
    acquire_first(w);
    acquire(w, ask("go", 1));
    execlp("sleep", "sleep", "1000", (char *)NULL);
    CHECK(false);
}

STORE_TEST(a_lease_ends_with_an_exec)
{
    struct weir_lease stop = take(w, ask("go", 1));
    pid_t pid = start_process(w, become_another_program);

    EVENTUALLY(holds(w, FIRST));
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    give_back(w, "go", &stop);
    CHECK_EQ(answer_of(next), 0);
    kill_process(pid);
}

static void leave_descriptor_to_another_program(struct world *w)
{
    int fd = weir_store_fd(w->store);

    CHECK(fd >= 0);
    CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_SETFD, 0), 0);
    become_another_program(w);
}

STORE_TEST(a_lease_outlives_an_exec_that_leaves_its_descriptor_open)
{
    struct weir_lease stop = take(w, ask("go", 1));
    pid_t pid = start_process(w, leave_descriptor_to_another_program);

    EVENTUALLY(holds(w, FIRST));
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    give_back(w, "go", &stop);
    EVENTUALLY(is_sleep(pid));
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    CHECK(holds(w, FIRST) && !is_answered(next));
    kill_process(pid);
    CHECK_EQ(answer_of(next), 0);
}

static void pass_descriptor_to_child(struct world *w)
{
    int copy = dup(weir_store_fd(w->store));

    acquire_first(w);
    pid_t pid = fork();
    CHECK(pid >= 0 && copy >= 0);
    if (pid == 0) {
        acquire_when_told(w, copy);
        _exit(0);
    }
    close(copy);
    acquire(w, ask("forked", 1));
}

STORE_TEST(a_lease_is_held_until_the_last_copy_of_its_descriptor_is_closed)
{
    struct weir_lease stop = take(w, ask("go", 1));
    pid_t pid = start_process(w, pass_descriptor_to_child);

    EVENTUALLY(held(w, "forked") == 1 && waiting(w, "go") == 1);
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    kill_process(pid);
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    CHECK(holds(w, FIRST) && !is_answered(next));
    give_back(w, "go", &stop); /* then its child closes it */
    CHECK_EQ(answer_of(next), 0);
}
