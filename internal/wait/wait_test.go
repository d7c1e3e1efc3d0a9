package wait_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
)

// failing records the failure of a test.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestEventuallyReturnsOnceTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		wait.Eventually(t, "the third look", func() (any, bool) { n++; return n, n == 3 })
		if n != 3 {
			t.Errorf("looked %d times, want 3", n)
		}
	})
}

func TestEventuallyPrintsTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			wait.Eventually(f, "all are stored", func() (any, bool) { return "2 of 3", false })
		}()
		<-done
		for _, want := range []string{"all are stored", "2 of 3", "1m0s"} {
			if !strings.Contains(f.message, want) {
				t.Errorf("message %q does not contain %q", f.message, want)
			}
		}
		if took := time.Since(began); took < wait.Limit {
			t.Errorf("gave up after %v, want at least %v", took, wait.Limit)
		}
	})
}

func TestReceiveEndsTheTestWithoutAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			wait.Receive(f, "a snapshot", make(chan int))
		}()
		<-done
		if !strings.Contains(f.message, "a snapshot: nothing received") {
			t.Errorf("message is %q", f.message)
		}
	})
}

func TestAdvancePanicsOutsideABubble(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	wait.Advance(time.Nanosecond)
}
