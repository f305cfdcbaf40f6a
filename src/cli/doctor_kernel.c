/* SPDX-License-Identifier: MIT */
/* doctor: what is asked about the kernel and this process's limits. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor.h"

enum { GUARD_INSTALL = 102 }; /* MADV_GUARD_INSTALL, which libc does not know yet */

/* ---- system calls ---------------------------------------------------------------------- */

static void *lock_and_end(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

static void probe_robust_locks(const struct patient *p, struct finding *f)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_t thread;

    (void)p;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    int r = pthread_create(&thread, NULL, lock_and_end, &mutex);
    if (r == 0) {
        pthread_join(thread, NULL);
        r = pthread_mutex_trylock(&mutex);
    }
    if (r == EOWNERDEAD)
        doctor_find(f, FINE, NULL, "the end of a holder is noticed");
    else
        doctor_find(f, MISSING, "let the container's seccomp profile allow set_robust_list",
                    "the end of a holder is not noticed: %s", strerror(r));
}

static void probe_waitv(const struct patient *p, struct finding *f)
{
    (void)p;
    syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0);
    if (errno == EINVAL)
        doctor_find(f, FINE, NULL, "a death is noticed at once");
    else
        doctor_find(f, WORSE, "Linux 5.16 has it; a container's seccomp profile must allow it",
                    "%s: a death is noticed within 20ms", strerror(errno));
}

static void probe_pidfd(const struct patient *p, struct finding *f)
{
    int fd = pidfd_open(getpid(), 0);

    (void)p;
    if (fd < 0)
        doctor_find(f, WORSE, "Linux 5.3 has it; a container's seccomp profile must allow it",
                    "%s: weir acquire works only with --detach", strerror(errno));
    else
        doctor_find(f, FINE, NULL, "pidfd_open");
    if (fd >= 0)
        close(fd);
}

static void probe_guards(const struct patient *p, struct finding *f)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)p;
    if (page != MAP_FAILED && madvise(page, bytes, GUARD_INSTALL) == 0)
        doctor_find(f, FINE, NULL, "MADV_GUARD_INSTALL");
    else
        doctor_find(f, WORSE, "only programs with many tasks gain by it: Linux 6.13 has it",
                    "%s: each task takes two of the kernel's mappings", strerror(errno));
    if (page != MAP_FAILED)
        munmap(page, bytes);
}

/* ---- limits --------------------------------------------------------------------------------- */

static const char *print_limit(rlim_t limit, char text[24])
{
    if (limit == RLIM_INFINITY)
        return "unlimited";
    snprintf(text, 24, "%llu", (unsigned long long)limit);
    return text;
}

static void find_limit(struct finding *f, __rlimit_resource_t resource, rlim_t enough,
                       const char *advice)
{
    struct rlimit limit = {0, 0};
    char soft[24], hard[24];

    getrlimit(resource, &limit);
    doctor_find(f, limit.rlim_cur >= enough ? FINE : WORSE, advice, "%s, may be raised to %s",
                print_limit(limit.rlim_cur, soft), print_limit(limit.rlim_max, hard));
}

static void probe_descriptors(const struct patient *p, struct finding *f)
{
    (void)p;
    find_limit(f, RLIMIT_NOFILE, 256, "ulimit -n 1024, before what opens many");
}

static void probe_processes(const struct patient *p, struct finding *f)
{
    (void)p;
    find_limit(f, RLIMIT_NPROC, 256, "ulimit -u 1024, or fewer at once");
}

/* ---- all of them ------------------------------------------------------------------------------ */

/* The lease first: it makes the directory that the next ones ask about. */
const struct probe doctor_probes[] = {
    {"lease", probe_lease},
    {"directory", probe_directory},
    {"file system", probe_filesystem},
    {"space", probe_space},
    {"unnamed files", probe_unnamed_files},
    {"byte locks", probe_byte_locks},
    {"robust locks", probe_robust_locks},
    {"futex_waitv", probe_waitv},
    {"pidfd", probe_pidfd},
    {"page guards", probe_guards},
    {"descriptors", probe_descriptors},
    {"processes", probe_processes},
};
const int doctor_probe_count = sizeof doctor_probes / sizeof *doctor_probes;
