// Package openloop sends a simulated cluster requests at given moments, whatever becomes of
// those before them, in virtual time.
package openloop

import (
	"context"
	"errors"
	"io"
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

// often is after how many requests the context is looked at.
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
	for n := 0; ; n++ {
		if n%often == 0 && ctx.Err() != nil {
			return Figures{}, ctx.Err()
		}
		a, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Figures{}, err
		}
		c.Advance(a.At)
		if err := t.submit(c, a); err != nil {
			return Figures{}, err
		}
	}
	for n := 0; ; n++ {
		if n%often == 0 && ctx.Err() != nil {
			return Figures{}, ctx.Err()
		}
		at, more := c.Next()
		if !more {
			return t.figures(), nil
		}
		c.Advance(at)
	}
}

// tally is what has become of the requests.
type tally struct {
	ttft, tpot, latency    []float64
	prompt, cached, output int
	refused                int
	queue                  time.Duration
	first, last            time.Duration
	begun                  bool
}

func (t *tally) submit(c *sim.Cluster, a Arrival) error {
	q := sim.Request{PromptTokens: a.PromptTokens, OutputTokens: max(a.OutputTokens, 1), Reason: sim.FinishStop}
	for _, hash := range a.Blocks {
		q.Blocks = append(q.Blocks, sim.BlockHash(hash))
	}
	_, err := c.Submit(q, &observer{t})
	if errors.As(err, new(*api.FieldError)) {
		t.refused++
		return nil
	}
	if !t.begun {
		t.begun, t.first = true, c.Now()
	}
	return err
}

// observer hears of one request.
type observer struct{ tally *tally }

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
