package report

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report/chart"
)

// capacitySections returns the results of a capacity search and the tested levels.
func (r *Results) capacitySections() []Section {
	if r.Sweep == nil || r.Sweep.Capacity == nil {
		return nil
	}
	c := r.Sweep.Capacity
	states := make([]api.ModeState, len(c.Modes))
	for i := range c.Modes {
		states[i] = c.Modes[i].Mode
	}
	names := proof.ModeNames(states)
	s := Section{Title: "Capacity within the SLOs", Level: 3, Table: &Table{Head: []string{
		"Mode", "Sustained " + strings.ToLower(r.levelHead()), "95 % interval", "Higher levels that also meet the SLOs",
	}}}
	tests := Section{Title: "Levels tested", Level: 3, Table: &Table{
		Words: []int{2}, Head: []string{"Mode", r.levelHead(), "SLOs", "Spans"},
	}}
	byRate := r.Sweep.Request.ByRate()
	if byRate {
		tests.Table.Head = append(tests.Table.Head, "Turns per second within the SLOs", "Overloaded spans")
	}
	for i := range c.Modes {
		m := &c.Modes[i]
		between, isolated := "not known", "no level"
		if m.Interval != nil {
			between = levelInterval(m.Interval, m.Above)
		}
		if len(m.Isolated) > 0 {
			isolated = numbers(m.Isolated)
		}
		s.Table.add(names[i], sustained(m), between, isolated)
		for _, t := range m.Tested {
			row := []string{names[i], t.Level.String(), t.Verdict, strconv.Itoa(t.Spans)}
			if byRate {
				row = append(row, goodCell(&t), strconv.Itoa(t.Overloaded))
			}
			tests.Table.add(row...)
		}
	}
	if x := c.Crossing; x != nil && x.Level != nil {
		s.Text = []string{fmt.Sprintf("By TTFT p95, the modes cross at %s%s.", x.Level.InWords(),
			bracketed(x.Interval, x.Above))}
	}
	return []Section{s, tests}
}

// modeName returns the name of the side with a mode.
func (r *Results) modeName(m api.ModeState) string {
	for i := range r.Sides {
		if r.Sides[i].Mode == m {
			return r.Sides[i].Name
		}
	}
	return m.Short()
}

// spans lists the spans of a sweep in the order in which they ended.
func (r *Results) spans() Section {
	if r.Sweep == nil {
		return Section{}
	}
	head := []string{"Span", sentenceCase(r.side()), r.levelHead(), "Began", "Counted", "Turns", "Failed", "Seed"}
	values := r.spanValues()
	if values != nil {
		head = append(head, sentenceCase(proof.Metric(r.Sweep.Trial.Primary.Metric).Name()))
	}
	s := Section{Title: "Spans", Table: &Table{Words: []int{1, 3, len(head)}, Head: append(head, "Remarks")}}
	for i := range r.Sweep.Spans {
		x := &r.Sweep.Spans[i]
		number := strconv.Itoa(x.Number + 1) // page and terminal count from 1
		if x.Attempt > 1 {
			number += fmt.Sprintf(" (attempt %d)", x.Attempt)
		}
		var remarks []string
		if x.Arm != "" {
			remarks = append(remarks, armLetter(x.Arm))
		}
		if x.Spoiled != "" {
			remarks = append(remarks, "does not count: "+x.Spoiled)
		}
		if x.Overloaded != "" {
			remarks = append(remarks, "does not keep up: "+x.Overloaded)
		}
		began, counted := "–", "–"
		if !x.Started.IsZero() {
			began = x.Started.UTC().Format(time.RFC3339)
		}
		if !x.CountedFrom.IsZero() && x.Until.After(x.CountedFrom) {
			counted = fmt.Sprintf("%.0f s", x.Until.Sub(x.CountedFrom).Seconds())
		}
		row := []string{
			number, r.modeName(x.Mode), x.Level.String(), began, counted,
			strconv.Itoa(x.Turns), strconv.Itoa(x.Failed), strconv.FormatUint(x.Seed, 10),
		}
		if values != nil {
			value := ""
			if x.Spoiled == "" {
				value = values[x.Number]
			}
			row = append(row, value)
		}
		s.Table.add(append(row, strings.Join(remarks, "; "))...)
	}
	return s
}

// spanValues returns the deciding metric of a trial's spans by their numbers. It is nil before the first look, and for
// trials of earlier versions.
func (r *Results) spanValues() map[int]string {
	t := r.Sweep.Trial
	if t == nil || t.Primary == nil || len(t.Spans) == 0 {
		return nil
	}
	values := map[int]string{}
	for _, s := range t.Spans {
		values[s.Number] = trialValue(proof.Metric(t.Primary.Metric), s.Value)
	}
	return values
}

// turnsByWorker returns the turns that each worker served under each mode of the request, over the spans that count.
func (r *Results) turnsByWorker() []map[string]int {
	return r.byWorker(func(s *api.SweepSpan) map[string]int { return s.TurnsByWorker })
}

// byWorker sums counts of workers under each mode of the request, over the spans that count. A worker counts with 0
// under a mode that shares another worker with one of its modes.
func (r *Results) byWorker(counts func(*api.SweepSpan) map[string]int) []map[string]int {
	modes := r.Sweep.Request.Modes
	served := make([]map[string]int, len(modes))
	for i := range served {
		served[i] = map[string]int{}
	}
	for i := range r.Sweep.Spans {
		s := &r.Sweep.Spans[i]
		if at := slices.Index(modes, s.Mode); at >= 0 && s.Spoiled == "" {
			for name, n := range counts(s) {
				served[at][name] += n
			}
		}
	}
	all := make([]map[string]int, len(modes))
	for i := range served {
		known := map[string]int{}
		for _, other := range served {
			if haveCommon(served[i], other) {
				maps.Copy(known, other)
			}
		}
		all[i] = maps.Clone(served[i])
		AddIdle(all[i], known)
	}
	return all
}

// workers lists the turns of each worker under each arm or mode, and how the work was divided: the tokens that workers
// had to compute.
func (r *Results) workers() Section {
	if r.Sweep == nil {
		return Section{}
	}
	s := Section{Title: "Turns by worker", Table: &Table{Words: []int{1}, Head: []string{
		sentenceCase(r.side()), "Turns by worker, warm-up included", "Busiest / mean", "Computed prompt tokens, most / mean",
	}}}
	names := proof.ModeNames(r.Sweep.Request.Modes)
	computed := r.byWorker(func(s *api.SweepSpan) map[string]int { return s.UncachedByWorker })
	for i, count := range r.turnsByWorker() {
		if len(count) == 0 {
			continue
		}
		workers, skew := spread(count)
		work := "–"
		if AddIdle(computed[i], count); slices.Max(append(slices.Collect(maps.Values(computed[i])), 0)) > 0 {
			_, most := spread(computed[i])
			work = hundredths(most)
		}
		s.Table.add(names[i], eachWorker(workers), hundredths(skew), work)
	}
	return s
}

// rowsOf returns the rows of the spans that count under a mode of the request, none for one that stands there twice.
func (r *Results) rowsOf(mode int) iter.Seq[*api.BaselineRow] {
	return func(yield func(*api.BaselineRow) bool) {
		modes := r.Sweep.Request.Modes
		for i := range r.Sweep.Spans {
			s := &r.Sweep.Spans[i]
			if slices.Index(modes, s.Mode) == mode && s.Spoiled == "" && s.Row != nil && !yield(s.Row) {
				return
			}
		}
	}
}

// causeNames names the kinds of [api.CauseKinds], in their order.
var causeNames = [len(api.CauseTotals{})]string{
	"Found", "New", "Elsewhere", "Elsewhere, busier", "Evicted", "Remainder", "Unexplained",
}

// hitCauses says what became of the prompt tokens under each arm or mode: means over the spans that count.
func (r *Results) hitCauses() Section {
	if r.Sweep == nil {
		return Section{}
	}
	s := Section{
		Title: "Why the hit rate is what it is", Text: []string{"Shares of the prompt tokens by what became of them: found " +
			"in the worker's cache; new to all workers; computed, but only by other workers, of which one was no busier than " +
			"the chosen one, or all were busier; computed by the worker and evicted since; behind the last whole block; and " +
			"what the model of the caches holds and the worker did not find. They add up to 100 %."},
		Table: &Table{Head: append([]string{sentenceCase(r.side())}, causeNames[:]...)},
	}
	for i, name := range proof.ModeNames(r.Sweep.Request.Modes) {
		var sums [len(api.CauseTotals{})]float64
		spans := 0.
		for row := range r.rowsOf(i) {
			if row.HitCauses == nil {
				continue
			}
			spans++
			for c, kind := range api.CauseKinds {
				sums[c] += row.HitCauses[kind]
			}
		}
		if spans == 0 {
			continue
		}
		row := []string{name}
		for _, sum := range sums {
			row = append(row, api.Percent(sum/spans))
		}
		s.Table.add(row...)
	}
	if len(s.Table.Rows) == 0 {
		return Section{}
	}
	return s
}

// firstTokens divides the mean TTFT under each arm or mode by the engines' own times: means over the spans that count.
func (r *Results) firstTokens() Section {
	if r.Sweep == nil {
		return Section{}
	}
	s := Section{
		Title: "Where the time to first token goes", Text: []string{"Mean TTFT in ms, and its parts by the engines' own " +
			"histograms: router, network and load generator (what was measured, less the engines' TTFT); waiting at the " +
			"engine; prefill of the tokens that were not cached; and what the engines' TTFT has beyond these. An engine " +
			"counts some of them at the end of a request, so that a part may be slightly negative."},
		Table: &Table{Head: []string{sentenceCase(r.side()), "Mean TTFT", "Router", "Queue", "Prefill", "Rest"}},
	}
	for i, name := range proof.ModeNames(r.Sweep.Request.Modes) {
		sums, measured, spans := map[string]float64{}, 0., 0.
		for row := range r.rowsOf(i) {
			if row.FirstToken == nil || row.TTFTMean == nil {
				continue
			}
			spans++
			measured += *row.TTFTMean
			for _, p := range row.FirstToken.Split(*row.TTFTMean) {
				sums[p.Name] += p.Seconds
			}
		}
		if spans == 0 {
			continue
		}
		row := []string{name, tenthsOfMs(measured / spans)}
		for _, part := range []string{"router", "queue", "prefill", "rest"} {
			cell := "–"
			if sum, known := sums[part]; known {
				cell = tenthsOfMs(sum / spans)
			}
			row = append(row, cell)
		}
		s.Table.add(row...)
	}
	if len(s.Table.Rows) == 0 {
		return Section{}
	}
	return s
}

func tenthsOfMs(seconds float64) string { return fmt.Sprintf("%.1f", 1e3*seconds) }

func armLetter(arm string) string {
	if proof.Arm(arm) == proof.ArmPilot {
		return arm
	}
	return strings.ToUpper(arm)
}

// chartedQuantities lists the quantities with a chart.
var chartedQuantities = []struct {
	of    proof.Quantity
	unit  string
	scale float64 // from the quantity's unit to unit
}{
	{proof.QuantityTTFT95, "ms", 1000},
	{proof.QuantityTTFT50, "ms", 1000},
	{proof.QuantityThroughput, "tokens/s", 1},
	{proof.QuantityHitRate, "%", 100},
}

// charts draws the sides over their levels. It draws nothing if no side has two levels.
func (r *Results) charts() (all []chart.Chart) {
	if !slices.ContainsFunc(r.Sides, func(s proof.Side) bool { return len(s.Rows) > 1 }) {
		return nil
	}
	for _, c := range chartedQuantities {
		q := describe(c.of)
		var series []chart.Series
		for j := range r.Sides {
			one := chart.Series{Name: r.Sides[j].Name}
			for k := range r.Sides[j].Rows {
				row := &r.Sides[j].Rows[k]
				v := *q.In(row)
				if v == nil {
					continue
				}
				point := chart.Point{Level: row.Level.Value, Value: c.scale * *v}
				if in := q.IntervalOf(row); in != nil {
					point.Band = &[2]float64{math.Max(0, c.scale*in[0]), c.scale * in[1]}
				}
				one.Points = append(one.Points, point)
			}
			series = append(series, one)
		}
		slo := 0.
		if c.of == proof.QuantityTTFT95 {
			slo = r.SLO.TTFT
		}
		drawn := chart.Levels(q.title, c.unit, c.scale*slo, series...)
		if r.levelHead() == "Rate" {
			drawn.XName = "conversations that begin in a second"
		}
		all = append(all, drawn)
	}
	return all
}
