package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
)

// compare prints the report on two results, and writes it into the files of --output. The error is a notStarted for an
// unreadable result, and for results that cannot be compared.
func compare(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	c := conf.Compare
	modeA, modeB := config.ParseMode(c.AMode), config.ParseMode(c.BMode)
	a, _, err := resultOf(ctx, conf.DataDir, "a", c.A, modeA)
	if err != nil {
		return notStarted{err}
	}
	b, _, err := resultOf(ctx, conf.DataDir, "b", c.B, modeB)
	if err != nil {
		return notStarted{err}
	}
	if c.A != c.B && a.Name == b.Name {
		b.Name += " B" // another file of the same name
	}
	outputs, err := report.OpenOutputs(conf.OutputFormats(), conf.Output)
	if err != nil {
		return notStarted{err}
	}
	r, err := report.Compare(a, b, proof.Question{
		A: sideOf(a, c.AMode), B: sideOf(b, c.BMode), Levels: c.Levels, SLO: conf.Settings().SLO, OneSystem: c.Gate,
	})
	if err != nil {
		return notStarted{c.Named(err)}
	}
	if err := report.Write(stdout, r, api.ReportFormat(c.Format)); err != nil {
		return err
	}
	err = outputs.Write(func(w io.Writer, f api.ReportFormat) error { return report.Write(w, r, f) })
	if err != nil || !c.Gate {
		return err
	}
	return gate(r)
}

// gate returns the error for a comparison whose second result is certainly worse, or of which nothing was judged.
func gate(r *report.Results) error {
	switch worse := r.Worse(); {
	case len(worse) > 0:
		return worsened(fmt.Sprintf("--gate: %s is worse: %s", r.Sides[1].Name, strings.Join(worse, "; ")))
	case !r.Judged():
		return errNotJudged
	}
	return nil
}

// acceptedOf returns what relative conditions compare with: the last accepted run of the history, or a result; nil
// without any.
func acceptedOf(ctx context.Context, conf *config.Config) (*proof.Accepted, error) {
	if conf.Against == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if conf.Against == lastAccepted && !isFile(conf.Against) {
		return acceptedRun(ctx, conf)
	}
	b, all, err := resultOf(ctx, conf.DataDir, "against", conf.Against, api.ModeState{})
	if err != nil {
		return nil, err
	}
	return proof.AcceptedOf(conf.Against, b, all), nil
}

// sideOf returns the rows of a result that a flag selects: those of an arm of that name, or else of a mode.
func sideOf(b api.Baseline, text string) api.ReportSide {
	if slices.ContainsFunc(b.Rows, func(r api.BaselineRow) bool { return r.Arm == text }) {
		return api.ReportSide{Arm: text}
	}
	mode := config.ParseMode(text)
	return api.ReportSide{Mode: mode.Mode, Speculation: mode.Speculation}
}

// resultOf returns the result of a text with names or paths, separated by commas: of several, the average. The second
// result are the single ones.
func resultOf(ctx context.Context, dir, side, text string, mode api.ModeState) (api.Baseline, []api.Baseline, error) {
	names := []string{text}
	if !isFile(text) {
		names = strings.Split(text, ",")
	}
	var all []api.Baseline
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return api.Baseline{}, nil, api.Refuse(side, fmt.Sprintf("%.80q twice", name), "each result once")
		}
		b, err := findResult(ctx, dir, side, name, mode)
		if err != nil {
			return api.Baseline{}, nil, err
		}
		all = append(all, b)
	}
	if len(all) == 1 {
		return all[0], all, nil
	}
	mean, err := report.MeanBaseline(all)
	if err != nil {
		return mean, nil, fmt.Errorf("%s: %w", side, err)
	}
	return mean, all, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// findResult returns the result of a name or a path. A file has precedence over a baseline of that name.
func findResult(ctx context.Context, dir, side, name string, mode api.ModeState) (api.Baseline, error) {
	if isFile(name) {
		b, err := readResult(name, mode)
		if err != nil {
			return b, fmt.Errorf("%s: %s: %w", side, name, err)
		}
		return b, nil
	}
	known, err := knownBaselines(ctx, dir)
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

// maxResult is the largest size of a file with a result. Every valid result is smaller.
const maxResult = 16 << 20

// readFile reads a file with a result.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		if inner := new(os.PathError); errors.As(err, &inner) {
			err = inner.Err // the message already contains the path
		}
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxResult+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxResult {
		return nil, api.Refuse("file", fmt.Sprintf("more than %d bytes", maxResult), "less")
	}
	return data, nil
}

// readResult reads a baseline as CSV or JSON, another program's results in the given mode, which such files lack, the
// rows of a report, or the summary of a run.
func readResult(path string, mode api.ModeState) (api.Baseline, error) {
	data, err := readFile(path)
	if err != nil {
		return api.Baseline{}, err
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if strings.ToLower(filepath.Ext(path)) != ".json" {
		return baseline.ReadCSV(bytes.NewReader(data), name)
	}
	b, err := report.ReadJSON(bytes.NewReader(data), name, api.ModeState{})
	if bad := new(api.FieldError); mode.Mode != "" && errors.As(err, &bad) && bad.Field == "mode" { // the file lacks it
		return report.ReadJSON(bytes.NewReader(data), name, mode)
	}
	return b, err
}
