package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// running returns a desk that computes until the end of the test. how selects the behavior of its processes.
func running(t *testing.T, o Options, how string) *Desk {
	t.Helper()
	d, stop := desk(o, how)
	t.Cleanup(stop)
	return d
}

// desk returns a desk that computes until stop is called, which returns when the desk has ended.
func desk(o Options, how string) (d *Desk, stop func()) {
	o.CPUs = max(o.CPUs, 1)
	d = New(o)
	d.environ = append(d.environ, misbehave+"="+how)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	return d, func() {
		cancel()
		<-ended
	}
}

// small returns a simulation that is quickly computed.
func small() api.SimulationRequest {
	return api.SimulationRequest{
		Levels: api.LevelsOf(20, 4),
		Modes:  []api.Mode{api.ModeKV, api.ModeRoundRobin},
		Seeds:  new(2),
	}
}

func ask(t *testing.T, d *Desk, who string, r api.SimulationRequest) api.SimulationResult {
	t.Helper()
	s, err := d.StartSimulation(who, who, r)
	require.NoError(t, err)
	return s
}

// becomes waits for a state of a simulation.
func becomes(t *testing.T, d *Desk, id string, wanted func(api.SimulationResult) bool) (r api.SimulationResult) {
	t.Helper()
	wait.Eventually(t, "simulation "+id, func() (any, bool) {
		var err error
		r, err = d.Simulation(id)
		return r, err == nil && wanted(r)
	})
	return r
}

func ended(r api.SimulationResult) bool { return r.Progress.State.Ended() }
func begun(r api.SimulationResult) bool { return len(r.Points) > 0 }

// The process returns the figures of the study.
func TestSimulationEqualsStudy(t *testing.T) {
	d := running(t, Options{}, "")
	s := ask(t, d, "ada", small())
	assert.Equal(t, api.LevelsOf(4, 20), s.Request.Levels)
	assert.Equal(t, 3, *s.Request.Workers, "as recorded")
	assert.Equal(t, 8, s.Runs)
	assert.True(t, s.Calibrated)
	assert.EqualValues(t, []string{"Simulated on the profile h200-tp1: none of these figures was measured."}, s.Notes)

	var end api.SimulationEnd
	latest := map[string]api.SimulationPoint{}
	name := func(m api.Mode, concurrency int) string { return fmt.Sprint(m, concurrency) }
	require.NoError(t, d.FollowSimulation(t.Context(), s.ID, func(_ string, data any) error {
		switch data := data.(type) {
		case api.SimulationPoint:
			latest[name(data.Mode, data.Level.Conversations())] = data
		case api.SimulationEnd:
			end = data
		}
		return nil
	}))
	assert.Equal(t, api.SimulationDone, end.State)

	r, err := d.Simulation(s.ID)
	require.NoError(t, err)
	require.Len(t, r.Points, 4)
	g, err := study.Request(small()).Grid()
	require.NoError(t, err)
	points, err := g.Run(t.Context(), 2, nil)
	require.NoError(t, err)
	for i, p := range points {
		want := pointOf(p)
		assert.Equal(t, want, r.Points[i])
		assert.Equal(t, want, latest[name(p.Mode, p.Level.Conversations())], "the last point that a follower received")
		low, high := p.Band(closedloop.TTFT50)
		assert.Equal(t, api.SimulationFigure{Mean: want.Figures.TTFTP50.Mean, Low: low, High: high}, *want.Figures.TTFTP50)
		assert.InDelta(t, p.Mean().TTFT50, want.Figures.TTFTP50.Mean, 1e-9)
	}
	assert.Equal(t, api.SimulationProgress{State: api.SimulationDone, Done: 8, Of: 8}, r.Progress)
	assert.NotNil(t, r.Ended)
	assert.Equal(t, "simulated", r.Basis)
	assert.EqualValues(t, []api.SimulationSummary{{
		ID: s.ID, State: api.SimulationDone, By: "ada", Asked: s.Asked, Ended: r.Ended, Done: 8, Of: 8, Request: s.Request,
	}}, d.Simulations().Simulations)
}

// The job has the whole grid.
func TestJobKeepsTheGrid(t *testing.T) {
	g, err := study.Request{
		Openings: new(0), ThinkTime: new(1.5), Temperature: new(.1), Speculation: new(api.SpeculationEagle3),
	}.Grid()
	require.NoError(t, err)
	text, err := json.Marshal(job{g, 7, json.RawMessage(`"trace"`)})
	require.NoError(t, err)
	var back job
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, job{g, 7, json.RawMessage(`"trace"`)}, back)
}

// A simulation takes the trace of the load generator, at the speed of its rate.
func TestSimulationTakesTheTrace(t *testing.T) {
	d := running(t, Options{Trace: "trace t.jsonl", Spec: json.RawMessage(`"t"`)}, "")
	assert.Equal(t, "trace t.jsonl", d.Simulations().Trace)
	r := becomes(t, d, ask(t, d, "ada", api.SimulationRequest{
		Levels: []api.Level{api.AtRate(2)}, Modes: []api.Mode{api.ModeKV}, Seeds: new(1), Trace: new(true),
	}).ID, ended)
	require.Equal(t, api.SimulationDone, r.Progress.State, r.Error)
	assert.Contains(t, r.Notes, "The conversations are those of trace t.jsonl, which begins anew at its end.")
	f := r.Points[0].Figures
	assert.InDelta(t, 2, f.RequestsPerSecond.Mean, .1, "a fifth of the recorded speed")
	assert.InDelta(t, .95, f.HitRatio.Mean, .01, "all but the last of 20 blocks")

	_, err := New(Options{CPUs: 1}).StartSimulation("ada", "ada", api.SimulationRequest{Trace: new(true)})
	assert.EqualError(t, err,
		"trace: true is not allowed: false: the load generator was started without a trace (--trace)")
}

func TestCancelEndsTheProcess(t *testing.T) {
	d := running(t, Options{}, "hang")
	s := ask(t, d, "ada", small())
	becomes(t, d, s.ID, begun)
	process := child(t)
	assert.True(t, d.Ran(time.Now()), "it computes")
	r, err := d.CancelSimulation(s.ID)
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, r.Progress.State)
	assert.Equal(t, "it was cancelled", r.Error)
	assert.Len(t, r.Points, 1, "computed points are kept")
	wait.Eventually(t, "no process", func() (any, bool) { return process, exists(process) != nil && !d.Ran(time.Now()) })
	assert.True(t, d.Ran(s.Asked))

	again, err := d.CancelSimulation(s.ID)
	require.NoError(t, err)
	assert.Equal(t, r, again)
	_, err = d.CancelSimulation("none")
	assert.ErrorIs(t, err, api.ErrNotFound)
}

// Simulations run one at a time. A newer one of the same user cancels the previous one.
func TestQueue(t *testing.T) {
	d := running(t, Options{}, "hang")
	first := ask(t, d, "ada", small())
	becomes(t, d, first.ID, begun)
	second := ask(t, d, "bob", small())
	assert.Equal(t, api.SimulationProgress{State: api.SimulationQueued, Ahead: 1, Of: 8}, second.Progress)
	third := ask(t, d, "ada", small())
	assert.Equal(t, 1, third.Progress.Ahead)
	assert.Equal(t, "the same user started a newer simulation", becomes(t, d, first.ID, ended).Error)
	becomes(t, d, second.ID, begun)
	_, err := d.CancelSimulation(third.ID) // it has not begun
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, becomes(t, d, third.ID, ended).Progress.State)
}

func TestQueueIsBounded(t *testing.T) {
	d := running(t, Options{}, "hang")
	var all []api.SimulationResult
	for i := range 1 + maxQueued {
		all = append(all, ask(t, d, strconv.Itoa(i), small()))
	}
	_, err := d.StartSimulation("one more", "one more", small())
	require.ErrorIs(t, err, api.ErrUnavailable)
	assert.ErrorContains(t, err, "5 simulations are ahead of this one")
	for _, s := range all {
		_, err := d.CancelSimulation(s.ID)
		require.NoError(t, err)
	}
	stays := ask(t, d, "stays", small())
	for i := range 2 * maxKept {
		last := ask(t, d, strconv.Itoa(i), small())
		_, err := d.CancelSimulation(last.ID)
		require.NoError(t, err)
	}
	assert.Len(t, d.Simulations().Simulations, maxKept)
	becomes(t, d, stays.ID, begun) // an unfinished simulation is kept
	_, err = d.Simulation(all[0].ID)
	assert.ErrorIs(t, err, api.ErrNotFound, "the oldest are dropped")
}

// A simulation without a follower is canceled after some time.
func TestUnfollowedSimulationIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{CPUs: 1})
		s := ask(t, d, "ada", small())
		state := func() string {
			d.cancelUnfollowed(time.Now())
			d.mu.Lock()
			defer d.mu.Unlock()
			return string(d.all[0].state) + " " + d.all[0].problem
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			assert.NoError(t, d.FollowSimulation(ctx, s.ID, func(string, any) error { return nil }))
		}()
		synctest.Wait()
		wait.Advance(time.Hour)
		assert.Equal(t, "queued ", state())
		leave()
		wait.Advance(followTimeout)
		assert.Equal(t, "queued ", state())
		wait.Advance(time.Second)
		assert.Equal(t, "cancelled no page was following it any more", state())
	})
}

func TestFollowEndsWithFollower(t *testing.T) {
	d := New(Options{CPUs: 1})
	s := ask(t, d, "ada", small())
	gone := errors.New("the connection is gone")
	assert.Equal(t, gone, d.FollowSimulation(t.Context(), s.ID, func(string, any) error { return gone }))
	assert.ErrorIs(t, d.FollowSimulation(t.Context(), "x", nil), api.ErrNotFound)
}

func TestProcessFailureHasReason(t *testing.T) {
	const early = "^the simulation's process ended before it was done"
	for name, row := range map[string]struct {
		how, want string
		memory    int64
	}{
		"crash":  {"crash", early + ": exit status 2: panic: the simulated cluster burns$", 0},
		"silent": {"silent", early + "$", 0},
		"memory": {"", "it needs more than the 1 MiB that a simulation may use: reduce the levels", 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			d := running(t, Options{Memory: row.memory}, row.how)
			r := becomes(t, d, ask(t, d, "ada", small()).ID, ended)
			assert.Equal(t, api.SimulationFailed, r.Progress.State)
			assert.Regexp(t, row.want, r.Error)
		})
	}
}

// The end of a desk leaves no process and cancels queued simulations.
func TestEndLeavesNoProcess(t *testing.T) {
	d, stop := desk(Options{}, "hang")
	defer stop()
	s, waits := ask(t, d, "ada", small()), ask(t, d, "bob", small())
	becomes(t, d, s.ID, begun)
	process := child(t)
	stop()
	assert.Error(t, exists(process))
	for _, id := range []string{s.ID, waits.ID} {
		r, err := d.Simulation(id)
		require.NoError(t, err)
		assert.Equal(t, api.SimulationCancelled, r.Progress.State)
		assert.Equal(t, "the load generator is shutting down", r.Error)
	}
}

// A process exits when its standard input ends, as after a kill of the load generator. A bad request gives an error.
func TestProcessReadsItsInput(t *testing.T) {
	g, err := study.Request{Levels: api.LevelsOf(10_000), Seeds: new(12)}.Grid()
	require.NoError(t, err)
	long, err := json.Marshal(job{Grid: g, Memory: 1 << 40})
	require.NoError(t, err)
	for _, row := range []struct {
		how, text, want string
		open            bool // the input stays open until the process has exited
	}{
		{"", string(long), "", false},
		{"hang", string(long), "", false},
		{"", ``, "got no valid request: EOF", false},
		{"", `nil`, "got no valid request: invalid character", false},
		{"", `{}`, `{"end":{}}`, true},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], Command)
		cmd.Env = []string{misbehave + "=" + row.how}
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		var out strings.Builder
		cmd.Stdout = &out
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, row.text)
		require.NoError(t, err)
		if !row.open {
			require.NoError(t, in.Close())
		}
		_ = cmd.Wait() // the time limit of the test is the deadline
		assert.Contains(t, out.String(), row.want)
	}
}

func TestSimulationsAreDisabled(t *testing.T) {
	d := New(Options{})
	_, err := d.StartSimulation("ada", "ada", small())
	assert.ErrorIs(t, err, api.ErrUnavailable)
	assert.ErrorContains(t, err, "whatif.cpus")
	l := d.Simulations()
	assert.False(t, l.Available)
	assert.Contains(t, l.Message, "whatif.cpus")
}

// Invalid requests and profiles are refused. Packages api and study test their limits.
func TestStartRefusesInvalidRequests(t *testing.T) {
	d := New(Options{CPUs: 1})
	for want, r := range map[string]api.SimulationRequest{
		"levels: 0 is not allowed: 1 to 10000":                                  {Levels: api.LevelsOf(0)},
		`profile: "tpu" is not allowed: one of h100-tp2, h100-tp4, h200-tp1`:    {Profile: new("tpu")},
		`modes: "unknown" is not allowed: one of kv, round_robin, least_loaded`: {Modes: []api.Mode{api.ModeUnknown}},
	} {
		_, err := d.StartSimulation("ada", "ada", r)
		assert.EqualError(t, err, want)
	}
	_, err := d.StartSimulation("ada", "ada", api.SimulationRequest{Levels: api.LevelsOf(10000, 9999, 1)})
	assert.ErrorContains(t, err, "= 240000 is not allowed: at most 150000: ask for lower or fewer levels")
	assert.Empty(t, d.Simulations().Simulations)
}

// Notes name a profile that was not fitted, and batches larger than its own.
func TestNotes(t *testing.T) {
	d := New(Options{CPUs: 1})
	r := small()
	r.MaxBatchSize, r.Speculation = new(128), new(api.SpeculationEagle3)
	s := ask(t, d, "ada", r)
	assert.False(t, s.Calibrated)
	require.Len(t, s.Notes, 3)
	assert.Equal(t, "Not calibrated: the times are not based on measurements of this profile with speculation eagle3. "+
		sim.H200().Speculation[api.SpeculationEagle3].Basis, s.Notes[1])
	assert.Contains(t, s.Notes[2], "more than 64 sequences")
	r = small()
	r.Profile = new("h100-tp4")
	s = ask(t, d, "ada", r)
	assert.False(t, s.Calibrated)
	scaled, err := sim.LoadProfile("h100-tp4")
	require.NoError(t, err)
	assert.Contains(t, s.Notes[1], scaled.Basis)
}

// The list has the built-in profiles and those of the folder. One that cannot be used has its reason.
func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../profiles/h200-tp1.yaml")
	require.NoError(t, err)
	renamed := strings.Replace(string(text), "name: h200-tp1", "name: our-cluster", 1)
	for name, content := range map[string]string{
		"a.yaml": renamed, "b.yml": string(text), "c.yaml": "name: [", "d.yaml": strings.Repeat("#", maxFile+1),
		"e.txt": renamed,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	d := New(Options{CPUs: 1, Profiles: dir})
	l := d.Simulations()
	assert.True(t, l.Available)
	got := map[string]api.SimulationProfile{}
	for _, p := range l.Profiles {
		got[p.Source+" "+p.Name] = p
	}
	require.Len(t, got, 7)
	p := got["a.yaml our-cluster"]
	assert.Empty(t, p.Error)
	assert.Equal(t, "3 × H200, 1 GPU per worker", p.Title)
	assert.Equal(t, 64, *p.Defaults.MaxBatchSize)
	assert.Equal(t, "our-cluster", *p.Defaults.Profile)
	assert.Len(t, p.Speculations, 4)
	assert.NotEmpty(t, p.Presets)
	assert.Equal(t, "8 × H100, 2 GPUs per worker", got["built in h100-tp2"].Title)
	assert.Contains(t, got["b.yml h200-tp1"].Error, "a name that no other profile has; this one is built in")
	assert.Contains(t, got["c.yaml c"].Error, "a profile in YAML")
	assert.Contains(t, got["d.yaml d"].Error, "larger than 65536 bytes")

	r := small()
	r.Profile = new("our-cluster")
	assert.Equal(t, "our-cluster", *ask(t, d, "ada", r).Request.Profile)
	r.Profile = new("c")
	_, err = d.StartSimulation("ada", "ada", r)
	assert.ErrorContains(t, err, "profile: c is not allowed: a readable profile; c.yaml:")

	missing := New(Options{CPUs: 1, Profiles: filepath.Join(dir, "none")})
	assert.Empty(t, missing.Simulations().Message, "the folder is optional")
	file := New(Options{CPUs: 1, Profiles: filepath.Join(dir, "a.yaml")})
	assert.Contains(t, file.Simulations().Message, "not a directory")
}

// The offered limits are those of the API, or narrower ones of the simulation.
func TestLimits(t *testing.T) {
	all := limits()
	for path := range api.SimulationLimits {
		require.Contains(t, study.Limits, path)
		assert.LessOrEqual(t, all[path].Max, study.Limits[path].Max)
		assert.Less(t, all[path].Min, all[path].Max)
	}
	assert.Equal(t, api.SimulationLimit{Min: 0, Max: 1000, Above: true}, all["start_rate"])
}

// child returns the process id of a desk's child.
func child(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the children of a process are read from /proc, which only Linux has")
	}
	all := children(t)
	require.Len(t, all, 1)
	return all[0]
}

func children(t *testing.T) (all []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			id, err := strconv.Atoi(field)
			require.NoError(t, err)
			all = append(all, id)
		}
	}
	return all
}

func exists(id int) error {
	_, err := os.Stat("/proc/" + strconv.Itoa(id))
	return err
}
