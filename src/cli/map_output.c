/* SPDX-License-Identifier: MIT */
#include "cli/map_output.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAGE_BYTES = 64 * 1024 };

static struct output_options options;
static int error;
static bool is_file[2]; /* which never blocks for long */

/* Lines with something put in front are put together here. */
static struct buffer staged;
static int staged_fd = STDOUT_FILENO;

void output_open(const struct output_options *o)
{
    struct stat info;

    options = *o;
    for (int i = 0; i < 2; i++)
        is_file[i] = fstat(STDOUT_FILENO + i, &info) == 0 && S_ISREG(info.st_mode);
}

int output_error(void)
{
    return error;
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* A pipe that can be written to takes PIPE_BUF bytes at once. */
static size_t write_some(int fd, const char *bytes, size_t length)
{
    bool file = is_file[fd - STDOUT_FILENO];

    if (!file && !options.until_writable(fd)) {
        error = ECANCELED;
        return 0;
    }
    ssize_t written = write(fd, bytes, file || length < PIPE_BUF ? length : PIPE_BUF);
    if (written < 0 && errno != EINTR && errno != EAGAIN)
        error = errno;
    return written > 0 ? (size_t)written : 0;
}

static void write_all(int fd, const char *bytes, size_t length)
{
    if (length && error == 0)
        options.before();
    while (length && error == 0) {
        size_t written = write_some(fd, bytes, length);

        bytes += written;
        length -= written;
    }
}

/* ---- lines --------------------------------------------------------------------------------- */

void output_flush(void)
{
    write_all(staged_fd, staged.at, staged.length);
    staged.length = 0;
}

static void stage(const char *bytes, size_t length)
{
    if (staged.length + length > STAGE_BYTES)
        output_flush();
    if (length > STAGE_BYTES)
        write_all(staged_fd, bytes, length);
    else
        buffer_add(&staged, bytes, length);
}

void output_line(const char *text, size_t length)
{
    stage(text, length);
    stage("\n", 1);
}

static void stage_tag(const struct job *job)
{
    const char *item = job->items.text.at;

    for (size_t i = 0; i < job->items.count; i++) {
        if (i)
            stage(" ", 1);
        stage(item, strlen(item));
        item += strlen(item) + 1;
    }
    stage("\t", 1);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct place {
    struct job *job;
    int stream;
};

static void show_tagged(struct job *job, int stream, const char *bytes, size_t length)
{
    for (const char *end = bytes + length; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t line = (size_t)((newline ? newline + 1 : end) - bytes);

        if (!job->in_line[stream])
            stage_tag(job);
        stage(bytes, line);
        job->in_line[stream] = newline == NULL;
        bytes += line;
    }
}

static void show(void *arg, const char *bytes, size_t length)
{
    const struct place *place = arg;

    if (options.tag) {
        show_tagged(place->job, place->stream, bytes, length);
        return;
    }
    place->job->in_line[place->stream] = bytes[length - 1] != '\n';
    write_all(STDOUT_FILENO + place->stream, bytes, length);
}

void output_lines(struct job *job, int stream, size_t keep)
{
    struct place place = {job, stream};

    staged_fd = STDOUT_FILENO + stream;
    capture_take(&job->output[stream], keep, show, &place);
    output_flush();
}

void output_all(struct job *job, int stream)
{
    output_lines(job, stream, 0);
    if (options.whole_lines && job->in_line[stream])
        write_all(STDOUT_FILENO + stream, "\n", 1);
    job->in_line[stream] = false;
}
