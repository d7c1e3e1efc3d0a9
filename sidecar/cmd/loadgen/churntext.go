package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/churn"
)

// churnText returns a report in Markdown.
func churnText(r *churn.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Churn\n\n%d of %d events, in %d blocks, at %s, seed %d. Each: %g s to warm up, %g s before, %g s "+
		"after, windows of %g s.\n", len(r.Instances), r.Blocks*len(r.Arms)*len(r.Events), r.Blocks, r.Level, r.Seed,
		r.WarmUp, r.Windows.Before, r.After, r.Windows.Window)
	if r.Unfinished != "" {
		fmt.Fprintf(&b, "\nUnfinished: %s.\n", r.Unfinished)
	}
	for _, event := range r.Events {
		fmt.Fprintf(&b, "\n## %s\n\n| arm | events | failed turns each | errors | TTFT p95 as before after | hit rate as "+
			"before after | prompt tokens lost each | breakers of other workers |\n|---|---|---|---|---|---|---|---|\n", event)
		for _, s := range r.Summaries {
			if s.Event == event {
				fmt.Fprintf(&b, "| %s | %d | %.1f | %s | %s | %s | %s | %s |\n", s.Arm, s.Instances, s.Failed,
					errorWords(s.Errors), medianWords(s.TTFT), medianWords(s.HitRate), tokenWords(s.TokensLost),
					breakerWords(r, s.Arm, event))
			}
		}
		for _, c := range r.Comparisons {
			if c.Event == event {
				fmt.Fprintf(&b, "\n%s minus %s: failed turns %s; prompt tokens lost %s; TTFT p95 as before %s later, hit rate "+
					"%s later.\n", c.B, c.A, contrastWords(c.Failed), contrastWords(c.TokensLost), medianWords(c.TTFT),
					medianWords(c.HitRate))
			}
		}
	}
	b.WriteString(limitWords(r))
	for _, n := range r.Instances {
		if n.Error+n.Undo != "" {
			fmt.Fprintf(&b, "\n- block %d, %s, %s: %s%s\n", n.Block+1, n.Arm, n.Event, n.Error, n.Undo)
		}
	}
	return b.String() + "\nTimes are medians with the interval between two of the measured ones, and its confidence; " +
		"\"over\" is not as before by the end. Means have intervals of 95 %. Each interval holds for itself.\n"
}

// limitWords says up to what windows counted as before.
func limitWords(r *churn.Report) (text string) {
	for _, arm := range r.Arms {
		var ttft, rate, n float64
		for _, i := range r.Instances {
			if i.Arm == arm && i.TTFT.Limit != nil && i.HitRate.Limit != nil && *i.HitRate.Before > 0 {
				n++
				ttft += *i.TTFT.Limit / *i.TTFT.Before
				rate += *i.HitRate.Limit / *i.HitRate.Before
			}
		}
		if n > 0 {
			text += fmt.Sprintf("\nUnder %s, as before is a TTFT p95 up to %.0f %% higher and a hit rate up to %.0f %% lower, "+
				"on average: 10 %%, or what windows before the events scatter.\n", arm, 100*(ttft/n-1), 100*(1-rate/n))
		}
	}
	return text
}

// breakerWords says whether breakers of workers opened that the event did not hit.
func breakerWords(r *churn.Report, arm, event string) string {
	reported, opened := 0, map[string]int{}
	for _, n := range r.Instances {
		if n.Arm != arm || n.Event != event || n.Error != "" || n.Opened == nil {
			continue
		}
		reported++
		for _, worker := range n.Opened {
			opened[api.Printable(worker)]++
		}
	}
	switch {
	case reported == 0:
		return "not reported"
	case len(opened) == 0:
		return fmt.Sprintf("none opened in %d", reported)
	}
	return fmt.Sprintf("opened, of %d: %s", reported, strings.Trim(fmt.Sprint(opened), "map[]"))
}

// errorWords returns the numbers of errors by their classes, which the format sorts.
func errorWords(errors map[api.ErrorClass]int) string {
	return cmp.Or(strings.Trim(fmt.Sprint(errors), "map[]"), "none")
}

// medianWords returns a median in seconds with its interval.
func medianWords(m *churn.Median) string {
	if m == nil {
		return "not known"
	}
	in := func(v *float64, none string) string {
		if v == nil {
			return none
		}
		return strings.Replace(fmt.Sprintf("%.3g s", *v), "-", "−", 1)
	}
	text := in(m.Value, "over")
	if m.Instances > 1 {
		text += fmt.Sprintf(" (%s to %s, %.0f %%)", in(m.Low, "any"), in(m.High, "any"), 100*m.Confidence)
	}
	if m.Censored > 0 {
		text += fmt.Sprintf(", %d over", m.Censored)
	}
	return text
}

func contrastWords(d *churn.Difference) string {
	if d == nil {
		return "not known"
	}
	return fmt.Sprintf("%s (%s to %s)", tokenWords(&d.Estimate), tokenWords(&d.Interval[0]), tokenWords(&d.Interval[1]))
}

// tokenWords returns a count, with a decimal where it is small.
func tokenWords(v *float64) string {
	if v == nil {
		return "not known"
	}
	if math.Abs(*v) < 100 && *v != math.Trunc(*v) {
		return api.Number(*v, 1)
	}
	return api.Number(*v, 0)
}
