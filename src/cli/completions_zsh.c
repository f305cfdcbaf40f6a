/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cli/completions.h"

static const char head[] =
    "#compdef weir\n"
    "# weir's words for zsh, made by \"weir completions zsh\".\n"
    "\n"
    "_weir_names() {\n"
    "    local -a found=(${(f)\"$(weir completions names 2>/dev/null)\"})\n"
    "    _wanted names expl name compadd -a found\n"
    "}\n"
    "\n"
    "_weir_ids() {\n"
    "    local -a found=(${(f)\"$(weir completions ids \"${line[1]}\" 2>/dev/null)\"})\n"
    "    _wanted ids expl id compadd -a found\n"
    "}\n"
    "\n";

static const char tail[] = "    esac\n"
                           "}\n"
                           "\n"
                           "if [[ $funcstack[1] == _weir ]]; then\n"
                           "    _weir \"$@\"\n"
                           "else\n"
                           "    compdef _weir weir\n"
                           "fi\n";

/* As _arguments wants it. */
static void print_action(const char *action)
{
    static const struct {
        const char *action, *zsh;
    } known[] = {
        {"none", " "},
        {"names", "_weir_names"},
        {"ids", "_weir_ids"},
        {"files", "_files"},
        {"dirs", "_files -/"},
        {"signals", "_signals -s"},
        {"stores", "(shm\\: mem\\:)"},
        {"commands", "_weir_commands"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].action, action) == 0) {
            fputs(known[i].zsh, stdout);
            return;
        }
    }
    putchar('(');
    for (; *action; action++)
        putchar(*action == '|' ? ' ' : *action);
    putchar(')');
}

/* Inside '...[ ]...': quotes and brackets would end it, and a colon begins what follows. */
static void print_what(const char *what)
{
    for (; *what; what++) {
        if (*what == '\'')
            fputs("'\\'", stdout);
        else if (strchr("[]:\\", *what))
            putchar('\\');
        putchar(*what);
    }
}

static void print_option(enum option o)
{
    const struct option_info *info = &option_table[o];
    const char *equals = info->kind == FLAG ? "" : "=", *plus = info->kind == FLAG ? "" : "+";

    if (info->letter)
        printf("            '(-%c --%s)'{-%c%s,--%s%s}'[", info->letter, info->name, info->letter,
               plus, info->name, equals);
    else
        printf("            '--%s%s[", info->name, equals);
    print_what(info->what);
    putchar(']');
    if (info->kind != FLAG) {
        printf(":%s:", strchr(info->argument, '|') ? "which" : info->argument);
        print_action(option_action(o));
    }
    printf("' \\\n");
}

static void print_argument(int place, bool last, bool many, const char *action)
{
    if (strcmp(action, "programs") == 0) {
        printf("            '*:::command:_normal' \\\n");
        return;
    }
    if (last && many)
        printf("            '*:argument:");
    else
        printf("            '%d:argument:", place + 1);
    print_action(action);
    printf("' \\\n");
}

static void print_command(enum command c)
{
    char actions[PLACES_MAX][ACTION_BYTES];
    int count = argument_actions(c, actions);

    printf("    %s)\n        _arguments -s -S \\\n", command_table[c].name);
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c))
            print_option((enum option)i);
    for (int i = 0; i < count; i++)
        print_argument(i, i == count - 1, command_table[c].most < 0, actions[i]);
    printf("            && return\n        ;;\n");
}

void print_zsh(void)
{
    fputs(head, stdout);
    printf("_weir_commands() {\n    local -a found=(\n");
    for (int c = 0; c < COMMANDS; c++) {
        printf("        '%s:", command_table[c].name);
        print_what(command_table[c].what);
        printf("'\n");
    }
    printf("    )\n    _describe command found\n}\n\n"
           "_weir() {\n"
           "    local curcontext=$curcontext state line expl\n"
           "    if ((CURRENT == 2)); then\n"
           "        _weir_commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $words[1] in\n");
    for (int c = 0; c < COMMANDS; c++)
        print_command((enum command)c);
    fputs(tail, stdout);
}
