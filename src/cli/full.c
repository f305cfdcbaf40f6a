/* SPDX-License-Identifier: MIT */
/* What this program is too small for is done by another one, weir-full, which is not static
 * and may have libraries.  Both are made of the same files, but for this one: it has all
 * commands for which the small one starts the full one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/say.h"

enum { PATH_ROOM = 4096 };

/* The words of the command line, made again from what they mean: those that were typed are
 * gone, since the parser collects arguments in place. */
static char **words_again(const struct options *o)
{
    char **words = calloc((size_t)o->count + OPTIONS + 4, sizeof *words), **at = words;

    if (words == NULL)
        fail(EXIT_WEIR, "there is no memory left");
    *at++ = "weir-full";
    *at++ = (char *)command_table[o->command].name;
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_value *v = &o->value[i];
        bool flag = option_table[i].kind == FLAG;

        if (v->given && asprintf(at++, "--%s%s%s", option_table[i].name, flag ? "" : "=",
                                 flag ? "" : v->text) < 0)
            fail(EXIT_WEIR, "there is no memory left");
    }
    *at++ = "--";
    memcpy(at, o->arguments, (size_t)o->count * sizeof *at);
    return words;
}

/* Where this program is; "" if the kernel does not say. */
static void own_directory(char directory[PATH_ROOM])
{
    ssize_t length = readlink("/proc/self/exe", directory, PATH_ROOM - 1);

    directory[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(directory, '/');
    if (slash)
        *slash = '\0';
}

static int start_full(const struct options *o)
{
    static const char *const places[] = {"", "/../libexec/weir", "/../lib/weir"};
    char directory[PATH_ROOM], path[PATH_ROOM + 64];
    const char *command = command_table[o->command].name;
    char **words = words_again(o);

    own_directory(directory);
    for (size_t i = 0; *directory && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/weir-full", directory, places[i]);
        execv(path, words);
        if (errno != ENOENT && errno != ENOTDIR)
            fail(EXIT_WEIR, "weir %s needs %s, which cannot be run: %s", command, path,
                 strerror(errno));
    }
    fail(EXIT_WEIR,
         "weir %s needs weir-full, which is not installed: it belongs beside weir, in %s, or in "
         "../libexec/weir from there",
         command, *directory ? directory : "the same directory");
}

int cmd_top(const struct options *o)
{
    return start_full(o);
}
