package twin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
)

// shareOfTime bounds what the figures cost: they are computed once a second at most, and
// less often where that would take more than this share of the time.
const shareOfTime = .02

// Desk compares the lanes of a [Pair] by the turns that they have in common, says what the
// comparison is worth, and holds showcases. It is safe for concurrent use once the lanes are
// joined.
type Desk struct {
	*Pair
	ctx  context.Context
	log  *slog.Logger
	show show

	mu       sync.Mutex
	matcher  matcher
	likeness proof.Likeness // of the span in one mode under way
	verdict  verdict
	figures  figures
}

// verdict is what a span with the same mode on both lanes showed.
type verdict struct {
	evidence    api.TwinEvidence // none: nothing yet
	mode        api.ModeState
	concurrency int
	largest     proof.Paired
	targets     [2]identity // that it holds for
}

// identity is what a target is known by: another one makes evidence void.
type identity struct {
	api.TargetID
	gpu     string
	workers int
}

// figures are those of the pairs, as of a moment.
type figures struct {
	until time.Time // they are not computed again before
	pairs int       // that they were computed from, with those of the other arrangement
	of    []proof.Paired
	half  bool // they are those of both arrangements
}

// NewDesk makes the desk of a pair, before its lanes are joined. ctx ends all that it starts.
func NewDesk(ctx context.Context, p *Pair, log *slog.Logger) *Desk {
	d := &Desk{Pair: p, ctx: ctx, log: log, verdict: verdict{evidence: api.EvidenceNone}}
	d.matcher.begin(setting{})
	return d
}

// Heard takes in every ended turn of either lane, in the place of [Pair.Heard]. A turn of a run
// that the lanes took over may end before they are joined; it makes no pair.
func (d *Desk) TurnEnded(t lane.EndedTurn) {
	d.Pair.TurnEnded(t)
	if !t.Counted || t.Status != api.TurnOK || !d.joined.Load() {
		return
	}
	side := 0
	if t.Lane == api.TwinLane {
		side = 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Step != d.matcher.steps[side] {
		d.renew()
	}
	if t.Step != d.matcher.steps[side] || !d.matcher.add(side, &t) {
		return
	}
	if m := &d.matcher; m.modes[0] == m.modes[1] {
		evidence, largest := d.likeness.Look(m.pairs)
		if evidence != api.EvidenceNone {
			d.verdict = verdict{evidence, m.modes[0], m.concurrency, largest, d.targets()}
			d.log.Info(
				"two lanes in one mode were compared",
				"evidence",
				evidence,
				"mode",
				m.modes[0].Mode,
				"conversations",
				m.concurrency,
			)
		}
	}
}

// renew takes note of the steps that the lanes are in; in others than before, pairs are
// counted anew. It gives the states. The lock is held.
func (d *Desk) renew() [2]api.State {
	states := [2]api.State{d.lanes[0].State(), d.lanes[1].State()}
	s := setting{
		steps: [2]int64{states[0].Step.ID, states[1].Step.ID}, modes: [2]api.ModeState{modeOf(states[0]), modeOf(states[1])},
		concurrency: states[0].Concurrency.Target, shape: states[0].Shape,
	}
	if s.steps != d.matcher.steps || s.modes != d.matcher.modes {
		d.matcher.begin(s)
		d.likeness, d.figures = proof.Likeness{}, figures{}
	}
	return states
}

// targets are what the lanes send to.
func (d *Desk) targets() (all [2]identity) {
	for i, l := range d.lanes {
		_, id, deployment := l.Describe()
		all[i] = identity{id, deployment.GPU, deployment.Workers}
	}
	return all
}

// other says whether a target is another one now, as far as both are known.
func (t identity) other(now identity) bool {
	differs := func(a, b string) bool { return a != "" && b != "" && a != b }
	return t.URL != now.URL || differs(t.Model, now.Model) || differs(t.gpu, now.gpu) ||
		t.workers != 0 && now.workers != 0 && t.workers != now.workers
}

// Twin compares the lanes. Its figures are at most a second old, or older where they take
// long.
func (d *Desk) Twin() (api.Twin, error) {
	t, err := d.Pair.Twin()
	if err != nil {
		return t, err
	}
	t.Showcase = d.show.view()
	d.mu.Lock()
	defer d.mu.Unlock()
	states := d.renew()
	t.Since = since(states)
	f := d.current(time.Now())
	t.Pairs, t.Unpaired = d.matcher.pairs.N(), d.matcher.left()
	for i := range f.of {
		t.Metrics = append(t.Metrics, f.of[i].API())
	}
	notes := d.doubts()
	if t.Evidence != api.EvidenceShared {
		var note string
		t.Evidence, note = d.evidence(t.Arranged, f.half)
		if note != "" {
			notes = append(notes, note)
		}
		if t.Evidence == api.EvidenceSwapped {
			t.Pairs += d.matcher.other.N()
		}
	}
	t.Caution = caution(t.Evidence, notes)
	return t, nil
}

// since is from when on turns can count on both lanes; nil while one of them settles.
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

// current are the figures: of both arrangements where both have an interval. The lock is held.
func (d *Desk) current(now time.Time) figures {
	n := d.matcher.pairs.N()
	if d.figures.of != nil && (n == d.figures.pairs || now.Before(d.figures.until)) {
		return d.figures
	}
	f := figures{pairs: n, of: d.matcher.pairs.Differences()}
	if d.matcher.other != nil && proof.Known(f.of) {
		if other := d.matcher.other.Differences(); proof.Known(other) {
			f.of, f.half = proof.HalfAndHalf(f.of, other), true
		}
	}
	f.until = now.Add(max(time.Second, time.Duration(float64(time.Since(now))/shareOfTime)))
	d.figures = f
	return f
}

// evidence says what the figures are worth, with what is to be said of it beside. The lock
// is held.
func (d *Desk) evidence(arranged api.TwinArrangement, half bool) (api.TwinEvidence, string) {
	if half {
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
		(v.evidence == api.EvidenceNone || v.mode != d.matcher.modes[0] || v.concurrency != d.matcher.concurrency) {
		notes = append(
			notes,
			fmt.Sprintf("both lanes run %s to check whether the clusters differ; no result yet", d.matcher.modes[0].Name()),
		)
	}
	if arranged == api.TwinSwapped || d.matcher.other != nil {
		notes = append(notes, "the modes are swapped; results cover only one half until the other has as many")
	}
	switch {
	case v.evidence == api.EvidenceDiffer:
		notes = append(
			notes,
			fmt.Sprintf(
				"the clusters differ in more than their modes: with %s on both at %d conversations, %s was %s on lane %s",
				v.mode.Name(),
				v.concurrency,
				nameOf(v.largest.Metric),
				amount(&v.largest),
				api.TwinLane,
			),
		)
	case v.evidence == api.EvidenceAlike && v.concurrency != d.matcher.concurrency:
		notes = append(
			notes,
			fmt.Sprintf(
				"with %s on both, no difference between the clusters was found at %d conversations; not checked at %d",
				v.mode.Name(),
				v.concurrency,
				d.matcher.concurrency,
			),
		)
	}
	return v.evidence, strings.Join(notes, "; ")
}

// nameOf is a metric in the middle of a sentence.
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

// amount is a difference in words, relative to A for times, unless A is 0.
func amount(p *proof.Paired) string {
	by, unit := 100*(p.B-p.A), " points"
	switch {
	case p.Metric.Share():
	case p.A == 0:
		by, unit = 1000*p.B, " ms"
	default:
		by, unit = 100*(p.B/p.A-1), " %"
	}
	if by < 0 {
		return fmt.Sprintf("%.1f%s lower", -by, unit)
	}
	return fmt.Sprintf("%.1f%s higher", by, unit)
}
