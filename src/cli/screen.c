/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weir/time.h>

#include "cli/say.h"

bool colour_is_wanted(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return (no == NULL || *no == '\0') && term && *term && strcmp(term, "dumb") != 0;
}

struct screen screen_now(void)
{
    struct winsize size = {.ws_col = 0};

    if (!isatty(STDOUT_FILENO))
        return (struct screen){.terminal = false};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return (struct screen){
        .terminal = true,
        .width = size.ws_col ? size.ws_col : 80, /* a serial line does not know */
        .height = size.ws_row ? size.ws_row : 24,
        .colour = colour_is_wanted(),
    };
}

/* ---- signals -------------------------------------------------------------------------- */

static int over[2] = {-1, -1}; /* a pipe: something can be read from it when it is over */
static volatile sig_atomic_t caught;

static void on_signal(int signo)
{
    int saved = errno;

    caught = signo;
    ssize_t written = write(over[1], "", 1);
    (void)written; /* full: then it has been said */
    errno = saved;
}

/* Without SA_RESTART, so that a write to somebody who does not read ends, too. */
static void catch_signal(int signo)
{
    struct sigaction now = {.sa_handler = on_signal}, before;

    if (sigaction(signo, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(signo, &now, NULL);
}

void screen_watch(void)
{
    if (pipe2(over, O_CLOEXEC | O_NONBLOCK) < 0)
        fail(EXIT_WEIR, "cannot make a pipe: %s", strerror(errno));
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
    catch_signal(SIGHUP);
}

bool screen_is_over(void)
{
    return caught;
}

static int milliseconds_until(int64_t until_ns)
{
    int64_t left_ns = until_ns - weir_now_ns();

    if (left_ns <= 0)
        return 0;
    return left_ns > 3600 * WEIR_S ? 3600 * 1000 : (int)((left_ns + WEIR_MS - 1) / WEIR_MS);
}

enum screen_event screen_wait(int fd, int64_t until_ns)
{
    struct pollfd fds[] = {{.fd = over[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    for (;;) {
        int ready = poll(fds, 2, milliseconds_until(until_ns));

        if (caught || (ready > 0 && fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)))
            return SCREEN_OVER; /* the terminal is gone, too */
        if (ready > 0 || (ready < 0 && fd >= 0))
            return SCREEN_INPUT;
        if (weir_now_ns() >= until_ns)
            return SCREEN_TIME;
    }
}
