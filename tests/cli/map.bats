#!/usr/bin/env bats
# weir map: items, commands, output, exit statuses, files.  map_end.bats has how it ends.
load helpers

# ---- items -------------------------------------------------------------------------------

@test "a command is run for each line, with the line as its last argument" {
    run -0 weir map -k echo x < <(printf 'a\nb c\n\nd')
    [ "$output" = $'x a\nx b c\nx \nx d' ]
}

@test "items may follow ::: instead, and input is not read" {
    run -0 weir map -k echo ::: a 'b c' ::: <<<never
    [ "$output" = $'a\nb c\n:::' ]
    run -0 weir map echo ::: <<<never
    [ "$output" = "" ]
}

@test "no input is no job, and no failure" {
    run -0 weir map false </dev/null
    run -0 weir map false < <(true)
}

@test "-0 and -d say where an item ends" {
    run -0 weir map -0 -k 'printf "<%s>" {}' < <(printf 'a\nb\0c')
    [ "$output" = $'<a\nb><c>' ]
    run -0 weir map -d , -k echo < <(printf 'a,b,')
    [ "$output" = $'a\nb' ]
    run -0 weir map -d '\t' -k echo < <(printf 'a\tb')
    [ "$output" = $'a\nb' ]
    refused 125 "--delimiter is one byte" weir map -d ab echo
    refused 125 "leave one of the two out" weir map -0 -d , echo
}

@test "-n gives each job so many items, and the last one the rest" {
    run -0 weir map -n 2 -k echo x ::: a b c
    [ "$output" = $'x a b\nx c' ]
    run -0 weir map -n 2 -k echo p{}s - {/} ::: a/b c d
    [ "$output" = $'pa/bs pcs - b c\npds - d' ]
    run -0 weir map -n 2 -k 'echo p{}s' ::: 'a b' "it's" d
    [ "$output" = $'pa b its\npds' ] || [ "$output" = $'pa b it\'ss\npds' ]
}

@test "placeholders" {
    run -0 weir map -k -j1 echo {} {.} {/} {//} {/.} {#} {%} {x} {::: ::: a/b.c d.tar.gz .rc /x
    [ "${lines[0]}" = "a/b.c a/b b.c a b 1 1 {x} {:::" ]
    [ "${lines[1]}" = "d.tar.gz d.tar d.tar.gz . d.tar 2 1 {x} {:::" ]
    [ "${lines[2]}" = ".rc .rc .rc . .rc 3 1 {x} {:::" ]
    [ "${lines[3]}" = "/x /x x / x 4 1 {x} {:::" ]
}

@test "{%} is the lowest number that no running job has" {
    weir map -j3 'echo {%} >>slots; until [ -e go ]; do sleep 0.01; done' ::: 1 2 3 &
    started+=($!)
    eventually has_lines slots 3
    [ "$(sort slots | tr '\n' ' ')" = "1 2 3 " ]
    touch go
    wait $!
}

@test "one word is a program, one word with more in it is for sh" {
    run -0 weir map echo ::: '$HOME;`x`'
    [ "$output" = '$HOME;`x`' ]
    run -0 weir map -k 'for i in {}; do echo "<$i>"; done' ::: "a 'b' \$HOME" '' $'x\ny'
    [ "${lines[0]}" = "<a 'b' \$HOME>" ]
    [[ $output == *"<>"* ]]
    [[ $output == *$'<x\ny>'* ]]
    run -0 weir map 'echo x' ::: 'a  b'
    [ "$output" = "x a  b" ]
}

@test "several words are executed as they are" {
    run -0 weir map echo 'a;b' '*' {} ::: '$x'
    [ "$output" = 'a;b * $x' ]
    run -0 weir map -- echo -n -- {} ::: x
    [[ $output == *"-- x" ]]
}

@test "a script without a first line is for sh, and the item may be the program" {
    echo 'echo "script $1"' >script
    chmod +x script
    run -0 weir map ./script ::: a
    [ "$output" = "script a" ]
    run -0 weir map {} -c 'echo by item' ::: sh /bin/sh
    [ "$output" = $'by item\nby item' ]
    run -123 weir map -q {} ::: ./nosuch
}

@test "items that cannot be are refused" {
    refused 125 "item 2 has a zero byte in it" weir map true < <(printf 'a\nb\0c\n')
    head -c 140000 /dev/zero | tr '\0' x >long
    refused 125 "item 1 is longer than an argument can be" weir map true <long
    refused 125 "standard input is closed" bash -c "weir map true <&-"
    refused 125 "standard input is a directory" weir map true </
}

@test "the first job runs before the last item is written" {
    mkfifo items
    start bash -c 'exec weir map touch <items'
    exec 7>items
    echo one >&7
    eventually test -e one
    echo two >&7
    exec 7>&-
    ends_with 0 "$pid"
    [ -e two ]
}

small() { # no more memory than that, resident or not
    (
        ulimit -v 20480
        exec "$@"
    )
}

@test "a million lines of --dry-run take less than 20 MiB" {
    seq 1000000 >lines
    small bash -c 'weir version' || skip "not even its code fits, with a sanitizer"
    small weir map --dry-run echo {} <lines | cksum >got
    sed 's/^/echo /' lines | cksum | cmp - got
    small weir map --dry-run -n 3 'echo {} | cat' < <(cat lines) | tail -n 1 >got
    [ "$(cat got)" = "echo 1000000 | cat" ]
}

@test "--dry-run prints commands that a shell understands, and runs none" {
    run -0 weir map --dry-run touch x {} ::: a 'b c' "it's"
    [ "$output" = $'touch x a\ntouch x \'b c\'\ntouch x \'it\'\\\'\'s\'' ]
    [ ! -e a ]
    run -0 weir map --dry-run 'echo {} >f' ::: 'b c'
    [ "$output" = "echo 'b c' >f" ]
    run -0 weir map --dry-run --joblog log --results dir --sem s touch ::: a
    [ ! -e log ] && [ ! -e dir ]
}

# ---- how many at once ----------------------------------------------------------------------

at_once='echo x >>begun; until [ -e go ]; do sleep 0.01; done; echo x >>over'

@test "at most -j at once, by default as many as there are cores" {
    start weir map -j 3 "$at_once" ::: 1 2 3 4 5 6
    eventually has_lines begun 3
    touch go
    ends_with 0 "$pid"
    has_lines over 6
    rm go begun
    start weir map "$at_once" ::: $(seq $(($(nproc) + 2)))
    eventually has_lines begun "$(nproc)"
    [ "$(wc -l <begun)" -eq "$(nproc)" ]
    touch go
    ends_with 0 "$pid"
    refused 125 "--jobs is a number from 1 on" weir map -j 0 true
    refused 125 "-j is at most" weir map -j 1000000 true
}

@test "never more than -j run" {
    # each job counts those that run, itself included
    weir map -j 3 'mkdir run.{}; set -- run.*; echo $#; rmdir run.{}' ::: $(seq 100) >counts
    [ "$(wc -l <counts)" -eq 100 ]
    [ "$(sort -n counts | tail -n 1)" -le 3 ]
}

@test "SIGUSR1 allows one more at once, SIGUSR2 one less" {
    start weir map -j 1 --joblog log 'echo {} >>begun; until [ -e go.{} ]; do sleep 0.01; done' ::: 1 2 3 4 5
    eventually has_lines begun 1
    kill -USR1 "$pid"
    eventually has_lines begun 2
    kill -USR1 "$pid"
    eventually has_lines begun 3
    kill -USR2 "$pid"
    kill -USR2 "$pid"
    kill -USR2 "$pid" # one is the least
    touch go.1 go.2
    eventually has_lines log 3 # two have ended
    ! has_lines begun 4
    touch go.3
    eventually has_lines begun 4
    touch go.4 go.5
    ends_with 0 "$pid"
}


@test "many jobs at once need no more descriptors than are allowed" {
    ulimit -n 64
    weir map -j 200 'echo {}' ::: $(seq 300) | sort -n | cmp - <(seq 300)
    ulimit -Sn 20 # the soft limit is raised as far as it may be, and given back to jobs
    run -0 weir map -j 8 'ulimit -n #' ::: 1
    [ "$output" = 20 ]
}

# ---- output -----------------------------------------------------------------------------------

@test "what a job writes comes out whole, both streams, when it ends" {
    run -0 --separate-stderr weir map -j2 'echo {}1; echo e{}1 >&2; sleep 0.05; echo {}2; echo e{}2 >&2' ::: a b
    [ "$(sort <<<"$output")" = $'a1\na2\nb1\nb2' ]
    [[ $output == *$'a1\na2'* && $output == *$'b1\nb2'* ]]
    [[ $stderr == *$'ea1\nea2'* && $stderr == *$'eb1\neb2'* ]]
}

@test "output of many jobs is neither mixed nor lost" {
    jobs=100 bytes=65536
    [ "${WEIR_TEST_SCALE:-1}" -lt 10 ] || { jobs=1000 bytes=1048576; }
    # a job's output is one line that begins with its number and holds nothing else
    weir map -j 8 "echo \$(yes {} | head -c $bytes | tr '\\n' _)" ::: $(seq "$jobs") |
        awk -F_ -v bytes="$bytes" '
            { for (i = 2; i < NF - 1; i++) if ($i != $1) bad = 1 }
            length < bytes - 8 { bad = 1 }
            { seen[$1]++ }
            END { for (i in seen) n++; print n, bad + 0 }' >summary
    [ "$(cat summary)" = "$jobs 0" ]
}

@test "output that is too much for memory goes through an unlinked file" {
    mkdir tmp
    TMPDIR=$PWD/tmp weir map -j 4 -k "head -c 6000000 /dev/zero | tr '\\0' {}" ::: a b c d | cksum >got
    for c in a b c d; do head -c 6000000 /dev/zero | tr '\0' $c; done | cksum | cmp - got
    [ -z "$(ls -A tmp)" ]
    TMPDIR=/nonexistent refused 125 "cannot keep the output of jobs in /nonexistent" \
        weir map -j 4 -k "head -c 60000000 /dev/zero" ::: a
}

@test "-k shows output in the order of the items" {
    run -0 weir map -k -j4 'sleep 0.0$((9 - {})); echo {}; echo e{} >&2' ::: 1 2 3 4 5 6 7 8
    [ "$(grep -v e <<<"$output" | tr -d '\n')" = 12345678 ]
    [ "$(grep e <<<"$output" | tr -d '\n')" = e1e2e3e4e5e6e7e8 ]
    seq 2000 | weir map -k -j4 echo | cmp - <(seq 2000)
}

@test "--line shows each line when it is whole" {
    start weir map --line -j2 'echo {}; until [ -e go ]; do sleep 0.01; done; printf end{}' ::: a b >out
    eventually has_lines out 2
    touch go
    ends_with 0 "$pid"
    [ "$(sort out | tr '\n' ' ')" = "a b enda endb " ]
}

@test "--line never mixes two lines, however long" {
    weir map --line -j4 'for i in 1 2 3; do head -c 300000 /dev/zero | tr "\0" {}; echo; done' ::: a b c d >out
    [ "$(awk '{ print length, substr($0, 1, 1) } $0 ~ "[^" substr($0, 1, 1) "]" { print "mixed" }' out | sort | uniq -c | tr -s ' ' | tr '\n' ,)" = \
        " 3 300000 a, 3 300000 b, 3 300000 c, 3 300000 d," ]
}

@test "--line -k shows the lines of the first job as they come" {
    start weir map --line -k -j2 'echo {}; until [ -e go{} ]; do sleep 0.01; done; echo end{}' ::: a b >out
    touch gob
    eventually has_lines out 1
    [ "$(cat out)" = a ]
    touch goa
    ends_with 0 "$pid"
    [ "$(tr '\n' ' ' <out)" = "a enda b endb " ]
}

@test "--tag begins each line with the item, and ends the last" {
    run -0 weir map -k --tag 'printf "1\n2"' ::: a 'b c'
    [ "$output" = $'a\t1\na\t2 a' ] || [ "$output" = $'a\t1\na\t2\nb c\t1\nb c\t2' ]
    run -0 --separate-stderr weir map --tag -n2 'echo o {}; echo e >&2' ::: a b
    [ "$output" = $'a b\to a b' ]
    [ "$stderr" = $'a b\te' ]
}

@test "bytes are what they were" {
    head -c 100000 /dev/urandom >random
    weir map cat ::: random | cmp - random
}

@test "jobs read nothing" {
    run -0 weir map 'cat; echo {}' < <(printf 'a\nb\n')
    [ "$(sort <<<"$output")" = $'a\nb' ]
}

@test "what is in the background of a job still belongs to its output" {
    run -0 weir map '(sleep 0.1; echo late) & echo early' ::: 1
    [ "$output" = $'early 1\nlate' ]
}

# ---- exit statuses ------------------------------------------------------------------------------

@test "some job failed is 123, and one sentence says so" {
    refused 123 "2 of 3 jobs failed; the first was job 2, with status 1" weir map -j1 'exit {}' ::: 0 1 2
    run -123 --separate-stderr weir map -q false ::: 1
    [ -z "$stderr" ]
    refused 123 "with status 137" weir map 'kill -KILL $$ #' ::: 1
}

@test "a command that is not there is 127, one that cannot be executed 126" {
    refused 127 'there is no command "no-such-command"' weir map no-such-command ::: 1
    refused 127 'there is no command "/no/such"' weir map /no/such x ::: 1
    touch plain
    refused 126 'cannot run "./plain": Permission denied' weir map ./plain ::: 1
    refused 126 'cannot run "/": ' weir map / ::: 1
}

@test "bad usage is 125" {
    refused 125 "something is missing" weir map
    refused 125 "there is no command before :::" weir map ::: a
    refused 125 'map has no option --retrys; did you mean --retries?' weir map --retrys 3 true
    refused 125 "--resume needs --joblog" weir map --resume true
    refused 125 "--limit needs --sem" weir map --limit 3 true
    refused 125 "--bar and --no-bar" weir map --bar --no-bar true
    refused 125 '--halt is never, now' weir map --halt never,fail=1 true
    refused 125 '--halt is never, now' weir map --halt soon,fail=0 true
    refused 125 '--halt is never, now' weir map --halt now,fail=101% true
    refused 125 '--halt is never, now' weir map --halt later true
    refused 125 "--timeout is a time" weir map --timeout x true
}

@test "a broken pipe downstream ends the jobs, quietly" {
    { weir map -j2 'echo {}; [ {} = 1 ] || { echo $$ >>pids; exec sleep 1000; } #' 2>err ::: 1 2 3 4 ||
        echo $? >status; } | true
    [ "$(cat status)" -eq 141 ]
    [ ! -s err ]
    while read -r job; do is_gone "$job"; done < <(cat pids)
    { weir map --dry-run echo 2>err < <(yes) || echo $? >status; } | head -n 1
    [ "$(cat status)" -eq 141 ]
    [ ! -s err ]
}

@test "a full disk is a sentence and 125, and closed output as well" {
    [ -e /dev/full ] || skip "no /dev/full"
    said=$(weir map 'echo {}' ::: a 2>&1 >/dev/full) && false
    [ "$said" = "weir: cannot write what the jobs say: No space left on device" ]
    run -125 bash -c 'weir map echo ::: a >/dev/full 2>/dev/null'
    run -125 bash -c 'weir map echo ::: a >&- 2>/dev/null'
    run -125 bash -c 'weir map --dry-run echo ::: a >/dev/full 2>/dev/null'
    run -125 bash -c 'weir map --joblog /dev/full true ::: a 2>/dev/null'
    run -0 bash -c 'weir map true ::: a >&-' # which writes nothing
}

# ---- halt, retries, timeout ---------------------------------------------------------------------

@test "--halt soon waits for those that run, and starts no more" {
    run -123 weir map -q -j1 --halt soon,fail=2 'echo {}; exit 1' ::: 1 2 3 4
    [ "$output" = $'1\n2' ]
    run -123 weir map -q -j2 --halt soon 'if [ {} = 1 ]; then exit 1; fi; sleep 0.1; echo {}' ::: 1 2 3 4
    [ "$output" = 2 ]
}

@test "--halt now stops those that run" {
    run -123 weir map -q -j2 --halt now,fail=1 'echo {}
        [ {} != 1 ] || { touch begun; exec sleep 1000; }
        until [ -e begun ]; do sleep 0.01; done
        exit 1' ::: 1 2 3 4
    [ "$(sort <<<"$output")" = $'1\n2' ]
}

@test "--halt N% is of those that have ended, of which three must have failed" {
    run -123 weir map -q -j1 --halt soon,fail=50% 'echo {}; [ {} = 1 ] || [ {} = 3 ]' ::: 1 2 3 4 5 6 7
    [ "$output" = $'1\n2\n3\n4\n5' ]
    run -123 weir map -q -j1 --halt never 'echo {}; exit 1 #' ::: 1 2 3 4
    [ "$(wc -l <<<"$output")" -eq 4 ]
}

@test "--retries tries again, and shows the output of the last time" {
    run -0 weir map --retries 3 'echo x >>{}; wc -l <{}; [ $(wc -l <{}) -ge 3 ]' ::: a b
    [ "$output" = $'3\n3' ]
    run -123 weir map -q --retries 2 'echo x >>{}; wc -l <{}; exit 5' ::: c
    [ "$output" = 3 ]
}

@test "--retries lets others run meanwhile, and -k waits for all" {
    run -0 weir map -k -j1 --retries 1 'echo {} >>order; echo {}; [ {} = 2 ] || [ $(grep -c 1 order) -ge 2 ]' ::: 1 2
    [ "$output" = $'1\n2' ]
    [ "$(tr -d '\n' <order)" = 121 ]
}

@test "--timeout stops a job and everything in its group" {
    run -123 weir map -q --timeout 100ms 'sleep 1000 & echo $! >pid; echo begun; wait #' ::: 1
    [ "$output" = begun ]
    eventually is_gone "$(cat pid)"
    run -123 weir map -q --timeout 100ms --grace 10ms 'trap "" TERM; echo $$ >pid; while :; do sleep 0.01; done #' ::: 1
    is_gone "$(cat pid)"
    run -123 weir map -q --timeout 100ms 'trap "exit 0" TERM; while :; do sleep 0.01; done #' ::: 1
    run -0 weir map --timeout 100s true ::: 1
}

# ---- files ---------------------------------------------------------------------------------------

@test "--joblog has the columns of GNU parallel" {
    run -123 weir map -q -j1 --joblog log 'echo {}; [ {} != b ] || exit 3; [ {} != c ] || kill -9 $$ #' ::: a b c
    [ "$(head -n 1 log)" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
    [ "$(cut -f 1,2,5-8 log | tail -n +2)" = $'1\t:\t0\t2\t0\t0\n2\t:\t0\t2\t3\t0\n3\t:\t0\t2\t0\t9' ]
    awk -F '\t' 'NR > 1 && ($3 !~ /^[0-9]+\.[0-9][0-9][0-9]$/ || $4 !~ /^ *[0-9]+\.[0-9][0-9][0-9]$/ || !/echo/) { exit 1 }' log
    weir map --joblog log true ::: $'x\ny' # anew, and one line for a job
    [ "$(wc -l <log)" -eq 2 ]
    refused 125 "cannot write /no/such/log" weir map --joblog /no/such/log true ::: 1
}

@test "--resume leaves out what has succeeded" {
    run -123 weir map -q -j1 --joblog log 'echo {}; [ -e ok ] || [ {} = 1 ] #' ::: 1 2 3
    touch ok
    run -0 weir map --joblog log --resume 'echo {}; [ -e ok ] || [ {} = 1 ] #' ::: 1 2 3 4
    [ "$(sort <<<"$output")" = $'2\n3\n4' ]
    run -0 weir map --joblog log --resume 'echo {}; [ -e ok ] || [ {} = 1 ] #' ::: 1 2 3 4
    [ "$output" = "" ]
    run -0 weir map --joblog log --resume 'echo {}; [ -e ok ] || [ {} = 1 ] #' ::: 1 2 other 4
    [ "$output" = other ] # another command is another job
}

@test "--resume works from a log that was cut off, and from none" {
    weir map --joblog log --resume echo ::: a b >/dev/null
    printf '3\t:\t17' >>log
    run -0 weir map --joblog log --resume echo ::: a b c
    [ "$output" = c ]
    run -0 weir map --joblog log --resume --dry-run echo ::: a b c d
    [ "$output" = "echo d" ]
    [ "$(wc -l <log)" -eq 5 ]
}

@test "--results keeps what each job wrote" {
    run -123 --separate-stderr weir map -q --results dir 'echo o{}; echo e{} >&2; exit {}' ::: 0 4
    [ "$(sort <<<"$output")" = $'o0\no4' ]
    [ "$(cat dir/1/stdout dir/1/stderr dir/1/status)" = $'o0\ne0\n0' ]
    [ "$(cat dir/2/stdout dir/2/stderr dir/2/status)" = $'o4\ne4\n4' ]
    [ "$(cat dir/2/command)" = 'echo o4; echo e4 >&2; exit 4' ]
    refused 125 "cannot make /no/such/dir" weir map --results /no/such/dir true ::: 1
}

# ---- --sem ------------------------------------------------------------------------------------------

@test "--sem: each job holds a slot, and is told which" {
    run -0 weir map --sem db --limit 2 -j4 'echo "$WEIR_NAME $WEIR_LIMIT $WEIR_SLOT" #' ::: 1 2 3
    [[ $output == *"db 2 0"* ]]
    start weir map --sem db --limit 2 -j4 "$at_once" ::: 1 2 3 4
    eventually stat_is db held 2
    eventually stat_is db waiting 1
    touch go
    ends_with 0 "$pid"
    stat_is db held 0
    stat_is db waiting 0
}

@test "--sem: maps that share a name never run more than its limit, and take turns" {
    job='echo {} >>order; mkdir run.{}; set -- run.*; echo $# >>counts; rmdir run.{}'
    start weir map --sem db --limit 2 -j4 "$job" ::: $(seq 1 40)
    first=$pid
    start weir map --sem db -j4 "$job" ::: $(seq 101 140)
    ends_with 0 "$pid"
    ends_with 0 "$first"
    [ "$(wc -l <counts)" -eq 80 ]
    [ "$(sort -n counts | tail -n 1)" -le 2 ]
}

@test "--sem: no slot in time is 124, another limit 122" {
    start weir run db -n 1 -- sleep 1000
    eventually stat_is db held 1
    refused 124 'no slot of "db" was free within' weir map --sem db -w 50ms true ::: 1
    refused 124 'no slot of "db" was free within' weir map --sem db -w 0 true ::: 1
    refused 122 'in use with a limit of 1, not 2' weir map --sem db --limit 2 true ::: 1
    start weir map --sem db true ::: 1
    eventually stat_is db waiting 1
    weir evict db "$(waiter_of db)"
    ends_with 124 "$pid"
}

@test "--sem: a lease with a TTL is renewed, and a job whose lease is lost is stopped" {
    start weir map --sem db -t 10s --joblog log 'exec sleep 1000 #' ::: 1
    eventually stat_is db held 1
    weir evict db "$(holder_of db)"
    ends_with 123 "$pid"
    [ "$(cut -f 8 log | tail -n 1)" = 15 ]
}
