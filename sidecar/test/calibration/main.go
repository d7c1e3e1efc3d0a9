// Command calibration writes docs/calibration.md: of each built-in profile, its
// constants with their sources and bounds, and how far it is from the recorded table of
// its deployment. What it simulates for that, it keeps in testdata/results.json, so that
// the text can be written again, and held against the committed one, without it.
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
	judgeSeeds = 2  // runs of every row and change of a constant, for what the table determines
)

// results are all that took computing.
type results struct {
	Profiles []profileResults `json:"profiles"`
}

// profileResults are those of one profile. Seconds, shares and tokens a second.
type profileResults struct {
	Name      string               `json:"name"`
	Hash      string               `json:"hash"` // of the profile that they were computed with
	Rows      []rowResults         `json:"rows"` // none without a recorded table
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
	Half   float64          `json:"half"` // of the 95 % interval, with all other constants free; 0: it is wider than the bounds
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := write(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "calibration:", err)
		os.Exit(1)
	}
}

// write computes everything, at the top of the repository.
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

// profiles in the order of the document.
var profiles = []string{"h200-tp1", "h100-tp2", "h100-tp4"}

// recordedOf is the built-in table of a profile's deployment; false without one.
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
		out.Rows = append(out.Rows, rowResults{r.Recorded.Concurrency, r.Recorded.Mode, round(s.TTFT50), round(s.TTFT95), round(s.TPOT50), round(s.TokensPerSecond), round(s.Hit)})
	}
	judged, err := calibrate.Assess(ctx, calibrate.Options{Start: p, Baselines: []api.Baseline{baseline.WithIntervals(b)}, Seeds: judgeSeeds, OnProgress: progress()})
	var refused *api.FieldError
	switch {
	case errors.As(err, &refused): // the table does not have what a fit needs
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

// round keeps five digits that count: enough for any sentence, and few enough that the
// file is the same on every machine.
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

// progress writes a line a second.
func progress() func(calibrate.Progress) {
	said := time.Now()
	return func(p calibrate.Progress) {
		if time.Since(said) >= time.Second || p.Done == p.Runs {
			said = time.Now()
			fmt.Printf("%s: %d of %d runs\n", p.Phase, p.Done, p.Runs)
		}
	}
}

// read gives what was kept.
func read(file string) (all results, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return all, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return all, d.Decode(&all)
}

// beside puts the kept figures beside the recorded rows.
func (r *profileResults) beside(b api.Baseline) (rows []calibrate.Row) {
	for _, kept := range r.Rows {
		i := slices.IndexFunc(b.Rows, func(row api.BaselineRow) bool { return row.Concurrency == kept.Concurrency && row.Mode == kept.Mode })
		if i < 0 {
			continue
		}
		rows = append(rows, calibrate.Row{Baseline: b.Name, Recorded: b.Rows[i], Simulated: closedloop.Figures{
			TTFT50: kept.TTFT50, TTFT95: kept.TTFT95, TPOT50: kept.TPOT50, TokensPerSecond: kept.TokensPerSecond, Hit: kept.Hit,
		}})
	}
	return rows
}
