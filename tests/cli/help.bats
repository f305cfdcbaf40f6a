#!/usr/bin/env bats
# weir help, version and completions, and what a mistyped word is told.
load helpers

commands() {
    weir help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'
}

@test "help lists every command, and each has help of its own" {
    run -0 --separate-stderr weir help
    [ -z "$stderr" ]
    for command in run acquire renew release resize evict gc doctor completions help version; do
        grep -q "^  $command " <<<"$output"
    done
    [ "$(weir)" = "$output" ]
    [ "$(weir --help)" = "$output" ]
    [ "$(weir -h)" = "$output" ]
    for command in $(commands); do
        run -0 weir help "$command"
        [[ $output == "usage: weir $command "* ]]
        [ "$(weir "$command" --help)" = "$output" ]
        [ "$(weir "$command" -h)" = "$output" ]
    done
}

@test "help shows every option of run, and no line is wider than a screen" {
    run -0 weir help run
    for option in -b,\ --store -n,\ --limit --resize -w,\ --wait --try -t,\ --ttl --no-renew -W,\ --weight \
        -l,\ --label --id --exec -s,\ --signal -k,\ --grace --on-lost -E,\ --busy-status -q,\ --quiet -h,\ --help; do
        grep -qF -- "$option" <<<"$output"
    done
}

@test "help on what is not there is 125" {
    refused 125 'did you mean "run"?' weir help rum
    refused 125 'is one too many' weir help run x
}

@test "version" {
    run -0 weir version
    [[ $output =~ ^weir\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ "$(weir --version)" = "$output" ]
    [ "$(weir -V)" = "$output" ]
    run -0 weir version --json
    [[ $output =~ ^\{\"version\":\"[0-9.]+\"\}$ ]]
}

@test "a mistyped command suggests the nearest" {
    refused 125 'there is no command "rnu"; did you mean "run"?' weir rnu db -- true
    refused 125 'did you mean "release"?' weir relaese db x
    refused 125 'did you mean "acquire"?' weir aquire db
    refused 125 'did you mean "doctor"?' weir docter
    refused 125 '"weir help" lists them' weir frobnicate
}

@test "a mistyped option suggests the nearest" {
    refused 125 'run has no option --limt; did you mean --limit?' weir run --limt 3 db -- true
    refused 125 'did you mean --wait?' weir run --wiat=3 db -- true
    refused 125 'did you mean --detach?' weir acquire --detatch db
    refused 125 'run has no option -Z; "weir help run" lists them' weir run -Z db -- true
    refused 125 'has no option --frobnicate' weir gc --frobnicate
}

@test "too few and too many words are told what is expected" {
    refused 125 'something is missing: weir release NAME ID' weir release db
    refused 125 '"y" is one too many: weir resize NAME N' weir resize db 3 y
    refused 125 'is one too many' weir gc x
    refused 125 'is one too many' weir version x
}

@test "what cannot be printed does not pass for success" {
    for words in help version 'completions bash' doctor gc; do
        status=0
        # shellcheck disable=SC2086 # words
        weir $words >/dev/full 2>err || status=$?
        [ "$status" -eq 125 ] || { echo "weir $words: $status" >&2; false; }
        says err 'weir: cannot write: No space left on device'
    done
}

@test "each command has a page in the manual, with all of its options" {
    pages=$BATS_TEST_DIRNAME/../../docs/man
    for command in $(commands); do
        page=$(awk -v name="weir-$command" '!/^#/ { for (i = 1; i <= NF; i++) if ($i == name) print $1 }' "$pages/aliases.1")
        page=$pages/${page:-weir-$command}.1.scd
        grep -qE "^\*weir $command( |\*)" "$page" || { echo "no $command in $page" >&2; false; }
        for option in $(weir help "$command" | sed -n 's/^  .*--\([a-z-]*\).*/\1/p'); do
            [ "$option" = help ] || grep -qE -- "--$option\b" "$page" || { echo "no --$option in $page" >&2; false; }
        done
    done
}

@test "completions are for bash, zsh and fish" {
    refused 125 'but for bash, zsh and fish' weir completions tcsh
    refused 125 'something is missing: weir completions bash|zsh|fish' weir completions
    refused 125 'is one too many' weir completions bash x
}

# complete WORD... - what bash offers for the last one.
complete_bash() {
    bash -c 'source <(weir completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _weir
        printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort -u | tr '\n' ' '
}

@test "bash completes commands, options, values, names, ids and programs" {
    weir completions bash >script
    bash -n script
    id=$(weir acquire db -n 2)
    weir run 'my name' -- true
    [ "$(complete_bash weir re)" = "release renew resize " ]
    [ "$(complete_bash weir run --on)" = "--on-lost " ]
    [ "$(complete_bash weir run --on-lost '')" = "kill warn " ]
    [ "$(complete_bash weir run --on-lost = w)" = "warn " ]
    [ "$(complete_bash weir run -s SIGTE)" = "SIGTERM " ]
    [ "$(complete_bash weir run -b s)" = "shm: " ]
    [ "$(complete_bash weir run '')" = 'db my\ name ' ]
    [ "$(complete_bash weir run -n 3 --try d)" = "db " ]
    [ "$(complete_bash weir release db '')" = "$id " ]
    [ "$(complete_bash weir run db tru)" = "true truncate " ]
    [ "$(complete_bash weir run db -- tru)" = "true truncate " ]
    [ "$(complete_bash weir help do)" = "doctor " ]
    [ "$(complete_bash weir completions '')" = "bash fish zsh " ]
    [ -z "$(complete_bash weir nonsense '' | tr -d ' ')" ]
}

@test "every command and option is in the completions of every shell" {
    for shell in bash zsh fish; do
        weir completions $shell >script
        for command in $(commands); do
            grep -qw -- "$command" script
            for option in $(weir help "$command" | sed -n 's/^  .* --\([a-z-]*\).*/\1/p'); do
                grep -qE -- "(--|-l )$option\b" script
            done
        done
    done
}

@test "fish completes" {
    command -v fish >/dev/null || skip "fish is not installed"
    weir completions fish >script
    fish -n script
    id=$(weir acquire db)
    complete_fish() { HOME=$PWD fish --no-config -c 'source script; complete -C $argv[1]' "$1" | cut -f1 | tr '\n' ' '; }
    [ "$(complete_fish 'weir re')" = "release renew resize " ]
    [ "$(complete_fish 'weir run --on-lost ')" = "kill warn " ]
    [ "$(complete_fish 'weir run -n 3 ')" = "db " ]
    [ "$(complete_fish 'weir release db ')" = "$id " ]
}

@test "zsh completes" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    mkdir functions
    weir completions zsh >functions/_weir
    zsh -n functions/_weir
    id=$(weir acquire db)
    terminal
    keys "exec zsh -f -i" Enter
    keys "PS1='zsh> ' fpath=($PWD/functions \$fpath); autoload -U compinit; compinit -u -D; clear" Enter
    eventually shows 'zsh> '
    for words in 'weir doc' 'weir run -n 3 d' 'weir run db --on-lost w' "weir release db ${id:0:3}"; do
        keys "$words" Tab
        keys Enter
    done
    eventually shows 'zsh> weir doctor'
    eventually shows 'zsh> weir run -n 3 db'
    eventually shows 'zsh> weir run db --on-lost warn'
    eventually shows "zsh> weir release db $id"
}
