package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/stats"
)

// ReadJSON reads what [baseline.ReadJSON] reads, the rows of a report on a sweep, or the summary of a run. The latter
// two have their own modes, so that mode is not used, and keep the kind measured. Errors are those of
// baseline.ReadJSON.
func ReadJSON(r io.Reader, name string, mode api.ModeState) (api.Baseline, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return api.Baseline{}, err
	}
	for _, from := range []func([]byte, string) (api.Baseline, bool, error){fromReport, fromRun} {
		if b, ok, err := from(data, name); ok {
			return b, err
		}
	}
	return baseline.ReadJSON(bytes.NewReader(data), name, mode)
}

// fromReport reads a report on a sweep: the rows of all of its sides. The second result is false for JSON that is no
// report. A report on two results is refused, because it is not one result.
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
	case json.Unmarshal(api.PresentNames(data), &r) != nil || len(r.Sides) == 0:
		return b, false, nil //nolint:nilerr // it may be a baseline, whose reader reports the error
	case len(r.Sweep) == 0:
		return b, true, api.Refuse("report", "a comparison of two results",
			"the report of a trial, sweep or capacity search, or a baseline")
	}
	first, name := r.Sides[0], cmp.Or(name, "report")
	b = api.Baseline{
		Name: name, Title: r.Title, Kind: baseline.KindMeasured, Target: first.Target, Deployment: first.Deployment,
		Workload: first.Workload, Notes: first.Notes, Provenance: api.Provenance{Runs: r.Inputs},
	}
	for _, s := range r.Sides {
		b.Rows = append(b.Rows, s.Rows...)
	}
	b.Deployment.Speculation = "" // each row has its own
	return b, true, baseline.Validate(b)
}

// fromRun reads the summary of a run at one concurrency in one mode. The second result is false for other JSON.
func fromRun(data []byte, name string) (b api.Baseline, is bool, err error) {
	var r Run
	if json.Unmarshal(api.PresentNames(data), &r) != nil || r.Format == 0 || r.Cause == "" {
		return b, false, nil //nolint:nilerr // it may be a baseline, whose reader reports the error
	}
	b, err = r.AsBaseline(cmp.Or(name, "run "+strings.ReplaceAll(r.Started, ":", ".")))
	return b, true, err
}

// AsBaseline returns the run at one level in one mode as a result with one row. The error is an [api.FieldError] for
// any other run, and for a row without figures.
func (r *Run) AsBaseline(name string) (b api.Baseline, err error) {
	mode := api.ModeState{Arm: r.Arm, Mode: r.Mode, Speculation: r.Speculation}
	for _, s := range r.Steps {
		if s.Level != r.Level || s.InMode() != mode {
			return b, api.Refuse("steps", fmt.Sprintf("%s, %s", s.Level.InWords(), s.InMode().Text()),
				fmt.Sprintf("a run at one concurrency in one mode: this one ended with %v, %s; its figures are of "+
					"all together", r.Level, mode.Text()))
		}
	}
	whole := stats.Report{
		Window: api.Window{Seconds: r.Seconds, Metrics: r.Metrics, ErrorRatio: r.ErrorRatio},
		OK:     r.Turns.OK, HitRatio: r.KVHitRatio.Value,
		OutputInterval: r.OutputTokensPerSecond.Interval, RequestsInterval: r.RequestsPerSecond.Interval,
		HitInterval: r.KVHitRatio.Interval,
	}
	row := whole.Row()
	row.Level, row.LagSeconds = r.Level, &r.Client.WorstLagSeconds
	row.Arm, row.Mode, row.Speculation = r.Arm, r.Mode, r.Speculation
	row.OutputTokensPerSecond = r.OutputTokensPerSecond.Value // nil: not known
	row.RequestsPerSecond = r.RequestsPerSecond.Value         // nil: not known
	use := r.Cluster.EngineUse
	row.AcceptanceRate, row.TokensPerStep, row.GPUMemoryBytes = use.AcceptanceRate, use.TokensPerStep, use.GPUMemoryBytes
	row.AchievedShare = use.AchievedShare
	if ended, err := time.Parse(time.RFC3339, r.Ended); err == nil {
		row.Measured = &ended
	}
	b = api.Baseline{
		Name: name, Title: name, Kind: baseline.KindMeasured, Deployment: r.Target.Deployment, Workload: &r.Workload,
		Target: &api.TargetID{URL: r.Target.URL, Model: r.Target.Model},
		Notes:  strings.Join(append([]string{r.BeginningNote()}, r.Notes...), "\n"),
		Rows:   []api.BaselineRow{row},
	}
	b.Deployment.Speculation = "" // each row has its own
	return b, baseline.Validate(b)
}
