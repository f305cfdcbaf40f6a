/* SPDX-License-Identifier: MIT */
/* lease - one process of the machine at a time, also when one of them is killed. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

static char uri[] = "shm:/tmp/weir-example-XXXXXX"; /* "shm:" is for all of a user */

/* What is guarded.  It has heard the token of the last holder, and listens to no earlier. */
static int printer_take(uint64_t token, const char *text)
{
    static uint64_t last_token;

    if (token < last_token)
        return WEIR_ENOTHELD;
    last_token = token;
    printf("printed: %s\n", text);
    return 0;
}

// [begin]
static int print(struct weir_store *store, const char *text)
{
    struct weir_lease_request ask = {.name = "printer", .limit = 1};
    struct weir_deadline end = weir_within(10 * WEIR_S);
    struct weir_lease lease;
    int r = weir_lease_acquire(store, &ask, end, &lease);

    if (r < 0)
        return r; // weir_store_why() may know more

    r = printer_take(lease.token, text); // refuses who is late
    weir_lease_release(store, "printer", lease.id);
    return r;
}
// [end]

/* Another process takes the printer, says so, and keeps it. */
static pid_t start_hog(int says)
{
    struct weir_lease_request ask = {.name = "printer", .limit = 1};
    struct weir_lease lease;
    struct weir_store *store;
    pid_t pid = fork();

    MUST(pid >= 0);
    if (pid > 0)
        return pid;
    MUST(weir_store_open(uri, NULL, &store) == 0);
    MUST(weir_lease_acquire(store, &ask, WEIR_FOREVER, &lease) == 0);
    MUST(write(says, &lease, sizeof lease) == sizeof lease);
    for (;;)
        pause();
}

static void remove_store(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -r %s", uri + strlen("shm:"));
    MUST(system(command) == 0);
}

int main(void)
{
    struct weir_lease_request ask = {.name = "printer", .limit = 1};
    struct weir_store *store;
    struct weir_lease hogs, mine;
    int ends[2];

    MUST(mkdtemp(uri + strlen("shm:")) != NULL && pipe(ends) == 0);
    pid_t hog = start_hog(ends[1]);
    MUST(weir_store_open(uri, NULL, &store) == 0);
    MUST(read(ends[0], &hogs, sizeof hogs) == sizeof hogs);
    MUST(weir_lease_acquire(store, &ask, WEIR_NO_WAIT, &mine) == WEIR_ETIMEDOUT);
    puts("another process has the printer");
    MUST(kill(hog, SIGKILL) == 0);
    puts("killed it");
    MUST(print(store, "hello") == 0);
    printf("what it still sends: %s\n", weir_strerror(printer_take(hogs.token, "late")));
    MUST(waitpid(hog, NULL, 0) == hog);
    weir_store_close(store);
    remove_store();
    return 0;
}
