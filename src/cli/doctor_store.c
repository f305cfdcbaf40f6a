/* SPDX-License-Identifier: MIT */
/* doctor: what is asked about the store and its directory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <weir/store.h>

#include "cli/doctor.h"
#include "cli/units.h"

/* ---- the store ----------------------------------------------------------------------- */

/* Many doctors may ask at once. */
static int take_and_give(struct weir_store *store, int64_t *ret_took_ns)
{
    struct weir_lease_request ask = {.name = "weir-doctor", .limit = 1000, .label = "weir doctor"};
    int64_t begin_ns = weir_now_ns();
    struct weir_lease lease;
    int r = weir_lease_acquire(store, &ask, weir_within(WEIR_S), &lease);

    if (r == 0)
        r = weir_lease_release(store, ask.name, lease.id);
    *ret_took_ns = weir_now_ns() - begin_ns;
    return r;
}

void probe_lease(const struct patient *p, struct finding *f)
{
    struct weir_store *store;
    char text[DURATION_BYTES];
    int64_t took_ns = 0;
    int r = weir_store_open(p->uri, NULL, &store);

    if (r == 0)
        r = take_and_give(store, &took_ns);
    if (r < 0) {
        const char *why = weir_store_why();
        doctor_find(f, MISSING, "without a store nothing works: see weir-store(7)", "%s",
                    *why ? why : weir_strerror(r));
        return;
    }
    doctor_find(f, FINE, NULL, "acquired and released from %.100s in %s", p->uri,
                print_duration(took_ns, text));
    weir_store_close(store);
}

/* ---- the directory ----------------------------------------------------------------------- */

static bool has_directory(const struct patient *p, struct finding *f)
{
    if (p->directory[0])
        return true;
    doctor_find(f, FINE, NULL, "this store has no directory");
    return false;
}

void probe_directory(const struct patient *p, struct finding *f)
{
    struct stat st;

    if (!has_directory(p, f))
        return;
    if (lstat(p->directory, &st) < 0)
        doctor_find(f, MISSING, "make it possible to make it, or choose another by $WEIR_STORE",
                    "%.100s: %s", p->directory, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        doctor_find(f, MISSING, "move it out of the way; links are not followed",
                    "%.100s is not a directory", p->directory);
    else if (st.st_uid != geteuid())
        doctor_find(f, MISSING, "choose a directory of your own by $WEIR_STORE",
                    "%.100s belongs to user %u", p->directory, (unsigned)st.st_uid);
    else if (st.st_mode & 022)
        doctor_find(f, MISSING, "chmod go-w it: whoever can write it can break it",
                    "%.100s can be written by others", p->directory);
    else
        doctor_find(f, FINE, NULL, "%.100s, mode %03o", p->directory, (unsigned)st.st_mode & 07777);
}

struct kind {
    unsigned long magic;
    const char *name;
    enum verdict verdict;
};

static const struct kind kinds[] = {
    {TMPFS_MAGIC, "tmpfs", FINE},        {RAMFS_MAGIC, "ramfs", FINE},
    {EXT4_SUPER_MAGIC, "ext4", WORSE},   {XFS_SUPER_MAGIC, "xfs", WORSE},
    {BTRFS_SUPER_MAGIC, "btrfs", WORSE}, {OVERLAYFS_SUPER_MAGIC, "overlay", WORSE},
    {NFS_SUPER_MAGIC, "nfs", MISSING},   {SMB_SUPER_MAGIC, "smb", MISSING},
    {SMB2_SUPER_MAGIC, "smb2", MISSING}, {CIFS_SUPER_MAGIC, "cifs", MISSING},
    {CEPH_SUPER_MAGIC, "ceph", MISSING}, {AFS_SUPER_MAGIC, "afs", MISSING},
    {V9FS_MAGIC, "9p", MISSING},         {FUSE_SUPER_MAGIC, "fuse", MISSING},
};

static struct kind kind_of(unsigned long magic)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].magic == magic)
            return kinds[i];
    return (struct kind){magic, "of a kind that weir does not know", WORSE};
}

void probe_filesystem(const struct patient *p, struct finding *f)
{
    struct statfs fs;

    if (!has_directory(p, f))
        return;
    if (statfs(p->directory, &fs) < 0) {
        doctor_find(f, MISSING, "see above", "%s", strerror(errno));
        return;
    }
    struct kind kind = kind_of((unsigned long)fs.f_type & 0xFFFFFFFF);
    doctor_find(f, kind.verdict,
                kind.verdict == MISSING ? "memory cannot be shared over a network: use /dev/shm"
                                        : "use a directory in memory, such as /dev/shm",
                "%s", kind.name);
}

void probe_space(const struct patient *p, struct finding *f)
{
    struct statvfs fs;

    if (!has_directory(p, f))
        return;
    if (statvfs(p->directory, &fs) < 0) {
        doctor_find(f, MISSING, "see above", "%s", strerror(errno));
        return;
    }
    unsigned long long mib = (unsigned long long)fs.f_bavail * fs.f_frsize >> 20;
    bool files = fs.f_files == 0 || fs.f_favail > 100; /* some count none */
    doctor_find(f, mib && files ? FINE : MISSING,
                "make room: a name takes 24 KiB and a file; docker run --shm-size gives more",
                "%llu MiB free%s", mib, files ? "" : ", but no more files");
}

static int make_unnamed(const struct patient *p)
{
    return open(p->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

void probe_unnamed_files(const struct patient *p, struct finding *f)
{
    if (!has_directory(p, f))
        return;
    int fd = make_unnamed(p);
    if (fd < 0)
        doctor_find(f, MISSING, "use a file system that has O_TMPFILE, such as tmpfs", "%s",
                    strerror(errno));
    else
        doctor_find(f, FINE, NULL, "O_TMPFILE");
    if (fd >= 0)
        close(fd);
}

void probe_byte_locks(const struct patient *p, struct finding *f)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    if (!has_directory(p, f))
        return;
    int fd = make_unnamed(p);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
        doctor_find(f, MISSING, "Linux has them since 3.15, on local file systems", "%s",
                    strerror(errno));
    else
        doctor_find(f, FINE, NULL, "locks of an open file (OFD)");
    if (fd >= 0)
        close(fd);
}
