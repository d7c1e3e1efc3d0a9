//go:build unix

// Command simulation writes docs/simulation.md and its charts: how to simulate, where the modes of the router cross at
// different scales, and what a simulation costs. It stores the computed figures in testdata/results.json, so that the
// document can be rendered and checked without simulating: with the argument "write".
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

// Paths from the repository's root.
const (
	resultsFile = "sidecar/test/simulation/testdata/results.json"
	docs        = "docs"
)

// What is simulated.
var (
	perWorker = []int{20, 30, 40, 50, 55, 60, 63} // conversations in progress per worker
	scales    = []int{3, 6, 10, 20, 50}           // workers
	costs     = []int{1, 3, 10, 50, 200}          // workers
)

const (
	seeds      = 3
	costLoad   = 60 // conversations in progress per worker
	startRatio = 10. / 3
)

// results are the stored figures.
type results struct {
	Profile string       `json:"profile"`
	Hash    string       `json:"hash"`   // of the profile and the workload at the time of the simulation
	Scales  []scale      `json:"scales"` // with the recorded number of openings
	Grown   []scale      `json:"grown"`  // with openings in proportion to the workers
	Costs   []costResult `json:"costs"`
	Cores   int          `json:"cores"` // of the machine on which the costs were measured
}

// scale has the results for one number of workers.
type scale struct {
	Workers int           `json:"workers"`
	Points  []study.Point `json:"points"`
}

// costResult is the cost of one run on one core.
type costResult struct {
	Workers    int     `json:"workers"`
	Tokens     int     `json:"tokens"` // simulated output tokens
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

// hash identifies a profile and the recorded workload, to detect outdated results.
func hash(p sim.Profile) string {
	text, _ := json.Marshal([]any{p, closedloop.Recorded()}) // cannot fail: there are only numbers and texts
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// compute simulates everything and stores the results.
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

// openingsFor returns the number of openings with as many per worker as in the recorded deployment.
func openingsFor(p sim.Profile, workers int) int {
	return int(math.Round(float64(closedloop.Recorded().Openings*workers) / float64(p.Workers)))
}

// atScale simulates the recorded workload with a number of workers and openings. Load and start rate are in
// proportion to the workers.
func atScale(ctx context.Context, p sim.Profile, workers, openings int, perWorker []int, seeds int) (scale, error) {
	began := time.Now()
	q := study.Request{
		Workers: &workers, Openings: &openings, Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}, Seeds: &seeds,
		StartRate: new(startRatio * float64(workers)),
	}
	for _, load := range perWorker {
		q.Levels = append(q.Levels, api.AtConversations(load*workers))
	}
	g, err := q.GridOn(p)
	if err != nil {
		return scale{}, err
	}
	points, err := g.Run(ctx, runtime.GOMAXPROCS(0), nil)
	fmt.Printf("%d workers, %d openings: %d runs in %v\n", workers, openings, g.Runs(),
		time.Since(began).Round(time.Second))
	return scale{Workers: workers, Points: points}, err
}

// cost measures one run under kv in CPU time of this process, which other processes hardly influence.
func cost(ctx context.Context, p sim.Profile, workers, load int, length time.Duration) (costResult, error) {
	o, w := sim.DefaultOptions(p), closedloop.Recorded()
	o.Profile.Workers, o.Seed = workers, 1
	w.Level, w.StartRate = api.AtConversations(load*workers), startRatio*float64(workers)
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

// processorTime returns the CPU time of this process so far.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
