package api

import "encoding/json"

// The methods below keep the document's promise that lists and maps are never
// null: a nil one is written as an empty one. Each converts to a type without
// methods, which encoding/json then writes field by field.

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func table[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}

// MarshalJSON writes the snapshot.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type plain Snapshot
	s.Lanes = list(s.Lanes)
	return json.Marshal(plain(s))
}

// MarshalJSON writes a lane's part of the snapshot.
func (l LaneSnapshot) MarshalJSON() ([]byte, error) {
	type plain LaneSnapshot
	l.TTFTByTurn = list(l.TTFTByTurn)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the run state.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	s.Modes = list(s.Modes)
	if s.Sweep != nil {
		s.Sweep = new(s.Sweep.listed())
	}
	return json.Marshal(plain(s))
}

// MarshalJSON writes the window.
func (w Window) MarshalJSON() ([]byte, error) {
	type plain Window
	w.Errors = table(w.Errors)
	return json.Marshal(plain(w))
}

// MarshalJSON writes the totals.
func (t Totals) MarshalJSON() ([]byte, error) {
	type plain Totals
	t.ErrorsByClass = table(t.ErrorsByClass)
	return json.Marshal(plain(t))
}

// MarshalJSON writes the cluster.
func (c Cluster) MarshalJSON() ([]byte, error) {
	type plain Cluster
	c.Workers = list(c.Workers)
	return json.Marshal(plain(c))
}

// MarshalJSON writes the worker.
func (w Worker) MarshalJSON() ([]byte, error) {
	type plain Worker
	w.GPUs = list(w.GPUs)
	return json.Marshal(plain(w))
}

// MarshalJSON writes the comparison.
func (c Comparison) MarshalJSON() ([]byte, error) {
	type plain Comparison
	c.Differences, c.Columns = list(c.Differences), list(c.Columns)
	return json.Marshal(plain(c))
}

// MarshalJSON writes the baseline.
func (b Baseline) MarshalJSON() ([]byte, error) {
	type plain Baseline
	b.Rows = list(b.Rows)
	return json.Marshal(plain(b))
}

// MarshalJSON writes the list.
func (l BaselineList) MarshalJSON() ([]byte, error) {
	type plain BaselineList
	l.Baselines = list(l.Baselines)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the list.
func (l ConversationList) MarshalJSON() ([]byte, error) {
	type plain ConversationList
	l.Conversations = list(l.Conversations)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the list.
func (l EventList) MarshalJSON() ([]byte, error) {
	type plain EventList
	l.Events = list(l.Events)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the list.
func (l DecisionList) MarshalJSON() ([]byte, error) {
	type plain DecisionList
	l.Decisions = list(l.Decisions)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the list.
func (h History) MarshalJSON() ([]byte, error) {
	type plain History
	h.Points = list(h.Points)
	return json.Marshal(plain(h))
}

// MarshalJSON writes the decision.
func (d RoutingDecision) MarshalJSON() ([]byte, error) {
	type plain RoutingDecision
	d.Candidates = list(d.Candidates)
	return json.Marshal(plain(d))
}

// MarshalJSON writes the status.
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status
	s.Lanes, s.Config = list(s.Lanes), table(s.Config)
	return json.Marshal(plain(s))
}

// MarshalJSON writes a lane's part of the status.
func (l LaneStatus) MarshalJSON() ([]byte, error) {
	type plain LaneStatus
	l.Extensions = table(l.Extensions)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the corpus.
func (c CorpusStatus) MarshalJSON() ([]byte, error) {
	type plain CorpusStatus
	c.SkippedItems = list(c.SkippedItems)
	return json.Marshal(plain(c))
}

// MarshalJSON writes who asks the follow-up questions.
func (f FollowupStatus) MarshalJSON() ([]byte, error) {
	type plain FollowupStatus
	f.Fallbacks = table(f.Fallbacks)
	return json.Marshal(plain(f))
}

// MarshalJSON writes the list.
func (l SimulationList) MarshalJSON() ([]byte, error) {
	type plain SimulationList
	l.Profiles, l.Limits, l.Simulations = list(l.Profiles), table(l.Limits), list(l.Simulations)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the profile.
func (p SimulationProfile) MarshalJSON() ([]byte, error) {
	type plain SimulationProfile
	p.Speculations, p.Presets = list(p.Speculations), list(p.Presets)
	return json.Marshal(plain(p))
}

// MarshalJSON writes the simulation.
func (r SimulationResult) MarshalJSON() ([]byte, error) {
	type plain SimulationResult
	r.Notes, r.Points, r.Explanation = list(r.Notes), list(r.Points), list(r.Explanation)
	return json.Marshal(plain(r))
}

// MarshalJSON writes the end.
func (e SimulationEnd) MarshalJSON() ([]byte, error) {
	type plain SimulationEnd
	e.Explanation = list(e.Explanation)
	return json.Marshal(plain(e))
}

// listed is the summary with lists that are not nil. It has no method that writes it: a
// [Sweep], which embeds it, would be written by that.
func (s SweepSummary) listed() SweepSummary {
	s.Words = list(s.Words)
	return s
}

// MarshalJSON writes the list.
func (l SweepList) MarshalJSON() ([]byte, error) {
	type plain SweepList
	sweeps := make([]SweepSummary, len(l.Sweeps))
	for i, s := range l.Sweeps {
		sweeps[i] = s.listed()
	}
	l.Sweeps, l.Limits, l.Defaults, l.Modes, l.Metrics = sweeps, table(l.Limits), list(l.Defaults), list(l.Modes), list(l.Metrics)
	return json.Marshal(plain(l))
}

// MarshalJSON writes the sweep.
func (s Sweep) MarshalJSON() ([]byte, error) {
	type plain Sweep
	s.SweepSummary, s.Spans, s.Rows = s.listed(), list(s.Spans), list(s.Rows)
	return json.Marshal(plain(s))
}

// MarshalJSON writes how the trial stands.
func (t TrialState) MarshalJSON() ([]byte, error) {
	type plain TrialState
	t.Others = list(t.Others)
	return json.Marshal(plain(t))
}

// MarshalJSON writes what was found.
func (c Capacity) MarshalJSON() ([]byte, error) {
	type plain Capacity
	c.Modes = list(c.Modes)
	return json.Marshal(plain(c))
}

// MarshalJSON writes what a mode sustains.
func (m ModeCapacity) MarshalJSON() ([]byte, error) {
	type plain ModeCapacity
	m.Isolated, m.Tested = list(m.Isolated), list(m.Tested)
	return json.Marshal(plain(m))
}

// MarshalJSON writes the shadow.
func (s Shadow) MarshalJSON() ([]byte, error) {
	type plain Shadow
	s.Policies, s.Diagnoses = list(s.Policies), list(s.Diagnoses)
	return json.Marshal(plain(s))
}

// MarshalJSON writes the comparison of two lanes.
func (t Twin) MarshalJSON() ([]byte, error) {
	type plain Twin
	t.Metrics, t.SharedWorkers = list(t.Metrics), list(t.SharedWorkers)
	return json.Marshal(plain(t))
}

// MarshalJSON writes the showcase.
func (s Showcase) MarshalJSON() ([]byte, error) {
	type plain Showcase
	s.Results = list(s.Results)
	return json.Marshal(plain(s))
}
