package sweeps

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/sweep"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// booth is a load generator without its API, on a cluster in virtual time.
type booth struct {
	t       testing.TB
	cluster *virtual.Cluster
	second  *virtual.Cluster // of lane twin; nil: there is one lane
	process *process
	dir     string
	made    func(virtual.Options) *virtual.Cluster // which runs until the end
	stop    func()                                 // of the clusters

	workload workload.Settings
	lag      func(from, to time.Time) (time.Duration, bool)
	full     atomic.Bool // the disk, for sweeps
}

// disk is a store whose disk can be full.
type disk struct {
	*store.Store
	full *atomic.Bool
}

func (d disk) SaveSweep(ctx context.Context, id string, data []byte, place int, seconds []byte) error {
	if d.full.Load() {
		return errFull
	}
	return d.Store.SaveSweep(ctx, id, data, place, seconds)
}

func or(v *float64) *float64 {
	if v == nil {
		return new(0.)
	}
	return v
}

func inside(at time.Time, span api.SweepSpan) bool {
	return !at.Before(span.CountedFrom) && at.Before(span.Until)
}

func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	return stats.Percentile(values, p)
}

// process is what ends with a kill, or with an end in good order.
type process struct {
	catalogue *lane.Catalogue
	lane      *lane.Lane
	twin      *lane.Lane
	desk      *sweep.Desk
	store     *store.Store
	cancel    context.CancelFunc
	wg        sync.WaitGroup
}

// short is a workload whose conversations are over in seconds.
func short() workload.Settings {
	return workload.Settings{
		Concurrency: 8, Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 1024,
		Output: &api.Distribution{Mean: 60, CV: .15}, StartRate: 100,
	}
}

func newBooth(t testing.TB, settings workload.Settings, change ...func(*booth)) *booth {
	t.Helper()
	b := &booth{t: t, dir: t.TempDir(), workload: settings}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.made = func(o virtual.Options) *virtual.Cluster {
		c, err := virtual.New(o)
		require.NoError(t, err)
		wg.Go(func() { c.Run(ctx) })
		return c
	}
	b.cluster = b.made(virtual.Options{Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second})
	for _, c := range change {
		c(b)
	}
	b.stop = func() {
		cancel()
		wg.Wait()
	}
	b.begin()
	return b
}

// begin starts a process on what the one before it left.
func (b *booth) begin() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := store.Open(ctx, store.Options{Dir: b.dir, Owner: "127.0.0.1:1", Log: log})
	require.NoError(b.t, err)
	texts, err := corpus.Builtin()
	require.NoError(b.t, err)
	last, err := s.MaxStep(ctx, api.DefaultLane)
	require.NoError(b.t, err)
	p := &process{store: s, cancel: cancel}
	p.catalogue, err = lane.NewCatalogue(ctx, lane.Process{
		Version: "test", Store: s, Log: log,
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
	}, api.Settings{
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{Min: 20, Max: 180, Increment: 20}, MaxConcurrency: 200, Vendor: api.VendorNeutral,
	})
	require.NoError(b.t, err)
	p.lane = lane.New(ctx, p.catalogue, lane.Options{
		Name: api.DefaultLane, Client: b.cluster, Corpus: texts, Questioner: corpus.BuiltinQuestioner{}, Settings: b.workload, Seed: 7,
		Driver: b.cluster, Mode: b.cluster.Mode(), LastStep: last, Cluster: func() api.Cluster { return api.Cluster{} },
	})
	if b.second != nil {
		last, err := s.MaxStep(ctx, api.TwinLane)
		require.NoError(b.t, err)
		p.twin = lane.New(ctx, p.catalogue, lane.Options{
			Name: api.TwinLane, Client: b.second, Corpus: texts, Questioner: corpus.BuiltinQuestioner{}, Settings: b.workload, Seed: 7,
			Driver: b.second, Mode: b.second.Mode(), LastStep: last, Cluster: func() api.Cluster { return api.Cluster{} },
		})
		lane.Join(p.lane, p.twin)
	}
	view := lane.NewView(p.catalogue)
	p.desk, err = sweep.Open(ctx, sweep.Options{Program: "test", Lane: p.lane, Twin: p.twin, Catalogue: p.catalogue, Store: disk{s, &b.full}, Log: log, Lag: b.lag})
	require.NoError(b.t, err)
	p.wg.Go(func() { view.Run(ctx) })
	p.wg.Go(func() { p.desk.Run(ctx) })
	b.process = p
}

// kill ends the process; what it had not stored is lost.
func (b *booth) kill() {
	b.process.cancel()
	b.process.wg.Wait()
	require.NoError(b.t, b.process.store.Close())
}

func (b *booth) end() {
	b.kill()
	b.stop()
}

// begun starts a sweep, which waits until the desk runs.
func (b *booth) begun(r api.SweepRequest) api.Sweep {
	b.t.Helper()
	s, err := b.process.desk.StartSweep(b.t.Context(), "ann", api.DefaultLane, r)
	require.NoError(b.t, err)
	return s
}

// until waits until a sweep is as it must become.
func (b *booth) until(id string, what string, within time.Duration, ok func(api.Sweep) bool) api.Sweep {
	b.t.Helper()
	for deadline := time.Now().Add(within); ; {
		s, err := b.process.desk.Sweep(b.t.Context(), id)
		require.NoError(b.t, err)
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			require.Failf(b.t, "it never came", "%s; the sweep is %s (%s) after %d spans; %+v", what, s.State, s.Reason, len(s.Spans), s.Progress.Span)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func ended(s api.Sweep) bool { return s.State.Ended() || s.State == api.SweepPaused }

// text is a value as JSON, in which times have no zone of their own.
func text(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
