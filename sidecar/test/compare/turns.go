package compare

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// result is what one run measured.
type result struct {
	side   string
	turns  int                    // that ended well
	failed map[api.ErrorClass]int // those that did not
	hit    estimate               // cached over prompt tokens
	stay   estimate               // share of follow-up turns on the worker of the turn before

	ttft, tpot api.Quantiles // seconds
	itl        api.Quantiles // seconds, of the load generator's window
	spread     float64       // requests in flight, the most on a worker less the least; mean over the span
	rate       float64       // output tokens a second of the turns that ended
	prompt     float64       // tokens of a turn, mean
	output     float64       // tokens of a turn, mean
	uncached   float64       // prompt tokens of a turn that were computed, mean
	mistrust   string        // when and why the load generator mistrusted itself; empty if it did not
}

// summarise makes a result of the turns that ended in [from, to). The turns
// before them tell where their conversations were.
func summarise(turns []api.Turn, from, to time.Time) result {
	t := tally{workers: map[place]string{}, failed: map[api.ErrorClass]int{}}
	for i := range turns {
		t.workers[place{turns[i].Conversation, turns[i].Number}] = turns[i].Worker
	}
	for i := range turns {
		if ended := turns[i].Ended; !ended.Before(from) && ended.Before(to) {
			t.add(&turns[i])
		}
	}
	prompt, cached := sum(t.hit.whole), sum(t.hit.part)
	return result{
		turns: t.ok, failed: t.failed, hit: t.hit.estimate(), stay: t.stay.estimate(),
		ttft: stats.Summarise(t.ttft), tpot: stats.Summarise(t.tpot), spread: math.NaN(), rate: sum(t.output) / to.Sub(from).Seconds(),
		prompt: prompt / float64(len(t.hit.whole)), uncached: (prompt - cached) / float64(len(t.hit.whole)), output: mean(t.output),
	}
}

// tally collects what turns tell.
type tally struct {
	workers            map[place]string
	ok                 int
	failed             map[api.ErrorClass]int
	ttft, tpot, output []float64
	hit, stay          ratio
}

// place is where a turn stands in the workload.
type place struct {
	conversation string
	number       int
}

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
		y.hit.add(float64(*t.CachedTokens), float64(*t.PromptTokens))
	}
	if before := y.workers[place{t.Conversation, t.Number - 1}]; before != "" && t.Worker != "" {
		y.stay.add(indicator(t.Worker == before), 1)
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

// estimate is a measured share with what chance leaves open.
type estimate struct {
	value  float64 // NaN where nothing was measured
	margin float64 // half the width of its 95 % interval
	n      int     // turns behind it
}

// ratio collects turns for the ratio of two sums.
type ratio struct{ part, whole []float64 }

func (r *ratio) add(part, whole float64) {
	r.part, r.whole = append(r.part, part), append(r.whole, whole)
}

// estimate is Σpart / Σwhole with the usual error of a ratio of two sums over n
// turns taken as independent, which under kv they are not quite (over seeds of the
// simulation, shares of turns that stay scatter 1.4 times as much): n/(n−1) · Σ(part − ratio·whole)² / (Σwhole)², see
// Cochran, "Sampling Techniques", 3rd edition (1977), section 2.11.
func (r *ratio) estimate() estimate {
	const sigmas = 1.96 // 95 % of a normal distribution
	whole := sum(r.whole)
	e := estimate{value: sum(r.part) / whole, n: len(r.part)} // NaN for 0/0
	squares := 0.0
	for i := range r.part {
		residual := r.part[i] - e.value*r.whole[i]
		squares += residual * residual
	}
	n := float64(e.n)
	e.margin = sigmas * math.Sqrt(n/(n-1)*squares) / whole
	return e
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// mean is NaN for no values.
func mean(values []float64) float64 { return sum(values) / float64(len(values)) }
