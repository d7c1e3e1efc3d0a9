package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// limit is how long, in virtual time, a test waits for what must come.
const limit = 20 * time.Second

var (
	kv         = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	roundRobin = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

// ann is who does things in most tests.
const ann = "ann"

// booth is a process with one lane, running.
type booth struct {
	t         testing.TB
	catalogue *Catalogue
	lane      *Lane
	twin      *Lane // nil: there is one lane
	view      *View
	store     *memory
	driver    *script
	end       func() // ends the process, and returns when everything has ended

	mu     sync.Mutex
	health api.ClientHealth
	lag    time.Duration   // of any span; below 0: not known
	modes  []api.ModeState // that ModeChanged was told
}

// options are what a test changes of a booth before it is made.
type options struct {
	Options
	configured api.Settings
	config     map[string]string
	store      *memory
	twin       func(Options) Options // makes a second lane of the first's options; nil: there is none
}

// newBooth makes a booth against a target. It ends with the test.
func newBooth(t testing.TB, target Client, change ...func(*options)) *booth {
	t.Helper()
	b := &booth{t: t, driver: newScript(), health: api.ClientHealth{Verdict: api.VerdictFine, Reason: "as a test says"}}
	o := &options{
		store:      newMemory(),
		configured: api.Settings{SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{Min: 1, Max: 200, Increment: 1}, MaxConcurrency: 200, Vendor: api.VendorNeutral},
		Options: Options{
			Name: api.DefaultLane, Client: target, Corpus: smallCorpus(), Questioner: corpus.BuiltinQuestioner{},
			Settings: workload.Settings{Concurrency: 1, Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 64, StartRate: 1000},
			Seed:     7, Driver: b.driver, Mode: kv, Cluster: func() api.Cluster { return api.Cluster{} },
			ModeChanged: b.modeChanged,
		},
	}
	for _, c := range change {
		c(o)
	}
	b.store = o.store
	b.run(o)
	return b
}

// run starts the process; its end is a cleanup of the test at the latest.
func (b *booth) run(o *options) {
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	b.catalogue, err = NewCatalogue(ctx, Process{
		Version: "1.2.3", Config: o.config, Store: o.store, Log: slog.New(slog.DiscardHandler),
		Health: func(time.Time) api.ClientHealth { return b.verdict() },
		Lag:    func(from, to time.Time) (time.Duration, bool) { return b.late(), b.late() >= 0 },
	}, o.configured)
	require.NoError(b.t, err)
	b.lane = New(ctx, b.catalogue, o.Options)
	if o.twin != nil {
		b.twin = New(ctx, b.catalogue, o.twin(o.Options))
		Join(b.lane, b.twin)
	}
	b.view = NewView(b.catalogue)
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		b.view.Run(ctx)
	}()
	b.end = func() {
		cancel()
		<-ran
	}
	b.t.Cleanup(b.end)
}

func smallCorpus() *corpus.Corpus {
	c := &corpus.Corpus{Name: "small"}
	for _, id := range []string{"rivers", "bridges"} {
		c.Starters = append(c.Starters, corpus.Starter{ID: id, Topic: "The " + id, Text: "# The " + id + "\n\nAll there is to know about " + id + "."})
	}
	return c
}

func (b *booth) verdict() api.ClientHealth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health
}

func (b *booth) late() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lag
}

// delay makes the load generator late by so much.
func (b *booth) delay(lag time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lag = lag
}

func (b *booth) judge(v api.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.health.Verdict = v
}

func (b *booth) modeChanged(m api.ModeState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.modes = append(b.modes, m)
}

func (b *booth) told() []api.ModeState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.modes
}

// ok is the state after a call that was to go well.
func (b *booth) ok(s api.State, err error) api.State {
	b.t.Helper()
	require.NoError(b.t, err)
	return s
}

// start starts at a concurrency, or sets it.
func (b *booth) start(concurrency int) api.State {
	b.t.Helper()
	return b.ok(b.lane.Start(b.t.Context(), ann, api.StartRequest{Concurrency: &concurrency}))
}

func (b *booth) stop() api.State {
	b.t.Helper()
	return b.ok(b.lane.Stop(b.t.Context(), ann, api.StopRequest{}))
}

func (b *booth) drain() api.State {
	b.t.Helper()
	return b.ok(b.lane.Stop(b.t.Context(), ann, api.StopRequest{Drain: true}))
}

func (b *booth) patch(p api.WorkloadPatch) api.State {
	b.t.Helper()
	return b.ok(b.lane.Patch(b.t.Context(), ann, p))
}

func (b *booth) setMode(m api.ModeState) api.State {
	b.t.Helper()
	return b.ok(b.lane.SetMode(b.t.Context(), ann, api.ModeRequest{Mode: m.Mode, Speculation: m.Speculation}))
}

func (b *booth) snapshot() api.LaneSnapshot { return b.view.Snapshot().Lanes[0] }

func (b *booth) totals() api.Totals { return b.snapshot().Totals }

// eventually waits until the condition holds, and says how things stood if it never does.
func (b *booth) eventually(what string, holds func() bool) {
	b.t.Helper()
	for begun := time.Now(); !holds(); pass(2 * time.Millisecond) {
		if time.Since(begun) > limit {
			s, _ := json.Marshal(b.view.Snapshot())
			b.t.Fatalf("%s: not within %s; %s\nready: %v\nevents: %q", what, limit, s, b.view.Ready(), b.store.told())
		}
	}
}

// agrees waits until as many conversations are in progress as are asked for.
func (b *booth) agrees(n int) {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%d conversations", n), func() bool {
		s := b.lane.State()
		return s.Concurrency == api.Concurrency{Target: n, Actual: n} && s.Step.Settled != nil
	})
}

// phase waits for a phase.
func (b *booth) phase(p api.Phase) {
	b.t.Helper()
	b.eventually("phase "+string(p), func() bool { return b.lane.State().Phase == p })
}

// events waits for as many events as are given, and compares.
func (b *booth) events(want ...string) {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%d events", len(want)), func() bool { return len(b.store.told()) >= len(want) })
	assert.Equal(b.t, want, b.store.told())
}

func refuses(t testing.TB, err error, field string) *api.FieldError {
	t.Helper()
	var e *api.FieldError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, field, e.Field)
	assert.NotEmpty(t, e.Allowed)
	return e
}

// script is a driver that does what the test tells it.
type script struct {
	offers []api.ModeState
	calls  chan *switching // each call of Switch
}

// switching is a switch under way, which ends when the test answers.
type switching struct {
	from, to api.ModeState
	report   func(phase, message string)
	answers  chan switched
}

type switched struct {
	cold bool
	err  error
}

func newScript() *script {
	return &script{offers: []api.ModeState{kv, roundRobin}, calls: make(chan *switching)}
}

var errDriver = errors.New("the cluster did not come up")

func (d *script) Name() string { return "script" }

func (d *script) Offers() []api.ModeState { return d.offers }

func (d *script) Instance() string { return "" }

func (d *script) Switch(ctx context.Context, from, to api.ModeState, report func(phase, message string)) (bool, error) {
	s := &switching{from: from, to: to, report: report, answers: make(chan switched, 1)}
	select {
	case d.calls <- s:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case a := <-s.answers:
		return a.cold, a.err
	case <-ctx.Done():
		return false, fmt.Errorf("switching to %s: %w", to.Mode, ctx.Err())
	}
}

// called waits for the next switch.
func (d *script) called(t testing.TB) *switching {
	t.Helper()
	select {
	case s := <-d.calls:
		return s
	case <-time.After(limit):
		t.Fatal("the driver was not called")
		return nil
	}
}

func (s *switching) answer(cold bool, err error) { s.answers <- switched{cold, err} }
