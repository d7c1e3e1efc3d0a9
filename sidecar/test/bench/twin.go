//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kvbooth/sidecar/api"
)

// laneStreams is the default number of conversations of each lane.
const laneStreams = 180

// mostOfTwo is the largest allowed cost of two lanes, as a multiple of one.
const mostOfTwo = 2.1

// laneCost is the cost of the load generator's process in a window.
type laneCost struct {
	cpu    float64 // of one core
	memory int64   // bytes, the peak
	chunks int     // received
}

// twinTable measures the load generator with one lane and with two, each with a server of its own.
func twinTable(ctx context.Context, streams int) error {
	loadgen, err := filepath.Abs("bin/loadgen")
	if err != nil {
		return err
	}
	fmt.Printf(
		"\nOne lane and two, %d streams each, every lane against a server of its own, %v after all conversations have "+
			"begun.\n\n",
		streams, window)
	var all [2]laneCost
	for i := range all {
		if all[i], err = measureLanes(ctx, loadgen, i+1, streams); err != nil {
			return fmt.Errorf("%d lanes: %w", i+1, err)
		}
		fmt.Printf("%d lane(s): %.1f %% of one core, %.1f MB, %d chunks\n", i+1, 100*all[i].cpu, float64(all[i].memory)/1e6,
			all[i].chunks)
	}
	cpu, memory := all[1].cpu/all[0].cpu, float64(all[1].memory)/float64(all[0].memory)
	fmt.Printf("Two cost %.2f times the CPU and %.2f times the memory of one, with %.2f times the chunks. To reach: "+
		"at most %.1f times.\n",
		cpu, memory, float64(all[1].chunks)/float64(all[0].chunks), mostOfTwo)
	if cpu > mostOfTwo || memory > mostOfTwo {
		return fmt.Errorf("two lanes cost more than %.1f times one", mostOfTwo)
	}
	return nil
}

func measureLanes(ctx context.Context, loadgen string, lanes, streams int) (cost laneCost, err error) {
	self, err := os.Executable()
	if err != nil {
		return cost, err
	}
	var servers []string
	for range lanes {
		var server *exec.Cmd
		var address string
		if server, address, err = startServer(ctx, self, false); err != nil {
			return cost, err
		}
		defer stopChild(server)
		servers = append(servers, address)
	}
	dir, err := os.MkdirTemp("", "kvbooth-bench-")
	if err != nil {
		return cost, err
	}
	defer os.RemoveAll(dir)
	var more []string
	if lanes > 1 {
		more = []string{"--twin-target-url=http://" + servers[1]}
	}
	cmd, control, err := startLoadgen(ctx, loadgen, servers[0], dir, streams, more...)
	if err != nil {
		return cost, err
	}
	defer stopChild(cmd)
	if err := settled(ctx, control); err != nil {
		return cost, err
	}
	return laneCosts(ctx, cmd.Process.Pid, control, lanes)
}

// laneCosts measures a load generator that has settled.
func laneCosts(ctx context.Context, pid int, control *api.Client, lanes int) (cost laneCost, err error) {
	before, _, err := usage(pid)
	if err != nil {
		return cost, err
	}
	began := time.Now()
	s, err := control.Snapshot(ctx)
	if err != nil {
		return cost, err
	}
	if len(s.Lanes) != lanes {
		return cost, fmt.Errorf("the load generator has %d lanes", len(s.Lanes))
	}
	if err := pause(ctx, window); err != nil {
		return cost, err
	}
	after, memory, err := usage(pid)
	if err != nil {
		return cost, err
	}
	cost.cpu, cost.memory = (after-before).Seconds()/time.Since(began).Seconds(), memory
	if s, err = control.Snapshot(ctx); err != nil {
		return cost, err
	}
	for _, l := range s.Lanes {
		if l.Totals.Errors > 0 {
			return cost, fmt.Errorf("lane %s had %d errors: %v", l.Name, l.Totals.Errors, l.Totals.ErrorsByClass)
		}
		cost.chunks += int(l.Window.OutputTokensPerSecond * window.Seconds()) // one token a chunk
	}
	return cost, nil
}
