package trace

import (
	"container/heap"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// Contents describe what a stream holds. A pointer is nil where the value is unknown.
type Contents struct {
	Requests int64 `json:"requests"`
	// Sessions are those of the trace; requests without a session are not among them.
	Sessions int64         `json:"sessions"`
	Turns    *Distribution `json:"turns_per_session"`
	Models   []ModelShare  `json:"models,omitempty"` // in the order of their requests

	// Simultaneous means that all sessions begin at the same time.
	Simultaneous bool `json:"sessions_start_together,omitempty"`

	Timed            int64    `json:"requests_with_times"`       // others follow the turn before, or have no time at all
	Seconds          *float64 `json:"arrival_seconds"`           // from the first arrival to the last one
	Rate             *float64 `json:"requests_per_second"`       // of requests with times
	GapCV            *float64 `json:"gap_cv"`                    // coefficient of variation of the times between arrivals
	Dispersion       *float64 `json:"index_of_dispersion"`       // variance over mean of the arrivals in windows
	DispersionWindow *float64 `json:"dispersion_window_seconds"` // length of these windows

	Input  *Distribution `json:"input_tokens"`
	Output *Distribution `json:"output_tokens"`

	BlockTokens *int       `json:"block_tokens"`
	Hits        *CacheHits `json:"unlimited_cache"`
	LimitedHits *CacheHits `json:"limited_cache"` // nil also without a size
}

// Distribution describes numbers. Its percentiles are values that occur.
type Distribution struct {
	Count int64   `json:"count"` // of known values
	Mean  float64 `json:"mean"`
	P50   int     `json:"p50"`
	P95   int     `json:"p95"`
	Max   int     `json:"max"`
}

// ModelShare is the number of requests for a model or adapter.
type ModelShare struct {
	Model    string `json:"model"`
	Requests int64  `json:"requests"`
}

// CacheHits is the hit rate of one cache that serves all requests in the order of their arrival, each after the
// prefill of the one before. Blocks of answers are in it where they are known ([Record.Computed]).
type CacheHits struct {
	Blocks       int     `json:"blocks,omitempty"` // size of the cache; 0 without a limit
	Rate         float64 `json:"hit_rate"`         // share of the prompts' tokens
	HitTokens    int64   `json:"hit_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	Distinct     int     `json:"distinct_blocks,omitempty"` // blocks that were needed; 0 with a limit
	Reused       int     `json:"reused_blocks,omitempty"`   // those that were found again; 0 with a limit
}

// CacheSize is the size of a cache in blocks, or in tokens where Blocks is 0. The zero value is no cache.
type CacheSize struct{ Blocks, Tokens int }

// Describe reads a stream to its end and describes it. Memory grows with the number of requests, sessions and distinct
// blocks, by a few bytes for each.
func Describe(stream Stream, size CacheSize) (*Contents, error) {
	d := description{size: size, turns: map[uint64]int32{}, models: map[string]int64{}}
	for {
		record, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := d.add(record); err != nil {
			return nil, err
		}
	}
	for len(d.ahead) > 0 {
		if err := d.count(heap.Pop(&d.ahead).(*Record)); err != nil {
			return nil, err
		}
	}
	return d.contents(), nil
}

// description is a description in progress.
type description struct {
	size      CacheSize
	requests  int64
	turns     map[uint64]int32 // by session
	models    map[string]int64
	staggered bool // not all sessions begin at the same time
	input     []int32
	output    []int32
	arrivals  arrivals
	ahead     records // turns that follow others, by their estimated times

	blockTokens int
	unlimited   *blockSet
	reused      blockSet
	limited     *lru
	prompts     int64 // tokens of prompts with block hashes
	hits        [2]int64
}

// add counts the turns before a record, and the record.
func (d *description) add(record *Record) error {
	if record.At >= 0 {
		record.moment = record.At.Seconds() * 1000
		for len(d.ahead) > 0 && d.ahead[0].moment < record.moment {
			if err := d.count(heap.Pop(&d.ahead).(*Record)); err != nil {
				return err
			}
		}
		d.arrivals.add(record.At)
		return d.count(record)
	}
	for turn := record; turn != nil; turn = record {
		record, turn.Next = turn.Next, nil
		if err := d.count(turn); err != nil {
			return err
		}
	}
	return nil
}

// count counts a request. A turn that follows it is estimated to come after its delay alone.
func (d *description) count(r *Record) error {
	if next := r.Next; next != nil {
		next.moment = r.moment + max(next.Delay, 0).Seconds()*1000
		heap.Push(&d.ahead, next)
	}
	d.requests++
	if r.Session != 0 {
		d.staggered = d.staggered || d.turns[r.Session] == 0 && r.At > 0
		d.turns[r.Session]++
	}
	if r.Model != "" {
		d.models[r.Model]++
	}
	if r.PromptTokens >= 0 {
		d.input = append(d.input, int32(r.PromptTokens))
	}
	if r.OutputTokens >= 0 {
		d.output = append(d.output, int32(r.OutputTokens))
	}
	if r.BlockTokens == 0 {
		return nil
	}
	if d.blockTokens == 0 {
		if err := d.newCaches(r.BlockTokens); err != nil {
			return err
		}
	}
	d.lookUp(r)
	return nil
}

func (d *description) newCaches(blockTokens int) error {
	d.blockTokens, d.unlimited = blockTokens, &blockSet{}
	if d.size == (CacheSize{}) {
		return nil
	}
	if d.size.Blocks == 0 {
		d.size.Blocks = d.size.Tokens / blockTokens
	}
	if d.size.Blocks < 1 || d.size.Blocks > math.MaxInt32 {
		return api.Refuse("cache_tokens", d.size.Tokens, "at least one block, and at most 2147483647")
	}
	d.limited = newLRU(d.size.Blocks)
	return nil
}

// lookUp finds the beginning of a prompt in the caches and stores the rest there.
func (d *description) lookUp(r *Record) {
	blocks := r.Blocks[:min(len(r.Blocks), r.PromptTokens/r.BlockTokens)]
	d.prompts += int64(r.PromptTokens)
	found := true
	for _, block := range blocks {
		isNew := d.unlimited.add(block)
		if found = found && !isNew; found {
			d.hits[0] += int64(r.BlockTokens)
			d.reused.add(block)
		}
	}
	for _, block := range r.Computed {
		d.unlimited.add(block)
	}
	if d.limited == nil {
		return
	}
	for _, block := range blocks {
		if !d.limited.has(block) {
			break
		}
		d.hits[1] += int64(r.BlockTokens)
	}
	if len(r.Computed) > len(blocks) {
		blocks = r.Computed
	}
	for _, block := range slices.Backward(blocks) { // the beginning of a prompt outlives its end
		d.limited.use(block)
	}
}

func (d *description) contents() *Contents {
	c := &Contents{
		Requests: d.requests, Sessions: int64(len(d.turns)), Input: distributionOf(d.input),
		Output: distributionOf(d.output), Timed: d.arrivals.n,
		Simultaneous: !d.staggered && len(d.turns) > 1 && d.arrivals.n > 0,
	}
	perSession := make([]int32, 0, len(d.turns))
	for _, n := range d.turns {
		perSession = append(perSession, n)
	}
	c.Turns = distributionOf(perSession)
	for model, n := range d.models {
		c.Models = append(c.Models, ModelShare{model, n})
	}
	slices.SortFunc(c.Models, func(a, b ModelShare) int { return int(b.Requests - a.Requests) })
	d.arrivals.describe(c)
	if d.prompts == 0 {
		return c
	}
	c.BlockTokens = &d.blockTokens
	hits := func(n int64, blocks int) *CacheHits {
		rate := float64(n) / float64(d.prompts)
		return &CacheHits{Blocks: blocks, Rate: rate, HitTokens: n, PromptTokens: d.prompts}
	}
	c.Hits = hits(d.hits[0], 0)
	c.Hits.Distinct, c.Hits.Reused = d.unlimited.n, d.reused.n
	if d.limited != nil {
		c.LimitedHits = hits(d.hits[1], d.size.Blocks)
	}
	return c
}

// distributionOf describes numbers, which it sorts. It returns nil for none.
func distributionOf(values []int32) *Distribution {
	n := len(values)
	if n == 0 {
		return nil
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	at := func(share float64) int { return int(values[int(math.Ceil(share*float64(n)))-1]) }
	return &Distribution{int64(n), sum / float64(n), at(.5), at(.95), int(values[n-1])}
}

// arrivals are the arrivals of requests in the order of time.
type arrivals struct {
	n           int64
	first, last time.Duration
	squares     float64 // of the gaps, in seconds
	window      time.Duration
	counts      []int32 // of arrivals by window
}

const (
	shortestWindow = time.Millisecond
	mostWindows    = 1 << 13
	fewestWindows  = 32
	fewestArrivals = 10 // mean of a window; below half of it, the counts say little
)

func (a *arrivals) add(at time.Duration) {
	if a.n == 0 {
		a.first, a.last, a.window = at, at, shortestWindow
	}
	a.n++
	gap := (at - a.last).Seconds()
	a.squares += gap * gap
	a.last = at
	for (at-a.first)/a.window >= mostWindows {
		a.merge()
	}
	for len(a.counts) <= int((at-a.first)/a.window) {
		a.counts = append(a.counts, 0)
	}
	a.counts[(at-a.first)/a.window]++
}

// merge doubles the windows.
func (a *arrivals) merge() {
	for i, n := range a.counts {
		if a.counts[i] = 0; i == 0 {
			a.counts[0] = n
			continue
		}
		a.counts[i/2] += n
	}
	a.counts, a.window = a.counts[:(len(a.counts)+1)/2], 2*a.window
}

// describe sets rate and burstiness.
func (a *arrivals) describe(c *Contents) {
	if a.n == 0 {
		return
	}
	seconds := (a.last - a.first).Seconds()
	c.Seconds = &seconds
	if seconds == 0 {
		return
	}
	gaps := float64(a.n - 1)
	c.Rate = new(gaps / seconds)
	if a.n > 2 {
		mean := seconds / gaps
		c.GapCV = new(math.Sqrt(max(a.squares/gaps-mean*mean, 0)) / mean)
	}
	for len(a.counts) >= 2*fewestWindows && float64(a.n) < fewestArrivals*float64(len(a.counts)) {
		a.merge()
	}
	whole := a.counts[:int((a.last-a.first)/a.window)] // the last window is incomplete
	if len(whole) < fewestWindows {
		return
	}
	var sum, squares float64
	for _, n := range whole {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if mean := sum / float64(len(whole)); mean >= fewestArrivals/2 {
		variance := (squares - mean*sum) / float64(len(whole)-1)
		c.Dispersion, c.DispersionWindow = new(variance/mean), new(a.window.Seconds())
	}
}
