/* SPDX-License-Identifier: MIT */
#include "cli/map_bar.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weir/time.h>

#include "cli/units.h"

enum { EVERY_MS = 100, BAR_MOST = 30, LINE_MOST = 200 };

static struct {
    bool open, visible;
    int64_t begun_ns, next_ns;
} bar;

void bar_open(void)
{
    bar.open = true;
    bar.begun_ns = weir_now_ns();
    bar.next_ns = bar.begun_ns + EVERY_MS * WEIR_MS; /* what is over by then needs none */
}

bool bar_is_open(void)
{
    return bar.open;
}

static void print(const char *text, size_t length)
{
    ssize_t written = write(STDERR_FILENO, text, length);

    (void)written; /* it is drawn again soon */
}

void bar_hide(void)
{
    if (bar.visible)
        print("\r\033[K", 4);
    bar.visible = false;
}

static size_t columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 10)
        return 79;
    return size.ws_col - 1u < LINE_MOST ? size.ws_col - 1u : LINE_MOST; /* the last one wraps */
}

/* "423/1000 42% [############..................] " or "423 done " */
static size_t put_share(const struct bar_numbers *n, char *line, size_t bytes)
{
    char blocks[BAR_MOST + 1];

    if (n->total == 0)
        return (size_t)snprintf(line, bytes, "%llu done", (unsigned long long)n->done);
    uint64_t done = n->done < n->total ? n->done : n->total;
    memset(blocks, '.', BAR_MOST);
    memset(blocks, '#', (size_t)(done * BAR_MOST / n->total));
    blocks[BAR_MOST] = '\0';
    return (size_t)snprintf(line, bytes, "%llu/%llu %llu%% [%s]", (unsigned long long)n->done,
                            (unsigned long long)n->total,
                            (unsigned long long)(done * 100 / n->total), blocks);
}

static size_t put_rest(const struct bar_numbers *n, double seconds, char *line, size_t bytes)
{
    double rate = (double)n->done / seconds;
    char left[DURATION_BYTES + 8] = "", failed[32] = "", text[DURATION_BYTES];

    if (n->failed)
        snprintf(failed, sizeof failed, ", %llu failed", (unsigned long long)n->failed);
    if (n->ending)
        snprintf(left, sizeof left, ", ending");
    else if (n->total > n->done && n->done)
        snprintf(left, sizeof left, ", %s left",
                 print_duration((int64_t)((double)(n->total - n->done) / rate * 1e9), text));
    return (size_t)snprintf(line, bytes, " %.*f/s, %llu running%s%s", rate < 10 ? 1 : 0, rate,
                            (unsigned long long)n->running, failed, left);
}

int64_t bar_draw(const struct bar_numbers *numbers)
{
    char line[LINE_MOST * 2] = "\r";
    size_t at = 1;
    int64_t now_ns = bar.open ? weir_now_ns() : 0;

    if (!bar.open)
        return INT64_MAX;
    if (now_ns < bar.next_ns)
        return bar.next_ns;
    size_t most = columns() + 1;
    bar.next_ns = now_ns + EVERY_MS * WEIR_MS;
    at += put_share(numbers, line + at, LINE_MOST);
    at += put_rest(numbers, (double)(now_ns - bar.begun_ns) / 1e9, line + at, LINE_MOST);
    at = at < most ? at : most;
    at += (size_t)snprintf(line + at, sizeof line - at, "\033[K");
    print(line, at);
    bar.visible = true;
    return bar.next_ns;
}
