/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cli/completions.h"

/* Before the tables, and after them. */
static const char head[] =
    "# weir's words for bash, made by \"weir completions bash\".\n"
    "\n"
    "# _weir_offer ACTION - what may stand here.\n"
    "_weir_offer() {\n"
    "    local IFS=$'\\n' words=()\n"
    "    case $1 in\n"
    "    names) mapfile -t words < <(weir completions names 2>/dev/null) ;;\n"
    "    ids) mapfile -t words < <(weir completions ids \"$2\" 2>/dev/null) ;;\n"
    "    stores) words=(shm: mem:) ;;\n"
    "    signals) mapfile -t words < <(compgen -A signal SIG) ;;\n"
    "    files) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") && return ;;\n"
    "    dirs) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") && return ;;\n"
    "    commands) words=(\"${commands[@]}\") ;;\n"
    "    *'|'*) mapfile -t words <<<\"${1//|/$IFS}\" ;;\n"
    "    esac\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$cur\")\n"
    "    ((${#COMPREPLY[@]} == 0)) || mapfile -t COMPREPLY < <(printf '%q\\n' "
    "\"${COMPREPLY[@]}\")\n"
    "}\n"
    "\n"
    "# _weir_program AT - a command line that begins at word AT.\n"
    "_weir_program() {\n"
    "    if declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$1\"\n"
    "    elif (($1 == COMP_CWORD)); then\n"
    "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} word action i\n"
    "    local options=() arguments=() given=()\n"
    "    local -A values=()\n";

static const char tail[] =
    "    *) return ;;\n"
    "    esac\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]} action=${arguments[${#given[@]}]-${arguments[-1]-}}\n"
    "        if [[ $action == programs && ($word == -- || $word != -*) ]]; then\n"
    "            [[ $word == -- ]] && ((i++))\n"
    "            _weir_program \"$i\"\n"
    "            return\n"
    "        elif [[ -n ${values[$word]-} ]]; then\n"
    "            [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))\n"
    "            if ((++i >= COMP_CWORD)); then\n"
    "                [[ $cur == = ]] && cur=\n"
    "                _weir_offer \"${values[$word]}\"\n"
    "                return\n"
    "            fi\n"
    "        elif [[ $word != -* ]]; then\n"
    "            given+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    action=${arguments[${#given[@]}]-${arguments[-1]-}}\n"
    "    if [[ $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"${options[*]}\" -- \"$cur\")\n"
    "    elif [[ $action == programs ]]; then\n"
    "        _weir_program \"$COMP_CWORD\"\n"
    "    else\n"
    "        _weir_offer \"$action\" \"${given[0]-}\"\n"
    "    fi\n"
    "}\n"
    "complete -F _weir weir\n";

static void print_options(enum command c)
{
    printf("        options=(");
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of((enum option)i, c))
            printf("--%s ", option_table[i].name);
    printf(")\n        values=(");
    for (int i = 0; i < OPTIONS; i++) {
        const struct option_info *info = &option_table[i];

        if (!option_is_of((enum option)i, c) || info->kind == FLAG)
            continue;
        printf("[--%s]='%s' ", info->name, option_action((enum option)i));
        if (info->letter)
            printf("[-%c]='%s' ", info->letter, option_action((enum option)i));
    }
    printf(")\n");
}

static void print_command(enum command c)
{
    char actions[PLACES_MAX][ACTION_BYTES];
    int count = argument_actions(c, actions);

    printf("    %s)\n", command_table[c].name);
    print_options(c);
    printf("        arguments=(");
    for (int i = 0; i < count; i++)
        printf("'%s' ", actions[i]);
    printf(") ;;\n");
}

void print_bash(void)
{
    fputs(head, stdout);
    printf("    local commands=(");
    for (int c = 0; c < COMMANDS; c++)
        printf("%s ", command_table[c].name);
    printf(")\n\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        _weir_offer commands\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n");
    for (int c = 0; c < COMMANDS; c++)
        print_command((enum command)c);
    fputs(tail, stdout);
}
