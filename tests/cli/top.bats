#!/usr/bin/env bats
# weir top, in a terminal.
load helpers

hold() { # hold NAME [OPTIONS] - until the test ends
    local before

    before=$(stat_of "$1" granted)
    start weir run -q "$@" -- sleep 1000
    eventually stat_is "$1" granted $((${before:-0} + 1))
}

wait_for() { # wait_for NAME [OPTIONS] - stand in line
    local before

    before=$(stat_of "$1" waiting)
    start weir run -q "$@" -- true
    eventually stat_is "$1" waiting $((before + 1))
}

top() { # top [OPTIONS] - started by the shell in a terminal, which says how it ended
    [ -x "$(dirname "$WEIR")/weir-full" ] || skip "weir-full is not built"
    terminal
    keys "stty -g >before; weir top --watch 20ms $*; echo \"status \$?\"; stty -g >after" Enter
    eventually shows '? help'
}

not_shows() {
    ! shows "$1"
}

shows_in_order() { # shows_in_order WORD... - at the beginnings of lines
    local want=$* line

    line=$(screen | awk 'NR > 3 && $1 != "" && $1 != "Enter" && $1 != "filter:" { printf "%s%s", sep, $1; sep = " " }')
    [ "$line" = "$want" ]
}

# The terminal is as it was: modes, cursor, screen, and keys are seen when they are typed.
terminal_is_clean() {
    eventually shows "${1:-status 0}"
    eventually test -s after
    cmp before after
    not_shows HELD/LIMIT
    [ "$(tmux -L "$SOCKET" display -p '#{cursor_flag}#{alternate_on}#{keypad_flag}#{keypad_cursor_flag}')" = 1000 ]
    keys 'echo se""en' Enter
    eventually shows seen
}

# ---- the list ----------------------------------------------------------------------------

@test "top shows names, bars, who waits and the oldest holder, and quits by q" {
    hold db -n 2
    hold db
    wait_for db
    hold half -n 2
    top
    eventually shows 'names 2  holders 3  waiters 1'
    screen | grep -qE '^db +\[\|+\] +2/2 +100% +1 +[-0-9.]+ +[0-9.]+m?s$'
    screen | grep -qE '^half +\[\|+ +\] +1/2 +50% +0 +[-0-9.]+ +[0-9.]+m?s$'
    keys q
    terminal_is_clean
}

@test "top of an empty store says so, and sees what comes and goes" {
    top
    eventually shows 'nothing is held or waited for'
    hold newcomer
    eventually shows newcomer
    kill -KILL "$pid"
    eventually shows '0/1'
    keys q
    terminal_is_clean
}

@test "s cycles through the orders" {
    hold a -n 4
    hold b -n 2
    hold c -n 3
    wait_for a -W 4
    top
    eventually shows 'sort: used'
    eventually shows_in_order b c a
    keys s
    eventually shows 'sort: name'
    eventually shows_in_order a b c
    keys s
    eventually shows 'sort: waiting'
    eventually shows_in_order a b c
    keys s
    eventually shows 'sort: rate'
    keys s
    eventually shows 'sort: oldest'
    eventually shows_in_order a b c
    keys s
    eventually shows 'sort: used'
    keys q
}

@test "a filter shows only some names, and Esc all again" {
    hold apple
    hold banana
    top
    eventually shows banana
    keys / A P x
    eventually shows 'filter: APx_'
    eventually shows 'no name matches the filter'
    keys BSpace
    eventually shows_in_order apple
    keys Enter
    eventually shows '/ filter: AP'
    keys Escape
    eventually shows_in_order apple banana
    keys / b
    eventually shows_in_order banana
    keys Escape
    eventually shows_in_order apple banana
    keys q
    terminal_is_clean
}

@test "arrows, j and k move, and Enter opens what is selected" {
    for name in a b c d; do
        hold $name -l "label of $name"
    done
    top
    eventually shows_in_order a b c d
    keys Down j Down k Enter
    eventually shows 'label of c'
    keys Escape
    eventually shows_in_order a b c d
    keys Up Enter
    eventually shows 'label of b'
    keys Left
    eventually shows_in_order a b c d
    keys End Enter
    eventually shows 'label of d'
    keys Escape Home Enter
    eventually shows 'label of a'
    keys q
    terminal_is_clean
}

@test "more names than lines scroll" {
    for i in {10..59}; do
        weir resize "name$i" 2
    done
    top
    eventually shows name10
    not_shows name59
    keys End
    eventually shows name59
    not_shows name10
    keys PageUp PageUp
    eventually shows name10
    keys q
    terminal_is_clean
}

# ---- one name --------------------------------------------------------------------------------

@test "an open name shows holders and waiters with pid, age, TTL left and label" {
    hold db -n 2 -t 1h -l "first one"
    hold db -l $'sec\xc3\xb6nd\e[31m'
    wait_for db -W 2 -l third
    top
    keys Enter
    eventually shows 'held 2 of 2  waiting 1'
    screen | grep -qE "^slot 0 +${started[0]} +1 +[0-9.]+m?s +(1h00m|59m..s) +[0-9a-f]{8} first one"
    screen | grep -qE "^slot 1 +${started[1]} +1 +[0-9.]+m?s +- +[0-9a-f]{8} sec"$'\xc3\xb6'"nd.x1b\[31m"
    screen | grep -qE "^line 1 +${started[2]} +2 +[0-9.]+m?s +- +[0-9a-f]{8} third"
    keys q
    terminal_is_clean
}

@test "e evicts the selected one, after a question" {
    hold db -n 2 -l first
    hold db -l second
    wait_for db -l third
    top
    keys e
    eventually shows 'open a name first'
    keys Enter
    eventually shows second
    keys j e
    eventually shows "evict pid ${started[1]}, second? y/n"
    keys n
    eventually shows 'nobody was evicted'
    stat_is db evicted 0
    keys e
    eventually shows 'second? y/n'
    keys y
    eventually stat_is db evicted 1
    eventually not_shows second
    shows first
    keys q
    terminal_is_clean
}

@test "a waiter can be evicted" {
    hold db -l first
    wait_for db -l second
    top
    keys Enter
    eventually shows 'line 1'
    keys G e
    eventually shows "evict pid ${started[1]}, second? y/n"
    keys y
    ends_with 124 "${started[1]}"
    eventually not_shows 'line 1'
    stat_is db held 1
    keys q
    terminal_is_clean
}

@test "who is gone before the answer is not mistaken for another" {
    hold db -n 2 -l first
    hold db -l second
    top
    keys Enter
    eventually shows second
    keys e
    eventually shows "evict pid ${started[0]}, first? y/n"
    kill -KILL "${started[0]}"
    eventually not_shows 'slot 0'
    keys y
    eventually shows 'it was gone already'
    stat_is db held 1
    keys q
    terminal_is_clean
}

@test "? explains the keys" {
    hold db
    top
    keys '?'
    eventually shows 'evict the selected one'
    keys x
    eventually shows HELD/LIMIT
    keys '?'
    eventually shows 'evict the selected one'
    keys q
    terminal_is_clean
}

# ---- the terminal ---------------------------------------------------------------------------------

@test "top follows the size of the terminal, however small" {
    hold "a rather long name of something" -n 2
    top
    eventually shows GRANTS/S
    tmux -L "$SOCKET" resize-window -x 40 -y 8
    eventually not_shows GRANTS/S
    eventually shows '1/2'
    keys Enter
    eventually shows 'slot 0'
    for size in "1 1" "2 3" "20 4" "300 100"; do
        # shellcheck disable=SC2086 # two words
        tmux -L "$SOCKET" resize-window -x ${size% *} -y ${size#* }
    done
    eventually shows "$(holder_of "a rather long name of something")"
    keys q
    eventually shows 'status 0'
}

@test "Ctrl-C, TERM, HUP and Ctrl-Z leave a clean terminal" {
    hold db
    top
    keys C-c
    terminal_is_clean
    rm after
    for signal in TERM HUP; do
        keys "clear; weir top; echo \"ended by $signal \$?\"; stty -g >after" Enter
        eventually shows HELD/LIMIT
        kill -$signal "$(pid_of_top)"
        terminal_is_clean "ended by $signal 0"
        rm after
    done
    keys "clear; weir top; echo \"stopped \$?\"; stty -g >after" Enter
    eventually shows HELD/LIMIT
    keys C-z
    terminal_is_clean "stopped 148"
    keys "clear; fg" Enter
    eventually shows HELD/LIMIT
    keys q
    eventually not_shows HELD/LIMIT
}

pid_of_top() {
    local shell

    shell=$(tmux -L "$SOCKET" display -p '#{pane_pid}')
    cut -d' ' -f1 "/proc/$shell/task/$shell/children"
}

@test "top needs a terminal that it can draw on" {
    [ -x "$(dirname "$WEIR")/weir-full" ] || skip "weir-full is not built"
    refused 125 'top needs a terminal; "weir ls --watch 1s" does without' weir top
    refused 125 'top cannot draw on this terminal (TERM=nonsense)' \
        sh -c 'TERM=nonsense script -qec "weir top 2>&3" /dev/null 3>&2 >/dev/null'
}

@test "top refuses arguments and times that make no sense" {
    refused 125 '"db" is one too many' weir top db
    refused 125 '--watch' weir top --watch often
    run -0 weir top --help
}

# ---- the full executable ------------------------------------------------------------------------------

@test "without weir-full there is a sentence" {
    mkdir bin
    cp "$WEIR" bin/weir
    refused 125 "weir top needs weir-full, which is not installed: it belongs beside weir, in $PWD/bin" \
        bin/weir top
}

@test "weir-full is found beside weir and in libexec, and gets the command line" {
    mkdir -p bin libexec/weir
    cp "$WEIR" bin/weir
    ln -s "$PWD/bin/weir" link
    printf '#!/bin/sh\nprintf "%%s|" "$@"\n' >libexec/weir/weir-full
    chmod +x libexec/weir/weir-full
    run -0 ./link top --watch 2s -b "shm:/a b"
    [ "$output" = "top|--store=shm:/a b|--watch=2s|--|" ]
    printf '#!/bin/sh\necho beside\n' >bin/weir-full
    refused 125 'cannot be run: Permission denied' bin/weir top
    chmod +x bin/weir-full
    run -0 bin/weir top
    [ "$output" = beside ]
}
