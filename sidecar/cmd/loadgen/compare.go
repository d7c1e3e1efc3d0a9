package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/sweep"
)

// compare prints the report on two results, and writes it into the files of --output. The
// error is a notStarted for what is no result, or cannot be compared.
func compare(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	found := &results{dir: conf.DataDir, settings: conf.Settings(), all: map[string]api.Baseline{}}
	var sides [2]api.ReportSide
	for i, s := range []config.Side{conf.Compare.A, conf.Compare.B} {
		field := "ab"[i : i+1]
		if err := found.add(ctx, field, s); err != nil {
			return notStarted{err}
		}
		if b := found.all[field]; i > 0 && s.Name != conf.Compare.A.Name && b.Name == found.all["a"].Name {
			b.Name += " B" // another file of the same name
			found.all[field] = b
		}
		sides[i] = api.ReportSide{Baseline: field, Mode: s.Mode.Mode, Speculation: s.Mode.Speculation}
	}
	desk, err := sweep.Open(ctx, sweep.Options{Program: api.ProgramVersion(), Catalogue: found, Store: noSweeps{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	outputs, bad, err := report.OpenOutputs(conf.Output)
	if err != nil {
		return notStarted{api.Refuse("output", bad, fmt.Sprintf("%s that can be written; %v", conf.OutputFormats().Allowed(), err))}
	}
	defer outputs.Close()
	var text bytes.Buffer
	if err := desk.WriteReport(ctx, &text, sides[0], sides[1], conf.Compare.Levels, conf.Compare.Format); err != nil {
		return notStarted{err}
	}
	if _, err := text.WriteTo(stdout); err != nil {
		return err
	}
	return outputs.Write(func(w io.Writer, f api.ReportFormat) error {
		return desk.WriteReport(ctx, w, sides[0], sides[1], conf.Compare.Levels, f)
	})
}

// noSweeps is the store of a desk that only compares: it keeps nothing.
type noSweeps struct{ sweep.Store }

// Sweeps are none.
func (noSweeps) Sweeps(context.Context) ([]json.RawMessage, error) { return nil, nil }

// results are those that are compared, by the side that each is on. Two files may give
// their baselines the same name.
type results struct {
	sweep.Catalogue // which else nobody asks

	dir      string
	settings api.Settings
	all      map[string]api.Baseline
}

// Settings are those of the configuration.
func (r *results) Settings() api.Settings { return r.settings }

// Baseline is the result on a side.
func (r *results) Baseline(side string) (api.Baseline, error) {
	b, ok := r.all[side]
	if !ok {
		return b, fmt.Errorf("%w: no side %q", api.ErrNotFound, side)
	}
	return b, nil
}

// add finds the result that names or paths mean, separated by commas: of several, the average.
func (r *results) add(ctx context.Context, side string, s config.Side) error {
	names := []string{s.Name}
	if !isFile(s.Name) {
		names = strings.Split(s.Name, ",")
	}
	var all []api.Baseline
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return api.Refuse(side, fmt.Sprintf("%.80q twice", name), "each result once")
		}
		b, err := r.find(ctx, side, name, s.Mode)
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	if len(all) == 1 {
		r.all[side] = all[0]
		return nil
	}
	mean, err := report.MeanBaseline(all)
	if err != nil {
		return fmt.Errorf("%s: %w", side, err)
	}
	r.all[side] = mean
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// find gives the result that a name or a path means: a file before a baseline of that name.
func (r *results) find(ctx context.Context, side, name string, mode api.ModeState) (api.Baseline, error) {
	if isFile(name) {
		b, err := readResult(name, mode)
		if err != nil {
			return b, fmt.Errorf("%s: %s: %w", side, name, err)
		}
		return b, nil
	}
	known, err := knownBaselines(ctx, r.dir)
	if err != nil {
		return api.Baseline{}, err
	}
	b, ok := known[name]
	if !ok {
		return b, api.Refuse(side, fmt.Sprintf("%.80q", name),
			"a readable file, or one of the baselines: "+baselineNames(known))
	}
	return b, nil
}

// maxResult is the size of a file with a result: more than any that there is.
const maxResult = 16 << 20

// readResult reads a baseline as CSV or JSON, what another program measured in a mode that
// it does not record, the rows of a report, or the summary of a run.
func readResult(path string, mode api.ModeState) (api.Baseline, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		if inner := new(os.PathError); errors.As(err, &inner) {
			err = inner.Err // the path stands in the message already
		}
		return api.Baseline{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return api.Baseline{}, err
	}
	if len(data) > maxResult {
		return api.Baseline{}, api.Refuse("file", fmt.Sprintf("more than %d bytes", maxResult), "less")
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if strings.ToLower(filepath.Ext(path)) != ".json" {
		return baseline.ReadCSV(bytes.NewReader(data), name)
	}
	for _, from := range []func([]byte, string) (api.Baseline, bool, error){fromReport, fromRun} {
		if b, ok, err := from(data, name); ok {
			return b, err
		}
	}
	b, err := baseline.ReadJSON(bytes.NewReader(data), name, api.ModeState{})
	if bad := new(api.FieldError); mode.Mode != "" && errors.As(err, &bad) && bad.Field == "mode" { // the file does not say it
		return baseline.ReadJSON(bytes.NewReader(data), name, mode)
	}
	return b, err
}

// fromReport reads a report on a sweep: the rows of all of its sides. It is false for JSON
// that is no report. A report on two results is refused: it is not one result.
func fromReport(data []byte, name string) (b api.Baseline, is bool, err error) {
	var r struct {
		Title  string
		Sweep  json.RawMessage
		Inputs []api.Source
		Sides  []struct {
			Target     *api.TargetID
			Deployment api.Deployment
			Workload   *api.WorkloadShape
			Notes      string
			Rows       []api.BaselineRow
		}
	}
	switch {
	case json.Unmarshal(data, &r) != nil || len(r.Sides) == 0:
		return b, false, nil //nolint:nilerr // it may be a baseline, whose reader says what is wrong
	case len(r.Sweep) == 0:
		return b, true, api.Refuse("report", "a comparison of two results", "the report of a trial, sweep or capacity search, or a baseline")
	}
	first := r.Sides[0]
	b = api.Baseline{
		Name: name, Title: r.Title, Kind: baseline.KindMeasured, Target: first.Target, Deployment: first.Deployment,
		Workload: first.Workload, Notes: first.Notes, Provenance: api.Provenance{Runs: r.Inputs},
	}
	for _, s := range r.Sides {
		b.Rows = append(b.Rows, s.Rows...)
	}
	b.Deployment.Speculation = "" // a row's own matter
	return b, true, baseline.Validate(b)
}

// fromRun reads the summary of a run at one concurrency in one mode. It is false for JSON that is none.
func fromRun(data []byte, name string) (b api.Baseline, is bool, err error) {
	var r report.Report
	if json.Unmarshal(data, &r) != nil || r.Format == 0 || r.Cause == "" {
		return b, false, nil //nolint:nilerr // it may be a baseline, whose reader says what is wrong
	}
	for _, s := range r.Steps {
		if s.Concurrency != r.Concurrency || s.Mode != r.Mode || s.Speculation != r.Speculation {
			return b, true, api.Refuse("steps", fmt.Sprintf("%d conversations, %s", s.Concurrency, s.Mode),
				fmt.Sprintf("a run at one concurrency in one mode: this one ended with %d, %s; its figures are of all together", r.Concurrency, r.Mode))
		}
	}
	whole := stats.Report{
		Window: api.Window{Seconds: r.Seconds, Metrics: r.Metrics, ErrorRatio: r.ErrorRatio},
		OK:     r.Turns.OK, HitRatio: r.KVHitRatio.Value,
		OutputInterval: r.OutputTokensPerSecond.Interval, RequestsInterval: r.RequestsPerSecond.Interval, HitInterval: r.KVHitRatio.Interval,
	}
	row := whole.Row()
	row.Concurrency, row.Mode, row.Speculation, row.LagSeconds = r.Concurrency, r.Mode, r.Speculation, &r.Client.WorstLagSeconds
	row.OutputTokensPerSecond, row.RequestsPerSecond = r.OutputTokensPerSecond.Value, r.RequestsPerSecond.Value // nil: not known
	use := r.Cluster.EngineUse
	row.AcceptanceRate, row.TokensPerStep, row.GPUMemoryBytes = use.AcceptanceRate, use.TokensPerStep, use.GPUMemoryBytes
	if ended, err := time.Parse(time.RFC3339, r.Ended); err == nil {
		row.Measured = &ended
	}
	b = api.Baseline{
		Name: name, Title: name, Kind: baseline.KindMeasured, Deployment: r.Target.Deployment, Workload: &r.Workload,
		Notes: strings.Join(append([]string{"A run as a whole, with its beginning on cold caches."}, r.Notes...), "\n"), Rows: []api.BaselineRow{row},
	}
	b.Deployment.Speculation = "" // a row's own matter
	return b, true, baseline.Validate(b)
}
