package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// Words returns the findings of a sweep so far in a few sentences, for screens, the terminal and the top of its report.
// Every number in them is computed from measurements. Without any, a sentence states that.
func Words(s *api.Sweep) []string { return OfSweep(*s).Words }

// words returns the findings of a sweep. r.Sweep must not be nil.
func (r *Results) words() []string {
	var all []string
	switch r.Sweep.Request.Kind {
	case api.SweepTrial:
		all = r.trialWords()
	case api.SweepCapacity:
		all = r.capacityWords()
	default:
		all = append(r.sideWords(), r.laneWords()...)
	}
	some := len(all) > 0
	for _, found := range r.Sweep.RouterFindings {
		all = append(all, fullStop("Before the trial: "+found))
	}
	return slices.Concat([]string{}, r.doubtWords(), all, r.stateWords(some))
}

// stateWords describes the state of an unfinished sweep. some is true if there are findings.
func (r *Results) stateWords(some bool) []string {
	run := r.Sweep
	nothing := ""
	if !some {
		nothing = r.nothingFound()
	}
	by, because, state := "", "", ""
	switch {
	case run.Cause == api.CauseOperator:
		by = " " + run.Reason
	case run.Reason != "":
		because = ": " + run.Reason
	}
	switch run.State {
	case api.SweepRunning:
		if state = "Still running, with " + run.Unfinished + " measured: this can still change."; !some {
			state = ""
		}
	case api.SweepPaused:
		state = "Paused" + by + ", with " + run.Unfinished + " measured" + because
	case api.SweepCancelled:
		state = "Cancelled" + by + ", with " + run.Unfinished + " measured" + because
	case api.SweepFailed:
		state = "Failed" + by + ", with " + run.Unfinished + " measured" + because
	}
	return slices.DeleteFunc([]string{nothing, fullStop(state), spoiling(run)}, func(s string) bool { return s == "" })
}

// fullStop ends a sentence that may have an end.
func fullStop(text string) string {
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".?") {
		return text
	}
	return text + "."
}

// nothingFound describes a sweep without findings.
func (r *Results) nothingFound() string {
	run := r.Sweep
	what := "the first measurement is still running"
	if run.State.Ended() {
		what = "no measurement was completed"
	}
	if t := run.Trial; t != nil && run.Progress.Spans > 0 {
		what = fmt.Sprintf("%d of %s before the first look", t.Blocks, plural(cmp.Or(t.FirstLook, 2), "whole block"))
	}
	if run.Request.Kind == api.SweepCapacity && run.Progress.Spans > 0 {
		return "No capacity is known: no level has been measured until its verdict was certain enough."
	}
	if run.State.Ended() {
		return "Nothing was measured: " + what + "."
	}
	if run.Trial != nil {
		if soFar := r.soFarWords(); soFar != "" {
			return "Not known yet: " + soFar + ", after " + what + "."
		}
		return "Not known yet: " + what + "."
	}
	return "No results yet: " + what + "."
}

// spoiling returns the reason why several spans in a row of a sweep in progress do not count. It is empty if the latest
// spans count.
func spoiling(r *proof.Run) string {
	n := 0
	for n < len(r.Spans) && r.Spans[len(r.Spans)-1-n].Spoiled != "" {
		n++
	}
	several := 2
	if n > 0 && r.Spans[len(r.Spans)-1].Lane != "" {
		several = 4 // a spoiled span spoils the span on the other lane, too
	}
	if n < several || r.State != api.SweepRunning {
		return ""
	}
	return fmt.Sprintf("The latest %d spans do not count, the last one because: %s.", n,
		strings.TrimRight(r.Spans[len(r.Spans)-1].Spoiled, "."))
}

// kindSentences says what answers in place of engines on GPUs, which a reader must know before any figure. It is empty,
// and not nil, for other kinds.
func kindSentences(kind api.TargetKind) []string {
	if text := notReal[kind]; text != "" {
		return []string{text + ": times and rates are no measurements of a GPU."}
	}
	return []string{}
}

// notReal names what answers in place of engines on GPUs.
var notReal = map[api.TargetKind]string{
	api.TargetMocked: "The engines are mocked", api.TargetSimulated: "The cluster is simulated",
}

// kindWords returns [kindSentences] of the sides, with their names where they differ.
func (r *Results) kindWords() []string {
	kind := func(s *proof.Side) string { return string(s.Deployment.Kind) }
	if r.sameForAll(kind) {
		return kindSentences(r.Sides[0].Deployment.Kind)
	}
	all := []string{}
	for i := range r.Sides {
		for _, text := range kindSentences(r.Sides[i].Deployment.Kind) {
			all = append(all, r.Sides[i].Name+": "+text)
		}
	}
	return all
}

// oneEvidence explains why throughput and latency do not confirm each other.
const oneEvidence = "In a closed loop, throughput and latency are not independent evidence: conversations that are " +
	"answered sooner send the next turn sooner."

// laneWords describes the assignment of the arms to the two lanes. It returns nothing for arms that did not run at
// the same time.
func (r *Results) laneWords() []string {
	_, b := r.trialNames()
	pairs, onTwin := 0, 0
	surplus := map[api.Level]int{} // by level: pairs with B on lane twin less pairs with B on lane main
	for i := range r.Sweep.Spans {
		s := &r.Sweep.Spans[i]
		if s.Lane == "" || s.Spoiled != "" || !r.isB(s) {
			continue
		}
		pairs++
		surplus[s.Level]--
		if s.Lane == api.TwinLane {
			onTwin++
			surplus[s.Level] += 2
		}
	}
	even := true
	for _, n := range surplus {
		even = even && n == 0
	}
	switch {
	case pairs == 0:
		return nil
	case even:
		return []string{fmt.Sprintf("Both %ss ran at the same time on two targets, swapped in %d of %d pairs: "+
			"other differences between the targets cancel out.", r.side(), onTwin, pairs)}
	case onTwin == 0 || onTwin == pairs:
		lane := api.DefaultLane
		if onTwin > 0 {
			lane = api.TwinLane
		}
		return []string{fmt.Sprintf("Both %ss ran at the same time on two targets, %s always on the one of lane "+
			"%s: other differences between the targets are part of the result.", r.side(), b, lane)}
	}
	unequal := ""
	if len(surplus) > 1 {
		unequal = ", not equally often at every level"
	}
	return []string{fmt.Sprintf("Both %ss ran at the same time on two targets, %s on that of lane %s in %d of %d "+
		"pairs%s: other differences between the targets do not cancel out completely.",
		r.side(), b, api.TwinLane, onTwin, pairs, unequal)}
}

// side returns what the sides of the report are: the arms of a trial, else modes.
func (r *Results) side() string {
	if r.Sweep == nil {
		return "mode"
	}
	return sideOf(r.Sweep.Request.Kind)
}

// sideOf returns what a sweep of a kind compares.
func sideOf(kind api.SweepKind) string {
	if kind == api.SweepTrial {
		return "arm"
	}
	return "mode"
}

// isB reports whether a span belongs to the second mode. It checks the arm first, since a trial may compare a mode with
// itself.
func (r *Results) isB(s *api.SweepSpan) bool {
	q := &r.Sweep.Request
	return proof.Arm(s.Arm) == proof.ArmB || s.Arm == "" && len(q.Modes) == 2 && s.Mode == q.Modes[1]
}

// trimmed formats a number with at most four significant digits and without trailing zeros.
// capacityWords describes the sustained concurrency of each mode, the largest first.
func (r *Results) capacityWords() []string {
	c := r.Sweep.Capacity
	if c == nil || !slices.ContainsFunc(c.Modes, func(m api.ModeCapacity) bool { return m.Level != nil }) {
		return nil
	}
	states := make([]api.ModeState, len(c.Modes))
	order := make([]int, len(c.Modes))
	for i := range c.Modes {
		states[i], order[i] = c.Modes[i].Mode, i
	}
	names := proof.ModeNames(states)
	level := func(i int) float64 {
		if l := c.Modes[i].Level; l != nil {
			return l.Value
		}
		return -1
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(level(j), level(i)) })
	var clauses, isolated []string
	for n, i := range order {
		clauses = append(clauses, capacityClause(names[i], &c.Modes[i], n == 0))
		isolated = append(isolated, goodWords(names[i], &c.Modes[i])...)
		if len(c.Modes[i].Isolated) > 0 {
			isolated = append(isolated, fmt.Sprintf("Above a level that misses the SLOs, %s still meets them at %s.",
				names[i], numbers(c.Modes[i].Isolated)))
		}
	}
	text := strings.Join(clauses, ", ")
	if x := c.Crossing; x != nil && x.Level != nil && len(names) == 2 {
		text += fmt.Sprintf("; they cross at %v%s", *x.Level, bracketed(x.Interval, x.Above))
		better := names[0]
		if x.Below == string(proof.ArmB) {
			better = names[1]
		}
		isolated = slices.Insert(isolated, 0, fmt.Sprintf("Below the crossing, TTFT p95 is lower under %s.", better))
	}
	return append([]string{text + "."}, isolated...)
}

// goodWords says how many turns of a mode met every SLO in a second, at the rate where they were most. It returns
// nothing for numbers of conversations.
func goodWords(name string, m *api.ModeCapacity) []string {
	var best *api.LevelTest
	for i := range m.Tested {
		t := &m.Tested[i]
		if t.Level.Kind == api.Rate && t.GoodPerSecond != nil && (best == nil || *t.GoodPerSecond > *best.GoodPerSecond) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	return []string{fmt.Sprintf("Of %s, the most turns that met every SLO were %s per second, at %v.", name,
		goodCell(best), best.Level)}
}

// goodCell formats the turns of a level that met every SLO in a second, with their interval.
func goodCell(t *api.LevelTest) string {
	switch in := t.GoodInterval; {
	case t.GoodPerSecond == nil:
		return "not known"
	case in == nil:
		return api.ThreeDigits(*t.GoodPerSecond)
	default:
		return fmt.Sprintf("%s (%s to %s)", api.ThreeDigits(*t.GoodPerSecond), api.ThreeDigits(in[0]), api.ThreeDigits(in[1]))
	}
}

func capacityClause(name string, m *api.ModeCapacity, first bool) string {
	in := bracketed(m.Interval, m.Above)
	switch {
	case m.Level == nil:
		return "what " + name + " sustains is not known yet"
	case uninformative(m):
		return "these levels do not show what " + name + " sustains: its p95 changes too little with load, next to " +
			"its scatter, to say where it meets the SLOs"
	case unsure(m):
		return fmt.Sprintf("%s probably misses the SLOs even at the lowest level of %s%s", name,
			m.Tested[0].Level.InWords(), in)
	case m.Level.Value == 0 && first:
		return name + " does not meet the SLOs even at the lowest level" + in
	case m.Level.Value == 0:
		return name + " none, not even at the lowest level" + in
	case first:
		what := " conversations"
		if m.Level.Kind == api.Rate {
			what = ""
		}
		return fmt.Sprintf("%s sustains %s%s within the SLOs%s", name, sustained(m), what, in)
	}
	return name + " " + sustained(m) + in
}

// uninformative reports whether the interval begins at 0 and has no upper end, so that the estimate has no value.
func uninformative(m *api.ModeCapacity) bool {
	return m.Interval != nil && m.Interval[0].Value == 0 && m.Above
}

// unsure reports whether the estimate is 0 although the lowest level has no verdict.
func unsure(m *api.ModeCapacity) bool {
	return m.Level != nil && m.Level.Value == 0 && len(m.Tested) > 0 && m.Tested[0].Verdict == proof.Open
}

// sustained formats the estimate of a mode's sustained concurrency.
func sustained(m *api.ModeCapacity) string {
	switch {
	case m.Level == nil:
		return "not known"
	case uninformative(m):
		return "cannot be determined"
	case unsure(m):
		return "perhaps none"
	case m.Level.Value == 0:
		return "none"
	case m.Above && (m.Interval == nil || !m.Level.Below(m.Interval[1])):
		return "at least " + m.Level.String()
	}
	return m.Level.String()
}

// bracketed formats an interval of levels in brackets, after a blank. It is empty for a nil interval.
func bracketed(v *[2]api.Level, above bool) string {
	if v == nil {
		return ""
	}
	return " (" + levelInterval(v, above) + ")"
}

// levelInterval formats an interval of levels. above marks an interval without an upper end.
func levelInterval(v *[2]api.Level, above bool) string {
	if above {
		return fmt.Sprintf("%v to %v or more", v[0], v[1])
	}
	return fmt.Sprintf("%v to %v", v[0], v[1])
}

// sideWords describes the sustained concurrency of each side, and compares each side with the first.
func (r *Results) sideWords() (all []string) {
	if len(r.Sides) == 0 {
		return nil
	}
	var clauses []string
	for i := range r.Sides {
		switch s := &r.Sides[i]; {
		case s.Sustained == nil:
		case s.Sustained.Level == nil:
			clause := "what " + s.Name + " sustains is not known"
			if r.Sweep != nil && r.Sweep.Unfinished != "" {
				clause += " yet"
			}
			clauses = append(clauses, clause)
		default:
			clauses = append(clauses, s.Name+" sustains "+sustains(s))
		}
	}
	if len(clauses) > 0 {
		all = append(all, fmt.Sprintf("Within the SLOs (TTFT p95 up to %s, TPOT p95 up to %s), %s.",
			api.Objective(r.SLO.TTFT), api.Objective(r.SLO.TPOT), strings.Join(clauses, "; ")))
	}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.A != 0 {
			continue
		}
		all = append(all, r.guardSentences(p)...)
		all = append(all, r.boundaryWords(p)...)
		for _, q := range proof.Named {
			if s, ok := p.Averages[q]; ok {
				all = append(all, fmt.Sprintf("%s, %s against %s: %s.",
					describe(q).title, r.Sides[p.B].Name, r.Sides[p.A].Name, outcomes(p, q, &s)))
			}
		}
	}
	return all
}

// sustains describes the sustained concurrency of a side. It is empty if that is not known.
func sustains(s *proof.Side) string {
	x := s.Sustained
	if x == nil || x.Level == nil {
		return ""
	}
	// A level without a TTFT p95 is not tested.
	tested := slices.DeleteFunc(s.Levels(), func(l api.Level) bool { return slices.Contains(x.Untested, l) })
	text := x.Level.InWords()
	switch {
	case x.Level.Value == 0:
		text = fmt.Sprintf("nothing: even %v, the lowest level measured, misses them", tested[0])
	case *x.Level == tested[len(tested)-1]:
		text += ", the most that was measured"
	}
	if len(x.TTFTOnly) > 0 {
		text += ", judged by TTFT alone where TPOT was not recorded"
	}
	if len(x.Isolated) > 0 {
		text += " (above that, these still meet them: " + numbers(x.Isolated) + ")"
	}
	return text
}

// outcomes lists the levels at which B is better, worse or neither, with the range of its advantages.
func outcomes(p *proof.Pair, q proof.Quantity, s *proof.Average) string {
	var parts []string
	for _, of := range []struct {
		word   string
		levels []api.Level
	}{{"better", s.Better}, {"worse", s.Worse}} {
		if len(of.levels) > 0 {
			parts = append(parts, fmt.Sprintf("%s at %s (%s)", of.word, numbers(of.levels),
				advantageRange(p, q, of.levels)))
		}
	}
	return strings.Join(append(parts, undecidedLevels(s)...), "; ")
}

// advantageRange formats the smallest and the largest advantage at some levels, without their signs.
func advantageRange(p *proof.Pair, q proof.Quantity, levels []api.Level) string {
	low, high := math.Inf(1), 0.0
	for i := range p.Levels {
		if slices.Contains(levels, p.Levels[i].Level) {
			v := math.Abs(*p.Levels[i].Figures[q].Advantage)
			low, high = min(low, v), max(high, v)
		}
	}
	of := describe(q)
	unit, isLong := unitOf(of.inPoints()), of.Kind == baseline.Time && high > 1
	switch {
	case isLong && len(levels) == 1:
		return timesAsLong(high)
	case isLong && low > 1:
		return tenths(1+low) + " to " + timesAsLong(high)
	case isLong:
		return "by " + tenths(100*low) + unit + " to " + timesAsLong(high)
	case len(levels) == 1:
		return "by " + tenths(100*low) + unit
	}
	return "by " + tenths(100*low) + " to " + tenths(100*high) + unit
}

// durationText formats a duration in seconds, minutes or hours.
func durationText(seconds float64) string {
	switch {
	case seconds < 120:
		return plural(int(math.Round(seconds)), "second")
	case seconds < 3*3600:
		return plural(int(math.Round(seconds/60)), "minute")
	}
	return tenths(seconds/3600) + " hours"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return api.Count(n) + " " + what + "s"
}

// join formats a list as "a, b and c".
func join(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
