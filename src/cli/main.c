/* SPDX-License-Identifier: MIT */
#include "cli/commands.h"

static int (*const commands[COMMANDS])(const struct options *) = {
    [CMD_RUN] = cmd_run,       [CMD_RENEW] = cmd_renew,     [CMD_RELEASE] = cmd_release,
    [CMD_RESIZE] = cmd_resize, [CMD_EVICT] = cmd_evict,     [CMD_GC] = cmd_gc,
    [CMD_HELP] = cmd_help,     [CMD_VERSION] = cmd_version,
};

int main(int argc, char **argv)
{
    struct options options;

    options_parse(argc, argv, &options);
    if (options.value[OPT_HELP].given)
        return cmd_help(&options);
    return commands[options.command](&options);
}
