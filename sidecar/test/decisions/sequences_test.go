//go:build verify

package decisions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// liveTarget is a lane of a simulated run.
type liveTarget struct {
	window *stats.Window
	meter  *stats.Meter
	turns  []api.Turn // not passed yet
	first  []arrival  // first tokens, not passed yet
	tokens []float64  // per second, not passed yet
	second int
}

// arrival is a first token.
type arrival struct {
	at   time.Time
	ttft float64
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newLiveTarget(w world, trial, minutes int, earlier []stats.Series) *liveTarget {
	r := newSpans(w, 2, trial).record(1, 0, float64(minutes)*60, 1)
	l := &liveTarget{window: stats.NewWindow(began, slo), meter: stats.NewMeter(began), tokens: r.Tokens[warmUp:]}
	l.window.BeginStep(1, earlier)
	l.window.CountFrom(began)
	for _, t := range r.Turns {
		if t.FirstToken() >= warmUp {
			l.first = append(l.first, arrival{began.Add(seconds(t.FirstToken() - warmUp)), t.TTFT})
		}
		if end, _ := t.End(); end >= warmUp {
			l.turns = append(l.turns, api.Turn{
				Ended: began.Add(seconds(end - warmUp)), Number: 1, Step: 1, Counted: true, Status: api.TurnOK,
				TTFT: &t.TTFT, TPOT: new((t.Latency - t.TTFT) / (tokens - 1)), Latency: &t.Latency,
				PromptTokens: &t.PromptTokens, CachedTokens: &t.CachedTokens, OutputTokens: &t.OutputTokens,
			})
		}
	}
	slices.SortFunc(l.turns, func(a, b api.Turn) int { return a.Ended.Compare(b.Ended) })
	slices.SortFunc(l.first, func(a, b arrival) int { return a.at.Compare(b.at) })
	return l
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// pass adds a minute's turns to the lane, and returns the end of that minute.
func (l *liveTarget) pass() (now time.Time) {
	for range 60 {
		l.meter.Add(began.Add(seconds(float64(l.second)+.5)), int(l.tokens[l.second]))
		l.second++
		now = began.Add(seconds(float64(l.second)))
		n := 0
		for n < len(l.turns) && l.turns[n].Ended.Before(now) {
			l.window.Add(&l.turns[n], nil)
			n++
		}
		l.turns = l.turns[n:]
		for len(l.first) > 0 && l.first[0].at.Before(now) {
			l.window.FirstToken(1, l.first[0].at, l.first[0].ttft)
			l.first = l.first[1:]
		}
		l.window.AdvanceLive(l.meter, now)
	}
	return now
}

// row returns the baseline row of five minutes of a run.
func row(w world, trial int) api.Baseline {
	l := newLiveTarget(w, trial, 5, nil)
	var now time.Time
	for range 5 {
		now = l.pass()
	}
	r := l.window.CountedAsArrived(l.meter, now, 1)
	one := r.Row()
	one.Level, one.Mode, one.Speculation = api.AtConversations(60), api.ModeKV, api.SpeculationOff
	return api.Baseline{Name: api.ThisTarget, Kind: baseline.KindMeasured, Rows: []api.BaselineRow{one}}
}

// liveVerdicts returns the minute of an hour at which each metric was first called better or worse than a row.
func liveVerdicts(was api.Baseline, w world, trial int) map[string]float64 {
	l, first := newLiveTarget(w, trial, 60, nil), map[string]float64{}
	for minute := 1.; minute <= 60; minute++ {
		is := l.window.Live(l.meter, l.pass(), 1)
		for name, v := range virtual.Outcomes(&is, was, api.AtConversations(60)) {
			if _, known := first[name]; !known && (v == api.OutcomeBetter || v == api.OutcomeWorse) {
				first[name] = minute
			}
		}
	}
	return first
}

// wandering is a system whose speed wanders, and the effect of the later step or of the second lane on its TTFT.
type wandering struct{ wander, effect float64 }

// String describes the system.
func (w wandering) String() string {
	return fmt.Sprintf("speed wanders by %.0f %%, TTFT %+.0f %%", 100*w.wander, 100*w.effect)
}

func (w wandering) world() world {
	return world{wander: w.wander, effect: []float64{0, math.Log1p(w.effect)}}
}

// countFound counts in which metrics a difference is found within an hour, and after how many minutes.
func countFound[M ~string](r *montecarlo.Results, first map[string]float64, metrics []M) {
	r.Cell("any").Count("different", len(first) > 0)
	for _, m := range metrics {
		at, ok := first[string(m)]
		if !ok {
			at = math.Inf(1)
		}
		r.Cell(string(m)).Count("different", ok)
		r.Cell(string(m)).Sample("minutes", at)
	}
}

// A step is compared with a row of the same target every minute for an hour. An unchanged system is hardly ever called
// different, with constant or wandering speed, and a true difference is found soon.
func TestLiveVerdictsAgainstRow(t *testing.T) {
	t.Parallel()
	montecarlo.Run(t, "live", montecarlo.Each("%v",
		wandering{0, 0}, wandering{.01, 0}, wandering{.01, -.15}, wandering{.01, -.30}, wandering{.01, -.40},
	), func(t *testing.T, of wandering, r *montecarlo.Results) {
		for i := range trials() {
			countFound(r, liveVerdicts(row(world{wander: of.wander}, 2*i), of.world(), 2*i+1), liveMetrics)
		}
		if of.effect == 0 {
			r.Cell("any").AtMost(t, "different", montecarlo.Most(trials()))
		}
	})
}

var liveMetrics = []string{
	"TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "latency p50", "latency p95", virtual.Output, "requests/s", "hit rate",
}

// series returns the TTFT of a step of five minutes.
func series(w world, trial int) stats.Series {
	l := newLiveTarget(w, trial, 5, nil)
	for range 5 {
		l.pass()
	}
	s, _ := l.window.Series()
	return s
}

// against are steps that are compared with the latest step of another mode.
type against struct {
	world
	steps  int // earlier steps of either mode
	effect float64
}

// A step is compared with the latest step of another mode, by the mean TTFT, whenever a batch has ended, for an hour:
// with the variance of earlier steps and without.
func TestStepAgainstOtherMode(t *testing.T) {
	t.Parallel()
	cases := map[string]against{}
	for name, w := range map[string]world{
		"nothing but chance":                                    {},
		"the speed wanders by 1 %":                              {wander: .01},
		"the load swings by 15 %, and the speed wanders by 1 %": {swing: .15, wander: .01},
	} {
		for _, steps := range []int{0, 3} {
			for _, effect := range []float64{0, -.10, -.20} {
				name := fmt.Sprintf("%s, %d earlier steps of either mode, TTFT %+.0f %%", name, steps, 100*effect)
				cases[name] = against{w, steps, effect}
			}
		}
	}
	montecarlo.Run(t, "a step against another mode as measured here, within an hour", cases,
		func(t *testing.T, of against, r *montecarlo.Results) {
			c, is := r.Cell("mean TTFT"), of.world
			is.effect = []float64{0, math.Log1p(of.effect)}
			for i := range trials() {
				trial := 100 * i
				var others, own []stats.Series
				for step := range of.steps + 1 {
					others = append(others, series(of.world, trial+step))
				}
				for step := range of.steps {
					own = append(own, series(is, trial+50+step))
				}
				at := decidedAt(newLiveTarget(is, trial+99, 60, own), own, &others[len(others)-1], others)
				c.Count("called different", !math.IsInf(at, 0))
				c.Count("the wrong way round", at < 0)
				c.Sample("minutes", math.Abs(at))
			}
			if of.effect == 0 {
				c.AtMost(t, "called different", montecarlo.Most(trials()))
			}
		})
}

// decidedAt returns the minute at which a step was first called different from another mode, negative where it was
// called later; infinite if it never was.
func decidedAt(l *liveTarget, own []stats.Series, other *stats.Series, others []stats.Series) float64 {
	was := other.Estimate(others[:len(others)-1], stats.DesignEffect(nil))
	for minute := 1.; minute <= 60; minute++ {
		l.pass()
		s, ok := l.window.Series()
		if !ok {
			continue
		}
		is := s.Estimate(own, stats.DesignEffect(others))
		d := math.Log(s.Average / other.Average)
		if math.Abs(d) > stats.Contrast(is, was) {
			return math.Copysign(minute, -d)
		}
	}
	return math.Inf(1)
}

// swept returns a finished sweep of two modes at nine levels. The values of a level scatter by its standard deviation,
// on the logarithmic scale, and heavy ones by Student's t with 3 degrees of freedom. The second mode is slower by
// effect at every level.
func swept(rng *rand.Rand, repeats int, scatter func(share float64) float64, heavy bool, effect float64) api.Sweep {
	s := api.Sweep{SweepSummary: api.SweepSummary{State: api.SweepDone, Request: api.SweepRequest{
		Kind: api.SweepLevels, Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}},
	}}}
	tails := distuv.StudentsT{Sigma: 1 / math.Sqrt(3), Nu: 3, Src: rng}
	for level := 20; level <= 180; level += 20 {
		for arm, mode := range s.Request.Modes {
			var rows []api.BaselineRow
			for range repeats {
				by := func() float64 {
					v := rng.NormFloat64()
					if heavy {
						v = tails.Rand()
					}
					return float64(arm)*effect + scatter(float64(level-20)/160)*v
				}
				row := api.BaselineRow{Level: api.AtConversations(level), Mode: mode.Mode, N: 900, Seconds: 300}
				row.Intervals = &api.RowIntervals{}
				row.TTFT.P95, row.OutputTokensPerSecond = new(.5*math.Exp(by())), new(2000*math.Exp(-by()))
				row.KVHitRatio = new(.5 - .2*by())
				rows = append(rows, row)
				s.Spans = append(s.Spans, api.SweepSpan{Level: api.AtConversations(level), Mode: mode, Row: &row})
			}
			s.Rows = append(s.Rows, proof.MeanRow(rows))
		}
	}
	return s
}

// scattering are sweeps whose spans scatter by a standard deviation for each level, the share of the way from the
// first to the last.
type scattering struct {
	scatter func(share float64) float64
	heavy   bool
}

// A report compares nine levels and three figures. At most 6 % of reports on equal modes name a level.
func TestSweepReportNamesDifferences(t *testing.T) {
	t.Parallel()
	constant := func(float64) float64 { return .04 }
	even := func(share float64) float64 { return .02 + .13*share }
	steep := func(share float64) float64 { return .02 * math.Pow(7.5, share) }
	montecarlo.Run(t, "sweeps whose spans scatter by", map[string]scattering{
		"4 % at all levels":             {constant, false},
		"2 to 15 %, evenly":             {even, false},
		"2 to 15 %, by the same factor": {steep, false},
		"4 % with heavy tails":          {constant, true},
		"2 to 15 % with heavy tails":    {even, true},
	}, func(t *testing.T, w scattering, r *montecarlo.Results) {
		for _, repeats := range []int{2, 3, 6} {
			rng := rand.New(rand.NewPCG(7, uint64(repeats)))
			cells := [2]*montecarlo.Cell{
				r.Cell(fmt.Sprintf("equal modes, %d repeats", repeats)), r.Cell(fmt.Sprintf("15 %% slower, %d repeats", repeats)),
			}
			for range trials() {
				for i, effect := range []float64{0, math.Log(1.15)} {
					n := 0
					for _, s := range report.OfSweep(swept(rng, repeats, w.scatter, w.heavy, effect)).Pairs[0].Averages {
						n += len(s.Better) + len(s.Worse)
					}
					cells[i].Count("some level named", n > 0)
					cells[i].Mean("share of all levels named", float64(n)/27)
				}
			}
			cells[0].AtMost(t, "some level named", montecarlo.Most(trials()))
		}
	})
}

// spanWith returns the result of a capacity search's span with a TTFT in seconds.
func spanWith(s proof.Span, ttft float64) proof.Result {
	r := proof.Recording{Until: s.Seconds, Tokens: make([]float64, int(s.Seconds)+1)}
	for at := 0.; at < s.Seconds; at++ {
		r.Turns = append(r.Turns, workload.Outcome{
			Status: api.TurnOK, Sent: seconds(at - ttft), TTFT: ttft, Latency: ttft + .5, OutputTokens: 11, TPOT: .05,
		})
	}
	return proof.Result{Elapsed: s.Seconds, Recording: r}
}

// rising are capacity searches on a curve of log p95 over its limit, which it crosses at a known level.
type rising struct {
	curve   func(level float64) float64
	scatter func(level float64) float64
	truth   float64
}

// Searches over nine levels from 20 to 180 have at most 36 spans. The curves cross the limit at a known level. A curve
// with a kink stays closely below the limit up to there.
func TestCapacityIntervalCoversTruth(t *testing.T) {
	t.Parallel()
	rises := func(slope, truth float64) func(float64) float64 { // by so much of log p95 per conversation
		return func(level float64) float64 { return slope * (level - truth) }
	}
	kink := func(level float64) float64 { return max(-.02, .01*(level-140)) }
	constant := func(float64) float64 { return .05 }
	growing := func(level float64) float64 { return .03 + .14*(level-20)/160 }
	montecarlo.Run(t, "capacity, p95", map[string]rising{
		"rises by 0.05 % a conversation, truth 100":                  {rises(.0005, 100), constant, 100},
		"rises by 0.05 % a conversation, truth 140":                  {rises(.0005, 140), constant, 140},
		"rises by 0.20 % a conversation, truth 100":                  {rises(.002, 100), constant, 100},
		"rises by 0.20 % a conversation, truth 140":                  {rises(.002, 140), constant, 140},
		"rises by 0.40 % a conversation, truth 140":                  {rises(.004, 140), constant, 140},
		"rises by 0.40 % a conversation, growing scatter, truth 140": {rises(.004, 140), growing, 140},
		"rises by 1.00 % a conversation, truth 100":                  {rises(.01, 100), constant, 100},
		"rises by 1.00 % a conversation, truth 140":                  {rises(.01, 140), constant, 140},
		"has a kink, truth 140":                                      {kink, constant, 140},
		"has a kink, growing scatter, truth 140":                     {kink, growing, 140},
	}, func(t *testing.T, w rising, r *montecarlo.Results) {
		rng, c := rand.New(rand.NewPCG(8, 3)), r.Cell("search")
		for range trials() {
			plan := proof.CapacityPlan{
				Modes: []api.ModeState{{Mode: api.ModeKV}}, Resolution: 10, Seconds: 60, MaxTime: 36 * 60,
				SLO: api.SLO{TTFT: .6, TPOT: 1}, Seed: 1, Levels: api.LevelsOf(20, 40, 60, 80, 100, 120, 140, 160, 180),
			}
			search, err := proof.NewCapacity(plan)
			require.NoError(t, err)
			for {
				s, ok := search.Next()
				if !ok {
					break
				}
				at := s.Level.Value
				by := w.curve(at) + w.scatter(at)*rng.NormFloat64()
				require.Empty(t, search.Add(spanWith(s, plan.SLO.TTFT*math.Exp(by))))
			}
			m := search.State().Modes[0]
			c.Search(m.Level, m.Interval, m.Above, w.truth)
			c.Sample("spans", float64(len(search.Done)))
		}
		c.AtLeast(t, montecarlo.Covers, trials()-montecarlo.Most(trials()))
	})
}
