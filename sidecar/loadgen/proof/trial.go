package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
)

// Plan is what a trial asks, settled before its first span.
type Plan struct {
	A           api.ModeState `json:"a"` // what B is compared with
	B           api.ModeState `json:"b"` // may be A: such a trial tests the method on one's own cluster
	Concurrency int           `json:"concurrency"`
	Primary     Metric        `json:"primary"` // decides
	// Smallest is the smallest difference of interest: relative for times and rates, in
	// points for shares.
	Smallest float64 `json:"smallest"`
	Seconds  float64 `json:"seconds"`  // that a span counts at least
	MaxTime  float64 `json:"max_time"` // seconds, of all spans with their warm-up; no pair is begun that would take longer
	SLO      api.SLO `json:"slo"`
	Seed     uint64  `json:"seed,string"` // of the order and of the draws
	// Together runs the two arms of a pair at the same time, on two targets: the order of a
	// pair says which of them has which mode. There is no pilot then; the warm-up of the first
	// pair is one.
	Together bool `json:"together,omitempty"`
}

// DefaultPlan compares TTFT p95 for an hour at most, with 5 % as the smallest
// difference of interest.
func DefaultPlan(a, b api.ModeState, concurrency int) Plan {
	return Plan{
		A: a, B: b, Concurrency: concurrency, Primary: TTFT95, Smallest: .05, Seconds: 60, MaxTime: 3600,
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Seed: 1,
	}
}

// Validate says what no trial can ask: nil, or an *[api.FieldError].
func (p Plan) Validate() error {
	switch {
	case !slices.Contains(api.Modes, p.A.Mode) || p.A.Mode == api.ModeUnknown:
		return api.Refuse("a.mode", p.A.Mode, "kv, round_robin or least_loaded")
	case !slices.Contains(api.Modes, p.B.Mode) || p.B.Mode == api.ModeUnknown:
		return api.Refuse("b.mode", p.B.Mode, "kv, round_robin or least_loaded")
	case p.Concurrency < 1:
		return api.Refuse("concurrency", p.Concurrency, "1 or more")
	case !p.Primary.known():
		return api.Refuse("primary", p.Primary, metricNames())
	case !(p.Smallest >= .001 && p.Smallest <= .5):
		return api.Refuse("smallest", p.Smallest, ".001 to .5")
	case !(p.Seconds >= 1 && p.Seconds <= maxSpan):
		return api.Refuse("seconds", p.Seconds, fmt.Sprintf("1 to %d", maxSpan))
	case !(p.MaxTime >= p.Seconds && p.MaxTime <= maxTrial):
		return api.Refuse("max_time", p.MaxTime, fmt.Sprintf("seconds to %d", maxTrial))
	case !(p.SLO.TTFT > 0):
		return api.Refuse("slo.ttft", p.SLO.TTFT, "more than 0")
	case !(p.SLO.TPOT > 0):
		return api.Refuse("slo.tpot", p.SLO.TPOT, "more than 0")
	}
	return nil
}

const maxTrial = 7 * 24 * 3600 // seconds

// Arm is one of the two sides of a trial.
type Arm string

// The arms. A trial's first span is the pilot: it never counts for a mode, but tells how
// long spans must be and, warm-up and all, how much they scatter.
const (
	ArmPilot Arm = "pilot"
	ArmA     Arm = "a"
	ArmB     Arm = "b"
)

// Span is one to run next: on cold caches, with the workload begun anew.
type Span struct {
	Number  int           `json:"number"`        // from 0, the pilot; the same when it is repeated
	Attempt int           `json:"attempt"`       // 1, or 2 where the first was spoiled
	Arm     Arm           `json:"arm,omitempty"` // of a trial
	Mode    api.ModeState `json:"mode"`
	// Concurrency is how many conversations it keeps in progress.
	Concurrency int    `json:"concurrency"`
	Seed        uint64 `json:"seed,string"` // of the workload's draws, the same for the spans that are compared
	// WarmUp is how many conversations, from the first on, must have ended before it
	// counts; none for the pilot, whose figures are for the forecast alone.
	WarmUp int `json:"warm_up"`
	// Midway is how many conversations, from the first on, are held from their midst, so that those
	// that begin together do not end together, over and over; see [draw.Shape].
	Midway int `json:"midway,omitempty"`
	// WarmUpSeconds is for how long it must have been at its concurrency before it counts.
	WarmUpSeconds float64 `json:"warm_up_seconds,omitempty"`
	// Seconds is for how long it then counts at least; see [Span.Least].
	Seconds float64 `json:"seconds"`
	// Latencies is for how many of its own median latencies it counts at least, where those
	// are to be more than [Latencies].
	Latencies float64 `json:"latencies,omitempty"`
}

// Result is a span that has been run.
type Result struct {
	Number int
	// Elapsed is what it took with switch and warm-up, in seconds.
	Elapsed float64
	// Spoiled says why it does not count: too many errors, the load generator's own
	// load, a switch that failed. Such a span is repeated once; if that is spoiled too,
	// its pair is left out. Empty: it counts.
	Spoiled string
	// Errors are the most that the load generator itself may be wrong by, in seconds.
	Errors map[Metric]float64
	Recording
}

// Done is what a trial keeps of a span.
type Done struct {
	Span
	Elapsed float64              `json:"elapsed"`
	Counted float64              `json:"counted"` // seconds
	Latency float64              `json:"latency"` // median, in seconds
	Turns   int                  `json:"turns"`   // that had their first token while it counted
	Spoiled string               `json:"spoiled,omitempty"`
	Metrics map[Metric]Sectioned `json:"metrics,omitempty"`
}

// Trial decides whether B is better than A at one concurrency. It is a state machine:
// run what [Trial.Next] says, hand it to [Trial.Add], see [Trial.State]. Its JSON is
// all of its state, so that a trial goes on with its next unfinished span whatever
// happened to the process.
//
// Spans of both modes take turns in pairs, in blocks of two: ABBA or BAAB, by the
// seed, so that what grows evenly over a block weighs the same on both. The two arms
// of a pair hold the same conversations.
//
// After each pair, the difference of the arms is the mean of the pairs' differences. Its
// variance comes from two sources. Inside spans, sections tell how well a span's figure is
// known (see [Sectioned]); to that [restart] is added. Between pairs, their scatter tells
// whatever sections cannot; it takes the place of the former where it is larger, and where
// it is larger than chance explains (F test at 5 %), with its own degrees of freedom.
//
// The intervals hold over all looks together: the k-th spends α/(k(k+1)), which adds up to α
// over as many looks as there may ever be. That is Bonferroni's inequality: it asks nothing
// of how the looks depend on each other, and so holds for t as for normal distributions,
// unlike the boundaries of O'Brien and Fleming or Pocock, which assume a known variance; Lan
// and DeMets, "Discrete Sequential Boundaries for Clinical Trials", Biometrika 70 (1983), is
// the source of spending. Half of the error is spent on the first look, since most
// differences that matter are plain by then. The metrics that do not decide share one
// further α equally (Bonferroni, over their whole sequences).
type Trial struct {
	Plan Plan   `json:"plan"`
	Done []Done `json:"done"`
}

// restart is by how much a metric may differ from one span to the next of the same mode
// beyond what sections tell, as a standard deviation: 1 %, or one point. A cluster
// does not come back from a change of mode exactly as it was, and one pair alone
// could not show that. It is an assumption; pairs that scatter more overrule it.
const restart = .01

// New begins a trial. The error is an *[api.FieldError].
func New(p Plan) (*Trial, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Trial{Plan: p}, nil
}

// Next is the span to run; false once the trial is over.
func (t *Trial) Next() (Span, bool) {
	number, attempt := 0, 1
	if t.Plan.Together {
		number = 1
	}
	if len(t.Done) > 0 {
		if t.verdict().Over() {
			return Span{}, false
		}
		number, attempt = t.after(t.Done[len(t.Done)-1])
	}
	return t.span(number, attempt), true
}

// Beside is the span that runs at the same time as that of [Trial.Next], on the other target;
// false where the arms run in turns, or half of a pair has been added.
func (t *Trial) Beside() (Span, bool) {
	s, ok := t.Next()
	if !ok || !t.Plan.Together || s.Number%2 == 0 {
		return Span{}, false
	}
	return t.span(s.Number+1, s.Attempt), true
}

// span is that of a number.
func (t *Trial) span(number, attempt int) Span {
	s := Span{Number: number, Attempt: attempt, Arm: ArmPilot, Concurrency: t.Plan.Concurrency, Midway: t.Plan.Concurrency, Seconds: t.Plan.Seconds}
	if number > 0 {
		s.Arm = t.arm(number)
		s.Seconds, s.WarmUp = max(s.Seconds, planned*t.latency()), t.Plan.Concurrency
	}
	if t.Plan.Together { // without a pilot, none of the first pair is known before
		s.Latencies = planned
	}
	s.Mode = t.Plan.A
	if s.Arm == ArmB || s.Arm == ArmPilot && t.arm(1) == ArmB {
		s.Mode = t.Plan.B
	}
	s.Seed = rand.New(rand.NewPCG(t.Plan.Seed, uint64(pairOf(number)+1))).Uint64()
	return s
}

// after says which span follows on another, and which attempt that is.
func (t *Trial) after(last Done) (number, attempt int) {
	switch {
	case t.Plan.Together && last.Number%2 == 1: // its other half, whatever became of it
		return last.Number + 1, last.Attempt
	case t.Plan.Together && last.Attempt == 1 && (last.Spoiled != "" || t.Done[len(t.Done)-2].Spoiled != ""):
		return last.Number - 1, 2 // what ran at the same time is repeated at the same time
	case t.Plan.Together || last.Spoiled == "":
		return last.Number + 1, 1
	case last.Attempt == 1:
		return last.Number, 2
	case last.Number == 0: // without a pilot, the first span's own latency tells its length
		return 1, 1
	}
	return 2*pairOf(last.Number) + 3, 1 // the other arm would have no counterpart
}

// pairOf is the pair of a span, from 0; −1 is the pilot.
func pairOf(number int) int { return (number+1)/2 - 1 }

// arm is which arm a span is on.
func (t *Trial) arm(number int) Arm {
	pair := pairOf(number)
	coin := rand.New(rand.NewPCG(t.Plan.Seed, 1<<63|uint64(pair/2))).IntN(2)
	if (coin+pair+number)%2 == 0 {
		return ArmA
	}
	return ArmB
}

// latency is the longest median latency of the spans so far.
func (t *Trial) latency() (longest float64) {
	for i := range t.Done {
		longest = max(longest, t.Done[i].Latency)
	}
	return longest
}

// Add takes in the result of the span that [Trial.Next] gave. What cannot be that
// span's result gives an *[api.FieldError] and changes nothing.
func (t *Trial) Add(r Result) error {
	s, ok := t.Next()
	if err := r.checkFor(s, ok, "trial"); err != nil {
		return err
	}
	t.Done = append(t.Done, s.done(&r, t.Plan.SLO, t.Plan.Primary))
	return nil
}

// Spoiled says why the span that was added last does not count; empty: it does, or there is none.
func (t *Trial) Spoiled() string { return lastSpoiled(t.Done) }

func lastSpoiled(all []Done) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Spoiled
}

// checkFor says why a result is not that of the next span of what is asked for; more is
// false once that is over.
func (r *Result) checkFor(next Span, more bool, what string) error {
	switch {
	case !more:
		return api.Refuse("number", r.Number, "none: the "+what+" is over")
	case r.Number != next.Number:
		return api.Refuse("number", r.Number, fmt.Sprintf("%d, the next one", next.Number))
	case !(r.Elapsed > 0 && r.Elapsed <= maxTrial):
		return api.Refuse("elapsed", r.Elapsed, fmt.Sprintf("more than 0, up to %d", maxTrial))
	case r.Spoiled != "":
		return nil
	}
	return r.validate()
}

// done is what is kept of a span that has been run. Without one of the metrics that it is
// needed for, it is spoiled.
func (s Span) done(r *Result, slo api.SLO, needed ...Metric) Done {
	d := Done{Span: s, Elapsed: r.Elapsed, Spoiled: r.Spoiled}
	if r.Spoiled != "" {
		return d
	}
	d.Counted, d.Latency = r.Until-r.CountedFrom, r.medianLatency()
	d.Metrics = r.section(r.sections(), slo)
	for m, e := range r.Errors {
		if s, ok := d.Metrics[m]; ok {
			s.Error = -math.Log1p(-min(e/m.unscaled(s.Whole), tooLarge))
			d.Metrics[m] = s
		}
	}
	whole, _ := r.cut(1, slo)
	d.Turns = len(whole.ttft)
	for _, m := range needed {
		if _, ok := d.Metrics[m]; !ok && d.Spoiled == "" {
			d.Spoiled = fmt.Sprintf("%s is not known in every section of it", m)
		}
	}
	return d
}

// tooLarge is the share of a figure that may be the load generator's own error; a span with
// more is spoiled by who runs it.
const tooLarge = .5

// pair is two spans that are compared.
type pair struct{ a, b *Done }

// pairs are those that are whole.
func (t *Trial) pairs() (all []pair) {
	open := map[int]pair{}
	for i := range t.Done {
		d := &t.Done[i]
		if d.Number == 0 || d.Spoiled != "" {
			continue
		}
		p := open[pairOf(d.Number)]
		if t.Plan.Together && d.Number%2 == 1 {
			p = pair{} // half of an attempt before is no counterpart
		}
		if d.Arm == ArmA {
			p.a = d
		} else {
			p.b = d
		}
		if open[pairOf(d.Number)] = p; p.a != nil && p.b != nil {
			all = append(all, p)
		}
	}
	return all
}

// look is what the pairs tell of one metric, on the scale of differences.
type look struct {
	pairs    int
	a, b     float64 // means of the arms
	errA     float64 // means of their errors
	errB     float64
	variance float64 // of a pair's difference
	df       float64
	basis    Basis
}

// look computes what some pairs tell; false where not all of them know the metric.
func lookAt(m Metric, pairs []pair) (l look, ok bool) {
	var as, bs []Sectioned
	var differences []float64
	for _, p := range pairs {
		a, knownA := p.a.Metrics[m]
		b, knownB := p.b.Metrics[m]
		if !knownA || !knownB {
			return l, false
		}
		as, bs = append(as, a), append(bs, b)
		differences = append(differences, b.Whole-a.Whole)
		l.a += a.Whole / float64(len(pairs))
		l.b += b.Whole / float64(len(pairs))
		l.errA += a.Error / float64(len(pairs))
		l.errB += b.Error / float64(len(pairs))
	}
	if m == TPOT95 { // either end of it may be late
		l.errA += l.errB
		l.errB = l.errA
	}
	l.pairs = len(pairs)
	va, dfa := within(as)
	vb, dfb := within(bs)
	// Degrees of freedom of a sum of variances: Welch, Biometrika 34 (1947), 28–35.
	df := dfa + dfb
	if q := va*va/dfa + vb*vb/dfb; q > 0 {
		df = (va + vb) * (va + vb) / q
	}
	l.scattering(differences, va+vb+2*restart*restart, df)
	return l, true
}

// scattering sets the variance to that by sections, or to that between values where they
// scatter more.
func (l *look) scattering(values []float64, variance, df float64) {
	l.variance, l.df, l.basis = variance, df, BasisSections
	if between := float64(len(values) - 1); between > 0 {
		scatter := stat.Variance(values, nil)
		if scatter > variance*(distuv.F{D1: between, D2: df}).Quantile(1-alpha) {
			l.df, l.basis = between, BasisPairs
		}
		l.variance = max(variance, scatter)
	}
}

// within is the variance of a span's value by its sections, over the spans of one arm.
func within(spans []Sectioned) (variance, df float64) {
	for _, s := range spans {
		variance += s.variance() / float64(len(spans))
		df += s.df()
	}
	return variance * inflation(spans), df
}

// half is half the width of the interval at the k-th look, after as many pairs.
func half(variance, df float64, k int, alpha float64) float64 {
	n := float64(k)
	return student(alpha/(n*(n+1)), df) * math.Sqrt(variance/n)
}
