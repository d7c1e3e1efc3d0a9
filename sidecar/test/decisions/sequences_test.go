//go:build verify

package decisions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
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
		if t.FirstToken >= warmUp {
			l.first = append(l.first, arrival{began.Add(seconds(t.FirstToken - warmUp)), t.FirstToken - t.Sent})
		}
		if t.Ended >= warmUp {
			l.turns = append(l.turns, api.Turn{
				Ended: began.Add(seconds(t.Ended - warmUp)), Number: 1, Step: 1, Counted: true, Status: api.TurnOK,
				TTFT: new(t.FirstToken - t.Sent), TPOT: new((t.Ended - t.FirstToken) / (tokens - 1)),
				Latency: new(t.Ended - t.Sent), PromptTokens: &t.PromptTokens, CachedTokens: &t.CachedTokens,
				OutputTokens: &t.OutputTokens,
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
		c := baseline.Compare(lane.Compared(&is), was, api.AtConversations(60)).Columns[0]
		for name, v := range map[string]api.LookedUp{
			"TTFT p50": c.TTFT.P50, "TTFT p95": c.TTFT.P95, "TPOT p50": c.TPOT.P50, "TPOT p95": c.TPOT.P95,
			"latency p50": c.Latency.P50, "latency p95": c.Latency.P95,
			"throughput": c.OutputTokensPerSecond, "requests": c.RequestsPerSecond, "hit rate": c.KVHitRatio,
		} {
			different := v.Improvement.Outcome == api.OutcomeBetter || v.Improvement.Outcome == api.OutcomeWorse
			if _, known := first[name]; !known && different {
				first[name] = minute
			}
		}
	}
	return first
}

// A step is compared with a row of the same target every minute for an hour. An unchanged system is hardly ever called
// different, with constant or wandering speed, and a true difference is found soon.
func TestLiveVerdictsAgainstRow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ wander, effect float64 }{{0, 0}, {.01, 0}, {.01, -.15}, {.01, -.30}, {.01, -.40}} {
		some, different, minutes := 0, map[string]int{}, map[string][]float64{}
		for i := range trials() {
			was := row(world{wander: test.wander}, 2*i)
			first := liveVerdicts(was, world{wander: test.wander, effect: []float64{0, math.Log1p(test.effect)}}, 2*i+1)
			some += count(len(first) > 0)
			for _, name := range liveMetrics {
				at, ok := first[name]
				different[name] += count(ok)
				if !ok {
					at = math.Inf(1)
				}
				minutes[name] = append(minutes[name], at)
			}
		}
		line := ""
		for _, name := range liveMetrics {
			slices.Sort(minutes[name])
			line += fmt.Sprintf("; %s in %s %%, median %.0f min", name, percent(different[name], trials()),
				minutes[name][trials()/2])
		}
		figure.Report(t, "live, speed wanders by %.0f %%,"+
			" TTFT %+.0f %%: something called different within an hour in %s %%%s",
			100*test.wander, 100*test.effect, percent(some, trials()), line)
		if test.effect == 0 {
			assert.LessOrEqual(t, some, most(trials()))
		}
	}
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

// A step is compared with the latest step of another mode, by the mean TTFT, whenever a batch has ended, for an hour:
// with the variance of earlier steps and without.
func TestStepAgainstOtherMode(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		name string
		world
	}{
		{"nothing but chance", world{}},
		{"the speed wanders by 1 %", world{wander: .01}},
		{"the load swings by 15 %, and the speed wanders by 1 %", world{swing: .15, wander: .01}},
	} {
		for _, steps := range []int{0, 3} {
			for _, effect := range []float64{0, -.10, -.20} {
				t.Run(fmt.Sprintf("%s, %d earlier steps, %g %%", w.name, steps, 100*effect), func(t *testing.T) {
					t.Parallel()
					different, wrong := 0, 0
					var minutes []float64
					for i := range trials() {
						trial := 100 * i
						slower := w.world
						var others, own []stats.Series
						for step := range steps + 1 {
							others = append(others, series(slower, trial+step))
						}
						is := w.world
						is.effect = []float64{0, math.Log1p(effect)}
						for step := range steps {
							own = append(own, series(is, trial+50+step))
						}
						at := decidedAt(newLiveTarget(is, trial+99, 60, own), own, &others[len(others)-1], others)
						different += count(!math.IsInf(at, 0))
						wrong += count(at < 0)
						minutes = append(minutes, math.Abs(at))
					}
					slices.Sort(minutes)
					figure.Report(t, "a step against another mode as measured here, %s, %d earlier steps of either mode, "+
						"TTFT %+.0f %%: called different within an hour in %s %%, the wrong way round in %s %%; "+
						"median %.1f min, nine of ten by %.1f min",
						w.name, steps, 100*effect, percent(different, trials()), percent(wrong, trials()),
						minutes[trials()/2], minutes[trials()*9/10])
					if effect == 0 {
						assert.LessOrEqual(t, different, most(trials()))
					}
				})
			}
		}
	}
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

var liveMetrics = []string{
	"TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "latency p50", "latency p95", "throughput", "requests", "hit rate",
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
				row := api.BaselineRow{
					Level:     api.AtConversations(level),
					Mode:      mode.Mode,
					N:         900,
					Seconds:   300,
					Intervals: &api.RowIntervals{},
				}
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

// A report compares nine levels and three figures. At most 6 % of reports on equal modes name a level.
func TestSweepReportNamesDifferences(t *testing.T) {
	t.Parallel()
	constant := func(float64) float64 { return .04 }
	even := func(share float64) float64 { return .02 + .13*share }
	steep := func(share float64) float64 { return .02 * math.Pow(7.5, share) }
	for _, w := range []struct {
		name    string
		scatter func(share float64) float64
		heavy   bool
	}{
		{"4 % at all levels", constant, false},
		{"2 to 15 %, evenly", even, false},
		{"2 to 15 %, by the same factor", steep, false},
		{"4 % with heavy tails", constant, true},
		{"2 to 15 % with heavy tails", even, true},
	} {
		for _, repeats := range []int{2, 3, 6} {
			rng := rand.New(rand.NewPCG(7, uint64(repeats)))
			some, levels := [2]int{}, [2]int{}
			for range trials() {
				for i, effect := range []float64{0, math.Log(1.15)} {
					n := 0
					for _, s := range report.OfSweep(swept(rng, repeats, w.scatter, w.heavy, effect)).Pairs[0].Averages {
						n += len(s.Better) + len(s.Worse)
					}
					levels[i], some[i] = levels[i]+n, some[i]+count(n > 0)
				}
			}
			figure.Report(t, "sweeps whose spans scatter by %s, %d repeats: equal modes, some level named in %s %% of "+
				"reports; 15 %% slower, %s %% of all levels named",
				w.name, repeats, percent(some[0], trials()), percent(levels[1], 27*trials()))
			assert.LessOrEqual(t, some[0], most(trials()))
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// spanWith returns the result of a capacity search's span with a TTFT in seconds.
func spanWith(s proof.Span, ttft float64) proof.Result {
	r := proof.Recording{Until: s.Seconds, Tokens: make([]float64, int(s.Seconds)+1)}
	for at := 0.; at < s.Seconds; at++ {
		r.Turns = append(r.Turns, proof.Turn{Sent: at - ttft, FirstToken: at, Ended: at + .5, OutputTokens: 11, TPOT: .05})
	}
	return proof.Result{Elapsed: s.Seconds, Recording: r}
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
	for _, w := range []struct {
		name    string
		curve   func(level float64) float64
		scatter func(level float64) float64
		truth   float64
	}{
		{"p95 rises by 0.05 % a conversation", rises(.0005, 100), constant, 100},
		{"p95 rises by 0.05 % a conversation", rises(.0005, 140), constant, 140},
		{"p95 rises by 0.20 % a conversation", rises(.002, 100), constant, 100},
		{"p95 rises by 0.20 % a conversation", rises(.002, 140), constant, 140},
		{"p95 rises by 0.40 % a conversation", rises(.004, 140), constant, 140},
		{"p95 rises by 0.40 % a conversation, growing scatter", rises(.004, 140), growing, 140},
		{"p95 rises by 1.00 % a conversation", rises(.01, 100), constant, 100},
		{"p95 rises by 1.00 % a conversation", rises(.01, 140), constant, 140},
		{"p95 has a kink", kink, constant, 140},
		{"p95 has a kink, growing scatter", kink, growing, 140},
	} {
		rng := rand.New(rand.NewPCG(8, 3))
		covered, undetermined, estimates, widths, spans := 0, 0, []float64{}, []float64{}, []float64{}
		for range trials() {
			plan := proof.CapacityPlan{
				Modes: []api.ModeState{{Mode: api.ModeKV}}, Resolution: 10, Seconds: 60, MaxTime: 36 * 60,
				SLO: api.SLO{TTFT: .6, TPOT: 1}, Seed: 1, Levels: api.LevelsOf(20, 40, 60, 80, 100, 120, 140, 160, 180),
			}
			c, err := proof.NewCapacity(plan)
			require.NoError(t, err)
			for {
				s, ok := c.Next()
				if !ok {
					break
				}
				at := s.Level.Value
				by := w.curve(at) + w.scatter(at)*rng.NormFloat64()
				require.Empty(t, c.Add(spanWith(s, plan.SLO.TTFT*math.Exp(by))))
			}
			m := c.State().Modes[0]
			covered += count(m.Interval[0].Value <= w.truth && (m.Above || w.truth <= m.Interval[1].Value))
			undetermined += count(m.Interval[0].Value == 0 && m.Above)
			estimates, spans = append(estimates, m.Level.Value), append(spans, float64(len(c.Done)))
			width := m.Interval[1].Value - m.Interval[0].Value
			if m.Above {
				width = math.Inf(1)
			}
			widths = append(widths, width)
		}
		slices.Sort(estimates)
		slices.Sort(widths)
		slices.Sort(spans)
		n := len(estimates)
		figure.Report(t, "capacity, %s, truth %.0f: estimates %.0f to %.0f (nine of ten), median %.0f; interval covers "+
			"the truth in %s %%, median width %.0f, undetermined in %s %%; %.0f spans (median)",
			w.name, w.truth, estimates[n/20], estimates[n*19/20], estimates[n/2], percent(covered, n), widths[n/2],
			percent(undetermined, n), spans[n/2])
		assert.GreaterOrEqual(t, covered, n-most(n), w.name)
	}
}
