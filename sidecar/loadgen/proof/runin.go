package proof

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/loadgen/workload"
)

// leastRounds is the least number of rounds over which the trend of the hit rate is taken.
const leastRounds = 5

// counting is the least counted time of a span in run-ins: a run-in is at most a third of the span.
const counting = 2

// HitRateRises reports whether the KV cache hit rate of turns, the cached share of their prompt tokens by usage, still
// rises at a time in seconds: whether the slope over rounds of so many seconds exceeds its standard error. It takes the
// rounds of the latest half of the time since the first turn, and at least [leastRounds], which must be over. The later
// it is, the slower the rise that it finds. Turns without cached tokens are left out, and without any it is false.
func HitRateRises(turns []workload.Outcome, at, round float64) bool {
	first := at
	for i := range turns {
		if turns[i].HasCached {
			first = min(first, turns[i].Sent.Seconds())
		}
	}
	n := max(leastRounds, int((at-first)/round/2))
	begin := at - float64(n)*round
	if first == at || !(round > 0) {
		return false
	}
	if begin < first {
		return true
	}
	rounds := make([]tally, n)
	for i := range turns {
		t := &turns[i]
		if end, ok := t.End(); ok && t.HasCached && begin <= end && end < at {
			r := &rounds[min(int((end-begin)/round), n-1)]
			r.prompt += float64(t.PromptTokens)
			r.cached += float64(t.CachedTokens)
		}
	}
	var x, y []float64
	for i := range rounds {
		if v := rounds[i].value(HitRate); finite(v) {
			x, y = append(x, float64(i)), append(y, v)
		}
	}
	if len(x) < leastRounds-1 { // most turns fail
		return false
	}
	base, slope := stat.LinearRegression(x, y, nil, false)
	squares := 0.
	for i := range x {
		off := y[i] - base - slope*x[i]
		squares += off * off
	}
	k := float64(len(x))
	return slope > math.Sqrt(squares/(k-2)/((k-1)*stat.Variance(x, nil)))+rounding
}

// settle returns how long a run waits at least between its warm-up and what counts, in seconds.
func (t *Trial) settle() float64 { return max(t.Plan.WarmUp, t.RunIn) }

// inTime is the share of a trial's time that the blocks before the first look may take for the sake of their run-ins.
// The rest is for runs that take longer than the one that the limit is computed from.
const inTime = .8

// LongestRunIn returns the longest run-in with which the blocks before the first look fit well into the trial's time,
// where a run takes so many seconds before it, and its median latency is known: a hit rate that rises for longer does
// not leave the trial without a look.
func (t *Trial) LongestRunIn(before, latency float64) float64 {
	runs, spans := t.Plan.leastRuns()
	left := inTime*t.Plan.MaxTime - runs*before
	return max(0, min((left-spans*max(t.Plan.Seconds, TrialLatencies*latency))/runs, left/(runs+counting*spans)))
}

// Settled sets the run-in of a span once it has been measured, and extends what counts to twice of it.
func (s *Span) Settled(runIn float64) {
	s.Settle = runIn
	s.Seconds = max(s.Seconds, counting*runIn*s.Latencies/TrialLatencies)
}
