/* SPDX-License-Identifier: MIT */
/* shm_file - the directory of a store and the files in it: created whole, trusted only when
 * they are ours. */
#ifndef WEIR_NAMED_BACKEND_SHM_FILE_H
#define WEIR_NAMED_BACKEND_SHM_FILE_H

#include <stddef.h>

/* Open the directory, making it if it is not there.  NULL: the one of this user.  Returns a
 * descriptor, or an error and its sentence. */
int shm_directory_open(const char *given);

/* What a file must be to be one of ours. */
struct shm_format {
    unsigned long long magic;
    unsigned version;
    size_t bytes;                                /* of a new one, and at least          */
    void (*fill)(void *memory, const void *arg); /* a new one, zeroed but for the start */
};

/* Every file begins with this. */
struct shm_start {
    unsigned long long magic;
    unsigned version, bytes_of_start;
};

/* Open a file; if `fill_arg` is not NULL, make it when it is not there.  Nobody ever sees it
 * half made.  Returns a descriptor, -ENOENT, or an error and its sentence. */
int shm_file_open(int directory, const char *file, const struct shm_format *format,
                  const void *fill_arg);

/* Map `bytes` of it, which may be more than it has.  NULL: no. */
void *shm_file_map(int fd, size_t bytes);

#endif
