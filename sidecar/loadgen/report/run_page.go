package report

import (
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report/chart"
)

func (r *Run) cards() []Card {
	cards := []Card{r.outcomeCard()}
	for _, o := range r.SLO {
		c := Card{
			Name: sentenceCase(api.FigureOf(o.Metric).Short()) + " p95", Value: "–", Below: "not measured",
		}
		if o.P95 != nil {
			c.Value, c.Below, c.Class = inMilliseconds(*o.P95), "SLO "+inMilliseconds(o.Threshold), "good"
			switch {
			case o.Withheld != "":
				c.Below, c.Class = "undecided: "+o.Withheld, ""
			case !*o.Met:
				c.Class = "bad"
			}
		}
		cards = append(cards, c)
	}
	figure := func(name string, v Value, number func(float64) string) {
		c := Card{Name: name, Value: "–", Below: "not reported"}
		if v.Value != nil {
			c.Value, c.Below = number(*v.Value), "no interval: too few independent turns"
		}
		if v.Interval != nil {
			c.Below = "95 %: " + number(v.Interval[0]) + " to " + number(v.Interval[1])
		}
		cards = append(cards, c)
	}
	figure("Output tokens/s", r.OutputTokensPerSecond, chart.Number)
	figure("Requests/s", r.RequestsPerSecond, chart.Number)
	figure("KV cache hit", r.KVHitRatio, share100)
	errors := Card{Name: "Errors", Value: "–", Below: "no turn finished"}
	if r.ErrorRatio != nil {
		errors.Value, errors.Below = share100(*r.ErrorRatio), plural(r.Turns.Failed, "failed turn")
		if r.Turns.Failed > 0 {
			errors.Class = "bad"
		}
	}
	return append(cards, errors)
}

// outcomeCard shows the result of the conditions, or, without conditions, of the SLO.
func (r *Run) outcomeCard() Card {
	c := Card{
		Name: "SLO", Value: r.slo(), Below: "p95 of the whole run",
		Class: map[string]string{"met": "good", "missed": "bad"}[r.slo()],
	}
	if c.Value == "" {
		c.Value, c.Below = "–", "not measured"
		if r.SLO[0].P95 != nil {
			c.Below = "not judged"
		}
	}
	if len(r.Conditions) > 0 {
		c = Card{Name: "Result", Value: "passed", Below: plural(len(r.Conditions), "condition") + ", none met", Class: "good"}
		switch {
		case r.Failed():
			c.Value, c.Below, c.Class = "failed", "by --fail-if", "bad"
		case r.Undecided():
			c.Value, c.Below, c.Class = "undecided", "a condition was not measured", ""
		}
	}
	return c
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
