/* SPDX-License-Identifier: MIT */
/* doctor - questions to this machine, and what to do about the answers. */
#ifndef WEIR_CLI_DOCTOR_H
#define WEIR_CLI_DOCTOR_H

#include <stdbool.h>

enum verdict { FINE, WORSE, MISSING }; /* WORSE: weir works without it, but not as well */

struct finding {
    enum verdict verdict;
    char found[200];    /* what there is                       */
    const char *advice; /* what to do, unless it is fine; or NULL */
};

/* Where the store is. */
struct patient {
    const char *uri;
    char directory[4096]; /* "" for a store that has none */
};

struct probe {
    const char *name;
    void (*ask)(const struct patient *p, struct finding *ret);
};

extern const struct probe doctor_probes[];
extern const int doctor_probe_count;

/* Set a finding: the verdict, and what there is. */
void doctor_find(struct finding *f, enum verdict verdict, const char *advice, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* Those of the directory (doctor_store.c). */
void probe_lease(const struct patient *p, struct finding *f);
void probe_directory(const struct patient *p, struct finding *f);
void probe_filesystem(const struct patient *p, struct finding *f);
void probe_space(const struct patient *p, struct finding *f);
void probe_unnamed_files(const struct patient *p, struct finding *f);
void probe_byte_locks(const struct patient *p, struct finding *f);

#endif
