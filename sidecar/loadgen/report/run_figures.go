package report

import (
	"fmt"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report/chart"
)

// figures returns the headline figures of a lane.
func (r *Run) figures() []Figure {
	all := r.outcomes()
	for i := range r.SLO {
		all = append(all, r.objectiveFigure(&r.SLO[i]))
	}
	errors := Figure{Name: "Errors", Note: "nothing was measured: no turn completed or failed"}
	if r.ErrorRatio != nil {
		errors.Value, errors.Note = api.Percent(*r.ErrorRatio), plural(r.Turns.Failed, "failed turn")
	}
	if r.Turns.Failed > 0 {
		errors.Class = "bad"
	}
	for _, rate := range []Figure{
		r.OutputTokensPerSecond.figure("Output tokens/s", whole),
		r.RequestsPerSecond.figure("Requests/s", hundredths),
	} {
		if rate.Value == "0" && r.Turns.OK > 0 {
			rate.Note = "each completed turn ended later"
		}
		if rate.Value != "" {
			rate.Note += "; over " + elapsed(r.rated)
		}
		all = append(all, rate)
	}
	return append(all, r.hits(), errors)
}

// Verdict returns the result of the conditions, or else that of the SLO, in words.
func (r *Run) Verdict() string {
	f := r.outcomes()[0]
	return strings.TrimSpace(f.Name+" "+f.Value) + ": " + f.Note
}

// outcomes returns the result of the conditions, if there are any, and that of the SLO.
func (r *Run) outcomes() []Figure {
	slo := Figure{Name: "SLO", Value: r.slo()}
	var notes []string
	switch {
	case slo.Value == "met":
		slo.Class = "good"
	case slo.Value == "missed":
		slo.Class = "bad"
	case r.SLO[0].P95 != nil:
		notes = append(notes, "not judged")
	default:
		notes = append(notes, "not measured")
	}
	if r.GoodputRatio != nil {
		notes = append(notes, api.Percent(*r.GoodputRatio)+" of the finished turns met every SLO")
	}
	slo.Note = strings.Join(notes, "; ")
	if len(r.Conditions) == 0 {
		return []Figure{slo}
	}
	result := Figure{"Result", "passed", plural(len(r.Conditions), "condition") + ", none met", "good"}
	switch {
	case r.Failed():
		result = Figure{"Result", "failed", "by --fail-if", "bad"}
	case r.Undecided():
		result = Figure{"Result", "undecided", "a condition was not measured", ""}
	case r.Uncertain():
		result = Figure{"Result", "not certain", "a change may be beyond its limit, or not", ""}
	}
	return []Figure{result, slo}
}

// objectiveFigure returns the p95 of an SLO with its outcome, and with the reason why a longer run or a faster load
// generator might change that.
func (r *Run) objectiveFigure(o *Objective) Figure {
	f := Figure{Name: strings.ToUpper(o.Metric) + " p95", Note: "not measured"}
	if o.P95 == nil {
		if o.Failed != nil {
			f.Note, f.Class = "SLO "+api.Objective(o.Threshold)+" missed: "+api.Percent(*o.Failed)+" of the turns failed", "bad"
			return f
		}
		if o.Metric == "tpot" && r.Metrics.TPOT.Unknown > 0 {
			f.Note = "not judged"
		}
		return f
	}
	f.Value, f.Note = api.Milliseconds(*o.P95), "SLO "+api.Objective(o.Threshold)
	switch {
	case o.Failed != nil:
		f.Note, f.Class = f.Note+" missed: "+api.Percent(*o.Failed)+" of the turns failed, the value is of the others", "bad"
		return f
	case o.Withheld != "":
		f.Note += " undecided: " + o.Withheld
		return f
	case *o.Met:
		f.Note, f.Class = f.Note+" met", "good"
	default:
		f.Note, f.Class = f.Note+" missed", "bad"
	}
	if in := o.Interval; in != nil && in[0] <= o.Threshold && in[1] > o.Threshold {
		f.Note += fmt.Sprintf(", but its 95 %% interval, %s to %s, includes the threshold", api.Milliseconds(in[0]),
			api.Milliseconds(in[1]))
	}
	return f
}

// hits returns the hit rate with its source: the usage of the answers, or else the counters nearest to the caches. The
// JSON has all of them.
func (r *Run) hits() Figure {
	f := r.KVHitRatio.figure("KV cache hit", api.Percent)
	if f.Value != "" {
		f.Note += "; from " + cachedSources["usage"]
		return f
	}
	for _, source := range []string{"engine", "frontend"} {
		for _, h := range r.Cluster.Hits {
			if h.Source == source {
				return Figure{Name: f.Name, Value: api.Percent(h.Ratio), Note: "from " + cachedSources[source]}
			}
		}
	}
	return f
}

func (v Value) figure(name string, number func(float64) string) Figure {
	switch {
	case v.Value == nil:
		return Figure{Name: name, Note: "not reported"}
	case v.Interval == nil:
		return Figure{Name: name, Value: number(*v.Value), Note: "no interval: too few independent turns"}
	}
	return Figure{
		Name: name, Value: number(*v.Value),
		Note: "95 %: " + number(v.Interval[0]) + " to " + number(v.Interval[1]),
	}
}

// seriesRecords returns a row for each span of the series, with times in seconds. An unknown value is empty.
func (r *Run) seriesRecords() [][]string {
	records := [][]string{{
		"lane", "from_seconds", "seconds", "completed", "failed", "ttft_p50_seconds", "ttft_p95_seconds",
		"tpot_p50_seconds", "tpot_p95_seconds", "output_tokens_per_second",
	}}
	for _, lane := range r.lanes() {
		for i := range lane.Series {
			p := &lane.Series[i]
			fields := []string{
				lane.Data.Lane, digits(&p.From, -1), digits(&p.Seconds, -1), strconv.Itoa(p.OK), strconv.Itoa(p.Failed),
			}
			for _, v := range []*float64{p.TTFTP50, p.TTFTP95, p.TPOTP50, p.TPOTP95, &p.OutputTokensPerSecond} {
				fields = append(fields, digits(v, 6))
			}
			records = append(records, fields)
		}
	}
	return records
}

func (r *Run) charts() []chart.Chart {
	in := func(of func(*Point) *float64, times float64) []*float64 {
		all := make([]*float64, len(r.Series))
		for i := range r.Series {
			if v := of(&r.Series[i]); v != nil {
				all[i] = new(times * *v)
			}
		}
		return all
	}
	turns, tokens := make([]chart.Stack, len(r.Series)), false
	for i, p := range r.Series {
		turns[i].Parts = []chart.Part{
			{Class: "first", Name: "completed", Value: float64(p.OK) / p.Seconds},
			{Class: "bad", Name: "failed", Value: float64(p.Failed) / p.Seconds},
		}
		tokens = tokens || p.OutputTokensPerSecond > 0
	}
	perSecond := chart.Stacks("Turns per second", "turns/s", "time since the start", 1, turns)
	perSecond.XTime(r.Seconds)
	byTurn := make([]chart.Stack, 0, 2*len(r.TTFTByTurn))
	for _, t := range r.TTFTByTurn {
		if t.P50 != nil && t.P95 != nil {
			byTurn = append(byTurn, chart.Stack{
				Label: "turn " + t.Turn,
				Parts: []chart.Part{
					{Class: "first", Name: "p50", Value: 1000 * *t.P50},
					{Class: "rest", Name: "p95", Value: 1000 * (*t.P95 - *t.P50)},
				},
			})
		}
	}
	output := chart.Curve{Class: "first", Name: "output tokens/s"}
	if tokens {
		output.Values = in(func(p *Point) *float64 { return &p.OutputTokensPerSecond }, 1)
	}
	return []chart.Chart{
		chart.OverTime("TTFT over the run", "ms", r.Seconds, 1000*r.SLO[0].Threshold,
			chart.Curve{Class: "first", Name: "p50", Values: in(func(p *Point) *float64 { return p.TTFTP50 }, 1000)},
			chart.Curve{Class: "second", Name: "p95", Values: in(func(p *Point) *float64 { return p.TTFTP95 }, 1000)}),
		chart.OverTime("TPOT over the run", "ms", r.Seconds, 1000*r.SLO[1].Threshold,
			chart.Curve{Class: "first", Name: "p50", Values: in(func(p *Point) *float64 { return p.TPOTP50 }, 1000)},
			chart.Curve{Class: "second", Name: "p95", Values: in(func(p *Point) *float64 { return p.TPOTP95 }, 1000)}),
		chart.OverTime("Output tokens per second, as received", "tokens/s", r.Seconds, 0, output),
		perSecond,
		chart.Histogram("TTFT distribution", r.ttft),
		chart.Stacks("TTFT by turn of the conversation", "ms", "", 24, byTurn),
	}
}
