// SPDX-License-Identifier: MIT

// peer_tasks QUESTION N asks goroutines what the task_*.c programs ask weir's tasks, and
// prints the nanoseconds that one operation took, or the bytes that one goroutine takes.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

var forever = context.Background()

func perOperation(start time.Time, operations int) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(operations)
}

// Let all others run until they have nothing left to do but wait.
func untilAll(arrived *atomic.Int64, n int) {
	for arrived.Load() < int64(n) {
		runtime.Gosched()
	}
	runtime.Gosched()
}

// ---- switching --------------------------------------------------------------------

func yield(n int) float64 {
	var all sync.WaitGroup
	start := time.Now()
	for i := 0; i < 2; i++ {
		all.Add(1)
		go func() {
			for k := 0; k < n; k++ {
				runtime.Gosched()
			}
			all.Done()
		}()
	}
	all.Wait()
	return perOperation(start, 2*n)
}

// Two goroutines, each of which waits to be told and then tells the other.
func handoff(n int, take func(chan struct{})) float64 {
	channels := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	ended := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	play := func(player int) {
		mine, theirs := channels[player], channels[1-player]
		for i := 0; i < n; i++ {
			take(mine)
			theirs <- struct{}{}
		}
		close(ended[player])
	}
	start := time.Now()
	go play(0)
	go play(1)
	channels[0] <- struct{}{}
	<-ended[0]
	<-channels[0] // nobody else is there to take the last one
	<-ended[1]
	return perOperation(start, 2*n)
}

func handoffChannel(n int) float64 {
	return handoff(n, func(c chan struct{}) { <-c })
}

// What weir's hand-off can do as well: be cancelled, or end by a deadline.
func handoffSelect(n int) float64 {
	limited, cancel := context.WithTimeout(forever, time.Hour)
	defer cancel()
	return handoff(n, func(c chan struct{}) {
		select {
		case <-c:
		case <-limited.Done():
			panic("an hour has passed")
		}
	})
}

// ---- starting and ending ------------------------------------------------------------

func spawnWaitGroup(n int) float64 {
	var one sync.WaitGroup
	start := time.Now()
	for i := 0; i < n; i++ {
		one.Add(1)
		go one.Done()
		one.Wait()
	}
	return perOperation(start, n)
}

func spawnChannel(n int) float64 {
	ended := make(chan int)
	start := time.Now()
	for i := 0; i < n; i++ {
		go func() { ended <- 0 }()
		<-ended
	}
	return perOperation(start, n)
}

func spawnBatches(n int) float64 {
	const batch = 1000
	var all sync.WaitGroup
	start := time.Now()
	for i := 0; i < n; i += batch {
		all.Add(batch)
		for k := 0; k < batch; k++ {
			go all.Done()
		}
		all.Wait()
	}
	return perOperation(start, n)
}

// The first wave pays for the stacks, and does not count.
func wakeAll(n int) float64 {
	const waves = 3
	var total time.Duration
	for wave := 0; wave <= waves; wave++ {
		var all sync.WaitGroup
		var arrived atomic.Int64
		event := make(chan struct{})
		all.Add(n)
		for i := 0; i < n; i++ {
			go func() {
				arrived.Add(1)
				<-event
				all.Done()
			}()
		}
		untilAll(&arrived, n)
		start := time.Now()
		close(event)
		all.Wait()
		if wave > 0 {
			total += time.Since(start)
		}
	}
	return float64(total.Nanoseconds()) / float64(waves*n)
}

// ---- one semaphore for many -----------------------------------------------------------

func semTasks(n int) float64 {
	const each = 100
	var all sync.WaitGroup
	var arrived atomic.Int64
	begin := make(chan struct{})
	sem := semaphore.NewWeighted(8)
	all.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			arrived.Add(1)
			<-begin
			for k := 0; k < each; k++ {
				if sem.Acquire(forever, 1) != nil {
					panic("for ever is over")
				}
				runtime.Gosched()
				sem.Release(1)
			}
			all.Done()
		}()
	}
	untilAll(&arrived, n)
	start := time.Now()
	close(begin)
	all.Wait()
	return perOperation(start, n*each)
}

// ---- timers -----------------------------------------------------------------------------

func timers(n int) float64 {
	const outstanding = 100 * 1000
	tooLate := func() { panic("an hour has passed") }
	for i := 0; i < outstanding; i++ {
		time.AfterFunc(time.Hour+time.Duration(i*7919%outstanding)*time.Millisecond, tooLate)
	}
	start := time.Now()
	for i := 0; i < n; i++ {
		after := time.Hour + time.Duration(i*7919%outstanding)*time.Millisecond
		if !time.AfterFunc(after, tooLate).Stop() {
			panic("it had not been armed")
		}
	}
	return perOperation(start, n)
}

// ---- memory -----------------------------------------------------------------------------

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		panic(err)
	}
	return pages * int64(os.Getpagesize())
}

func memory(n int) float64 {
	var arrived atomic.Int64
	event := make(chan struct{})
	before := residentBytes()
	for i := 0; i < n; i++ {
		go func() {
			arrived.Add(1)
			<-event
		}()
	}
	untilAll(&arrived, n)
	return float64(residentBytes()-before) / float64(n)
}

// -------------------------------------------------------------------------------------------

type question struct {
	threads int
	ask     func(n int) float64
}

var questions = map[string]question{
	"yield":           {1, yield},
	"handoff_channel": {1, handoffChannel},
	"handoff_select":  {1, handoffSelect},
	"spawn_waitgroup": {1, spawnWaitGroup},
	"spawn_channel":   {1, spawnChannel},
	"spawn_batches":   {1, spawnBatches},
	"wake_all":        {1, wakeAll},
	"sem_tasks":       {1, semTasks},
	"sem_tasks_two":   {2, semTasks},
	"timers":          {1, timers},
	"memory":          {1, memory},
}

func main() {
	if len(os.Args) != 3 || questions[os.Args[1]].ask == nil {
		fmt.Fprintln(os.Stderr, "usage: peer_tasks QUESTION N")
		os.Exit(2)
	}
	n, err := strconv.Atoi(os.Args[2])
	if err != nil || n < 1 {
		fmt.Fprintln(os.Stderr, "peer_tasks: N must be a number above 0")
		os.Exit(2)
	}
	asked := questions[os.Args[1]]
	runtime.GOMAXPROCS(asked.threads)
	fmt.Printf("%.2f\n", asked.ask(n))
}
