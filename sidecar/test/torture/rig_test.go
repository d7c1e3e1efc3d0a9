//go:build torture && linux

package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/known"
)

const (
	conversations = 60
	token         = "a-token-for-the-operators"

	look = 200 * time.Millisecond // between two requests of the operator
)

// tokens is the timing of the target's regular answers.
var tokens = known.Timing{First: 100 * time.Millisecond, Gap: 25 * time.Millisecond}

// rig is a load generator under load, with a target of known token times.
type rig struct {
	*testing.T

	target  *known.Server
	hostile atomic.Pointer[func(net.Conn)] // answers every fourth request; nil: none
	asked   atomic.Int64
	every   atomic.Bool                      // hostile answers every request
	metrics atomic.Pointer[http.HandlerFunc] // the metrics page of the cluster

	part     *boothtest.Part
	address  string
	dir      string // of the stored data
	client   *api.Client
	cost     cost
	reported totals
}

// tmpfs is a command that mounts a disk of 32 MB.
const tmpfs = `mount -t tmpfs -o size=32m tmpfs "$0"`

// newRig starts both, configured for a fault.
func newRig(t *testing.T, f fault) *rig {
	loadgen := filepath.Join(boothtest.Programs(t), "loadgen")
	if f.jumps {
		loadgen = jumpingLoadgen(t)
	}
	r := &rig{T: t, target: known.New(tokens), dir: t.TempDir()}
	r.target.Answer = r.fault
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if answer := r.metrics.Load(); answer != nil {
			(*answer)(w, q)
		}
	}))
	t.Cleanup(page.Close)

	r.part = &boothtest.Part{Prints: boothtest.LoadgenPrints, Ready: "http://" + boothtest.AnyPort + "/healthz"}
	r.part.Command = process.Command{
		Name: "the load generator", Path: loadgen, Log: boothtest.Log(t, "loadgen"),
		Args: append([]string{
			"--target-url=" + serve(t, r.target), "--listen=" + boothtest.AnyPort, "--data-dir=" + r.dir,
			fmt.Sprintf("--concurrency=%d", conversations), "--start-rate=60", "--target-rps=0", "--start",
			"--output-tokens-mean=40", "--output-tokens-cv=.15", "--cluster-metrics-urls=" + page.URL,
		}, f.flags...),
		Env: append(process.Environment(), "LOADGEN_TOKEN="+token),
	}
	if f.disk != "" {
		if exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run() != nil {
			t.Skip("this user may make no mount namespace: run it as root")
		}
		c := &r.part.Command
		c.Args = append([]string{"--mount", "--propagation=private", "sh", "-c", f.disk + ` && exec "$@"`, r.dir, c.Path},
			c.Args...)
		var err error
		c.Path, err = exec.LookPath("unshare")
		require.NoError(t, err)
	}
	r.part.Run(t)
	r.address = r.part.Address()
	var err error
	r.client, err = api.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r.part.URL(), token)
	require.NoError(t, err)
	r.until("all conversations begin", func(s api.Status) bool {
		return s.Lanes[0].State.Concurrency.Actual >= conversations && s.Lanes[0].Totals.OK > conversations
	})
	return r
}

// serve runs a target until the test ends, and returns its URL.
func serve(t *testing.T, target *known.Server) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- target.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		assert.ErrorIs(t, <-served, context.Canceled)
	})
	return "http://" + l.Addr().String()
}

// jumpingLoadgen builds a load generator whose wall clock is in turn right, an hour ahead and an hour behind, for
// three seconds each, while its monotonic clock is right: as when the machine's time is set.
func jumpingLoadgen(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	source, dir := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go"), t.TempDir()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	const elapsed = "\tmono -= startNano\n"
	require.Equal(t, 1, strings.Count(string(text), elapsed), "this Go version has a different time.Now")
	const hours = "\tsec += [...]int64{0, 3600, -3600}[mono/3e9%3]\n"
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), elapsed, elapsed+hours, 1)), 0o600))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	program := filepath.Join(dir, "loadgen")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program,
		"kvbooth/sidecar/cmd/loadgen").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// fault answers every fourth request with the current fault.
func (r *rig) fault(c net.Conn) bool {
	hostile := r.hostile.Load()
	if hostile == nil || r.asked.Add(1)%4 != 0 && !r.every.Load() {
		return false
	}
	(*hostile)(c)
	return true
}

// status returns the API's status.
func (r *rig) status() (api.Status, error) {
	ctx, cancel := context.WithTimeout(r.Context(), wait.Limit)
	defer cancel()
	return r.client.Status(ctx)
}

// until waits for a status, and returns how long it took.
func (r *rig) until(what string, holds func(api.Status) bool) time.Duration {
	r.Helper()
	begun := time.Now()
	wait.Eventually(r, what, func() (any, bool) {
		s, err := r.status()
		if err != nil {
			return err, false
		}
		return fmt.Sprintf("%+v %+v", s.Lanes[0].Totals, s.Store), holds(s)
	})
	return time.Since(begun)
}

// cost is what was observed of the load generator during a fault.
type cost struct {
	slowest    time.Duration // answer to an operator
	unanswered int           // requests of the operator, after the process had started
	memory     uint64        // resident, bytes
	cpu        float64       // cores; 0 if the process was restarted
	lag        float64       // seconds
	lost       int           // turns that the API had reported as stored, but that are not
	ttft       float64       // error at p95, seconds; NaN with too few complete turns
	recovery   time.Duration // from the end of the fault until new turns end
}

// suffer measures during the fault, and then until new turns end.
func (r *rig) suffer(span time.Duration, inflict func(ctx context.Context, r *rig)) cost {
	r.Helper()
	r.target.Take()
	began, used := time.Now(), r.cpu()
	r.cost = cost{}
	ctx, cancel := context.WithTimeout(r.Context(), span)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inflict(ctx, r)
	}()
	r.watch(ctx, ended)
	r.cost.cpu = max(0, r.cpu()-used) / time.Since(began).Seconds()
	r.cost.ttft = r.wrong(began)
	var before int64
	if s, err := r.status(); err == nil {
		before = s.Store.StoredTurns
	}
	r.cost.recovery = r.until("new turns are stored", func(s api.Status) bool {
		return s.Store.StoredTurns > before
	})
	r.cost.lost = max(0, int(r.reported.sum())-len(r.stored()))
	return r.cost
}

// watch sends an operator's requests until the fault has ended.
func (r *rig) watch(ctx context.Context, ended <-chan struct{}) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for c := &r.cost; ; {
		began := time.Now()
		s, err := r.status()
		switch {
		case err == nil:
			c.slowest = max(c.slowest, time.Since(began))
			c.lag = max(c.lag, s.Client.LagSeconds)
			r.reported.add(s.Store.StoredTurns)
		case ctx.Err() == nil:
			c.unanswered++
		}
		if p, err := procfs.NewProc(r.part.PID()); err == nil {
			if status, err := p.NewStatus(); err == nil {
				c.memory = max(c.memory, status.VmRSS)
			}
		}
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

// totals adds up the reported numbers of stored turns, which begin at 0 in each process.
type totals struct {
	before int64 // of ended processes
	latest int64
}

func (t *totals) add(n int64) {
	if n < t.latest {
		t.before += t.latest
	}
	t.latest = n
}

func (t *totals) sum() int64 { return t.before + t.latest }

// wrong returns the error of the turns that began during the fault, compared with the target's times.
func (r *rig) wrong(since time.Time) float64 {
	sent := stats.Summarize(r.target.Take().TTFT)
	var ttft []float64
	for _, t := range r.stored() {
		if t.Status == api.TurnOK && t.Started.After(since) && t.TTFT != nil {
			ttft = append(ttft, *t.TTFT)
		}
	}
	got := stats.Summarize(ttft)
	if got.N < 20 || sent.N < 20 {
		return math.NaN()
	}
	return *got.P95 - *sent.P95
}

// stored returns the turns of lane main in the database.
func (r *rig) stored() []api.Turn {
	r.Helper()
	return boothtest.Turns(r.T, r.client, api.DefaultLane, 0)
}

// cpu returns the CPU time of the process in seconds, 0 without a process.
func (r *rig) cpu() float64 {
	p, err := procfs.NewProc(r.part.PID())
	if err != nil {
		return 0
	}
	stat, err := p.Stat()
	if err != nil {
		return 0
	}
	return stat.CPUTime()
}
