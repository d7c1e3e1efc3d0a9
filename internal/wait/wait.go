// Package wait is how tests wait: for a condition, for a channel, or for the fake clock of a synctest bubble. No
// test polls or sleeps in another way, so that each says what it waited for and what it saw last.
package wait

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Limit is how long Eventually, Receive and Context wait. It is generous: a test reaches it only where the condition
// never holds, also on a machine with several times as much to do as it has cores.
const Limit = time.Minute

// shortest and longest are the pauses between two looks of Eventually. They grow, since each look of a long wait
// takes time from the process that is waited for.
const (
	shortest = time.Millisecond
	longest  = 100 * time.Millisecond
)

// Eventually calls condition until it reports true and ends the test after Limit with what was expected and the last
// state that condition returned. It works on the fake clock of a synctest bubble too.
func Eventually(t testing.TB, what string, condition func() (state any, ok bool)) {
	t.Helper()
	Within(t, Limit, what, condition)
}

// Within is Eventually with a limit of its own, for conditions that have to hold before another limit of the
// product ends, and for work that takes minutes.
func Within(t testing.TB, limit time.Duration, what string, condition func() (state any, ok bool)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for pause := shortest; ; pause = min(2*pause, longest) {
		state, ok := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %v; last state: %s", what, limit, text(state))
		}
		time.Sleep(pause)
	}
}

// Receive returns the next value of a channel, or the zero value once it is closed. It ends the test after Limit.
func Receive[T any](t testing.TB, what string, values <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case v := <-values:
		return v
	case <-timer.C:
		t.Fatalf("%s: nothing received within %v", what, Limit)
		panic("unreachable")
	}
}

// Context returns a context that ends after Limit, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Limit, fmt.Errorf("the test waited for %v", Limit))
	t.Cleanup(cancel)
	return ctx
}

// Advance blocks until the fake clock of a synctest bubble has advanced by d. It panics outside a bubble, where
// sleeping would be waiting by the clock on the wall.
func Advance(d time.Duration) {
	if time.Now().Year() >= realYears {
		panic("wait.Advance outside a synctest bubble: wait for a condition instead")
	}
	time.Sleep(d)
}

// realYears is where the clock of a machine is ahead of every bubble's clock, which starts in the year 2000
// (https://pkg.go.dev/testing/synctest).
const realYears = 2025

// text formats a state for the message of a test that waited in vain.
func text(state any) string {
	switch s := state.(type) {
	case nil:
		return "none"
	case string:
		return s
	case error:
		return s.Error()
	case fmt.Stringer:
		return s.String()
	}
	return fmt.Sprintf("%+v", state)
}
