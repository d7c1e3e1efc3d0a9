package report

import (
	"fmt"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/stats"
)

// AsBaseline returns the run as a result of one row, with a name. The error is an *[api.FieldError] for a run at
// several levels or in several modes.
func (r *Run) AsBaseline(name string) (api.Baseline, error) {
	mode := api.ModeState{Arm: r.Arm, Mode: r.Mode, Speculation: r.Speculation}
	for _, s := range r.Steps {
		if s.Level != r.Level || s.InMode() != mode {
			return api.Baseline{}, api.Refuse("steps", fmt.Sprintf("%s, %s", s.Level.InWords(), s.InMode().Text()),
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
	b := api.Baseline{
		Name: name, Title: name, Kind: baseline.KindMeasured, Deployment: r.Target.Deployment, Workload: &r.Workload,
		Notes: strings.Join(append([]string{r.BeginningNote()}, r.Notes...), "\n"),
		Rows:  []api.BaselineRow{row},
	}
	b.Deployment.Speculation = "" // each row has its own
	return b, baseline.Validate(b)
}
