/* SPDX-License-Identifier: MIT */
/* signal - a task that waits for a signal, and stops the program in good order. */
#include <signal.h>
#include <unistd.h>

#include "example.h"

static int serve(void *arg)
{
    (void)arg;
    kill(getpid(), SIGTERM); // somebody wants us to stop
    return weir_task_sleep(weir_within(60 * WEIR_S));
}

// [begin]
static int program(void *arg)
{
    struct weir_task server;

    int r = weir_task_spawn(serve, NULL, &server);
    if (r < 0)
        return r;
    int signo = weir_signal_wait(arg, WEIR_FOREVER);
    if (signo > 0)
        printf("signal %d: the server is to end\n", signo);
    weir_task_cancel(server);
    return weir_task_join(server, WEIR_FOREVER, NULL);
}

int main(void)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, NULL); // before all threads
    return weir_run(NULL, program, &stop) < 0;
}
// [end]
