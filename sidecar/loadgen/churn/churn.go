package churn

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	alpha     = .05 // error of each interval, and of all windows after an event together
	tolerance = .1  // share of the value before by which a window may be worse
	steps     = 5   // beginnings of windows within the length of one
	quantile  = .95
)

// Instance is one event under one arm, as observed.
type Instance struct {
	Block   int    // from 0
	Arm     string // name
	Event   string // name
	Seconds float64
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
func (r Recovery) high() float64 {
	if r.Censored {
		return math.Inf(1)
	}
	return r.Seconds
}

// Figure is a figure around one event. A nil pointer is not known: there were no turns that have the figure, or more
// than 5 % of those before the event failed.
type Figure struct {
	Before   *float64  `json:"before"`
	Limit    *float64  `json:"limit"` // up to which a window is as before
	Recovery *Recovery `json:"recovery"`
}

// Result is what one event did under one arm.
type Result struct {
	Block      int                    `json:"block"`
	Arm        string                 `json:"arm"`
	Event      string                 `json:"event"`
	Turns      int                    `json:"turns"` // after the event, without those in flight at the end
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
	before := ended && end < 0 || !t.Failed() && t.FirstToken() < 0
	if sent >= 0 || before {
		return sent
	}
	return 0
}

// sample is a list of turns by the seconds at which they count.
type sample struct {
	at    []float64
	turns []workload.Outcome
}

func newSample(turns []workload.Outcome) (s sample) {
	s.turns = slices.Clone(turns)
	slices.SortStableFunc(s.turns, func(a, b workload.Outcome) int { return cmp.Compare(at(&a), at(&b)) })
	for i := range s.turns {
		s.at = append(s.at, at(&s.turns[i]))
	}
	return s
}

// between returns the turns that count from a second on and before another.
func (s sample) between(from, until float64) []workload.Outcome {
	i, _ := slices.BinarySearch(s.at, from)
	j, _ := slices.BinarySearch(s.at, until)
	return s.turns[i:max(i, j)]
}

// ttft returns the function of the TTFT p95 of turns whose observation ended at a second; NaN without turns.
func ttft(end float64) func([]workload.Outcome) float64 {
	return func(turns []workload.Outcome) float64 {
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
		return all[int(math.Ceil(quantile*float64(len(all))))-1]
	}
}

// hitRate returns the share of the prompt tokens of turns that were cached; NaN where no turn reports them.
func hitRate(turns []workload.Outcome) float64 {
	prompt, cached := 0, 0
	for i := range turns {
		if t := &turns[i]; t.HasCached && t.OK() {
			prompt, cached = prompt+t.PromptTokens, cached+t.CachedTokens
		}
	}
	return float64(cached) / float64(prompt)
}

// series is a figure in the windows of an instance, on a scale on which larger is worse.
type series struct {
	before float64   // in all of the time before the event
	apart  []float64 // in each separate window before it
	after  []float64 // in each window after it
}

// newSeries computes a figure in windows. worse converts a value to the scale.
func newSeries(s sample, w Windows, seconds float64, value func([]workload.Outcome) float64,
	worse func(float64) float64,
) (v series) {
	v.before = worse(value(s.between(-w.Before, 0)))
	for from := -w.Window; from >= -w.Before; from -= w.Window {
		if x := worse(value(s.between(from, from+w.Window))); !math.IsNaN(x) && !math.IsInf(x, 0) {
			v.apart = append(v.apart, x)
		}
	}
	for i := 0; beginning(w, i)+w.Window <= seconds; i++ {
		v.after = append(v.after, worse(value(s.between(beginning(w, i), beginning(w, i)+w.Window))))
	}
	return v
}

// beginning returns the beginning of a window after the event.
func beginning(w Windows, i int) float64 { return float64(i) * w.Window / steps }

// scatter returns the pooled variance of the windows before the events around the mean of each instance, and its
// degrees of freedom.
func scatter(all []series) (variance, df float64) {
	squares := 0.
	for _, v := range all {
		m := mean(v.apart)
		for _, x := range v.apart {
			squares += (x - m) * (x - m)
		}
		df += max(0, float64(len(v.apart)-1))
	}
	return squares / df, df
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}

// limit returns the value up to which a window is as before. margin is the tolerated value.
func (v series) limit(margin, variance, df float64) float64 {
	n := float64(len(v.apart))
	if df < 1 || n == 0 || len(v.after) == 0 {
		return margin
	}
	t := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1 - alpha/float64(len(v.after)))
	return max(margin, mean(v.apart)+t*math.Sqrt(variance*(1+1/n)))
}

// recovery returns the recovery time by a limit; nil where the observation has no window. A window without turns is not
// as before.
func (v series) recovery(limit float64, w Windows) *Recovery {
	first := len(v.after)
	for first > 0 && v.after[first-1] <= limit {
		first--
	}
	if len(v.after) == 0 {
		return nil
	}
	last := len(v.after) - 1
	return &Recovery{Seconds: beginning(w, min(first, last)), Censored: first > last}
}

// Measure returns the result of each instance, in their order. All instances of an arm share the scatter of their
// windows.
func Measure(all []Instance, w Windows) []Result {
	results := make([]Result, len(all))
	byArm := map[string][]int{}
	for i := range all {
		results[i] = counted(&all[i])
		byArm[all[i].Arm] = append(byArm[all[i].Arm], i)
	}
	for _, instances := range byArm {
		var times, rates []series
		for _, i := range instances {
			n := &all[i]
			s := newSample(n.Turns)
			times = append(times, newSeries(s, w, n.Seconds, ttft(n.Seconds), math.Log))
			rates = append(rates, newSeries(s, w, n.Seconds, hitRate, func(v float64) float64 { return -v }))
		}
		variance, df := scatter(times)
		rateVariance, rateDF := scatter(rates)
		for k, i := range instances {
			results[i].TTFT = times[k].figure(math.Log1p(tolerance)+times[k].before, variance, df, w, math.Exp)
			h := rates[k].before
			results[i].HitRate = rates[k].figure((1-tolerance)*h, rateVariance, rateDF, w, func(v float64) float64 { return -v })
			results[i].lose(&all[i])
		}
	}
	return results
}

// figure returns a figure with its values converted back from the scale.
func (v series) figure(margin, variance, df float64, w Windows, back func(float64) float64) (f Figure) {
	if math.IsNaN(v.before) || math.IsInf(v.before, 0) {
		return f
	}
	limit := v.limit(margin, variance, df)
	return Figure{Before: new(back(v.before)), Limit: new(back(limit)), Recovery: v.recovery(limit, w)}
}

// counted counts the turns that ended after an event.
func counted(n *Instance) Result {
	r := Result{Block: n.Block, Arm: n.Arm, Event: n.Event, Errors: map[api.ErrorClass]int{}}
	for i := range n.Turns {
		t := &n.Turns[i]
		end, ended := t.End()
		if !ended || end < 0 {
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

// lose sets the prompt tokens lost.
func (r *Result) lose(n *Instance) {
	h := r.HitRate
	if h.Before == nil || h.Recovery == nil {
		return
	}
	until, lost := h.Recovery.high(), 0.
	for i := range n.Turns {
		if t := &n.Turns[i]; t.HasCached && t.OK() && at(t) >= 0 && at(t) < until {
			lost += *h.Before*float64(t.PromptTokens) - float64(t.CachedTokens)
		}
	}
	r.TokensLost = &lost
}
