/* SPDX-License-Identifier: MIT */
/* weir_sem: the promises made in weir/sem.h, one test each, in that order. */
#include <weir/sem.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/op.h>

#include "harness/sanitizer.h"
#include "harness/test.h"

/* ---- helpers ---------------------------------------------------------------- */

enum { UNTIL_IDLE = 0 };

/* A thread that makes one call and keeps what it got. */
struct caller {
    struct weir_sem *sem;
    uint64_t want; /* or UNTIL_IDLE */
    int result;
    int leaving, returned;
};

static struct caller caller_of(struct weir_sem *sem, uint64_t want)
{
    return (struct caller){.sem = sem, .want = want};
}

static int wait_until(struct caller *c, struct weir_deadline deadline)
{
    return c->want == UNTIL_IDLE ? weir_sem_wait_idle(c->sem, deadline)
                                 : weir_sem_acquire(c->sem, c->want, deadline);
}

static void call(void *arg)
{
    struct caller *c = arg;

    c->result = wait_until(c, WEIR_FOREVER);
    __atomic_store_n(&c->returned, 1, __ATOMIC_RELEASE);
}

static bool has_returned(const struct caller *c)
{
    return __atomic_load_n(&c->returned, __ATOMIC_ACQUIRE);
}

static int result_of(const struct caller *c)
{
    EVENTUALLY(has_returned(c));
    return c->result;
}

/* Start a caller and return once it is in the queue. */
static void queue_up(struct caller *c)
{
    uint64_t before = weir_sem_waiting(c->sem);

    test_spawn(call, c);
    EVENTUALLY(weir_sem_waiting(c->sem) == before + 1);
}

static void call_until_leaving(void *arg)
{
    struct caller *c = arg;

    do { /* again, if it was too late even to queue */
        c->result = wait_until(c, weir_within(WEIR_MS));
    } while (!__atomic_load_n(&c->leaving, __ATOMIC_ACQUIRE));
    __atomic_store_n(&c->returned, 1, __ATOMIC_RELEASE);
}

/* Start a caller and return once its time is up, but it is still in the queue; until
 * it is let go. */
static void queue_up_and_run_out_of_time(struct caller *c)
{
    test_hold("waitq: about to leave");
    test_spawn(call_until_leaving, c);
    test_reached("waitq: about to leave");
    __atomic_store_n(&c->leaving, 1, __ATOMIC_RELEASE);
}

static void queue_up_all(struct caller *c, int n, struct weir_sem *sem, const uint64_t *wants)
{
    for (int i = 0; i < n; i++) {
        c[i] = caller_of(sem, wants[i]);
        queue_up(&c[i]);
    }
}

static void take(struct weir_sem *sem, uint64_t n)
{
    CHECK_EQ(weir_sem_acquire(sem, n, WEIR_NO_WAIT), 0);
}

/* ---- permits ---------------------------------------------------------------- */

TEST(a_new_semaphore_has_all_its_permits)
{
    static struct weir_sem by_macro = WEIR_SEM_INIT(3);
    struct weir_sem by_call;

    CHECK_EQ(weir_sem_init(&by_call, 3), 0);
    CHECK_EQ(weir_sem_capacity(&by_macro), 3);
    CHECK_EQ(weir_sem_capacity(&by_call), 3);
    CHECK_EQ(weir_sem_available(&by_macro), 3);
    CHECK_EQ(weir_sem_available(&by_call), 3);
    CHECK_EQ(weir_sem_waiting(&by_call), 0);
}

TEST(a_capacity_of_nothing_or_too_much_is_invalid)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    CHECK_EQ(weir_sem_init(&sem, 0), WEIR_EINVAL);
    CHECK_EQ(weir_sem_init(&sem, WEIR_SEM_MAX + 1), WEIR_EINVAL);
    CHECK_EQ(weir_sem_init(&sem, UINT64_MAX), WEIR_EINVAL);
    CHECK_EQ(weir_sem_capacity(&sem), 3);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(acquire_takes_and_release_gives_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(5);

    take(&sem, 2);
    CHECK_EQ(weir_sem_available(&sem), 3);
    take(&sem, 3);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 4), 0);
    CHECK_EQ(weir_sem_available(&sem), 4);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 5);
    CHECK_EQ(weir_sem_capacity(&sem), 5);
}

TEST(capacity_and_weight_go_up_to_2_to_the_60_minus_1)
{
    const uint64_t most = (UINT64_C(1) << 60) - 1;
    struct weir_sem sem = WEIR_SEM_INIT((UINT64_C(1) << 60) - 1);
    struct caller all = caller_of(&sem, most), idle = caller_of(&sem, UNTIL_IDLE);

    CHECK_EQ(weir_sem_init(&sem, most), 0);
    CHECK_EQ(weir_sem_available(&sem), most);
    take(&sem, most);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
    queue_up(&all);
    queue_up(&idle);
    CHECK_EQ(weir_sem_release(&sem, most - 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_available(&sem), most - 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&all), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, most), 0);
    CHECK_EQ(result_of(&idle), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_available(&sem), most);
}

/* ---- order ------------------------------------------------------------------ */

TEST(waiters_are_served_first_come_first_served)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller c[5];

    take(&sem, 1);
    queue_up_all(c, 5, &sem, (uint64_t[]){1, 1, 1, 1, 1});
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK_EQ(result_of(&c[i]), 0);
        CHECK_EQ(weir_sem_waiting(&sem), 4 - i);
        for (int later = i + 1; later < 5; later++)
            CHECK(!has_returned(&c[later]));
    }
}

TEST(a_small_request_does_not_overtake_a_large_one)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller c[2];

    take(&sem, 1);
    queue_up_all(c, 2, &sem, (uint64_t[]){4, 1}); /* three are free, yet the 1 waits */
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_available(&sem), 3);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 4), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

struct stream {
    struct weir_sem sem;
    int over;
};

static void keep_taking_one(void *arg)
{
    struct stream *s = arg;

    while (!__atomic_load_n(&s->over, __ATOMIC_RELAXED)) {
        CHECK_EQ(weir_sem_acquire(&s->sem, 1, WEIR_FOREVER), 0);
        sched_yield(); /* so that the turns of several overlap */
        CHECK_EQ(weir_sem_release(&s->sem, 1), 0);
    }
}

TEST(a_stream_of_small_requests_does_not_starve_a_large_one)
{
    struct stream s = {.sem = WEIR_SEM_INIT(3)};

    for (int i = 0; i < 6; i++)
        test_spawn(keep_taking_one, &s);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(weir_sem_acquire(&s.sem, 3, WEIR_FOREVER), 0);
        CHECK_EQ(weir_sem_release(&s.sem, 3), 0);
    }
    __atomic_store_n(&s.over, 1, __ATOMIC_RELAXED);
    test_join_all();
}

/* ---- hand-off --------------------------------------------------------------- */

TEST(a_released_permit_belongs_to_the_waiter_before_release_returns)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller c = caller_of(&sem, 1);

    take(&sem, 1);
    test_hold("park: about to sleep");
    queue_up(&c);
    test_reached("park: about to sleep"); /* it cannot notice anything now */
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
    CHECK(!has_returned(&c));
    test_let_go("park: about to sleep");
    CHECK_EQ(result_of(&c), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
}

struct guarded {
    struct weir_sem sem;
    int plain; /* not atomic: TSan watches, and so does the sum */
};

static void count_up(void *arg)
{
    struct guarded *g = arg;

    for (int i = test_scaled(1000); i > 0; i--) {
        CHECK_EQ(weir_sem_acquire(&g->sem, 1, WEIR_FOREVER), 0);
        g->plain++;
        CHECK_EQ(weir_sem_release(&g->sem, 1), 0);
    }
}

TEST(what_was_written_before_a_release_is_seen_after_the_acquire)
{
    struct guarded g = {.sem = WEIR_SEM_INIT(1)};

    for (int i = 0; i < 4; i++)
        test_spawn(count_up, &g);
    test_join_all();
    CHECK_EQ(g.plain, 4 * test_scaled(1000));
}

/* ---- giving up -------------------------------------------------------------- */

TEST(a_wait_that_times_out_has_waited_and_holds_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct weir_deadline deadline = weir_within(5 * WEIR_MS);

    take(&sem, 1);
    CHECK_EQ(weir_sem_acquire(&sem, 1, deadline), WEIR_ETIMEDOUT);
    CHECK(weir_now_ns() >= deadline.at_ns);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(when_a_large_request_gives_up_those_behind_it_are_served)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller large = caller_of(&sem, 4), c[3];

    take(&sem, 1);
    queue_up_and_run_out_of_time(&large);
    queue_up_all(c, 3, &sem, (uint64_t[]){1, 2, 1});
    test_let_go("waitq: about to leave");
    CHECK_EQ(result_of(&large), WEIR_ETIMEDOUT);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1); /* the last did not fit */
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[2]), 0);
}

TEST(a_waiter_in_the_middle_can_give_up)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller first = caller_of(&sem, 1), middle = first, last = first;

    take(&sem, 1);
    queue_up(&first);
    queue_up_and_run_out_of_time(&middle);
    queue_up(&last);
    test_let_go("waitq: about to leave");
    CHECK_EQ(result_of(&middle), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&first), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&last), 0);
}

TEST(a_deadline_in_the_past_takes_what_is_free)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct weir_deadline long_ago = {1}, just_now = {weir_now_ns()};

    CHECK_EQ(weir_sem_acquire(&sem, 1, long_ago), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 1, just_now), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 1, long_ago), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_acquire(&sem, 1, just_now), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

/* From here on the calling process is killed if it makes a system call: all but
 * those that end it with a message, and two that are in the kernel only where the
 * vDSO lacks them. */
static void forbid_the_kernel(void)
{
#define ALLOW(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter only[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_clock_gettime),
        ALLOW(SYS_getcpu),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof only / sizeof *only, only};

    if (TEST_ASAN || TEST_TSAN)
        return; /* they map memory when they please */
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* Run fn in a process of its own without the kernel. */
static void run_without_kernel(void (*fn)(void))
{
    int status;

    SKIP_IF(TEST_QEMU, "qemu has no seccomp");
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        forbid_the_kernel();
        fn();
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void ignore(struct weir_op *op, int result)
{
    (void)op;
    (void)result;
}

static void try_with_past_deadlines(void)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct weir_op op = WEIR_OP_INIT;

    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(weir_sem_acquire(&sem, 2, (struct weir_deadline){1}), 0);
        CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_sem_acquire(&sem, 1, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_sem_wait_idle(&sem, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
        CHECK_EQ(weir_sem_acquire_async(&sem, 1, &op, ignore), 0);
        CHECK_EQ(weir_sem_acquire(&sem, 1, (struct weir_deadline){1}), WEIR_ETIMEDOUT);
        CHECK_EQ(weir_op_cancel(&op), 1);
        CHECK_EQ(weir_sem_release(&sem, 2), 0);
    }
}

TEST(a_past_deadline_never_enters_the_kernel)
{
    run_without_kernel(try_with_past_deadlines);
}

static int delivered;

static void count_signal(int signal)
{
    (void)signal;
    __atomic_add_fetch(&delivered, 1, __ATOMIC_RELAXED);
}

struct pelted {
    struct caller caller;
    pthread_t thread;
    int started;
};

static void call_under_signals(void *arg)
{
    struct pelted *p = arg;

    p->thread = pthread_self();
    __atomic_store_n(&p->started, 1, __ATOMIC_RELEASE);
    call(&p->caller);
}

TEST(signals_do_not_end_a_wait)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct pelted p = {.caller = caller_of(&sem, 1)};

    take(&sem, 1);
    CHECK_EQ(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_signal}, NULL), 0);
    test_spawn(call_under_signals, &p);
    EVENTUALLY(__atomic_load_n(&p.started, __ATOMIC_ACQUIRE) && weir_sem_waiting(&sem) == 1);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(pthread_kill(p.thread, SIGUSR1), 0);
        /* TSan keeps a signal to itself until a call that it knows. */
        EVENTUALLY(TEST_TSAN || __atomic_load_n(&delivered, __ATOMIC_RELAXED) > i);
        CHECK_EQ(weir_sem_waiting(&sem), 1);
    }
    CHECK(!has_returned(&p.caller));
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&p.caller), 0);
}

/* ---- cost ------------------------------------------------------------------- */

static void acquire_and_release(void)
{
    struct weir_sem sem = WEIR_SEM_INIT(8);

    for (uint64_t n = 1; n <= 8; n++) {
        CHECK_EQ(weir_sem_acquire(&sem, n, WEIR_FOREVER), 0);
        CHECK_EQ(weir_sem_release(&sem, n), 0);
    }
}

/* That each is one atomic operation is counted in waitq_test.c. */
TEST(an_uncontended_acquire_and_release_never_enter_the_kernel)
{
    run_without_kernel(acquire_and_release);
}

/* ---- end of life ------------------------------------------------------------ */

/* Hands semaphores to the thread that waits on them and frees them. */
struct relay {
    struct weir_sem *sem;
    int rounds;
};

static struct weir_sem *in_hand(struct relay *r)
{
    return __atomic_load_n(&r->sem, __ATOMIC_ACQUIRE);
}

static void hand_on(struct relay *r, struct weir_sem *sem)
{
    __atomic_store_n(&r->sem, sem, __ATOMIC_RELEASE);
}

/* Ask again and again instead of waiting: it may then be had, and freed, in the middle
 * of the call that made it free. */
static int acquire_by_asking(struct weir_sem *sem)
{
    int r;

    while ((r = weir_sem_try_acquire(sem, 1)) == WEIR_EAGAIN)
        ;
    return r;
}

static bool asks(int round)
{
    return round % 4 == 0;
}

static void wait_and_free(void *arg)
{
    struct relay *r = arg;

    for (int i = 0; i < r->rounds; i++) {
        struct weir_sem *sem;

        while ((sem = in_hand(r)) == NULL)
            sched_yield();
        int result = asks(i) ? acquire_by_asking(sem) : weir_sem_acquire(sem, 1, WEIR_FOREVER);
        CHECK(result == 0 || result == WEIR_ECLOSED);
        memset(sem, 0xff, sizeof *sem); /* a late waker finds it locked for ever */
        free(sem);
        hand_on(r, NULL);
    }
}

static void end_the_wait(struct weir_sem *sem, int how)
{
    switch (how) {
    case 0:
        weir_sem_release(sem, 1);
        break;
    case 1:
        weir_sem_resize(sem, 2);
        break;
    default:
        weir_sem_close(sem);
    }
}

TEST_WITHIN(a_semaphore_may_be_freed_as_soon_as_its_last_wait_has_returned, 20)
{
    struct relay r = {.rounds = test_scaled(4000)};

    test_spawn(wait_and_free, &r);
    for (int i = 0; i < r.rounds; i++) {
        struct weir_sem *sem = malloc(sizeof *sem);

        CHECK(sem != NULL);
        CHECK_EQ(weir_sem_init(sem, 1), 0);
        take(sem, 1);
        hand_on(&r, sem);
        while (!asks(i) && i % 4 != 1 && weir_sem_waiting(sem) == 0)
            sched_yield(); /* mostly it is queued, and sometimes it comes too late */
        for (int64_t then_ns = weir_now_ns() + test_random(40000); weir_now_ns() < then_ns;)
            ; /* it spins, falls asleep or is asleep by then */
        end_the_wait(sem, (int)test_random(3));
        while (in_hand(&r) != NULL)
            sched_yield();
    }
}

static int called_with = 1;

static void note_result(struct weir_op *op, int result)
{
    (void)op;
    called_with = result;
}

static void use_after_fork(struct weir_sem *sem)
{
    struct weir_op op = WEIR_OP_INIT;

    CHECK_EQ(weir_sem_init(sem, 2), 0);
    CHECK_EQ(weir_sem_waiting(sem), 0);
    take(sem, 2);
    CHECK_EQ(weir_sem_acquire(sem, 1, weir_within(WEIR_MS)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_acquire_async(sem, 2, &op, note_result), 0);
    CHECK_EQ(weir_sem_release(sem, 2), 0);
    CHECK_EQ(called_with, 0);
    CHECK_EQ(weir_sem_release(sem, 2), 0);
    CHECK_EQ(weir_sem_wait_idle(sem, WEIR_FOREVER), 0);
}

TEST(the_child_of_a_fork_may_initialise_it_again)
{
    static struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller c[2];
    int status;

    take(&sem, 1);
    queue_up_all(c, 2, &sem, (uint64_t[]){1, 1});
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        use_after_fork(&sem);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    for (int i = 0; i < 2; i++) { /* and the parent has noticed nothing */
        CHECK_EQ(weir_sem_release(&sem, 1), 0);
        CHECK_EQ(result_of(&c[i]), 0);
    }
}

/* ---- acquire and try_acquire ------------------------------------------------- */

TEST(asking_for_nothing_or_for_more_than_the_capacity_is_invalid_at_once)
{
    static const uint64_t never[] = {0, 4, WEIR_SEM_MAX, WEIR_SEM_MAX + 1, UINT64_MAX};
    struct weir_sem sem = WEIR_SEM_INIT(3);

    for (uint64_t held = 0; held <= 3; held += 3) { /* all free, then none */
        if (held > 0)
            take(&sem, held);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(weir_sem_acquire(&sem, never[i], WEIR_FOREVER), WEIR_EINVAL);
            CHECK_EQ(weir_sem_acquire(&sem, never[i], WEIR_NO_WAIT), WEIR_EINVAL);
            CHECK_EQ(weir_sem_try_acquire(&sem, never[i]), WEIR_EINVAL);
        }
        CHECK_EQ(weir_sem_available(&sem), 3 - held);
        CHECK_EQ(weir_sem_waiting(&sem), 0);
    }
}

TEST(try_acquire_takes_what_is_free_and_declines_to_wait)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    CHECK_EQ(weir_sem_try_acquire(&sem, 2), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 2), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
}

/* ---- release ---------------------------------------------------------------- */

TEST(one_large_release_admits_many_small_waiters)
{
    struct weir_sem sem = WEIR_SEM_INIT(8);
    struct caller c[4];

    take(&sem, 8);
    queue_up_all(c, 4, &sem, (uint64_t[]){1, 2, 3, 2});
    CHECK_EQ(weir_sem_release(&sem, 8), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(result_of(&c[i]), 0);
}

TEST(a_release_stops_at_the_first_waiter_that_does_not_fit)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller c[4];

    take(&sem, 4);
    queue_up_all(c, 4, &sem, (uint64_t[]){1, 1, 3, 1});
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_available(&sem), 1); /* it would do for the last one */
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    CHECK_EQ(result_of(&c[2]), 0);
    CHECK_EQ(result_of(&c[3]), 0);
}

TEST(any_thread_may_release)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct caller c = caller_of(&sem, 2);

    test_spawn(call, &c);
    test_join_all();
    CHECK_EQ(c.result, 0);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(weir_sem_available(&sem), 2);
}

TEST(releasing_more_than_is_held_overflows_and_changes_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct caller c = caller_of(&sem, 2);

    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
    take(&sem, 2);
    CHECK_EQ(weir_sem_release(&sem, 3), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_release(&sem, WEIR_SEM_MAX), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_available(&sem), 1);
    queue_up(&c);
    CHECK_EQ(weir_sem_release(&sem, 3), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(result_of(&c), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(releasing_nothing_is_invalid)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    take(&sem, 1);
    CHECK_EQ(weir_sem_release(&sem, 0), WEIR_EINVAL);
    CHECK_EQ(weir_sem_release(&sem, WEIR_SEM_MAX + 1), WEIR_EINVAL);
    CHECK_EQ(weir_sem_release(&sem, UINT64_MAX), WEIR_EINVAL);
    CHECK_EQ(weir_sem_available(&sem), 2);
}

/* ---- wait_idle -------------------------------------------------------------- */

TEST(wait_idle_returns_at_once_when_nothing_is_held_and_takes_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);

    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_FOREVER), 0);
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_NO_WAIT), 0);
    CHECK_EQ(weir_sem_available(&sem), 2);
}

TEST(wait_idle_waits_until_everything_has_come_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct caller idle = caller_of(&sem, UNTIL_IDLE);

    take(&sem, 2);
    queue_up(&idle);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(result_of(&idle), 0);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(wait_idle_gives_up_at_its_deadline)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct caller idle = caller_of(&sem, UNTIL_IDLE), behind = caller_of(&sem, 1);

    take(&sem, 1);
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    queue_up_and_run_out_of_time(&idle);
    queue_up(&behind);
    test_let_go("waitq: about to leave");
    CHECK_EQ(result_of(&idle), WEIR_ETIMEDOUT);
    CHECK_EQ(result_of(&behind), 0); /* who stood behind it is served */
    CHECK_EQ(weir_sem_available(&sem), 0);
}

TEST(wait_idle_goes_behind_those_who_came_before_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);
    struct caller c[2];

    take(&sem, 1);
    queue_up_all(c, 2, &sem, (uint64_t[]){1, UNTIL_IDLE});
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[1]), 0);
}

TEST(wait_idle_goes_before_those_who_came_after_it)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct caller c[3];

    take(&sem, 1);
    queue_up_all(c, 3, &sem, (uint64_t[]){UNTIL_IDLE, 1, UNTIL_IDLE}); /* two are free */
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[2]), 0);
}

TEST(wait_idle_waits_whatever_the_capacity_is_resized_to)
{
    static const uint64_t capacities[] = {8, 3, 1, 2, WEIR_SEM_MAX, 5};
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller idle = caller_of(&sem, UNTIL_IDLE);

    take(&sem, 3);
    queue_up(&idle);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(weir_sem_resize(&sem, capacities[i]), 0);
        CHECK_EQ(weir_sem_waiting(&sem), 1);
    }
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_resize(&sem, 1), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&idle), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
}

TEST(wait_idle_works_on_a_closed_semaphore)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct caller c[2];

    take(&sem, 2);
    weir_sem_close(&sem);
    queue_up_all(c, 2, &sem, (uint64_t[]){UNTIL_IDLE, UNTIL_IDLE});
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(weir_sem_wait_idle(&sem, WEIR_FOREVER), 0);
}

TEST(wait_idle_outlives_a_close_that_sends_the_acquirers_away)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct caller c[5];

    take(&sem, 1);
    queue_up_all(c, 5, &sem, (uint64_t[]){2, UNTIL_IDLE, 1, UNTIL_IDLE, 2});
    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    for (int i = 0; i < 5; i += 2)
        CHECK_EQ(result_of(&c[i]), WEIR_ECLOSED);
    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(result_of(&c[3]), 0);
}

/* ---- resize ----------------------------------------------------------------- */

TEST(growing_serves_waiters_at_once)
{
    struct weir_sem sem = WEIR_SEM_INIT(2);
    struct caller c[3];

    take(&sem, 2);
    queue_up_all(c, 3, &sem, (uint64_t[]){1, 2, 1});
    CHECK_EQ(weir_sem_resize(&sem, 4), 0);
    CHECK_EQ(weir_sem_capacity(&sem), 4);
    CHECK_EQ(weir_sem_waiting(&sem), 2); /* one is free, the next wants two */
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(result_of(&c[0]), 0);
    CHECK_EQ(weir_sem_resize(&sem, 9), 0);
    CHECK_EQ(result_of(&c[1]), 0);
    CHECK_EQ(result_of(&c[2]), 0);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(shrinking_takes_effect_as_permits_come_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);
    struct caller c = caller_of(&sem, 1);

    take(&sem, 4);
    CHECK_EQ(weir_sem_resize(&sem, 2), 0);
    CHECK_EQ(weir_sem_capacity(&sem), 2);
    CHECK_EQ(weir_sem_available(&sem), 0); /* two in debt */
    queue_up(&c);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_waiting(&sem), 1); /* the debt is paid, and nothing is free */
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(weir_sem_available(&sem), 2);
    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
}

TEST(in_debt_nothing_can_be_taken_and_all_that_is_held_given_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(WEIR_SEM_MAX);

    take(&sem, WEIR_SEM_MAX);
    CHECK_EQ(weir_sem_resize(&sem, 1), 0); /* the deepest debt there is */
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_try_acquire(&sem, 1), WEIR_EAGAIN);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_sem_release(&sem, WEIR_SEM_MAX - 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 2), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
}

TEST(growing_again_takes_the_debt_back)
{
    struct weir_sem sem = WEIR_SEM_INIT(4);

    take(&sem, 3);
    CHECK_EQ(weir_sem_resize(&sem, 1), 0);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_resize(&sem, 5), 0);
    CHECK_EQ(weir_sem_available(&sem), 2);
    CHECK_EQ(weir_sem_resize(&sem, 4), 0);
    CHECK_EQ(weir_sem_available(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    CHECK_EQ(weir_sem_available(&sem), 4);
}

TEST(a_queued_request_that_can_never_fit_any_more_gets_einval)
{
    struct weir_sem sem = WEIR_SEM_INIT(5);
    struct caller c[6];

    take(&sem, 2);
    queue_up_all(c, 6, &sem, (uint64_t[]){4, 1, 5, 3, 4, UNTIL_IDLE});
    CHECK_EQ(weir_sem_resize(&sem, 3), 0);
    CHECK_EQ(result_of(&c[0]), WEIR_EINVAL);
    CHECK_EQ(result_of(&c[2]), WEIR_EINVAL);
    CHECK_EQ(result_of(&c[4]), WEIR_EINVAL);
    CHECK_EQ(result_of(&c[1]), 0); /* who stood behind and fits is served */
    CHECK_EQ(weir_sem_waiting(&sem), 2);
    CHECK_EQ(weir_sem_available(&sem), 0);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    CHECK_EQ(result_of(&c[3]), 0);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    CHECK_EQ(result_of(&c[5]), 0);
}

TEST(a_resize_to_nothing_or_too_much_is_invalid_and_changes_nothing)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct caller c = caller_of(&sem, 3);

    take(&sem, 1);
    queue_up(&c);
    CHECK_EQ(weir_sem_resize(&sem, 0), WEIR_EINVAL);
    CHECK_EQ(weir_sem_resize(&sem, WEIR_SEM_MAX + 1), WEIR_EINVAL);
    CHECK_EQ(weir_sem_resize(&sem, UINT64_MAX), WEIR_EINVAL);
    CHECK_EQ(weir_sem_capacity(&sem), 3);
    CHECK_EQ(weir_sem_available(&sem), 2);
    CHECK_EQ(weir_sem_waiting(&sem), 1);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(result_of(&c), 0);
}

/* ---- close ------------------------------------------------------------------ */

TEST(close_wakes_everyone_with_eclosed)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    struct caller c[4];

    take(&sem, 2);
    queue_up_all(c, 4, &sem, (uint64_t[]){3, 1, 1, 2});
    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_waiting(&sem), 0);
    CHECK_EQ(weir_sem_available(&sem), 1); /* nobody took what was free */
    for (int i = 0; i < 4; i++)
        CHECK_EQ(result_of(&c[i]), WEIR_ECLOSED);
}

TEST(after_a_close_acquiring_gives_eclosed_for_ever)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    for (int i = 0; i < 2; i++) {
        weir_sem_close(&sem);
        CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_FOREVER), WEIR_ECLOSED);
        CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_NO_WAIT), WEIR_ECLOSED);
        CHECK_EQ(weir_sem_try_acquire(&sem, 3), WEIR_ECLOSED);
        CHECK_EQ(weir_sem_resize(&sem, 4), 0); /* which does not open it again */
        CHECK_EQ(weir_sem_try_acquire(&sem, 4), WEIR_ECLOSED);
        CHECK_EQ(weir_sem_resize(&sem, 3), 0);
    }
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(permits_may_be_released_after_a_close)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    take(&sem, 3);
    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_release(&sem, 1), 0);
    CHECK_EQ(weir_sem_release(&sem, 3), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_release(&sem, 2), 0);
    CHECK_EQ(weir_sem_available(&sem), 3);
    CHECK_EQ(weir_sem_release(&sem, 1), WEIR_EOVERFLOW);
    CHECK_EQ(weir_sem_acquire(&sem, 1, WEIR_FOREVER), WEIR_ECLOSED);
}

TEST(a_closed_semaphore_may_be_initialised_again)
{
    struct weir_sem sem = WEIR_SEM_INIT(1);

    weir_sem_close(&sem);
    CHECK_EQ(weir_sem_init(&sem, 2), 0);
    CHECK_EQ(weir_sem_acquire(&sem, 2, WEIR_FOREVER), 0);
}

/* ---- WEIR_HOLD -------------------------------------------------------------- */

TEST(a_hold_has_its_permits_for_the_length_of_the_block)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    int runs = 0;

    WEIR_HOLD(&sem, 2) {
        CHECK_EQ(weir_sem_available(&sem), 1);
        runs++;
    }
    CHECK_EQ(runs, 1);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

static void hold_two(void *arg)
{
    struct weir_sem *sem = arg;
    int runs = 0;

    WEIR_HOLD(sem, 2) {
        CHECK_EQ(weir_sem_available(sem), 1);
        runs++;
    }
    CHECK_EQ(runs, 1);
}

TEST(a_hold_waits_for_its_permits)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    take(&sem, 3);
    test_spawn(hold_two, &sem);
    EVENTUALLY(weir_sem_waiting(&sem) == 1);
    CHECK_EQ(weir_sem_release(&sem, 3), 0);
    test_join_all();
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(a_hold_ends_with_break_and_continue)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);
    int reached = 0;

    for (int i = 0; i < 4; i++) {
        WEIR_HOLD(&sem, 3) {
            if (i % 2 == 0)
                break; /* of the hold, not of the loop */
            if (i > 0)
                continue;
            reached = -10;
        }
        CHECK_EQ(weir_sem_available(&sem), 3);
        reached++;
    }
    CHECK_EQ(reached, 4);
}

static int return_from_hold(struct weir_sem *sem)
{
    WEIR_HOLD(sem, 2) {
        return (int)weir_sem_available(sem);
    }
    return -1;
}

TEST(a_hold_ends_with_return)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    CHECK_EQ(return_from_hold(&sem), 1);
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(a_hold_ends_with_goto)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    WEIR_HOLD(&sem, 2) {
        goto out;
    }
    CHECK(false);
out:
    CHECK_EQ(weir_sem_available(&sem), 3);
}

TEST(holds_can_be_nested)
{
    struct weir_sem sem = WEIR_SEM_INIT(6), other = WEIR_SEM_INIT(1);

    WEIR_HOLD(&sem, 1) {
        WEIR_HOLD(&other, 1) {
            WEIR_HOLD(&sem, 2) {
                CHECK_EQ(weir_sem_available(&sem), 3);
                CHECK_EQ(weir_sem_available(&other), 0);
            }
            CHECK_EQ(weir_sem_available(&sem), 5);
        }
        CHECK_EQ(weir_sem_available(&other), 1);
    }
    CHECK_EQ(weir_sem_available(&sem), 6);
}

TEST(a_hold_takes_its_arguments_once)
{
    struct weir_sem sems[2] = {WEIR_SEM_INIT(3), WEIR_SEM_INIT(3)}, *next = sems;
    uint64_t n = 1;

    WEIR_HOLD(next++, n++) {
        CHECK_EQ(weir_sem_available(&sems[0]), 2);
    }
    CHECK_EQ(next - sems, 1);
    CHECK_EQ(n, 2);
    CHECK_EQ(weir_sem_available(&sems[0]), 3);
    CHECK_EQ(weir_sem_available(&sems[1]), 3);
}

TEST(a_hold_that_cannot_have_its_permits_skips_the_block)
{
    struct weir_sem sem = WEIR_SEM_INIT(3);

    take(&sem, 1);
    WEIR_HOLD(&sem, 0) {
        CHECK(false);
    }
    WEIR_HOLD(&sem, 4) {
        CHECK(false);
    }
    weir_sem_close(&sem);
    WEIR_HOLD(&sem, 1) {
        CHECK(false);
    }
    CHECK_EQ(weir_sem_available(&sem), 2); /* and gives nothing back */
}
