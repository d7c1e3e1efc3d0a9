package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// line formats the progress of the question in one line of a terminal.
func (q *question) line(s api.Snapshot) string {
	id := q.id.Load()
	if id == nil {
		reason := "checking the target"
		if w := q.waiting.Load(); w != nil {
			reason = *w
		}
		return q.noun() + " waits: " + reason
	}
	v, err := q.desk.Sweep(context.Background(), *id)
	if err != nil {
		return q.noun() + ": " + err.Error()
	}
	return progressLine(v, s)
}

// progressLine formats a sweep in one line. The most important part is first, because the terminal may be narrow.
func progressLine(v api.Sweep, s api.Snapshot) string {
	p := v.Progress
	parts := []string{v.Request.Kind.Noun()}
	if v.State != api.SweepRunning {
		parts[0] += " " + string(v.State)
		if v.Reason != "" {
			parts[0] += " " + v.Reason
		}
	}
	if until := cmp.Or(p.SecondsLeft, p.SecondsLeast); until != nil && !v.State.Ended() {
		used := p.SecondsUsed
		if p.Span != nil {
			used += p.Span.Elapsed
		}
		parts = append(parts, bar(used, *until), left(p))
	}
	done := spans(p.Spans)
	if p.Of != nil {
		done = fmt.Sprintf("%d of %s", p.Spans, spans(*p.Of))
	}
	if p.Spoiled > 0 {
		done += fmt.Sprintf(", %d more invalid", p.Spoiled)
	}
	parts = append(parts, done)
	if p.Span != nil {
		parts = append(parts, nowWords(*p.Span))
	}
	if t := v.Trial; t != nil && t.Primary != nil {
		parts = append(parts, differenceWords(v, *t.Primary))
	}
	if len(s.Lanes) > 0 && s.Lanes[0].Target.Problem != "" {
		parts = append(parts, "target: "+s.Lanes[0].Target.Problem)
	}
	if s.Client.Verdict == api.VerdictBottleneck {
		parts = append(parts, "LOAD GENERATOR'S OWN TIMING ERROR TOO LARGE")
	}
	return strings.Join(parts, " · ")
}

// bar draws the share of the time that is used.
func bar(used, left float64) string {
	const cells = 10
	share := 0.
	if used > 0 {
		share = used / (used + left)
	}
	full := int(share * cells)
	return fmt.Sprintf("[%s%s] %.0f %%", strings.Repeat("#", full), strings.Repeat("-", cells-full), math.Floor(100*share))
}

// left formats the estimated remaining time.
func left(p api.SweepProgress) string {
	switch {
	case p.SecondsLeft == nil:
		return "first look in about " + span(*p.SecondsLeast)
	case p.Beyond:
		return "will likely end undecided, in " + span(*p.SecondsLeft)
	case p.SecondsLeast == nil || p.SecondsMost == nil:
		return "about " + span(*p.SecondsLeft) + " left"
	}
	return fmt.Sprintf("about %s left (%s to %s)", span(*p.SecondsLeft), span(*p.SecondsLeast), span(*p.SecondsMost))
}

// span formats a number of seconds, to the minute once there are some.
func span(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// nowWords describes the span in progress.
func nowWords(n api.SweepNow) string {
	text := fmt.Sprintf("%s at %v", n.Mode.Name(), n.Level)
	if n.Attempt > 1 {
		text += " again"
	}
	seconds := fmt.Sprintf("%.0f s", n.Seconds)
	if n.Of != nil {
		seconds = fmt.Sprintf("%.0f/%.0f s", n.Seconds, *n.Of)
	}
	switch n.Phase {
	case api.SpanSwitching:
		text += ": changing the mode"
		if n.Message != "" {
			text += ": " + n.Message
		}
	case api.SpanWarmingUp:
		text += " warming up " + seconds
		if n.WarmingUp > 0 {
			text += fmt.Sprintf(", waiting for %d initial conversations to end", n.WarmingUp)
		} else if n.Message != "" {
			text += ", " + n.Message
		}
	case api.SpanCounting:
		text += fmt.Sprintf(" measuring %s, %d turns", seconds, n.Turns)
	case api.SpanStoring:
		text += " storing"
	}
	return text
}

// differenceWords describes the current state of the metric that decides a trial.
func differenceWords(v api.Sweep, d api.TrialDifference) string {
	unit, metric := "%", proof.Metric(d.Metric)
	signed := func(v float64) string { return api.Signed(100*v, 1) }
	if metric.Share() {
		unit = "points"
	}
	name, ranked := v.Request.Modes[1].Name(), ""
	if k := v.Trial.Ranking; k != nil {
		name = k.Places[0].Mode.Name()
		ranked = fmt.Sprintf(" against %s, %s", k.Places[1].Mode.Name(), takePart(k.Places))
	}
	text := fmt.Sprintf("%s of %s %s %s", metric.Name(), name, signed(d.Difference), unit)
	if d.Interval != nil {
		text = fmt.Sprintf("%s (%s to %s)", text, signed(d.Interval[0]), signed(d.Interval[1]))
	}
	return text + ranked
}

// takePart names the modes that still take part in a trial.
func takePart(places []api.TrialPlace) string {
	var names []string
	for _, p := range places {
		if p.LeftAfter == nil {
			names = append(names, p.Mode.Name())
		}
	}
	if len(names) == len(places) {
		return fmt.Sprintf("all %d take part", len(places))
	}
	if len(names) == 0 {
		return "every pair decided"
	}
	return "left: " + strings.Join(names, ", ")
}

// spanWords describes the result of an ended span, with its number on the page and in the report.
func spanWords(s api.SweepSpan) string {
	text := fmt.Sprintf("span %d, %s at %v: ", s.Number+1, s.Mode.Name(), s.Level)
	if s.Spoiled != "" {
		return text + "invalid: " + s.Spoiled
	}
	var figures []string
	if r := s.Row; r != nil {
		if r.TTFTMean != nil {
			figures = append(figures, "mean TTFT "+api.Milliseconds(*r.TTFTMean))
		}
		if r.TTFT.P95 != nil {
			figures = append(figures, "TTFT p95 "+api.Milliseconds(*r.TTFT.P95))
		}
		if r.OutputTokensPerSecond != nil {
			figures = append(figures, api.Number(*r.OutputTokensPerSecond, 0)+" tok/s")
		}
		if r.KVHitRatio != nil {
			figures = append(figures, "KV hit "+percent(r.KVHitRatio))
		}
		if r.AcceptanceRate != nil {
			figures = append(figures, "accepted "+percent(r.AcceptanceRate))
		}
	}
	figures = append(figures, api.Count(s.Turns)+" turns")
	if s.Failed > 0 {
		figures = append(figures, api.Count(s.Failed)+" failed")
	}
	return text + strings.Join(append(figures, "took "+span(s.Elapsed)), ", ")
}

// spans formats a number of spans that count.
func spans(n int) string {
	if n == 1 {
		return "1 span"
	}
	return fmt.Sprintf("%d spans", n)
}
