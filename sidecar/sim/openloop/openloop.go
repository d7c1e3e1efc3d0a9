// Package openloop sends requests to a simulated cluster at given moments, in virtual time. A request does not wait
// for the answers to earlier ones, unless it is declared as following one.
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

// Arrival is a request with its time.
type Arrival struct {
	At           time.Duration // ascending within a [Source]
	PromptTokens int
	OutputTokens int      // 0 counts as 1
	Blocks       []uint64 // hashes of at least the prompt's full blocks

	// Next is a request that follows this one; nil for none. It is sent its Delay after the end of this one, and
	// its At is ignored.
	Next  *Arrival
	Delay time.Duration
}

// Source returns arrivals in the order of time, and io.EOF after the last one.
type Source func() (Arrival, error)

// Figures are the latencies and rates of a run. Times are in seconds. NaN means that no data are available. JSON,
// which has no NaN, omits TPOT.
type Figures struct {
	Requests int `json:"requests"` // answered requests
	// Refused counts the requests that are too large for any worker's cache. All others are answered.
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
	LargestQueue      float64 `json:"largest_queue_seconds"` // longest wait at a worker before the first iteration
}

// checkInterval is the number of steps between two checks of the context.
const checkInterval = 256

// Run sends all arrivals to a new cluster and simulates until all answers are complete. The blocks of answers are not
// reused, because their hashes are unknown. An error is that of the source, of the context, or an *[api.FieldError] of
// the options.
func Run(ctx context.Context, o sim.Options, next Source) (Figures, error) {
	o.ForgetAnswers = true
	c, err := sim.New(o)
	if err != nil {
		return Figures{}, err
	}
	t := &tally{}
	for exhausted := false; ; {
		if !exhausted {
			a, err := next()
			switch {
			case errors.Is(err, io.EOF):
				exhausted = true
			case err != nil:
				return Figures{}, err
			default:
				t.schedule(a.At, &a)
			}
		}
		if err := t.advance(ctx, c); err != nil {
			return Figures{}, err
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

// advance runs the cluster up to the next arrival. Requests that end meanwhile may schedule earlier arrivals.
func (t *tally) advance(ctx context.Context, c *sim.Cluster) error {
	for {
		if t.steps++; t.steps%checkInterval == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		at, more := c.Next()
		if !more || len(t.waiting) > 0 && t.waiting[0].At <= at {
			return nil
		}
		c.Advance(at)
	}
}

// tally collects the results of the requests.
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

// schedule adds a request to the waiting ones, in the order of time.
func (t *tally) schedule(at time.Duration, a *Arrival) {
	a.At = at
	i, _ := slices.BinarySearchFunc(t.waiting, at+1, func(other *Arrival, at time.Duration) int {
		return cmp.Compare(other.At, at)
	})
	t.waiting = slices.Insert(t.waiting, i, a)
}

// submit sends a request to the cluster at the cluster's present time. The one that follows it is scheduled at its end.
// A request that the cluster can never serve ([api.FieldError]), as one that is too large for any worker's cache, is
// counted as refused, with all that follow it, and is no error. Any other error is returned.
func (t *tally) submit(c *sim.Cluster, a *Arrival) error {
	q := sim.Request{PromptTokens: a.PromptTokens, OutputTokens: max(a.OutputTokens, 1), Reason: sim.FinishStop}
	for _, hash := range a.Blocks {
		q.Blocks = append(q.Blocks, sim.BlockHash(hash))
	}
	_, err := c.Submit(q, &observer{t, a.Next})
	if errors.As(err, new(*api.FieldError)) {
		for ; a != nil; a = a.Next { // the requests that follow are longer
			t.refused++
		}
		return nil
	}
	if !t.begun {
		t.begun, t.first = true, c.Now()
	}
	return err
}

// observer records the result of one request.
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
		t.schedule(r.Ended+o.next.Delay, o.next)
	}
	t.prompt += r.PromptTokens
	t.cached += r.CachedTokens
	t.output += r.OutputTokens
}

func (t *tally) figures() Figures {
	f := Figures{
		Requests: len(t.latency), Refused: t.refused,
		Seconds: (t.last - t.first).Seconds(), LargestQueue: t.queue.Seconds(),
	}
	f.TTFT50, f.TTFT95 = closedloop.Percentiles(t.ttft)
	f.TPOT50, f.TPOT95 = closedloop.Percentiles(t.tpot)
	f.Latency50, f.Latency95 = closedloop.Percentiles(t.latency)
	if f.Requests > 0 {
		f.TokensPerSecond = float64(t.output) / f.Seconds
		f.RequestsPerSecond = float64(f.Requests) / f.Seconds
		f.Hit = float64(t.cached) / float64(t.prompt)
	}
	return f
}
