//go:build verify

package intervals

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	pairs = 200
	most  = 16 // of them that may differ at a nominal 5 %, which is 10

	warmUp = 7 * time.Minute // five turns of the slowest, and more
	apart  = 4 * time.Minute // from the end of a window to the beginning of its counterpart: the longest conversations
	begins = time.Minute     // from the beginning of one window to that of the next
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// series are windows of one length in a run, each begun a minute after the one before.
// A window is a step of its own, and several recorders take turns, since windows
// overlap.
type series struct {
	length    time.Duration
	meter     *stats.Meter
	recorders []*stats.Window
	latest    []int // the window of each recorder that is under way, below 0 before its first
	reports   []stats.Report
}

func newSeries(length time.Duration, n int, meter *stats.Meter) *series {
	s := &series{length: length, meter: meter, reports: make([]stats.Report, n)}
	for range length / begins {
		s.recorders = append(s.recorders, stats.NewWindow(began))
		s.latest = append(s.latest, -1)
	}
	return s
}

// add takes in a turn that ended, after the reports of the windows that had ended.
func (s *series) add(at time.Duration, sample stats.Sample) {
	for i, r := range s.recorders {
		since := at - warmUp - time.Duration(i)*begins
		if since < 0 {
			continue
		}
		window := int(since/s.length)*len(s.recorders) + i
		if over := s.latest[i]; over != window && 0 <= over && over < len(s.reports) {
			s.reports[over] = r.CountedAsArrived(s.meter, began.Add(s.end(over)), int64(over), api.SLO{TTFT: .6, TPOT: .06})
		}
		s.latest[i] = window
		sample.Ended, sample.Step = began.Add(at), int64(window)
		r.Add(sample)
	}
}

func (s *series) end(window int) time.Duration {
	return warmUp + time.Duration(window)*begins + s.length
}

// measure runs a setting and gives what the load generator says of n windows of each
// length.
func measure(t *testing.T, of setting, n int, lengths ...time.Duration) [][]stats.Report {
	t.Helper()
	meter := stats.NewMeter(began)
	var all []*series
	for _, length := range lengths {
		all = append(all, newSeries(length, n, meter))
	}
	tokens := func(at time.Duration, n int) { meter.Add(began.Add(at), n) }
	ended := func(at time.Duration, sample stats.Sample) {
		for _, s := range all {
			s.add(at, sample)
		}
	}
	// A minute more, in which the ends of the last windows are noticed.
	require.NoError(t, run(of, all[len(all)-1].end(n)+time.Minute, tokens, ended))
	var reports [][]stats.Report
	for _, s := range all {
		for i, r := range s.reports {
			require.Positive(t, r.OK, "window %d", i)
			require.InDelta(t, s.length.Seconds(), r.Window.Seconds, 10, "window %d", i)
		}
		reports = append(reports, s.reports)
	}
	return reports
}

// compare judges a window against another one that is kept as a row of this target.
func compare(was, is stats.Report) map[string]api.Improvement {
	row := was.Row()
	row.Concurrency, row.Mode, row.Speculation = 1, api.ModeKV, api.SpeculationOff
	column := against(is, api.Baseline{Name: api.ThisTarget, Kind: baseline.KindMeasured, Rows: []api.BaselineRow{row}})
	found := map[string]api.Improvement{}
	for name, value := range map[string]api.LookedUp{
		"TTFT p50": column.TTFT.P50, "TTFT p95": column.TTFT.P95, "TPOT p50": column.TPOT.P50, "TPOT p95": column.TPOT.P95,
		"ITL p50": column.ITL.P50, "ITL p95": column.ITL.P95, "latency p50": column.Latency.P50, "latency p95": column.Latency.P95,
		output: column.OutputTokensPerSecond, "requests/s": column.RequestsPerSecond, "hit rate": column.KVHitRatio,
	} {
		found[name] = *value.Improvement
	}
	return found
}

// against puts a window beside a baseline of one row.
func against(is stats.Report, b api.Baseline) api.Column {
	return baseline.Compare(baseline.Live{
		Metrics: is.Window.Metrics, N: is.OK, Seconds: is.Window.Seconds,
		OutputTokensPerSecond: &is.Window.OutputTokensPerSecond, OutputInterval: is.OutputInterval,
		RequestsPerSecond: &is.Window.RequestsPerSecond, RequestsInterval: is.RequestsInterval,
		KVHitRatio: is.HitRatio, HitInterval: is.HitInterval,
	}, b, b.Rows[0].Concurrency).Columns[0]
}

const output = "output tokens/s"

// share is how often an outcome came, of all pairs.
func share(n int) float64 { return float64(n) / pairs }

// Pairs of windows of one unchanged setting, at least a conversation apart, differ as
// rarely as 5 % promise, in every metric, at one minute and at two. Where the windows
// hold too little, it says so. -v prints the counts.
func TestWindowsOfOneSettingDoNotDiffer(t *testing.T) {
	for _, concurrency := range []int{60, 120, 180} {
		for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
			t.Run(fmt.Sprintf("%d %s", concurrency, mode), func(t *testing.T) {
				t.Parallel()
				lengths := []time.Duration{time.Minute, 2 * time.Minute}
				away := int((lengths[1] + apart) / begins)
				for i, windows := range measure(t, setting{concurrency: concurrency, mode: mode, seed: 1}, pairs+away, lengths...) {
					judge(t, concurrency, mode, lengths[i], windows, away)
				}
			})
		}
	}
}

// judge compares each window with the one that is so many windows away.
func judge(t *testing.T, concurrency int, mode api.Mode, length time.Duration, windows []stats.Report, away int) {
	differ, silent, width := map[string]int{}, map[string]int{}, map[string]float64{}
	for i := range pairs {
		for name, in := range compare(windows[i], windows[i+away]) {
			switch in.Outcome {
			case api.OutcomeBetter, api.OutcomeWorse:
				differ[name]++
			case api.OutcomeTooVariable:
				silent[name]++
				continue
			}
			width[name] += (in.Interval[1] - in.Interval[0]) / 2
		}
	}
	worst := 0
	for _, name := range slices.Sorted(maps.Keys(compare(windows[0], windows[1]))) {
		t.Logf("%s: %-16s %3d of %d differ, %3d too variable to say, else ± %.1f %%",
			length, name, differ[name], pairs, silent[name], width[name]/float64(max(1, pairs-silent[name])))
		worst = max(worst, differ[name])
		assert.LessOrEqual(t, differ[name], most, "%s at %s", name, length)
	}
	figure.Report(t, "windows of %s of one setting: at most %d of %d pairs differ in a metric, at a nominal 5 %%",
		length, worst, pairs)
	switch {
	case concurrency == 180 && mode == api.ModeKV:
		assert.Greater(t, share(silent["TTFT p95"]), .8, "TTFT p95 collapses now and then: a minute or two tell nothing of it")
	default:
		for _, name := range []string{output, "requests/s", "hit rate", "TTFT p50", "latency p50"} {
			assert.Less(t, share(silent[name]), .1, "%s at %s: it says nothing where it could", name, length)
		}
	}
}

// A true difference of 10 % in throughput at 120 is told within 120 s of a settled
// step, against a row of this target and against a recorded one.
func TestTrueDifferenceIsTold(t *testing.T) {
	const n, length = 40, 2 * time.Minute
	for mode, slower := range map[api.Mode]float64{api.ModeKV: 1.111, api.ModeRoundRobin: 1.113} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			was := measure(t, setting{concurrency: 120, mode: mode, seed: 1}, n, length)[0]
			is := measure(t, setting{concurrency: 120, mode: mode, seed: 2, slower: slower}, n, length)[0]
			before, after := mean(was), mean(is)
			require.InDelta(t, .9, after/before, .005, "the difference that is to be told")
			recorded := api.Baseline{Kind: baseline.KindRecorded, Rows: []api.BaselineRow{{Concurrency: 120, Mode: mode, Speculation: api.SpeculationOff, OutputTokensPerSecond: &before}}}
			told := map[string]int{}
			for i := range n {
				in := compare(was[i], is[i])[output]
				assert.NotEqual(t, api.OutcomeBetter, in.Outcome)
				if in.Outcome == api.OutcomeWorse {
					told["a row of this target"]++
				}
				if against(is[i], recorded).OutputTokensPerSecond.Improvement.Outcome == api.OutcomeWorse {
					told["a recorded row"]++
				}
			}
			for against, count := range told {
				figure.Report(t, "%.1f %% less throughput against %s: shown in %d of %d windows of 120 s",
					100-100*after/before, against, count, n)
			}
			assert.GreaterOrEqual(t, float64(told["a row of this target"])/n, .9)
			assert.GreaterOrEqual(t, float64(told["a recorded row"])/n, .9)
		})
	}
}

func mean(reports []stats.Report) float64 {
	sum := 0.0
	for _, r := range reports {
		sum += r.Window.OutputTokensPerSecond
	}
	return sum / math.Max(1, float64(len(reports)))
}
