//go:build booth && linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// project is the path of the module's root from this package.
const project = "../../.."

// realBooth is `booth demo` with all its real processes.
type realBooth struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err output.Buffer
	ended    chan struct{}
	http     *http.Client
	client   *api.Client

	loadgen, frontend, prometheus, grafana string // URLs; grafana is "" without Grafana
}

// startRealBooth builds and starts the programs on free ports. More are further flags.
func startRealBooth(t *testing.T, more ...string) *realBooth {
	t.Helper()
	bin := boothtest.Programs(t)
	b := &realBooth{
		t: t, ended: make(chan struct{}), http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	cache := t.TempDir()
	args := []string{
		"demo", "--speed=20", "--concurrency=30", "--cache-dir=" + cache, "--grafana=installed",
		"--provisioning=" + project + "/provisioning", "--port=30800",
	}
	for i, flag := range []string{"frontend", "worker", "gpu", "prometheus", "grafana"} {
		args = append(args, fmt.Sprintf("--%s-port=%d", flag, 30000+100*i))
	}
	b.cmd = exec.Command(filepath.Join(bin, "booth"), append(args, more...)...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	require.NoError(t, b.cmd.Start())
	go func() {
		_ = b.cmd.Wait()
		close(b.ended)
	}()
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		<-b.ended
		if t.Failed() {
			t.Logf("%s\n%s", &b.out, &b.err)
			for _, name := range []string{"cluster", "cluster-twin", "prometheus", "loadgen", "grafana"} {
				t.Logf("%s:\n%s", name, process.Tail(filepath.Join(cache, "demo", "logs", name+".log")))
			}
		}
	})
	b.eventually("it is up", func() (any, bool) { return b.out.String(), strings.Contains(b.out.String(), "Ctrl-C") })
	b.loadgen, b.frontend = b.at("load generator"), b.at("cluster frontend")
	b.prometheus, b.grafana = b.at("Prometheus"), b.at("Grafana")
	var err error
	b.client, err = api.NewClient(b.http, b.loadgen, "")
	require.NoError(t, err)
	return b
}

// at returns the URL in a row of the summary.
func (b *realBooth) at(name string) string {
	row := regexp.MustCompile(`(?m)^  ` + name + ` +(http://[0-9.:]+)`).FindStringSubmatch(b.out.String())
	if row == nil {
		return ""
	}
	return row[1]
}

// eventually waits for a condition while the booth runs.
func (b *realBooth) eventually(what string, condition func() (state any, ok bool)) {
	b.t.Helper()
	wait.Eventually(b.t, what, func() (any, bool) {
		select {
		case <-b.ended:
			b.t.Fatalf("the booth ended before: %s", what)
		default:
		}
		return condition()
	})
}

// lane returns the lane's snapshot, or false if it is not available.
func (b *realBooth) lane() (api.LaneSnapshot, bool) {
	s, err := b.client.Snapshot(b.t.Context())
	if err != nil || len(s.Lanes) == 0 {
		return api.LaneSnapshot{}, false
	}
	return s.Lanes[0], true
}

// becomes waits for a state of the lane, and returns the snapshot.
func (b *realBooth) becomes(what string, holds func(api.LaneSnapshot) bool) (lane api.LaneSnapshot) {
	b.t.Helper()
	b.eventually(what, func() (any, bool) {
		var ok bool
		lane, ok = b.lane()
		return lane.State, ok && holds(lane)
	})
	return lane
}

// get reads a JSON document.
func (b *realBooth) get(address string, into any) error {
	client := http.Client{Transport: b.http.Transport, Timeout: 5 * time.Second}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", address, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// query returns the values that an instant query finds, without NaN.
func (b *realBooth) query(query string) (values []float64) {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if b.get(b.prometheus+"/api/v1/query?query="+url.QueryEscape(query), &answer) != nil {
		return nil
	}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// answered waits until each query of the demo's dashboard finds data.
func (b *realBooth) answered() {
	b.t.Helper()
	text, err := os.ReadFile(project + "/dashboards/testdata/demo.promql")
	require.NoError(b.t, err)
	queries := 0
	for line := range strings.Lines(string(text)) {
		if query := strings.TrimSpace(line); query != "" && !strings.HasPrefix(query, "#") {
			queries++
			b.eventually("data for "+query, func() (any, bool) { return nil, len(b.query(query)) > 0 })
		}
	}
	require.Positive(b.t, queries)
}

// clusterMode returns the mode that the cluster itself reports, or "" without an answer.
func (b *realBooth) clusterMode() api.Mode {
	var state struct{ Mode api.Mode }
	if b.get(b.frontend+"/sim/v1/state", &state) != nil {
		return ""
	}
	return state.Mode
}

// parents returns the parent of each process of the machine, by process ID.
func parents(t *testing.T) map[int]int {
	t.Helper()
	processes, err := procfs.AllProcs()
	require.NoError(t, err)
	all := map[int]int{}
	for _, p := range processes {
		if stat, err := p.Stat(); err == nil { // an error means that the process has ended
			all[p.PID] = stat.PPID
		}
	}
	return all
}

// family returns the process IDs of all descendants of the booth.
func (b *realBooth) family() (pids []int) {
	all := parents(b.t)
	for pid := range all {
		for p := all[pid]; p > 1; p = all[p] {
			if p == b.cmd.Process.Pid {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// child returns the process ID of the booth's child whose command line matches, or 0.
func (b *realBooth) child(pattern string) int {
	expression := regexp.MustCompile(pattern)
	for pid, parent := range parents(b.t) {
		if parent != b.cmd.Process.Pid {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if expression.Match(bytes.ReplaceAll(line, []byte{0}, []byte{' '})) {
			return pid
		}
	}
	return 0
}

// kill kills a child with SIGKILL and waits until the booth has restarted it.
func (b *realBooth) kill(name, pattern string) {
	b.t.Helper()
	pid := b.child(pattern)
	require.NotZero(b.t, pid, name)
	backs := strings.Count(b.err.String(), name+" is running again")
	require.NoError(b.t, syscall.Kill(pid, syscall.SIGKILL))
	b.eventually(name+" is back", func() (any, bool) {
		return b.err.String(), strings.Count(b.err.String(), name+" is running again") > backs
	})
	again := b.child(pattern)
	assert.NotZero(b.t, again, name)
	assert.NotEqual(b.t, pid, again, name)
}

// TestWholeBooth runs in the gate: a booth of real processes runs load, follows a change of the concurrency and of the
// mode, finishes a trial, loses no reported turn when the load generator is killed, and leaves no process.
func TestWholeBooth(t *testing.T) {
	b := startRealBooth(t, "--grafana=off")
	l := b.becomes("30 turns end well", func(l api.LaneSnapshot) bool { return l.Totals.OK >= 30 })
	assert.Zero(t, l.Totals.Errors, l.Totals.ErrorsByClass)
	b.follow(12)
	b.switchMode()
	b.finishTrial()
	b.killLoadgen()
	b.end()
}

// TestBoothRecovers kills each process of a booth, Grafana included, and checks the findings of `booth doctor` and the
// data of the dashboards' queries.
func TestBoothRecovers(t *testing.T) {
	b := startRealBooth(t)
	b.becomes("turns end well", func(l api.LaneSnapshot) bool { return l.Totals.OK >= 30 })
	b.answered()
	l := b.becomes("the cluster is seen", func(l api.LaneSnapshot) bool {
		return l.Cluster.Available && len(l.Cluster.Workers) == 3 && len(l.Cluster.Workers[0].GPUs) == 1
	})
	assert.Equal(t, "prometheus", l.Cluster.Source)
	b.examined()
	b.switchMode()
	b.killOthers()
	b.killLoadgen()
	b.answered()
	b.end()
}

// follow sets the concurrency and waits until as many conversations are in progress.
func (b *realBooth) follow(concurrency int) {
	b.t.Helper()
	_, err := b.client.Patch(
		b.t.Context(),
		api.DefaultLane,
		api.WorkloadPatch{Level: new(api.AtConversations(concurrency))},
	)
	require.NoError(b.t, err)
	b.becomes("the concurrency is reached", func(l api.LaneSnapshot) bool {
		return l.State.Concurrency.Target.Conversations() == concurrency && l.State.Concurrency.Actual == concurrency
	})
}

// finishTrial runs a trial of a few seconds and compares its report with its spans.
func (b *realBooth) finishTrial() {
	t := b.t
	t.Helper()
	s := boothtest.Trial(t, b.client, 2*time.Minute, api.SweepRequest{
		Levels: api.LevelsOf(3), Modes: []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeRoundRobin}},
		Primary: new("output_tokens_per_second"), Smallest: new(.5), Seconds: new(1.), // mostly two blocks
	})
	require.NotEmpty(t, s.Spans)
	for _, span := range s.Spans {
		assert.Positive(t, span.Turns, "turns of span %d", span.Number)
	}
	var text bytes.Buffer
	require.NoError(t, b.client.SweepReport(t.Context(), &text, s.ID, api.ReportJSON))
	var report map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &report))
	assert.NotEmpty(t, report)
	b.becomes("the workload goes on as before the trial", func(l api.LaneSnapshot) bool {
		return l.State.Sweep == nil && l.State.Running && l.State.Concurrency.Target == api.AtConversations(12)
	})
}

// killLoadgen kills the load generator under load and compares the turns it had reported with those of the next one.
func (b *realBooth) killLoadgen() {
	t := b.t
	t.Helper()
	l, ok := b.lane()
	require.True(t, ok)
	step := l.State.Step.ID
	requests := func() (ids []string) {
		for _, turn := range boothtest.Turns(t, b.client, api.DefaultLane, step) {
			ids = append(ids, turn.RequestID)
		}
		return ids
	}
	var before []string
	b.eventually("turns of the step are stored", func() (any, bool) { // the step is stored before its first turn
		before = requests()
		return step, len(before) > 0
	})
	b.kill("the load generator", `/loadgen `)
	b.becomes("turns end well after the kill", func(l api.LaneSnapshot) bool {
		return l.State.Running && l.Totals.OK >= 30 && l.Totals.LostTurns == 0
	})
	assert.Subset(t, requests(), before, "no turn is lost")
	b.becomes("load generator and cluster agree on the mode", func(l api.LaneSnapshot) bool {
		return l.State.Mode == b.clusterMode()
	})
	b.eventually("nothing is reported lost", func() (any, bool) {
		lost := b.query("sum(loadgen_store_lost_turns_total)")
		return lost, slices.Equal(lost, []float64{0})
	})
}

// doctor runs `booth doctor` on the booth, and returns its report and its exit code.
func (b *realBooth) doctor(more ...string) (r doctor.Report, code int) {
	b.t.Helper()
	args := []string{"doctor", "--json", "--loadgen-url=" + b.loadgen}
	if b.grafana != "" {
		args = append(args, "--grafana-url="+b.grafana)
	}
	cmd := exec.CommandContext(b.t.Context(), b.cmd.Path, append(args, more...)...)
	text, err := cmd.Output()
	if cmd.ProcessState == nil {
		require.NoError(b.t, err)
	}
	require.NoError(b.t, json.Unmarshal(text, &r), "%s", text)
	return r, cmd.ProcessState.ExitCode()
}

// examined requires that the doctor finds no problem while the workload runs, and fails with wrong addresses. The app
// is a finding only if it was built.
func (b *realBooth) examined() {
	b.t.Helper()
	_, err := os.Stat(project + "/dist/module.js")
	app := b.grafana != "" && err == nil
	var r doctor.Report
	found := ""
	b.eventually("the doctor finds no problem", func() (any, bool) {
		var code, problems int
		r, code = b.doctor()
		found = ""
		for _, s := range r.Sections {
			for _, f := range s.Findings {
				found += string(f.Severity) + ": " + f.Found + "\n"
				if f.Severity == kubernetes.Problem && (app || s.Name != doctor.Grafana) {
					problems++
				}
			}
		}
		return found, problems == 0 && (code == success || !app)
	})
	assert.Greater(b.t, r.OK, 12, found)
	assert.Contains(b.t, found, "ok: 3 of 3 workers have registered")
	assert.Contains(b.t, found, "ok: the router knows the caches: predicted hit rate")
	assert.Contains(b.t, found, "ok: all 9 targets are up")
	_, code := b.doctor("--target-url=http://127.0.0.1:1", "--prometheus-url=http://127.0.0.1:1")
	assert.Equal(b.t, failure, code)
}

func (b *realBooth) switchMode() {
	b.t.Helper()
	_, err := b.client.SetMode(b.t.Context(), api.DefaultLane, api.ModeRequest{Mode: api.ModeRoundRobin})
	require.NoError(b.t, err)
	l := b.becomes("turns end well under round_robin", func(l api.LaneSnapshot) bool {
		return l.State.Mode == api.ModeRoundRobin && l.State.Running && l.State.ModeChange == nil && l.Totals.OK >= 30
	})
	assert.Zero(b.t, l.Totals.Errors, "a change of mode is no error: %v", l.Totals.ErrorsByClass)
	assert.Equal(b.t, api.ModeRoundRobin, b.clusterMode())
}

// killOthers kills every process but the load generator.
func (b *realBooth) killOthers() {
	t := b.t
	t.Helper()
	// Prometheus restarts too fast to be noticed as missing, so it is stopped first.
	pid := b.child(`/prometheus `)
	require.NotZero(t, pid, "Prometheus") // 0 would be this process's own group
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	b.becomes("the cluster's metrics are missing", func(l api.LaneSnapshot) bool { return !l.Cluster.Available })
	b.kill("Prometheus", `/prometheus `)
	b.becomes("the cluster's metrics are back", func(l api.LaneSnapshot) bool {
		return l.Cluster.Available && len(l.Cluster.Workers) == 3
	})
	assert.NotEmpty(t, b.query("loadgen_requests_total offset 5s"), "what was scraped before is not lost")

	b.kill("the simulated cluster", ` cluster `)
	assert.Equal(t, api.ModeRoundRobin, b.clusterMode(), "a restart keeps the mode")
	l, _ := b.lane()
	b.becomes("turns succeed again", func(now api.LaneSnapshot) bool { return now.Totals.OK >= l.Totals.OK+30 })
	if b.grafana != "" {
		b.kill("Grafana", `grafana server`)
		var health struct{ Database string }
		assert.NoError(t, b.get(b.grafana+"/api/health", &health))
	}
}

// end stops the booth as Ctrl-C does, and requires that all its processes end.
func (b *realBooth) end() {
	t := b.t
	t.Helper()
	family := b.family()
	assert.GreaterOrEqual(t, len(family), 3)
	require.NoError(t, b.cmd.Process.Signal(os.Interrupt))
	wait.Receive(t, "the end of the booth", b.ended)
	assert.Zero(t, b.cmd.ProcessState.ExitCode())
	for _, pid := range family {
		assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is left", pid)
	}
	for _, match := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(b.out.String(), -1) {
		listener, err := net.Listen("tcp", match)
		if assert.NoError(t, err, "the port is held") {
			listener.Close()
		}
	}
}
