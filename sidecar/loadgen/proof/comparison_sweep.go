package proof

import (
	"cmp"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Run describes the sweep of a report.
type Run struct {
	ID         string            `json:"id"`
	State      api.SweepState    `json:"state"`
	Reason     string            `json:"reason,omitempty"`     // why it is paused, was cancelled or failed
	Cause      api.SweepCause    `json:"cause,omitempty"`      // what the reason is about
	Unfinished string            `json:"unfinished,omitempty"` // progress; empty if the sweep is done
	Asked      time.Time         `json:"asked"`
	Ended      *time.Time        `json:"ended,omitempty"`
	Program    string            `json:"program"`
	Request    api.SweepRequest  `json:"request"`
	Progress   api.SweepProgress `json:"progress"`
	Spans      []api.SweepSpan   `json:"spans"`
	Trial      *api.TrialState   `json:"trial,omitempty"`
	Capacity   *api.Capacity     `json:"capacity,omitempty"`
	// what the routers of the arms were found to do before a trial, in words
	RouterFindings []string `json:"router_findings,omitempty"`
}

// CompareSweep compares the modes of a sweep of any kind. The sweep may be unfinished, or have no spans.
func CompareSweep(s *api.Sweep, title string) Comparison {
	r := Comparison{Title: title, Sides: []Side{}, Sweep: &Run{
		ID: s.ID, State: s.State, Reason: s.Reason, Cause: s.Cause, Asked: s.Asked, Ended: s.Ended, Program: s.Program,
		Request: s.Request, Progress: s.Progress, Spans: append([]api.SweepSpan{}, s.Spans...), Trial: s.Trial,
		Capacity: s.Capacity, RouterFindings: s.RouterFindings,
	}}
	r.Inputs = []api.Source{SourceOf(s)}
	if s.Request.SLO != nil {
		r.SLO = *s.Request.SLO
	}
	b := api.Baseline{
		Name: s.ID, Title: r.Title, Kind: baseline.KindMeasured, Target: &s.Target,
		Deployment: s.Deployment, Workload: &s.Workload, Rows: slices.Clone(s.Rows),
	}
	AddSpanFigures(b.Rows, s.Spans) // sweeps of earlier versions lack some
	for _, mode := range sweepModes(s) {
		side := newSide(b, mode)
		side.Baseline = ""
		for _, span := range s.Spans {
			if span.Mode == mode {
				addNew(&side.Addresses, span.Target)
				addNew(&side.Routers, span.Router)
			}
		}
		if len(side.Addresses) == 1 {
			side.Target = &api.TargetID{URL: side.Addresses[0], Model: s.Target.Model}
		}
		r.Sides = append(r.Sides, side)
	}
	r.name()
	r.compare()
	return r
}

// SourceOf returns a sweep as the source of figures.
func SourceOf(s *api.Sweep) api.Source {
	asked := s.Asked
	return api.Source{File: "sweep " + s.ID, Date: &asked, Seed: s.Request.Seed, Version: s.Program}
}

// sweepModes returns the measured modes. A trial and a capacity search keep the order of the request. A sweep of levels
// has the order of tables.
func sweepModes(s *api.Sweep) []api.ModeState {
	var all []api.ModeState
	for _, c := range baseline.Columns(api.Baseline{Rows: s.Rows}, api.Level{}) {
		all = append(all, c.InMode())
	}
	if s.Request.Kind != api.SweepLevels {
		slices.SortStableFunc(all, func(a, b api.ModeState) int {
			return cmp.Compare(slices.Index(s.Request.Modes, a), slices.Index(s.Request.Modes, b))
		})
	}
	return all
}

// addNew appends a text, unless it is empty or already in the list.
func addNew(to *[]string, text string) {
	if text != "" && !slices.Contains(*to, text) {
		*to = append(*to, text)
	}
}
