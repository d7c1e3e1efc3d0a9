package wait_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/internal/wait"
)

// failing records the failure of a test.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

// run calls a function of a test to its end and returns its failure.
func run(t *testing.T, test func(t testing.TB)) (message string) {
	f, done := &failing{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	return f.message
}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestEventuallyReturnsOnceTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		wait.Eventually(t, "the third look", func() (any, bool) { n++; return n, n == 3 })
		assert.Equal(t, 3, n)
	})
}

func TestEventuallyPrintsTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		message := run(t, func(t testing.TB) {
			wait.Eventually(t, "all are stored", func() (any, bool) { return "2 of 3", false })
		})
		assert.Equal(t, "all are stored: not so after 1m0s; last state: 2 of 3", message)
		assert.GreaterOrEqual(t, time.Since(began), wait.Limit)
	})
}

func TestReceiveEndsTheTestWithoutAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		message := run(t, func(t testing.TB) { wait.Receive(t, "a snapshot", make(chan int)) })
		assert.Contains(t, message, "a snapshot: nothing received")
	})
}

func TestAdvancePanicsOutsideABubble(t *testing.T) {
	assert.Panics(t, func() { wait.Advance(time.Nanosecond) })
}
