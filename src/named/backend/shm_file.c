/* SPDX-License-Identifier: MIT */
#include "named/backend/shm_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/error.h>

#include "base/testpoint.h"
#include "named/why.h"

/* ---- the directory ----------------------------------------------------------------- */

static int refuse_directory(const char *path, const struct stat *st)
{
    if (st->st_uid != geteuid())
        return why(WEIR_EPERM, "%s belongs to user %u, not to us", path, (unsigned)st->st_uid);
    if (st->st_mode & 022)
        return why(WEIR_EPERM, "%s can be written by others: chmod go-w it", path);
    return 0;
}

/* Without slashes at its end: with one, the kernel would follow a symbolic link. */
static int path_of(const char *given, char path[PATH_MAX])
{
    int length = given ? snprintf(path, PATH_MAX, "%s", given)
                       : snprintf(path, PATH_MAX, "/dev/shm/weir-%u", (unsigned)geteuid());

    if (length >= PATH_MAX)
        return why(-ENAMETOOLONG, "the path of the store's directory is too long");
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    return 0;
}

int shm_directory_open(const char *given)
{
    char path[PATH_MAX];
    struct stat st;

    if (path_of(given, path) < 0)
        return -ENAMETOOLONG;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return why(-errno, "cannot make the store's directory %s: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return why(-errno, "cannot open the store's directory %s: %s", path, strerror(errno));
    int r = fstat(fd, &st) < 0 ? -errno : refuse_directory(path, &st);
    if (r < 0) {
        close(fd);
        return r;
    }
    return fd;
}

/* ---- making a file -------------------------------------------------------------------- */

/* By the descriptor's own path; where there is no /proc, directly, which needs a privilege
 * or a newer kernel. */
static int give_name(int fd, int directory, const char *file)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, directory, file, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno == ENOENT && linkat(fd, "", directory, file, AT_EMPTY_PATH) == 0)
        return 0;
    return -errno;
}

static int fill_file(int fd, const struct shm_format *format, const void *fill_arg)
{
    /* Room for all of it now: a write to a mapping that finds none is a signal. */
    int r = posix_fallocate(fd, 0, (off_t)format->bytes);
    if (r != 0)
        return -r;
    void *memory = shm_file_map(fd, format->bytes);
    if (memory == NULL)
        return -errno;
    *(struct shm_start *)memory = (struct shm_start){.magic = format->magic,
                                                     .version = format->version,
                                                     .bytes_of_start = sizeof(struct shm_start)};
    format->fill(memory, fill_arg);
    munmap(memory, format->bytes);
    return 0;
}

static int make_file(int directory, const char *file, const struct shm_format *format,
                     const void *fill_arg)
{
    int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fill_file(fd, format, fill_arg);

    if (r == 0) {
        TESTPOINT("shm: a file is made and has no name");
        r = give_name(fd, directory, file);
    }
    if (fd >= 0)
        close(fd);
    if (r == 0 || r == -EEXIST)
        return 0; /* somebody else's is as good */
    return why(r, "cannot make a file in the store's directory: %s", strerror(-r));
}

/* ---- opening one ------------------------------------------------------------------------- */

static int refuse_file(int fd, const char *file, const struct shm_format *format)
{
    struct shm_start start;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return why(WEIR_EPROTO, "%s in the store's directory is not a file", file);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return why(WEIR_EPERM, "%s in the store's directory can be written by others", file);
    if ((size_t)st.st_size < format->bytes ||
        pread(fd, &start, sizeof start, 0) != (ssize_t)sizeof start)
        return why(WEIR_EPROTO, "%s in the store's directory has been cut short", file);
    if (start.magic != format->magic)
        return why(WEIR_EPROTO, "%s in the store's directory is not weir's", file);
    if (start.version != format->version)
        return why(WEIR_EPROTO, "%s in the store's directory is of version %u, we are of %u", file,
                   start.version, format->version);
    return 0;
}

int shm_file_open(int directory, const char *file, const struct shm_format *format,
                  const void *fill_arg)
{
    for (;;) {
        int fd = openat(directory, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        int r = fd < 0 ? -errno : refuse_file(fd, file, format);

        if (r == 0)
            return fd;
        if (fd >= 0) {
            close(fd);
            return r;
        }
        if (r != -ENOENT)
            return why(r, "cannot open %s in the store's directory: %s", file, strerror(-r));
        if (fill_arg == NULL)
            return r;
        r = make_file(directory, file, format, fill_arg);
        if (r < 0)
            return r;
    }
}

void *shm_file_map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}
