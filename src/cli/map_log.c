/* SPDX-License-Identifier: MIT */
#include "cli/map_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/map_bar.h"
#include "cli/say.h"

static _Noreturn void fail_file(const char *verb, const char *path)
{
    int error = errno;

    bar_hide();
    fail(EXIT_WEIR, "cannot %s %s: %s", verb, path, strerror(error));
}

static void write_or_fail(int fd, const char *path, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);

        if (written < 0 && errno != EINTR)
            fail_file("write", path);
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
}

/* ---- what succeeded before -------------------------------------------------------------- */

enum { NUMBER_MAX = 1 << 30 };

/* By the number of the job: a hash of its command; 0: it has not succeeded.  Eight bytes a
 * job, where the commands themselves would be a hundred. */
static uint64_t *succeeded;
static size_t succeeded_count;

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash | 1;
}

static void remember(uint64_t number, uint64_t hash)
{
    if (number >= succeeded_count) {
        size_t wanted = succeeded_count ? succeeded_count : 1024;

        while (wanted <= number)
            wanted *= 2;
        succeeded = must_resize(succeeded, wanted * sizeof *succeeded);
        memset(succeeded + succeeded_count, 0, (wanted - succeeded_count) * sizeof *succeeded);
        succeeded_count = wanted;
    }
    succeeded[number] = hash;
}

/* Seq Host Starttime JobRuntime Send Receive Exitval Signal Command */
static void read_line(char *line)
{
    char *column[9];

    for (int i = 0; i < 9; i++) {
        column[i] = line;
        line += strcspn(line, i < 8 ? "\t" : "\n");
        if (*line)
            *line++ = '\0';
    }
    long long number = atoll(column[0]);
    if (number < 1 || number > NUMBER_MAX || !*column[6] || !*column[7])
        return; /* the heading, or cut off */
    bool success = strcmp(column[6], "0") == 0 && strcmp(column[7], "0") == 0;
    remember((uint64_t)number, success ? hash_of(column[8], strlen(column[8])) : 0);
}

void log_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;

    if (file == NULL && errno == ENOENT)
        return; /* then this is the first time */
    if (file == NULL)
        fail_file("read", path);
    while (getline(&line, &capacity, file) > 0)
        read_line(line);
    free(line);
    fclose(file);
}

/* A line of the log is one line. */
static void flatten(struct buffer *to, const struct buffer *command)
{
    for (size_t i = 0; i < command->length; i++) {
        char c = command->at[i];

        if (c == '\n')
            buffer_add_text(to, "\\n");
        else if (c == '\t')
            buffer_add_text(to, "\\t");
        else
            buffer_add_byte(to, c);
    }
}

static struct buffer flat;

bool log_has_success(uint64_t number, const struct buffer *command, bool any_command)
{
    if (number >= succeeded_count || succeeded[number] == 0)
        return false;
    flat.length = 0;
    flatten(&flat, command);
    return any_command || succeeded[number] == hash_of(flat.at, flat.length);
}

/* ---- the log ------------------------------------------------------------------------------- */

static const char heading[] =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
static int log_fd = -1;
static const char *log_path;

static char last_byte(const char *path, off_t size)
{
    char byte = '\n';
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || pread(fd, &byte, 1, size - 1) != 1)
        byte = '\n';
    if (fd >= 0)
        close(fd);
    return byte;
}

void log_open(const char *path, bool append)
{
    struct stat info;

    log_path = path;
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
    if (log_fd < 0 || fstat(log_fd, &info) < 0)
        fail_file("write", path);
    if (info.st_size == 0)
        write_or_fail(log_fd, path, heading, sizeof heading - 1);
    else if (S_ISREG(info.st_mode) && last_byte(path, info.st_size) != '\n')
        write_or_fail(log_fd, path, "\n", 1); /* whoever wrote it was killed */
}

void log_job(const struct job *job, int exit_value, int signal, const struct buffer *command)
{
    char text[160];

    if (log_fd < 0)
        return;
    int length = snprintf(text, sizeof text, "%llu\t:\t%.3f\t%10.3f\t0\t%llu\t%d\t%d\t",
                          (unsigned long long)job->number, (double)job->started_real_ns / 1e9,
                          (double)(job->ended_ns - job->started_ns) / 1e9,
                          (unsigned long long)job->output_bytes, exit_value, signal);
    flat.length = 0;
    buffer_add(&flat, text, (size_t)length);
    flatten(&flat, command);
    buffer_add_byte(&flat, '\n');
    write_or_fail(log_fd, log_path, flat.at, flat.length);
}

/* ---- results ---------------------------------------------------------------------------------- */

static int results_fd = -1;
static const char *results_path;

void results_open(const char *directory)
{
    results_path = directory;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        fail_file("make", directory);
    results_fd = open(directory, O_DIRECTORY | O_PATH | O_CLOEXEC);
    if (results_fd < 0)
        fail_file("use", directory);
}

static int open_result(const struct job *job, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "%llu/%s", (unsigned long long)job->number, name);
    int fd = openat(results_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fail_file("write into", results_path);
    return fd;
}

static void write_result(const struct job *job, const char *name, const char *text, size_t length)
{
    int fd = open_result(job, name);

    write_or_fail(fd, results_path, text, length);
    write_or_fail(fd, results_path, "\n", 1);
    close(fd);
}

void results_begin(struct job *job, const struct buffer *command)
{
    char name[24];

    job->copy_fd[0] = job->copy_fd[1] = -1;
    if (results_fd < 0)
        return;
    snprintf(name, sizeof name, "%llu", (unsigned long long)job->number);
    if (mkdirat(results_fd, name, 0777) < 0 && errno != EEXIST)
        fail_file("write into", results_path);
    write_result(job, "command", command->at, command->length);
    job->copy_fd[0] = open_result(job, "stdout");
    job->copy_fd[1] = open_result(job, "stderr");
}

void results_add(const struct job *job, int stream, const char *bytes, size_t length)
{
    if (job->copy_fd[stream] >= 0)
        write_or_fail(job->copy_fd[stream], results_path, bytes, length);
}

void results_end(struct job *job, int exit_status)
{
    char text[16];

    if (job->copy_fd[0] < 0)
        return;
    close(job->copy_fd[0]);
    close(job->copy_fd[1]);
    job->copy_fd[0] = job->copy_fd[1] = -1;
    int length = snprintf(text, sizeof text, "%d", exit_status);
    write_result(job, "status", text, (size_t)length);
}
