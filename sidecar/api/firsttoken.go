package api

import "math"

// RouterDecision is an outcome of a router's choices of workers, by a counter of the router.
type RouterDecision struct {
	Metric   string  `json:"metric"`
	Outcome  string  `json:"outcome"`
	Requests float64 `json:"requests"`
}

// FirstTokenParts are mean times of requests until their first token in seconds, by the engines' own histograms. An
// absent part is not reported.
type FirstTokenParts struct {
	Engine  float64  `json:"engine"`            // from the arrival at the engine to the first token
	Queue   *float64 `json:"queue,omitempty"`   // of these, until the engine began the request
	Prefill *float64 `json:"prefill,omitempty"` // of these, from then to the first token
}

// TTFTPart is a part of the mean time to first token.
type TTFTPart struct {
	Name    string  `json:"name" enum:"router,queue,prefill,rest"`
	Seconds float64 `json:"seconds"`
	Text    string  `json:"text"` // where the time passes
}

// Split divides a measured mean TTFT, in seconds. The parts add up to it. The last one is what remains unexplained:
// what the engines report and their other times do not contain, less what their TTFT exceeds the measured one by. No
// router can cause that: counters and load generator end a minute at different requests. The last part may be negative.
func (f *FirstTokenParts) Split(measured float64) (parts []TTFTPart) {
	router := max(0, measured-f.Engine)
	parts = []TTFTPart{{
		"router", router, "router, network and load generator: what was measured, less the engines' TTFT",
	}}
	rest, text := measured-router, "at the engine: it reports no more"
	for _, p := range []struct {
		name    string
		seconds *float64
		text    string
	}{
		{"queue", f.Queue, "waiting at the engine"},
		{"prefill", f.Prefill, "computing the tokens of the prompt that were not cached, up to the first token"},
	} {
		if p.seconds != nil {
			parts = append(parts, TTFTPart{p.name, *p.seconds, p.text})
			rest -= *p.seconds
			text = "computing the prompt, and what the engine does not report"
		}
	}
	if f.Prefill != nil {
		text = "unexplained: the engines' TTFT, less the parts above"
	}
	return append(parts, TTFTPart{"rest", rest, text})
}

// Sum is a sum of times of requests.
type Sum struct{ Seconds, Requests float64 }

func (s Sum) mean() *float64 {
	if s.Requests <= 0 {
		return nil
	}
	return new(s.Seconds / s.Requests)
}

// FirstTokenTotals are the sums behind [FirstTokenParts].
type FirstTokenTotals struct{ Engine, Queue, Prefill Sum }

// Plus adds o times a factor.
func (t FirstTokenTotals) Plus(o FirstTokenTotals, factor float64) FirstTokenTotals {
	add := func(a *Sum, b Sum) {
		a.Seconds += factor * b.Seconds
		a.Requests += factor * b.Requests
	}
	add(&t.Engine, o.Engine)
	add(&t.Queue, o.Queue)
	add(&t.Prefill, o.Prefill)
	return t
}

// sameRequests is the difference of two numbers of requests up to which their mean times can be compared.
const sameRequests = .2

// Means returns the mean times, or nil if no engine reports its TTFT. It leaves out a part that is of other requests,
// such as one that engines count at the end of a request while the load rises.
func (t FirstTokenTotals) Means() *FirstTokenParts {
	first := t.Engine.mean()
	if first == nil {
		return nil
	}
	part := func(s Sum) *float64 {
		if math.Abs(s.Requests-t.Engine.Requests) > sameRequests*t.Engine.Requests {
			return nil
		}
		return s.mean()
	}
	return &FirstTokenParts{Engine: *first, Queue: part(t.Queue), Prefill: part(t.Prefill)}
}
