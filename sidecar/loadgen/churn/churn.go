package churn

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	alpha     = .05 // error of each interval, and of all windows after an event together
	tolerance = .1  // share of the value before by which a window may be worse
	steps     = 5   // beginnings of windows within the length of one
)

// Instance is one event under one arm, as observed.
type Instance struct {
	Block      int // from 0
	Arm, Event string
	Seconds    float64 // of the observation after the event
	// Turns have times since the event's action began: those before it are negative. Turns in flight at the end of the
	// observation have an empty status.
	Turns []workload.Outcome
}

// Windows are the lengths in seconds of the time before an event, and of the windows that are compared with it.
type Windows struct {
	Before float64 `json:"before"`
	Window float64 `json:"window"`
}

// Recovery is the time until a figure was as before, in seconds since the event's action began.
type Recovery struct {
	Seconds  float64 `json:"seconds"`  // 0: it never left; censored: the lower bound
	Censored bool    `json:"censored"` // it was not as before at the end of the observation
}

// high returns the upper bound of a recovery time.
func (r *Recovery) high() float64 {
	if r.Censored {
		return math.Inf(1)
	}
	return r.Seconds
}

// Figure is a figure around one event. A nil pointer is not known: no turn before the event has the figure, or more
// than 5 % of them failed.
type Figure struct {
	Before   *float64  `json:"before"`
	Limit    *float64  `json:"limit"` // up to which a window is as before
	Recovery *Recovery `json:"recovery"`
}

// Result is what one event did under one arm.
type Result struct {
	Block      int                    `json:"block"` // from 0
	Arm        string                 `json:"arm"`
	Event      string                 `json:"event"`
	Turns      int                    `json:"turns"` // that ended after the event
	Failed     int                    `json:"failed"`
	Errors     map[api.ErrorClass]int `json:"errors,omitempty"`
	TTFT       Figure                 `json:"ttft_p95"` // seconds
	HitRate    Figure                 `json:"hit_rate"` // 0 to 1
	TokensLost *float64               `json:"tokens_lost"`
}

// at returns the second at which a turn counts.
func at(t *workload.Outcome) float64 {
	sent := t.Sent.Seconds()
	end, ended := t.End()
	if before := ended && end < 0 || !t.Failed() && t.FirstToken() < 0; sent >= 0 || before {
		return sent
	}
	return 0
}

// between returns the turns that count from a second on and before another.
func between(turns []workload.Outcome, from, until float64) (some []workload.Outcome) {
	for i := range turns {
		if second := at(&turns[i]); second >= from && second < until {
			some = append(some, turns[i])
		}
	}
	return some
}

// ttftP95 returns the TTFT p95 of turns whose observation ended at a second; NaN without turns.
func ttftP95(turns []workload.Outcome, end float64) float64 {
	var all []float64
	for i := range turns {
		switch t := &turns[i]; {
		case t.Failed():
			all = append(all, math.Inf(1))
		case !t.Waiting():
			all = append(all, t.TTFT)
		case t.Status == "":
			all = append(all, end-t.Sent.Seconds())
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[int(math.Ceil(.95*float64(len(all))))-1]
}

// hitRate returns the share of the prompt tokens of turns that were cached; NaN where no turn reports them.
func hitRate(turns []workload.Outcome, _ float64) float64 {
	prompt, cached := 0, 0
	for i := range turns {
		if t := &turns[i]; t.HasCached && t.OK() {
			prompt, cached = prompt+t.PromptTokens, cached+t.CachedTokens
		}
	}
	return float64(cached) / float64(prompt)
}

// metric is a figure with a scale on which larger is worse and its scatter is taken.
type metric struct {
	value        func(turns []workload.Outcome, end float64) float64
	factor       float64 // of the tolerated value
	scaled, back func(float64) float64
}

func negative(v float64) float64 { return -v }

var (
	ttft = metric{ttftP95, 1 + tolerance, math.Log, math.Exp}
	rate = metric{hitRate, 1 - tolerance, negative, negative}
)

// series is a metric on its scale: of all the time before an event, of the separate windows in it, and after it.
type series struct {
	whole         float64
	before, after []float64
}

// series computes a metric in the windows of an instance.
func (m metric) series(n *Instance, w Windows) (s series) {
	window := func(from, length float64) float64 {
		return m.scaled(m.value(between(n.Turns, from, from+length), n.Seconds))
	}
	s.whole = window(-w.Before, w.Before)
	for from := -w.Window; from >= -w.Before; from -= w.Window {
		if v := window(from, w.Window); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.before = append(s.before, v)
		}
	}
	for i := 0; w.beginning(i)+w.Window <= n.Seconds; i++ {
		s.after = append(s.after, window(w.beginning(i), w.Window))
	}
	return s
}

// beginning returns the beginning of a window after the event.
func (w Windows) beginning(i int) float64 { return float64(i) * w.Window / steps }

// figures returns a metric of each instance of an arm, which share the scatter of their windows.
func (m metric) figures(own []*Instance, w Windows) []Figure {
	all, figures := make([]series, len(own)), make([]Figure, len(own))
	squares, df := 0., 0.
	for i, n := range own {
		all[i] = m.series(n, w)
		if k := float64(len(all[i].before)); k > 1 {
			squares += stat.Variance(all[i].before, nil) * (k - 1)
			df += k - 1
		}
	}
	for i, s := range all {
		if math.IsNaN(s.whole) || math.IsInf(s.whole, 0) {
			continue
		}
		limit, windows := m.scaled(m.factor*m.back(s.whole)), float64(len(s.after))
		if k := float64(len(s.before)); df > 0 && k > 0 && windows > 0 {
			t := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1 - alpha/windows)
			limit = max(limit, stat.Mean(s.before, nil)+t*math.Sqrt(squares/df*(1+1/k)))
		}
		figures[i] = Figure{new(m.back(s.whole)), new(m.back(limit)), s.recovery(limit, w)}
	}
	return figures
}

// recovery returns the recovery time by a limit; nil where the observation has no window. A window without turns is not
// as before.
func (s series) recovery(limit float64, w Windows) *Recovery {
	first, last := len(s.after), len(s.after)-1
	for first > 0 && s.after[first-1] <= limit {
		first--
	}
	if last < 0 {
		return nil
	}
	return &Recovery{Seconds: w.beginning(min(first, last)), Censored: first > last}
}

// Measure returns the result of each instance, in their order. All instances of an arm share the scatter of their
// windows.
func Measure(all []Instance, w Windows) []Result {
	results := make([]Result, len(all))
	arms, places := map[string][]*Instance{}, map[string][]int{}
	for i := range all {
		n := &all[i]
		results[i] = counted(n)
		arms[n.Arm], places[n.Arm] = append(arms[n.Arm], n), append(places[n.Arm], i)
	}
	for arm, own := range arms {
		times, rates := ttft.figures(own, w), rate.figures(own, w)
		for k, i := range places[arm] {
			results[i].TTFT, results[i].HitRate = times[k], rates[k]
			results[i].TokensLost = lost(own[k], rates[k])
		}
	}
	return results
}

// counted counts the turns that ended after an event.
func counted(n *Instance) Result {
	r := Result{Block: n.Block, Arm: n.Arm, Event: n.Event, Errors: map[api.ErrorClass]int{}}
	for i := range n.Turns {
		t := &n.Turns[i]
		if end, ended := t.End(); !ended || end < 0 {
			continue
		}
		r.Turns++
		if t.Failed() {
			r.Failed++
			r.Errors[t.Class]++
		}
	}
	return r
}

// lost returns the prompt tokens that were lost by a hit rate below that before; nil where it is not known.
func lost(n *Instance, h Figure) *float64 {
	if h.Recovery == nil {
		return nil
	}
	tokens := 0.
	for _, t := range between(n.Turns, 0, h.Recovery.high()) {
		if t.HasCached && t.OK() {
			tokens += *h.Before*float64(t.PromptTokens) - float64(t.CachedTokens)
		}
	}
	return &tokens
}
