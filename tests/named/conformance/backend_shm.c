/* SPDX-License-Identifier: MIT */
/* The column `shm:`, in a directory that each row has for itself. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "named/conformance/world.h"

static const char *directory_of(struct world *w)
{
    return w->uri + strlen("shm:");
}

static void begin(struct world *w)
{
    snprintf(w->uri, sizeof w->uri, "shm:/tmp/weir-conformance-XXXXXX");
    CHECK(mkdtemp(w->uri + strlen("shm:")) != NULL);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    return remove(path);
}

static void end(struct world *w)
{
    CHECK_EQ(nftw(directory_of(w), remove_entry, 4, FTW_DEPTH | FTW_PHYS), 0);
}

const struct backend backend = {
    .begin = begin,
    .end = end,
    .brief_ttl_ns = 40 * WEIR_MS,
    .kept_descriptors = 1, /* of the directory */
};
