package lane

import (
	"runtime"
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

var _ workload.Driver = (*script)(nil)

// twinBooth is a booth with two lanes, main in kv and twin in round_robin.
type twinBooth struct {
	*booth
	fakes   [2]*fake
	drivers [2]*script
	shared  []string

	mu    sync.Mutex
	asked map[string]map[workload.Draw]string // by lane and draw: the opening question of each conversation
}

func (d *twinBooth) lanes() []*Lane { return []*Lane{d.lane, d.twin} }

// virtualTwins runs a test of two lanes in virtual time. The target of the twin answers more
// slowly.
func virtualTwins(t *testing.T, test func(t *testing.T, d *twinBooth), change ...func(*options)) {
	t.Helper()
	d := &twinBooth{asked: map[string]map[workload.Draw]string{api.DefaultLane: {}, api.TwinLane: {}}}
	add := func(o *options) {
		o.Ended, o.SharedWorkers = d.turnEnded, func() []string { return d.shared }
		o.twin = func(own Options) Options {
			slow := newFake()
			slow.url, slow.ttft = "http://other.example:8000", 900*time.Millisecond
			d.fakes[1], d.drivers[1] = slow, newScript()
			own.Name, own.Client, own.Driver, own.Mode = api.TwinLane, slow, d.drivers[1], roundRobin
			own.ModeChanged = nil
			return own
		}
	}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		d.booth, d.fakes[0], d.drivers[0] = b, f, b.driver
		test(t, d)
	}, append([]func(*options){add}, change...)...)
}

func (d *twinBooth) turnEnded(e *workload.Turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Number == 1 && e.Status == api.TurnOK {
		d.asked[e.Lane][e.Draw] = e.UserMessage
	}
}

// waitBothSettled waits until both lanes have settled at n conversations.
func (d *twinBooth) waitBothSettled(n int) {
	d.t.Helper()
	waitLanesSettled(d.t, n, d.lanes()...)
}

func (d *twinBooth) startBoth(n int) {
	d.t.Helper()
	d.start(n)
	d.waitBothSettled(n)
}

// checkModes compares the modes of both lanes, which began at the same moment.
func (d *twinBooth) checkModes(main, twin api.Mode) {
	d.t.Helper()
	a, b := d.lane.State(), d.twin.State()
	assert.Equal(d.t, [2]api.Mode{main, twin}, [2]api.Mode{a.Mode, b.Mode})
	assert.Equal(d.t, a.Started, b.Started)
}

// Start, slider, settings, corpus and stop of either lane change both at the same moment, and conversation k is the
// same on both.
func TestJoinedLanesChangeTogether(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(3)
		assert.Equal(t, d.lane.State().Started, d.twin.State().Started)
		d.noError(d.twin.Start(t.Context(), ann, api.StartRequest{Level: new(api.AtConversations(6))}))
		d.waitBothSettled(6)
		d.noError(d.twin.Patch(t.Context(), ann, api.WorkloadPatch{Turns: &api.Range{Min: 2, Max: 2}, Openings: new(0)}))
		pass(30 * time.Second)
		one := corpus.Starter{ID: "one", Topic: "One", Text: "# One\n\nThe only text."}
		d.lane.SetCorpus(&corpus.Corpus{Name: "one", Starters: []corpus.Starter{one}})
		pass(30 * time.Second)
		for _, l := range d.lanes() {
			s := l.State()
			assert.Equal(t, api.Range{Min: 2, Max: 2}, s.Shape.Turns)
			assert.Equal(t, 0, *s.Shape.Openings)
			assert.Equal(t, "one", s.Shape.Corpus)
		}
		d.noError(d.twin.Stop(t.Context(), ann, api.StopRequest{}))
		d.waitPhase(api.PhaseStopped, d.lanes()...)

		// On both lanes, the next run continues after the conversations of the faster lane.
		most := d.lane.opened
		require.Greater(t, most, d.twin.opened)
		d.start(4)
		pass(20 * time.Second)
		assert.Equal(t, [2]int64{most, most}, [2]int64{d.lane.opened, d.twin.opened})
		d.stop()
		pairs := 0
		for draw, question := range d.asked[api.DefaultLane] {
			if other, ok := d.asked[api.TwinLane][draw]; ok {
				pairs++
				assert.Equal(t, question, other, "%v", draw)
			}
		}
		assert.Greater(t, pairs, 30)
		first := opening(t, d.fakes[0].requests[:1])
		assert.NotEqual(t, first, opening(t, d.fakes[1].requests[:1]), "a nonce for each lane")
	})
}

// A change that one lane refuses is made on neither. The error names the lane.
func TestRefusalOfOneLaneChangesNeither(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(2)
		for _, f := range d.fakes {
			f.set(func(f *fake) { f.words = 1e6 })
		}
		pass(5 * time.Second)
		d.drain()
		d.fakes[0].endTurns()
		_, err := d.lane.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrConflict, "the twin drains")
		assert.NotEqual(t, api.PhaseRunning, d.lane.State().Phase)
		d.stop()
		d.waitPhase(api.PhaseStopped, d.lanes()...)

		d.drivers[1].offers = []api.ModeState{roundRobin}
		_, err = d.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
		assert.Contains(t, refuses(t, err, "mode"), "round_robin")
		assert.Contains(t, err.Error(), "lane twin: ")
		d.checkModes(api.ModeKV, api.ModeRoundRobin)
		assert.Nil(t, d.lane.State().ModeChange)
	})
}

// A change to the mode of the other lane swaps the two. Both begin again together.
func TestModesAreSwapped(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(3)
		d.setMode(roundRobin)
		calls := [2]*switching{d.drivers[0].called(t), d.drivers[1].called(t)}
		assert.Equal(t, roundRobin, calls[0].to)
		assert.Equal(t, kv, calls[1].to)
		calls[1].report("starting", "2 of 3 workers are ready")
		calls[0].answer(true, nil)
		pass(time.Second)
		assert.Equal(t, "lane twin: 2 of 3 workers are ready", d.lane.State().ModeChange.Message)
		assert.Equal(t, api.PhaseSwitching, d.lane.State().Phase, "until both are done")
		calls[1].answer(false, nil)
		d.waitBothSettled(3)
		d.checkModes(api.ModeRoundRobin, api.ModeKV)
		assert.Equal(t, d.lane.opened, d.twin.opened)

		// A change to a third mode changes only one lane. The other one begins anew with it.
		leastLoaded := api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff}
		d.drivers[1].offers = append(d.drivers[1].offers, leastLoaded)
		d.noError(d.twin.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeLeastLoaded}))
		d.drivers[1].called(t).answer(true, nil)
		d.waitBothSettled(3)
		d.checkModes(api.ModeRoundRobin, api.ModeLeastLoaded)

		require.NoError(t, d.lane.SetModes(ann, roundRobin, roundRobin))
		d.drivers[1].called(t).answer(true, nil)
		d.waitBothSettled(3)
		d.checkModes(api.ModeRoundRobin, api.ModeRoundRobin)
		require.NoError(t, d.lane.SetModes(ann, roundRobin, roundRobin), "the modes in force")
		assert.Equal(t, api.PhaseRunning, d.lane.State().Phase)
	})
}

// Where the switch of one lane fails, the other is rolled back, and both run on in their modes.
func TestFailedSwapIsRolledBack(t *testing.T) {
	for name, back := range map[string]error{"goes back": nil, "cannot go back": errDriver} {
		t.Run(name, func(t *testing.T) {
			virtualTwins(t, func(t *testing.T, d *twinBooth) {
				d.startBoth(3)
				d.setMode(roundRobin)
				one, two := d.drivers[0].called(t), d.drivers[1].called(t)
				one.answer(true, nil)
				two.answer(false, errDriver)
				undo := d.drivers[0].called(t)
				assert.Equal(t, kv, undo.to)
				undo.answer(true, back)
				d.waitBothSettled(3)
				a, b := d.lane.State().ModeChange, d.twin.State().ModeChange
				require.True(t, a.Failed && b.Failed)
				assert.Contains(t, a.Message, "lane twin: "+errDriver.Error())
				assert.Contains(t, b.Message, "still in Round-robin: "+errDriver.Error())
				want := api.ModeKV
				if back != nil {
					want = api.ModeRoundRobin
					assert.Contains(t, a.Message, "switching back to KV-aware also failed")
				}
				d.checkModes(want, api.ModeRoundRobin)
			})
		})
	}
}

// Stop and cancel take effect on both lanes while their modes change.
func TestSwapIsStopped(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(3)
		d.setMode(roundRobin)
		one := d.drivers[0].called(t)
		d.drivers[1].called(t)
		one.answer(true, nil)
		pass(time.Second)
		d.noError(d.twin.Stop(t.Context(), ann, api.StopRequest{}))
		d.noError(d.twin.CancelMode(t.Context(), ann))
		d.drivers[0].called(t).answer(true, nil)
		d.waitPhase(api.PhaseStopped, d.lanes()...)
		d.checkModes(api.ModeKV, api.ModeRoundRobin)
	})
}

// With manual drivers the instructions of each lane are shown and confirmed in turn, at the lane that was asked.
func TestSwapIsConfirmed(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(2)
		d.setMode(roundRobin)
		for _, prefix := range []string{"To switch to Round-robin", "lane twin: To switch to KV-aware"} {
			pass(time.Second)
			change := d.lane.State().ModeChange
			assert.Equal(t, "waiting_for_operator", change.Phase)
			assert.Contains(t, change.Message, prefix)
			d.noError(d.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true}))
		}
		d.waitBothSettled(2)
		d.checkModes(api.ModeRoundRobin, api.ModeKV)
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

// A lane whose target fails does not delay the other one, and only the lane that fails reports a problem.
func TestOneTargetFails(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(3)
		d.fakes[1].set(func(f *fake) {
			f.turnError = &chat.Error{Class: api.ErrorConnect, Message: "connection refused"}
			f.probeError, f.modelsError = f.turnError, f.turnError
		})
		pass(time.Minute)
		before := d.totals().OK
		pass(time.Minute)
		s := d.view.Snapshot()
		assert.Greater(t, s.Lanes[0].Totals.OK, before+20)
		assert.Zero(t, s.Lanes[0].Totals.Errors)
		assert.Empty(t, s.Lanes[0].Target.Problem)
		assert.Equal(t, "connection refused", s.Lanes[1].Target.Problem)
		assert.Equal(t, "connection refused", d.twin.Problem())
		require.ErrorContains(t, d.view.Ready(), "lane twin: connection refused")
	})
}

// A sweep takes both lanes. The other lane stops with the first span, and both continue together afterwards.
func TestSweepTakesBothLanes(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.startBoth(3)
		what := &api.SweepSummary{ID: "s1", State: api.SweepRunning, Request: api.SweepRequest{Kind: api.SweepTrial}}
		lease, before, err := d.lane.Take(t.Context(), func() *api.SweepSummary { return what })
		require.NoError(t, err)
		_, err = d.twin.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrConflict)
		assert.Equal(t, "s1", d.twin.State().Sweep.ID)
		assert.True(t, d.twin.State().Running, "until the first span")

		begun := make(chan error)
		go func() {
			span := SpanOn{d.lane, SpanSettings{Mode: kv, Level: api.AtConversations(2), Seed: 9}, nil}
			_, err := lease.Begin(t.Context(), ann, []SpanOn{span}, nil)
			begun <- err
		}()
		d.drivers[0].called(t).answer(true, nil)
		require.NoError(t, <-begun)
		d.waitSettled(2)
		assert.Equal(t, api.PhaseStopped, d.twin.State().Phase)
		require.NoError(t, lease.Release(t.Context(), ann, before))
		d.waitBothSettled(3)
		d.checkModes(api.ModeKV, api.ModeRoundRobin)
		assert.Nil(t, d.twin.State().Sweep)

		lease, before, err = d.twin.Take(t.Context(), func() *api.SweepSummary { return what })
		require.NoError(t, err)
		d.stop()
		name, stopped := lease.StoppedBy()
		assert.True(t, stopped)
		assert.Equal(t, ann, name)
		require.NoError(t, lease.Release(t.Context(), ann, before))
	})
}

// The rows of each lane have a name of their own, and each lane calls its own "this target".
func TestEachLaneHasItsOwnBaseline(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		const twin = "this target - twin"
		d.startBoth(2)
		pass(80 * time.Second)
		for i, l := range d.lanes() {
			b, err := d.catalog.Baseline(api.OwnBaseline(l.opts.Name))
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
		c, err := d.lane.Comparison(twin)
		require.NoError(t, err)
		assert.Equal(t, "The target of lane twin, as measured", c.Title)
		require.ErrorIs(t, d.catalog.DeleteBaseline(t.Context(), ann, twin), api.ErrConflict)
		_, err = d.catalog.SaveBaseline(t.Context(), ann, imported(twin))
		require.ErrorIs(t, err, api.ErrConflict)

		registry := prometheus.NewRegistry()
		registry.MustRegister(d.lane.Collector(), d.twin.Collector())
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP loadgen_active_conversations Conversations in progress.
# TYPE loadgen_active_conversations gauge
loadgen_active_conversations{lane="main"} 2
loadgen_active_conversations{lane="twin"} 2
`), "loadgen_active_conversations"))
	})
}

// While workers serve both lanes, no row is kept and comparisons are withheld.
func TestSharedWorkersAreNoEvidence(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		d.shared = []string{"17", "18"}
		d.startBoth(2)
		pass(80 * time.Second)
		for i, l := range d.view.Snapshot().Lanes {
			other := []string{"twin", "main"}[i]
			_, err := d.catalog.Baseline(api.OwnBaseline(l.Name))
			require.ErrorIs(t, err, api.ErrNotFound)
			assert.Equal(t, d.shared, l.SharedWorkers)
			assert.Equal(t, "2 of the workers also serve lane "+other+": the lanes affect each other", l.Baseline.Withheld)
			assert.Equal(t, l.Baseline.Withheld, l.Baseline.NotKept.Reason)
		}
	})
}

// Join waits for a change of a lane that holds its locks, and the change releases the same locks that it took.
func TestJoinWaitsForALaneThatChanges(t *testing.T) {
	virtualTwins(t, func(t *testing.T, d *twinBooth) {
		third := New(t.Context(), d.catalog, d.twin.opts)
		alone := d.lanes()
		unlock := d.lane.lockAll()
		joined := make(chan struct{})
		go func() {
			defer close(joined)
			Join(append(alone, third)...)
		}()
		for range 100 {
			runtime.Gosched()
		}
		assert.Equal(t, alone, d.lane.lanes)
		unlock()
		<-joined
		d.lane.lockAll()()
		assert.Len(t, d.lane.lanes, 3)
	})
}
