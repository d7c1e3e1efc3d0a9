//go:build unix

// Command simulation writes docs/simulation.md and its figures: how to simulate, where
// the modes of the router cross at different scales, and what a simulation costs. What it
// computes for that, it keeps in testdata/results.json, so that the text can be written again, and
// held against the committed one, without it: with the argument "write".
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// From the repository's root.
const (
	resultsFile = "sidecar/test/simulation/testdata/results.json"
	docs        = "docs"
)

// What is computed.
var (
	perWorker = []int{20, 30, 40, 50, 55, 60, 63} // conversations in progress for each worker
	scales    = []int{3, 6, 10, 20, 50}           // workers
	costs     = []int{1, 3, 10, 50, 200}          // workers
)

const (
	seeds      = 3
	costLoad   = 60 // conversations in progress for each worker
	startRatio = 10. / 3
)

// results are all that took computing.
type results struct {
	Profile string       `json:"profile"`
	Hash    string       `json:"hash"`   // of the profile and the workload that they were computed with
	Scales  []scale      `json:"scales"` // with the openings as recorded
	Grown   []scale      `json:"grown"`  // with as many more openings as there are workers
	Costs   []costResult `json:"costs"`
	Cores   int          `json:"cores"` // of the machine that the costs were measured on
}

// scale is the workload at one number of workers.
type scale struct {
	Workers int           `json:"workers"`
	Points  []study.Point `json:"points"`
}

// costResult is what one run took on one core.
type costResult struct {
	Workers    int     `json:"workers"`
	Tokens     int     `json:"tokens"` // of answers that were simulated
	CPUSeconds float64 `json:"cpu_seconds"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "simulation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		if err := compute(ctx); err != nil {
			return err
		}
	} else if !slices.Equal(args, []string{"write"}) {
		return errors.New(`takes no argument, or "write" to write the text of what was computed before`)
	}
	r, err := readResults(resultsFile)
	if err != nil {
		return err
	}
	files, err := render(r)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(docs, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func readResults(path string) (results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return results{}, err
	}
	var r results
	return r, json.Unmarshal(text, &r)
}

// hash tells whether a profile and the recorded workload are still those that results
// were computed with.
func hash(p sim.Profile) string {
	text, _ := json.Marshal([]any{p, closedloop.Recorded()}) // cannot fail: it has numbers and texts alone
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// compute simulates everything, and keeps what came of it.
func compute(ctx context.Context) error {
	p := sim.H200()
	r := results{Profile: p.Name, Hash: hash(p), Cores: runtime.NumCPU()}
	for _, workers := range costs {
		c, err := cost(ctx, p, workers, costLoad, closedloop.LevelDuration)
		if err != nil {
			return err
		}
		fmt.Printf("%d workers: %d tokens in %.2f CPU seconds\n", workers, c.Tokens, c.CPUSeconds)
		r.Costs = append(r.Costs, c)
	}
	for _, workers := range scales {
		s, err := atScale(ctx, p, workers, closedloop.Recorded().Openings, perWorker, seeds)
		if err != nil {
			return err
		}
		r.Scales = append(r.Scales, s)
		if s, err = atScale(ctx, p, workers, openingsFor(p, workers), perWorker, seeds); err != nil {
			return err
		}
		r.Grown = append(r.Grown, s)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(text, '\n'), 0o644)
}

// openingsFor is as many openings for each worker as the recorded deployment had.
func openingsFor(p sim.Profile, workers int) int {
	return int(math.Round(float64(closedloop.Recorded().Openings*workers) / float64(p.Workers)))
}

// atScale simulates the recorded workload on so many workers and openings, with the same load for each of
// them at each level, and conversations that start as fast for each.
func atScale(ctx context.Context, p sim.Profile, workers, openings int, perWorker []int, seeds int) (scale, error) {
	began := time.Now()
	q := study.Request{Workers: &workers, Openings: &openings, Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}, Seeds: &seeds, StartRate: new(startRatio * float64(workers))}
	for _, load := range perWorker {
		q.Levels = append(q.Levels, load*workers)
	}
	g, err := q.GridOn(p)
	if err != nil {
		return scale{}, err
	}
	points, err := g.Run(ctx, runtime.GOMAXPROCS(0), nil)
	fmt.Printf("%d workers, %d openings: %d runs in %v\n", workers, openings, g.Runs(), time.Since(began).Round(time.Second))
	return scale{Workers: workers, Points: points}, err
}

// cost is what one run takes under kv, in time on processors of this process: other
// processes hardly change it.
func cost(ctx context.Context, p sim.Profile, workers, load int, length time.Duration) (costResult, error) {
	o, w := sim.DefaultOptions(p), closedloop.Recorded()
	o.Profile.Workers, o.Seed = workers, 1
	w.Concurrency, w.StartRate = load*workers, startRatio*float64(workers)
	l, err := closedloop.New(o, w)
	if err != nil {
		return costResult{}, err
	}
	before, err := processorTime()
	if err != nil {
		return costResult{}, err
	}
	if err := errors.Join(l.Run(length), ctx.Err()); err != nil {
		return costResult{}, err
	}
	after, err := processorTime()
	c := costResult{Workers: workers, CPUSeconds: (after - before).Seconds()}
	for _, s := range l.Seconds() {
		c.Tokens += s.Tokens
	}
	return c, err
}

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// Conversations are those in progress at a load for each worker.
func (c costResult) Conversations(load int) int { return load * c.Workers }
