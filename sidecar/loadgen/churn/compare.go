package churn

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// Report is what a trial under events has found, in JSON, too.
type Report struct {
	Program     string       `json:"program"`
	Windows     Windows      `json:"windows"` // s
	After       float64      `json:"after"`   // s
	WarmUp      float64      `json:"warm_up"` // s
	Level       api.Level    `json:"level"`
	Seed        uint64       `json:"seed"`
	Blocks      int          `json:"blocks"`
	Arms        []string     `json:"arms"`
	Events      []string     `json:"events"`
	Instances   []Event      `json:"instances"` // in the order in which they ran
	Summaries   []Summary    `json:"summaries"`
	Comparisons []Comparison `json:"comparisons"`
	Unfinished  string       `json:"unfinished,omitempty"` // why not all instances were observed
}

// Event is an instance with its result.
type Event struct {
	Result
	At     time.Time `json:"at"`     // at which the action began
	Action float64   `json:"action"` // seconds that it took
	Error  string    `json:"error,omitempty"`
	Undo   string    `json:"undo_error,omitempty"`
	// Opened are the workers whose circuit breaker was open by the router's metrics at some moment after the event,
	// without the one that the event hits; nil: no router reports it.
	Opened []string `json:"breakers_opened"`
}

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

// Difference is a mean difference with its interval by [decide.Once], at 95 %.
type Difference struct {
	Estimate float64    `json:"estimate"`
	Interval [2]float64 `json:"interval"`
}

// Comparison compares two arms by one event, over the blocks that have it under both. Differences are B minus A. Each
// interval holds for itself.
type Comparison struct {
	Event      string      `json:"event"`
	A          string      `json:"a"`
	B          string      `json:"b"`
	Failed     *Difference `json:"failed"` // nil: fewer than two blocks
	TokensLost *Difference `json:"tokens_lost"`
	TTFT       *Median     `json:"ttft_p95"` // of the differences in recovery time, by block
	HitRate    *Median     `json:"hit_rate"`
}

// Complete computes the summaries and the comparisons of the instances whose action succeeded.
func (r *Report) Complete() {
	for _, event := range r.Events {
		for i, arm := range r.Arms {
			if s := r.summary(arm, event); s.Instances > 0 {
				r.Summaries = append(r.Summaries, s)
			}
			for _, other := range r.Arms[i+1:] {
				r.Comparisons = append(r.Comparisons, r.compare(event, arm, other))
			}
		}
	}
}

// find returns the result of an event under an arm in a block; nil where there is none.
func (r *Report) find(block int, arm, event string) *Result {
	i := slices.IndexFunc(r.Instances, func(n Event) bool {
		return n.Block == block && n.Arm == arm && n.Event == event && n.Error == ""
	})
	if i < 0 {
		return nil
	}
	return &r.Instances[i].Result
}

func (r *Report) summary(arm, event string) Summary {
	s := Summary{Arm: arm, Event: event, Errors: map[api.ErrorClass]int{}}
	var ttfts, rates [][2]float64
	var known, tokens float64
	for block := range r.Blocks {
		n := r.find(block, arm, event)
		if n == nil {
			continue
		}
		s.Instances++
		s.Failed += (float64(n.Failed) - s.Failed) / float64(s.Instances)
		for class, number := range n.Errors {
			s.Errors[class] += number
		}
		never := &Recovery{}
		ttfts, rates = appendBetween(ttfts, never, n.TTFT.Recovery), appendBetween(rates, never, n.HitRate.Recovery)
		if n.TokensLost != nil {
			known++
			tokens += *n.TokensLost
		}
	}
	s.TTFT, s.HitRate = medianOf(ttfts), medianOf(rates)
	if known > 0 {
		s.TokensLost = new(tokens / known)
	}
	return s
}

// appendBetween appends the bounds of b minus a, where both are known.
func appendBetween(all [][2]float64, a, b *Recovery) [][2]float64 {
	if a == nil || b == nil {
		return all
	}
	return append(all, [2]float64{b.Seconds - a.high(), b.high() - a.Seconds})
}

// compare compares two arms by package decide, and by medians where values are censored.
func (r *Report) compare(event, a, b string) Comparison {
	c := Comparison{Event: event, A: a, B: b}
	var runs []decide.Block
	var ttfts, rates [][2]float64
	for block := range r.Blocks {
		x, y := r.find(block, a, event), r.find(block, b, event)
		if x == nil || y == nil {
			continue
		}
		runs = append(runs, decide.Block{Spans: []decide.Span{x.span(0), y.span(1)}})
		ttfts = appendBetween(ttfts, x.TTFT.Recovery, y.TTFT.Recovery)
		rates = appendBetween(rates, x.HitRate.Recovery, y.HitRate.Recovery)
	}
	c.TTFT, c.HitRate = medianOf(ttfts), medianOf(rates)
	plan := decide.Plan{Arms: 2, Alpha: alpha, Switchback: true} // the order is random
	for _, d := range decide.Once(plan, runs, decide.Metric{Name: failed, Share: true},
		decide.Metric{Name: tokensLost, Share: true}) {
		difference := &Difference{Estimate: d.Estimate, Interval: d.Repeated}
		if d.Metric.Name == failed {
			c.Failed = difference
		} else {
			c.TokensLost = difference
		}
	}
	return c
}

// Names of the metrics for package decide.
const (
	failed     = "failed"
	tokensLost = "tokens_lost"
)

// span returns a result for package decide.
func (r *Result) span(arm int) decide.Span {
	values := map[string]float64{failed: float64(r.Failed)}
	if r.TokensLost != nil {
		values[tokensLost] = *r.TokensLost
	}
	return decide.Span{Arm: arm, Values: values}
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
	if low, high := (lows[(n-1)/2]+lows[n/2])/2, (highs[(n-1)/2]+highs[n/2])/2; low == high {
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
