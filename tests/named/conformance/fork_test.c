/* SPDX-License-Identifier: MIT */
/* fork: the child has no part in its parent's store, and opens one of its own. */
#include <unistd.h>

#include "named/conformance/world.h"

static int call_nobody(const struct weir_name_stats *stats, void *arg)
{
    (void)arg;
    CHECK_STR(stats->name, "which is not called");
    return 0;
}

static struct weir_lease parents;

/* Of the parent's store. */
static void check_every_call_is_refused(struct world *w)
{
    struct weir_lease_request request = ask("n", 2);
    struct weir_lease lease = parents;

    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_NO_WAIT, &lease), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_acquire(w->store, &request, WEIR_FOREVER, &lease), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_renew(w->store, "n", &lease, LASTING_TTL), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_release(w->store, "n", lease.id), WEIR_ECONTEXT);
    CHECK_EQ(weir_lease_lost_fd(w->store, "n", &lease), WEIR_ECONTEXT);
    CHECK_EQ(weir_store_resize(w->store, "n", 7), WEIR_ECONTEXT);
    CHECK_EQ(weir_store_evict(w->store, "n", lease.id), WEIR_ECONTEXT);
    CHECK_EQ(weir_store_visit(w->store, call_nobody, NULL), WEIR_ECONTEXT);
    CHECK_EQ(weir_store_fd(w->store), WEIR_ECONTEXT);
    CHECK_SAME_LEASE(lease, parents);
}

static void open_again_in_child(struct world *w)
{
    weir_store_close(w->store);
    w->store = open_another(w);
}

static void be_refused_and_open_again(struct world *w)
{
    check_every_call_is_refused(w);
    open_again_in_child(w);
    struct weir_lease lease = take(w, ask("child's", 1));
    CHECK_EQ(look(w, "child's").lease[0].pid, getpid());
    CHECK_EQ(try_to_take(w->store, ask("child's", 1)), WEIR_ETIMEDOUT);
    give_back(w, "child's", &lease);
    weir_store_close(w->store);
}

STORE_TEST(in_the_child_every_call_is_refused_until_it_opens_again)
{
    parents = take(w, ask("n", 2));
    in_a_child(w, be_refused_and_open_again);
    CHECK_EQ(held(w, "n"), 1);
    give_back(w, "n", &parents);
}

/* With a keeper, and somebody who waits: of neither is there more than a picture. */
STORE_TEST(a_child_of_a_busy_parent_can_open_again)
{
    struct weir_lease_request request = ask_ttl("n", 2, LASTING_TTL);

    request.flags = WEIR_LEASE_RENEW;
    parents = take(w, request);
    struct weir_lease other = take(w, ask("n", 2));
    struct asker *thread = queue_up(w, THREAD, ask("n", 2)), *task = queue_up(w, TASK, ask("n", 2));
    in_a_child(w, be_refused_and_open_again);
    CHECK_EQ(waiting(w, "n"), 2);
    give_back(w, "n", &other);
    CHECK_EQ(answer_of(thread), 0);
    give_back(w, "n", &parents);
    CHECK_EQ(answer_of(task), 0);
}

static void only_close(struct world *w)
{
    weir_store_close(w->store);
}

static void do_nothing(struct world *w)
{
    (void)w;
}

STORE_TEST(what_the_child_does_not_do_is_not_done_to_the_parent)
{
    parents = take(w, ask("n", 1));
    in_a_child(w, only_close);
    in_a_child(w, do_nothing);
    CHECK_EQ(held(w, "n"), 1);
    CHECK_EQ(try_to_take(w->store, ask("n", 1)), WEIR_ETIMEDOUT);
    give_back(w, "n", &parents);
}

static int pipe_ends[2];

static void tell_an_id(struct world *w)
{
    open_again_in_child(w);
    struct weir_lease lease = take(w, ask("ids", 3));
    CHECK_EQ(write(pipe_ends[1], lease.id, sizeof lease.id), sizeof lease.id);
    weir_store_close(w->store);
}

STORE_TEST(parent_and_children_draw_different_ids)
{
    char id[3][WEIR_ID_LENGTH + 1];

    take(w, ask("n", 1)); /* which may have drawn some in advance */
    CHECK_EQ(pipe(pipe_ends), 0);
    for (int i = 0; i < 2; i++) {
        in_a_child(w, tell_an_id);
        CHECK_EQ(read(pipe_ends[0], id[i], sizeof id[i]), sizeof id[i]);
    }
    strcpy(id[2], take(w, ask("ids", 3)).id);
    CHECK(strcmp(id[0], id[1]) != 0);
    CHECK(strcmp(id[0], id[2]) != 0);
    CHECK(strcmp(id[1], id[2]) != 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}
