package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/renameio/v2"
	"github.com/schollz/progressbar/v3"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/calibrate"
	"kvbooth/sidecar/sim/closedloop"
)

// calibrateCmd is `booth calibrate`.
type calibrateCmd struct {
	From    []string `placeholder:"FILE" help:"Recorded results to fit to: a baseline exported by the load generator (CSV or JSON), or the name of a built-in one: ${baselines}. May be repeated, for example with two opening lengths; all are fitted together."`
	Profile string   `placeholder:"NAME" help:"Profile to start from: ${profiles}, or a file. Default: the built-in one for the baseline's GPU and tensor parallelism."`
	Fit     []string `placeholder:"CONSTANT" help:"Constants to fit, such as step.base; the others keep their start values. Default: all."`
	HoldOut []int    `placeholder:"LEVEL" help:"Concurrency levels to hold out of the fit, for validation. Default: every other one."`
	Seeds   int      `default:"3" help:"Simulated runs per row."`
	Suggest bool     `default:"true" negatable:"" help:"Suggest measurements that would determine the constants these results do not."`
	Name    string   `placeholder:"NAME" help:"Name of the fitted profile. Default: the name of --out, else of the baseline."`
	Out     string   `placeholder:"FILE" help:"File for the fitted profile, for use with --profile here and in demo, cluster and simulate."`
}

func (c *calibrateCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	o := calibrate.Options{
		Fit: c.Fit, HoldOut: c.HoldOut, Seeds: c.Seeds, Suggest: c.Suggest, Name: c.Name, Now: time.Now(),
	}
	if len(c.From) == 0 {
		return api.Require("from", "a file, or one of "+strings.Join(builtinBaselines(), ", "))
	}
	if c.Out != "" && filepath.Ext(c.Out) != ".yaml" {
		return api.Refuse("out", c.Out,
			"a file name ending in .yaml, so that --profile can distinguish it from a profile name")
	}
	if o.Name == "" && c.Out != "" {
		o.Name = strings.TrimSuffix(filepath.Base(c.Out), ".yaml")
	}
	for _, from := range c.From {
		b, err := readBaseline(from)
		if err != nil {
			return err
		}
		o.Baselines = append(o.Baselines, b)
	}
	var err error
	if o.Start, err = c.start(o.Baselines[0].Deployment); err != nil {
		return err
	}
	p := &phases{screen: newScreen(stdout, stderr)}
	o.OnProgress = p.show
	r, err := calibrate.Run(ctx, o)
	p.done()
	if err != nil {
		return err
	}
	report(stdout, o, r)
	if c.Out == "" {
		return nil
	}
	text, err := r.Profile.YAML()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(c.Out, text, 0o644); err != nil {
		return api.Refuse("out", c.Out, fmt.Sprintf("a writable file (%v)", err))
	}
	fmt.Fprintf(stdout, "\nProfile written to %s. Use it with: booth demo --profile %s\n", c.Out, c.Out)
	return nil
}

// readBaseline reads a baseline from a file, or returns a built-in one with the intervals that the comparison
// estimates. An error in a file names the file in front of the field.
func readBaseline(from string) (api.Baseline, error) {
	all := baseline.Builtin()
	if i := slices.IndexFunc(all, func(b api.Baseline) bool { return b.Name == from }); i >= 0 {
		return baseline.WithIntervals(all[i]), nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		allowed := fmt.Sprintf("a readable file (%v), or one of %s", err, strings.Join(builtinBaselines(), ", "))
		return api.Baseline{}, api.Refuse("from", from, allowed)
	}
	var b api.Baseline
	extension := filepath.Ext(from)
	name := strings.TrimSuffix(filepath.Base(from), extension)
	if strings.EqualFold(extension, ".json") {
		b, err = baseline.ReadJSON(bytes.NewReader(text), "", api.ModeState{})
	} else {
		b, err = baseline.ReadCSV(bytes.NewReader(text), name)
	}
	var field *api.FieldError
	if errors.As(err, &field) {
		err = api.Refuse(from+": "+field.Field, field.Value, field.Allowed)
	}
	return b, err
}

// start returns the profile from which the fit starts.
func (c *calibrateCmd) start(d api.Deployment) (sim.Profile, error) {
	if c.Profile != "" {
		return sim.OpenProfile(c.Profile)
	}
	for _, name := range sim.ProfileNames() {
		p, err := sim.LoadProfile(name)
		if err != nil {
			return p, err
		}
		sameGPU := d.GPU != "" && strings.Contains(strings.ToLower(d.GPU), strings.ToLower(p.GPU))
		if sameGPU && max(d.TensorParallel, 1) == p.TensorParallel {
			return p, nil
		}
	}
	return sim.Profile{}, api.Require("profile", fmt.Sprintf(
		"a profile to start from, since there is none for this baseline's GPU (%q) with %d GPUs per worker: "+
			"%s, or a file with the GPU's specifications",
		d.GPU, max(d.TensorParallel, 1), strings.Join(sim.ProfileNames(), ", ")))
}

// phases shows the progress of a fit: on a terminal in a bar, otherwise in one line per second.
type phases struct {
	screen *screen
	phase  string
	bar    *progressbar.ProgressBar // of the phase
	shown  time.Time                // time of the last line
}

func (p *phases) show(at calibrate.Progress) {
	if p.screen.terminal == nil {
		if at.Done == at.Runs || time.Since(p.shown) >= time.Second {
			p.shown = time.Now()
			p.screen.say("%s: %d of %d runs", at.Phase, at.Done, at.Runs)
		}
		return
	}
	if at.Phase != p.phase {
		p.done()
		p.phase, p.bar = at.Phase, p.screen.bar(at.Runs, at.Phase)
	}
	_ = p.bar.Set(at.Done)
}

func (p *phases) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// report writes the result of a fit.
func report(out io.Writer, o calibrate.Options, r *calibrate.Result) {
	var names []string
	for _, b := range o.Baselines {
		names = append(names, b.Name)
	}
	fmt.Fprintf(out, "%s fitted to %s: %d rounds, %d simulated runs of %.0f s.\n",
		o.Start.Name, strings.Join(names, " and "), r.Rounds, r.Runs, closedloop.LevelDuration.Seconds())
	for _, line := range r.Assumed {
		fmt.Fprintf(out, "Assumed: %s.\n", line)
	}
	fmt.Fprintln(out, "\nMean absolute errors")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "TTFT p50\tTTFT p95\ttokens/s\tTPOT p50\thit rate\t  at")
	for _, part := range []struct {
		errors calibrate.Errors
		name   string
	}{{r.InSample, "fitted to"}, {r.OutOfSample, "held out"}} {
		e := part.errors
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t  %s: %s\n", percent(e.TTFT50), percent(e.TTFT95),
			percent(e.Throughput), percent(e.TPOT), points(e.Hit), part.name, levelList(e.Levels))
	}
	w.Flush()
	reportRows(out, r.Rows)
	reportConstants(out, r.Constants)
	if r.Calibrated() {
		fmt.Fprintln(out, "\nThe profile is calibrated: its errors are within bounds, including at the held-out levels.")
		return
	}
	fmt.Fprintf(out, "\nThe profile is not marked as calibrated: mean errors must be at most %.0f %% "+
		"(TTFT p50, tokens/s and TPOT p50 together) and %.0f %% (TTFT p95), for both fitted and held-out levels.\n",
		100*calibrate.MaxError, 100*calibrate.MaxTail)
}

func reportRows(out io.Writer, rows []calibrate.Row) {
	fmt.Fprintln(out, "\nSimulated (recorded)")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "level\tmode\tTTFT p50, ms\tTTFT p95, ms\ttokens/s\tTPOT p50, ms\thit rate, %\t")
	for _, row := range rows {
		s, r, note := row.Simulated, row.Recorded, ""
		if row.Held {
			note = "held out"
		}
		fmt.Fprintf(w, "%v\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Level, r.Mode,
			beside(s.TTFT50, r.TTFT.P50, api.InMS), beside(s.TTFT95, r.TTFT.P95, api.InMS),
			beside(s.TokensPerSecond, r.OutputTokensPerSecond, whole), beside(s.TPOT50, r.TPOT.P50, api.InMS),
			beside(s.Hit, r.KVHitRatio, hundredfold), note)
	}
	w.Flush()
}

// beside formats a simulated figure with the recorded one.
func beside(simulated float64, recorded *float64, format func(float64) string) string {
	if recorded == nil {
		return format(simulated)
	}
	return format(simulated) + " (" + format(*recorded) + ")"
}

func whole(v float64) string { return api.Number(v, 0) }

// hundredfold formats a fraction in per cent without the unit.
func hundredfold(v float64) string { return api.Number(100*v, 1) }

func reportConstants(out io.Writer, list []calibrate.Constant) {
	fmt.Fprintln(out, "\nConstants, in milliseconds except for tokens, shares and decode steps")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "constant\tstart\tvalue\t± (95 %)\tbounds\tstatus\treason for bounds")
	for _, c := range list {
		status := string(c.Status)
		if c.AtBound {
			status += ", at its bound"
		}
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%s\t%.4g to %.4g\t%s\t%s\n",
			c.Name, c.Start, c.Value, known(c), c.Low, c.High, status, c.Why)
	}
	w.Flush()
	for _, c := range list {
		if c.Status != calibrate.NotDetermined {
			continue
		}
		text := "kept at its start value"
		switch {
		case c.Combination == c.Name:
			text = fmt.Sprintf("these results determine it only to ± %.0f %%", 196*c.CombinationError/c.Value)
		case c.Combination != "":
			text = fmt.Sprintf("these results determine only %s = %.4g ± %.2g",
				c.Combination, c.CombinationValue, 1.96*c.CombinationError)
		case c.Value != c.Start:
			text = "varied within its bounds"
		}
		if c.Remedy != "" {
			text += "; " + c.Remedy
		}
		fmt.Fprintf(out, "%s is undetermined: %s.\n", c.Name, text)
	}
}

// known formats the half-width of a constant's 95 % interval, or returns "" if the interval exceeds the bounds.
func known(c calibrate.Constant) string {
	half := 1.96 * c.Error
	if math.IsNaN(half) || half > c.High-c.Low {
		return ""
	}
	return fmt.Sprintf("%.2g", half)
}

func percent(v float64) string { return share(v, " %") }

func points(v float64) string { return share(v, " points") }

// share formats a fraction in per cent or points.
func share(v float64, unit string) string {
	if math.IsNaN(v) {
		return "–"
	}
	return api.Number(100*v, 1) + unit
}

func levelList(levels []int) string {
	if len(levels) == 0 {
		return "no levels"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(levels), " ", ", "), "[]")
}
