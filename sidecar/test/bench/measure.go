//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/known"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// row is one line of the table.
type row struct {
	streams   int
	burners   int  // processes that compete with the load generator for its one core
	plain     bool // the plain loop in place of the load generator
	simulates bool // the load generator computes a what-if simulation on its one core
	dynamo    bool // the server reports what Dynamo reports
	shadow    bool // the load generator's shadow follows that server
}

func (r row) name() string {
	switch {
	case r.plain:
		return fmt.Sprintf("%d, plain loop", r.streams)
	case r.burners > 0:
		return fmt.Sprintf("%d, starved by %d", r.streams, r.burners)
	case r.shadow:
		return fmt.Sprintf("%d, shadow", r.streams)
	case r.dynamo:
		return fmt.Sprintf("%d, no shadow", r.streams)
	case r.simulates:
		return fmt.Sprintf("%d, simulates too", r.streams)
	}
	return fmt.Sprint(r.streams)
}

// result is what one row measured. Errors are in milliseconds.
type result struct {
	ttft50, ttft95, itl95 float64
	perCPU                float64
	memory                int64      // bytes, the peak
	bound                 [3]float64 // of the three errors
	client                api.ClientHealth
}

// misjudged reports whether an error is larger than its bound.
func (m result) misjudged() bool {
	for i, e := range []float64{m.ttft50, m.ttft95, m.itl95} {
		if math.Abs(e) > m.bound[i] {
			return true
		}
	}
	return false
}

func (m result) line(r row) string {
	if r.plain {
		return fmt.Sprintf("%-24s %9s %9s %9s %12.0f %5.1f MB %8s", r.name(), "—", "—", "—", m.perCPU,
			float64(m.memory)/1e6, "—")
	}
	note := ""
	if m.misjudged() {
		note = "  ← an error is beyond its bound"
	}
	return fmt.Sprintf("%-24s %6.2f ms %6.2f ms %6.2f ms %12.0f %5.1f MB %5.2f ms  %s, bounds %.2f, %.2f, %.2f%s",
		r.name(), m.ttft50, m.ttft95, m.itl95, m.perCPU, float64(m.memory)/1e6,
		1000*m.client.LagSeconds, m.client.Verdict, m.bound[0], m.bound[1], m.bound[2], note)
}

// measure runs one row from the start of its processes to their end.
func measure(ctx context.Context, loadgen string, r row) (m result, failed error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	server, address, err := startServer(ctx, self, r.dynamo)
	if err != nil {
		return result{}, err
	}
	defer stopChild(server)
	if r.plain {
		return measurePlain(ctx, self, address, r.streams)
	}
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	client, control, err := startLoadgen(ctx, loadgen, address, dir, r.streams,
		fmt.Sprintf("--shadow-enabled=%t", !r.dynamo || r.shadow))
	if err != nil {
		return result{}, err
	}
	defer stopChild(client)
	if r.burners > 0 || r.simulates {
		if err := pin(client.Process.Pid, 0); err != nil {
			return result{}, err
		}
		defer starve(ctx, self, r.burners)()
	}
	if err := settled(ctx, control); err != nil {
		return result{}, err
	}
	if r.simulates {
		stop := startSimulations(ctx, control)
		defer func() { failed = errors.Join(failed, stop()) }()
	}
	m, sent, err := observe(ctx, client.Process.Pid, "http://"+address)
	if err != nil {
		return result{}, err
	}
	return m, m.compare(ctx, control, sent)
}

// measurePlain runs a row of the plain loop, of which only the cost is measured.
func measurePlain(ctx context.Context, self, address string, streams int) (result, error) {
	cmd := exec.CommandContext(ctx, self, "loop", "http://"+address, strconv.Itoa(streams))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	defer stopChild(cmd)
	if err := pause(ctx, begins(streams)+settling); err != nil {
		return result{}, err
	}
	m, _, err := observe(ctx, cmd.Process.Pid, "http://"+address)
	return m, err
}

func startServer(ctx context.Context, self string, dynamo bool) (*exec.Cmd, string, error) {
	args := []string{"serve"}
	if dynamo {
		args = append(args, "dynamo")
	}
	cmd := exec.CommandContext(ctx, self, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(address), err
}

func startLoadgen(
	ctx context.Context, binary, target, dir string, streams int, more ...string,
) (*exec.Cmd, *api.Client, error) {
	ports, err := process.FreePorts(18088, 1)
	if err != nil {
		return nil, nil, err
	}
	listen := process.Loopback(ports[0])
	cmd := exec.CommandContext(ctx, binary, append([]string{
		"--target-url=http://" + target, "--listen=" + listen, "--data-dir=" + dir,
		fmt.Sprintf("--start-rate=%d", startRate(streams)), "--target-rps=0", "--start", "--log-level=warn",
	}, more...)...)
	cmd.Env = append(os.Environ(), "LOADGEN_CONCURRENCY="+strconv.Itoa(streams), // which flags of a trace override
		fmt.Sprintf("LOADGEN_OUTPUT_TOKENS_MEAN=%d", meanTokens), "LOADGEN_OUTPUT_TOKENS_CV=.15")
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	client, err := api.NewClient(http.DefaultClient, "http://"+listen, "")
	return cmd, client, err
}

func stopChild(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
}

// starve starts n processes that use the load generator's core all the time, and returns a function that ends them.
func starve(ctx context.Context, self string, n int) (stop func()) {
	var all []*exec.Cmd
	for range n {
		cmd := exec.CommandContext(ctx, self, "burn", "0")
		if cmd.Start() == nil {
			all = append(all, cmd)
		}
	}
	return func() {
		for _, cmd := range all {
			stopChild(cmd)
		}
	}
}

// startSimulations makes the load generator compute simulations, one after the other. The returned function ends them
// and returns the error of a failed one.
func startSimulations(ctx context.Context, control *api.Client) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		for {
			r, err := control.StartSimulation(
				ctx,
				api.SimulationRequest{Levels: api.LevelsOf(6000), Seeds: new(12), Workers: new(200)},
			)
			for err == nil && !r.Progress.State.Ended() {
				if err = pause(ctx, time.Second); err == nil {
					r, err = control.Simulation(ctx, r.ID)
				}
			}
			switch {
			case ctx.Err() != nil:
				failed <- nil
				return
			case err == nil && r.Progress.State != api.SimulationDone:
				err = fmt.Errorf("a simulation %s: %s", r.Progress.State, r.Error)
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	return func() error { cancel(); return <-failed }
}

// burn uses one core until ctx ends.
func burn(ctx context.Context, cpu int) error {
	if err := pin(0, cpu); err != nil {
		return err
	}
	for ctx.Err() == nil {
		for range 1 << 20 {
		}
	}
	return nil
}

// pin binds every thread of a process to one core. The process ID 0 means this process.
func pin(pid, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if pid == 0 {
		pid = os.Getpid()
	}
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return err
	}
	for _, t := range threads {
		if err := unix.SchedSetaffinity(t.PID, &set); err != nil {
			return fmt.Errorf("binding process %d to core %d: %w", pid, cpu, err)
		}
	}
	return nil
}

// settling is how long a row runs after all its streams have begun, before it is measured.
const settling = 10 * time.Second

// settled waits until every conversation has begun and the step has settled.
func settled(ctx context.Context, control *api.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		s, err := control.Status(ctx)
		if err == nil && s.Lanes[0].State.Step.Settled != nil {
			return pause(ctx, settling)
		}
		if p := pause(ctx, 200*time.Millisecond); p != nil {
			return fmt.Errorf("the conversations did not all begin: %w", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// observe lets one window pass, and returns the process's cost and what the server sent.
func observe(ctx context.Context, pid int, server string) (m result, sent known.Truth, err error) {
	if err = get(ctx, server+"/truth", &sent); err != nil {
		return m, sent, err
	}
	before, _, err := usage(pid)
	if err != nil {
		return m, sent, err
	}
	if err = pause(ctx, window); err != nil {
		return m, sent, err
	}
	after, memory, err := usage(pid)
	if err != nil {
		return m, sent, err
	}
	sent = known.Truth{}
	if err = get(ctx, server+"/truth", &sent); err != nil {
		return m, sent, err
	}
	m.perCPU, m.memory = float64(len(sent.TTFT)+len(sent.ITL))/(after-before).Seconds(), memory
	return m, sent, nil
}

// compare sets the errors of the load generator's figures of the window against what the server sent.
func (m *result) compare(ctx context.Context, control *api.Client, sent known.Truth) error {
	s, err := control.Snapshot(ctx)
	if err != nil {
		return err
	}
	w := s.Lanes[0].Window.Metrics
	ttft, itl := stats.Summarize(sent.TTFT), stats.Summarize(sent.ITL)
	if w.TTFT.P50 == nil || ttft.P50 == nil || s.Lanes[0].Totals.Errors > 0 {
		return fmt.Errorf("nothing to compare: %d turns, %d errors %v", w.TTFT.N, s.Lanes[0].Totals.Errors,
			s.Lanes[0].Totals.ErrorsByClass)
	}
	m.ttft50, m.ttft95, m.itl95 = 1000*(*w.TTFT.P50-*ttft.P50), 1000*(*w.TTFT.P95-*ttft.P95), 1000*(*w.ITL.P95-*itl.P95)
	for i, e := range []*float64{w.TTFT.P50Error, w.TTFT.P95Error, w.ITL.P95Error} {
		if e != nil {
			m.bound[i] = 1000 * *e
		}
	}
	m.client = s.Client
	return nil
}

func get(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(v)
}

// usage returns the CPU time that a process has used and its peak of resident memory in bytes.
func usage(pid int) (cpu time.Duration, memory int64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, 0, err
	}
	status, err := p.NewStatus()
	return time.Duration(stat.CPUTime() * float64(time.Second)), int64(status.VmHWM), err
}
