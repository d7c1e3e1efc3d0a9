//go:build verify

package pairs

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
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/lane/twin"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// booth is a load generator without its API, with a lane for each of its clusters.
type booth struct {
	t        *testing.T
	desk     *twin.Desk
	view     *lane.View
	lanes    []*lane.Lane
	clusters []*virtual.Cluster

	mu    sync.Mutex
	ended [2][]workload.Turn
}

// demo returns a workload with a concurrency, and answers with a mean number of tokens.
func demo(concurrency int, tokens float64) workload.Settings {
	return workload.Settings{
		Level: api.AtConversations(concurrency), Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 1024,
		OutputTokens: api.Distribution{Mean: tokens, CV: .15}, StartRate: 10,
	}
}

// virtually runs f in virtual time on a booth with one or two clusters.
func virtually(t *testing.T, settings workload.Settings, clusters []virtual.Options, f func(b *booth)) {
	t.Helper()
	dir := virtual.Folder(t)
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, dir)
		b := &booth{t: t, desk: twin.NewDesk(g.Context, g.Log)}
		for i, o := range clusters {
			c := g.Cluster(o)
			b.clusters = append(b.clusters, c)
			b.lanes = append(b.lanes, g.Lane(c, settings, func(o *lane.Options) {
				o.SharedWorkers = b.desk.SharedWorkers
				o.Ended = func(turn *workload.Turn) {
					b.mu.Lock()
					b.ended[i] = append(b.ended[i], *turn)
					b.mu.Unlock()
					b.desk.TurnEnded(turn)
				}
			}))
		}
		if len(b.lanes) == 2 {
			b.desk.Join(b.lanes[0], b.lanes[1])
			g.Go(b.desk.Run)
		}
		g.Run()
		b.view = g.View
		wait.Advance(time.Millisecond)
		f(b)
		g.End()
	})
}

// apart runs f on two clusters that begin in different modes, at 60 conversations.
func apart(t *testing.T, f func(b *booth)) {
	t.Helper()
	settings := demo(60, 830)
	settings.TargetRPS = 25
	virtually(t, settings, []virtual.Options{
		{Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second},
		{Mode: api.ModeRoundRobin, Seed: 2, Restart: 5 * time.Second},
	}, f)
}

func (b *booth) start() {
	b.t.Helper()
	_, err := b.lanes[0].Start(b.t.Context(), "test", api.StartRequest{})
	require.NoError(b.t, err)
}

func (b *booth) twin() api.Twin {
	b.t.Helper()
	v, err := b.desk.Twin()
	require.NoError(b.t, err)
	return v
}

func metric(t *testing.T, v api.Twin, name string) api.PairedMetric {
	t.Helper()
	for _, m := range v.Metrics {
		if m.Metric == name {
			return m
		}
	}
	require.Fail(t, "no metric "+name)
	return api.PairedMetric{}
}

// means returns the means over all counted turns of a lane, paired or not.
func (b *booth) means(i int) (ttft, tpot, latency, hit float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, prompt, cached := 0.0, 0.0, 0.0
	for _, t := range b.ended[i] {
		if t.Counted {
			n++
			ttft, tpot, latency = ttft+*t.TTFT, tpot+*t.TPOT, latency+*t.Latency
			prompt, cached = prompt+float64(*t.PromptTokens), cached+float64(*t.CachedTokens)
		}
	}
	return ttft / n, tpot / n, latency / n, cached / prompt
}

// At 60 conversations, the paired differences of kv and round-robin have the sign and the size of those between all
// turns and between the windows of the lanes.
func TestPairsAgreeWithLanes(t *testing.T) {
	apart(t, func(b *booth) {
		b.start()
		wait.Within(t, 15*time.Minute, "the difference is certain", func() (any, bool) {
			h := b.twin().Headline
			return h.Text, h.Certain
		})
		certain := b.twin()
		after := time.Since(*certain.Since).Seconds()
		figure.Report(t, "%s: %.0f s after both lanes have settled", certain.Headline.Text, after)
		assert.LessOrEqual(t, after, 240., "seconds of virtual time")
		wait.Advance(15 * time.Minute)
		v, snapshot := b.twin(), b.view.Snapshot()
		assert.Equal(t, api.TwinApart, v.Arranged)
		assert.Equal(t, api.EvidenceNone, v.Evidence)
		assert.Contains(t, v.Caution, "has not been checked")
		require.NotNil(t, v.Since)
		assert.Greater(t, v.Pairs, 1000)
		var of [2][4]float64
		for i := range of {
			of[i][0], of[i][1], of[i][2], of[i][3] = b.means(i)
		}
		for i, name := range []string{"ttft", "tpot", "latency", "kv_hit_ratio"} {
			m, alone := metric(t, v, name), of[1][i]-of[0][i]
			require.NotNil(t, m.Interval, name)
			figure.Report(t, "%s: difference of pairs %.4f (%.4f to %.4f), of all turns %.4f; variance divided by %.2f",
				name, *m.Difference, m.Interval[0], m.Interval[1], alone, *m.VarianceRatio)
			assert.InEpsilon(t, alone, *m.Difference, .25, name)
			assert.True(t, m.Interval[0] > 0 == (alone > 0) && m.Interval[1] > 0 == (alone > 0), "%s: the sign is certain", name)
		}
		p95 := metric(t, v, "ttft_p95")
		require.NotNil(t, p95.Difference)
		windows := [2]api.Window{snapshot.Lanes[0].Window, snapshot.Lanes[1].Window}
		assert.Equal(t, *windows[1].Metrics.TTFT.P95 > *windows[0].Metrics.TTFT.P95, *p95.Difference > 0)
		assert.InDelta(t, *snapshot.Lanes[1].KV.HitRatio-*snapshot.Lanes[0].KV.HitRatio,
			*metric(t, v, "kv_hit_ratio").Difference, .05)
	})
}

// One mode on both of two equal clusters shows that they are alike, and a second half with the modes swapped gives
// figures of both. Pairs are counted anew each time. If the twin is lost, lane main continues alone.
func TestArrangementsOfTwin(t *testing.T) {
	apart(t, func(b *booth) {
		b.start()
		wait.Advance(20 * time.Minute)
		apart := metric(t, b.twin(), "ttft")
		require.NotNil(t, apart.Interval)

		b.arrange(api.TwinSwapped)
		assert.Contains(t, b.twin().Caution, "one half")
		wait.Advance(20 * time.Minute)
		v := b.twin()
		swapped := metric(t, v, "ttft")
		assert.Equal(t, api.EvidenceSwapped, v.Evidence)
		assert.Empty(t, v.Caution)
		assert.Equal(t, api.ModeRoundRobin, v.A.Mode)
		assert.Greater(t, swapped.N, apart.N, "of both halves")
		assert.InEpsilon(t, -*apart.Difference, *swapped.Difference, .25, "A is now the other mode")
		assert.Less(t, swapped.Interval[1], 0.)

		b.arrange(api.TwinSame)
		v = b.twin()
		assert.Equal(t, api.EvidenceNone, v.Evidence)
		assert.Contains(t, v.Caution, "no result yet")
		wait.Within(t, time.Hour, "a look at the pairs shows something", func() (any, bool) {
			v = b.twin()
			return v.Pairs, v.Evidence != api.EvidenceNone
		})
		assert.Equal(t, api.EvidenceAlike, v.Evidence)
		assert.Empty(t, v.Caution)

		b.arrange(api.TwinApart)
		assert.Equal(t, api.EvidenceAlike, b.twin().Evidence, "the evidence is of the targets, in any mode")
		_, err := b.lanes[0].Start(t.Context(), "test", api.StartRequest{Level: new(api.AtConversations(30))})
		require.NoError(t, err)
		v = b.twin()
		assert.Zero(t, v.Pairs)
		assert.Contains(t, v.Caution, "not checked at 30")

		_, err = b.desk.ArrangeTwin(t.Context(), "test", api.TwinRequest{Arranged: "unknown"})
		require.ErrorAs(t, err, new(*api.FieldError))
		b.clusters[1].Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		wait.Advance(10 * time.Minute)
		caution := "the target of lane twin cannot serve (connection refused); lane main continues alone; "
		assert.Contains(t, b.twin().Caution, caution)
		assert.True(t, b.lanes[0].State().Running)
	})
}

// arrange changes the arrangement and waits until it is in effect. No pairs count then.
func (b *booth) arrange(as api.TwinArrangement) {
	b.t.Helper()
	_, err := b.desk.ArrangeTwin(b.t.Context(), "test", api.TwinRequest{Arranged: as})
	require.NoError(b.t, err)
	wait.Advance(7 * time.Second)
	v := b.twin()
	require.Equal(b.t, as, v.Arranged)
	require.Equal(b.t, api.PhaseRunning, b.lanes[0].State().Phase)
	require.Zero(b.t, v.Pairs, "pairs must be counted anew")
}

// A showcase is in no figure of either lane, with and without a workload.
func TestShowcaseIsInNoFigure(t *testing.T) {
	apart(t, func(b *booth) {
		ctx := t.Context()
		_, err := b.desk.StartShowcase(ctx, "test", api.ShowcaseRequest{Turns: new(2)})
		require.NoError(t, err)
		wait.Advance(time.Second)
		s := b.view.Snapshot()
		for _, l := range s.Lanes {
			assert.True(t, l.State.Showcase, "the state has the showcase")
			assert.False(t, l.State.Running)
			assert.Zero(t, l.Window.Awaiting.N)
		}
		wait.Advance(time.Minute)
		v := b.twin()
		assert.Equal(t, api.ShowcaseEnded, v.Showcase.State)
		require.Len(t, v.Showcase.Results, 2)
		assert.NotEmpty(t, v.Showcase.Results[1].First)
		require.NotNil(t, v.Showcase.B.CachedTokens)
		assert.Positive(t, *v.Showcase.A.Latency)
		assert.Len(t, b.clusters[0].Turns(), 2)

		b.start()
		wait.Advance(2 * time.Minute)
		first, err := b.desk.StartShowcase(ctx, "test", api.ShowcaseRequest{})
		require.NoError(t, err)
		wait.Advance(time.Second)
		second, err := b.desk.StartShowcase(ctx, "test", api.ShowcaseRequest{Turns: new(3)})
		require.NoError(t, err)
		assert.NotEqual(t, first.Showcase.ID, second.Showcase.ID)
		assert.NotEqual(t, first.Showcase.Topic, second.Showcase.Topic, "the next text")
		wait.Advance(2 * time.Minute)
		assert.Equal(t, api.ShowcaseEnded, b.twin().Showcase.State)
		_, err = b.lanes[0].Stop(ctx, "test", api.StopRequest{Drain: true})
		require.NoError(t, err)
		wait.Advance(2 * time.Minute)
		for i, l := range b.view.Snapshot().Lanes {
			assert.False(t, l.State.Showcase)
			answered := int64(len(b.clusters[i].Turns()))
			assert.Equal(t, answered-2-3, l.Totals.OK, "all turns of lane %s except those of the showcases", l.Name)
			assert.Len(t, b.ended[i], int(l.Totals.OK+l.Totals.Cancelled+l.Totals.Errors))
			assert.Zero(t, l.Totals.Cancelled, "the replaced showcase is not in the lane's totals")
		}
		_, err = b.desk.StopShowcase(ctx, "test")
		require.ErrorIs(t, err, api.ErrConflict)
	})
}

var errBroken = &chat.Error{Class: api.ErrorHTTP5xx, Message: "it is broken"}

// If a target fails, the showcase has its error, and the other target's answer.
func TestShowcaseReportsError(t *testing.T) {
	apart(t, func(b *booth) {
		_, err := b.desk.StartShowcase(t.Context(), "test", api.ShowcaseRequest{})
		require.NoError(t, err)
		wait.Advance(time.Second)
		b.clusters[1].Break(errBroken)
		wait.Advance(2 * time.Minute)
		s := b.twin().Showcase
		assert.Equal(t, api.ShowcaseFailed, s.State)
		assert.Equal(t, "lane twin: it is broken", s.Message)
		assert.Equal(t, 2, s.Turn)
		assert.Equal(t, "it is broken", s.B.Error)
		assert.NotEmpty(t, s.A.Text)
		require.Len(t, s.Results, 2)
		assert.Empty(t, s.Results[1].First)
		assert.False(t, b.lanes[0].State().Showcase)
	})
}

// figures are the names of a lane's figures after a warm-up.
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

// Each lane measures the same as a single lane with its cluster: its figures are within the 99.9 % prediction
// interval of six such runs with other seeds of the cluster.
func TestEachLaneMeasuresAsAlone(t *testing.T) {
	t.Parallel()
	const alone, quantile = 6, 6.869 // of Student's t with 5 degrees of freedom, 99.95 %
	modes := []api.Mode{api.ModeKV, api.ModeRoundRobin}
	measure := func(clusters ...virtual.Options) (all [][]float64) {
		virtually(t, demo(60, 300), clusters, func(b *booth) {
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
			assert.Less(t, off, .35*mean, "%s, %s: the interval is too wide to show anything", mode, what)
		}
	}
}

// Conversation k has the same draws on both lanes, even if one lane is behind: the same opening, and answers of the
// same lengths.
func TestLanesHaveTheSameConversations(t *testing.T) {
	t.Parallel()
	clusters := []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeRoundRobin, Seed: 2}}
	virtually(t, demo(30, 300), clusters, func(b *booth) {
		b.start()
		wait.Advance(3 * time.Minute)
		_, err := b.lanes[1].Start(b.t.Context(), "ann", api.StartRequest{Level: new(api.AtConversations(60))})
		require.NoError(b.t, err)
		wait.Advance(3 * time.Minute)
		type key struct {
			draw workload.Draw
			turn int
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		var of [2]map[key]api.Turn
		for i, turns := range b.ended {
			of[i] = map[key]api.Turn{}
			for _, e := range turns {
				of[i][key{e.Draw, e.Number}] = e.Turn
			}
		}
		pairs := 0
		for k, a := range of[0] {
			other, ok := of[1][k]
			if !ok || a.Status != api.TurnOK || other.Status != api.TurnOK {
				continue
			}
			pairs++
			assert.Equal(b.t, *a.OutputTokens, *other.OutputTokens, "%+v", k)
			if k.turn == 1 {
				assert.Equal(b.t, a.UserMessage, other.UserMessage, "%+v", k)
				assert.InDelta(b.t, *a.PromptTokens, *other.PromptTokens, 12, "%+v: equal except for the nonces", k)
			}
		}
		assert.Greater(b.t, pairs, len(of[0])*8/10, "pairs of the turns of main")
	})
}

// Two lanes with the same workers are detected by the workers' IDs and reported; no row is kept, and no figure is
// called better or worse. Two clusters with different workers are not reported. Two lanes that have had only one mode
// have no second one to swap with.
func TestSharedWorkersAreDetected(t *testing.T) {
	t.Parallel()
	equalIDs := []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeKV, Seed: 1}} // by equal seeds
	virtually(t, demo(20, 300), equalIDs, func(b *booth) {
		b.start()
		var v api.Twin
		wait.Within(b.t, 10*time.Minute, "it is seen", func() (any, bool) {
			v = b.twin()
			return v, len(v.SharedWorkers) == 3
		})
		assert.Equal(b.t, api.EvidenceShared, v.Evidence)
		assert.Contains(b.t, v.Caution,
			"the same workers serve both lanes: the lanes affect each other, so the results do not show what either "+
				"router could serve alone")
		wait.Advance(3 * time.Minute)
		for _, l := range b.view.Snapshot().Lanes {
			assert.EqualValues(b.t, v.SharedWorkers, l.SharedWorkers)
			assert.Contains(b.t, l.Baseline.Withheld, "3 of the workers also serve lane")
			require.NotNil(b.t, l.Baseline.NotKept)
			assert.Contains(b.t, l.Baseline.NotKept.Reason, "the lanes affect each other")
		}
	})
	clusters := []virtual.Options{{Mode: api.ModeKV, Seed: 1}, {Mode: api.ModeKV, Seed: 2}}
	virtually(t, demo(20, 300), clusters, func(b *booth) {
		assert.Equal(b.t, api.TwinSame, b.twin().Arranged)
		for _, a := range []api.TwinArrangement{api.TwinApart, api.TwinSwapped} {
			_, err := b.desk.ArrangeTwin(b.t.Context(), "ann", api.TwinRequest{Arranged: a})
			require.ErrorIs(b.t, err, api.ErrConflict)
			require.ErrorContains(b.t, err, "both lanes have had the mode KV-aware since the start")
		}
		b.start()
		wait.Advance(3 * time.Minute)
		assert.Empty(b.t, b.desk.SharedWorkers())
		for _, l := range b.view.Snapshot().Lanes {
			assert.Empty(b.t, l.SharedWorkers)
			assert.Empty(b.t, l.Baseline.Withheld)
		}
	})
}
