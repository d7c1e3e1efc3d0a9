//go:build dynamo

package dynamo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

// A trial on a real Dynamo, with turns dealt out by the load generator for round-robin, ends
// with a verdict, or with its time, and a report of either.
func TestTrial(t *testing.T) {
	b := startBooth(t)
	ctx := t.Context()
	s, err := b.client.StartSweep(ctx, api.DefaultLane, api.SweepRequest{
		Kind: api.SweepTrial, Levels: []int{24}, Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}},
		Seconds: new(5.), MaxSeconds: new(60.),
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); s.State == api.SweepRunning; {
		if time.Now().After(deadline) {
			t.Fatalf("the trial did not end: %+v", s.Progress)
		}
		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
		if s, err = b.client.Sweep(ctx, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, span := range s.Spans {
		t.Logf("span %d, %s, %s: %d turns in %.0f s, by %s, %s", span.Number, span.Arm, span.Mode.Mode, span.Turns, span.Until.Sub(span.CountedFrom).Seconds(), span.Cold, span.Spoiled)
	}
	if s.State != api.SweepDone || s.Trial.Primary == nil || s.Trial.Verdict == "running" {
		t.Fatalf("it is %s (%s), %+v", s.State, s.Reason, s.Trial)
	}
	var report bytes.Buffer
	if err := b.client.SweepReport(ctx, &report, s.ID, api.ReportMarkdown); err != nil {
		t.Fatal(err)
	}
	for _, want := range append(s.Words, "# ", "nonce") {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Log(strings.Join(s.Words, "\n"))
}
