package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	kv         = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	roundRobin = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

// ann is the operator in most tests.
const ann = "ann"

// booth is a process with one lane, running.
type booth struct {
	t       testing.TB
	catalog *Catalog
	lane    *Lane
	twin    *Lane // nil with one lane
	view    *View
	store   *memory
	driver  *script
	end     func() // ends the process, and returns when everything has ended

	mu     sync.Mutex
	health api.ClientHealth
	lag    time.Duration   // of any span; below 0 where unknown
	modes  []api.ModeState // calls of ModeChanged
}

// options are the options of a booth that a test changes.
type options struct {
	Options
	configured api.Settings
	config     map[string]string
	store      *memory
	log        slog.Handler
	twin       func(Options) Options // makes a second lane of the first's options; nil for one lane
}

// newBooth returns a running booth against a target. It ends with the test.
func newBooth(t testing.TB, target Client, change ...func(*options)) *booth {
	t.Helper()
	b := &booth{t: t, driver: newScript(), health: api.ClientHealth{Verdict: api.VerdictFine, Reason: "as a test says"}}
	o := &options{
		store: newMemory(), log: slog.DiscardHandler,
		configured: api.Settings{
			SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{Min: 1, Max: 200, Increment: 1},
			MaxConcurrency: 200, Vendor: api.VendorNeutral,
		},
		Options: Options{
			Name:       api.DefaultLane,
			Client:     target,
			Corpus:     smallCorpus(),
			Questioner: corpus.BuiltinQuestioner{},
			Settings: workload.Settings{
				Level:     api.AtConversations(1),
				Turns:     api.Range{Min: 3, Max: 5},
				MaxTokens: 64,
				StartRate: 1000, Burstiness: 1, MaxInflight: 1000, Arrivals: "poisson",
			},
			Seed:        7,
			Driver:      b.driver,
			Mode:        kv,
			Cluster:     func() api.Cluster { return api.Cluster{} },
			ModeChanged: func(m api.ModeState) { b.locked(func() { b.modes = append(b.modes, m) }) },
		},
	}
	for _, c := range change {
		c(o)
	}
	b.store = o.store
	b.run(o)
	return b
}

// run starts the process and registers its end as a cleanup.
func (b *booth) run(o *options) {
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	b.catalog, err = NewCatalog(ctx, Process{
		Version: "1.2.3", Config: o.config, Store: o.store, Log: slog.New(o.log),
		Health: func(time.Time) api.ClientHealth { return b.verdict() },
		Lag:    func(from, to time.Time) (stats.Lag, bool) { return constantLag(b.late()), b.late() >= 0 },
	}, o.configured)
	require.NoError(b.t, err)
	b.lane = New(ctx, b.catalog, o.Options)
	if o.twin != nil {
		b.twin = New(ctx, b.catalog, o.twin(o.Options))
		Join(b.lane, b.twin)
	}
	b.view = NewView(b.catalog)
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
		text := "# The " + id + "\n\nAll there is to know about " + id + "."
		c.Starters = append(c.Starters, corpus.Starter{ID: id, Topic: "The " + id, Text: text})
	}
	return c
}

func (b *booth) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *booth) verdict() (h api.ClientHealth) {
	b.locked(func() { h = b.health })
	return h
}

func (b *booth) late() (lag time.Duration) {
	b.locked(func() { lag = b.lag })
	return lag
}

// constantLag returns the lag of a load generator whose time stamps are all late by the same time.
func constantLag(late time.Duration) (l stats.Lag) {
	for range 1000 {
		l.Timer.Add(late)
		l.Stream.Add(late)
	}
	return l
}

// delay sets the lag of the load generator.
func (b *booth) delay(lag time.Duration) { b.locked(func() { b.lag = lag }) }

func (b *booth) judge(v api.Verdict) { b.locked(func() { b.health.Verdict = v }) }

// modeChanges returns the arguments of the calls of ModeChanged.
func (b *booth) modeChanges() (modes []api.ModeState) {
	b.locked(func() { modes = b.modes })
	return modes
}

// noError returns the state after a successful call.
func (b *booth) noError(s api.State, err error) api.State {
	b.t.Helper()
	require.NoError(b.t, err)
	return s
}

// start starts the workload at a concurrency, or changes the concurrency.
func (b *booth) start(concurrency int) api.State {
	b.t.Helper()
	return b.noError(b.lane.Start(b.t.Context(), ann, api.StartRequest{Level: new(api.AtConversations(concurrency))}))
}

func (b *booth) stop() api.State {
	b.t.Helper()
	return b.noError(b.lane.Stop(b.t.Context(), ann, api.StopRequest{}))
}

func (b *booth) drain() api.State {
	b.t.Helper()
	return b.noError(b.lane.Stop(b.t.Context(), ann, api.StopRequest{Drain: true}))
}

func (b *booth) patch(p api.WorkloadPatch) api.State {
	b.t.Helper()
	return b.noError(b.lane.Patch(b.t.Context(), ann, p))
}

func (b *booth) setMode(m api.ModeState) api.State {
	b.t.Helper()
	return b.noError(b.lane.SetMode(b.t.Context(), ann, api.ModeRequest{Mode: m.Mode, Speculation: m.Speculation}))
}

func (b *booth) snapshot() api.LaneSnapshot { return b.view.Snapshot().Lanes[0] }

func (b *booth) totals() api.Totals { return b.snapshot().Totals }

// waitSettled waits until the lane has settled at n conversations.
func (b *booth) waitSettled(n int) {
	b.t.Helper()
	waitLanesSettled(b.t, n, b.lane)
}

// waitLanesSettled waits until each lane has settled at n conversations.
func waitLanesSettled(t testing.TB, n int, lanes ...*Lane) {
	t.Helper()
	for _, l := range lanes {
		wait.Eventually(t, fmt.Sprintf("%d conversations on lane %s", n, l.Name()), func() (any, bool) {
			s := l.State()
			return s, s.Concurrency == api.Concurrency{Target: api.AtConversations(n), Actual: n} && s.Step.Settled != nil
		})
	}
}

// waitPhase waits for a phase of each lane, or of the booth's own lane if none is given.
func (b *booth) waitPhase(p api.Phase, lanes ...*Lane) {
	b.t.Helper()
	if lanes == nil {
		lanes = []*Lane{b.lane}
	}
	for _, l := range lanes {
		wait.Eventually(b.t, l.Name()+" "+string(p), func() (any, bool) {
			s := l.State()
			return s, s.Phase == p
		})
	}
}

// mode returns the mode of the lane.
func (b *booth) mode() api.ModeState {
	s := b.lane.State()
	return s.InMode()
}

// expectEvents expects exactly these events since the start.
func (b *booth) expectEvents(want ...string) {
	b.t.Helper()
	synctest.Wait()
	assert.Equal(b.t, want, b.store.eventLines())
}

// refuses expects an [api.FieldError] of a field and returns what is allowed.
func refuses(t testing.TB, err error, field string) (allowed string) {
	t.Helper()
	var e *api.FieldError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, field, e.Field)
	assert.NotEmpty(t, e.Allowed)
	return e.Allowed
}

// script is a driver whose switches a test answers.
type script struct {
	offers []api.ModeState
	calls  chan *switching // each call of Switch
}

// switching is a switch in progress. It ends when the test answers.
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

func (d *script) Abilities() workload.Abilities { return workload.Abilities{} }

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
	return wait.Receive(t, "a call of the driver", d.calls)
}

func (s *switching) answer(cold bool, err error) { s.answers <- switched{cold, err} }
