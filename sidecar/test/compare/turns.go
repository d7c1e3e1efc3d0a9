package compare

import (
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// result has the figures of one run.
type result struct {
	before int                    // turns that succeeded before the span
	turns  int                    // turns that succeeded in it
	failed map[api.ErrorClass]int // turns that failed in it
	hit    float64                // cached tokens over prompt tokens; NaN if not measured
	stay   float64                // share of follow-up turns on the worker of the turn before; NaN if not measured

	ttft, tpot api.Quantiles // seconds
	spread     float64       // requests in flight, the most on a worker minus the least; mean over the span
	rate       float64       // output tokens per second of the turns that ended
	mistrust   string        // when and why the client was unreliable; empty if it was not
}

// summarize computes the result of the turns that ended in [from, to). The turns before them determine the workers of
// their conversations.
func summarize(turns []api.Turn, from, to time.Time) result {
	before := 0
	t := tally{workers: map[place]string{}, failed: map[api.ErrorClass]int{}}
	for i := range turns {
		t.workers[place{turns[i].Conversation, turns[i].Number}] = turns[i].Worker
	}
	for i := range turns {
		switch ended := turns[i].Ended; {
		case ended.Before(from) && turns[i].Status == api.TurnOK:
			before++
		case !ended.Before(from) && ended.Before(to):
			t.add(&turns[i])
		}
	}
	return result{
		before: before, turns: t.ok, failed: t.failed, hit: floats.Sum(t.cached) / floats.Sum(t.prompt),
		stay: stat.Mean(t.stays, nil),
		ttft: stats.Summarize(t.ttft), tpot: stats.Summarize(t.tpot), spread: math.NaN(),
		rate: floats.Sum(t.output) / to.Sub(from).Seconds(),
	}
}

// tally collects figures of turns.
type tally struct {
	workers            map[place]string
	ok                 int
	failed             map[api.ErrorClass]int
	ttft, tpot, output []float64
	prompt, cached     []float64 // tokens, of the turns that have both
	stays              []float64 // of follow-up turns: 1 on the worker of the turn before, otherwise 0
}

// place is a turn's position in the workload.
type place struct {
	conversation string
	number       int
}

// add counts a turn that has ended. A failed turn counts only by the class of its error, and a cancelled one not at
// all. y.workers must hold the workers of all turns before the first call.
func (y *tally) add(t *api.Turn) {
	switch t.Status {
	case api.TurnError:
		y.failed[t.ErrorClass]++
		return
	case api.TurnCancelled:
		return
	}
	y.ok++
	y.ttft, y.tpot = appendKnown(y.ttft, t.TTFT), appendKnown(y.tpot, t.TPOT)
	if t.OutputTokens != nil {
		y.output = append(y.output, float64(*t.OutputTokens))
	}
	if t.PromptTokens != nil && t.CachedTokens != nil {
		y.cached, y.prompt = append(y.cached, float64(*t.CachedTokens)), append(y.prompt, float64(*t.PromptTokens))
	}
	if before := y.workers[place{t.Conversation, t.Number - 1}]; before != "" && t.Worker != "" {
		y.stays = append(y.stays, indicator(t.Worker == before))
	}
}

func appendKnown(to []float64, v *float64) []float64 {
	if v == nil {
		return to
	}
	return append(to, *v)
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
