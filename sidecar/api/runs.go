package api

import (
	"slices"
	"time"
)

// SingleRun is the kind of a single run in the history. Others have that of their sweep.
const SingleRun = "run"

// RunRecord is a measurement that has ended. It is immutable but for Accepted.
type RunRecord struct {
	ID      string            `json:"id"`
	Kind    string            `json:"kind" enum:"run,trial,sweep,capacity"`
	Labels  map[string]string `json:"labels,omitempty"`
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended"`
	Program string            `json:"program"`           // version of the load generator
	Router  string            `json:"router,omitempty"`  // as [Target.Router]
	Verdict string            `json:"verdict,omitempty"` // in words
	Failed  bool              `json:"failed,omitempty"`  // a condition of fail_if was met or most turns failed
	// since when later runs are compared with it; absent: they are not
	Accepted *time.Time `json:"accepted,omitempty"`
	// Result has the figures, a row for each level and arm. Its name is that of the setting `name`.
	Result Baseline `json:"result"`
}

// Measured reports whether the run has a TTFT to compare others with.
func (r *RunRecord) Measured() bool {
	return slices.ContainsFunc(r.Result.Rows, func(row BaselineRow) bool { return row.TTFT.P50 != nil })
}

// RunSeries are the runs of one name that measured the same: the same level, arm, mode and traffic.
type RunSeries struct {
	Name        string          `json:"name"`
	Level       Level           `json:"concurrency"`
	Arm         string          `json:"arm,omitempty"`
	Mode        Mode            `json:"mode"`
	Speculation Speculation     `json:"speculation"`
	Runs        List[string]    `json:"runs"` // ids, oldest first
	Changes     List[RunChange] `json:"changes"`
}

// RunChange is a lasting change of a figure between two runs of a series.
type RunChange struct {
	Figure string `json:"figure"` // path of the figure in a row
	Run    string `json:"run"`    // the first one after the change
	// means since the change before, and until the next one: geometric for times and rates
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Better bool    `json:"better"`
}

// RunHistory is the history, oldest first.
type RunHistory struct {
	Runs   List[RunRecord] `json:"runs"`
	Series List[RunSeries] `json:"series"`
}

// RunPatch changes a run of the history.
type RunPatch struct {
	Accepted bool `json:"accepted"` // later runs are compared with it, or no longer
}
