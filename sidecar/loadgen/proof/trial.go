package proof

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/stats"
)

// Plan is what a trial asks, settled before its first span.
type Plan struct {
	A api.ModeState `json:"a"` // what B is compared with
	B api.ModeState `json:"b"` // may be A, of two: such a trial tests the method on one's own cluster
	// More are the other arms of a trial of more than two, in which each is compared with each.
	More     []api.ModeState   `json:"more,omitempty"`
	Question api.TrialQuestion `json:"question,omitempty"` // of more than two arms; empty: the best one
	Level    api.Level         `json:"concurrency"`
	Primary  Metric            `json:"primary"` // decides
	// Smallest is the smallest difference of interest: relative for times and rates, in points for shares.
	Smallest float64 `json:"smallest"`
	Seconds  float64 `json:"seconds"`  // that a span counts at least; two that follow each other in one mode run as one
	MaxTime  float64 `json:"max_time"` // seconds, of all blocks with their warm-up; a longer block is not begun
	// Before is the minimum time in seconds before a run counts: the switch, the openings and the warm-up.
	Before float64 `json:"before,omitempty"`
	// Latency is the median latency of a turn in seconds that was measured before the trial; 0: not known. The plan of its
	// time uses it. The length of its spans follows what the trial itself measures.
	Latency float64 `json:"latency,omitempty"`
	// WarmUp is the least run-in of a span, and the least lead-in of a slot, in seconds.
	WarmUp float64 `json:"warm_up,omitempty"`
	SLO    api.SLO `json:"slo"`
	Seed   uint64  `json:"seed,string"` // of the order and of the draws
	// Together runs the two arms at the same time, on two targets, in turn on either.
	Together bool `json:"together,omitempty"`
	// Switchback changes the arm within one run, whose conversations and caches go on: each block is a pair of slots.
	Switchback bool `json:"switchback,omitempty"`
	// KeepsLanes says that each of the two targets keeps its mode, so that the trial compares targets as well.
	KeepsLanes bool `json:"keeps_lanes,omitempty"`
	// Priors are what earlier trials of the same arms say of the variances, by metric; see [decide.Moderate].
	Priors map[string]decide.Variance `json:"priors,omitempty"`
}

func (p Plan) modes() []api.ModeState { return append([]api.ModeState{p.A, p.B}, p.More...) }

// several reports whether there are more than two arms.
func (p Plan) several() bool { return len(p.More) > 0 }

func (p Plan) all() (arms []int) {
	for arm := range p.modes() {
		arms = append(arms, arm)
	}
	return arms
}

// LeastBlocks is the number of blocks before the first look.
func (p Plan) LeastBlocks() int { return p.decisions(nil).LeastBlocks() }

// least is how long the blocks before the first look take at least.
func (p Plan) least() (seconds float64) {
	if p.Switchback {
		return p.Before + float64(2*p.LeastBlocks())*p.leastSpan()
	}
	runs, spans := p.leastRuns()
	return runs*(p.Before+p.WarmUp) + spans*p.leastSpan()
}

// leastSpan is how long a span counts at least in seconds, or how long a slot lasts at least.
func (p Plan) leastSpan() float64 {
	if p.Switchback {
		return max(p.slotSeconds(), TrialLatencies*p.Latency, leadLatencies*p.Latency+leastCounted)
	}
	return max(p.Seconds, counting*p.WarmUp, TrialLatencies*p.Latency)
}

// LeastSeconds returns how long a block takes at least, and how long it is until the first look at least, in seconds.
func (p Plan) LeastSeconds() (block, firstLook float64) {
	firstLook = p.least()
	block = firstLook / float64(p.LeastBlocks())
	if p.Switchback {
		block = 2 * p.leastSpan()
	}
	return block, firstLook
}

// leastRuns are the runs of the blocks before the first look, those of one time as one, and their lengths in spans.
func (p Plan) leastRuns() (runs, spans float64) {
	for block := range p.LeastBlocks() {
		order := p.order(block, p.all())
		for i := 0; i < len(order); i += p.step() {
			runs++
			spans += float64(order[i].Length + order[i].RunIn)
		}
	}
	return runs, spans
}

// slotSeconds is how long a slot lasts at least, with its lead-in.
func (p Plan) slotSeconds() float64 {
	return max(p.Seconds, max(LeadIn, p.WarmUp)+leastCounted)
}

// order returns the runs of a block in their order. Where arms run together, each two that follow each other run at
// the same time, the first of them on the first target.
func (p Plan) order(block int, arms []int) (runs []decide.Run) {
	switch {
	case p.Switchback:
		return decide.Pair(p.Seed, arms, block)
	case p.eachOnce():
		return decide.EachOnce(p.Seed, arms, block)
	case !p.Together:
		return decide.Order(p.Seed, arms, block)
	}
	for _, both := range decide.SideBySide(p.Seed, arms, block) {
		runs = append(runs, both[:]...)
	}
	if p.KeepsLanes { // differences of the targets cannot be separated from those of the arms
		for i := range runs {
			runs[i].At = 0
		}
	}
	return runs
}

// eachOnce reports whether each arm runs once in a block: at a rate, where runs of one length have the same arrivals,
// all from an empty system on.
func (p Plan) eachOnce() bool { return p.Level.Kind == api.Rate && !p.Together && !p.Switchback }

// step is how many runs are of the same time.
func (p Plan) step() int {
	if p.Together {
		return 2
	}
	return 1
}

// unit is how many runs are repeated where one of them is spoiled.
func (p Plan) unit() int {
	if p.Together || p.Switchback {
		return 2
	}
	return 1
}

// decisions is the plan of the decisions.
func (p Plan) decisions(known *decide.Boundaries) decide.Plan {
	d := decide.Plan{
		Arms: len(p.modes()), Alpha: alpha, Margin: p.Smallest, MaxSeconds: p.MaxTime,
		SideBySide: p.Together, Switchback: p.Switchback, EachOnce: p.eachOnce(), Priors: p.Priors, Known: known,
		WholeOrder: p.several() && p.Question == api.QuestionOrder,
	}
	others := slices.DeleteFunc(slices.Clone(Metrics), func(m Metric) bool { return m == p.Primary })
	for _, m := range append([]Metric{p.Primary}, others...) {
		d.Metrics = append(d.Metrics, m.forDecisions())
	}
	for _, m := range Guards {
		d.Guards = append(d.Guards, m.forDecisions())
	}
	for _, m := range Secondary {
		if m != p.Primary {
			d.Secondary = append(d.Secondary, m.forDecisions())
		}
	}
	return d
}

func (m Metric) forDecisions() decide.Metric {
	return decide.Metric{
		Name: string(m), Share: m.Share(), LessIsBetter: m.LessIsBetter(), TwoSided: m == TPOT95,
	}
}

// Detectable is what a trial finds in most cases, if its runs scatter by a variance and a block takes so many seconds;
// nil where that is not known. See [decide.Detectable].
func (p Plan) Detectable(variance, blockSeconds float64) *api.TrialDetectable {
	d := p.decisions(&decide.Boundaries{})
	by := decide.Detectable(d, variance, blockSeconds)
	shown := -d.Metrics[0].Shown(-by) // a fall is the smaller one
	if !finite(shown) || !(variance > 0) {
		return nil
	}
	return &api.TrialDetectable{Difference: shown, Power: decide.Power, Seconds: p.MaxTime, BlockSeconds: blockSeconds}
}

// Answer is the median time in seconds after which a trial of two arms is answered, by the displayed difference and the
// scatter of another one, whose blocks took so long; 0 where its time is over first, or nothing is known.
func (p Plan) Answer(t *Trial, blockSeconds float64) float64 {
	v := t.Variances()[string(p.Primary)]
	for _, d := range append(slices.Clone(t.Shown.Others), *t.Shown.Primary) {
		if d.Metric == string(p.Primary) && v.DF > 0 && !p.several() {
			one := p.decisions(&decide.Boundaries{})
			return decide.Answer(one, v.Value, one.Metrics[0].Margin(d.Difference), blockSeconds)
		}
	}
	return 0
}

// Variances are what the blocks say of the variance of a run, by metric.
func (t *Trial) Variances() map[string]decide.Variance {
	return decide.Variances(t.Plan.decisions(nil), t.Blocks, t.Shown.Succeeded)
}

// BlockSeconds is what a block of all arms takes, by the latest one; 0 before the first.
func (t *Trial) BlockSeconds() float64 {
	n := len(t.Blocks)
	if n == 0 {
		return 0
	}
	return t.Plan.decisions(nil).NextBlock(t.Plan.all(), t.Blocks[n-1:])
}

// Arm is one of the arms of a trial, by its letter: an [api.TrialArm], or the pilot.
type Arm string

// The first two arms. The pilot is of trials on pairs, and counted for no arm.
const (
	ArmPilot Arm = "pilot"
	ArmA     Arm = "a"
	ArmB     Arm = "b"
)

// Verdict is how a trial stands, or what is shown of one of its metrics.
type Verdict = decide.Verdict

// The verdicts. All but the first are final.
const (
	Running              = decide.Running
	BBetter      Verdict = "b_better"
	ABetter      Verdict = "a_better"
	Best         Verdict = "best"  // of more than two arms, one is better than all others
	Order        Verdict = "order" // of more than two arms, each pair is decided
	TradeOff             = decide.TradeOff
	Unlike       Verdict = "unlike"            // of a guard: certainly different by more than its margin
	NoDifference         = decide.NoDifference // the smallest difference of interest is excluded, both ways
	TimeOver             = decide.TimeOver
	// The verdicts where failures certainly differ, and the deciding metric shows no difference or is undecided at the
	// time limit. FailuresDiffer is of more than two arms.
	BFailsMore     Verdict = "b_fails_more"
	AFailsMore     Verdict = "a_fails_more"
	FailuresDiffer         = decide.FailuresDiffer
)

// Trial compares two arms or more at one concurrency, by the method of package [decide]: whole blocks of runs, with a
// look after each from the second on. It is a state machine: run what [Trial.Next] says, hand it to [Trial.Add], see
// [Trial.State]. Its JSON is all of its state, so that a trial resumes with its next unfinished run after a restart.
//
// All runs of a block hold the same conversations, those of the next one hold others.
type Trial struct {
	Plan    Plan           `json:"plan"`
	Blocks  []decide.Block `json:"blocks"` // whole
	Runs    []Measured     `json:"runs"`   // of the block under way
	Attempt int            `json:"attempt"`
	Lost    float64        `json:"lost"` // seconds of the block under way that do not count
	// Arms are those that the block under way runs, with those that are gone since its beginning; nil means all.
	Arms []int `json:"arms,omitempty"`
	// Gone are the arms that left the trial, since they did not serve, with the reasons; see [Trial.Retire].
	Gone    map[int]string `json:"gone,omitempty"`
	Latency float64        `json:"latency"` // the longest median latency of a run so far, in seconds
	// RunIn is the longest time in seconds for which a run of the first block waited for its hit rate after its warm-up.
	// The other runs wait as long. It is measured in one block alone, and in no later one, so that all arms are treated
	// alike: a run-in that followed each run's own hit rate would be longer for the arm that warms its caches slower, and
	// the length of spans, which it is a third of at most, would differ from block to block. The first run of the first
	// block, which may have waited for less, lets a whole span pass as well.
	RunIn float64 `json:"run_in,omitempty"`
	// Before is the longest time in seconds from the beginning of a span's load to what counts, at a rate. Later spans
	// count no sooner, so that those of a block count the same arrivals.
	Before float64 `json:"before,omitempty"`
	// Dropped are the blocks in which some arm did not keep up with the rate.
	Dropped []Dropped `json:"dropped,omitempty"`
	// Growth are, by arm, how many more conversations were in progress at the end of the counted time of a span than at
	// its beginning, at a rate. Over are the arms that certainly do not keep up.
	Growth map[int][]float64 `json:"growth,omitempty"`
	Over   []int             `json:"over,omitempty"`
	// Expected is after how many blocks it is over, as likely as not; 0: not known, or not in its time.
	Expected int            `json:"expected"`
	Shown    api.TrialState `json:"state"` // after the latest block

	known decide.Boundaries
	held  bool // the latest look would show a better arm, but some arm may not keep up
}

// Measured is a run of the block under way. What it says of times depends on the other runs of the block, whose slowest
// turn says what a failed one counts as.
type Measured struct {
	Spoiled string `json:"spoiled,omitempty"`
	// Overloaded reports that the arm did not keep up with the rate.
	Overloaded bool               `json:"overloaded,omitempty"`
	Growth     float64            `json:"growth,omitempty"` // see [Result]
	Elapsed    float64            `json:"elapsed"`
	TTFT       decide.Sample      `json:"ttft"`
	Later      decide.Sample      `json:"later,omitzero"` // TTFT from turn 2 on, where it decides
	TPOT       decide.Sample      `json:"tpot"`
	Known      map[Metric]float64 `json:"known,omitempty"`  // the metrics that do not
	Errors     map[Metric]float64 `json:"errors,omitempty"` // the most that the load generator may be wrong by, in seconds
	Within     float64            `json:"within"`           // variance of the primary metric by its sections; 0: not known
	Failed     int                `json:"failed"`
	Ended      int                `json:"ended"`
}

// New begins a trial. It returns an *[api.FieldError] for a time limit that is too short for the blocks before the
// first look. The other fields must have passed [api.SweepRequest.Check].
func New(p Plan) (*Trial, error) {
	if least := p.least(); p.MaxTime < least {
		block, _ := p.LeastSeconds()
		return nil, api.Refuse("max_time", p.MaxTime, fmt.Sprintf(
			"%.0f to %d: a trial decides after block %d of all arms at the earliest, and %d fit; a span counts for %.4g s at "+
				"least, after at least %.0f s for the switch, the openings and the warm-up; raise max_time, or shorten span or "+
				"warm_up", math.Ceil(least), maxTrial, p.LeastBlocks(), int(p.MaxTime/block), p.leastSpan(), p.Before))
	}
	t := &Trial{Plan: p, Blocks: []decide.Block{}, Runs: []Measured{}, Attempt: 1}
	t.Shown = api.TrialState{
		Method: api.TrialOnBlocks, Verdict: string(Running), Looks: []api.TrialLook{}, Others: []api.TrialDifference{},
		KeepsLanes: p.KeepsLanes, FirstLook: p.LeastBlocks(),
	}
	if p.several() {
		t.Shown.Ranking = t.ranking(&decide.Decision{LeftAfter: make([]int, len(p.modes()))})
	}
	primary := p.decisions(&t.known).Metrics[0]
	margin := primary.Margin(p.Smallest)
	t.Shown.Boundaries = [2]float64{primary.Shown(-margin), primary.Shown(margin)}
	return t, nil
}

// State is what the whole blocks show.
func (t *Trial) State() api.TrialState { return t.Shown }

// Next is the span to run; false once the trial is over.
func (t *Trial) Next() (Span, bool) {
	if Verdict(t.Shown.Verdict).Over() {
		return Span{}, false
	}
	return t.span(len(t.Runs)), true
}

// Beside is the span that runs at the same time as that of [Trial.Next], on the other target; false where the arms run
// in turns, or half of a pair has been added.
func (t *Trial) Beside() (Span, bool) {
	s, ok := t.Next()
	if !ok || !t.Plan.Together || s.Number%2 == 1 {
		return Span{}, false
	}
	return t.span(len(t.Runs) + 1), true
}

// Slot is the span so many after that of [Trial.Next] in a switchback: it begins before the results of those before it
// are in. If one of these is spoiled, the slots after it are not added: see [Trial.BeginAnew].
func (t *Trial) Slot(ahead int) Span { return t.span(len(t.Runs) + ahead) }

// BeginAnew drops the slots of a pair that was not completed, and returns their number.
func (t *Trial) BeginAnew() (dropped int) {
	dropped = len(t.Runs)
	for _, m := range t.Runs {
		t.Lost += m.Elapsed
		if m.Spoiled != "" {
			t.Attempt++
		}
	}
	t.Runs = []Measured{}
	return dropped
}

// Expect takes in the median latency in seconds of turns before the first slot, which the length of slots follows.
func (t *Trial) Expect(latency float64) {
	if finite(latency) {
		t.Latency = max(t.Latency, latency)
	}
}

// span returns the span at a place of the block in progress, or of a later one.
func (t *Trial) span(place int) Span {
	block, number := len(t.Blocks), place
	for i := range t.Blocks {
		number += len(t.Blocks[i].Spans)
	}
	for _, d := range t.Dropped {
		number += d.Spans
	}
	order := t.order()
	for place >= len(order) {
		place -= len(order)
		block++
		order = t.Plan.order(block, t.left())
	}
	run := order[place]
	length := float64(run.Length)
	if t.Plan.Switchback {
		return t.slot(run, block, number)
	}
	begin, midway := warmUp(t.Plan.Level)
	return Span{
		Number: number, Attempt: t.Attempt, Arm: Arm(api.TrialArms[run.Arm]), Mode: t.Plan.modes()[run.Arm],
		Level: t.Plan.Level, Midway: midway, WarmUp: begin, RunIn: float64(run.RunIn) / length, From: t.Before,
		Settle: t.settle(), Settles: len(t.Blocks) == 0,
		Seconds:   length * max(t.Plan.Seconds, TrialLatencies*t.Latency, counting*t.settle()),
		Latencies: length * TrialLatencies,
		Seed:      t.drawOf(len(t.Blocks)),
	}
}

// drawOf returns the seed of the spans of a block. One that takes the place of a dropped block has other draws.
func (t *Trial) drawOf(block int) uint64 {
	return rand.New(rand.NewPCG(t.Plan.Seed, uint64(len(t.Dropped))<<32|uint64(block+1))).Uint64()
}

// LeadIn is the least time at the beginning of a slot that does not count, in seconds. After a change, the caches that
// the other arm left make round-robin 8 to 13 % slower for so long on the simulated cluster. Where kv is in force, its
// figures are as they stay after 5 s.
const LeadIn = 30

// leadLatencies is the least lead-in in median latencies. With one, the effect of kv at 120 conversations was 6 % too
// large; with one and a half, it was that of the truth (± 3 %).
const leadLatencies = 1.5

// leastCounted is the shortest counted part of a slot in seconds.
const leastCounted = 10

// slot returns a slot of a switchback. Its turns count after the lead-in.
func (t *Trial) slot(run decide.Run, block, number int) Span {
	lead := max(LeadIn, leadLatencies*t.Latency, t.Plan.WarmUp)
	length := max(t.Plan.slotSeconds(), TrialLatencies*t.Latency, lead+leastCounted)
	begin, midway := warmUp(t.Plan.Level)
	return Span{
		Number: number, Attempt: t.Attempt, Arm: Arm(api.TrialArms[run.Arm]), Mode: t.Plan.modes()[run.Arm],
		Level: t.Plan.Level, Midway: midway, WarmUp: begin, LeadIn: lead, Seconds: length - lead, Seed: t.Plan.Seed,
		Arrivals: t.drawOf(block),
	}
}

// begun are the arms that were left at the beginning of the block under way.
func (t *Trial) begun() []int {
	if t.Arms == nil {
		return t.Plan.all()
	}
	return t.Arms
}

// left are the arms that the block under way runs.
func (t *Trial) left() []int { return t.serving(t.begun()) }

// serving are those of some arms that are not gone.
func (t *Trial) serving(arms []int) []int {
	return slices.DeleteFunc(slices.Clone(arms), func(arm int) bool { return t.Gone[arm] != "" })
}

// order returns the runs of the block in progress, in their order.
func (t *Trial) order() []decide.Run {
	all := t.Plan.order(len(t.Blocks), t.begun())
	return slices.DeleteFunc(all, func(r decide.Run) bool { return t.Gone[r.Arm] != "" })
}

// Retire removes the arm of the span that [Trial.Next] gives, for a reason: it does not serve. The trial of the others
// continues. It is false, and changes nothing, where the question is not the whole order, since the best of the others
// may be worse than an arm that left for a worse one, and where nothing would be left to compare.
func (t *Trial) Retire(reason string) bool {
	order, runs := t.order(), []Measured{}
	gone := order[len(t.Runs)].Arm
	others := slices.ContainsFunc(order, func(r decide.Run) bool { return r.Arm != gone })
	if t.Plan.Question != api.QuestionOrder || !others || len(t.serving(t.Plan.all())) < 3 {
		return false
	}
	for i, m := range t.Runs {
		if order[i].Arm != gone {
			runs = append(runs, m)
		}
	}
	if t.Gone == nil {
		t.Gone = map[int]string{}
	}
	t.Gone[gone], t.Runs, t.Attempt = reason, runs, 1
	if n := len(t.Blocks); n > 0 {
		begun := t.begun()
		t.Blocks[n-1].Gone = append(t.Blocks[n-1].Gone, gone)
		t.look()
		t.Arms = begun // the block under way keeps its order
	} else {
		t.Shown.Ranking = t.ranking(&decide.Decision{LeftAfter: make([]int, len(t.Plan.modes()))})
	}
	if !Verdict(t.Shown.Verdict).Over() {
		t.proceed()
	}
	return true
}

// Add takes in the result of the span that [Trial.Next] gave. It returns why the span does not count, or "".
//
// In a switchback, a slot that does not count ends its pair, which [Trial.BeginAnew] drops.
func (t *Trial) Add(r Result) (spoiled string) {
	r.Short = true
	m := Measured{Spoiled: r.reason(), Elapsed: r.Elapsed}
	spoiled = m.Spoiled
	if spoiled == "" {
		m = r.measured(t.Plan)
		if !r.Overloaded {
			t.Expect(r.medianLatency())
		}
		if len(t.Blocks) == 0 {
			t.RunIn = max(t.RunIn, r.RunIn)
		}
		if m.Overloaded, m.Growth = r.Overloaded, r.Growth; !r.Overloaded {
			t.Before = max(t.Before, r.Before)
		}
	}
	t.Shown.PowerSimulated = t.Shown.PowerSimulated || r.Basis.Simulated
	t.Runs = append(t.Runs, m)
	dropsPair := t.Plan.Switchback && spoiled != ""
	if t.Plan.Switchback && m.Overloaded {
		t.drop()
		return ""
	}
	if len(t.Runs)%t.Plan.unit() == 0 && !dropsPair {
		t.complete()
	}
	return spoiled
}

// complete takes in the latest runs of one unit: all of them are repeated where one is spoiled.
func (t *Trial) complete() {
	first := len(t.Runs) - t.Plan.unit()
	if slices.ContainsFunc(t.Runs[first:], func(m Measured) bool { return m.Spoiled != "" }) {
		for _, m := range t.Runs[first:] {
			t.Lost += m.Elapsed
		}
		t.Runs = t.Runs[:first]
		t.Attempt++
		return
	}
	t.Attempt = 1
	t.proceed()
}

// proceed completes the block under way if no run is missing.
func (t *Trial) proceed() {
	if t.drop(); len(t.Runs) == 0 {
		return
	}
	if order := t.order(); len(t.Runs) == len(order) {
		t.Blocks = append(t.Blocks, t.block(order))
		t.grow(order)
		t.look()
		t.Runs, t.Lost = []Measured{}, 0
	}
}

// measured is what a recording says.
func (r *Result) measured(p Plan) Measured {
	whole, parts := r.cut(3, p.SLO)
	m := Measured{
		Elapsed: r.Elapsed, TTFT: decide.Sample{OK: whole.times[api.TimeTTFT], Failed: whole.waits},
		TPOT:  decide.Sample{OK: whole.times[api.TimeTPOT], Failed: make([]float64, len(whole.waits))},
		Known: map[Metric]float64{}, Errors: r.Errors, Failed: len(whole.waits), Ended: int(whole.ended),
	}
	if stats.HeldBack(r.InBursts()) {
		m.TPOT = decide.Sample{}
	}
	if p.Primary == LaterTTFT95 {
		m.Later = decide.Sample{OK: whole.later, Failed: whole.laterWaits}
	}
	costs := whole.costs(r.Basis)
	for _, f := range api.Costs {
		if v := f.Cost(&costs); v != nil {
			m.Known[Metric(f.Key)] = *v
		}
	}
	for _, metric := range append([]Metric{Throughput, HitRate, Goodput}, Guards...) {
		if v := whole.value(metric); finite(v) {
			m.Known[metric] = v
		}
	}
	rest := &parts[1]
	rest.add(&parts[2])
	first, later := p.Primary.scaled(parts[0].value(p.Primary)), p.Primary.scaled(rest.value(p.Primary))
	if finite(first) && finite(later) {
		m.Known[firstThird], m.Known[otherThirds], m.Known[afterEffect] = first, later, first-later
	}
	if s, ok := r.section(r.sections(), p.SLO, p.Primary)[p.Primary]; ok {
		m.Within = s.variance() * inflation([]Sectioned{s})
	}
	return m
}

// values are a run's, in units of their own.
func (m *Measured) values(slowestTTFT, slowestTPOT float64) map[Metric]float64 {
	values := map[Metric]float64{
		MeanTTFT: m.TTFT.Mean(slowestTTFT), TTFT95: m.TTFT.Quantile(.95, slowestTTFT),
		TTFT50: m.TTFT.Quantile(.5, slowestTTFT), LaterTTFT95: m.Later.Quantile(.95, slowestTTFT),
		TPOT95: m.TPOT.Quantile(.95, slowestTPOT),
	}
	maps.Copy(values, m.Known)
	return values
}

// tooLate is the share of a figure that may be the load generator's own error at most; more is no less useless.
const tooLate = .99

// block is the one under way, once all of its runs are measured.
func (t *Trial) block(order []decide.Run) decide.Block {
	var ttft, tpot []decide.Sample
	for i := range t.Runs {
		ttft, tpot = append(ttft, t.Runs[i].TTFT), append(tpot, t.Runs[i].TPOT)
	}
	b := decide.Block{Seconds: t.Lost}
	if len(t.Blocks) == 0 {
		b.Gone = slices.Sorted(maps.Keys(t.Gone))
	}
	for i := range t.Runs {
		m := &t.Runs[i]
		s := decide.Span{
			Arm: order[i].Arm, At: order[i].At, Failed: m.Failed, Ended: m.Ended,
			Values: map[string]float64{}, Late: map[string]float64{},
		}
		succeeded := decide.Sample{OK: m.TTFT.OK}.Mean(0)
		if m.Failed > 0 && finite(MeanTTFT.scaled(succeeded)) {
			s.Succeeded = map[string]float64{string(MeanTTFT): succeeded}
		}
		for metric, v := range m.values(decide.Largest(ttft...), decide.Largest(tpot...)) {
			if finite(metric.scaled(v)) {
				s.Values[string(metric)] = v
			}
			if metric == MeanTTFT && s.Succeeded != nil {
				v = succeeded // the smaller one, of which the error is a larger part
			}
			if e := m.Errors[metric]; e > 0 && v > 0 {
				s.Late[string(metric)] = -math.Log1p(-min(e/v, tooLate))
			}
		}
		b.Spans, b.Seconds = append(b.Spans, s), b.Seconds+m.Elapsed
	}
	return b
}

// within is the mean of the scatter within the runs.
func (t *Trial) within() (mean float64) {
	for i := range t.Runs {
		mean += t.Runs[i].Within / float64(len(t.Runs))
	}
	return mean
}

// look shows what the blocks show, without what does not hold at a rate.
func (t *Trial) look() {
	if t.decide(); t.held {
		t.withdraw()
	}
}

// decide computes what the blocks show.
func (t *Trial) decide() {
	p := t.Plan.decisions(&t.known)
	d := decide.Decide(p, t.Blocks)
	s := &t.Shown
	s.Spans = t.measuredSpans(d.Succeeded)
	s.Blocks, s.BlockSeconds = len(t.Blocks), t.Blocks[len(t.Blocks)-1].Seconds
	t.held = false
	s.Verdict, s.Succeeded = string(t.verdictOf(&d)), d.Succeeded
	s.RunIn = t.settle()
	if s.Detectable == nil && s.Blocks == 1 {
		s.Detectable = t.Plan.Detectable(t.within(), s.BlockSeconds)
	}
	a, b := 0, 1
	if t.Plan.several() {
		t.Arms = d.Left
		s.Ranking = t.ranking(&d)
		a, b = d.RunnerUp, d.Best
	} else {
		s.Failures = t.failures(&d)
	}
	t.beside(&d, a, b)
	primary := t.differences(&d, d.Primary, a, b)
	if len(primary) == 0 {
		return
	}
	s.Primary = &primary[0]
	if d.Looks[len(d.Looks)-1].Blocks < s.Blocks {
		return // none was due
	}
	s.Looks = slices.DeleteFunc(s.Looks, func(l api.TrialLook) bool { return l.Blocks == s.Blocks }) // before an arm left
	s.Looks = append(s.Looks, api.TrialLook{
		Blocks: s.Blocks, Difference: s.Primary.Difference, Interval: s.Primary.Interval,
	})
	s.Variances = map[string]api.TrialVariance{}
	variances := t.Variances()
	for metric, v := range variances {
		s.Variances[metric] = api.TrialVariance{Value: v.Value, DegreesOfFreedom: v.DF}
	}
	if s.Prior != nil {
		own := variances[string(t.Plan.Primary)]
		s.Prior.Contradicted = own.With(t.Plan.Priors[string(t.Plan.Primary)]) == own
	}
	if d.Final != nil {
		if in := shown(p.Metrics[0], d.Final.Interval); in != nil {
			s.Final = &api.TrialFinal{Difference: p.Metrics[0].Shown(d.Final.Estimate), Interval: *in}
		}
	}
	s.Assumed = nil
	if Verdict(s.Verdict) == Running {
		s.Assumed = &s.Primary.Difference
		t.Expected = t.expected(&d)
	} else {
		s.AfterEffect = t.afterEffect(a, b)
	}
}

// beside shows what is compared of two arms, B with A, beside the deciding metric.
func (t *Trial) beside(d *decide.Decision, a, b int) {
	s := &t.Shown
	s.Others = t.differences(d, d.Others, a, b)
	s.Guards = guardsOf(d.Guards, a, b)
	s.Worse = worse(d, a, b)
	s.Costs = t.costs(a, b)
}

// afterEffect returns how far the difference of B and A in the first third of what counts differs from that in the
// rest; nil where that is not certain. It is one test at 5 %, by the model of the verdict, so that arms are compared
// within blocks, and of successful turns only. The end of the trial does not depend on it: of a mean, whole and
// contrast are uncorrelated.
//
// It is tested once, at the end, and lengthens no run-in of the trial: a look in progress would be a second test, and a
// run-in that the measured difference lengthens would choose by its sign which of the spans count later. Spans from
// before and after would also measure different quantities, of which one interval holds neither.
func (t *Trial) afterEffect(a, b int) *api.TrialAfterEffect {
	p := t.Plan.decisions(nil)
	all := between(decide.Once(p, t.Blocks, firstThird.forDecisions(), otherThirds.forDecisions(),
		afterEffect.forDecisions()), a, b)
	if len(all) < 3 || all[2].Repeated[0] <= 0 && all[2].Repeated[1] >= 0 {
		return nil
	}
	shown := p.Metrics[0].Shown
	return &api.TrialAfterEffect{
		First: shown(all[0].Estimate), Rest: shown(all[1].Estimate),
		Interval: [2]float64{shown(all[2].Repeated[0]), shown(all[2].Repeated[1])},
	}
}

// measuredSpans are the values of the deciding metric in the spans of whole blocks.
func (t *Trial) measuredSpans(succeeded bool) (all []api.TrialSpan) {
	number := 0
	for i := range t.Blocks {
		for _, d := range t.Dropped {
			if d.After == i {
				number += d.Spans
			}
		}
		for _, s := range t.Blocks[i].Spans {
			if v, ok := s.Value(string(t.Plan.Primary), succeeded); ok {
				all = append(all, api.TrialSpan{Number: number, Value: v})
			}
			number++
		}
	}
	return all
}

// expected is after how many blocks the trial is over, as likely as not, if the estimates are right. It is 0 where that
// is not in its time. Where only failures are open, it is the next block.
func (t *Trial) expected(d *decide.Decision) (blocks int) {
	p := t.Plan.decisions(&t.known)
	blocks = len(t.Blocks) + 1
	for i := range d.Primary {
		c := &d.Primary[i]
		open := c.Blocks == len(t.Blocks) && (p.WholeOrder || c.A == d.Best || c.B == d.Best)
		if !open || c.Shown != 0 || c.Within(p.Margin) {
			continue
		}
		n := decide.Expected(p, c, c.Blocks, t.Shown.BlockSeconds)
		if n == 0 {
			return 0
		}
		blocks = max(blocks, n)
	}
	return blocks
}

// verdictOf is a decision's.
func (t *Trial) verdictOf(d *decide.Decision) Verdict {
	switch {
	case d.Verdict == decide.Ordered:
		return Order
	case d.Verdict == FailuresDiffer && !t.Plan.several():
		if d.MoreFailures(0, 1) > 0 {
			return BFailsMore
		}
		return AFailsMore
	case d.Verdict != decide.Better:
		return d.Verdict
	case t.Plan.several():
		return t.decidable(d.Left[0], Best)
	case d.Left[0] == 1:
		return t.decidable(1, BBetter)
	}
	return t.decidable(0, ABetter)
}

// failed are the turns of an arm in all blocks.
func (t *Trial) failed(arm int) (f api.TrialFailed) {
	for i := range t.Blocks {
		for _, s := range t.Blocks[i].Spans {
			if s.Arm == arm {
				f.Failed += s.Failed
				f.Ended += s.Ended
			}
		}
	}
	return f
}

// failures are the failed turns of two arms.
func (t *Trial) failures(d *decide.Decision) *api.TrialFailures {
	f := &api.TrialFailures{A: t.failed(0), B: t.failed(1), More: moreFailures(d, 0, 1)}
	for _, c := range d.Failures {
		f.Difference, f.Interval = c.Estimate, shown(c.Metric, c.Repeated)
	}
	return f
}

// moreFailures is the one of two arms that certainly fails more turns; empty: neither.
func moreFailures(d *decide.Decision, a, b int) api.TrialArm {
	switch d.MoreFailures(a, b) {
	case 1:
		return api.TrialArms[b]
	case -1:
		return api.TrialArms[a]
	}
	return ""
}

// between returns the comparisons of two arms, B with A.
func between(all []decide.Comparison, a, b int) (found []decide.Comparison) {
	for i := range all {
		switch c := &all[i]; {
		case c.A == a && c.B == b:
			found = append(found, *c)
		case c.A == b && c.B == a:
			found = append(found, c.Reversed())
		}
	}
	return found
}

// differences are what is shown of the comparisons of two arms, B with A.
func (t *Trial) differences(d *decide.Decision, all []decide.Comparison, a, b int) []api.TrialDifference {
	found := []api.TrialDifference{}
	for _, c := range between(all, a, b) {
		found = append(found, t.difference(d, &c))
	}
	return found
}

// worse are the secondary metrics in which the better one of two arms, B with A, is certainly worse.
func worse(d *decide.Decision, a, b int) (all []api.TrialDifference) {
	for _, c := range between(d.Primary, a, b) {
		all = append(all, guardsOf(d.Worse(&c), a, b)...)
	}
	return all
}

// costs are what is shown of the costs of two arms, B with A, by one look at 95 %.
func (t *Trial) costs(a, b int) []api.TrialDifference {
	var all []decide.Metric
	for _, f := range api.Costs {
		all = append(all, Metric(f.Key).forDecisions())
	}
	return guardsOf(decide.Once(t.Plan.decisions(nil), t.Blocks, all...), a, b)
}

// guardsOf are what is shown of comparisons by guards of two arms, B with A.
func guardsOf(guards []decide.Comparison, a, b int) (all []api.TrialDifference) {
	for _, c := range between(guards, a, b) {
		m := Metric(c.Metric.Name)
		one := api.TrialDifference{
			Metric: string(m), A: m.unscaled(c.MeanA), B: m.unscaled(c.MeanB), Difference: c.Metric.Shown(c.Estimate),
			Interval: shown(c.Metric, c.Repeated), Outcome: string(Running),
		}
		if c.Shown != 0 {
			one.Outcome = string(Unlike)
		}
		all = append(all, one)
	}
	return all
}

// difference is what is shown of a comparison. An arm that certainly fails more turns, or whose answers differ, is
// better in nothing, and none is while it seems to fail more.
func (t *Trial) difference(decision *decide.Decision, c *decide.Comparison) api.TrialDifference {
	m := Metric(c.Metric.Name)
	d := api.TrialDifference{
		Metric: string(m), A: m.unscaled(c.MeanA), B: m.unscaled(c.MeanB), Difference: c.Metric.Shown(c.Estimate),
		Interval: shown(c.Metric, c.Repeated), Outcome: string(Running),
	}
	for _, arm := range []api.TrialArm{api.TrialArmA, api.TrialArmB} {
		if c.NotWorse(t.Plan.Smallest, arm == api.TrialArmB) {
			d.NotWorse = append(d.NotWorse, arm)
		}
	}
	switch {
	case len(d.NotWorse) == 2:
		d.Outcome, d.Interval = string(NoDifference), shown(c.Metric, c.Narrow)
	case decision.TradesOff(c):
		d.Outcome = string(TradeOff)
	case decision.Suspects(c): // more blocks show whether the better arm fails more turns
	case c.Shown != 0 && (c.Shown < 0) == m.LessIsBetter():
		d.Outcome = string(BBetter)
	case c.Shown != 0:
		d.Outcome = string(ABetter)
	}
	return d
}

// unknownFactor is the factor that bounds an interval on neither side, where it says nothing: the first looks of a
// trial, which spend little of the error, can reach from 100.0 % lower to 13,000 times as high.
const unknownFactor = 10

// shown brings an interval from the scale of differences to what is shown; nil where it has no bounds.
func shown(m decide.Metric, in [2]float64) *[2]float64 {
	if limit := math.Log(unknownFactor); !m.Share && in[0] < -limit && in[1] > limit {
		return nil
	}
	in = [2]float64{m.Shown(in[0]), m.Shown(in[1])}
	if !finite(in[0]) || !finite(in[1]) {
		return nil
	}
	return &in
}

// Left is how much longer something takes after the last span that ended, in seconds.
type Left struct {
	// Seconds is the estimate, as likely too long as too short; nil where it is not known.
	Seconds *float64
	// Least and Most are between which the end lies; nil where that is not known.
	Least, Most *float64
	// Beyond says that the time is over before a trial is decided, if its estimate is right.
	Beyond bool
}

// Left is at least the time until the next look and at most what remains until the time limit. Before the first look
// there is no estimate.
func (t *Trial) Left() (left Left) {
	if Verdict(t.Shown.Verdict).Over() {
		return left
	}
	used, whole := t.Lost, 0.
	for i := range t.Runs {
		used += t.Runs[i].Elapsed
	}
	for i := range t.Blocks {
		whole += t.Blocks[i].Seconds
	}
	each, most := t.blockSeconds(), max(0, t.Plan.MaxTime-whole-used)
	if t.Plan.Switchback && len(t.Blocks)+len(t.Runs) == 0 {
		used -= t.Plan.Before // the warm-up of the one run is to come
	}
	until := func(blocks int) *float64 { return new(max(0, min(most, each*float64(blocks-len(t.Blocks))-used))) }
	left.Least, left.Most = until(t.Plan.decisions(nil).NextLook(len(t.Blocks))), &most
	if t.Shown.Primary == nil {
		return left
	}
	n := max(t.Expected, len(t.Blocks)+1)
	if left.Beyond = t.Expected == 0; left.Beyond {
		n = max(n, int(t.Plan.MaxTime/each))
	}
	left.Seconds = until(n)
	return left
}

// blockSeconds is what a block takes, by those before it, else by the last trial, else by what the plan asks for and
// what the runs so far took of that.
func (t *Trial) blockSeconds() (seconds float64) {
	if len(t.Blocks) > 0 {
		return t.Plan.decisions(nil).NextBlock(t.left(), t.Blocks)
	}
	planned, ended, took := 0., 0., 0.
	p := t.Plan
	p.Latency = max(p.Latency, t.Latency)
	for i, run := range t.order() {
		s := p.leastSpan()
		if !p.Switchback {
			s = (p.Before + p.WarmUp + s*float64(run.Length+run.RunIn)) / float64(p.step())
		}
		planned += s
		if i < len(t.Runs) {
			ended, took = ended+s, took+t.Runs[i].Elapsed
		}
	}
	if d := t.Shown.Detectable; d != nil {
		planned = max(planned, d.BlockSeconds)
	}
	if ended > 0 {
		return max(planned, planned*took/ended)
	}
	return planned
}
