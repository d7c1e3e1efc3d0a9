package selfcheck

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A watch reaches a verdict from both of its probes and ends with its context.
func TestWatchReachesAVerdict(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := new(Watch)
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, w.Run(ctx))
	})
	if v := w.Health(time.Now()).Verdict; v != api.VerdictUnknown {
		t.Errorf("verdict before any sample = %q, want unknown", v)
	}
	wait.Eventually(t, "a verdict", func() (any, bool) {
		h := w.Health(time.Now())
		lag := w.Total()
		return h, h.Verdict != api.VerdictUnknown && h.LagSeconds > 0 && lag.Send.N() > 0
	})
	cancel()
	wg.Wait()
}

// A timer that could not be made, or that failed, is replaced. The verdict recovers with its samples, and not before.
func TestVerdictRecoversAfterFailedTimer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := new(Watch)
	timers := make(chan func() (*workload.Timer, error))
	var wg sync.WaitGroup
	wg.Go(func() {
		w.watchTimers(ctx, func(time.Duration) (*workload.Timer, error) {
			select {
			case next := <-timers:
				return next()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	})
	timers <- func() (*workload.Timer, error) { return nil, errors.New("too many open files") }
	timers <- func() (*workload.Timer, error) {
		w.recordCanary(&chat.Result{Sent: time.Now(), Content: " 1", Chunks: make([]chat.Chunk, 1)})
		assert.Contains(t, w.Health(time.Now()).Reason, "too many open files", "a canary does not clear it")
		broken, err := workload.NewTimer(interval)
		broken.Close()
		return broken, err
	}
	timers <- func() (*workload.Timer, error) { return workload.NewTimer(interval) }
	wait.Eventually(t, "samples of the third timer", func() (any, bool) {
		h := w.Health(time.Now())
		return h, h.Reason == "the first seconds of the self-check" && new(w.Total()).Timer.N() > 0
	})
	cancel()
	wg.Wait()
}

// Take returns only the lag since its last call. A simulation is reported as long as the health is based on its time.
func TestTakeReturnsTheLagSinceTheLastCall(t *testing.T) {
	now := time.Unix(1000, 0)
	w := &Watch{Simulated: func(since time.Time) bool { return since.Equal(now.Add(-span)) }}
	add := func(n int) {
		for range n {
			w.history.AddTimer(now, time.Millisecond)
			w.history.AddStream(now, time.Microsecond)
		}
	}
	add(100)
	assert.Equal(t, 100, new(w.Take()).Timer.N())
	add(7)
	assert.Equal(t, 7, new(w.Take()).Timer.N())
	assert.Equal(t, 107, new(w.Total()).Timer.N())
	h := w.Health(now)
	assert.Equal(t, api.VerdictFine, h.Verdict)
	assert.True(t, h.Simulating)
	assert.InDelta(t, .001, h.LagSeconds, .0001, "the later of the two")
	h = w.Health(now.Add(time.Minute))
	assert.Equal(t, api.VerdictUnknown, h.Verdict, "a minute after the last sample")
}
