package lane

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// duo is a booth with two lanes, main in kv and twin in round_robin.
type duo struct {
	*booth
	fakes   [2]*fake
	drivers [2]*script
	shared  []string

	mu    sync.Mutex
	ended map[string]map[Draw]string // by lane and draw: the opening's id and what the store got of it
}

func (d *duo) lanes() [2]*Lane { return [2]*Lane{d.lane, d.twin} }

// twins runs a test of two lanes in virtual time; the twin's target answers more slowly.
func twins(t *testing.T, test func(t *testing.T, d *duo), change ...func(*options)) {
	t.Helper()
	d := &duo{ended: map[string]map[Draw]string{}}
	add := func(o *options) {
		o.Ended, o.SharedWorkers = d.hear, func() []string { return d.shared }
		o.twin = func(own Options) Options {
			slow := newFake()
			slow.url, slow.ttft = "http://other.example:8000", 900*time.Millisecond
			d.fakes[1], d.drivers[1] = slow, newScript()
			own.Name, own.Client, own.Driver, own.Mode, own.ModeChanged = api.TwinLane, slow, d.drivers[1], roundRobin, nil
			return own
		}
	}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		d.booth, d.fakes[0], d.drivers[0] = b, f, b.driver
		test(t, d)
	}, append([]func(*options){add}, change...)...)
}

func (d *duo) hear(e EndedTurn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended[e.Lane] == nil {
		d.ended[e.Lane] = map[Draw]string{}
	}
	if e.Number == 1 && e.Status == api.TurnOK {
		d.ended[e.Lane][e.Draw] = e.UserMessage
	}
}

// both waits until both lanes have as many conversations in progress.
func (d *duo) both(n int) {
	d.t.Helper()
	for _, l := range d.lanes() {
		d.eventually("conversations of lane "+l.opts.Name, func() bool {
			s := l.State()
			return s.Concurrency == api.Concurrency{Target: n, Actual: n} && s.Step.Settled != nil
		})
	}
}

func (d *duo) modes() [2]api.Mode { return [2]api.Mode{d.lane.State().Mode, d.twin.State().Mode} }

func (d *duo) inPhase(p api.Phase) {
	d.t.Helper()
	for _, l := range d.lanes() {
		d.eventually(l.opts.Name+" "+string(p), func() bool { return l.State().Phase == p })
	}
}

// pairs counts the draws that ended on both lanes; all of them open with the same question.
func (d *duo) pairs() (both, alone int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for draw, asked := range d.ended[api.DefaultLane] {
		other, ok := d.ended[api.TwinLane][draw]
		if !ok {
			alone++
			continue
		}
		both++
		assert.Equal(d.t, asked, other, "%v", draw)
	}
	return both, alone
}

// Who steers either lane steers both: start, slider, settings, corpus and stop reach them at
// the same moment, and conversation k is the same on both.
func TestTwoLanesAreSteeredAsOne(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(3)
		d.both(3)
		assert.Equal(t, d.lane.State().Started, d.twin.State().Started)
		_, err := d.twin.Start(t.Context(), ann, api.StartRequest{Concurrency: new(6)})
		require.NoError(t, err)
		d.both(6)
		_, err = d.twin.Patch(t.Context(), ann, api.WorkloadPatch{Turns: &api.Range{Min: 2, Max: 2}, Openings: new(0)})
		require.NoError(t, err)
		pass(30 * time.Second)
		d.lane.SetCorpus(&corpus.Corpus{Name: "one", Starters: []corpus.Starter{{ID: "one", Topic: "One", Text: "# One\n\nThe only text."}}})
		pass(30 * time.Second)
		for _, l := range d.lanes() {
			s := l.State()
			assert.Equal(t, api.Range{Min: 2, Max: 2}, s.Shape.Turns)
			assert.Equal(t, 0, *s.Shape.Openings)
			assert.Equal(t, "one", s.Shape.Corpus)
		}
		_, err = d.twin.Stop(t.Context(), ann, api.StopRequest{})
		require.NoError(t, err)
		d.inPhase(api.PhaseStopped)

		// the next run goes on behind as many conversations on both, although one was slower
		d.start(4)
		pass(20 * time.Second)
		assert.Equal(t, d.lane.opened, d.twin.opened)
		assert.Positive(t, d.lane.opened)
		d.stop()
		both, _ := d.pairs()
		assert.Greater(t, both, 30)
		assert.NotEqual(t, opening(t, d.fakes[0].requests[:1]), opening(t, d.fakes[1].requests[:1]), "a nonce for each lane")
	})
}

// What one lane refuses happens to neither, and the error says which lane it is.
func TestWhatOneLaneRefusesHappensToNeither(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		_, err := d.twin.Start(t.Context(), ann, api.StartRequest{Concurrency: new(1000)})
		_ = refuses(t, err, "concurrency")
		d.start(2)
		d.both(2)
		for _, f := range d.fakes {
			f.set(func(f *fake) { f.words = 1e6 })
		}
		pass(5 * time.Second)
		d.fakes[0].flows()
		d.drain()
		d.eventually("main to be stopped", func() bool {
			return d.lane.State().Phase == api.PhaseStopped || d.twin.State().Phase == api.PhaseDraining
		})
		_, err = d.lane.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrConflict)
		assert.NotEqual(t, api.PhaseRunning, d.lane.State().Phase)
		d.stop()
		d.inPhase(api.PhaseStopped)

		d.drivers[1].offers = []api.ModeState{roundRobin}
		_, err = d.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
		e := refuses(t, err, "mode")
		assert.Contains(t, err.Error(), "lane twin: ")
		assert.Contains(t, e.Allowed, "round_robin")
		assert.Equal(t, [2]api.Mode{api.ModeKV, api.ModeRoundRobin}, d.modes())
		assert.Nil(t, d.lane.State().ModeChange)
	})
}

// Asking for the other lane's mode swaps the two; both begin again together.
func TestModesAreSwapped(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(3)
		d.both(3)
		d.setMode(roundRobin)
		calls := [2]*switching{d.drivers[0].called(t), d.drivers[1].called(t)}
		assert.Equal(t, roundRobin, calls[0].to)
		assert.Equal(t, kv, calls[1].to)
		calls[1].report("starting", "2 of 3 workers are ready")
		calls[0].answer(true, nil)
		d.eventually("main to say what it waits for", func() bool {
			c := d.lane.State().ModeChange
			return c != nil && c.Message == "lane twin: 2 of 3 workers are ready"
		})
		assert.Equal(t, api.PhaseSwitching, d.lane.State().Phase, "until both are done")
		calls[1].answer(false, nil)
		d.both(3)
		assert.Equal(t, [2]api.Mode{api.ModeRoundRobin, api.ModeKV}, d.modes())
		assert.Equal(t, d.lane.State().Started, d.twin.State().Started)
		assert.Equal(t, d.lane.opened, d.twin.opened)

		// to a third mode one lane goes alone; the other begins again with it
		leastLoaded := api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff}
		d.drivers[1].offers = append(d.drivers[1].offers, leastLoaded)
		before := opening(t, d.fakes[0].turns())
		_, err := d.twin.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeLeastLoaded})
		require.NoError(t, err)
		d.drivers[1].called(t).answer(true, nil)
		d.both(3)
		assert.Equal(t, [2]api.Mode{api.ModeRoundRobin, api.ModeLeastLoaded}, d.modes())
		assert.Equal(t, d.lane.State().Started, d.twin.State().Started)
		assert.NotEqual(t, before, opening(t, d.fakes[0].turns()), "cold prefixes for main, too")

		require.NoError(t, d.lane.SetModes(ann, roundRobin, roundRobin))
		d.drivers[1].called(t).answer(true, nil)
		d.both(3)
		assert.Equal(t, [2]api.Mode{api.ModeRoundRobin, api.ModeRoundRobin}, d.modes())
		require.NoError(t, d.lane.SetModes(ann, roundRobin, roundRobin), "as it is")
		assert.Equal(t, api.PhaseRunning, d.lane.State().Phase)
	})
}

// Where one lane's switch fails, the other goes back, and both run on in their modes.
func TestSwapFails(t *testing.T) {
	for name, back := range map[string]error{"goes back": nil, "cannot go back": errDriver} {
		t.Run(name, func(t *testing.T) {
			twins(t, func(t *testing.T, d *duo) {
				d.start(3)
				d.both(3)
				d.setMode(roundRobin)
				one, two := d.drivers[0].called(t), d.drivers[1].called(t)
				one.answer(true, nil)
				two.answer(false, errDriver)
				undo := d.drivers[0].called(t)
				assert.Equal(t, kv, undo.to)
				undo.answer(true, back)
				d.both(3)
				a, b := d.lane.State(), d.twin.State()
				require.True(t, a.ModeChange.Failed && b.ModeChange.Failed)
				assert.Contains(t, a.ModeChange.Message, "lane twin: "+errDriver.Error())
				assert.Contains(t, b.ModeChange.Message, "still in Round-robin: "+errDriver.Error())
				want := api.ModeKV
				if back != nil {
					want = api.ModeRoundRobin
					assert.Contains(t, a.ModeChange.Message, "switching back to KV-aware also failed")
				}
				assert.Equal(t, [2]api.Mode{want, api.ModeRoundRobin}, d.modes())
				assert.Equal(t, a.Started, b.Started)
			})
		})
	}
}

// Stop and cancel reach both lanes while their modes change.
func TestSwapIsStopped(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(3)
		d.both(3)
		d.setMode(roundRobin)
		one := d.drivers[0].called(t)
		d.drivers[1].called(t)
		one.answer(true, nil)
		pass(time.Second)
		_, err := d.twin.Stop(t.Context(), ann, api.StopRequest{})
		require.NoError(t, err)
		_, err = d.twin.CancelMode(t.Context(), ann)
		require.NoError(t, err)
		d.drivers[0].called(t).answer(true, nil)
		d.inPhase(api.PhaseStopped)
		assert.Equal(t, [2]api.Mode{api.ModeKV, api.ModeRoundRobin}, d.modes())
	})
}

// With a driver that asks a person, each lane's instructions are told and confirmed in turn,
// all of them at the lane that was asked.
func TestSwapIsConfirmed(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(2)
		d.both(2)
		d.setMode(roundRobin)
		waits := func(prefix string) {
			d.eventually("instructions", func() bool {
				c := d.lane.State().ModeChange
				return c != nil && c.Phase == "waiting_for_operator" && strings.HasPrefix(c.Message, prefix)
			})
			_, err := d.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})
			require.NoError(t, err)
		}
		waits("To switch to Round-robin")
		waits("lane twin: To switch to KV-aware")
		d.both(2)
		assert.Equal(t, [2]api.Mode{api.ModeRoundRobin, api.ModeKV}, d.modes())
	}, func(o *options) {
		offers := []api.ModeState{kv, roundRobin}
		o.Driver = cluster.NewManual(offers)
		made := o.twin
		o.twin = func(own Options) Options {
			own = made(own)
			own.Driver = cluster.NewManual(offers)
			return own
		}
	})
}

// A lane whose target is dead does not hold up the other one, which says nothing of it; the
// dead one does.
func TestOneTargetFails(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(3)
		d.both(3)
		d.fakes[1].set(func(f *fake) {
			f.ill = &chat.Error{Class: api.ErrorConnect, Message: "connection refused"}
			f.dark, f.gone = f.ill, f.ill
		})
		pass(time.Minute)
		before := d.view.Snapshot().Lanes[0].Totals.OK
		pass(time.Minute)
		s := d.view.Snapshot()
		assert.Greater(t, s.Lanes[0].Totals.OK, before+20)
		assert.Zero(t, s.Lanes[0].Totals.Errors)
		assert.Empty(t, s.Lanes[0].Target.Problem)
		assert.Equal(t, "connection refused", s.Lanes[1].Target.Problem)
		assert.Equal(t, "connection refused", d.twin.Problem())
		require.ErrorContains(t, d.view.Ready(), "lane twin: connection refused")
		d.stop()
		d.inPhase(api.PhaseStopped)
	})
}

// A sweep takes both lanes: the other one stops while spans are measured, and both go on
// together afterwards.
func TestLeaseOfTwoLanes(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(3)
		d.both(3)
		what := &api.SweepSummary{ID: "s1", State: api.SweepRunning, Request: api.SweepRequest{Kind: api.SweepTrial}}
		lease, before, err := d.lane.Take(t.Context(), func() *api.SweepSummary { return what })
		require.NoError(t, err)
		_, err = d.twin.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrConflict)
		assert.Equal(t, "s1", d.twin.State().Sweep.ID)
		assert.True(t, d.twin.State().Running, "until the first span")

		begun := make(chan error)
		go func() {
			_, err := lease.Begin(t.Context(), ann, []SpanOn{{d.lane, SpanSettings{Mode: kv, Concurrency: 2, Seed: 9}, nil}}, nil)
			begun <- err
		}()
		d.drivers[0].called(t).answer(true, nil)
		require.NoError(t, <-begun)
		d.agrees(2)
		assert.Equal(t, api.PhaseStopped, d.twin.State().Phase)
		require.NoError(t, lease.Release(t.Context(), ann, before))
		d.both(3)
		assert.Equal(t, d.lane.State().Started, d.twin.State().Started)
		assert.Nil(t, d.twin.State().Sweep)

		lease, before, err = d.twin.Take(t.Context(), func() *api.SweepSummary { return what })
		require.NoError(t, err)
		d.stop()
		by, stopped := lease.StoppedBy()
		assert.True(t, stopped)
		assert.Equal(t, ann, by)
		require.NoError(t, lease.Release(t.Context(), ann, before))
	})
}

// What a target measured has a name per lane, and each lane calls its own "this target".
func TestEachLaneHasItsOwnBaseline(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.start(2)
		d.both(2)
		pass(150 * time.Second)
		for i, l := range d.lanes() {
			b, err := d.catalogue.Baseline(api.OwnBaseline(l.opts.Name))
			require.NoError(t, err)
			require.Len(t, b.Rows, 1)
			assert.Equal(t, d.fakes[i].url, b.Target.URL)
			assert.Equal(t, l.State().Mode, b.Rows[0].Mode)
			for _, name := range []string{api.ThisTarget, api.OwnBaseline(l.opts.Name)} {
				c, err := l.Comparison(name)
				require.NoError(t, err)
				assert.Equal(t, api.ThisTarget, c.Name)
				require.Len(t, c.Columns, 1)
				assert.Equal(t, l.State().Mode, c.Columns[0].Mode)
			}
		}
		c, err := d.lane.Comparison("this target - twin")
		require.NoError(t, err)
		assert.Equal(t, "The target of lane twin, as measured", c.Title)
		require.ErrorIs(t, d.catalogue.DeleteBaseline(t.Context(), ann, "this target - twin"), api.ErrConflict)
		_, err = d.catalogue.SaveBaseline(t.Context(), ann, imported("this target - twin"))
		require.ErrorIs(t, err, api.ErrConflict)

		registry := prometheus.NewRegistry()
		registry.MustRegister(d.lane.Collector(), d.twin.Collector())
		checkLint(t, registry)
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP loadgen_active_conversations Conversations in progress.
# TYPE loadgen_active_conversations gauge
loadgen_active_conversations{lane="main"} 2
loadgen_active_conversations{lane="twin"} 2
`), "loadgen_active_conversations"))
	})
}

// While workers serve both lanes, no row is kept and nothing is called better or worse.
func TestSharedWorkersAreNoEvidence(t *testing.T) {
	twins(t, func(t *testing.T, d *duo) {
		d.shared = []string{"17", "18"}
		d.start(2)
		d.both(2)
		pass(150 * time.Second)
		for _, l := range d.lanes() {
			_, err := d.catalogue.Baseline(api.OwnBaseline(l.opts.Name))
			require.ErrorIs(t, err, api.ErrNotFound)
		}
		s := d.view.Snapshot()
		const reason = "2 of the workers also serve lane twin: the lanes affect each other"
		assert.Equal(t, d.shared, s.Lanes[0].SharedWorkers)
		assert.Equal(t, reason, s.Lanes[0].Baseline.Withheld)
		assert.Equal(t, reason, s.Lanes[0].Baseline.NotKept.Reason)
		assert.Contains(t, s.Lanes[1].Baseline.Withheld, "also serve lane main")
	})
}

var _ workload.Driver = (*script)(nil)
