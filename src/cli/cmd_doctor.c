/* SPDX-License-Identifier: MIT */
/* weir doctor: what this machine offers, and what to do about what is missing. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <weir/version.h>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/json.h"
#include "cli/say.h"

static const char *const verdicts[] = {"ok", "worse", "missing"};

void doctor_find(struct finding *f, enum verdict verdict, const char *advice, const char *format,
                 ...)
{
    va_list args;

    f->verdict = verdict;
    f->advice = verdict == FINE ? NULL : advice;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was begun just now */
    vsnprintf(f->found, sizeof f->found, format, args);
    va_end(args);
}

static void find_directory(struct patient *p)
{
    p->directory[0] = '\0';
    if (strcmp(p->uri, "shm:") == 0)
        snprintf(p->directory, sizeof p->directory, "/dev/shm/weir-%u", (unsigned)geteuid());
    else if (strncmp(p->uri, "shm:/", 5) == 0)
        snprintf(p->directory, sizeof p->directory, "%s", p->uri + 4);
}

/* ---- for people ------------------------------------------------------------------------- */

static void print_head(void)
{
    struct utsname system;

    uname(&system);
    printf("weir %s on %s %s, %s, %ld processors\n\n", weir_version(), system.sysname,
           system.release, system.machine, sysconf(_SC_NPROCESSORS_ONLN));
}

static void print_finding(const char *name, const struct finding *f)
{
    printf("%-8s %-14s %s\n", verdicts[f->verdict], name, f->found);
    if (f->advice)
        printf("%-8s %-14s -> %s\n", "", "", f->advice);
}

static void print_end(const int count[])
{
    if (count[MISSING])
        printf("\n%d of what weir needs %s missing.\n", count[MISSING],
               count[MISSING] == 1 ? "is" : "are");
    else
        printf("\nAll that weir needs is here%s.\n",
               count[WORSE] ? ", and it would be better with the rest" : "");
}

/* ---- for programs ------------------------------------------------------------------------- */

static void json_finding(struct json *j, const char *name, const struct finding *f)
{
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    json_text(j, "verdict", verdicts[f->verdict]);
    json_text(j, "found", f->found);
    if (f->advice)
        json_text(j, "advice", f->advice);
    json_close(j, '}');
}

int cmd_doctor(const struct options *o)
{
    struct patient patient = {.uri = store_uri(o)};
    struct json json = {.to = stdout};
    bool programs = o->value[OPT_JSON].given;
    int count[] = {0, 0, 0};

    find_directory(&patient);
    if (programs) {
        json_open(&json, NULL, '{');
        json_text(&json, "version", weir_version());
        json_text(&json, "store", patient.uri);
        json_open(&json, "findings", '[');
    } else {
        print_head();
    }
    for (int i = 0; i < doctor_probe_count; i++) {
        struct finding f = {FINE, "", NULL};

        doctor_probes[i].ask(&patient, &f);
        count[f.verdict]++;
        if (programs)
            json_finding(&json, doctor_probes[i].name, &f);
        else
            print_finding(doctor_probes[i].name, &f);
    }
    if (programs) {
        json_close(&json, ']');
        json_close(&json, '}');
        putchar('\n');
    } else {
        print_end(count);
    }
    return count[MISSING] ? EXIT_WEIR : 0;
}
