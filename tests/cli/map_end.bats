#!/usr/bin/env bats
# weir map: how it ends, however that is; and what it does in a terminal.
load helpers

# A job that says its pid and that of a child of its own, and runs until it is ended.
job='sleep 1000 & echo $! >>pids; echo $$ >>pids; wait #'

all_are_gone() { # all_are_gone [FILE]
    local one

    while read -r one; do
        is_gone "$one" || return 1
    done <"${1:-pids}"
}

# ---- killed --------------------------------------------------------------------------------

@test "when map is killed, so is every job with all its children" {
    start weir map -j3 "$job" ::: 1 2 3
    eventually has_lines pids 6
    pgrep -P "$pid" >children
    kill -KILL "$pid"
    ends_with 137 "$pid"
    eventually all_are_gone
    eventually all_are_gone children # the warden as well
}

@test "when map and its whole group are killed, still" {
    set -m # so that it is in a group of its own
    weir map -j2 "$job" ::: 1 2 3>&- &
    pid=$!
    set +m
    started+=("$pid")
    eventually has_lines pids 4
    kill -KILL "-$pid"
    eventually all_are_gone
}

@test "when the warden is killed, map goes on" {
    start weir map -j1 'echo {} >>begun; until [ -e go ]; do sleep 0.01; done #' ::: 1 2
    eventually has_lines begun 1
    for child in $(pgrep -P "$pid"); do
        [ "$(cat "/proc/$child/comm")" != weir-warden ] || kill -KILL "$child"
    done
    touch go
    ends_with 0 "$pid"
    has_lines begun 2
}

@test "a killed job is a failed one, and the others go on" {
    start weir map -q -j2 --joblog log 'echo $$ >pid.{}; until [ -e go ]; do sleep 0.01; done' ::: 1 2
    eventually test -s pid.1
    eventually test -s pid.2
    kill -KILL "$(cat pid.1)"
    eventually has_lines log 2
    touch go
    ends_with 123 "$pid"
    [ "$(cut -f 1,7,8 log | sort)" = $'1\t0\t9\n2\t0\t0\nSeq\tExitval\tSignal' ]
}

@test "what a job leaves in its group is killed when the job ends" {
    run -0 weir map 'sleep 1000 >/dev/null 2>&1 & echo $! >>pids; echo {}' ::: 1 2
    all_are_gone
}

@test "SIGTERM and SIGHUP stop the jobs, and map dies of them" {
    for signal in TERM:143 HUP:129; do
        rm -f pids
        start weir map -j2 "$job" ::: 1 2 3
        eventually has_lines pids 4
        kill "-${signal%:*}" "$pid"
        ends_with "${signal#*:}" "$pid"
        eventually all_are_gone
        has_lines pids 4 && ! has_lines pids 5
    done
}

@test "a job that does not hear SIGTERM is killed after the grace, or by the second" {
    deaf='trap "" TERM; echo $$ >>pids; while :; do sleep 0.01; done #'
    start weir map --grace 50ms "$deaf" ::: 1
    eventually has_lines pids 1
    kill -TERM "$pid"
    ends_with 143 "$pid"
    eventually all_are_gone
    start weir map --grace 1h "$deaf" ::: 1
    eventually has_lines pids 2
    eventually terminated_again # two that are pending are one
    ends_with 143 "$pid"
    eventually all_are_gone
}

terminated_again() {
    kill -TERM "$pid" 2>/dev/null || true
    is_gone "$pid"
}

@test "what was shown until then is shown, and the log knows" {
    start weir map -j1 --joblog log 'echo {}; [ {} = 1 ] || { echo $$ >>pids; exec sleep 1000; } #' ::: 1 2 3 >out
    eventually has_lines pids 1
    kill -TERM "$pid"
    ends_with 143 "$pid"
    [ "$(tr '\n' ' ' <out)" = "1 2 " ]
    [ "$(cut -f 1,8 log | tail -n +2 | tr '\t\n' ': ')" = "1:0 2:15 " ]
}

@test "SIGINT, once: no new jobs, and those that run may end" {
    start_interruptible weir map -j2 'echo {} >>begun; until [ -e go ]; do sleep 0.01; done; echo {}' ::: 1 2 3 4
    eventually has_lines begun 2
    kill -INT "$pid"
    eventually says err 'jobs are still running; Ctrl-C again stops them'
    touch go
    ends_with 130 "$pid"
    [ "$(sort out | tr '\n' ' ')" = "1 2 " ]
    ! has_lines begun 3
}

# A shell that is not interactive lets what is in the background ignore SIGINT.
start_interruptible() {
    start perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$@" >out 2>err
}

@test "SIGINT, twice: those that run are stopped" {
    start_interruptible weir map -j2 "$job" ::: 1 2 3
    eventually has_lines pids 4
    kill -INT "$pid"
    eventually says err 'still running'
    kill -INT "$pid"
    ends_with 130 "$pid"
    eventually all_are_gone
}

@test "a reader that does not read does not keep a signal from being heard" {
    mkfifo pipe
    exec 7<>pipe
    start weir map 'head -c 1000000 /dev/zero; echo $$ >>pids #' ::: 1 2 3 4 >&7
    eventually has_lines pids 1
    kill -TERM "$pid"
    ends_with 143 "$pid"
    eventually all_are_gone
}

@test "SIGINT stays ignored where it was" {
    trap '' INT
    start weir map 'echo x >>begun; until [ -e go ]; do sleep 0.01; done #' ::: 1
    trap - INT
    eventually has_lines begun 1
    kill -INT "$pid"
    touch go
    ends_with 0 "$pid"
}

@test "--sem: a map that is killed leaves its slots to the next" {
    start weir map --sem db --limit 2 -j2 "$job" ::: 1 2 3
    first=$pid
    eventually has_lines pids 4
    start weir map --sem db touch ::: made
    eventually stat_is db waiting 1
    [ ! -e made ]
    kill -KILL "$first"
    ends_with 0 "$pid"
    [ -e made ]
    eventually all_are_gone
}

@test "--sem: a map that ends gives up its place in line" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    start weir map --sem db true ::: 1
    eventually stat_is db waiting 1
    kill -TERM "$pid"
    ends_with 143 "$pid"
    eventually stat_is db waiting 0
}

# ---- in a terminal ---------------------------------------------------------------------------

# A shell drops the rest of a line whose command died of SIGINT: ask it on the next one.
@test "in a terminal, one Ctrl-C waits for the jobs and a second one stops them" {
    terminal
    keys "weir map -j2 'echo x >>begun; until [ -e go ]; do sleep 0.01; done; echo over {}' ::: 1 2 3" Enter
    eventually has_lines begun 2
    keys C-c
    eventually shows '2 jobs are still running; Ctrl-C again stops them'
    touch go
    eventually shows 'over 1'
    eventually shows 'over 2'
    keys 'echo status $?' Enter
    eventually shows 'status 130'
    ! shows 'over 3'
    keys clear Enter
    keys "weir map -j2 '$job' ::: 1 2 3" Enter
    eventually has_lines pids 4
    keys C-c
    eventually shows 'again stops them'
    keys C-c
    eventually all_are_gone
    keys 'echo status $?' Enter
    eventually shows 'status 130'
}

@test "in a terminal, Ctrl-Z stops the jobs as well, and fg goes on" {
    terminal
    mkfifo go # a shell that starts something does not show that it is stopped, one that reads does
    keys "weir map 'echo \$\$ >pid; read x <go; echo o\"\"ver #' ::: 1" Enter
    eventually test -s pid
    keys C-z
    eventually shows Stopped
    eventually is_stopped "$(cat pid)"
    keys fg Enter
    echo x >go
    eventually shows over
}

is_stopped() {
    grep -q '^State:.T' "/proc/$1/status"
}

@test "in a terminal, a job that asks it something is killed, and not waited for" {
    terminal
    keys "weir map 'read x </dev/tty #' ::: 1; echo status \$?" Enter
    eventually shows 'job 1 wants to use the terminal'
    eventually shows 'status 123'
}

@test "in a terminal, items can be typed" {
    terminal
    keys "weir map echo got" Enter
    eventually shows 'until Ctrl-D'
    keys one Enter
    eventually shows 'got one'
    keys C-d
    eventually shows 'ready$' 2
}

@test "the bar: done of total, rate, running, failed, time left" {
    terminal
    keys "weir map -j2 '[ {} != 1 ] || exit 1; [ {} -le 2 ] || until [ -e go ]; do sleep 0.01; done; echo line {}' ::: 1 2 3 4 5; echo status \$?" Enter
    eventually shows '2/5 40% [############..................]'
    screen | grep -qE '/s, 2 running, 1 failed, [0-9.]+m?s left$'
    shows 'line 2'
    touch go
    eventually shows 'status 123'
    ! shows '['
    shows 'line 5'
}

@test "the bar has a total once the input has ended, and is cut to the width" {
    terminal
    tmux -L "$SOCKET" resize-window -x 30 -y 20
    mkfifo items
    keys "clear; weir map -j1 'until [ -e go ]; do sleep 0.01; done #' <items" Enter
    exec 7>items
    printf '1\n2\n' >&7
    eventually shows '0 done'
    exec 7>&-
    eventually shows '0/2 0% ['
    touch go
    eventually hides '0/2'
}

hides() {
    ! shows "$1"
}

@test "no bar where there is no terminal, or with --no-bar; one with --bar" {
    run -0 --separate-stderr weir map 'sleep 0.2 #' ::: 1
    [ -z "$stderr" ]
    run -0 --separate-stderr weir map --bar 'sleep 0.2 #' ::: 1
    [[ $stderr == *"0/1 0% ["* ]]
    terminal
    keys "weir map --no-bar 'touch begun; until [ -e go ]; do sleep 0.01; done; echo o\"\"ver #' ::: 1" Enter
    eventually test -e begun
    ! shows '0/1'
    touch go
    eventually shows over
}
