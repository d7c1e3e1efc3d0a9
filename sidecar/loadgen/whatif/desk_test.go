package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/study"
)

const soon = 30 * time.Second // on a machine with much else to do

// running is a desk that computes until the end of the test; how says what becomes of
// its processes.
func running(t *testing.T, o Options, how string) *Desk {
	t.Helper()
	o.CPUs = max(o.CPUs, 1)
	d := New(o)
	d.environ = append(d.environ, misbehave+"="+how)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { d.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return d
}

// small is a question that is answered soon.
func small() api.SimulationRequest {
	return api.SimulationRequest{Levels: []int{20, 4}, Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}, Seeds: new(2)}
}

func ask(t *testing.T, d *Desk, who string, r api.SimulationRequest) api.SimulationResult {
	t.Helper()
	s, err := d.StartSimulation(who, who, r)
	require.NoError(t, err)
	return s
}

// until looks at a simulation until it is as wanted.
func until(t *testing.T, d *Desk, id string, wanted func(api.SimulationResult) bool) (r api.SimulationResult) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		r, err = d.Simulation(id)
		return err == nil && wanted(r)
	}, soon, 10*time.Millisecond, "%+v", &r)
	return r
}

func ended(r api.SimulationResult) bool { return r.Progress.State.Ended() }
func begun(r api.SimulationResult) bool { return len(r.Points) > 0 }

// What comes out of the process is what the study gives, whoever computes it.
func TestSimulation(t *testing.T) {
	d := running(t, Options{}, "")
	s := ask(t, d, "ada", small())
	assert.Equal(t, []int{4, 20}, s.Request.Levels)
	assert.Equal(t, 3, *s.Request.Workers, "as recorded")
	assert.Equal(t, 8, s.Runs)
	assert.True(t, s.Calibrated)
	assert.Equal(t, []string{"Simulated on the profile h200-tp1: none of these figures was measured."}, s.Notes)

	type heard struct {
		name string
		data any
	}
	var all []heard
	require.NoError(t, d.FollowSimulation(t.Context(), s.ID, func(name string, data any) error {
		all = append(all, heard{name, data})
		return nil
	}))
	last := all[len(all)-1]
	assert.Equal(t, "end", last.name)
	assert.Equal(t, api.SimulationDone, last.data.(api.SimulationEnd).State)
	latest := map[string]api.SimulationPoint{}
	for _, h := range all {
		if p, ok := h.data.(api.SimulationPoint); ok {
			latest[string(p.Mode)+strconv.Itoa(p.Concurrency)] = p
		}
	}

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
		assert.Equal(t, want, latest[string(p.Mode)+strconv.Itoa(p.Concurrency)], "the last that a follower heard")
		mean := p.Mean()
		assert.InDelta(t, mean.TTFT50, want.Figures.TTFTP50.Mean, 1e-9)
		low, high := p.Band(figures[0].of)
		assert.Equal(t, api.SimulationFigure{Mean: want.Figures.TTFTP50.Mean, Low: low, High: high}, *want.Figures.TTFTP50)
	}
	assert.Equal(t, api.SimulationProgress{State: api.SimulationDone, Done: 8, Of: 8}, r.Progress)
	assert.NotNil(t, r.Ended)
	assert.Equal(t, "simulated", r.Basis)

	list := d.Simulations()
	require.Len(t, list.Simulations, 1)
	assert.Equal(t, api.SimulationSummary{ID: s.ID, State: api.SimulationDone, By: "ada", Asked: s.Asked, Ended: r.Ended, Done: 8, Of: 8, Request: s.Request}, list.Simulations[0])
}

// What a process is told is all of the grid.
func TestJobKeepsTheGrid(t *testing.T) {
	g, err := study.Request{Openings: new(0), ThinkTimeSeconds: new(1.5), Temperature: new(.1), Speculation: new(api.SpeculationEagle3)}.Grid()
	require.NoError(t, err)
	text, err := json.Marshal(job{g, 7})
	require.NoError(t, err)
	var back job
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, job{g, 7}, back)
}

func TestCancel(t *testing.T) {
	d := running(t, Options{}, "hang")
	s := ask(t, d, "ada", small())
	until(t, d, s.ID, begun)
	process := child(t)
	assert.True(t, d.Ran(time.Now()), "it computes")
	r, err := d.CancelSimulation(s.ID)
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, r.Progress.State)
	assert.Equal(t, "it was cancelled", r.Error)
	assert.Len(t, r.Points, 1, "what is there stays")
	gone(t, process)
	require.Eventually(t, func() bool { return !d.Ran(time.Now()) }, soon, 10*time.Millisecond)
	assert.True(t, d.Ran(time.Now().Add(-time.Minute)))

	again, err := d.CancelSimulation(s.ID)
	require.NoError(t, err)
	assert.Equal(t, r, again)
	_, err = d.CancelSimulation("nobody's")
	assert.ErrorIs(t, err, api.ErrNotFound)
}

// Others wait; who asks again does not want the old answer any more.
func TestQueue(t *testing.T) {
	d := running(t, Options{}, "hang")
	first := ask(t, d, "ada", small())
	until(t, d, first.ID, begun)
	second := ask(t, d, "bob", small())
	assert.Equal(t, api.SimulationProgress{State: api.SimulationQueued, Ahead: 1, Of: 8}, second.Progress)
	third := ask(t, d, "ada", small())
	assert.Equal(t, 1, third.Progress.Ahead)
	assert.Equal(t, "the same user started a newer simulation", until(t, d, first.ID, ended).Error)
	until(t, d, second.ID, begun)
	_, err := d.CancelSimulation(third.ID) // which has not begun
	require.NoError(t, err)
	assert.Equal(t, api.SimulationCancelled, until(t, d, third.ID, ended).Progress.State)
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
	until(t, d, stays.ID, begun) // what has not ended is kept, however old it is
	_, err = d.Simulation(all[0].ID)
	assert.ErrorIs(t, err, api.ErrNotFound, "the oldest go")
}

func TestNobodyFollows(t *testing.T) {
	d := running(t, Options{}, "hang")
	s := ask(t, d, "ada", small())
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left, follows := make(chan error, 1), make(chan bool, 100)
	go func() {
		left <- d.FollowSimulation(ctx, s.ID, func(string, any) error { follows <- true; return nil })
	}()
	<-follows
	d.cancelUnread(time.Now().Add(time.Hour))
	assert.NotContains(t, d.state(s.ID), "cancelled", "it is followed")
	before := time.Now()
	leave()
	require.NoError(t, <-left)
	d.cancelUnread(before.Add(patience))
	assert.NotContains(t, d.state(s.ID), "cancelled", "it was followed just now")
	d.cancelUnread(time.Now().Add(patience + time.Second))
	assert.Equal(t, "cancelled: nobody was watching it any more", d.state(s.ID))
}

// state reads without counting as one who follows.
func (d *Desk) state(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, _ := d.find(id)
	if s.problem == "" {
		return string(s.state)
	}
	return string(s.state) + ": " + s.problem
}

func TestFollowerGoes(t *testing.T) {
	d := running(t, Options{}, "hang")
	s := ask(t, d, "ada", small())
	full := errors.New("the connection is gone")
	assert.Equal(t, full, d.FollowSimulation(t.Context(), s.ID, func(string, any) error { return full }))
	assert.ErrorIs(t, d.FollowSimulation(t.Context(), "x", nil), api.ErrNotFound)
}

func TestCrash(t *testing.T) {
	for how, want := range map[string]string{
		"crash":  "the simulation's process ended before it was done: exit status 2: panic: the simulated cluster burns",
		"silent": "the simulation's process ended before it was done",
	} {
		d := running(t, Options{}, how)
		r := until(t, d, ask(t, d, "ada", small()).ID, ended)
		assert.Equal(t, api.SimulationFailed, r.Progress.State)
		assert.Equal(t, want, r.Error)
	}
}

func TestMemory(t *testing.T) {
	d := running(t, Options{Memory: 1 << 20}, "")
	r := until(t, d, ask(t, d, "ada", small()).ID, ended)
	assert.Equal(t, api.SimulationFailed, r.Progress.State)
	assert.Contains(t, r.Error, "it needs more than the 1 MiB that a simulation may use: reduce the levels")
}

// The end of a desk leaves no process behind, and those who wait hear of it.
func TestEnd(t *testing.T) {
	d := New(Options{CPUs: 1})
	d.environ = append(d.environ, misbehave+"=hang")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { d.Run(ctx) })
	s, waits := ask(t, d, "ada", small()), ask(t, d, "bob", small())
	until(t, d, s.ID, begun)
	process := child(t)
	cancel()
	wg.Wait()
	assert.Error(t, exists(process), "it has been waited for")
	for _, id := range []string{s.ID, waits.ID} {
		assert.Equal(t, "cancelled: the load generator is shutting down", d.state(id))
	}
}

// Where the load generator is killed, its process ends by itself.
func TestParentIsGone(t *testing.T) {
	for _, how := range []string{"", "hang"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], Command)
		cmd.Env = []string{misbehave + "=" + how}
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		g, err := study.Request{Levels: []int{10_000}, Seeds: new(12)}.Grid()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.NoError(t, json.NewEncoder(in).Encode(job{g, 1 << 40}))
		require.NoError(t, in.Close())
		_ = cmd.Wait() // the test's own time-out is the deadline
	}
}

func TestWorkIsTold(t *testing.T) {
	for text, want := range map[string]string{
		``:    "got no valid request: EOF",
		`nil`: "got no valid request: invalid character",
		`{}`:  `{"end":{}}`,
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], Command)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		var out strings.Builder
		cmd.Stdout = &out
		require.NoError(t, cmd.Start())
		_, err = in.Write([]byte(text))
		require.NoError(t, err)
		if text != `{}` {
			require.NoError(t, in.Close())
		}
		_ = cmd.Wait()
		assert.Contains(t, out.String(), want)
	}
}

func TestTurnedOff(t *testing.T) {
	d := New(Options{})
	_, err := d.StartSimulation("ada", "ada", small())
	assert.ErrorIs(t, err, api.ErrUnavailable)
	assert.ErrorContains(t, err, "whatif.cpus")
	l := d.Simulations()
	assert.False(t, l.Available)
	assert.Contains(t, l.Message, "whatif.cpus")
}

func TestStartRefuses(t *testing.T) {
	d := New(Options{CPUs: 1})
	for want, r := range map[string]api.SimulationRequest{
		"levels: 0 is not allowed: 1 to 10000": {Levels: []int{0}},
		"levels: 20000 conversations over all levels × 2 modes × 6 seeds = 240000 is not allowed: at most 150000: ask for lower or fewer levels, or for fewer seeds": {Levels: []int{10000, 9999, 1}},
		`profile: "tpu" is not allowed: one of h100-tp2, h100-tp4, h200-tp1`:                                                                                         {Profile: new("tpu")},
		`modes: "unknown" is not allowed: one of kv, round_robin, least_loaded`:                                                                                      {Modes: []api.Mode{api.ModeUnknown}},
		"turns.max: 51 is not allowed: 1 to 50":                                                                                                                      {Turns: &api.Range{Min: 1, Max: 51}},
	} {
		_, err := d.StartSimulation("ada", "ada", r)
		assert.EqualError(t, err, want)
	}
	assert.Empty(t, d.Simulations().Simulations)
}

// Figures of a profile that nobody fitted, and of larger batches than it has, say so.
func TestNotes(t *testing.T) {
	d := New(Options{CPUs: 1})
	r := small()
	r.MaxBatchSize, r.Speculation = new(128), new(api.SpeculationEagle3)
	s := ask(t, d, "ada", r)
	assert.False(t, s.Calibrated)
	require.Len(t, s.Notes, 3)
	recorded := sim.H200()
	assert.Equal(t, "Not calibrated: the times are not based on measurements of this profile with speculation eagle3. "+recorded.Speculation[api.SpeculationEagle3].Basis, s.Notes[1])
	assert.Contains(t, s.Notes[2], "more than 64 sequences")
	r = small()
	r.Profile = new("h100-tp4")
	s = ask(t, d, "ada", r)
	assert.False(t, s.Calibrated)
	scaled, err := sim.LoadProfile("h100-tp4")
	require.NoError(t, err)
	assert.Contains(t, s.Notes[1], scaled.Basis)
}

func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../sim/profiles/h200-tp1.yaml")
	require.NoError(t, err)
	write := func(name string, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	twin := strings.Replace(string(text), "name: h200-tp1", "name: our-cluster", 1)
	write("a.yaml", twin)
	write("b.yml", string(text))
	write("c.yaml", "name: [")
	write("d.yaml", strings.Repeat("#", maxFile+1))
	write("e.txt", twin)
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
	assert.Equal(t, "8 × H100, 2 GPUs per worker", got["built in h100-tp2"].Title)
	for _, preset := range p.Presets {
		assert.NotEmpty(t, preset.Description, preset.Name)
	}
	assert.Contains(t, got["b.yml h200-tp1"].Error, "a name that no other profile has; this one is built in")
	assert.Contains(t, got["c.yaml c"].Error, "a profile in YAML")
	assert.Contains(t, got["d.yaml d"].Error, "larger than 65536 bytes")

	r := small()
	r.Profile = new("our-cluster")
	assert.Equal(t, "our-cluster", *ask(t, d, "ada", r).Request.Profile)
	r.Profile = new("c")
	_, err = d.StartSimulation("ada", "ada", r)
	assert.ErrorContains(t, err, "profile: c is not allowed: a readable profile; c.yaml:")

	assert.Empty(t, New(Options{CPUs: 1, Profiles: filepath.Join(dir, "none")}).Simulations().Message, "there need not be any")
	assert.Contains(t, New(Options{CPUs: 1, Profiles: filepath.Join(dir, "a.yaml")}).Simulations().Message, "not a directory")
}

// The limits of the API are offered as far as the simulation has no narrower ones.
func TestLimits(t *testing.T) {
	all := limits()
	for path := range api.SimulationLimits {
		require.Contains(t, study.Limits, path)
		assert.LessOrEqual(t, all[path].Max, study.Limits[path].Max)
		assert.Less(t, all[path].Min, all[path].Max)
	}
	assert.Equal(t, api.SimulationLimit{Min: 0, Max: 1000, Above: true}, all["start_rate"])
}

// child is the process of a desk of this test.
func child(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process's children so easily")
	}
	return childNow(t)
}

// childNow is child on Linux, with a test that may look again.
func childNow(t require.TestingT) int {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	var all []string
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		all = append(all, strings.Fields(string(text))...)
	}
	require.Len(t, all, 1)
	id, err := strconv.Atoi(all[0])
	require.NoError(t, err)
	return id
}

func exists(id int) error {
	_, err := os.Stat("/proc/" + strconv.Itoa(id))
	return err
}

func gone(t *testing.T, id int) {
	t.Helper()
	require.Eventually(t, func() bool { return exists(id) != nil }, soon, 10*time.Millisecond)
}
