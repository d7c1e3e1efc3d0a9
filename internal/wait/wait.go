// Package wait contains the waiting of tests: for a condition, for a channel, or for the fake clock of a synctest
// bubble. Tests do not poll or sleep otherwise, so that a failure reports what was expected and the last state.
package wait

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Limit is the limit of Eventually, Receive and Context. A test reaches it only if the condition never holds, even on
// a machine with several times as much load as cores.
const Limit = time.Minute

// shortest and longest are the pauses between two calls of Eventually's condition. They grow, since each call takes
// time from the process that the test waits for.
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

// Within is like Eventually with another limit, for conditions that must hold before a limit of the product ends, and
// for work that takes minutes.
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

// Receive returns the next value of a channel, or the zero value if it is closed. It ends the test after Limit.
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

// Advance blocks until the fake clock of a synctest bubble has advanced by d. It panics outside a bubble, where it
// would wait by wall clock.
func Advance(d time.Duration) {
	if time.Now().Year() >= realYears {
		panic("wait.Advance outside a synctest bubble: wait for a condition instead")
	}
	time.Sleep(d)
}

// realYears is a year before the current time, but after every bubble's, which starts in the year 2000
// (https://pkg.go.dev/testing/synctest).
const realYears = 2025

// text formats a state for the message of a failed test.
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
