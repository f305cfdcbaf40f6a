/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/say.h"
#include "cli/screen.h"

static int (*const commands[COMMANDS])(const struct options *) = {
    [CMD_MAP] = cmd_map,
    [CMD_RUN] = cmd_run,
    [CMD_ACQUIRE] = cmd_acquire,
    [CMD_RENEW] = cmd_renew,
    [CMD_RELEASE] = cmd_release,
    [CMD_LS] = cmd_ls,
    [CMD_STAT] = cmd_stat,
    [CMD_TOP] = cmd_top,
    [CMD_RESIZE] = cmd_resize,
    [CMD_EVICT] = cmd_evict,
    [CMD_GC] = cmd_gc,
    [CMD_DOCTOR] = cmd_doctor,
    [CMD_COMPLETIONS] = cmd_completions,
    [CMD_HELP] = cmd_help,
    [CMD_VERSION] = cmd_version,
};

/* Whatever is opened next must not become standard error, say: a sentence would be written
 * into the store.  A command that is run finds closed what was closed. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* What was printed has to arrive, unless somebody ended us while it was stuck. */
static int finish(int status)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && !screen_is_over())
        fail(status ? status : EXIT_WEIR, "cannot write: %s", strerror(errno));
    return status;
}

int main(int argc, char **argv)
{
    struct options options;

    fill_standard_descriptors();
    options_parse(argc, argv, &options);
    if (options.value[OPT_HELP].given)
        return finish(cmd_help(&options));
    return finish(commands[options.command](&options));
}
