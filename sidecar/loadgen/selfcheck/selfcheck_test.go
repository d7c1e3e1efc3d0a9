package selfcheck

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A watch reaches a verdict from both of its probes and ends with its context.
func TestWatchReachesAVerdict(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := new(Watch)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if v := w.Health(time.Now()).Verdict; v != api.VerdictUnknown {
		t.Errorf("verdict before any sample = %q, want unknown", v)
	}
	wait.Eventually(t, "a verdict", func() (any, bool) {
		h := w.Health(time.Now())
		return h, h.Verdict != api.VerdictUnknown && h.LagSeconds > 0
	})
	cancel()
	wg.Wait()
}

// The verdict follows the later of the two probes and forgets old samples.
func TestVerdict(t *testing.T) {
	now := time.Unix(1000, 0)
	fill := func(timer, stream time.Duration) *Watch {
		w := new(Watch)
		for i := range 200 {
			at := now.Add(-time.Duration(i) * interval)
			w.sentinel.at, w.sentinel.lag = append(w.sentinel.at, at), append(w.sentinel.lag, timer)
			w.canary.at, w.canary.lag = append(w.canary.at, at), append(w.canary.lag, stream)
		}
		return w
	}
	for _, row := range []struct {
		timer, stream time.Duration
		want          api.Verdict
	}{
		{time.Millisecond, 200 * time.Microsecond, api.VerdictFine},
		{5 * time.Millisecond, 200 * time.Microsecond, api.VerdictBottleneck}, // a busy machine
		{time.Millisecond, 6 * time.Millisecond, api.VerdictBottleneck},       // a busy program
	} {
		h := fill(row.timer, row.stream).Health(now)
		if h.Verdict != row.want || h.LagSeconds != max(row.timer, row.stream).Seconds() {
			t.Errorf("timer %v, stream %v: %+v, want %s", row.timer, row.stream, h, row.want)
		}
		if row.want == api.VerdictBottleneck && !strings.Contains(h.Reason, "more CPU or fewer conversations") {
			t.Errorf("the reason does not say what to do: %s", h.Reason)
		}
	}
	w := fill(5*time.Millisecond, time.Millisecond)
	w.Simulated = func(since time.Time) bool { return since.Equal(now.Add(-span)) }
	if h := w.Health(now); h.Verdict != api.VerdictBottleneck || !strings.Contains(h.Reason, "a what-if simulation is running on the same machine: cancel it") {
		t.Errorf("a simulation in the last 10 s is not named: %+v", h)
	}
	w = fill(time.Millisecond, time.Millisecond)
	w.Simulated = func(time.Time) bool { return true }
	if h := w.Health(now); h.Verdict != api.VerdictFine {
		t.Errorf("a simulation that costs nothing is blamed: %+v", h)
	}
	w = fill(time.Second, time.Second)
	if v := w.Health(now.Add(time.Minute)).Verdict; v != api.VerdictUnknown {
		t.Errorf("verdict a minute after the last sample = %q, want unknown", v)
	}
}

// A window holds the samples of ten seconds.
func TestLagsForget(t *testing.T) {
	var l lags
	start := time.Unix(0, 0)
	for i := range 2000 {
		l.add(start.Add(time.Duration(i)*interval), time.Duration(i))
	}
	p, n := l.p95(start.Add(1999 * interval))
	if n != 501 || p != 1974 {
		t.Errorf("p95 = %d of %d samples, want 1974 of 501", p, n)
	}
}

// The lag of a span is that of its own samples, whatever the present lag.
func TestLagOfASpan(t *testing.T) {
	w := new(Watch)
	start := time.Unix(1_000_000, 0)
	for i := range 50 * 600 { // ten minutes
		at := start.Add(time.Duration(i) * interval)
		lag := time.Millisecond
		if second := i / 50; second >= 400 && second < 460 {
			lag = 8 * time.Millisecond
		}
		w.add(&w.sentinel, at, lag)
		w.add(&w.canary, at, lag/2)
	}
	for _, row := range []struct {
		from, to int
		want     time.Duration
		known    bool
	}{
		{540, 599, time.Millisecond, true},
		{400, 459, 8 * time.Millisecond, true},
		{300, 599, 8 * time.Millisecond, true}, // a fifth of the span
		{460, 519, time.Millisecond, true},
		{100, 160, 0, false}, // forgotten
		{700, 760, 0, false}, // has not come
	} {
		lag, ok := w.Lag(start.Add(time.Duration(row.from)*time.Second), start.Add(time.Duration(row.to)*time.Second))
		if lag != row.want || ok != row.known {
			t.Errorf("%d to %d s: %v, %t, want %v, %t", row.from, row.to, lag, ok, row.want, row.known)
		}
	}
}
