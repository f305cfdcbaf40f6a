/* SPDX-License-Identifier: MIT */
#include "named/backend/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "named/why.h"

static struct shm *shm_of_backend(struct backend *b)
{
    return (struct shm *)(void *)b;
}

/* ---- verbs -------------------------------------------------------------------------- */

static int shm_acquire(struct backend *b, const struct name_key *key, struct ask *ask,
                       struct weir_deadline deadline, struct grant *ret)
{
    const struct shm_client *client = &shm_of_backend(b)->client;

    ask->client = client->index;
    ask->life = client->life;
    ask->pid = client->pid;
    return local_acquire(b, key, ask, deadline, ret);
}

/* ---- visiting ------------------------------------------------------------------------ */

/* A file of the directory: the name as we know it, or for the length of the visit. */
static int visit_file(struct shm *shm, const char *file, struct visit *visit)
{
    struct local *local = &shm->local;
    struct shm_name *found;
    int r = shm_name_open(shm, file, &found);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    struct name_key key;
    if (name_key(found->name.text, &key) < 0) {
        shm_unmake(local, &found->name);
        return WEIR_EPROTO;
    }
    name_set_key(&found->name, &key);
    struct name *known = names_find(&local->names, &key);
    if (known && atomic_get(&known->ledger.head->gone)) {
        name_unpin(known); /* ours is of an older file */
        known = NULL;
    }
    struct name *n = known ? known : &found->name;
    local_forget_if_idle(local, n);
    r = local_visit_name(local, n, visit);
    if (known)
        name_unpin(known);
    shm_unmake(local, &found->name);
    return r;
}

static int shm_visit(struct backend *b, int (*each)(const struct weir_name_stats *, void *),
                     void *arg)
{
    struct shm *shm = shm_of_backend(b);
    struct visit visit = {.each = each, .arg = arg};
    int fd = openat(shm_client_directory(&shm->client), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *file;
    int r = 0;

    if (directory == NULL) {
        r = why(-errno, "cannot read the store's directory: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (r == 0 && (file = readdir(directory)))
        if (strncmp(file->d_name, "n-", 2) == 0)
            r = visit_file(shm, file->d_name, &visit);
    closedir(directory);
    mem_free(visit.room);
    return r;
}

/* ---- open and close --------------------------------------------------------------------- */

static uint32_t *bell(struct backend *b)
{
    return shm_bell(&shm_of_backend(b)->client);
}

static void give_back(struct shm *shm, struct name *n)
{
    struct local *local = &shm->local;
    struct news news;

    news_clear(&news);
    if (local->ops->lock(local, n) < 0)
        return; /* our death will do */
    ledger_drop_client(&n->ledger, shm->client.index, clock_real_ns(), &news);
    local_finish(local, n, &news);
}

static void shm_close(struct backend *b, bool forked)
{
    struct shm *shm = shm_of_backend(b);
    struct name *n, *all = names_close(&shm->local.names);

    while ((n = all)) {
        all = n->next;
        if (!forked)
            give_back(shm, n);
        shm_unmake(&shm->local, n);
    }
    shm_client_leave(&shm->client, forked);
    mem_free(shm);
}

static int client_fd(struct backend *b)
{
    return shm_of_backend(b)->client.fd;
}

static const struct backend_ops shm_ops = {
    .acquire = shm_acquire,
    .renew = local_renew,
    .release = local_release,
    .evict = local_evict,
    .resize = local_resize,
    .visit = shm_visit,
    .watch = local_watch,
    .tend = shm_tend,
    .rest = shm_rest,
    .bell = bell,
    .fd = client_fd,
    .close = shm_close,
};

int shm_open_store(const char *directory, const struct weir_store_options *options,
                   struct backend **ret)
{
    struct shm *shm = mem_alloc(sizeof *shm);
    int r = shm ? shm_client_join(directory, &shm->client) : WEIR_ENOMEM;

    if (r < 0) {
        mem_free(shm);
        return r;
    }
    local_init(&shm->local, &shm_local_ops, options);
    shm->local.backend.ops = &shm_ops;
    *ret = &shm->local.backend;
    return 0;
}
