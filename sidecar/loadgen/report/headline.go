package report

import (
	"fmt"
	"math"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
)

// Headline returns the result of a trial of two arms so far in one sentence; nil for any other sweep, and where another
// metric than a TTFT decides, which has other words.
func Headline(s *api.Sweep) *api.Headline {
	t, q := s.Trial, &s.Request
	if t == nil || q.Primary == nil || len(q.Modes) != 2 || !strings.HasPrefix(*q.Primary, "ttft") {
		return nil
	}
	r := OfSweep(*s)
	a, b := r.trialNames()
	other := lane.InSentence(a)
	if proof.Verdict(t.Verdict) == proof.Overloaded {
		return r.overloadHeadline(t)
	}
	if t.Primary == nil {
		return beforeLook(s, b, other)
	}
	d := t.Primary
	percent := -100 * d.Difference
	h := uncertain(percent, b, other)
	switch proof.Verdict(d.Outcome) {
	case proof.BBetter:
		h.Kind = api.HeadlineBetter
	case proof.ABetter:
		h.Kind = api.HeadlineWorse
	case proof.NoDifference:
		h.Kind, h.Difference = api.HeadlineSame, ""
	}
	if h.Certain = h.Kind != api.HeadlineUncertain; h.Certain {
		h.Text, h.Detail = lane.Claim(b, percent, other), nil
	}
	if h.Kind == api.HeadlineSame {
		h.Text = fmt.Sprintf("%s: no difference of %s or more from %s", b, r.smallest(), other)
	}
	if text := failsMoreWords(t, a, b); text != "" {
		h.Text, h.Difference = sentenceCase(text), ""
	}
	if proof.Verdict(d.Outcome) == proof.TradeOff {
		h.Text = fmt.Sprintf("A trade-off of %s against %s: first token %s, but %s", b, other, h.Difference,
			tradedFor(t, a, b))
		h.Detail = guardWords(t.Guards, a, b)
	}
	if t.Failures != nil && t.Failures.More != "" {
		h.Detail = append(h.Detail, r.failureWords(t, a, b))
	}
	h.Detail = append(h.Detail,
		fmt.Sprintf("%s %s beside %s", proof.Metric(d.Metric).Name(), api.Milliseconds(d.B), api.Milliseconds(d.A)))
	if in := d.Interval; in != nil {
		h.Detail = append(h.Detail, "95 % interval: "+lane.IntervalText([2]float64{-100 * in[1], -100 * in[0]}))
	}
	h.Detail = append(h.Detail, "on "+plural(t.Blocks, "block")+cachesWords(q, t.Blocks))
	return h
}

// tradedFor names what forbids to call the arm with the sooner first token better.
func tradedFor(t *api.TrialState, a, b string) string {
	if f := t.Failures; f != nil && f.More != "" {
		return nameOf(f.More, a, b) + " fails more turns"
	}
	if len(t.Worse) > 0 && !unlike(t.Guards) {
		return fmt.Sprintf("%s under %s", changeOf(&t.Worse[0], true, ""), b)
	}
	return "their answers differ"
}

// uncertain words a difference of B, in per cent, that is not certain.
func uncertain(percent float64, b, other string) *api.Headline {
	difference := lane.DifferenceText(percent)
	return &api.Headline{
		Kind: api.HeadlineUncertain, Against: api.AgainstTrial, Difference: difference,
		Text:   lane.SoFar(b, percent),
		Detail: api.List[string]{fmt.Sprintf("%s compared with %s", b, other)}, Lines: api.List[api.HeadlineLine]{},
	}
}

// beforeLook words a trial before its first look.
func beforeLook(s *api.Sweep, b, other string) *api.Headline {
	t := s.Trial
	how := "each on cold caches"
	if s.Request.Warm() {
		how = "the two alternate on the caches that both share"
	}
	looks := fmt.Sprintf("%d of %d blocks before the first look", t.Blocks, max(t.FirstLook, t.Blocks))
	h := &api.Headline{
		Kind: api.HeadlineWaiting, Text: fmt.Sprintf("Trial of %s against %s: %s", b, other, looks),
		Detail: api.List[string]{how}, Lines: api.List[api.HeadlineLine]{},
	}
	if percent, known := soFar(s); known {
		h = uncertain(percent, b, other)
		h.Detail = append(h.Detail, looks)
	}
	if proof.Verdict(t.Verdict).Over() {
		h.Text = fmt.Sprintf("Undecided: %s in the time, and a trial decides after %d", plural(t.Blocks, "block"),
			t.FirstLook)
		h.Difference = ""
	}
	return h
}

// soFar returns by how many per cent the first token comes sooner under B in the blocks so far, without any interval.
func soFar(s *api.Sweep) (percent float64, known bool) {
	arms := map[int]string{}
	for i := range s.Spans {
		arms[s.Spans[i].Number] = s.Spans[i].Arm
	}
	sums, n := map[string]float64{}, map[string]float64{}
	for _, v := range s.Trial.Spans {
		sums[arms[v.Number]] += math.Log(v.Value)
		n[arms[v.Number]]++
	}
	a, b := string(proof.ArmA), string(proof.ArmB)
	difference := sums[b]/n[b] - sums[a]/n[a]
	return -100 * math.Expm1(difference), !math.IsNaN(difference)
}
