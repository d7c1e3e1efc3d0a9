package report

import (
	"fmt"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
)

// Headline returns the result of a trial of two arms so far in one sentence; nil for any other sweep, and where another
// metric than a TTFT decides, which has other words.
func Headline(s *api.Sweep) *api.Headline {
	t := s.Trial
	q := &s.Request
	if t == nil || q.Primary == nil || len(q.Modes) != 2 || !strings.HasPrefix(*q.Primary, "ttft") {
		return nil
	}
	a, b := OfSweep(*s).trialNames()
	h := &api.Headline{Kind: api.HeadlineWaiting, Detail: api.List[string]{}, Lines: api.List[api.HeadlineLine]{}}
	other := lane.InSentence(a)
	if t.Primary == nil {
		what, how := "blocks", "each on cold caches"
		if q.Warm() {
			what, how = "pairs of slots", "the two alternate on the caches that both share"
		}
		h.Text = fmt.Sprintf("Trial of %s against %s: %d of %d %s before the first look", b, other, t.Blocks,
			max(t.FirstLook, t.Blocks), what)
		h.Detail = append(h.Detail, how)
		return h
	}
	percent := -100 * t.Primary.Difference
	h.Kind, h.Against, h.Difference = api.HeadlineUncertain, api.AgainstTrial, lane.DifferenceText(percent)
	l := api.HeadlineLine{
		Against: api.AgainstTrial, Metric: t.Primary.Metric, Live: &t.Primary.B, Other: &t.Primary.A, Percent: &percent,
	}
	switch proof.Verdict(t.Primary.Outcome) {
	case proof.BBetter:
		h.Kind = api.HeadlineBetter
	case proof.ABetter:
		h.Kind = api.HeadlineWorse
	case proof.NoDifference:
		h.Kind, h.Difference = api.HeadlineSame, ""
	}
	switch h.Certain = h.Kind != api.HeadlineUncertain; {
	case h.Kind == api.HeadlineSame:
		h.Text = fmt.Sprintf("%s: no difference of %s or more from %s", b, OfSweep(*s).smallest(), other)
	case h.Certain:
		h.Text = lane.Claim(b, percent, other)
	default:
		h.Text = fmt.Sprintf("Not certain yet: first token %s so far", h.Difference)
		h.Detail = append(h.Detail, fmt.Sprintf("%s compared with %s", b, other))
	}
	h.Detail = append(h.Detail, fmt.Sprintf("%s %s beside %s", proof.Metric(l.Metric).Name(), lane.InMS(t.Primary.B),
		lane.InMS(t.Primary.A)))
	if in := t.Primary.Interval; in != nil {
		l.Interval = &[2]float64{-100 * in[1], -100 * in[0]}
		h.Detail = append(h.Detail, "95 % interval: "+lane.IntervalText(*l.Interval))
	}
	h.Detail = append(h.Detail, "on "+plural(t.Blocks, "block")+cachesWords(q, t.Blocks))
	l.Kind, l.Text = h.Kind, fmt.Sprintf("%s, in this trial: %s", other, lane.DifferenceText(percent))
	h.Lines = append(h.Lines, l)
	return h
}
