package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// clusterColumn describes one of the cluster's figures.
type clusterColumn struct {
	field string // name in a row's JSON
	name  string // name in a table
	text  string // name in a sentence
	value func(float64) string
}

// of returns the address of the figure in f.
func (c clusterColumn) of(f *api.ClusterFigures) **float64 {
	return baseline.QuantityOf(c.field).InCluster(f)
}

// clusterColumns lists the cluster's figures in the order of the table. The cell of inflight_spread_min shows
// inflight_spread_max, too.
var clusterColumns = []clusterColumn{
	{"queue_seconds", "Queue time", "queue time", api.Milliseconds},
	{"queue_largest", "Longest queue time", "longest queue time", api.Milliseconds},
	{"queue_second", "Longest on a second worker", "longest on a second worker", api.Milliseconds},
	{"queue_least", "Longest on the last worker", "longest on the last worker", api.Milliseconds},
	{"queue_skew", "Queue skew", "queue skew", times},
	{"waiting", "Waiting requests", "waiting requests", tenths},
	{"engine_ttft_seconds", "Engine TTFT p95", "engine TTFT p95", api.Milliseconds},
	{"engine_ttft_largest", "Engine TTFT max", "engine TTFT max", api.Milliseconds},
	{"inflight_largest", "Most in flight", "most in flight on a worker", whole},
	{"inflight_spread", "In-flight spread", "in-flight spread", tenths},
	{"inflight_spread_min", "In-flight spread, range", "in-flight spread", whole},
	{"inflight_skew", "In-flight skew", "in-flight skew", times},
}

// cell formats the figure for a table. It is empty if the figure is not known.
func (c clusterColumn) cell(f *api.ClusterFigures) string {
	v := *c.of(f)
	switch {
	case v == nil:
		return ""
	case c.field == "inflight_spread_min" && f.InflightSpreadMax != nil:
		return c.value(*v) + " to " + c.value(*f.InflightSpreadMax)
	}
	return c.value(*v)
}

// crossingEvidence lists the evidence that an analysis of a crossing needs. One of the fields is enough.
var crossingEvidence = []struct {
	name   string
	fields []string
}{
	{"longest queue time", []string{"queue_largest"}},
	{"queue skew", []string{"queue_skew"}},
	{"the engine's own TTFT", []string{"engine_ttft_seconds", "engine_ttft_largest"}},
	{"in-flight spread", []string{"inflight_spread", "inflight_spread_min"}},
	{"in-flight skew", []string{"inflight_skew"}},
}

func times(v float64) string { return api.Number(v, 2) + "×" }
func whole(v float64) string { return api.Number(v, 0) }

// crossing returns the section on the levels at which another mode becomes better by TTFT p95, with the cluster's own
// figures.
func (r *Results) crossing() Section {
	s := Section{Title: "Where and why the modes cross"}
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.Withheld == "" && r.Sides[p.A].Mode != r.Sides[p.B].Mode {
			s.Text = append(s.Text, r.crossed(p)...)
		}
	}
	known := slices.DeleteFunc(slices.Clone(clusterColumns), func(c clusterColumn) bool {
		return !r.anyRow(func(row *api.BaselineRow) bool { return *c.of(&row.ClusterFigures) != nil })
	})
	crossed := len(s.Text) > 0
	switch {
	case !crossed: // one mode, or one level
		s.Title = "The cluster's own metrics"
		if len(r.Sides) == 0 || len(known) == 0 && r.Sweep == nil {
			return Section{}
		}
	case len(known) == 0 && r.Sweep == nil:
		s.Text = append(s.Text,
			"The cluster's queues and requests in flight, which could explain why, are not recorded at these levels.")
	}
	if len(known) == 0 {
		if r.Sweep != nil {
			s.Text = append(s.Text, "The cluster reported no metrics that could explain why.")
		}
		return s
	}
	s.Text = append(s.Text, r.aboutFigures(known)...)
	s.Table = r.clusterTable(known)
	return s
}

// sourceVerb returns "reported" for a sweep, whose figures come from the cluster, and "recorded" for baselines.
func (r *Results) sourceVerb() string {
	if r.Sweep != nil {
		return "reported"
	}
	return "recorded"
}

// aboutFigures explains the figures and lists the missing ones.
func (r *Results) aboutFigures(known []clusterColumn) (text []string) {
	about := "The cluster's own metrics, as they were recorded"
	if r.Sweep != nil {
		about = "The cluster's own metrics, sampled once a second while spans counted: means over the spans of a level " +
			"and " + r.side() + ", but of what is longest or most, the largest"
	}
	text = []string{about + ". Skew is the slowest or busiest worker over the workers' mean; spread is the busiest " +
		"minus the least busy worker, in requests."}
	var not []string
	for _, e := range crossingEvidence {
		if !slices.ContainsFunc(known, func(c clusterColumn) bool { return slices.Contains(e.fields, c.field) }) {
			not = append(not, e.name)
		}
	}
	if len(not) > 0 {
		text = append(text, "Not "+r.sourceVerb()+": "+strings.Join(not, ", ")+".")
	}
	return text
}

// clusterTable returns a row for each level and side that has any of the figures, with TTFT p95 and throughput.
func (r *Results) clusterTable(known []clusterColumn) *Table {
	ttft, tokens := describe(proof.QuantityTTFT95), describe(proof.QuantityThroughput)
	g := &Table{Words: []int{1}, Head: []string{
		r.levelHead(), sentenceCase(r.side()), ttft.title, tokens.title + ", " + tokens.label,
	}}
	for _, c := range known {
		g.Head = append(g.Head, c.name)
	}
	type place struct {
		side int
		row  *api.BaselineRow
	}
	var all []place
	for i := range r.Sides {
		for j := range r.Sides[i].Rows {
			if row := &r.Sides[i].Rows[j]; row.ClusterFigures != (api.ClusterFigures{}) {
				all = append(all, place{i, row})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return a.row.Level.Compare(b.row.Level) })
	for _, p := range all {
		cells := []string{
			p.row.Level.String(), r.Sides[p.side].Name, ttft.cell(p.row.TTFT.P95, nil),
			tokens.cell(p.row.OutputTokensPerSecond, nil),
		}
		for _, c := range known {
			cells = append(cells, cmp.Or(c.cell(&p.row.ClusterFigures), "not "+r.sourceVerb()))
		}
		g.add(cells...)
	}
	return g
}

// crossed describes where the better side of a pair changes by TTFT p95, and the cluster's figures there.
func (r *Results) crossed(p *proof.Pair) (text []string) {
	a, b := r.Sides[p.A].Name, r.Sides[p.B].Name
	before, beforeAt := api.Outcome(""), api.Level{}
	var worst, explained *proof.Level // level of the largest disadvantage of b; explained: with figures of both sides
	behind := func(l *proof.Level, than *proof.Level) bool {
		v := *l.Figures[proof.QuantityTTFT95].Advantage
		return v < 0 && (than == nil || v < *than.Figures[proof.QuantityTTFT95].Advantage)
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		f := l.Figures[proof.QuantityTTFT95]
		if f.Outcome != api.OutcomeBetter && f.Outcome != api.OutcomeWorse {
			continue
		}
		if before != "" && f.Outcome != before {
			text = append(text, fmt.Sprintf("By TTFT p95, %s is %s than %s at %v and %s at %v: they cross between the two.",
				b, before, a, beforeAt, f.Outcome, l.Level))
		}
		before, beforeAt = f.Outcome, l.Level
		if behind(l, worst) {
			worst = l
		}
		if r.figuresAt(p, l.Level) != "" && behind(l, explained) {
			explained = l
		}
	}
	switch {
	case len(p.Levels) < 2:
		return nil
	case before == "":
		return []string{fmt.Sprintf("By TTFT p95, no difference between %s and %s is shown at any level, "+
			"so no crossing point can be found.", b, a)}
	case len(text) == 0:
		text = append(text, fmt.Sprintf("By TTFT p95, %s and %s do not cross at these levels: %s is %s wherever a "+
			"difference is shown.", b, a, b, before))
	}
	if explained != nil {
		where := fmt.Sprintf("By TTFT p95, %s is furthest behind at %v. The cluster's own metrics there",
			b, worst.Level)
		if worst != explained {
			where += fmt.Sprintf(" are not %s; at %v", r.sourceVerb(), explained.Level)
		}
		text = append(text, fmt.Sprintf("%s, under %s against %s: %s.", where, b, a, r.figuresAt(p, explained.Level)))
		text = append(text, r.cascade(p, explained)...)
	}
	return text
}

// figuresAt lists the cluster's figures of b and a at a level. It is empty if the sides have none in common.
func (r *Results) figuresAt(p *proof.Pair, level api.Level) string {
	a, b := &r.Sides[p.A].Row(level).ClusterFigures, &r.Sides[p.B].Row(level).ClusterFigures
	var parts []string
	for _, c := range clusterColumns {
		if x, y := c.cell(a), c.cell(b); x != "" && y != "" {
			parts = append(parts, fmt.Sprintf("%s %s against %s", c.text, y, x))
		}
	}
	return strings.Join(parts, "; ")
}

// cascade describes how queues build up under b at a level: a worker gets more requests than its batch holds, its queue
// grows, and that of a second worker follows, while another worker stays free and the mean load is even. It leaves out
// the steps that the figures do not show.
func (r *Results) cascade(p *proof.Pair, l *proof.Level) (text []string) {
	a, b := &r.Sides[p.A], &r.Sides[p.B]
	x, y := &a.Row(l.Level).ClusterFigures, &b.Row(l.Level).ClusterFigures
	if x.QueueLargest == nil || y.QueueLargest == nil || *y.QueueLargest <= *x.QueueLargest {
		return nil
	}
	if steps := cascadeSteps(x, y, &b.Deployment); len(steps) > 0 {
		text = append(text, fmt.Sprintf("Under %s, queues built up at %v: %s; under %s no queue time was above %s.",
			b.Name, l.Level, strings.Join(steps, "; "), a.Name, api.Milliseconds(*x.QueueLargest)))
	}
	if x.InflightSkew != nil && y.InflightSkew != nil && *y.InflightSkew <= *x.InflightSkew {
		text = append(text, fmt.Sprintf("These are moments: on average, requests are spread no less evenly under %s, "+
			"with an in-flight skew of %s against %s.", b.Name, times(*y.InflightSkew), times(*x.InflightSkew)))
	}
	if f := l.Figures[proof.QuantityThroughput]; f.Outcome == api.OutcomeBetter {
		text = append(text, fmt.Sprintf("Throughput is better under %s even there, by %s.",
			b.Name, describe(proof.QuantityThroughput).advantage(*f.Advantage)))
	}
	return text
}

// cascadeSteps lists, in the order of events, what y shows of queues that built up and x does not have.
func cascadeSteps(x, y *api.ClusterFigures, d *api.Deployment) (steps []string) {
	add := func(format string, values ...any) { steps = append(steps, fmt.Sprintf(format, values...)) }
	if y.InflightMean != nil && y.InflightThreshold != nil {
		add("a worker had about %.0f requests in flight on average, and queues form from about %.0f",
			*y.InflightMean, *y.InflightThreshold)
	}
	if batch := float64(d.MaxBatchSize); y.InflightLargest != nil && batch > 0 && *y.InflightLargest > batch {
		add("the busiest worker had up to %s requests in flight, more than its batch of %s", whole(*y.InflightLargest),
			whole(batch))
	}
	if y.QueueSecond != nil && *y.QueueSecond > *x.QueueLargest {
		from := ""
		if y.QueueBefore != nil {
			from = "from " + api.Milliseconds(*y.QueueBefore) + " "
		}
		add("queue times grew on more than one worker, %sto %s and %s", from, api.Milliseconds(*y.QueueLargest),
			api.Milliseconds(*y.QueueSecond))
	}
	switch {
	case y.QueueLeast != nil && *y.QueueLeast <= *x.QueueLargest:
		add("on the last worker they stayed within %s", api.Milliseconds(*y.QueueLeast))
	case y.QueueWorkers != nil && int(*y.QueueWorkers) < d.Workers:
		add("on %d of %s they did not grow", d.Workers-int(*y.QueueWorkers), plural(d.Workers, "worker"))
	}
	if y.RecoveryMin != nil && y.RecoveryMax != nil {
		add("after %.0f to %.0f s the queues were gone", *y.RecoveryMin, *y.RecoveryMax)
	}
	return steps
}
