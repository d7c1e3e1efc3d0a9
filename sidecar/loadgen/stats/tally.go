package stats

import (
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// tally gathers a selection of turns under the window's lock; what takes longer
// happens in report, without it.
type tally struct {
	Report
	slo           api.SLO
	now, from     time.Duration // since the window's start; what ended at from is not in the rates
	ttft          [len(turnLabels)][]float64
	tpot, latency []float64
	itl           buckets
	rated         int   // whole turns that ended after from
	ratedTokens   int64 // theirs
	asked         int64 // prompt tokens of the turns that told cached ones
}

// newTally selects the last 60 s until now, or those since origin where it is later.
func newTally(now, origin time.Duration, slo api.SLO) *tally {
	t := &tally{slo: slo, now: now, from: max(now-windowSpan, origin)}
	t.Window.Errors = map[api.ErrorClass]int{}
	return t
}

// gather takes the turns of the last 60 s that are wanted, and their gaps.
func (t *tally) gather(w *Window, wanted func(*turn) bool, gaps func(*second) *buckets) {
	for i := range w.turns {
		if one := &w.turns[i]; one.ended > t.now-windowSpan && wanted(one) {
			t.add(one)
		}
	}
	for i := range w.gaps {
		if s := &w.gaps[i]; s.number > int64(t.now/time.Second)-windowSeconds {
			t.itl.merge(gaps(s))
		}
	}
}

func (t *tally) add(one *turn) {
	switch one.Status {
	case api.TurnCancelled:
		t.Cancelled++
	case api.TurnError:
		t.Errors++
		t.Window.Errors[one.Class]++
		if one.Class == api.ErrorTimeout || one.Class == api.ErrorStall {
			t.Window.Timeouts++
		}
	case api.TurnOK:
		t.addWhole(one)
	}
}

func (t *tally) addWhole(one *turn) {
	t.OK++
	if one.meets(t.slo) {
		t.SLOMet++
	}
	i := turnIndex(one.Turn)
	t.ttft[i] = appendDefined(t.ttft[i], one.TTFT)
	t.tpot = appendDefined(t.tpot, one.TPOT)
	t.latency = appendDefined(t.latency, one.Latency)
	t.PromptTokens += int64(one.PromptTokens)
	t.OutputTokens += int64(one.OutputTokens)
	if one.HasCached {
		t.CachedTokens += int64(one.CachedTokens)
		t.asked += int64(one.PromptTokens)
	}
	if one.ended > t.from {
		t.rated++
		t.ratedTokens += int64(one.OutputTokens)
	}
}

func appendDefined(values []float64, v float64) []float64 {
	if defined(v) {
		values = append(values, v)
	}
	return values
}

// report computes what follows from the tally. It needs no lock.
func (t *tally) report() Report {
	r := t.Report
	r.Window.Seconds = max(0, (t.now - t.from).Seconds())
	// Less than a second of evidence does not make a rate.
	span := max(1, r.Window.Seconds)
	r.Window.RequestsPerSecond = float64(t.rated) / span
	r.Window.OutputTokensPerSecond = float64(t.ratedTokens) / span
	r.Window.ErrorRatio = ratio(int64(r.Errors), int64(r.OK+r.Errors))
	r.Window.GoodputRatio = ratio(int64(r.SLOMet), int64(r.OK+r.Errors))
	r.HitRatio = ratio(r.CachedTokens, t.asked)
	r.TTFTByTurn = t.byTurn()
	r.Window.Metrics = api.Metrics{
		TTFT: Summarise(slices.Concat(t.ttft[:]...)), TPOT: Summarise(t.tpot),
		ITL: t.itl.summarise(), Latency: Summarise(t.latency),
	}
	return r
}

func (t *tally) byTurn() []api.TurnTTFT {
	rows := []api.TurnTTFT{}
	for i, values := range t.ttft {
		if len(values) > 0 {
			q := Summarise(values)
			rows = append(rows, api.TurnTTFT{Turn: turnLabels[i], P50: q.P50, P95: q.P95, N: q.N})
		}
	}
	return rows
}

// ratio is nil where there is nothing to divide by.
func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}
