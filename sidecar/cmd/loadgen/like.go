package main

import (
	"encoding/json"
	"fmt"

	"kvbooth/sidecar/api"
)

// readLike reads the scatter of a trial from its JSON report. The error names the flag.
func readLike(path string) (*api.TrialLike, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("like: %s: %w", path, err)
	}
	var r struct {
		Sweep *struct {
			ID      string
			Request api.SweepRequest
			Trial   *api.TrialState
		}
		Sides []struct{ Workload *api.WorkloadShape }
	}
	switch err := json.Unmarshal(api.PresentNames(data), &r); {
	case err != nil || r.Sweep == nil || r.Sweep.Trial == nil || len(r.Sides) == 0 || r.Sides[0].Workload == nil ||
		r.Sweep.Request.Seconds == nil || r.Sweep.Request.Together == nil:
		return nil, api.Refuse("like", path, "the JSON report of a trial")
	case len(r.Sweep.Trial.Variances) == 0:
		return nil, api.Refuse("like", path+", a trial without a look", "one with two whole blocks or more")
	}
	q := r.Sweep.Request
	return &api.TrialLike{
		ID: r.Sweep.ID, Modes: q.Modes, Levels: q.Levels, Seconds: *q.Seconds, Together: *q.Together,
		Workload: *r.Sides[0].Workload, Variances: r.Sweep.Trial.Variances, BlockSeconds: r.Sweep.Trial.BlockSeconds,
	}, nil
}
