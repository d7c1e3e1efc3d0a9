// Package openloop sends a simulated cluster requests at given moments, whatever becomes of
// those before them, in virtual time.
package openloop

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Arrival is a request that comes at a moment.
type Arrival struct {
	At           time.Duration // not before the one before it
	PromptTokens int
	OutputTokens int      // 0 counts as 1
	Blocks       []uint64 // hashes of the prompt's full blocks, at least

	// Next comes Delay after the end of this one, and its own At does not count; nil: none does.
	Next  *Arrival
	Delay time.Duration // of this one after the end of the one before
}

// Source gives arrivals in the order of time, io.EOF after the last one.
type Source func() (Arrival, error)

// Figures are what users of the cluster would have felt. Times are in seconds; NaN: nothing
// to read it from. JSON, which has no NaN, is without those of TPOT.
type Figures struct {
	Requests int `json:"requests"` // that were answered
	// Refused are those that no worker's cache could ever hold; all others have been answered.
	Refused           int     `json:"refused"`
	Seconds           float64 `json:"seconds"` // from the first request to the last token
	TTFT50            float64 `json:"ttft_p50_seconds"`
	TTFT95            float64 `json:"ttft_p95_seconds"`
	TPOT50            float64 `json:"-"`
	TPOT95            float64 `json:"-"`
	Latency50         float64 `json:"latency_p50_seconds"`
	Latency95         float64 `json:"latency_p95_seconds"`
	TokensPerSecond   float64 `json:"output_tokens_per_second"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	Hit               float64 `json:"hit_ratio"`             // cached over prompt tokens, 0 to 1
	LargestQueue      float64 `json:"largest_queue_seconds"` // longest wait at a worker, to be begun with
}

// often is after how many steps the context is checked.
const often = 256

// Run sends all arrivals to a cluster of its own and waits for all answers. The blocks of answers
// are not found again: nobody knows their hashes. An error is the source's, the context's, or an
// *[api.FieldError] of the options.
func Run(ctx context.Context, o sim.Options, next Source) (Figures, error) {
	o.ForgetAnswers = true
	c, err := sim.New(o)
	if err != nil {
		return Figures{}, err
	}
	t := &tally{}
	for read := false; ; {
		if !read {
			a, err := next()
			if read = errors.Is(err, io.EOF); err != nil && !read {
				return Figures{}, err
			}
			if !read {
				t.later(a.At, &a)
			}
		}
		// Until the next arrival, requests may end that others wait for.
		for {
			if t.steps++; t.steps%often == 1 && ctx.Err() != nil {
				return Figures{}, ctx.Err()
			}
			at, more := c.Next()
			if !more || len(t.waiting) > 0 && t.waiting[0].At <= at {
				break
			}
			c.Advance(at)
		}
		if len(t.waiting) == 0 {
			return t.figures(), nil
		}
		a := t.waiting[0]
		t.waiting = t.waiting[1:]
		c.Advance(a.At)
		if err := t.submit(c, a); err != nil {
			return Figures{}, err
		}
	}
}

// tally is what has become of the requests.
type tally struct {
	steps                  int
	waiting                []*Arrival // in the order of time
	ttft, tpot, latency    []float64
	prompt, cached, output int
	refused                int
	queue                  time.Duration
	first, last            time.Duration
	begun                  bool
}

// later lets a request arrive at a moment.
func (t *tally) later(at time.Duration, a *Arrival) {
	a.At = at
	i, _ := slices.BinarySearchFunc(t.waiting, at+1, func(other *Arrival, at time.Duration) int { return cmp.Compare(other.At, at) })
	t.waiting = slices.Insert(t.waiting, i, a)
}

func (t *tally) submit(c *sim.Cluster, a *Arrival) error {
	q := sim.Request{PromptTokens: a.PromptTokens, OutputTokens: max(a.OutputTokens, 1), Reason: sim.FinishStop}
	for _, hash := range a.Blocks {
		q.Blocks = append(q.Blocks, sim.BlockHash(hash))
	}
	_, err := c.Submit(q, &observer{t, a.Next})
	if errors.As(err, new(*api.FieldError)) {
		for ; a != nil; a = a.Next { // its later turns are longer
			t.refused++
		}
		return nil
	}
	if !t.begun {
		t.begun, t.first = true, c.Now()
	}
	return err
}

// observer hears of one request.
type observer struct {
	tally *tally
	next  *Arrival
}

// Routed implements [sim.Observer].
func (o *observer) Routed(*sim.Decision) {}

// FirstToken implements [sim.Observer].
func (o *observer) FirstToken(sim.Report) {}

// Tokens implements [sim.Observer].
func (o *observer) Tokens(time.Duration, int) {}

// Finished implements [sim.Observer].
func (o *observer) Finished(r sim.Report) {
	t, turn := o.tally, closedloop.Turn{Report: r}
	t.ttft = append(t.ttft, turn.TTFT().Seconds())
	t.latency = append(t.latency, turn.Latency().Seconds())
	if v, ok := turn.TPOT(); ok {
		t.tpot = append(t.tpot, v.Seconds())
	}
	t.queue = max(t.queue, turn.Queue())
	t.last = max(t.last, r.Ended)
	if o.next != nil {
		t.later(r.Ended+o.next.Delay, o.next)
	}
	t.prompt += r.PromptTokens
	t.cached += r.CachedTokens
	t.output += r.OutputTokens
}

func (t *tally) figures() Figures {
	f := Figures{Requests: len(t.latency), Refused: t.refused, Seconds: (t.last - t.first).Seconds(), LargestQueue: t.queue.Seconds()}
	f.TTFT50, f.TTFT95 = closedloop.Percentiles(t.ttft)
	f.TPOT50, f.TPOT95 = closedloop.Percentiles(t.tpot)
	f.Latency50, f.Latency95 = closedloop.Percentiles(t.latency)
	if f.Requests > 0 {
		f.TokensPerSecond, f.RequestsPerSecond = float64(t.output)/f.Seconds, float64(f.Requests)/f.Seconds
		f.Hit = float64(t.cached) / float64(t.prompt)
	}
	return f
}
