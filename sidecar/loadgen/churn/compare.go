package churn

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// Median is a median with the interval between two order statistics, whose confidence follows from the sign test and
// needs no assumption about the distribution. A censored time counts as its bound where the interval begins, and as
// infinite where it ends. nil is infinite, or minus infinite where a difference begins.
type Median struct {
	Instances int      `json:"instances"`
	Censored  int      `json:"censored"` // of them
	Value     *float64 `json:"median"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	// Confidence is at least 0.95 from six instances on. With fewer it is that of the range of all: 1 − 2^(1−n).
	Confidence float64 `json:"confidence"`
}

// Summary is what the instances of one event did under one arm.
type Summary struct {
	Arm        string                 `json:"arm"`
	Event      string                 `json:"event"`
	Instances  int                    `json:"instances"`
	Failed     float64                `json:"failed"` // turns for each instance, on average
	Errors     map[api.ErrorClass]int `json:"errors,omitempty"`
	TTFT       *Median                `json:"ttft_p95"` // seconds until it was as before; nil: not known
	HitRate    *Median                `json:"hit_rate"`
	TokensLost *float64               `json:"tokens_lost"` // for each instance, on average
}

// Difference is a mean difference of B minus A with its interval by [decide.Once], at 95 %.
type Difference struct {
	Estimate float64    `json:"estimate"`
	Interval [2]float64 `json:"interval"`
}

// Comparison compares two arms by one event, over the blocks that have it under both. Differences are B minus A. Each
// interval holds for itself, and there is one look.
type Comparison struct {
	Event      string      `json:"event"`
	A          string      `json:"a"`
	B          string      `json:"b"`
	Failed     *Difference `json:"failed"` // nil: fewer than two blocks
	TokensLost *Difference `json:"tokens_lost"`
	TTFT       *Median     `json:"ttft_p95"` // of the differences in recovery time, by block
	HitRate    *Median     `json:"hit_rate"`
}

// Summarize returns the summary of each event under each arm, in the order of both.
func Summarize(results []Result, arms, events []string) (all []Summary) {
	for _, event := range events {
		for _, arm := range arms {
			s := Summary{Arm: arm, Event: event, Errors: map[api.ErrorClass]int{}}
			var ttfts, rates [][2]float64
			var lost []float64
			for i := range results {
				r := &results[i]
				if r.Arm != arm || r.Event != event {
					continue
				}
				s.Instances++
				s.Failed += float64(r.Failed)
				for class, n := range r.Errors {
					s.Errors[class] += n
				}
				ttfts, rates = appendRange(ttfts, r.TTFT.Recovery), appendRange(rates, r.HitRate.Recovery)
				if r.TokensLost != nil {
					lost = append(lost, *r.TokensLost)
				}
			}
			if s.Instances == 0 {
				continue
			}
			s.Failed /= float64(s.Instances)
			s.TTFT, s.HitRate = medianOf(ttfts), medianOf(rates)
			if len(lost) > 0 {
				s.TokensLost = new(mean(lost))
			}
			all = append(all, s)
		}
	}
	return all
}

// appendRange appends the bounds of a recovery time that is known.
func appendRange(all [][2]float64, r *Recovery) [][2]float64 {
	if r == nil {
		return all
	}
	return append(all, [2]float64{r.Seconds, r.high()})
}

// medianOf returns the median of values that are known up to their bounds; nil without any.
func medianOf(bounds [][2]float64) *Median {
	n := len(bounds)
	if n == 0 {
		return nil
	}
	m := &Median{Instances: n}
	var lows, highs []float64
	for _, b := range bounds {
		lows, highs = append(lows, b[0]), append(highs, b[1])
		if b[0] != b[1] {
			m.Censored++
		}
	}
	slices.Sort(lows)
	slices.Sort(highs)
	sign := distuv.Binomial{N: float64(n), P: .5}
	k := 1 // rank of the lower bound
	for 2*sign.CDF(float64(k)) <= alpha {
		k++
	}
	m.Confidence = max(0, 1-2*sign.CDF(float64(k-1)))
	m.Low, m.High = finite(lows[k-1]), finite(highs[n-k])
	low, high := (lows[(n-1)/2]+lows[n/2])/2, (highs[(n-1)/2]+highs[n/2])/2
	if low == high {
		m.Value = finite(low)
	}
	return m
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// Compare compares every pair of arms by each event.
func Compare(results []Result, arms, events []string) (all []Comparison) {
	for _, event := range events {
		blocks := complete(results, arms, event)
		differences := once(blocks, arms)
		for i := range arms {
			for j := i + 1; j < len(arms); j++ {
				c := Comparison{Event: event, A: arms[i], B: arms[j]}
				c.Failed, c.TokensLost = differences[key{failed, i, j}], differences[key{tokensLost, i, j}]
				c.TTFT = between(blocks, i, j, func(r *Result) *Recovery { return r.TTFT.Recovery })
				c.HitRate = between(blocks, i, j, func(r *Result) *Recovery { return r.HitRate.Recovery })
				all = append(all, c)
			}
		}
	}
	return all
}

// complete returns the results of an event by block and arm, of the blocks that have it under all arms.
func complete(results []Result, arms []string, event string) (blocks [][]*Result) {
	byBlock := map[int][]*Result{}
	for i := range results {
		r := &results[i]
		if r.Event != event {
			continue
		}
		if byBlock[r.Block] == nil {
			byBlock[r.Block] = make([]*Result, len(arms))
		}
		byBlock[r.Block][slices.Index(arms, r.Arm)] = r
	}
	for _, block := range slices.Sorted(maps.Keys(byBlock)) {
		if !slices.Contains(byBlock[block], nil) {
			blocks = append(blocks, byBlock[block])
		}
	}
	return blocks
}

// Names of the metrics for package decide.
const (
	failed     = "failed"
	tokensLost = "tokens_lost"
)

// key identifies a difference of two arms in a metric.
type key struct {
	metric string
	a, b   int
}

// once returns the differences in the metrics of which package decide has means.
func once(blocks [][]*Result, arms []string) map[key]*Difference {
	all := map[key]*Difference{}
	if len(blocks) < 2 || len(arms) < 2 {
		return all
	}
	var runs []decide.Block
	for _, block := range blocks {
		var b decide.Block
		for arm, r := range block {
			values := map[string]float64{failed: float64(r.Failed)}
			if r.TokensLost != nil {
				values[tokensLost] = *r.TokensLost
			}
			b.Spans = append(b.Spans, decide.Span{Arm: arm, Values: values})
		}
		runs = append(runs, b)
	}
	plan := decide.Plan{Arms: len(arms), Alpha: alpha, Switchback: true} // the order is random
	metrics := []decide.Metric{{Name: failed, Share: true}, {Name: tokensLost, Share: true}}
	for _, c := range decide.Once(plan, runs, metrics...) {
		all[key{c.Metric.Name, c.A, c.B}] = &Difference{Estimate: c.Estimate, Interval: c.Repeated}
	}
	return all
}

// between returns the median of the differences of two arms in a recovery time.
func between(blocks [][]*Result, a, b int, of func(*Result) *Recovery) *Median {
	var all [][2]float64
	for _, block := range blocks {
		if x, y := of(block[a]), of(block[b]); x != nil && y != nil {
			all = append(all, [2]float64{y.Seconds - x.high(), y.high() - x.Seconds})
		}
	}
	return medianOf(all)
}
