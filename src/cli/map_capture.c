/* SPDX-License-Identifier: MIT */
#include "cli/map_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/map_bar.h"
#include "cli/say.h"

enum {
    LEAST_BYTES = 4096,
    MOST_BYTES = 1024 * 1024,   /* in memory, of one capture      */
    BUDGET_BYTES = 8192 * 1024, /* and of all of them             */
    KEEP_BYTES = 64 * 1024,     /* for the next job in the record */
};

static size_t budget_used;

/* ---- the spool ------------------------------------------------------------------------- */

static struct {
    int fd;        /* 0: not opened yet                 */
    off_t end;     /* nothing is stored from here on    */
    size_t stored; /* bytes of extents that are in use  */
} spool;

static _Noreturn void spool_failed(const char *directory)
{
    int error = errno;

    bar_hide();
    fail(EXIT_WEIR, "cannot keep the output of jobs in %s: %s; TMPDIR=... names another place",
         directory, strerror(error));
}

static const char *spool_directory(void)
{
    const char *directory = getenv("TMPDIR");

    return directory && *directory ? directory : "/tmp";
}

/* O_TMPFILE is not on every file system. */
static int open_unlinked(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    struct buffer path = {0};
    buffer_add_text(&path, directory);
    buffer_add(&path, "/weir-XXXXXX", sizeof "/weir-XXXXXX");
    fd = mkostemp(path.at, O_CLOEXEC);
    if (fd >= 0)
        unlink(path.at);
    free(path.at);
    return fd;
}

static void spool_write(const char *bytes, size_t length)
{
    if (spool.fd == 0)
        spool.fd = open_unlinked(spool_directory());
    if (spool.fd < 0)
        spool_failed(spool_directory());
    for (size_t done = 0; done < length;) {
        ssize_t written = pwrite(spool.fd, bytes + done, length - done, spool.end + (off_t)done);

        if (written < 0 && errno != EINTR)
            spool_failed(spool_directory());
        done += written > 0 ? (size_t)written : 0;
    }
    spool.end += (off_t)length;
    spool.stored += length;
}

static void spool_read(off_t offset, char *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(spool.fd, bytes + done, length - done, offset + (off_t)done);

        if (got == 0 || (got < 0 && errno != EINTR))
            spool_failed(spool_directory());
        done += got > 0 ? (size_t)got : 0;
    }
}

static void spool_drop(const struct extent *e)
{
    spool.stored -= e->length;
    if (spool.stored) {
        fallocate(spool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, e->offset,
                  (off_t)e->length);
        return;
    }
    spool.end = 0;
    if (ftruncate(spool.fd, 0) < 0)
        spool_failed(spool_directory());
}

/* ---- memory ------------------------------------------------------------------------------- */

static void set_memory(struct capture *c, size_t bytes)
{
    budget_used += bytes - c->memory.capacity;
    if (bytes) {
        c->memory.at = must_resize(c->memory.at, bytes);
    } else {
        free(c->memory.at);
        c->memory.at = NULL;
    }
    c->memory.capacity = bytes;
}

static void add_extent(struct capture *c, struct extent e)
{
    struct extent *last = c->count ? &c->extents[c->count - 1] : NULL;

    if (last && last->offset + (off_t)last->length == e.offset) {
        last->length += e.length;
        return;
    }
    if (c->extents == NULL || c->count == c->capacity) {
        c->capacity = c->capacity ? c->capacity * 2 : 8;
        c->extents = must_resize(c->extents, c->capacity * sizeof *c->extents);
    }
    c->extents[c->count++] = e;
}

static void to_spool(struct capture *c)
{
    off_t offset = spool.end;

    if (c->memory.length == 0)
        return;
    spool_write(c->memory.at, c->memory.length);
    add_extent(c, (struct extent){offset, c->memory.length});
    c->memory.length = 0;
}

static void make_room(struct capture *c)
{
    size_t bytes = c->memory.capacity;

    if (c->memory.length < bytes)
        return;
    if (bytes == 0)
        set_memory(c, LEAST_BYTES);
    else if (bytes < MOST_BYTES && budget_used + bytes <= BUDGET_BYTES)
        set_memory(c, bytes * 2);
    else
        to_spool(c);
}

ssize_t capture_read(struct capture *c, int fd)
{
    make_room(c);
    ssize_t got = read(fd, c->memory.at + c->memory.length, c->memory.capacity - c->memory.length);

    c->memory.length += got > 0 ? (size_t)got : 0;
    return got;
}

static void take_extent(const struct extent *e,
                        void (*sink)(void *arg, const char *bytes, size_t length), void *arg)
{
    static char bytes[64 * 1024];

    for (size_t done = 0; done < e->length;) {
        size_t length = e->length - done < sizeof bytes ? e->length - done : sizeof bytes;

        spool_read(e->offset + (off_t)done, bytes, length);
        sink(arg, bytes, length);
        done += length;
    }
}

void capture_take(struct capture *c, size_t keep,
                  void (*sink)(void *arg, const char *bytes, size_t length), void *arg)
{
    size_t length = c->memory.length - keep;

    for (size_t i = 0; i < c->count; i++) {
        take_extent(&c->extents[i], sink, arg);
        spool_drop(&c->extents[i]);
    }
    c->count = 0;
    if (length)
        sink(arg, c->memory.at, length);
    if (keep)
        memmove(c->memory.at, c->memory.at + length, keep);
    c->memory.length = keep;
    if (c->memory.capacity > KEEP_BYTES && keep == 0)
        set_memory(c, 0);
}

void capture_forget(struct capture *c)
{
    for (size_t i = 0; i < c->count; i++)
        spool_drop(&c->extents[i]);
    c->count = 0;
    c->memory.length = 0;
}

void capture_settle(struct capture *c)
{
    if (budget_used > BUDGET_BYTES / 2)
        to_spool(c);
    if (c->memory.length < c->memory.capacity)
        set_memory(c, c->memory.length);
}
