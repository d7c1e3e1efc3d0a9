//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

var simulations = []struct {
	name    string
	request study.Request
	within  time.Duration // the target on two cores; 0 means none
	memory  int64         // MB, the target
}{
	{name: "grid as recorded", within: 10 * time.Second, memory: 300},
	{name: "200 workers", request: study.Request{
		Workers: new(200), Levels: api.LevelsOf(12_000), Modes: []api.Mode{api.ModeKV}, Seeds: new(1), StartRate: new(600.),
	}},
}

// simulationTable runs each simulation in a process of its own, whose peak is the simulation's memory.
func simulationTable(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("\nSimulation: each run %v of virtual time, on %d cores.\n\n", closedloop.LevelDuration,
		runtime.GOMAXPROCS(0))
	fmt.Printf("%-18s %6s %14s %8s %8s %8s  %s\n", "simulation", "runs", "conversations", "time", "CPU", "memory",
		"to reach")
	for _, s := range simulations {
		g, err := s.request.Grid()
		if err != nil {
			return err
		}
		began := time.Now()
		cmd := exec.CommandContext(ctx, self, "simulate", s.name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", s.name, err, strings.TrimSpace(string(out)))
		}
		took := time.Since(began)
		levels := fmt.Sprint(g.Levels[0])
		if last := g.Levels[len(g.Levels)-1]; last != g.Levels[0] {
			levels += fmt.Sprintf(" to %v", last)
		}
		target := "reported"
		if s.within > 0 {
			target = fmt.Sprintf("≤ %.0f s on 2 cores, ≤ %d MB", s.within.Seconds(), s.memory)
		}
		peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		fmt.Printf("%-18s %6d %14s %6.1f s %6.1f s %5.0f MB  %s\n", s.name, g.Runs(), levels, took.Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), float64(peak)/1e6, target)
	}
	return nil
}

func simulate(ctx context.Context, name string) error {
	for _, s := range simulations {
		if s.name == name {
			g, err := s.request.Grid()
			if err != nil {
				return err
			}
			_, err = g.Run(ctx, runtime.GOMAXPROCS(0), nil)
			return err
		}
	}
	return fmt.Errorf("there is no simulation %q", name)
}
