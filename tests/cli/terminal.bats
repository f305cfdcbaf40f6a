#!/usr/bin/env bats
# What a person at a terminal sees of weir run and acquire.
load helpers

@test "a command reads the terminal" {
    terminal
    keys 'weir run db -- cat' Enter
    eventually stat_is db held 1
    keys 'hello' Enter
    eventually shows hello 2 # typed, and printed
    keys C-d
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "less shows a page, takes keys and gives the terminal back" {
    terminal
    seq 1 500 >numbers
    keys 'weir run db -- less numbers' Enter
    eventually shows 28
    keys G
    eventually shows 500
    keys q
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "less at the end of a pipe has the terminal, and so it has behind one" {
    terminal
    keys 'weir run db -- seq 1 500 | less' Enter
    eventually shows 28
    keys G
    eventually shows 500
    keys q
    keys 'seq 501 900 | weir run db -- less' Enter
    eventually shows 528
    keys G
    eventually shows 900
    keys q
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "a command that is run in the background of a script leaves the terminal to that" {
    terminal
    printf 'weir run db -- sleep 1000 &\nread -r line\necho "read $line"\nkill $!\n' >script
    keys 'bash script' Enter
    eventually stat_is db held 1
    keys 'it' Enter
    eventually shows 'read it'
}

@test "with its output in a file a command still reads the terminal" {
    terminal
    keys 'weir run db -- cat >out' Enter
    eventually stat_is db held 1
    keys 'hello' Enter C-d
    eventually says out hello
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "Ctrl-C ends the command, and the shell goes on" {
    terminal
    keys 'weir run db -- sleep 1000' Enter
    eventually stat_is db held 1
    keys C-c
    keys 'echo status $?' Enter
    eventually shows 'status 130'
    stat_is db held 0
}

@test "Ctrl-C ends the script around it, also when its output is piped" {
    terminal
    printf 'weir run db -- sleep 1000\necho "still here" >>after\n' >script
    for pipe in '' '| cat'; do
        keys "bash script $pipe" Enter
        eventually stat_is db held 1
        keys C-c
        eventually stat_is db held 0
        keys 'echo over >>done' Enter
        eventually has_lines done 1
        rm done
    done
    [ ! -e after ]
}

@test "a command may refuse Ctrl-C" {
    terminal
    keys "weir run db -- sh -c 'trap \"echo refused\" INT; echo begun; read line; read line; exit 6'" Enter
    eventually shows begun 2
    keys C-c
    eventually shows refused 2
    keys Enter Enter
    keys 'echo status $?' Enter
    eventually shows 'status 6'
}

@test "Ctrl-Z stops it, fg continues it" {
    terminal
    keys "weir run db -- sh -c 'touch begun; exec cat'" Enter
    eventually test -e begun
    keys C-z
    eventually shows Stopped
    stat_is db held 1
    keys fg Enter
    keys 'again' Enter
    eventually shows again 2
    keys C-d
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "Ctrl-Z stops the script around it, and bg lets both go on" {
    terminal
    printf 'weir run db -- sh -c "touch begun; while [ ! -e go ]; do sleep 0.01; done"\ntouch after\n' >script
    keys 'bash script' Enter
    eventually test -e begun # it has the terminal by then
    keys C-z
    eventually shows Stopped
    keys bg Enter
    touch go
    eventually test -e after
    keys 'fg; echo back' Enter
    eventually shows back 2
}

@test "in the background it is stopped when it reads, and fg lets it read" {
    terminal
    keys 'weir run db -- cat &' Enter
    eventually stat_is db held 1
    keys Enter
    is_shown_stopped() { keys Enter; shows Stopped; }
    eventually is_shown_stopped
    keys fg Enter
    keys 'in front' Enter
    eventually shows 'in front' 2
    keys C-d
    keys 'echo status $?' Enter
    eventually shows 'status 0'
}

@test "who waits is told for whom, and its place in line" {
    start weir run db -l 'a long job' -- sleep 1000
    eventually stat_is db held 1
    terminal
    keys 'weir run db -- echo served' Enter
    eventually shows 'weir: waiting for a slot of "db": 1st in line; held by a long job (pid'
    kill "${started[0]}"
    eventually shows served 2
}

@test "-q says nothing, and nothing is said where there is no terminal" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    terminal
    keys 'weir run db -q -w 1500ms -- true; echo status $?' Enter
    run weir run db -w 1500ms -- true
    [[ $output != *waiting* ]]
    eventually shows 'status 124'
    ! shows waiting
}

@test "Ctrl-C while waiting leaves the line" {
    start weir run db -- sleep 1000
    eventually stat_is db held 1
    terminal
    for command in 'weir run db -- true' 'weir acquire db'; do
        keys "$command" Enter
        eventually stat_is db waiting 1
        keys C-c
        eventually stat_is db waiting 0
        keys 'echo status $?; clear' Enter
    done
    keys 'echo done' Enter
    eventually shows done
    stat_is db held 1
}

@test "a closed terminal ends the command" {
    terminal
    keys 'weir run db -- sleep 1000' Enter
    eventually stat_is db held 1
    tmux -L "$SOCKET" kill-server
    eventually stat_is db held 0
}

@test "a lost lease stops the command and gives the terminal back" {
    terminal
    keys 'weir run db -- cat' Enter
    eventually stat_is db held 1
    weir evict db "$(holder_of db)"
    eventually shows 'ready$' 2
    keys 'echo status $?' Enter
    eventually shows 'status 120'
}
