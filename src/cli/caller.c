/* SPDX-License-Identifier: MIT */
#include "cli/caller.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FIELD = 3, PARENT_FIELD = 4, STACK_FIELD = 28 }; /* as proc(5) counts */

struct process {
    pid_t parent;
    unsigned long long stack; /* where it began: another place after each exec, but not fork */
};

/* Read /proc/PID/FILE, a line. */
static bool read_line(pid_t pid, const char *file, char *text, size_t bytes)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static bool look_at(pid_t pid, struct process *ret)
{
    char line[1024], *rest, *word;
    int field = FIRST_FIELD;

    if (!read_line(pid, "stat", line, sizeof line) || (rest = strrchr(line, ')')) == NULL)
        return false;
    *ret = (struct process){.parent = 0};
    for (rest += 1; (word = strsep(&rest, " "));) {
        if (*word == '\0')
            continue;
        if (field == PARENT_FIELD)
            ret->parent = (pid_t)strtol(word, NULL, 10);
        if (field == STACK_FIELD)
            ret->stack = strtoull(word, NULL, 10);
        field++;
    }
    return field > STACK_FIELD;
}

pid_t caller_find(void)
{
    pid_t found = getppid();
    struct process it, above;

    if (found <= 0 || !look_at(found, &it))
        return found;
    while (it.stack && it.parent > 0 && look_at(it.parent, &above) && above.stack == it.stack) {
        found = it.parent;
        it = above;
    }
    return found;
}

void caller_name(pid_t pid, char *text, size_t bytes)
{
    char name[32];

    if (read_line(pid, "comm", name, sizeof name))
        snprintf(text, bytes, "for %s (pid %d)", name, (int)pid);
    else
        snprintf(text, bytes, "for pid %d", (int)pid);
}
