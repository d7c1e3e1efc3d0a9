//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/process"
)

// warmUp is how long a booth runs before it is measured. After it, caches and the Prometheus head have grown, and the
// step has settled.
const warmUp = 90 * time.Second

// boothRow is a booth on the simulated cluster to measure for a span.
type boothRow struct {
	conversations int
	mode          api.Mode
	span          time.Duration
}

// boothRows returns the rows of the booth's table. Under kv at 180 conversations, a worker's batch overflows for some
// time and then does not: five minutes include both, one minute may not.
func boothRows() []boothRow {
	return []boothRow{
		{180, api.ModeKV, 5 * time.Minute},
		{180, api.ModeRoundRobin, 5 * time.Minute},
		{1000, api.ModeKV, time.Minute},
	}
}

// boothTable runs the whole booth without Grafana, and prints its processes' cost and its figures.
func boothTable(ctx context.Context) error {
	booth, err := filepath.Abs("bin/booth")
	if err != nil {
		return err
	}
	fmt.Printf(
		"\nThe whole booth on the simulated cluster, without Grafana, after a warm-up of %v. Memory is the sum of the "+
			"processes' peaks.\n\n",
		warmUp)
	for _, r := range boothRows() {
		if err := measureBooth(ctx, booth, r); err != nil {
			return fmt.Errorf("booth, %d conversations, %s: %w", r.conversations, r.mode, err)
		}
	}
	fmt.Println("To reach at 180: under 60 % of one core and under 400 MB; TTFT p95 above 2,000 ms under kv and " +
		"below 1,000 ms under round_robin, throughput higher under kv.")
	return nil
}

func measureBooth(ctx context.Context, booth string, r boothRow) error {
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd, control, err := startBooth(ctx, booth, dir, r)
	if err != nil {
		return err
	}
	defer stopChild(cmd)
	if err := settled(ctx, control); err != nil {
		return err
	}
	if err := pause(ctx, warmUp); err != nil {
		return err
	}
	before, err := costs(cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, r.span); err != nil {
		return err
	}
	after, err := costs(cmd.Process.Pid)
	if err != nil {
		return err
	}
	printCosts(r, before, after, time.Since(began))
	return printTurns(ctx, control, began)
}

func startBooth(ctx context.Context, booth, dir string, r boothRow) (*exec.Cmd, *api.Client, error) {
	ports, err := process.FreePorts(18088, 1)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, booth, "demo", "--grafana=off", "--cache-dir="+dir, "--mode="+string(r.mode),
		"--concurrency="+strconv.Itoa(r.conversations), "--port="+strconv.Itoa(ports[0]))
	cmd.Env = append(os.Environ(), "LOADGEN_TARGET_RPS=0",
		fmt.Sprintf("LOADGEN_START_RATE=%d", max(10, r.conversations/10)))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	client, err := api.NewClient(http.DefaultClient, "http://"+process.Loopback(ports[0]), "")
	return cmd, client, err
}

// cost is the use of one process so far.
type cost struct {
	name   string
	cpu    time.Duration
	memory int64 // bytes, the peak
}

// costs returns the costs of a booth and its children, by process ID.
func costs(booth int) (map[int]cost, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	all := make(map[int]cost)
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil || p.PID != booth && stat.PPID != booth {
			continue // ended, or not part of the booth
		}
		cpu, memory, err := usage(p.PID)
		if err != nil {
			return nil, err
		}
		all[p.PID] = cost{name: roleOf(p), cpu: cpu, memory: memory}
	}
	return all, nil
}

// roleOf names a process of the booth by its program and command.
func roleOf(p procfs.Proc) string {
	args, err := p.CmdLine()
	if err != nil || len(args) == 0 {
		return "?"
	}
	if name := filepath.Base(args[0]); name != "booth" || len(args) < 2 {
		return name
	}
	return "booth " + args[1]
}

func printCosts(r boothRow, before, after map[int]cost, span time.Duration) {
	var cpu time.Duration
	var memory int64
	var parts []string
	for pid, now := range after {
		used := now.cpu - before[pid].cpu
		cpu += used
		memory += now.memory
		parts = append(parts,
			fmt.Sprintf("%s %.1f %%, %.0f MB", now.name, 100*used.Seconds()/span.Seconds(), float64(now.memory)/1e6))
	}
	slices.Sort(parts)
	fmt.Printf("%d conversations, %s, %v: %.1f %% of one core, %.0f MB (%s)\n", r.conversations, r.mode, r.span,
		100*cpu.Seconds()/span.Seconds(), float64(memory)/1e6, strings.Join(parts, "; "))
}

// printTurns prints the figures of the turns that ended since a time, and the client's health.
func printTurns(ctx context.Context, control *api.Client, since time.Time) error {
	s, err := control.Snapshot(ctx)
	if err != nil {
		return err
	}
	var table bytes.Buffer
	if err := control.TurnsCSV(ctx, &table, api.DefaultLane, 0); err != nil {
		return err
	}
	turns, err := api.ReadTurns(&table)
	if err != nil {
		return err
	}
	var ttft, tpot []float64
	tokens := 0
	for _, t := range turns {
		if t.Status != api.TurnOK || t.Ended.Before(since) {
			continue
		}
		ttft, tpot = appendKnown(ttft, t.TTFT), appendKnown(tpot, t.TPOT)
		if t.OutputTokens != nil {
			tokens += *t.OutputTokens
		}
	}
	first, each := stats.Summarize(ttft), stats.Summarize(tpot)
	fmt.Printf("  TTFT %s / %s ms, TPOT %s / %s ms over %d turns, %.0f output tokens/s, %d errors; client: %s, %s\n\n",
		ms(first.P50), ms(first.P95), ms(each.P50), ms(each.P95), first.N,
		float64(tokens)/time.Since(since).Seconds(), s.Lanes[0].Totals.Errors, s.Client.Verdict, s.Client.Reason)
	return nil
}

func appendKnown(values []float64, value *float64) []float64 {
	if value == nil {
		return values
	}
	return append(values, *value)
}

// ms formats seconds as milliseconds, nil as a dash.
func ms(seconds *float64) string {
	if seconds == nil {
		return "—"
	}
	return strconv.FormatFloat(1000**seconds, 'f', 0, 64)
}
