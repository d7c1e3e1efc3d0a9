// Command calibration writes docs/calibration.md: the constants of each built-in profile with their sources and
// bounds, and the profile's errors against the recorded table of its deployment. It stores the simulated figures in
// testdata/results.json, so that a test can render the document without simulating.
package main

import (
	"bytes"
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
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/calibrate"
	"kvbooth/sidecar/sim/closedloop"
)

const (
	folder      = "sidecar/test/calibration"
	resultsFile = "testdata/results.json" // in the folder
	document    = "docs/calibration.md"   // in the repository

	errorSeeds = 12 // runs of every row
	judgeSeeds = 2  // runs of every row and change of a constant, to find what the table determines
)

// results are the stored figures.
type results struct {
	Profiles []profileResults `json:"profiles"`
}

// profileResults are the figures of one profile, in seconds, shares and tokens per second.
type profileResults struct {
	Name      string               `json:"name"`
	Hash      string               `json:"hash"` // of the profile at the time of the simulation
	Rows      []rowResults         `json:"rows"` // empty without a recorded table
	Constants map[string]knowledge `json:"constants,omitempty"`
}

// rowResults are the simulated figures of a recorded row.
type rowResults struct {
	Concurrency     int      `json:"concurrency"`
	Mode            api.Mode `json:"mode"`
	TTFT50          float64  `json:"ttft_p50"`
	TTFT95          float64  `json:"ttft_p95"`
	TPOT50          float64  `json:"tpot_p50"`
	TokensPerSecond float64  `json:"output_tokens_per_second"`
	Hit             float64  `json:"kv_hit_ratio"`
}

// knowledge is how well the recorded table determines a constant.
type knowledge struct {
	Status calibrate.Status `json:"status"`
	Half   float64          `json:"half"` // of the 95 % interval with all constants free; 0: wider than the bounds
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := write(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "calibration:", err)
		os.Exit(1)
	}
}

// write computes all figures and writes the results and the document. It must run in the repository's root.
func write(ctx context.Context) error {
	var all results
	for _, name := range profiles {
		one, err := compute(ctx, name)
		if err != nil {
			return err
		}
		all.Profiles = append(all.Profiles, one)
	}
	kept, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(resultsFile)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, resultsFile), append(kept, '\n'), 0o644); err != nil {
		return err
	}
	text, err := render(all)
	if err != nil {
		return err
	}
	return os.WriteFile(document, text, 0o644)
}

// profiles are the profiles in the document's order.
var profiles = []string{"h200-tp1", "h100-tp2", "h100-tp4"}

// recordedOf returns the built-in table of a profile's deployment, or false without one.
func recordedOf(p sim.Profile) (api.Baseline, bool) {
	all := baseline.Builtin()
	i := slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == p.Baseline })
	if i < 0 {
		return api.Baseline{}, false
	}
	return all[i], true
}

func compute(ctx context.Context, name string) (profileResults, error) {
	p, err := sim.LoadProfile(name)
	if err != nil {
		return profileResults{}, err
	}
	out := profileResults{Name: name, Hash: hash(p)}
	b, ok := recordedOf(p)
	if !ok {
		return out, nil
	}
	rows, _, err := calibrate.Check(ctx, p, b, errorSeeds, runtime.GOMAXPROCS(0), progress())
	if err != nil {
		return out, err
	}
	for _, r := range rows {
		s := r.Simulated
		out.Rows = append(out.Rows,
			rowResults{
				r.Recorded.Level.Conversations(), r.Recorded.Mode,
				round(s.TTFT50), round(s.TTFT95), round(s.TPOT50), round(s.TokensPerSecond), round(s.Hit),
			})
	}
	judged, err := calibrate.Assess(ctx,
		calibrate.Options{
			Start: p, Baselines: []api.Baseline{baseline.WithIntervals(b)}, Seeds: judgeSeeds, OnProgress: progress(),
		})
	var refused *api.FieldError
	switch {
	case errors.As(err, &refused): // the table has too few figures for a fit
		return out, nil
	case err != nil:
		return out, err
	}
	out.Constants = map[string]knowledge{}
	for _, c := range judged.Constants {
		k := knowledge{Status: c.Status}
		if half := 1.96 * c.Error; half < c.High-c.Low {
			k.Half = round(half)
		}
		out.Constants[c.Name] = k
	}
	return out, nil
}

// round keeps five significant digits: more than any sentence needs, and few enough that the file is the same on every
// machine.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-4)
	return math.Round(v/unit) * unit
}

func hash(p sim.Profile) string {
	text, err := p.YAML()
	if err != nil {
		panic(err) // the profile was read from YAML
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// progress returns a function that prints at most a line per second.
func progress() func(calibrate.Progress) {
	printed := time.Now()
	return func(p calibrate.Progress) {
		if time.Since(printed) >= time.Second || p.Done == p.Runs {
			printed = time.Now()
			fmt.Printf("%s: %d of %d runs\n", p.Phase, p.Done, p.Runs)
		}
	}
}

// read reads stored results.
func read(file string) (all results, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return all, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return all, d.Decode(&all)
}

// join returns the stored figures with the recorded rows.
func (r *profileResults) join(b api.Baseline) (rows []calibrate.Row) {
	for _, kept := range r.Rows {
		i := slices.IndexFunc(b.Rows,
			func(row api.BaselineRow) bool {
				return row.Level.Conversations() == kept.Concurrency && row.Mode == kept.Mode
			})
		if i < 0 {
			continue
		}
		rows = append(rows, calibrate.Row{Baseline: b.Name, Recorded: b.Rows[i], Simulated: closedloop.Figures{
			TTFT50: kept.TTFT50, TTFT95: kept.TTFT95, TPOT50: kept.TPOT50, TokensPerSecond: kept.TokensPerSecond, Hit: kept.Hit,
		}})
	}
	return rows
}
