/* SPDX-License-Identifier: MIT */
/* What can be wrong with a directory and its files, and what can run out: an error code and
 * a sentence each, and nothing is lost. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "crash/arena.h"
#include "named/backend/shm.h"

/* ---- helpers ---------------------------------------------------------------------------- */

/* Such an error, and a sentence with such a word in it. */
static void check_refused(int r, int want, const char *word)
{
    if (r != want || strstr(weir_store_why(), word) == NULL)
        test_fail(__FILE__, __LINE__, "got %d (%s; %s), want %d and \"%s\"", r, weir_strerror(r),
                  weir_store_why(), want, word);
}

static int descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    CHECK(directory != NULL);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* It cannot be opened, and nothing is left of the attempt. */
static void check_not_opened(const char *uri, int want, const char *word)
{
    struct weir_store *store;
    int before = descriptors();

    check_refused(weir_store_open(uri, NULL, &store), want, word);
    CHECK_EQ(descriptors(), before);
}

static int try_to_take(struct weir_store *store, const char *name, uint64_t limit)
{
    struct weir_lease_request request = {.name = name, .limit = limit};
    struct weir_lease lease;

    return weir_lease_acquire(store, &request, WEIR_NO_WAIT, &lease);
}

/* A name cannot be used, in a store of its own. */
static void check_not_taken(struct arena *a, const char *name, int want, const char *word)
{
    struct weir_store *store = arena_open(a);
    int before = descriptors();

    check_refused(try_to_take(store, name, 2), want, word);
    CHECK_EQ(descriptors(), before);
    weir_store_close(store);
}

/* An arena with a name that was used, and nobody in it. */
static void arena_begin_used(struct arena *a)
{
    arena_begin(a);
    arena_check(a, "n", 2);
    weir_store_close(a->store);
    a->store = NULL;
}

/* Where the only name's file is, or the one of the clients. */
static void path_in(const struct arena *a, const char *file, char path[128])
{
    snprintf(path, 128, "%s/%.60s", arena_directory(a), file);
}

static void path_of_name(const struct arena *a, char path[128])
{
    DIR *directory = opendir(arena_directory(a));
    struct dirent *file;

    CHECK(directory != NULL);
    while ((file = readdir(directory)) && strncmp(file->d_name, "n-", 2) != 0)
        ;
    CHECK(file != NULL);
    path_in(a, file->d_name, path);
    closedir(directory);
}

static void overwrite(const char *path, off_t at, uint32_t value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, &value, sizeof value, at), sizeof value);
    close(fd);
}

/* ---- the place -------------------------------------------------------------------------- */

TEST(where_there_is_no_place_for_a_directory_the_kernel_says_so)
{
    check_not_opened("shm:/nonexistent/x", -ENOENT, "/nonexistent/x");
    check_not_opened("shm:/dev/null/x", -ENOTDIR, "/dev/null/x");
    check_not_opened("shm:/dev/null", -ENOTDIR, "/dev/null");
}

TEST(a_directory_of_somebody_else_is_refused)
{
    struct arena a;

    SKIP_IF(geteuid() != 0, "only root can give a directory away");
    arena_begin_used(&a);
    CHECK_EQ(chown(arena_directory(&a), 12345, (gid_t)-1), 0);
    check_not_opened(a.uri, WEIR_EPERM, "12345");
    CHECK_EQ(chown(arena_directory(&a), 0, (gid_t)-1), 0);
    arena_end(&a);
}

TEST(a_directory_that_others_can_write_is_refused)
{
    struct arena a;

    arena_begin_used(&a);
    CHECK_EQ(chmod(arena_directory(&a), 0777), 0);
    check_not_opened(a.uri, WEIR_EPERM, "chmod");
    CHECK_EQ(chmod(arena_directory(&a), 0770), 0);
    check_not_opened(a.uri, WEIR_EPERM, "chmod");
    CHECK_EQ(chmod(arena_directory(&a), 0755), 0);
    weir_store_close(arena_open(&a));
    arena_end(&a);
}

TEST(a_symbolic_link_is_no_directory)
{
    char link[128], uri[160];
    struct weir_store *store;
    struct arena a;

    arena_begin_used(&a);
    path_in(&a, "link", link);
    CHECK_EQ(symlink(arena_directory(&a), link), 0);
    snprintf(uri, sizeof uri, "shm:%s", link);
    check_not_opened(uri, -ENOTDIR, link);
    strcat(uri, "/"); /* which the kernel takes for what is behind the link */
    CHECK(weir_store_open(uri, NULL, &store) < 0);
    CHECK(strstr(weir_store_why(), link) != NULL);
    arena_end(&a);
}

/* Who is inside stays inside; who comes later finds another place. */
TEST(after_its_directory_was_removed_a_store_keeps_the_names_it_knows)
{
    char clients[128], name[128];
    struct arena a;

    arena_begin(&a);
    struct weir_lease lease = arena_take(&a, a.store, "n", 2);
    path_in(&a, "clients", clients);
    path_of_name(&a, name);
    CHECK_EQ(unlink(clients) + unlink(name) + rmdir(arena_directory(&a)), 0);

    CHECK_EQ(try_to_take(a.store, "n", 2), 0);
    CHECK_EQ(try_to_take(a.store, "n", 2), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_lease_release(a.store, "n", lease.id), 0);
    check_refused(try_to_take(a.store, "m", 2), -ENOENT, "directory");

    struct weir_store *store = arena_open(&a);
    for (int i = 0; i < 2; i++)
        arena_take(&a, store, "n", 2); /* tokens go on growing */
    weir_store_close(store);
    arena_end(&a);
}

/* ---- the files ----------------------------------------------------------------------------- */

/* Both kinds of file, spoilt by `spoil`, are refused; and good again after `mend`. */
static void check_files(void (*spoil)(const char *path), void (*mend)(const char *path), int want,
                        const char *word)
{
    char clients[128], name[128];
    struct arena a;

    arena_begin_used(&a);
    path_in(&a, "clients", clients);
    path_of_name(&a, name);
    spoil(clients);
    check_not_opened(a.uri, want, word);
    mend(clients);
    spoil(name);
    check_not_taken(&a, "n", want, word);
    CHECK_EQ(try_to_take(a.store = arena_open(&a), "m", 2), 0);
    mend(name);
    arena_check(&a, "n", 2);
    arena_end(&a);
}

static void strike_magic(const char *path)
{
    overwrite(path, offsetof(struct shm_start, magic), 0x6C696E75);
}

static uint32_t lower_magic;

static void strike_magic_and_remember(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    CHECK_EQ(pread(fd, &lower_magic, sizeof lower_magic, 0), sizeof lower_magic);
    close(fd);
    strike_magic(path);
}

static void mend_magic(const char *path)
{
    overwrite(path, offsetof(struct shm_start, magic), lower_magic);
}

TEST(a_file_that_is_not_ours_is_refused)
{
    check_files(strike_magic_and_remember, mend_magic, WEIR_EPROTO, "not weir's");
}

static void set_version_99(const char *path)
{
    overwrite(path, offsetof(struct shm_start, version), 99);
}

static void set_version_1(const char *path)
{
    overwrite(path, offsetof(struct shm_start, version), 1);
}

TEST(a_file_of_another_version_is_refused_and_both_are_named)
{
    check_files(set_version_99, set_version_1, WEIR_EPROTO, "of version 99, we are of 1");
}

static char aside[140];

static void move_aside(const char *path)
{
    snprintf(aside, sizeof aside, "%s-aside", path);
    CHECK_EQ(rename(path, aside), 0);
}

static void move_back(const char *path)
{
    CHECK_EQ(remove(path), 0);
    CHECK_EQ(rename(aside, path), 0);
}

static void make_empty(const char *path)
{
    move_aside(path);
    CHECK_EQ(mknod(path, S_IFREG | 0600, 0), 0);
}

TEST(an_empty_file_is_refused)
{
    check_files(make_empty, move_back, WEIR_EPROTO, "cut short");
}

static void make_fifo(const char *path)
{
    move_aside(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
}

TEST(what_is_no_file_is_refused)
{
    check_files(make_fifo, move_back, WEIR_EPROTO, "not a file");
}

static void make_directory(const char *path)
{
    move_aside(path);
    CHECK_EQ(mkdir(path, 0700), 0);
}

TEST(a_directory_in_place_of_a_file_is_refused)
{
    check_files(make_directory, move_back, -EISDIR, "cannot open");
}

static void make_link(const char *path)
{
    move_aside(path);
    CHECK_EQ(symlink(aside, path), 0);
}

TEST(a_symbolic_link_is_no_file)
{
    check_files(make_link, move_back, -ELOOP, "cannot open");
}

static void give_away(const char *path)
{
    CHECK_EQ(chown(path, 12345, (gid_t)-1), 0);
}

static void take_back(const char *path)
{
    CHECK_EQ(chown(path, 0, (gid_t)-1), 0);
}

TEST(a_file_of_somebody_else_is_refused)
{
    SKIP_IF(geteuid() != 0, "only root can give a file away");
    check_files(give_away, take_back, WEIR_EPERM, "others");
}

static void open_to_all(const char *path)
{
    CHECK_EQ(chmod(path, 0666), 0);
}

static void close_to_all(const char *path)
{
    CHECK_EQ(chmod(path, 0600), 0);
}

TEST(a_file_that_others_can_write_is_refused)
{
    check_files(open_to_all, close_to_all, WEIR_EPERM, "others");
}

/* A file that had grown, and has only the size of a new one. */
TEST(a_file_cut_to_the_size_of_a_new_one_is_refused)
{
    char name[128];
    struct stat fresh;
    struct arena a;

    arena_begin(&a);
    arena_take(&a, a.store, "n", 100);
    path_of_name(&a, name);
    CHECK_EQ(stat(name, &fresh), 0);
    arena_end(&a);

    arena_begin(&a);
    arena_check(&a, "n", 100);
    weir_store_close(a.store);
    a.store = NULL;
    path_of_name(&a, name);
    CHECK_EQ(truncate(name, fresh.st_size), 0);
    check_not_taken(&a, "n", WEIR_EPROTO, "cut short");
    arena_end(&a);
}

/* The file of "m" in place of that of "n": a hash is not a name. */
TEST(a_file_of_another_name_is_refused)
{
    char name[128], other[128];
    struct arena a;

    arena_begin_used(&a);
    path_of_name(&a, name);
    move_aside(name);
    struct weir_store *store = arena_open(&a);
    CHECK_EQ(try_to_take(store, "m", 1), 0);
    weir_store_close(store);
    CHECK_EQ(unlink(aside), 0);
    path_of_name(&a, other);
    CHECK_EQ(rename(other, name), 0);
    check_not_taken(&a, "n", WEIR_EPROTO, "another name");
    arena_end(&a);
}

/* Somebody removed a name's file while it was in use, and made it anew.  Who has the old
 * one cannot let it grow, and must not let the new one grow instead. */
TEST(a_file_that_was_replaced_does_not_grow_in_place_of_ours)
{
    enum { LEASES = SHM_FIRST_ENTRIES - 1 };
    char name[128];
    struct arena a;

    arena_begin(&a);
    for (int i = 0; i < LEASES; i++)
        arena_take(&a, a.store, "n", 200);
    path_of_name(&a, name);
    CHECK_EQ(unlink(name), 0);
    struct weir_store *other = arena_open(&a);
    CHECK_EQ(try_to_take(other, "n", 3), 0);
    CHECK(try_to_take(a.store, "n", 200) < 0);
    CHECK(strstr(weir_store_why(), "file of \"n\"") != NULL);
    arena_prove(a.store, "n");
    weir_store_close(other);
    arena_end(&a);
}

static void take_n(void *arg)
{
    struct arena *a = arg;
    struct weir_store *store = arena_open(a);

    arena_take(a, store, "n", 2);
    weir_store_close(store);
}

/* Between the making of a file and the giving of its name, the name is made by another, used
 * and forgotten.  Its tokens are from the future, which no clock gives. */
TEST(tokens_grow_though_a_name_came_and_went_while_it_was_made)
{
    struct arena a;

    arena_begin(&a);
    struct weir_store *forgetful = arena_open_forgetful(&a);
    test_hold("shm: a file is made and has no name");
    test_spawn(take_n, &a);
    test_reached("shm: a file is made and has no name");
    arena_check(&a, "n", 2);
    arena_lock(a.store, "n")->head->last_token = UINT64_C(1) << 60;
    arena_unlock(a.store, "n");
    arena_check(&a, "n", 2);
    arena_visit(forgetful);
    CHECK_EQ(arena_files(&a), 0);
    test_let_go("shm: a file is made and has no name");
    test_join_all();
    weir_store_close(forgetful);
    arena_end(&a);
}

/* ---- what runs out ------------------------------------------------------------------------ */

/* A file system of our own of so many bytes, in the place of the arena's directory; only
 * for this process. */
static void be_alone_on(const struct arena *a, const char *size)
{
    char options[64];

    SKIP_IF(unshare(CLONE_NEWNS) < 0, "mounting is not allowed here");
    CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    snprintf(options, sizeof options, "size=%s,mode=0700", size);
    CHECK_EQ(mount("none", arena_directory(a), "tmpfs", 0, options), 0);
}

/* What is on that file system goes with it. */
static void arena_end_alone(struct arena *a)
{
    weir_store_close(a->store);
    CHECK_EQ(umount2(arena_directory(a), MNT_DETACH), 0);
    a->store = NULL;
    arena_end(a);
}

TEST(on_a_full_disk_no_store_is_opened)
{
    struct arena a;

    arena_begin_used(&a);
    be_alone_on(&a, "4k");
    check_not_opened(a.uri, WEIR_ENOSPC, "No space");
    arena_end_alone(&a);
}

/* 60 KiB: the clients, and one name. */
TEST(on_a_full_disk_no_name_is_made_and_no_other_is_hurt)
{
    struct arena a;

    arena_begin_used(&a);
    be_alone_on(&a, "60k");
    a.store = arena_open(&a);
    arena_check(&a, "n", 2);
    check_refused(try_to_take(a.store, "m", 2), WEIR_ENOSPC, "No space");
    arena_check(&a, "n", 2);
    check_not_taken(&a, "m", WEIR_ENOSPC, "No space");
    CHECK_EQ(arena_files(&a), 1);
    arena_end_alone(&a);
}

/* 63 hold it, and there is no room for a 64th; but for others, when some have left. */
TEST(on_a_full_disk_a_file_does_not_grow_and_its_leases_stay)
{
    enum { LEASES = SHM_FIRST_ENTRIES - 1 };
    struct weir_lease lease[LEASES];
    struct arena a;

    arena_begin_used(&a);
    be_alone_on(&a, "44k");
    a.store = arena_open(&a);
    for (int i = 0; i < LEASES; i++)
        lease[i] = arena_take(&a, a.store, "n", 100);
    for (int i = 0; i < 3; i++)
        check_refused(try_to_take(a.store, "n", 100), WEIR_ENOSPC, "No space");
    arena_prove(a.store, "n");
    CHECK_EQ(weir_lease_release(a.store, "n", lease[7].id), 0);
    CHECK_EQ(arena_take(&a, a.store, "n", 100).slot, 7);
    for (int i = 0; i < LEASES; i++)
        CHECK_EQ(weir_lease_release(a.store, "n", lease[i].id), i == 7 ? WEIR_ENOTHELD : 0);
    arena_end_alone(&a);
}

static void limit(int resource, rlim_t to)
{
    struct rlimit now;

    CHECK_EQ(getrlimit((__rlimit_resource_t)resource, &now), 0);
    now.rlim_cur = to;
    CHECK_EQ(setrlimit((__rlimit_resource_t)resource, &now), 0);
}

TEST(a_limit_on_the_size_of_files_is_an_error_like_others)
{
    struct arena a;

    signal(SIGXFSZ, SIG_IGN); /* which would end us */
    arena_begin(&a);
    arena_check(&a, "n", 2);
    limit(RLIMIT_FSIZE, 8192);
    check_refused(try_to_take(a.store, "m", 2), -EFBIG, "large");
    arena_check(&a, "n", 2);
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    arena_check(&a, "m", 2);
    arena_end(&a);
}

enum { ENOUGH = 256 };

/* So many more than are open now. */
static void limit_descriptors(int more)
{
    limit(RLIMIT_NOFILE, ENOUGH);
    int next = dup(0);
    CHECK(next >= 0);
    close(next);
    limit(RLIMIT_NOFILE, (rlim_t)(next + more));
}

static int count_one(const struct weir_name_stats *stats, void *arg)
{
    (void)stats;
    ++*(int *)arg;
    return 0;
}

TEST(without_descriptors_what_is_open_can_be_used_and_nothing_else)
{
    struct weir_store *other;
    struct arena a;
    int seen = 0;

    arena_begin(&a);
    arena_check(&a, "n", 2);
    limit_descriptors(0);
    check_refused(weir_store_open(a.uri, NULL, &other), -EMFILE, "Too many open files");
    check_refused(try_to_take(a.store, "m", 2), -EMFILE, "Too many open files");
    for (int more = 0; more < 2; more++) { /* none for the directory, or only for that */
        limit_descriptors(more);
        int r = weir_store_visit(a.store, count_one, &seen);
        check_refused(r, -EMFILE, "Too many open files");
    }
    arena_check(&a, "n", 2);
    limit(RLIMIT_NOFILE, ENOUGH);
    arena_check(&a, "m", 2);
    weir_store_close(arena_open(&a));
    arena_end(&a);
}

TEST(without_descriptors_a_file_does_not_grow_and_its_leases_stay)
{
    enum { LEASES = SHM_FIRST_ENTRIES - 1 };
    struct arena a;

    arena_begin(&a);
    for (int i = 0; i < LEASES; i++)
        arena_take(&a, a.store, "n", 100);
    limit_descriptors(0);
    check_refused(try_to_take(a.store, "n", 100), -EMFILE, "Too many open files");
    arena_prove(a.store, "n");
    limit(RLIMIT_NOFILE, ENOUGH);
    arena_take(&a, a.store, "n", 100);
    arena_end(&a);
}

/* ---- memory ----------------------------------------------------------------------------- */

TEST(without_memory_no_store_is_opened_and_nothing_is_left_behind)
{
    struct weir_store *store;
    struct arena a;
    int n = 0, r;

    arena_begin(&a);
    int before = descriptors();
    do {
        test_fail_allocation(++n);
        r = weir_store_open(a.uri, NULL, &store);
        if (r < 0)
            CHECK_EQ(descriptors(), before);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(r, 0);
    CHECK(n > 2);
    CHECK_EQ(arena_client(store)->index, 1); /* the place after that of the arena's own */
    weir_store_close(store);
    arena_end(&a);
}

TEST(without_memory_no_name_is_opened_and_no_permit_is_lost)
{
    struct arena a;
    int n = 0, r;

    arena_begin(&a);
    do {
        test_fail_allocation(++n);
        r = try_to_take(a.store, "n", 2);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(r, 0);
    CHECK(n > 2);
    CHECK_EQ(try_to_take(a.store, "n", 2), 0);
    CHECK_EQ(try_to_take(a.store, "n", 2), WEIR_ETIMEDOUT);
    arena_end(&a);
}

TEST(without_memory_nothing_is_seen_and_the_next_look_sees_all)
{
    int n = 0, r, seen;
    struct arena a;

    arena_begin(&a);
    for (int i = 0; i < 3; i++)
        arena_take(&a, a.store, (const char *[]){"a", "b", "c"}[i], 2);
    do {
        seen = 0;
        test_fail_allocation(++n);
        r = weir_store_visit(a.store, count_one, &seen);
    } while (r == WEIR_ENOMEM);
    test_fail_allocation(0);
    CHECK_EQ(r, 0);
    CHECK_EQ(seen, 3);
    CHECK(n > 2);
    arena_end(&a);
}

/* ---- signals ------------------------------------------------------------------------------ */

static void on_alarm(int signal)
{
    (void)signal;
}

/* The kernel gives up making room for a file when there is a signal. */
TEST(a_signal_is_no_reason_to_fail)
{
    struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct arena a;
    char name[16];

    arena_begin(&a);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%d", i);
        arena_take(&a, a.store, name, 1);
        a.last_token = 0; /* of another name */
    }
    setitimer(ITIMER_REAL, &never, NULL);
    arena_end(&a);
}
