#!/usr/bin/env bats
# weir doctor: what is there, what is not, and what to do about it.
load helpers

@test "all that is needed is here" {
    run -0 --separate-stderr weir doctor
    [ -z "$stderr" ]
    for finding in lease directory 'file system' space 'unnamed files' 'byte locks' 'robust locks' \
        futex_waitv pidfd 'page guards' descriptors processes; do
        grep -qE "^(ok|worse) +$finding " <<<"$output"
    done
    [[ $output == "weir $(weir version | cut -d' ' -f2) on Linux"* ]]
    [[ $output == *"All that weir needs is here"* ]]
}

@test "--json says the same to programs" {
    run -0 weir doctor --json
    [[ $output == '{"version":"'*'","store":"shm:'*'"findings":[{"name":"lease","verdict":"ok"'*']}' ]]
    [ "$(grep -o '"verdict":' <<<"$output" | wc -l)" -eq 12 ]
    run -125 weir doctor --json -b shm:/no/such/place
    [[ $output == *'"verdict":"missing"'*'"advice":"'* ]]
}

@test "it leaves no lease behind, and asks the store that is meant" {
    mkdir -m 700 "$STORE/other"
    run -0 weir doctor -b "shm:$STORE/other"
    [[ $output == *"$STORE/other, mode 700"* ]]
    WEIR_STORE=shm:$STORE/other stat_is weir-doctor held 0
}

@test "a directory that cannot be made is missing" {
    run -125 weir doctor -b shm:/no/such/place
    [[ $output == *"missing  directory      /no/such/place: No such file or directory"* ]]
    [[ $output == *"are missing." ]]
}

@test "a directory that others can write is missing, with what to do" {
    chmod 777 "$STORE"
    run -125 weir doctor
    [[ $output == *"can be written by others"*"-> chmod go-w it"* ]]
}

@test "a file in the way, and a link, are missing" {
    touch file
    run -125 weir doctor -b "shm:$PWD/file"
    [[ $output == *"is not a directory"* ]]
    ln -s "$STORE" link
    run -125 weir doctor -b "shm:$PWD/link"
    [[ $output == *"links are not followed"* ]]
}

@test "what is not a store is missing, and mem: needs no directory" {
    run -125 weir doctor -b what
    [[ $output == *"is no store"* ]]
    run -0 weir doctor -b mem:
    [[ $output == *"this store has no directory"* ]]
}

@test "a store of something else is missing" {
    head -c 20000 /dev/zero >"$STORE/clients"
    chmod 600 "$STORE/clients"
    run -125 weir doctor
    [[ $output == *"is not weir's"* ]]
}

@test "limits that are low are worse" {
    run -0 bash -c 'ulimit -n 100; weir doctor'
    [[ $output == *"worse    descriptors    100, may be raised to "*"-> ulimit -n"* ]]
}

@test "it takes no arguments" {
    refused 125 'is one too many' weir doctor x
    refused 125 'has no option --jsno; did you mean --json?' weir doctor --jsno
}
