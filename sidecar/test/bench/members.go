//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/known"
)

// membersStreams is the number of streams of a row with load, on one member or on several.
const membersStreams = 200

// manyStreams is the number of those at which the coordinator is to cost less than a quarter of a core.
const manyStreams = 1000

// membersTable measures the cost of distributing conversations to members, and the errors of the figures.
func membersTable(ctx context.Context) error {
	server, err := process.FindNATS("bin")
	if err != nil {
		fmt.Println("\nMembers: skipped:", err)
		return nil
	}
	loadgen, err := filepath.Abs("bin/loadgen")
	if err != nil {
		return err
	}
	fmt.Printf(
		"\nMembers, %v after all conversations have begun. CPU is of one core. Memory and open files are the most that "+
			"one of the load generators has, without the coordinator. Traffic is of the NATS server with all clients, in "+
			"and out.\n\n",
		window)
	fmt.Printf("%-34s %9s %9s %9s %9s %8s %10s %12s %8s %10s %9s %6s  %s\n",
		"streams", "TTFT p50", "TTFT p95", "ITL p95", "tokens/s", "turns/s", "load gens", "coordinator", "NATS",
		"traffic", "memory", "files", "verdict")
	for _, r := range []membersRow{
		{0, membersStreams},
		{0, manyStreams},
		{1, 0},
		{8, 0},
		{1, membersStreams},
		{2, membersStreams},
		{4, membersStreams},
		{1, manyStreams},
		{3, manyStreams},
	} {
		if err := measureMembers(ctx, loadgen, server, r); err != nil {
			return fmt.Errorf("%s: %w", r.name(), err)
		}
	}
	fmt.Println("A plain load generator is row 1. What a member costs without turns is row 4 by 8.")
	return nil
}

// membersRow has a number of members, 0 for a load generator without members, and a number of streams.
type membersRow struct{ members, streams int }

func (r membersRow) name() string {
	if r.members == 0 {
		return fmt.Sprintf("%d, without members", r.streams)
	}
	return fmt.Sprintf("%d, sent by %d members", r.streams, r.members)
}

// fleet holds the processes of a row.
type fleet struct {
	members           []*exec.Cmd
	coordinator, nats *exec.Cmd
	control           *api.Client
	monitor           string // URL of the NATS server's monitoring page
}

func measureMembers(ctx context.Context, loadgen, natsServer string, r membersRow) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	target, address, err := startServer(ctx, self, false)
	if err != nil {
		return err
	}
	defer stopChild(target)
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &fleet{}
	defer f.stop()
	if err := f.start(ctx, loadgen, natsServer, address, dir, r); err != nil {
		return err
	}
	if r.streams > 0 {
		err = settled(ctx, f.control)
	} else {
		err = f.idle(ctx, r.members)
	}
	if err != nil {
		return err
	}
	before, after, sent, err := f.measure(ctx, address)
	if err != nil {
		return err
	}
	errors, verdict, err := f.errors(ctx, r, sent)
	if err != nil {
		return err
	}
	share := func(a, b time.Duration) float64 { return 100 * (b - a).Seconds() / window.Seconds() }
	fmt.Printf("%-34s %s %9.0f %8.1f %8.1f %% %10.1f %% %6.1f %% %5.1f kB/s %6.1f MB %6d  %s\n", r.name(), errors,
		float64(len(sent.ITL))/window.Seconds(), float64(len(sent.TTFT))/window.Seconds(),
		share(before.loadgens, after.loadgens),
		share(before.coordinator, after.coordinator), share(before.nats, after.nats),
		float64(after.bytes-before.bytes)/1000/window.Seconds(),
		float64(after.memory)/1e6, after.files, verdict)
	return nil
}

// measure returns the costs before and after a window, and what the server sent in it.
func (f *fleet) measure(ctx context.Context, server string) (before, after fleetCost, sent known.Truth, err error) {
	truth := "http://" + server + "/truth"
	if err = get(ctx, truth, &sent); err != nil { // discards what was sent before
		return before, after, sent, err
	}
	if before, err = f.costs(ctx); err != nil {
		return before, after, sent, err
	}
	if err = pause(ctx, window); err != nil {
		return before, after, sent, err
	}
	if after, err = f.costs(ctx); err != nil {
		return before, after, sent, err
	}
	sent = known.Truth{}
	return before, after, sent, get(ctx, truth, &sent)
}

// errors describes the errors of the figures, with dashes for a row without streams.
func (f *fleet) errors(
	ctx context.Context, r membersRow, sent known.Truth,
) (text string, verdict api.Verdict, err error) {
	var m result
	if r.streams == 0 || r.streams == manyStreams { // of which the figures may be withheld on two cores
		return fmt.Sprintf("%9s %9s %9s", "—", "—", "—"), m.client.Verdict, nil
	}
	if err := pause(ctx, 2*time.Second); err != nil { // for the last report of each member
		return "", "", err
	}
	if err := m.compare(ctx, f.control, sent); err != nil {
		return "", "", err
	}
	return fmt.Sprintf("%6.2f ms %6.2f ms %6.2f ms", m.ttft50, m.ttft95, m.itl95), m.client.Verdict, nil
}

// start starts the load generator, and a NATS server and members if the row has them.
func (f *fleet) start(ctx context.Context, loadgen, natsServer, target, dir string, r membersRow) error {
	if r.members == 0 {
		cmd, control, err := startLoadgen(ctx, loadgen, target, dir, r.streams)
		f.members, f.control = []*exec.Cmd{cmd}, control
		return err
	}
	url, err := f.startNATS(ctx, natsServer)
	if err != nil {
		return err
	}
	for i := range r.members {
		cmd := exec.CommandContext(ctx, loadgen, "member", "--join="+url, fmt.Sprintf("--members-name=member-%d", i),
			"--log-level=error")
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		if err := cmd.Start(); err != nil {
			return err
		}
		f.members = append(f.members, cmd)
	}
	if r.streams > 0 {
		f.coordinator, f.control, err = startLoadgen(ctx, loadgen, target, dir, r.streams, "--members-nats-url="+url)
		return err
	}
	// One conversation with a think time longer than the row: all members but one have no conversation.
	f.coordinator, f.control, err = startLoadgen(ctx, loadgen, target, dir, 1, "--members-nats-url="+url,
		"--think-time=10m", "--max-tokens=1", "--output-tokens-mean=0", "--output-tokens-cv=0")
	return err
}

func (f *fleet) startNATS(ctx context.Context, program string) (url string, err error) {
	ports, err := process.FreePorts(18222, 2)
	if err != nil {
		return "", err
	}
	f.monitor = "http://" + process.Loopback(ports[1]) + "/varz"
	f.nats = exec.CommandContext(ctx, program, "-a", "127.0.0.1", "-p",
		strconv.Itoa(ports[0]), "-m", strconv.Itoa(ports[1]))
	return "nats://" + process.Loopback(ports[0]), f.nats.Start()
}

// idle waits until the members' orders are effective.
func (f *fleet) idle(ctx context.Context, members int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s, err := f.control.Status(ctx)
		if err == nil && s.Lanes[0].State.Concurrency.Actual == 1 {
			return pause(ctx, settling)
		}
		if p := pause(ctx, 200*time.Millisecond); p != nil {
			return fmt.Errorf("%d members have no order: %w", members, err)
		}
	}
}

func (f *fleet) stop() {
	for _, cmd := range append([]*exec.Cmd{f.coordinator}, append(f.members, f.nats)...) {
		if cmd != nil && cmd.Process != nil {
			stopChild(cmd)
		}
	}
}

// fleetCost is the use of the processes so far.
type fleetCost struct {
	loadgens, coordinator, nats time.Duration
	bytes                       int64 // received and sent by the NATS server
	memory                      int64 // bytes, the peak of the largest load generator
	files                       int   // open, the most of one load generator
}

func (f *fleet) costs(ctx context.Context) (c fleetCost, err error) {
	for _, cmd := range f.members {
		used, memory, err := usage(cmd.Process.Pid)
		if err != nil {
			return c, err
		}
		proc, err := procfs.NewProc(cmd.Process.Pid)
		if err != nil {
			return c, err
		}
		files, err := proc.FileDescriptorsLen()
		if err != nil {
			return c, err
		}
		c.loadgens, c.memory, c.files = c.loadgens+used, max(c.memory, memory), max(c.files, files)
	}
	if f.nats == nil {
		return c, nil
	}
	if c.coordinator, _, err = usage(f.coordinator.Process.Pid); err != nil {
		return c, err
	}
	if c.nats, _, err = usage(f.nats.Process.Pid); err != nil {
		return c, err
	}
	var figures struct {
		In  int64 `json:"in_bytes"`
		Out int64 `json:"out_bytes"`
	}
	err = get(ctx, f.monitor, &figures)
	c.bytes = figures.In + figures.Out
	return c, err
}
