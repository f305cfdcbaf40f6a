#!/usr/bin/env bats
# weir run: signals, loss, death in every order, and crowds.
load helpers

# A command that says that it is there and which pid it has.
export SLEEPER='echo $$ >command; exec sleep 1000'

# begin NAME [OPTIONS] - SLEEPER under weir; $pid is the wrapper, $command the command.
begin() {
    rm -f command
    start weir run "$@" -- sh -c "$SLEEPER"
    eventually has_lines command 1
    command=$(cat command)
}

# A shell lets what it starts in the background ignore SIGINT and SIGQUIT; env undoes that.
@test "signals that are sent to us reach the command" {
    for signal in HUP INT QUIT TERM USR1 USR2 ALRM; do
        start env --default-signal weir run db -- sh -c "trap 'echo $signal >>got; exit 5' $signal; echo >ready; while :; do sleep 0.01; done"
        eventually has_lines ready 1
        kill -$signal "$pid"
        ends_with 5 "$pid"
        rm ready
    done
    [ "$(tr '\n' ' ' <got)" = "HUP INT QUIT TERM USR1 USR2 ALRM " ]
}

@test "signals reach everybody in the command's group" {
    start weir run db -- sh -c 'sh -c "echo \$\$ >inner; exec sleep 1000" & wait'
    eventually has_lines inner 1
    kill -TERM "$pid"
    ends_with 143 "$pid"
    eventually is_gone "$(cat inner)"
}

@test "when the command is stopped so are we, and continue together" {
    is_stopped() { grep -q '^State:.*T' "/proc/$1/status"; }
    is_awake() { ! is_stopped "$1"; }
    begin db
    kill -STOP "$command"
    eventually is_stopped "$pid"
    kill -CONT "$pid"
    eventually is_awake "$command"
    kill -TSTP "$pid"
    eventually is_stopped "$command"
    eventually is_stopped "$pid"
    kill -CONT "$pid"
    eventually is_awake "$command"
    kill "$pid"
    ends_with 143 "$pid"
}

@test "the wrapper is killed: the command is gone and the slot free" {
    begin db
    kill -KILL "$pid"
    eventually is_gone "$command"
    run -0 weir run db -w 10s -- true
}

@test "the command is killed: 137, and the slot is free" {
    begin db
    kill -KILL "$command"
    ends_with 137 "$pid"
    run -0 weir run db --try -- true
}

@test "both are killed: the slot is free" {
    begin db
    kill -KILL "$pid" "$command"
    eventually is_gone "$command"
    run -0 weir run db -w 10s -- true
}

@test "killed in each way with others in line: nobody is left, and order is kept" {
    begin db
    for i in 1 2 3 4 5 6; do
        start weir run db -- sh -c "echo $i \$\$ >>order; exec sleep 1000"
        wrappers[i]=$pid
        eventually stat_is db waiting "$i"
    done
    kill -KILL "${started[0]}"
    for i in 1 2 3 4 5 6; do
        eventually has_lines order "$i"
        inner=$(sed -n "${i}s/.* //p" order)
        case $((i % 3)) in
        0) kill -KILL "${wrappers[i]}" ;;
        1) kill -KILL "$inner" ;;
        2) kill -KILL "${wrappers[i]}" "$inner" ;;
        esac
        eventually is_gone "$inner"
    done
    [ "$(cut -d' ' -f1 order | tr '\n' ' ')" = "1 2 3 4 5 6 " ]
    run -0 weir run db -w 10s -- true
    stat_is db held 0
}

@test "a waiter that is killed leaves the line" {
    begin db
    start weir run db -- sh -c 'echo second >>order'
    second=$pid
    eventually stat_is db waiting 1
    start weir run db -- sh -c 'echo third >>order'
    third=$pid
    eventually stat_is db waiting 2
    kill -KILL "$second"
    kill "${started[0]}"
    ends_with 0 "$third"
    [ "$(cat order)" = third ]
}

@test "a descendant that outlives the command keeps the slot until it is gone" {
    run -0 weir run db -- sh -c 'setsid sh -c "echo \$\$ >left; exec sleep 1000" >/dev/null 2>&1 3>&- &
        while [ ! -s left ]; do sleep 0.01; done'
    started+=("$(cat left)")
    run -124 weir run db --try -- true
    start weir run db -- true
    kill -KILL "$(cat left)"
    ends_with 0 "$pid"
}

@test "a descendant that outlives a killed wrapper keeps the slot until it is gone" {
    start weir run db -- sh -c 'setsid sh -c "echo \$\$ >left; exec sleep 1000" & wait'
    eventually has_lines left 1
    started+=("$(cat left)")
    kill -KILL "$pid"
    eventually is_gone "$pid"
    run -124 weir run db -w 100ms -- true
    kill -KILL "$(cat left)"
    run -0 weir run db -w 10s -- true
}

@test "a command whose lease is evicted is told, and weir ends with 120" {
    for ttl in "" "-t 5s"; do
        # shellcheck disable=SC2086 # options
        start weir run db $ttl -- sh -c "trap 'echo told >>got; exit 0' TERM; echo >ready; while :; do sleep 0.01; done" 2>err
        eventually has_lines ready 1
        weir evict db "$(holder_of db)"
        ends_with 120 "$pid"
        says err 'the lease of "db" was lost; stopping the command'
        rm ready
    done
    has_lines got 2
}

@test "a command that does not listen is killed after the grace" {
    start weir run db -k 50ms -- sh -c "trap '' TERM; echo \$\$ >command; while :; do sleep 0.01; done"
    eventually has_lines command 1
    weir evict db "$(holder_of db)"
    ends_with 120 "$pid"
    eventually is_gone "$(cat command)"
}

@test "-s is what is sent first, also to one that is stopped" {
    for signal in INT SIGUSR1 12; do
        start env --default-signal weir run db -s $signal -- sh -c "trap 'echo $signal >>got; exit 0' ${signal#SIG}; echo >ready; while :; do sleep 0.01; done"
        eventually has_lines ready 1
        weir evict db "$(holder_of db)"
        ends_with 120 "$pid"
        rm ready
    done
    [ "$(tr '\n' ' ' <got)" = "INT SIGUSR1 12 " ]
}

@test "--on-lost warn says so and lets the command go on" {
    start weir run db --on-lost warn -- sh -c 'echo >ready; while [ ! -e go ]; do sleep 0.01; done; exit 4' 2>err
    eventually has_lines ready 1
    weir evict db "$(holder_of db)"
    eventually says err 'the lease of "db" was lost'
    run -0 weir run db --try -- true # it is somebody else's now
    touch go
    ends_with 4 "$pid"
}

@test "a TTL is renewed for as long as the command runs" {
    run -0 weir run db -t 100ms -- sleep 0.5
    start weir run db -t 100ms -- sh -c 'echo >ready; exec sleep 1000'
    eventually has_lines ready 1
    run -124 weir run db -w 300ms -- true
    stat_is db expired 0
}

@test "with --no-renew a lease ends at its TTL, and with it the command" {
    run -120 weir run db -t 200ms --no-renew -- sleep 1000
    run -0 weir run db -w 10s -- true
    run -0 weir run db -t 10s --no-renew -- true
}

@test "a wait that is evicted is 124" {
    begin db
    start weir run db -- touch ran 2>err
    eventually stat_is db waiting 1
    weir evict db "$(waiter_of db)"
    ends_with 124 "$pid"
    says err 'evicted us from the queue of "db"'
    [ ! -e ran ]
}

@test "a wait that no longer fits the limit is 125" {
    start weir run db -n 2 -W 2 -- sleep 1000
    eventually stat_is db held 2
    start weir run db -W 2 -- true 2>err
    eventually stat_is db waiting 1
    weir resize db 1
    ends_with 125 "$pid"
    says err 'is more than the limit of "db"'
}

@test "who comes first is served first" {
    begin db
    for i in {1..20}; do
        start weir run db -- sh -c "echo $i >>order"
        eventually stat_is db waiting "$i"
    done
    kill "${started[0]}"
    for pid in "${started[@]:1}"; do
        ends_with 0 "$pid"
    done
    [ "$(tr '\n' ' ' <order)" = "$(echo {1..20}) " ]
}

# Each start finds its slot free and at most LIMIT are between start and end.
replay() { # replay LIMIT RUNS FILE
    awk -v limit="$1" -v runs="$2" '
        $1 == "start" { if (held[$2]++ || ++now > limit || $2 >= limit) bad = 1; begun++; if (now > most) most = now }
        $1 == "end" { if (held[$2]-- != 1) bad = 1; now-- }
        END { printf "%d runs, at most %d at once\n", begun, most; exit bad || begun != runs || now }' "$3"
}

@test "200 at once on 3 slots: never more than 3 run" {
    for i in {1..200}; do
        start weir run crowd -n 3 -- sh -c 'echo "start $WEIR_SLOT" >>log; sleep 0.00$((WEIR_TOKEN % 10)); echo "end $WEIR_SLOT" >>log'
    done
    for pid in "${started[@]}"; do
        ends_with 0 "$pid"
    done
    replay 3 200 log
    stat_is crowd held 0
}

@test "100 at once on 2 slots, a quarter of them killed: never more than 2 run" {
    for i in {1..100}; do
        start weir run crowd -n 2 -- sh -c 'echo "$WEIR_SLOT $WEIR_TOKEN" >>"tokens"; exec flock -n -E 77 "lock$WEIR_SLOT" sleep 0.01'
        [ $((i % 4)) -ne 0 ] || victims+=("$pid")
    done
    for pid in "${victims[@]}"; do
        kill -KILL "$pid" || true # it may have ended
    done
    for pid in "${started[@]}"; do
        status=0
        wait "$pid" || status=$?
        [ "$status" -eq 0 ] || [ "$status" -eq 137 ] # and not 77: the slot was somebody's
    done
    [ "$(cut -d' ' -f2 tokens | sort | uniq -d | wc -l)" -eq 0 ]
    run -0 weir run crowd -W 2 -w 10s -- true
    stat_is crowd held 0
}
