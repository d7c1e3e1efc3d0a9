package twin

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
)

// smallest is the difference that "no difference" excludes, in per cent.
const smallest = 5

// timesLeft holds estimated times: until both lanes have settled, and until the result is certain or, without an
// interval, until there is one; nil: not known.
type timesLeft struct {
	settled time.Duration
	certain *time.Duration
}

// headline returns the result of the pairs in one sentence: the mean TTFT of one lane compared with that of the other.
// The lane in kv mode is its subject, unless neither or both are.
func headline(t *api.Twin, states [2]api.State, problems []string, left timesLeft) api.Headline {
	h := api.Headline{Kind: api.HeadlineWaiting, Detail: api.List[string]{}, Lines: api.List[api.HeadlineLine]{}}
	pairs := "turns count once both lanes have settled"
	if t.Since != nil {
		pairs = fmt.Sprintf("%d turns on both lanes since %s", t.Pairs, lane.Clock(*t.Since))
	}
	i := slices.IndexFunc(t.Metrics, func(m api.PairedMetric) bool { return m.Metric == "ttft" })
	idle := lane.IdleText(&states[0])
	switch {
	case idle != "":
		h.Text = idle
	case len(problems) > 0:
		h.Text, h.Detail = "A target does not serve", problems
	case i < 0 || t.Metrics[i].Difference == nil || t.Since == nil:
		h.Text = "Settling: waiting for turns on both lanes"
		if left.settled > 0 {
			h.Text = fmt.Sprintf("Settling, %.0f s to go", math.Ceil(left.settled.Seconds()))
		}
		h.Detail = append(h.Detail, pairs)
	default:
		compare(&h, t, &t.Metrics[i])
		if !h.Certain && left.certain != nil {
			h.CertainIn = new(left.certain.Seconds())
		}
		h.Detail = append(h.Detail, pairs)
	}
	return h
}

// compare sets the headline of a metric that both lanes have.
func compare(h *api.Headline, t *api.Twin, m *api.PairedMetric) {
	names := [2]string{name(&t.A, &t.B), name(&t.B, &t.A)}
	subject := 0
	if t.B.Mode == api.ModeKV && t.A.Mode != api.ModeKV {
		subject = 1
	}
	l := compared(m, subject)
	other := lane.InSentence(names[1-subject])
	difference := lane.DifferenceText(*l.Percent)
	l.Text = fmt.Sprintf("against %s: mean %s", other, difference)
	if l.Kind == api.HeadlineUncertain {
		l.Text += " so far, not certain"
	}
	h.Kind, h.Against, h.Difference, h.Lines = l.Kind, api.AgainstTwin, difference, append(h.Lines, l)
	switch l.Kind {
	case api.HeadlineSame:
		h.Certain, h.Difference = true, ""
		h.Text = fmt.Sprintf("%s: no difference of %d %% or more from %s", names[subject], smallest, other)
	case api.HeadlineUncertain:
		h.Text = lane.SoFar(names[subject], *l.Percent)
		h.Detail = append(h.Detail, fmt.Sprintf("%s compared with %s", names[subject], other))
	default:
		h.Text = lane.Claim(names[subject], *l.Percent, other)
		h.Certain = t.Evidence != api.EvidenceDiffer && t.Evidence != api.EvidenceShared
		if !h.Certain {
			h.Kind = api.HeadlineUncertain
		}
	}
	h.Detail = append(h.Detail, fmt.Sprintf("mean TTFT %s beside %s", api.Milliseconds(*l.Live),
		api.Milliseconds(*l.Other)))
	if l.Interval != nil {
		h.Detail = append(h.Detail, "95 % interval: "+lane.IntervalText(*l.Interval))
	}
}

// name returns the mode of a lane, with the lane's name where the other lane has the same mode.
func name(s, other *api.TwinSide) string {
	mode := func(s *api.TwinSide) string {
		return api.ModeState{Arm: s.Arm, Mode: s.Mode, Speculation: s.Speculation}.Name()
	}
	if mode(s) == mode(other) {
		return fmt.Sprintf("%s on lane %s", mode(s), s.Lane)
	}
	return mode(s)
}

// compared returns how much sooner the first token of one side is, 0 or 1, relative to the other side.
func compared(m *api.PairedMetric, subject int) api.HeadlineLine {
	l := api.HeadlineLine{
		Against: api.AgainstTwin, Metric: "ttft_mean", Kind: api.HeadlineUncertain, Live: m.A, Other: m.B,
	}
	sign := 1. // of a difference B − A
	if subject == 1 {
		l.Live, l.Other, sign = m.B, m.A, -1
	}
	percent := func(difference float64) float64 { return 0 + 100*sign*difference / *l.Other }
	l.Percent = new(percent(*m.Difference))
	if m.Interval == nil {
		return l
	}
	low, high := percent(m.Interval[0]), percent(m.Interval[1])
	low, high = min(low, high), max(low, high)
	l.Interval = &[2]float64{low, high}
	switch {
	case low > 0:
		l.Kind = api.HeadlineBetter
	case high < 0:
		l.Kind = api.HeadlineWorse
	case math.Max(-low, high) < smallest:
		l.Kind = api.HeadlineSame
	}
	return l
}
