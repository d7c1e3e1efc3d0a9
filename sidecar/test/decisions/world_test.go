//go:build verify

package decisions

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
)

// world describes a target's effects on its spans apart from chance, on the logarithmic scale: 0.03 is 3 %.
type world struct {
	effect   []float64 // of each arm on its TTFT; nil: none
	restart  float64   // standard deviation between runs, of all times and of the throughput
	rougher  float64   // factor on the scatter of the last arm's runs; 0: 1
	lane     float64   // slowness of the second of two lanes; the arms then run side by side
	drift    float64   // slowness of each span compared with the one before
	switched float64   // slowness of a span after a change of arm
	after    float64   // slowness of a span after one of the first arm
	stalls   bool      // heavy-tailed pauses without first tokens
	span     float64   // seconds that a span counts; 0: three median latencies
	failing  float64   // share of the last arm's turns that fail, the slowest ones
	refused  []float64 // share of each arm's turns that fail at once; nil: none
	outage   float64   // seconds for which all turns are refused; 0: each turn by itself
	sine     float64   // amplitude of a swing of the speed
	period   float64   // of that swing, in quarters of a block of two arms
	wander   float64   // standard deviation of a slow change of speed, with a correlation time of ten minutes
	swing    float64   // standard deviation of the load's effect on TTFT, with a correlation time of half a minute
}

// A span has 60 conversations of five turns of about 23 s. On the simulated cluster at this level, the conversations
// that begin a span have ended after 131 s (kv) or 142 s (round-robin), by 24 spans of each.
const (
	rate     = 2.4   // turns that begin per second
	tokens   = 830   // per answer
	perToken = .0275 // seconds
	warmUp   = 136.  // seconds before a run counts
	change   = 5.    // seconds that a change of arm takes
	length   = 70.   // seconds that a span counts by default: three median latencies
	hour     = 3600.
	quarter  = (3*(change+warmUp) + 5*length) / 4
)

// What a turn measures depends on the time before it, also across a change of arm: the load of the workers and what the
// arm before left behind decay with this time constant, in seconds.
const memory = 30.

// loadStep is the number of seconds after which the load of the workers changes.
const loadStep = 5.

// nextLoad returns the load of the workers one loadStep later, on the logarithmic scale.
func nextLoad(load float64, rng *rand.Rand) float64 {
	return nextValue(load, .23, math.Exp(-loadStep/memory), rng)
}

// nextValue draws the next value of a process with a standard deviation, of which it keeps a share.
func nextValue(value, scatter, kept float64, rng *rand.Rand) float64 {
	return kept*value + scatter*math.Sqrt(1-kept*kept)*rng.NormFloat64()
}

var slo = api.SLO{TTFT: .6, TPOT: .06}

// spans draws the spans of one trial.
type spans struct {
	world
	arms     int
	rng      *rand.Rand
	time     float64 // in spans, for the drift
	clock    float64 // in seconds, for the swing
	previous int     // arm of the span before; −1: none
	phase    float64 // of the swing
	lanes    [2]onLane
	down     float64 // end of the latest outage, on the clock of the turns
}

// onLane is what goes on on a lane from run to run.
type onLane struct {
	load   float64 // of the workers
	runIn  float64 // seconds that the arm has run before its next run
	began  bool
	before arrears // what the arm before leaves behind
}

// arrears are the slowness of a run's first tokens that is due to its arm, and that of all its times.
type arrears struct{ effect, level float64 }

// faded returns what is left of a slowness after an arm has run for some seconds.
func faded(before, own, seconds float64) float64 { return own + (before-own)*math.Exp(-seconds/memory) }

// wait lets time pass on a lane.
func (s *spans) wait(lane int, seconds float64) {
	for ; seconds > 0; seconds -= loadStep {
		s.lanes[lane].load = nextLoad(s.lanes[lane].load, s.rng)
	}
}

func newSpans(w world, arms int, trial int) *spans {
	s := &spans{world: w, arms: arms, rng: rand.New(rand.NewPCG(uint64(trial), 34)), previous: -1}
	if w.sine > 0 {
		s.phase = 2 * math.Pi * s.rng.Float64()
	}
	return s
}

// seconds returns the time that a span counts.
func (w *world) seconds() float64 {
	if w.span > 0 {
		return w.span
	}
	return length
}

func (s *spans) effectOf(arm int) float64 {
	if s.effect == nil {
		return 0
	}
	return s.effect[arm]
}

// record draws a run of an arm of some seconds, which consists of several spans, on a lane.
func (s *spans) record(arm, lane int, counts float64, of int) proof.Recording {
	r := proof.Recording{CountedFrom: warmUp, Until: warmUp + counts}
	rough := 1.
	if s.rougher > 0 && arm == s.arms-1 {
		rough = s.rougher
	}
	on, own := &s.lanes[lane], arrears{s.effectOf(arm), s.restart*rough*s.rng.NormFloat64() + s.lane*float64(lane)}
	if !on.began {
		on.before, on.began = own, true
	}
	before, runIn := on.before, on.runIn
	on.before, on.runIn = own, 0
	wandered := s.wanders(r.Until)
	at := func(t float64) float64 { // the log of the factor on all times
		span := min(max(int((t-warmUp)/counts*float64(of)), 0), of-1)
		v := faded(before.level, own.level, runIn+t) + wandered[int(t/60)] + s.drift*(s.time+float64(span))
		if s.sine > 0 {
			v += s.sine * math.Sin(s.phase+2*math.Pi*(s.clock+t)/(s.period*quarter))
		}
		if span == 0 && s.previous >= 0 && s.previous != arm {
			v += s.switched
		}
		if before := s.previous; span > 0 && arm == 0 || span == 0 && before == 0 {
			v += s.after
		}
		return v
	}
	stalled, swung := math.Inf(-1), s.swing*s.rng.NormFloat64()
	s.down = 0
	for t, next := 0., 0.; t < r.Until; t += s.rng.ExpFloat64() / rate {
		for ; t >= next; next += loadStep {
			on.load = nextLoad(on.load, s.rng)
		}
		stalled = s.stall(t, stalled)
		ttft := drawTTFT(on.load, s.rng)
		swung = s.swings(swung)
		ttft = ttft*math.Exp(at(t)+swung+faded(before.effect, own.effect, runIn+t)) + max(0, stalled-t)
		tpot := perToken * math.Exp(at(t)+.1*s.rng.NormFloat64()+.02*on.load)
		if s.refuses(arm, t) {
			r.Turns = append(r.Turns, workload.Outcome{
				Status: api.TurnError, Sent: seconds(t), Ended: seconds(t + refusal), TTFT: math.NaN(),
			})
			continue
		}
		r.Turns = append(r.Turns, workload.Outcome{
			Status: api.TurnOK, Sent: seconds(t), TTFT: ttft, Latency: ttft + tpot*(tokens-1), OutputTokens: tokens, TPOT: tpot,
			PromptTokens: 4000, CachedTokens: int(4000 * min(1, .9+.02*s.rng.NormFloat64())), HasCached: true,
		})
	}
	if arm == s.arms-1 {
		s.fail(r.Turns)
	}
	for second := range int(math.Ceil(r.Until)) {
		r.Tokens = append(r.Tokens, rate*tokens*math.Exp(.1*s.rng.NormFloat64()-at(float64(second))))
	}
	return r
}

// refusal is the time in seconds after which a turn fails that is refused.
const refusal = .01

// refuses draws whether a turn of an arm fails at once. The draws of a world without failures do not change.
func (s *spans) refuses(arm int, t float64) bool {
	switch {
	case s.refused == nil || t < s.down:
		return s.refused != nil
	case s.outage == 0:
		return s.rng.Float64() < s.refused[arm]
	case s.rng.Float64() < s.refused[arm]/(rate*s.outage*(1-s.refused[arm])+1):
		s.down = t + s.outage
		return true
	}
	return false
}

// wanders returns the system's slowness in each minute, on the logarithmic scale.
func (s *spans) wanders(seconds float64) []float64 {
	all := make([]float64, int(seconds/60)+1)
	if s.wander == 0 {
		return all
	}
	all[0] = s.wander * s.rng.NormFloat64()
	for i := range all[1:] {
		all[i+1] = nextValue(all[i], s.wander, math.Exp(-1./10), s.rng)
	}
	return all
}

// drawTTFT draws the TTFT of a turn under a load of the workers.
func drawTTFT(load float64, rng *rand.Rand) float64 {
	ttft := .22 * math.Exp(.3*rng.NormFloat64())
	if rng.Float64() < .14*math.Exp(load) {
		ttft += .25 * rng.ExpFloat64()
	}
	return ttft
}

// stall returns the end of the latest pause without first tokens. There is one per two minutes, Pareto with infinite
// variance.
func (s *spans) stall(now, latest float64) float64 {
	if s.stalls && s.rng.Float64() < 1./rate/120 {
		return now + min(.5*math.Pow(s.rng.Float64(), -1/1.5), 60)
	}
	return latest
}

// swings returns the load's effect on the next turn.
func (s *spans) swings(swung float64) float64 {
	return nextValue(swung, s.swing, math.Exp(-1./rate/memory), s.rng)
}

// fail makes the slowest turns fail at the time of their first token.
func (s *spans) fail(turns []workload.Outcome) {
	order := make([]int, len(turns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(turns[b].TTFT, turns[a].TTFT)
	})
	for _, i := range order[:int(s.failing*float64(len(order)))] {
		t := &turns[i]
		t.Status, t.Ended, t.TTFT, t.OutputTokens = api.TurnError, seconds(t.FirstToken()), math.NaN(), 0
	}
}

// passed advances the time by a run of several spans of an arm.
func (s *spans) passed(arm, of int) {
	s.time += float64(of)
	s.previous = arm
}

// metrics are in the order of a table. A test moves one of them to the front.
var metrics = []decide.Metric{
	{Name: "TTFT mean", LessIsBetter: true},
	{Name: "TTFT p95", LessIsBetter: true},
	{Name: "TTFT p50", LessIsBetter: true},
	{Name: "TPOT p95", LessIsBetter: true, TwoSided: true},
	{Name: "throughput"},
	{Name: "goodput", Share: true},
	{Name: "hit rate", Share: true},
}

// samples are the counted turns of a recording.
type samples struct {
	ttft, tpot                   decide.Sample
	failed, ended, good          int
	prompt, cached, tokens, time float64
}

func counted(r proof.Recording) (s samples) {
	for i := range r.Turns {
		t := &r.Turns[i]
		in := func(v float64) bool { return r.CountedFrom <= v && v < r.Until }
		if !t.Failed() && in(t.FirstToken()) {
			s.ttft.OK = append(s.ttft.OK, t.TTFT)
		}
		if end, _ := t.End(); !in(end) {
			continue
		}
		s.ended++
		if t.Failed() {
			s.fails(t.Took())
			continue
		}
		tpot := (t.Latency - t.TTFT) / float64(t.OutputTokens-1)
		s.tpot.OK = append(s.tpot.OK, tpot)
		s.prompt, s.cached = s.prompt+float64(t.PromptTokens), s.cached+float64(t.CachedTokens)
		if t.TTFT <= slo.TTFT && tpot <= slo.TPOT {
			s.good++
		}
	}
	for second := int(r.CountedFrom); second < int(r.Until); second++ {
		s.tokens += r.Tokens[second]
		s.time++
	}
	return s
}

// fails adds a failed turn that waited for some seconds.
func (s *samples) fails(wait float64) {
	s.failed++
	s.ttft.Failed, s.tpot.Failed = append(s.ttft.Failed, wait), append(s.tpot.Failed, 0)
}

// succeeded returns the means over successful turns only.
func (s *samples) succeeded() map[string]float64 {
	return map[string]float64{"TTFT mean": decide.Sample{OK: s.ttft.OK}.Mean(0)}
}

// values returns the figures of all metrics.
func (s *samples) values(slowestTTFT, slowestTPOT float64) map[string]float64 {
	p95 := s.ttft.Quantile(.95, slowestTTFT)
	p50 := s.ttft.Quantile(.5, slowestTTFT)
	tpot := s.tpot.Quantile(.95, slowestTPOT)
	return map[string]float64{
		"TTFT mean": s.ttft.Mean(slowestTTFT), "TTFT p95": p95, "TTFT p50": p50, "TPOT p95": tpot,
		"throughput": s.tokens / s.time, "goodput": float64(s.good) / float64(s.ended), "hit rate": s.cached / s.prompt,
	}
}
