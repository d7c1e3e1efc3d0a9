package sim

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// witness is an observer that writes down all that it hears, and begins the next
// turn of its conversation at the end of one.
type witness struct {
	trace   hash.Hash
	cluster *Cluster
	next    func(Report)
}

func (w *witness) Routed(d *Decision) {
	fmt.Fprintln(w.trace, "routed", d.At, d.Pinned, d.Mode, d.PromptTokens, d.Chosen, d.OverlapBlocksLost(), d.PredictedHit())
	for _, c := range d.Candidates {
		fmt.Fprintln(w.trace, c.Worker, c.OverlapBlocks, c.PrefillTokens, c.DecodeBlocks, c.Requests, c.Cost)
	}
}
func (w *witness) FirstToken(r Report)            { fmt.Fprintln(w.trace, "first", w.cluster.Now(), r) }
func (w *witness) Tokens(at time.Duration, n int) { fmt.Fprintln(w.trace, "tokens", at, n) }
func (w *witness) Finished(r Report) {
	fmt.Fprintln(w.trace, "finished", w.cluster.Now(), r)
	w.next(r)
}

// digest is of all that the observers of a workload hear, in order: conversations
// on shared openings, some of which are cancelled, on a cluster that loses a worker
// and changes its mode where that is asked for.
func digest(t *testing.T, o Options, concurrency int, cancel float64, faults bool) uint64 {
	c, err := New(o)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(o.Seed, 9))
	trace := fnv.New64a()
	type cancelled struct {
		at  time.Duration
		job *Job
	}
	var cancels []cancelled
	var begin func()
	turn := func(history []text, left int) {}
	turn = func(history []text, left int) {
		answer := text{rng.Uint64(), 200 + rng.IntN(900)}
		w := &witness{trace: trace, cluster: c}
		w.next = func(r Report) {
			if r.Err != nil || left == 0 {
				begin()
				return
			}
			turn(append(append([]text{}, history...), answer, text{rng.Uint64(), 20 + rng.IntN(200)}), left-1)
		}
		j, err := c.Submit(textRequest(o.Profile.KV.BlockTokens, history, answer), w)
		if err != nil {
			fmt.Fprintln(trace, err)
			cancels = append(cancels, cancelled{at: c.Now() + time.Second}) // and begin another one then
			return
		}
		if rng.Float64() < cancel {
			cancels = append(cancels, cancelled{c.Now() + time.Duration(rng.Int64N(int64(30*time.Second))), j})
		}
	}
	begin = func() { turn([]text{{rng.Uint64N(10), 3500 + rng.IntN(500)}}, 2+rng.IntN(3)) }
	for range concurrency {
		c.Advance(c.Now() + 100*time.Millisecond)
		begin()
	}
	for at := c.Now(); at < 150*time.Second; at += 100 * time.Millisecond {
		c.Advance(at)
		due := cancels
		cancels = nil
		for _, x := range due {
			switch {
			case x.at > at:
				cancels = append(cancels, x)
			case x.job == nil:
				begin()
			default:
				c.Cancel(x.job)
			}
		}
		switch {
		case faults && at == 60*time.Second:
			require.NoError(t, c.LoseWorker(c.Workers()[1].ID, 10*time.Second))
		case faults && at == 100*time.Second:
			require.NoError(t, c.Switch(api.ModeKV, api.SpeculationOff))
		}
		if at%(5*time.Second) == 0 {
			fmt.Fprintln(trace, c.Workers(), c.RouterStats(), c.State())
		}
	}
	return trace.Sum64()
}

func TestDigest(t *testing.T) {
	for _, row := range []struct {
		name        string
		concurrency int
		cancel      float64
		faults      bool
		change      func(*Options)
	}{
		{"kv", 180, 0, false, func(*Options) {}},
		{"kv 60", 60, 0, false, func(*Options) {}},
		{"round_robin", 120, 0, false, func(o *Options) { o.Mode = api.ModeRoundRobin }},
		{"least_loaded", 120, 0, false, func(o *Options) { o.Mode = api.ModeLeastLoaded }},
		{"temperature", 90, 0, false, func(o *Options) { o.Temperature = .5 }},
		{"cancellations", 150, .4, false, func(*Options) {}},
		{"preemptions", 60, .2, false, func(o *Options) { o.Profile.KV.Blocks = 1500 }},
		{"small cache, round_robin", 100, .1, true, func(o *Options) { o.Profile.KV.Blocks, o.Mode = 3000, api.ModeRoundRobin }},
		{"faults", 120, .1, true, func(*Options) {}},
		{"forget", 120, 0, false, func(o *Options) { o.ForgetAnswers = true }},
		{"seven workers", 200, .1, true, func(o *Options) { o.Profile.Workers, o.OverlapWeight = 7, 2 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := DefaultOptions(H200())
			o.Seed = 3
			row.change(&o)
			got := digest(t, o, row.concurrency, row.cancel, row.faults)
			assert.Equal(t, fmt.Sprintf("%#x", digests[row.name]), fmt.Sprintf("%#x", got))
		})
	}
}

var digests = map[string]uint64{
	"kv":                       0x8b6657de45665991,
	"kv 60":                    0x2d2d1d42308b4020,
	"round_robin":              0x76237f74c8ff9067,
	"least_loaded":             0xd617c9e3f5b7bee8,
	"temperature":              0x801e585a83e59544,
	"cancellations":            0x7f5ff8bdf78222c3,
	"preemptions":              0xc8719b517a676b4c,
	"small cache, round_robin": 0x26ab122ab81ca70b,
	"faults":                   0xb43b0d46a3b40f2d,
	"forget":                   0xa4e3e58fdf4f5221,
	"seven workers":            0x6d0e10d345b6eb0a,
}
