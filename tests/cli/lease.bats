#!/usr/bin/env bats
# weir acquire, renew, release, resize, evict and gc.
load helpers

no_keeper() { # among those who use the store
    local maps

    for maps in $(grep -lsF "$STORE/" /proc/[0-9]*/maps); do
        ! tr '\0' ' ' <"${maps%maps}cmdline" 2>/dev/null | grep -q '^weir acquire ' || return 1
    done
}

@test "acquire prints the id of a lease that is held until it is released" {
    id=$(weir acquire db)
    [[ $id =~ ^[0-9a-f]{32}$ ]]
    stat_is db held 1
    [ "$(holder_of db)" = "$id" ]
    refused 124 'no slot' weir acquire db --try
    run -0 weir release db "$id"
    run -0 weir run db --try -- true
    eventually no_keeper
    refused 125 'is not held' weir release db "$id"
}

@test "acquire holds until the calling shell ends, whichever shell that is" {
    for shell in bash dash; do
        start $shell -c 'id=$(weir acquire db); echo "$id" >id; while [ ! -e go ]; do sleep 0.01; done'
        eventually has_lines id 1
        stat_is db held 1
        touch go
        ends_with 0 "$pid"
        run -0 weir run db -w 10s -- true
        rm go id
    done
}

@test "a shell is the one that \$\$ names, not a part of it" {
    start bash -c '(id=$( (weir acquire db | cat) ); echo "$id" >id); while [ ! -e go ]; do sleep 0.01; done'
    eventually has_lines id 1
    stat_is db held 1
    run -124 weir run db -w 100ms -- true
    touch go
    run -0 weir run db -w 10s -- true
}

@test "a shell that is killed gives the lease back" {
    start bash -c 'weir acquire db >id; exec sleep 1000'
    eventually has_lines id 1
    stat_is db held 1
    kill -KILL "$pid"
    run -0 weir run db -w 10s -- true
}

@test "--while is the process that it is held for" {
    start sleep 1000
    eventually says "/proc/$pid/comm" sleep
    weir acquire db --while "$pid"
    stat_is db label "for sleep (pid $pid)"
    kill "$pid"
    run -0 weir run db -w 10s -- true
    refused 125 'No such process' weir acquire db --while 4194304
    refused 125 '"x"' weir acquire db --while x
}

@test "acquire returns at once, and keeps nothing open" {
    exec 5>kept
    out=$(weir acquire db; echo >&2) # ends when nobody has the pipe
    keeper=$(stat_of db pid)
    exec 5>&-
    [ "$(readlink "/proc/$keeper/cwd")" = / ]
    for fd in 0 1 2; do
        [ "$(readlink "/proc/$keeper/fd/$fd")" = /dev/null ]
    done
    ! ls -l "/proc/$keeper/fd" | grep -q -e kept -e pipe:
    [ "$(ps -o sid= -p "$keeper" | tr -d ' ')" = "$keeper" ]
    weir release db "$out"
}

@test "--json is the id, slot, token, name and limit" {
    out=$(weir acquire 'a "name"' -n 3 --json)
    [[ $out =~ ^\{\"id\":\"[0-9a-f]{32}\",\"slot\":0,\"token\":\"[0-9]+\",\"name\":\"a\ \\\"name\\\"\",\"limit\":3\}$ ]]
    run -0 --separate-stderr weir acquire 'a "name"' --json
    [[ $output == *'"slot":1,'* ]]
}

@test "a lease with a TTL is renewed by its keeper" {
    id=$(weir acquire db -t 100ms)
    run -124 weir run db -w 400ms -- true
    stat_is db expired 0
    weir release db "$id"
}

@test "a keeper ends when its lease is evicted, and when it is killed the lease is free" {
    weir acquire db
    weir evict db "$(holder_of db)"
    eventually no_keeper
    weir acquire db
    kill -KILL "$(stat_of db pid)"
    run -0 weir run db -w 10s -- true
}

@test "acquire waits for its turn, and reports why it did not get one" {
    start weir run db -n 2 -W 2 -- sleep 1000
    eventually stat_is db held 2
    refused 124 'within 50ms' weir acquire db -w 50ms
    refused 9 'is free' weir acquire db --try -E 9
    refused 122 'limit of 2, not 3' weir acquire db -n 3
    refused 125 'weight of 3' weir acquire db -W 3
    refused 125 'mem:' weir acquire -b mem: db
    refused 125 'below 100ms' weir acquire db -t 1ms
    refused 125 'is one too many' weir acquire db x
    refused 125 'is no store' weir acquire -b what db
    start weir acquire db -l mine >id
    eventually stat_is db waiting 1
    kill "${started[0]}"
    ends_with 0 "$pid"
    stat_is db label mine
    [ "$(cat id)" = "$(holder_of db)" ]
}

@test "acquire that is killed while it waits leaves the line" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    for signal in TERM KILL; do
        start weir acquire db
        eventually stat_is db waiting 1
        kill -$signal "$pid"
        eventually stat_is db waiting 0
    done
    eventually no_keeper
}

@test "acquire whose wait is evicted is 124" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    start weir acquire db 2>err
    eventually stat_is db waiting 1
    weir evict db "$(waiter_of db)"
    ends_with 124 "$pid"
    says err evicted
}

@test "a lease whose id cannot be printed is given back" {
    status=0
    weir acquire db >/dev/full 2>err || status=$?
    [ "$status" -eq 125 ]
    says err 'given back'
    run -0 weir run db -w 10s -- true
    status=0
    weir acquire db --detach -t 60s >/dev/full 2>err || status=$?
    [ "$status" -eq 125 ]
    run -0 weir run db --try -- true
}

@test "acquire by an id that is held joins, and leaves the lease to its holder" {
    id=0123456789abcdef0123456789abcdef
    start weir run db -- sleep 1000 # somebody to hold for
    eventually stat_is db held 1
    weir acquire e --id $id --while "$pid"
    [ "$(bash -c "weir acquire e --id $id")" = $id ]
    stat_is e held 1
    stat_is e granted 1
    kill "$pid"
    run -0 weir run e -w 10s -- true
}

@test "--resize, weights and labels" {
    weir acquire db -n 2 -W 2 -l one
    stat_is db held 2
    stat_is db label one
    weir acquire db -n 5 --resize --weight 3
    stat_is db held 5
    stat_is db limit 5
}

@test "--detach leaves nothing behind but the lease" {
    id=$(weir acquire db --detach -t 60s)
    no_keeper
    stat_is db held 1
    stat_is db pid 0
    run -0 weir release db "$id"
    refused 125 'say by -t' weir acquire db --detach
    refused 125 'leave one of the two out' weir acquire db --detach -t 1s --while 1
    weir acquire db --detach -t 100ms
    run -0 weir run db -w 10s -- true
    stat_is db expired 1
}

@test "renew lets a lease last longer" {
    id=$(weir acquire db --detach -t 300ms)
    run -0 weir renew db "$id" -t 60s
    run -124 weir run db -w 500ms -- true
    refused 125 'say -t' weir renew db "$id"
    refused 125 'below 100ms' weir renew db "$id" -t 0
    weir release db "$id"
    refused 125 'is not held' weir renew db "$id" -t 1s
    refused 125 'is not held' weir renew nothing "$id" -t 1s
    refused 125 '32 hexadecimal digits' weir renew db 12 -t 1s
    refused 125 'something is missing' weir renew db
}

@test "release says what cannot be released" {
    refused 125 'is not held' weir release nothing 0123456789abcdef0123456789abcdef
    refused 125 '32 hexadecimal digits' weir release db 12
    refused 125 'something is missing' weir release db
}

@test "resize serves those who wait, and revokes nothing" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    start weir run db -- sleep 1000
    eventually stat_is db waiting 1
    run -0 weir resize db 2
    eventually stat_is db held 2
    run -0 weir resize db 1
    stat_is db held 2
    stat_is db limit 1
    run -0 weir resize new 7
    stat_is new limit 7
    refused 125 'not "0"' weir resize db 0
    refused 125 'not "many"' weir resize db many
}

@test "evict says what cannot be evicted" {
    refused 125 'is not held' weir evict nothing 0123456789abcdef0123456789abcdef
    refused 125 '32 hexadecimal digits' weir evict db 12
    refused 125 'something is missing' weir evict
}

@test "gc takes back what the dead held, and counts what is in use" {
    run -0 weir gc
    [ "$output" = "0 names in use" ]
    start weir run db --exec -- sleep 1000
    eventually stat_is db held 1
    run -0 weir gc
    [ "$output" = "1 name in use" ]
    kill -KILL "$pid"
    eventually is_gone "$pid"
    run -0 weir gc --json
    [ "$output" = '{"names":1}' ]
    stat_is db held 0
}
