package twin

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
)

// shareOfTime limits the cost of the figures: they are computed at most once a second, and less
// often if computing them took more than this share of the time.
const shareOfTime = .02

// Desk arranges the modes of two joined lanes, compares the lanes by the turns that they have in common, rates the
// evidence of the comparison, and runs showcases. It is safe for concurrent use once the lanes are joined.
// SharedWorkers and TurnEnded, which are options of the lanes, may be called before.
type Desk struct {
	ctx    context.Context
	log    *slog.Logger
	show   show
	lanes  [2]*lane.Lane // main and twin; written before joined is set
	joined atomic.Bool

	// seen guards the next four fields. No lane is called while it is held, since a lane calls SharedWorkers with its
	// locks held.
	seen   sync.Mutex
	apart  [2]api.ModeState // the modes in the arrangement api.TwinApart; zero: not known yet
	served [2]served
	shared []string // ids of workers that serve both, or else UUIDs of GPUs
	// unnamed is true if both lanes run, and neither answers nor metrics name a worker of one of
	// them, so that it is not known whether the same workers serve both.
	unnamed bool

	mu       sync.Mutex
	matcher  matcher
	likeness proof.Likeness // of the time in one mode that is under way
	verdict  verdict
	figures  figures
}

// verdict is the result of the last comparison with the same mode on both lanes.
type verdict struct {
	evidence api.TwinEvidence // api.EvidenceNone: no result yet
	mode     api.ModeState
	level    api.Level
	largest  proof.Paired
	targets  [2]identity // the targets that it applies to
}

// identity identifies a target. Evidence is void if it changes.
type identity struct {
	api.TargetID
	gpu     string
	workers int
}

// figures are the differences between the lanes at a time.
type figures struct {
	until       time.Time // earliest time of the next computation
	pairs       int       // number of pairs of the current arrangement that they were computed from
	differences []proof.Paired
	due         *time.Duration // see [proof.Pairs.Due]; nil: not known

	bothArrangements bool // they include the pairs of the swapped arrangement
}

// NewDesk returns the desk of lanes that are joined later. The end of ctx ends everything that it
// starts.
func NewDesk(ctx context.Context, log *slog.Logger) *Desk {
	d := &Desk{ctx: ctx, log: log, verdict: verdict{evidence: api.EvidenceNone}}
	d.matcher.begin(setting{})
	return d
}

// TurnEnded records every ended turn of either lane; see Ended in [lane.Options]. A turn of a resumed run may end
// before the lanes are joined. It makes no pair.
func (d *Desk) TurnEnded(t *workload.Turn) {
	side := 0
	if t.Lane == api.TwinLane {
		side = 1
	}
	d.serves(side, t)
	if !t.Counted || t.Status != api.TurnOK || !d.joined.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Step != d.matcher.steps[side] {
		d.renew()
	}
	if t.Step != d.matcher.steps[side] || !d.matcher.add(side, t) {
		return
	}
	if m := &d.matcher; m.modes[0] == m.modes[1] {
		evidence, largest := d.likeness.Look(m.pairs)
		if evidence != api.EvidenceNone {
			d.verdict = verdict{evidence, m.modes[0], m.level, largest, d.targets()}
			d.log.Info("two lanes in one mode were compared",
				"evidence", evidence, "mode", m.modes[0].Mode, "level", m.level)
		}
	}
}

// renew reads the states of the lanes, and returns them. If steps or modes have changed, pairs are
// counted anew. The lock is held.
func (d *Desk) renew() [2]api.State {
	states := d.states()
	s := setting{
		steps: [2]int64{states[0].Step.ID, states[1].Step.ID},
		modes: [2]api.ModeState{states[0].InMode(), states[1].InMode()},
		level: states[0].Concurrency.Target, shape: states[0].Shape,
	}
	if s.steps != d.matcher.steps || s.modes != d.matcher.modes {
		d.matcher.begin(s)
		d.likeness, d.figures = proof.Likeness{}, figures{}
	}
	return states
}

// targets returns the identities of both targets.
func (d *Desk) targets() (all [2]identity) {
	for i, l := range d.lanes {
		_, id, deployment := l.Describe(api.Level{})
		all[i] = identity{id, deployment.GPU, deployment.Workers}
	}
	return all
}

// other reports whether a known property differs from that of now.
func (t identity) other(now identity) bool {
	differs := func(a, b string) bool { return a != "" && b != "" && a != b }
	return t.URL != now.URL || differs(t.Model, now.Model) || differs(t.gpu, now.gpu) ||
		t.workers != 0 && now.workers != 0 && t.workers != now.workers
}

// Twin returns the comparison of the lanes. Its figures are at most a second old, or older if
// computing them takes long.
func (d *Desk) Twin() (api.Twin, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := d.renew()
	arranged, shared := d.arranged(states)
	f := d.current(time.Now())
	t := api.Twin{
		A: side(d.lanes[0], states[0]), B: side(d.lanes[1], states[1]), Arranged: arranged, Since: since(states),
		Pairs: d.matcher.pairs.N(), Unpaired: d.matcher.left(), Evidence: api.EvidenceShared, SharedWorkers: shared,
		Showcase: d.show.view(),
	}
	for i := range f.differences {
		t.Metrics = append(t.Metrics, f.differences[i].API())
	}
	notes := d.doubts()
	if len(shared) == 0 {
		var note string
		t.Evidence, note = d.evidence(t.Arranged, f.bothArrangements)
		if note != "" {
			notes = append(notes, note)
		}
		if t.Evidence == api.EvidenceSwapped {
			t.Pairs += d.matcher.other.N()
		}
	}
	t.Caution = caution(t.Evidence, t.Pairs > 0, notes)
	t.Headline = headline(&t, states, d.problems(), d.timesLeft(f))
	return t, nil
}

// side returns a lane's part of the comparison.
func side(l *lane.Lane, s api.State) api.TwinSide {
	return api.TwinSide{Lane: l.Name(), Target: l.Address(), Arm: s.Arm, Mode: s.Mode, Speculation: s.Speculation}
}

// timesLeft returns the estimated times until both lanes have settled, and until the result is certain.
func (d *Desk) timesLeft(f figures) timesLeft {
	return timesLeft{max(d.lanes[0].SettlesIn(), d.lanes[1].SettlesIn()), f.due}
}

// since returns the time from which turns can count on both lanes; nil while one of them settles.
func since(states [2]api.State) (at *time.Time) {
	for _, s := range states {
		switch settled := s.Step.Settled; {
		case settled == nil:
			return nil
		case at == nil || settled.After(*at):
			at = settled
		}
	}
	return at
}

// current returns the figures: of both arrangements if both have intervals. The lock is held.
func (d *Desk) current(now time.Time) figures {
	n := d.matcher.pairs.N()
	if d.figures.differences != nil && (n == d.figures.pairs || now.Before(d.figures.until)) {
		return d.figures
	}
	f := figures{pairs: n, differences: d.matcher.pairs.Differences()}
	if due, ok := d.matcher.pairs.Due(f.differences); ok {
		f.due = &due
	}
	if d.matcher.other != nil && proof.Known(f.differences) {
		if other := d.matcher.other.Differences(); proof.Known(other) {
			f.differences, f.bothArrangements, f.due = proof.HalfAndHalf(f.differences, other), true, nil
		}
	}
	f.until = now.Add(max(time.Second, time.Duration(float64(time.Since(now))/shareOfTime)))
	d.figures = f
	return f
}

// evidence rates the figures, and returns a note on the rating. The lock is held.
func (d *Desk) evidence(arranged api.TwinArrangement, bothArrangements bool) (api.TwinEvidence, string) {
	if bothArrangements {
		return api.EvidenceSwapped, ""
	}
	v := &d.verdict
	if v.evidence != api.EvidenceNone {
		for i, now := range d.targets() {
			if v.targets[i].other(now) {
				*v = verdict{evidence: api.EvidenceNone}
				break
			}
		}
	}
	var notes []string
	if arranged == api.TwinSame &&
		(v.evidence == api.EvidenceNone || v.mode != d.matcher.modes[0] || v.level != d.matcher.level) {
		notes = append(notes, fmt.Sprintf("both lanes run %s to check whether the clusters differ; no result yet",
			d.matcher.modes[0].Name()))
	}
	if arranged == api.TwinSwapped || d.matcher.other != nil {
		notes = append(notes, "the modes are swapped; results cover only one half until the other has as many")
	}
	switch {
	case v.evidence == api.EvidenceDiffer:
		notes = append(notes, fmt.Sprintf(
			"the clusters differ in more than their modes: with %s on both at %s, %s was %s on lane %s",
			v.mode.Name(), v.level.InWords(), nameOf(v.largest.Metric), amount(&v.largest), api.TwinLane))
	case v.evidence == api.EvidenceAlike && v.level != d.matcher.level:
		notes = append(notes, fmt.Sprintf(
			"with %s on both, no difference between the clusters was found at %s; not checked at %v",
			v.mode.Name(), v.level.InWords(), d.matcher.level))
	}
	return v.evidence, strings.Join(notes, "; ")
}

// nameOf returns the name of a metric for use in a sentence.
func nameOf(m proof.Metric) string {
	switch m {
	case proof.TTFTMean:
		return "mean TTFT"
	case proof.TPOTMean:
		return "mean TPOT"
	case proof.LatencyMean:
		return "mean latency"
	}
	return "the hit rate"
}

// amount writes a difference: in points for shares, else in percent of A, or in ms if A is 0.
func amount(p *proof.Paired) string {
	var difference float64
	var unit string
	switch {
	case p.Metric.Share():
		difference, unit = 100*(p.B-p.A), " points"
	case p.A == 0:
		difference, unit = 1000*p.B, " ms"
	default:
		difference, unit = 100*(p.B/p.A-1), " %"
	}
	size := api.Number(math.Abs(difference), 1)
	switch {
	case api.IsZero(size):
		return size + unit
	case difference < 0:
		return size + unit + " lower"
	}
	return size + unit + " higher"
}
