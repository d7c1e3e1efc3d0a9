//go:build dynamo

package dynamo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// A trial on a real Dynamo, with turns dealt out by the load generator for round-robin, ends
// with a verdict, or with its time, and a report of either.
func TestTrial(t *testing.T) {
	b := startBooth(t)
	s := b.trial(t, time.Minute)
	if s.State == api.SweepDone && s.Trial.Pairs == 0 {
		// On a busy machine the load generator finds itself late, and such spans do not count: a minute can be over before
		// there is a pair that does.
		s = b.trial(t, 3*time.Minute)
	}
	if s.State != api.SweepDone || s.Trial.Primary == nil || s.Trial.Verdict == "running" {
		t.Fatalf("it is %s (%s), %+v", s.State, s.Reason, s.Trial)
	}
	var report bytes.Buffer
	if err := b.client.SweepReport(t.Context(), &report, s.ID, api.ReportMarkdown); err != nil {
		t.Fatal(err)
	}
	for _, want := range append(s.Words, "# ", "nonce") {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Log(strings.Join(s.Words, "\n"))
}

// trial runs one of kv against round-robin, for at most so long, and gives it when it has ended.
func (b *booth) trial(t *testing.T, limit time.Duration) api.Sweep {
	t.Helper()
	s, err := b.client.StartSweep(t.Context(), api.DefaultLane, api.SweepRequest{
		Kind: api.SweepTrial, Levels: []int{12}, Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}},
		Seconds: new(5.), MaxSeconds: new(limit.Seconds()),
	})
	if err != nil {
		t.Fatal(err)
	}
	wait.Within(t, 5*time.Minute+limit, "the trial ends", func() (any, bool) {
		if s, err = b.client.Sweep(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		return s.Progress, s.State != api.SweepRunning
	})
	for _, span := range s.Spans {
		t.Logf("span %d, %s, %s: %d turns in %.0f s, by %s, %s", span.Number, span.Arm, span.Mode.Mode, span.Turns, span.Until.Sub(span.CountedFrom).Seconds(), span.Cold, span.Spoiled)
	}
	return s
}
