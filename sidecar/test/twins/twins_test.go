//go:build verify

package twins

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/twin"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// booth is a load generator without its API, with a lane for each of its clusters.
type booth struct {
	t        *testing.T
	clusters []*virtual.Cluster
	lanes    []*lane.Lane
	view     *lane.View
	pair     *twin.Pair // nil: one lane

	mu    sync.Mutex
	ended []lane.EndedTurn
}

// in runs a test in virtual time on lanes against clusters, the first of which is the lane
// main's.
func in(t *testing.T, settings workload.Settings, clusters []virtual.Options, test func(b *booth)) {
	t.Helper()
	dir := virtual.Folder(t)
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, dir)
		pair := &twin.Pair{}
		b := &booth{t: t}
		for _, o := range clusters {
			c := g.Cluster(o)
			b.clusters = append(b.clusters, c)
			b.lanes = append(b.lanes, g.Lane(c, settings, func(o *lane.Options) {
				o.SharedWorkers = pair.SharedWorkers
				o.Ended = func(t lane.EndedTurn) {
					pair.Heard(t)
					b.mu.Lock()
					defer b.mu.Unlock()
					b.ended = append(b.ended, t)
				}
			}))
		}
		if len(b.lanes) > 1 {
			b.pair = pair
			pair.Join(b.lanes[0], b.lanes[1])
			g.Go(pair.Run)
		}
		g.Run()
		b.view = g.View
		wait.Advance(time.Millisecond)
		synctest.Wait()
		test(b)
		g.End()
	})
}

func (b *booth) start() {
	b.t.Helper()
	_, err := b.lanes[0].Start(b.t.Context(), "ann", api.StartRequest{})
	require.NoError(b.t, err)
}

// becomes waits for a state of the pair.
func (b *booth) becomes(what string, holds func(api.Twin) bool) api.Twin {
	b.t.Helper()
	var v api.Twin
	wait.Within(b.t, 10*time.Minute, what, func() (any, bool) {
		var err error
		v, err = b.pair.Twin()
		require.NoError(b.t, err)
		return v, holds(v)
	})
	return v
}

func demo(concurrency int) workload.Settings {
	return workload.Settings{
		Concurrency: concurrency, Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 1024,
		Output: &api.Distribution{Mean: 300, CV: .15}, StartRate: 10,
	}
}

// figures are what a lane's users felt after a warm-up.
var figures = []string{"TTFT p50, s", "TTFT p95, s", "TPOT p50, s", "KV hit ratio", "output tokens/s"}

const warmUp, span = time.Minute, 150 * time.Second

func figuresOf(turns []virtual.Turn) []float64 {
	var ttft, tpot []float64
	prompt, cached, tokens := 0, 0, 0
	for _, t := range turns {
		if t.Sent < warmUp || t.Ended > warmUp+span {
			continue
		}
		ttft = append(ttft, (t.FirstToken - t.Submitted).Seconds())
		tpot = append(tpot, (t.Ended-t.FirstToken).Seconds()/float64(t.OutputTokens-1))
		prompt, cached, tokens = prompt+t.PromptTokens, cached+t.CachedTokens, tokens+t.OutputTokens
	}
	slices.Sort(ttft)
	slices.Sort(tpot)
	return []float64{
		stats.Percentile(ttft, .5), stats.Percentile(ttft, .95), stats.Percentile(tpot, .5),
		float64(cached) / float64(prompt), float64(tokens) / span.Seconds(),
	}
}

// Each lane measures what a run alone against its cluster does: within the 99.9 % prediction
// interval of six such runs, which differ in what the cluster leaves to chance.
func TestEachLaneIsAsAlone(t *testing.T) {
	t.Parallel()
	const alone, quantile = 6, 6.869 // of Student's t with 5 degrees of freedom, 99.95 %
	modes := []api.Mode{api.ModeKV, api.ModeRoundRobin}
	measure := func(clusters ...virtual.Options) (all [][]float64) {
		in(t, demo(60), clusters, func(b *booth) {
			b.start()
			wait.Advance(warmUp + span)
			for _, c := range b.clusters {
				all = append(all, figuresOf(c.Turns()))
			}
		})
		return all
	}
	together := measure(virtual.Options{Mode: modes[0], Seed: 101}, virtual.Options{Mode: modes[1], Seed: 102})
	for i, mode := range modes {
		var runs [][]float64
		for seed := range uint64(alone) {
			runs = append(runs, measure(virtual.Options{Mode: mode, Seed: seed + 1})[0])
		}
		for j, what := range figures {
			values := make([]float64, alone)
			for k := range runs {
				values[k] = runs[k][j]
			}
			mean, sd := stat.MeanStdDev(values, nil)
			off := quantile * sd * math.Sqrt(1+1./alone)
			figure.Report(t, "%s, %s: %.4g beside another lane, alone %.4g ± %.2g (99.9 %% of runs)",
				mode, what, together[i][j], mean, off)
			assert.InDelta(t, mean, together[i][j], off, "%s, %s", mode, what)
			assert.Less(t, off, .35*mean, "%s, %s: the interval says nothing", mode, what)
		}
	}
}

// Conversation k has the same draws on both lanes, however far one of them is behind: the
// same opening, and answers of the same lengths.
func TestConversationsAreTheSame(t *testing.T) {
	t.Parallel()
	in(t, demo(30), []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeRoundRobin, Seed: 2}}, func(b *booth) {
		b.start()
		wait.Advance(3 * time.Minute)
		_, err := b.lanes[1].Start(b.t.Context(), "ann", api.StartRequest{Concurrency: new(60)})
		require.NoError(b.t, err)
		wait.Advance(3 * time.Minute)
		type key struct {
			draw lane.Draw
			turn int
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		of := map[string]map[key]api.Turn{api.DefaultLane: {}, api.TwinLane: {}}
		for _, e := range b.ended {
			of[e.Lane][key{e.Draw, e.Number}] = e.Turn
		}
		pairs := 0
		for k, a := range of[api.DefaultLane] {
			other, ok := of[api.TwinLane][k]
			if !ok || a.Status != api.TurnOK || other.Status != api.TurnOK {
				continue
			}
			pairs++
			assert.Equal(b.t, *a.OutputTokens, *other.OutputTokens, "%+v", k)
			if k.turn == 1 {
				assert.Equal(b.t, a.UserMessage, other.UserMessage, "%+v", k)
				assert.InDelta(b.t, *a.PromptTokens, *other.PromptTokens, 12, "%+v: but for the nonces", k)
			}
		}
		assert.Greater(b.t, pairs, len(of[api.DefaultLane])*8/10, "of the turns of main")
	})
}

// Two lanes that begin in one mode have no second one to swap with.
func TestNoSecondMode(t *testing.T) {
	t.Parallel()
	in(t, demo(20), []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeKV, Seed: 2}}, func(b *booth) {
		v, err := b.pair.Twin()
		require.NoError(b.t, err)
		assert.Equal(b.t, api.TwinSame, v.Arranged)
		for _, a := range []api.TwinArrangement{api.TwinApart, api.TwinSwapped} {
			_, err := b.pair.ArrangeTwin(b.t.Context(), "ann", api.TwinRequest{Arranged: a})
			require.ErrorIs(b.t, err, api.ErrConflict)
			assert.Contains(b.t, err.Error(), "both lanes have had the mode KV-aware since the start")
		}
	})
}

// Two lanes over one set of workers are recognised by who answers, and it is said; no row is
// kept, and nothing is called better or worse. Two clusters are not taken for one.
func TestSharedWorkers(t *testing.T) {
	t.Parallel()
	in(t, demo(20), []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeKV, Seed: 1}}, func(b *booth) { // equal seeds: the same ids
		b.start()
		v := b.becomes("it is seen", func(v api.Twin) bool { return len(v.SharedWorkers) == 3 })
		assert.Equal(b.t, api.EvidenceShared, v.Evidence)
		assert.Contains(b.t, v.Caution, "the same workers serve both lanes: the lanes affect each other, so the results do not show what either router could serve alone")
		wait.Advance(3 * time.Minute)
		for _, l := range b.view.Snapshot().Lanes {
			assert.Equal(b.t, v.SharedWorkers, l.SharedWorkers)
			assert.Contains(b.t, l.Baseline.Withheld, "3 of the workers also serve lane")
			require.NotNil(b.t, l.Baseline.NotKept)
			assert.Contains(b.t, l.Baseline.NotKept.Reason, "the lanes affect each other")
		}
	})
	in(t, demo(20), []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeKV, Seed: 2}}, func(b *booth) {
		b.start()
		wait.Advance(3 * time.Minute)
		assert.Empty(b.t, b.pair.SharedWorkers())
		for _, l := range b.view.Snapshot().Lanes {
			assert.Empty(b.t, l.SharedWorkers)
			assert.Empty(b.t, l.Baseline.Withheld)
		}
	})
}
