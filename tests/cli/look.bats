#!/usr/bin/env bats
# weir ls and stat: what they show to people and to programs.
load helpers

hold() { # hold NAME [OPTIONS] - until the test ends; the shell function waits until it holds
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

python() { # python EXPRESSION - true for `all`, the values that were read from $output?
    /usr/bin/python3 -c '
import json, sys
all = [json.loads(line) for line in sys.stdin]
one = all[0] if all else None
assert '"$1"', all' <<<"$output"
}

columns() { # the first line's words, or those of a line that begins with $1
    awk -v key="${1:-}" '(key == "" && NR == 1) || (key != "" && $1 == key) { $1 = $1; print }' <<<"$output"
}

# ---- ls ------------------------------------------------------------------------------------

@test "ls of an empty store is empty" {
    run -0 weir ls
    [ -z "$output" ]
    run -0 weir ls --json
    [ "$output" = "[]" ]
}

@test "ls on a terminal says that there is nothing" {
    terminal
    keys 'weir ls' Enter
    eventually shows "nothing is held or waited for"
}

@test "ls shows how full a name is, who waits, and how often it was granted" {
    hold db -n 2
    hold db
    wait_for db
    run -0 weir ls
    [ "$(columns)" = "NAME HELD/LIMIT USED WAITING OLDEST LONGEST GRANTED" ]
    [[ $(columns db) =~ ^db\ 2/2\ 100%\ 1\ [0-9.]+m?s\ [0-9]+us\ 2$ ]]
}

@test "ls sorts by percent, then by name" {
    hold b -n 4
    hold c -n 2
    hold a -n 4
    hold d -n 1
    run -0 weir ls
    [ "$(awk 'NR > 1 { printf $1 }' <<<"$output")" = dcab ]
    run -0 weir ls --json
    python '[n["name"] for n in one] == ["d", "c", "a", "b"]'
}

@test "ls aligns its columns" {
    hold short -n 2
    hold "a much longer name"
    run -0 weir ls
    [ "$(awk '{ print length }' <<<"$output" | sort -u | wc -l)" -eq 1 ]
}

@test "names that are wide, or no text, stay in their column and harm no terminal" {
    hold $'\xe6\xbc\xa2\xe5\xad\x97'
    hold $'bad\xff\e[31m\n'
    run -0 weir ls
    [ "${#lines[@]}" -eq 3 ]
    [[ $output == *$'\xe6\xbc\xa2\xe5\xad\x97 '* ]]
    [[ $output == *'bad\xff\x1b[31m\x0a '* ]]
    [[ $output != *$'\e'* ]]
}

@test "ls --json is one array, with everything that the table has" {
    hold db -n 4 -W 3
    wait_for db -W 2
    run -0 weir ls --json
    [ "${#lines[@]}" -eq 1 ]
    python 'isinstance(one, list) and len(one) == 1'
    python '(one[0]["name"], one[0]["held"], one[0]["limit"], one[0]["percent"]) == ("db", 3, 4, 75)'
    python 'one[0]["waiting"] == 1 and one[0]["granted"] == 1 and one[0]["oldest_s"] > 0'
    python 'one[0]["longest_wait_s"] >= 0'
}

@test "a name that is free has no oldest holder" {
    weir run db -- true
    run -0 weir ls --json
    python 'one[0]["held"] == 0 and one[0]["oldest_s"] is None'
    run -0 weir ls
    [[ $(columns db) =~ ^db\ 0/1\ 0%\ 0\ -\  ]]
}

@test "strings in JSON are escaped, and what is not UTF-8 is there in hexadecimal" {
    hold $'q"b\\t\tn\n\xc3\xa9'
    run -0 weir ls --json
    python 'one[0]["name"] == "q\"b\\t\tn\n\u00e9" and "name_hex" not in one[0]'
    start weir run -q $'\xff\xc0\xafx\xed\xa0\x80' -- sleep 1000
    eventually has_names 2
    run -0 weir ls --json
    python 'bytes.fromhex(one[1]["name_hex"]) == b"\xff\xc0\xafx\xed\xa0\x80"'
    python 'one[1]["name"] == "\ufffd" * 3 + "x" + "\ufffd" * 3'
}

has_names() {
    [ "$(weir ls | wc -l)" -eq $(($1 + 1)) ]
}

@test "ls takes no arguments and no unknown options" {
    refused 125 '"db" is one too many' weir ls db
    refused 125 'did you mean --json?' weir ls --jason
    run -0 weir ls --help
    [[ $output == *--watch* ]]
}

@test "a store that cannot be used is said" {
    refused 125 '' weir ls -b nonsense:
    refused 125 '' weir stat -b nonsense: db
}

@test "output that cannot be written is an error" {
    hold db
    refused 125 'cannot write: No space left' sh -c 'weir ls >/dev/full'
    refused 125 'cannot write: No space left' sh -c 'weir stat db >/dev/full'
    refused 125 'cannot write: No space left' sh -c 'weir ls --watch 1h >/dev/full'
}

# ---- stat ------------------------------------------------------------------------------------

@test "stat shows all counts, the holders and the waiters" {
    hold db -n 3 -W 2 -t 1h -l "the first"
    id=$(holder_of db)
    wait_for db -W 2 -l "the second"
    run -0 weir stat db
    [ "${lines[0]}" = db ]
    for line in "held 2 of 3, 67%" "waiting 1" "granted 1" "released 0" "timed out 0" "cancelled 0" \
        "expired 0" "recovered 0" "evicted 0" "lapsed 0"; do
        tr -s ' ' <<<"$output" | grep -qx " $line"
    done
    [[ $output == *"longest wait"* ]]
    [ "$(columns SLOT)" = "SLOT PID WEIGHT AGE TTL LEFT ID LABEL" ]
    [ "$(columns PLACE)" = "PLACE PID WEIGHT AGE ID LABEL" ]
    [[ $(columns 0) =~ ^0\ ${started[0]}\ 2\ [0-9.]+m?s\ (1h00m|59m..s)\ $id\ the\ first$ ]]
    [[ $(columns 1) =~ ^1\ ${started[1]}\ 2\ [0-9.]+m?s\ $(waiter_of db)\ the\ second$ ]]
}

@test "stat counts what has happened" {
    weir run db -- true
    hold db
    run -124 weir run db -q -w 1ms -- true
    weir evict db "$(holder_of db)"
    run -0 weir stat db --json
    python '(one["granted"], one["released"], one["timed_out"], one["evicted"]) == (2, 1, 1, 1)'
    python '(one["cancelled"], one["expired"], one["recovered"], one["lapsed"]) == (0, 0, 0, 0)'
    hold db
    kill -KILL "$pid"
    eventually stat_is db recovered 1
}

@test "stat --json is an object for each name" {
    hold db -n 3 -t 1h -l $'l\xc3\xa4\xff'
    hold other
    wait_for other -l next
    run -0 weir stat --json db other
    [ "${#lines[@]}" -eq 2 ]
    python '[n["name"] for n in all] == ["db", "other"]'
    python 'one["held"] == 1 and one["limit"] == 3 and one["percent"] == 33 and one["waiters"] == []'
    python 'sorted(one["holders"][0]) == ["age_s", "id", "label", "pid", "slot", "token", "ttl_left_s", "weight"]'
    python 'one["holders"][0]["label"] == "l\u00e4\ufffd" and one["holders"][0]["slot"] == 0'
    python "one['holders'][0]['pid'] == ${started[0]} and 0 < one['holders'][0]['ttl_left_s'] <= 3600"
    python 'all[1]["holders"][0]["ttl_left_s"] is None and all[1]["holders"][0]["token"] > 0'
    python "all[1]['waiters'][0]['pid'] == ${started[2]} and all[1]['waiters'][0]['label'] == 'next'"
    python 'all[1]["waiters"][0]["weight"] == 1 and len(all[1]["waiters"][0]["id"]) == 32'
}

@test "a label that was cut in the middle of a character is text" {
    hold db -l "$(printf '%077d' 0)"$'\xc3\xa4\xe6\xbc\xa2'
    hold cut -l "$(printf '%078d' 0)"$'\xc3\xa4'
    run -0 weir stat db cut --json
    python 'one["holders"][0]["label"] == "0" * 77 + "\u00e4"'
    python 'all[1]["holders"][0]["label"] == "0" * 78'
}

@test "stat of a name that is not there is a sentence and 125, and others are shown" {
    refused 125 'nobody holds or waits for "db"; "weir ls" lists the names' weir stat db
    hold database
    refused 125 'nobody holds or waits for "databsae"; did you mean "database"?' weir stat databsae database
    [ "${lines[0]}" = database ]
    refused 125 'nobody holds' weir stat database x --json
    python 'one["name"] == "database" and len(all) == 1'
}

@test "stat needs a name" {
    refused 125 'something is missing: weir stat NAME...' weir stat
}

@test "a detached lease has no pid" {
    weir acquire db --detach -t 1h
    run -0 weir stat db
    [[ $(columns 0) =~ ^0\ -\ 1\  ]]
    run -0 weir stat db --json
    python 'one["holders"][0]["pid"] == 0'
}

# ---- width and colour --------------------------------------------------------------------------

# on_terminal WIDTH COMMAND - its output as a terminal of that width gets it, in $output
on_terminal() {
    run -0 script -qec "stty cols $1; $2" /dev/null
    output=${output//$'\r'/}
}

widest() {
    sed 's/\x1b\[[0-9;]*[mHJ]//g' <<<"$output" | awk '{ if (length > w) w = length } END { print w }'
}

@test "on a terminal tables are no wider than that" {
    hold "$(printf 'n%.0s' {1..150})" -n 2 -t 1h -l "$(printf 'l%.0s' {1..79})"
    for width in 40 60 80 132 400; do
        on_terminal $width 'weir ls'
        [ "$(widest)" -le $width ]
    done
    for width in 60 80 132; do
        on_terminal $width "weir stat $(printf 'n%.0s' {1..150})"
        [ "$(widest)" -le $width ]
        [[ $output == *"$(holder_of "$(printf 'n%.0s' {1..150})")"* ]]
    done
}

@test "without a terminal nothing is cut" {
    hold "$(printf 'n%.0s' {1..200})"
    run -0 env COLUMNS=20 weir ls
    [[ $output == *"$(printf 'n%.0s' {1..200})"* ]]
}

@test "colours are for terminals, and not where NO_COLOR says so" {
    hold db
    wait_for db
    run -0 weir ls
    [[ $output != *$'\e'* ]]
    export TERM=xterm
    on_terminal 80 'weir ls'
    [[ $output == *$'\e[33m'* ]]
    NO_COLOR=1 on_terminal 80 'weir ls'
    [[ $output != *$'\e'* ]]
    TERM=dumb on_terminal 80 'weir stat db'
    [[ $output != *$'\e'* ]]
}

# ---- watching -----------------------------------------------------------------------------------

@test "--watch shows it again and again, until it is told to end" {
    hold db
    start weir ls --watch 10ms --json >seen
    eventually has_lines seen 3
    kill -TERM "$pid"
    ends_with 0 "$pid"
    output=$(cat seen)
    python 'len(all) >= 3 and all[2][0]["name"] == "db"'
}

@test "--watch sees what has changed" {
    start weir stat db --watch 10ms >seen
    eventually says seen "nobody holds or waits for it"
    hold db -l newcomer
    eventually says seen newcomer
    kill -TERM "$pid" "${started[0]}"
}

@test "--watch ends when nobody reads, also while it writes" {
    hold db
    weir ls --watch 10ms 3>&- | head -n 3
    mkfifo stuck
    exec 4<>stuck
    head -c 60000 /dev/zero >&4 # of 65536
    start weir ls --watch 10ms >stuck
    eventually is_stuck "$pid"
    kill -TERM "$pid"
    ends_with 0 "$pid"
    exec 4>&-
}

is_stuck() { # in a write to a pipe that is full
    grep -q pipe_write "/proc/$1/wchan" 2>/dev/null || grep -q '^1 ' "/proc/$1/syscall"
}

@test "--watch clears the screen of a terminal, and Ctrl-C ends it cleanly" {
    terminal
    hold db
    keys 'echo before; weir ls --watch 20ms; echo "status $?"' Enter
    eventually shows 'db '
    eventually not_shows before
    keys C-c
    eventually shows 'status 0'
}

not_shows() {
    ! shows "$1"
}

@test "--watch shows no more than the screen has lines" {
    terminal
    for i in {1..40}; do
        weir resize "name$i" 3
    done
    keys 'weir ls --watch 20ms' Enter
    eventually shows 'HELD/LIMIT'
    shows name1
    keys C-c
    eventually shows 'ready$'
}

@test "--watch wants a time" {
    refused 125 '--watch needs a time of 10ms or more' weir ls --watch 0
    refused 125 '--watch needs TIME after it' weir ls --watch
    refused 125 'soon' weir stat db --watch soon
}
