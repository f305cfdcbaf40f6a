# Sourced by each file of tests: a store for each test, ways to wait for a state, and the end
# of everything that was started.  $WEIR is the command under test.
bats_require_minimum_version 1.5.0

setup() {
    PATH=$(dirname "${WEIR:?which command?}"):$PATH
    STORE=$(mktemp -d /dev/shm/weir-cli-XXXXXX)
    export WEIR_STORE=shm:$STORE
    unset WEIR_NAME WEIR_LEASE
    started=()
    cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
    local pid

    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ -z "${SOCKET:-}" ] || tmux -L "$SOCKET" kill-server 2>/dev/null || true
    kill_users_of_store
    eventually nobody_is_left
    rm -rf "$STORE"
}

# Keepers that a test has left: their shell, which is bats, lives on.
kill_users_of_store() {
    local maps

    for maps in $(grep -lsF "$STORE/" /proc/[0-9]*/maps); do
        maps=${maps#/proc/}
        kill -KILL "${maps%/maps}" 2>/dev/null || true
    done
}

# Nobody holds a file of the store: keepers have ended, and so have commands that were run.
nobody_is_left() {
    ! grep -qsF "$STORE/" /proc/[0-9]*/maps
}

# start COMMAND... - in the background; its pid is in $pid.  Descriptor 3 is bats's.
start() {
    "$@" 3>&- &
    pid=$!
    started+=("$pid")
}

# eventually COMMAND... - until it succeeds; not for ever.
eventually() {
    local i

    for ((i = 0; i < 1000; i++)); do
        "$@" && return
        sleep 0.01
    done
    echo "never: $*" >&2
    return 1
}

# ends_with STATUS PID - of what was started.
ends_with() {
    local status=0

    wait "$2" || status=$?
    [ "$status" -eq "$1" ] || { echo "ended with $status" >&2; return 1; }
}

# stat_of NAME KEY - the first number or text of that key.
stat_of() {
    weir stat "$1" --json 2>/dev/null | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2 | tr -d '"'
}

stat_is() { # stat_is NAME KEY VALUE
    [ "$(stat_of "$1" "$2")" = "$3" ]
}

holder_of() { # the id of the oldest lease
    weir stat "$1" --json | sed -n 's/.*"holders":\[{"id":"\([0-9a-f]*\)".*/\1/p'
}

waiter_of() { # the id of the next in line
    weir stat "$1" --json | sed -n 's/.*"waiters":\[{"id":"\([0-9a-f]*\)".*/\1/p'
}

is_gone() { # no such process, or only its status is left
    local state

    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || true
    [ -z "$state" ] || [ "$state" = Z ]
}

has_lines() { # has_lines FILE N
    [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

says() { # says FILE TEXT
    grep -qsF -- "$2" "$1"
}

# refused STATUS TEXT COMMAND... - it fails so, and says one sentence with TEXT in it.
refused() {
    local status=$1 text=$2

    shift 2
    run -"$status" --separate-stderr "$@"
    # shellcheck disable=SC2154 # run's
    [[ $stderr == "weir: "*"$text"* ]] || { echo "said: $stderr" >&2; return 1; }
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
}

# ---- a terminal ------------------------------------------------------------------------

# terminal - an interactive bash in tmux; `keys` types, `shows` looks at the screen.
terminal() {
    command -v tmux >/dev/null || skip "tmux is not installed"
    SOCKET=weir-$$-$BATS_TEST_NUMBER
    tmux -L "$SOCKET" -f /dev/null new-session -d -x 100 -y 30 \
        "env PS1='ready\$ ' bash --norc --noprofile -i" 3>&-
    eventually shows 'ready$'
}

keys() {
    tmux -L "$SOCKET" send-keys "$@"
}

screen() {
    tmux -L "$SOCKET" capture-pane -p
}

shows() { # shows TEXT [TIMES]
    [ "$(screen | grep -cF -- "$1")" -ge "${2:-1}" ]
}
