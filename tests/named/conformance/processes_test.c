/* SPDX-License-Identifier: MIT */
/* Several processes, for stores that reach so far; some of them stopped. */
#include "named/conformance/processes.h"

/* ---- one store ------------------------------------------------------------------------------------ */

STORE_TEST(a_lease_of_another_process_is_seen_and_may_be_given_back)
{
    pid_t pid = start_process(w, acquire_first);

    EVENTUALLY(holds(w, FIRST));
    CHECK_EQ(look(w, "n").lease[0].pid, pid);
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_lease_release(w->store, "n", look(w, "n").lease[0].id), 0);
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), 0);
    kill_process(pid);
    CHECK_EQ(look(w, "n").stats.recovered, 0);
}

STORE_TEST(processes_stand_in_one_queue)
{
    struct weir_lease holder = take(w, ask("n", 1));
    pid_t a = start_process(w, acquire_first), b;

    EVENTUALLY(waiting(w, "n") == 1);
    b = start_process(w, acquire_second);
    EVENTUALLY(waiting(w, "n") == 2);
    struct asker *mine = queue_up(w, THREAD, ask("n", 1));
    CHECK_EQ(look(w, "n").waiter[0].pid, a);
    CHECK_EQ(look(w, "n").waiter[1].pid, b);
    give_back(w, "n", &holder);
    EVENTUALLY(holds(w, FIRST));
    CHECK_EQ(waiting(w, "n"), 2);
    CHECK_EQ(weir_lease_release(w->store, "n", look(w, "n").lease[0].id), 0);
    EVENTUALLY(holds(w, SECOND));
    CHECK(!is_answered(mine));
    CHECK_EQ(weir_lease_release(w->store, "n", look(w, "n").lease[0].id), 0);
    CHECK_EQ(answer_of(mine), 0);
    kill_process(a);
    kill_process(b);
}

static void be_told_of_the_loss(struct world *w)
{
    struct loss loss = {.times = 0};
    struct weir_lease_request request = ask_labelled(FIRST);

    request.on_lost = note_loss;
    request.arg = &loss;
    acquire(w, request);
    EVENTUALLY(losses(&loss) == 1);
    acquire(w, ask("told", 1));
}

STORE_TEST(a_holder_is_told_when_another_process_takes_its_lease_away)
{
    pid_t pid = start_process(w, be_told_of_the_loss);

    EVENTUALLY(holds(w, FIRST));
    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").lease[0].id), 0);
    EVENTUALLY(held(w, "told") == 1);
    kill_process(pid);
}

static void send_away(struct world *w)
{
    struct weir_lease_request request = ask_labelled(FIRST);
    struct weir_lease lease;

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_ECANCELED);
    acquire(w, ask("told", 1));
}

STORE_TEST(a_waiter_can_be_sent_away_by_another_process)
{
    take(w, ask("n", 1));
    pid_t pid = start_process(w, send_away);
    EVENTUALLY(waiting(w, "n") == 1);
    CHECK_EQ(weir_store_evict(w->store, "n", look(w, "n").waiter[0].id), 0);
    EVENTUALLY(held(w, "told") == 1);
    kill_process(pid);
}

static int acquire_as_task(void *arg)
{
    acquire_first(arg);
    return weir_task_sleep(WEIR_FOREVER);
}

static void acquire_in_task(struct world *w)
{
    CHECK_EQ(weir_run(NULL, acquire_as_task, w), 0);
}

STORE_TEST(a_task_of_another_process_is_served)
{
    struct weir_lease holder = take(w, ask("n", 1));
    pid_t pid = start_process(w, acquire_in_task);

    EVENTUALLY(waiting(w, "n") == 1);
    give_back(w, "n", &holder);
    EVENTUALLY(holds(w, FIRST));
    kill_process(pid);
}

/* ---- stopped ------------------------------------------------------------------------------------------ */

static void take_with_ttl(struct world *w)
{
    struct weir_lease_request request = ask_labelled(FIRST);

    request.ttl_ns = 500 * WEIR_MS;
    request.flags = WEIR_LEASE_RENEW;
    acquire(w, request);
}

STORE_TEST(a_holder_that_is_stopped_keeps_its_lease_for_its_ttl_and_no_longer)
{
    pid_t pid = start_process(w, take_with_ttl);

    EVENTUALLY(holds(w, FIRST));
    stop_process(pid);
    struct asker *next = begin_to_ask(w, w->store, THREAD, ask("n", 1), WEIR_FOREVER);
    CHECK_EQ(answer_of(next), 0);
    CHECK_EQ(look(w, "n").stats.expired, 1);
    CHECK_EQ(look(w, "n").stats.recovered, 0);
    kill_process(pid);
}

static void wait_with_ttl(struct world *w)
{
    struct weir_lease_request request = ask_labelled(FIRST);

    request.ttl_ns = LASTING_TTL;
    acquire(w, request);
}

STORE_TEST(a_grant_that_is_not_taken_up_goes_to_the_next_and_its_waiter_queues_again)
{
    struct weir_lease holder = take(w, ask("n", 1));
    pid_t pid = start_process(w, wait_with_ttl);

    EVENTUALLY(waiting(w, "n") == 1);
    struct asker *next = queue_up(w, THREAD, ask("n", 1));
    stop_process(pid);
    give_back(w, "n", &holder);
    CHECK_EQ(answer_of(next), 0);
    CHECK_EQ(look(w, "n").stats.lapsed, 1);
    CHECK_EQ(look(w, "n").waiter[0].pid, pid);
    CHECK_EQ(kill(pid, SIGCONT), 0);
    give_back(w, "n", &next->lease);
    EVENTUALLY(holds(w, FIRST));
    kill_process(pid);
}
