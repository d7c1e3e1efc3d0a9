//go:build verify

package proof

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/draw"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// restart is the duration of a change of mode.
const restart = 5 * time.Second

// observed is a run on a cluster with empty caches, with a load generator's figures.
type observed struct {
	loop      *closedloop.Loop
	recording proof.Recording
	latest    map[int64]int // latest turn of each conversation in progress
	first     int           // active conversations of those that began the run
}

func observe(s virtual.Setting) (*observed, error) {
	l, w, err := s.Loop()
	if err != nil {
		return nil, err
	}
	run := &observed{loop: l, latest: map[int64]int{}, first: s.Concurrency}
	turns := &run.recording.Turns
	l.OnTokens = func(t *closedloop.Turn, at time.Duration, _ int) {
		if at == t.FirstToken {
			run.latest[t.Conversation] = len(*turns)
			*turns = append(*turns, workload.Outcome{Sent: t.Submitted, TTFT: t.TTFT().Seconds()})
		}
	}
	shape := draw.Shape{
		Turns: w.Turns, Openings: w.Openings, MaxTokens: w.MaxTokens, Output: w.Output, RampedStart: w.RampedStart,
	}
	l.OnTurn = func(t *closedloop.Turn) {
		seen := &(*turns)[run.latest[t.Conversation]]
		seen.Status, seen.Latency, seen.OutputTokens = api.TurnOK, t.Latency().Seconds(), t.OutputTokens
		if tpot, ok := t.TPOT(); ok {
			seen.TPOT = tpot.Seconds()
		}
		seen.PromptTokens, seen.CachedTokens, seen.HasCached = t.PromptTokens, t.CachedTokens, true
		if t.Number < draw.New(w.Seed, t.Conversation, t.Conversation, shape).Turns {
			return
		}
		delete(run.latest, t.Conversation)
		if t.Conversation < int64(s.Concurrency) {
			run.first--
		}
	}
	return run, nil
}

// until runs on in whole seconds until done returns true.
func (o *observed) until(done func(now float64) bool) error {
	for now := o.loop.Cluster.Now(); !done(now.Seconds()); now += time.Second {
		if err := o.loop.Run(now + time.Second); err != nil {
			return err
		}
	}
	return nil
}

// span runs a span that counts for some seconds after its warm-up.
func span(s virtual.Setting, seconds float64) (proof.Recording, error) {
	run, err := observe(s)
	if err != nil {
		return proof.Recording{}, err
	}
	r := &run.recording
	if err := run.until(func(now float64) bool { r.CountedFrom = now; return run.first == 0 }); err != nil {
		return proof.Recording{}, err
	}
	err = run.until(func(now float64) bool { r.Until = now; return now >= r.CountedFrom+seconds })
	for _, s := range run.loop.Seconds() {
		r.Tokens = append(r.Tokens, float64(s.Tokens))
	}
	return *r, err
}

// cut shortens a recording to what a trial would use of it.
func cut(t *testing.T, r proof.Recording, s proof.Span) proof.Recording {
	t.Helper()
	if s.RunIn > 0 {
		runIn := s
		runIn.RunIn = 0
		r.CountedFrom = cut(t, r, runIn).Until
	}
	end := r.CountedFrom + math.Ceil(s.Seconds)
	for end < r.Until && !(end-r.CountedFrom >= s.Least(latency(r, end))) {
		end++
	}
	require.GreaterOrEqual(t, end-r.CountedFrom, s.Least(latency(r, end)), "the recording is too short for the span")
	require.LessOrEqual(t, end, r.Until, "the recording is too short for the span")
	r.Until = end
	return r
}

// latency returns the median latency of the turns that ended in a span before a time.
func latency(r proof.Recording, end float64) float64 {
	var all []float64
	for _, turn := range r.Turns {
		if at, _ := turn.End(); at >= r.CountedFrom && at < end {
			all = append(all, turn.Took())
		}
	}
	if len(all) == 0 {
		return math.Inf(1)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// spans runs spans concurrently.
func spans(t *testing.T, seconds float64, settings []virtual.Setting) []proof.Recording {
	t.Helper()
	all := make([]proof.Recording, len(settings))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range settings {
		group.Go(func() (err error) {
			all[i], err = span(s, seconds)
			return err
		})
	}
	require.NoError(t, group.Wait())
	return all
}

// pool has blocks of spans with the same conversations, from which trials are drawn: two spans of each arm.
//
// A trial draws without replacement, so that its blocks are independent, as they would be if each were computed for
// it. Different trials share blocks, unless the pool is large enough for all of them (PROOF_BLOCKS): the expected
// share of wrong verdicts is the same, with a larger uncertainty.
type pool [][2][2]proof.Recording

// perTrial is the maximum of blocks per trial.
const perTrial = 12

// size returns the number of blocks of a pool.
func size(t *testing.T) int {
	t.Helper()
	text := os.Getenv("PROOF_BLOCKS")
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "PROOF_BLOCKS")
	require.GreaterOrEqual(t, n, perTrial, "PROOF_BLOCKS")
	return n
}

// arms computes a pool of two arms. Change can modify each span of a block.
func arms(t *testing.T, n int, a, b virtual.Setting, change func(block, nth int, s *virtual.Setting)) pool {
	t.Helper()
	var settings []virtual.Setting
	for i := range n {
		for nth := range 2 {
			for _, s := range []virtual.Setting{a, b} {
				s.Draws, s.System, s.Ramped = uint64(i+1), uint64(len(settings)+10_000), true
				change(i, nth, &s)
				settings = append(settings, s)
			}
		}
	}
	p := make(pool, n)
	for i, r := range spans(t, 1.3*long(a.Concurrency), settings) {
		p[i/4][i%2][i/2%2] = r
	}
	return p
}

// source returns the recording that a span is cut from.
type source func(s proof.Span) (proof.Recording, error)

// places returns a source by the place of a span: its arm, its block, and its place in the order of the block's runs.
func places(runs int, at func(arm, block, place int) proof.Recording) source {
	return func(s proof.Span) (proof.Recording, error) {
		arm := 0
		if s.Arm == proof.ArmB {
			arm = 1
		}
		return at(arm, s.Number/runs, s.Number%runs), nil
	}
}

// draw returns one trial's spans. In a trial of a mode with itself, it is random which of a block's arms is A.
func (p pool) draw(trial int, alike, together bool) source {
	rng := rand.New(rand.NewPCG(uint64(trial), 5))
	order, swap := rng.Perm(len(p)), rng.Uint64()
	if len(p) >= trials*perTrial { // separate blocks for each trial
		order = order[:0]
		for i := range perTrial {
			order = append(order, trial*perTrial+i)
		}
	}
	runs := 3 // ABA, or AB and BA
	if together {
		runs = 4
	}
	return places(runs, func(arm, block, place int) proof.Recording {
		if alike && swap>>block&1 == 1 {
			arm = 1 - arm
		}
		return p[order[block]][arm][place/2]
	})
}

// ended is a finished trial.
type ended struct {
	api.TrialState
	minutes float64
}

// run runs a trial to its end.
func run(t *testing.T, p proof.Plan, from source) (e ended) {
	t.Helper()
	machine, err := proof.New(p)
	require.NoError(t, err)
	for {
		s, ok := machine.Next()
		if !ok {
			e.TrialState = machine.State()
			return e
		}
		at := []proof.Span{s} // spans at the same time
		if s, ok := machine.Beside(); ok {
			at = append(at, s)
		}
		elapsed, results := 0., []proof.Result{}
		for _, s := range at {
			r, err := from(s)
			require.NoError(t, err)
			r = cut(t, r, s)
			elapsed = max(elapsed, restart.Seconds()+r.Until)
			results = append(results, proof.Result{Recording: r})
		}
		for _, r := range results {
			r.Elapsed = elapsed / float64(len(results))
			require.Empty(t, machine.Add(r))
		}
		e.minutes += elapsed / 60
	}
}

// plan returns the plan of one of many trials.
func plan(concurrency, trial int, a, b api.Mode) proof.Plan {
	return proof.Plan{
		A: api.ModeState{Mode: a, Speculation: api.SpeculationNotRecorded},
		B: api.ModeState{Mode: b, Speculation: api.SpeculationNotRecorded}, Level: api.AtConversations(concurrency),
		Primary: proof.MeanTTFT, Smallest: .05, Seconds: 60, MaxTime: 3600, SLO: api.SLO{TTFT: .6, TPOT: .06},
		Seed: uint64(trial),
	}
}

// count counts the result of a trial of two modes.
func count(c *montecarlo.Cell, e ended) {
	c.Count("a difference", decided(e.Verdict))
	c.Count("a difference in another metric", slices.ContainsFunc(e.Others, func(d api.TrialDifference) bool {
		return decided(d.Outcome)
	}))
	c.Sample("minutes", e.minutes)
}

// ttft returns the sorted TTFT of the first tokens in a part of a recording.
func ttft(r proof.Recording, from, until float64) (all []float64) {
	for i := range r.Turns {
		if at := r.Turns[i].FirstToken(); from <= at && at < until {
			all = append(all, r.Turns[i].TTFT)
		}
	}
	slices.Sort(all)
	return all
}

// decided reports whether one mode was called better than the other.
func decided(verdict string) bool {
	return verdict == string(proof.ABetter) || verdict == string(proof.BBetter)
}

// long returns how long a span of the pools counts: some more than five median latencies.
func long(concurrency int) float64 {
	if concurrency <= 60 {
		return 200
	}
	return 350
}
