package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// statusLine rewrites one line of a terminal once a second until ctx ends.
func statusLine(ctx context.Context, w *terminal, width func() int, text func() string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		w.show(fit(text(), width()-1))
		select {
		case <-ctx.Done():
			w.end()
			return
		case <-tick.C:
		}
	}
}

// fit cuts text to n columns of a terminal, or of one of unknown width where n is not positive. It escapes control
// characters, because the text may contain a target's messages.
func fit(text string, n int) string {
	line := []rune(api.Printable(text))
	if n > 0 && len(line) > n {
		line = append(line[:n-1], '…')
	}
	return string(line)
}

// describe formats a snapshot in one line. A second lane follows the first.
func describe(s api.Snapshot) string {
	parts := laneParts(s.Lanes[0])
	for _, l := range s.Lanes[1:] {
		parts = append(parts, l.Name+": "+strings.Join(laneParts(l), " · "))
	}
	if s.Client.Verdict == api.VerdictBottleneck {
		parts = append(parts, "LOAD GENERATOR'S OWN TIMING ERROR TOO LARGE")
	}
	return strings.Join(parts, " · ")
}

// laneParts returns the parts of the status line that describe a lane.
func laneParts(l api.LaneSnapshot) []string {
	parts := []string{phase(l.State)}
	if h := l.Baseline.Headline; h != nil && l.State.Phase == api.PhaseRunning && !l.State.Settling {
		parts = append(parts, h.Text)
	}
	if l.Target.Problem != "" {
		parts = append(parts, "target: "+l.Target.Problem)
	}
	if l.State.Running {
		m := l.Window.Metrics
		parts = append(parts,
			"TTFT "+pair(m.TTFT)+" ms", "TPOT "+pair(m.TPOT)+" ms",
			api.Number(l.Window.OutputTokensPerSecond, 0)+" tok/s",
			api.Number(l.Window.RequestsPerSecond, 2)+" req/s",
			"KV hit "+percent(l.KV.HitRatio), fmt.Sprintf("errors %d", l.Totals.Errors))
	}
	return parts
}

// load describes the conversations in progress and what they are to be: 57/60, or 57 at 12/s.
func load(c api.Concurrency) string {
	if c.Target.Kind == api.Rate {
		return fmt.Sprintf("%d at %v", c.Actual, c.Target)
	}
	return fmt.Sprintf("%d/%v", c.Actual, c.Target)
}

func phase(s api.State) string {
	text := string(s.Phase)
	if s.Running {
		text = fmt.Sprintf("%s %s %s", s.Phase, load(s.Concurrency), s.InMode().Short())
	}
	if s.Running && s.Step.Held != nil {
		text += " limited by " + string(s.Step.Held.By)
	}
	if s.Settling {
		text += " settling"
	}
	if s.ModeChange != nil {
		text += fmt.Sprintf(" → %s: %s", s.ModeChange.To.Short(), s.ModeChange.Message)
	}
	return text
}

// pair formats p50/p95 in milliseconds.
func pair(q api.Quantiles) string {
	if q.P50 == nil || q.P95 == nil {
		return "–"
	}
	return api.InMS(*q.P50) + "/" + api.InMS(*q.P95)
}

func percent(v *float64) string {
	if v == nil {
		return "–"
	}
	return api.Percent(*v)
}
