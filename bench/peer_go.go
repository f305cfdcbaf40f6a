// SPDX-License-Identifier: MIT

// peer_go QUESTION N measures Go's weighted semaphore (golang.org/x/sync) N times and
// prints the nanoseconds that one operation took.  The questions are those of the C and
// C++ programs of the same names.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"
)

func uncontended(n int) time.Duration {
	sem := semaphore.NewWeighted(4)
	forever := context.Background()
	start := time.Now()
	for i := 0; i < n; i++ {
		if sem.Acquire(forever, 1) != nil {
			panic("nobody else is there")
		}
		sem.Release(1)
	}
	return time.Since(start)
}

// A context takes the part of the deadline: it is made once, like the deadlines of others.
func pastDeadline(n int) time.Duration {
	sem := semaphore.NewWeighted(1)
	if !sem.TryAcquire(1) {
		panic("it was free")
	}
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-1))
	defer cancel()
	start := time.Now()
	for i := 0; i < n; i++ {
		if sem.Acquire(late, 1) == nil {
			panic("it was taken")
		}
	}
	return time.Since(start)
}

func main() {
	questions := map[string]func(int) time.Duration{
		"sem_uncontended": uncontended,
		"past_deadline":   pastDeadline,
	}
	if len(os.Args) != 3 || questions[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer_go sem_uncontended|past_deadline N")
		os.Exit(2)
	}
	n, err := strconv.Atoi(os.Args[2])
	if err != nil || n < 1 {
		fmt.Fprintln(os.Stderr, "peer_go: N must be a number above 0")
		os.Exit(2)
	}
	took := questions[os.Args[1]](n)
	fmt.Printf("%.2f\n", float64(took.Nanoseconds())/float64(n))
}
