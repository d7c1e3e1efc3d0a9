package sweeps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/lane/twin"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/sweep"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// booth is a load generator without its API, with a cluster in virtual time.
type booth struct {
	t       testing.TB
	cluster *virtual.Cluster
	second  *virtual.Cluster // of lane twin; nil with one lane
	process *process
	dir     string
	made    func(virtual.Options) *virtual.Cluster // runs until the end
	stop    func()                                 // stops the clusters

	workload workload.Settings
	lag      func(from, to time.Time) (stats.Lag, bool)
	full     atomic.Bool // whether the disk is full for sweeps
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

func inside(at time.Time, span api.SweepSpan) bool {
	return !at.Before(span.CountedFrom) && at.Before(span.Until)
}

func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	return stats.Percentile(values, p)
}

// process ends with a kill or with a regular end.
type process struct {
	*virtual.Generator
	lane *lane.Lane
	desk *sweep.Desk

	// With two lanes:
	twin  *lane.Lane
	twins *twin.Desk
}

// lagOf returns a probe all of whose samples have one delay.
func lagOf(late time.Duration) func(from, to time.Time) (stats.Lag, bool) {
	var lag stats.Lag
	for range 100 {
		lag.Timer.Add(late)
		lag.Stream.Add(late)
	}
	return func(time.Time, time.Time) (stats.Lag, bool) { return lag, true }
}

// short returns a workload whose conversations end within seconds.
func short() workload.Settings {
	return workload.Settings{
		Level: api.AtConversations(8), Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 1024,
		OutputTokens: api.Distribution{Mean: 60, CV: .15}, StartRate: 100,
	}
}

func newBooth(t testing.TB, settings workload.Settings, change ...func(*booth)) *booth {
	t.Helper()
	b := &booth{t: t, dir: virtual.Folder(t), workload: settings, lag: lagOf(time.Microsecond)}
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

// begin starts a process with the data of the one before.
func (b *booth) begin() {
	b.t.Helper()
	p := &process{Generator: virtual.NewGenerator(b.t, b.dir)}
	p.twins = twin.NewDesk(p.Context, p.Log)
	shared := func(o *lane.Options) { o.SharedWorkers = p.twins.SharedWorkers }
	p.lane = p.Lane(b.cluster, b.workload, shared)
	if b.second != nil {
		p.twin = p.Lane(b.second, b.workload, shared)
		p.twins.Join(p.lane, p.twin)
		p.Go(p.twins.Run)
	}
	var err error
	p.desk, err = sweep.Open(p.Context, sweep.Options{
		Program: "test", Lane: p.lane, Twin: p.twin, Catalog: p.Catalog, Store: disk{
			p.Store, &b.full,
		}, Log: p.Log, Lag: b.lag,
	})
	require.NoError(b.t, err)
	p.Run()
	p.Go(p.desk.Run)
	b.process = p
}

// kill ends the process; data that is not stored is lost.
func (b *booth) kill() { b.process.End() }

func (b *booth) end() {
	b.kill()
	b.stop()
}

// begun starts a sweep and waits until the desk runs.
func (b *booth) begun(r api.SweepRequest) api.Sweep {
	b.t.Helper()
	s, err := b.process.desk.StartSweep(b.t.Context(), "ann", api.DefaultLane, r)
	require.NoError(b.t, err)
	return s
}

// until waits until a sweep is in a wanted state.
func (b *booth) until(id string, what string, within time.Duration, ok func(api.Sweep) bool) api.Sweep {
	b.t.Helper()
	var s api.Sweep
	wait.Within(b.t, within, what, func() (any, bool) {
		var err error
		s, err = b.process.desk.Sweep(b.t.Context(), id)
		require.NoError(b.t, err)
		return fmt.Sprintf("%s (%s) after %d spans; %+v", s.State, s.Reason, len(s.Spans), s.Progress.Span), ok(s)
	})
	return s
}

func ended(s api.Sweep) bool { return s.State.Ended() || s.State == api.SweepPaused }

// text returns a value as JSON with times in UTC.
func text(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
