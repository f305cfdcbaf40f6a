#!/usr/bin/env bats
# weir run: statuses, options, and what the command is told.
load helpers

@test "the status of the command is ours" {
    run -0 weir run db -- true
    run -7 weir run db -- sh -c 'exit 7'
    run -1 weir run db false
}

@test "a command that dies of a signal is 128 and the signal" {
    run -143 weir run db -- sh -c 'kill -TERM $$'
    run -137 weir run db -- sh -c 'kill -KILL $$'
}

@test "a command that is not there is 127, and gives its slot back" {
    refused 127 'there is no command "no-such-command"' weir run db -- no-such-command
    refused 127 'there is no command "/no/such"' weir run db -- /no/such
    refused 127 'there is no command "no-such-command"' weir run db --exec -- no-such-command
    stat_is db held 0
}

@test "a command that cannot be executed is 126" {
    touch plain
    refused 126 'cannot run "./plain": Permission denied' weir run db -- ./plain
    refused 126 'cannot run "/": ' weir run db -- /
    refused 126 'cannot run "./plain"' weir run db --exec -- ./plain
    stat_is db held 0
}

@test "what follows the name is the command's, options as well" {
    run -0 weir run db echo -n --limit 3 -- x
    [ "$output" = "-n --limit 3 -- x" ] || [ "$output" = "--limit 3 -- x" ]
    run -0 weir run -n 2 db -- echo a
    run -0 weir run db --limit=2 -- echo a
    run -0 weir run -qn2 db echo a
    [ "$output" = a ]
}

@test "input, output and errors are the command's" {
    run -0 --separate-stderr weir run db -- sh -c 'cat; echo e >&2' <<<in
    [ "$output" = in ]
    [ "$stderr" = e ]
}

@test "the command is told its name, lease, slot, token and limit" {
    run -0 weir run "a name" -n 3 -- sh -c 'echo "$WEIR_NAME|$WEIR_LEASE|$WEIR_SLOT|$WEIR_TOKEN|$WEIR_LIMIT"'
    [[ $output =~ ^a\ name\|[0-9a-f]{32}\|0\|[0-9]+\|3$ ]]
}

@test "slots are the lowest that are free, and tokens grow" {
    for i in 1 2 3; do
        start weir run db -n 3 -- sh -c 'echo "$WEIR_SLOT $WEIR_TOKEN" >>told; exec sleep 1000'
        eventually has_lines told "$i"
    done
    [ "$(cut -d' ' -f1 told | tr '\n' ' ')" = "0 1 2 " ]
    sort -c -n -k2 told
}

@test "a new name has a limit of 1, and -n gives it another" {
    weir run one -- true
    stat_is one limit 1
    weir run four -n 4 -- true
    stat_is four limit 4
    weir run four -- true # whatever it has
}

@test "another limit is 122 while the name is in use, and --resize changes it" {
    start weir run db -n 2 -- sleep 1000
    eventually stat_is db held 1
    refused 122 'is in use with a limit of 2, not 3: leave -n out, or add --resize' \
        weir run db -n 3 -- true
    run -0 weir run db -n 3 --resize -- true
    stat_is db limit 3
    refused 125 '--resize says to what by -n' weir run db --resize -- true
}

@test "--try is 124 when there is no slot, and -w when there is none in time" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    refused 124 'no slot of "db" is free' weir run db --try -- touch ran
    refused 124 'no slot of "db" was free within 50ms' weir run db -w 50ms -- touch ran
    refused 124 'no slot of "db" was free within 50ms' weir run db --wait=0.05 -- touch ran
    [ ! -e ran ]
    refused 125 'which?' weir run db --try -w 1s -- true
}

@test "-E is the status instead of 124" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    refused 9 'no slot' weir run db --try -E 9 -- true
    refused 0 'no slot' weir run db -w 10ms --busy-status 0 -- true
    refused 125 'not "256"' weir run db -E 256 -- true
}

@test "--try and -w take what is free" {
    run -0 weir run db --try -- true
    run -0 weir run db -w 0 -- true
}

@test "a weight takes that much of the limit" {
    start weir run db -n 3 -W 2 -- sleep 1000
    eventually stat_is db held 2
    run -124 weir run db --weight 2 --try -- true
    run -0 weir run db --try -- true
    refused 125 'weight of 4' weir run db -W 4 -- true
    refused 125 'weight of 4' weir run db -n 3 -W 4 -- true
}

@test "a large request is not overtaken by a small one" {
    start weir run db -n 3 -- sleep 1000
    holder=$pid
    eventually stat_is db held 1
    start weir run db -W 3 -- sh -c 'echo large >>order'
    large=$pid
    eventually stat_is db waiting 1
    start weir run db -- sh -c 'echo small >>order'
    small=$pid
    eventually stat_is db waiting 2
    kill "$holder"
    ends_with 0 "$large"
    ends_with 0 "$small"
    [ "$(tr '\n' ' ' <order)" = "large small " ]
}

@test "the label is the command, or what -l says" {
    start weir run a -- sleep 1000
    eventually stat_is a label "sleep 1000"
    start weir run b -l "the nightly job" -- sleep 1000
    eventually stat_is b label "the nightly job"
}

@test "--id takes no second slot, and gives back only its own" {
    id=0123456789abcdef0123456789abcdef
    start weir run db --id $id -- sleep 1000
    eventually stat_is db held 1
    run -0 weir run db --id $id --try -- sh -c 'echo "$WEIR_LEASE"'
    [ "$output" = $id ]
    stat_is db held 1
    refused 125 "32 hexadecimal digits" weir run db --id 12 -- true
}

@test "-b is the store, before \$WEIR_STORE" {
    mkdir -m 700 "$STORE/other"
    start weir run -b "shm:$STORE/other" db -- sleep 1000
    eventually test -e "$STORE/other/clients"
    run -0 weir run db --try -- true
    eventually run -124 weir run -b "shm:$STORE/other" db --try -- true
    run -0 weir run --store mem: db -- true
}

@test "a store that cannot be used is 125, with a reason" {
    refused 125 'is no store: mem:, shm: or shm:/directory' weir run -b what db -- true
    refused 125 'cannot make' weir run -b shm:/no/such/place db -- true
    mkdir -m 777 "$STORE/open"
    chmod 777 "$STORE/open"
    refused 125 'chmod go-w' weir run -b "shm:$STORE/open" db -- true
}

@test "--exec becomes the command, which holds the slot until it ends" {
    start weir run db --exec -- sh -c 'echo $$ >pid; exec sleep 1000'
    eventually has_lines pid 1
    [ "$(cat pid)" = "$pid" ]
    run -124 weir run db --try -- true
    kill "$pid"
    ends_with 143 "$pid"
    eventually weir run db --try -- true
}

@test "--exec and a TTL exclude each other, and --no-renew needs one" {
    refused 125 'leave one of the two out' weir run db --exec -t 1s -- true
    refused 125 'add -t' weir run db --no-renew -- true
    refused 125 'below 100ms' weir run db -t 99ms -- true
}

@test "a limit, weight, time, signal or choice that cannot be is 125" {
    refused 125 '"0"' weir run db -n 0 -- true
    refused 125 '"x"' weir run db -n x -- true
    refused 125 '"-1"' weir run db -W -1 -- true
    for time in 5y 0X1s 1e3 1.2.3s -1s ''; do
        refused 125 "\"$time\"" weir run db -w "$time" -- true
    done
    refused 125 '"NOPE"' weir run db -s NOPE -- true
    refused 125 'kill|warn' weir run db --on-lost cry -- true
    refused 125 'needs' weir run db -n
    refused 125 'takes nothing after it' weir run db --try=1 -- true
    refused 125 'something is missing' weir run db
    refused 125 'something is missing' weir run
}

@test "times have units, and are seconds without" {
    for time in 0 5 5s 5000ms 5000000us 0.1m 1.5h 1d; do
        run -0 weir run db -w $time -- true
    done
}

@test "a name may have any bytes, but not too many" {
    run -0 weir run $'new\nline' -- true
    run -0 weir run 'ä/../*' -- sh -c 'printf %s "$WEIR_NAME"'
    [ "$output" = 'ä/../*' ]
    refused 125 'name' weir run "$(printf '%0201d' 0)" -- true
    refused 125 'name' weir run "" -- true
}

@test "what is closed for us is closed for the command, and for nobody else" {
    weir run db -- sh -c '[ -e /proc/$$/fd/0 ] || echo closed' 0<&- >out
    says out closed
    weir run db -- no-such-command 2>&- || [ $? -eq 127 ]
    weir run db -- true 0<&- 1>&- 2>&-
    run -0 weir gc
}

@test "it works though SIGCHLD is ignored" {
    run -3 timeout 20 sh -c 'trap "" CHLD; exec weir run db -- sh -c "exit 3"'
    run -3 timeout 20 env --ignore-signal=CHLD weir run db -- sh -c "exit 3"
}
