package study

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
)

// curve returns a curve with values of one figure: one row per level, one value per run.
func curve(name string, field closedloop.Field, levels []int, values ...[]float64) Curve {
	c := Curve{Name: name}
	for i, level := range levels {
		p := Point{Level: api.AtConversations(level), Mode: api.ModeKV}
		for _, v := range values[i] {
			f := closedloop.Figures{}
			for _, other := range closedloop.Fields {
				*other.Of(&f) = math.NaN()
			}
			*field.Of(&f) = v
			p.Runs = append(p.Runs, f)
		}
		c.Points = append(c.Points, p)
	}
	return c
}

var p95 = closedloop.TTFT95

func TestCrossingsOfMeansAndRuns(t *testing.T) {
	levels := []int{60, 100, 140, 180}
	flat := curve("b", p95, levels, []float64{.6, .6}, []float64{.6, .6}, []float64{.6, .6}, []float64{.6, .6})
	once := curve("a", p95, levels, []float64{.4, .4}, []float64{.5, .4}, []float64{.7, .5}, []float64{.9, 1})
	found := Crossings(once, flat, p95)
	require.Len(t, found, 1)
	x := found[0]
	assert.InDelta(t, 140, x.At, 1e-9, "the means: 0 at 140, the last change of sign")
	assert.InDelta(t, 120, x.Low, 1e-9, "the first run: −.1 at 100, +.1 at 140")
	assert.InDelta(t, 148, x.High, 1e-9, "the second: −.1 at 140, +.4 at 180")
	assert.Equal(t, 2, x.Runs)
	assert.Equal(t, 1, x.Above, "the second curve is lower above the crossing")
	assert.Equal(t, -1, Crossings(flat, once, p95)[0].Above, "the first curve is lower in the reverse comparison")

	overlap := curve("a", p95, levels, []float64{.4, .4}, []float64{.5, .7}, []float64{.7, .5}, []float64{.5, .7})
	assert.Empty(t, Crossings(overlap, flat, p95), "ranges that overlap do not cross")

	twice := curve("a", p95, levels, []float64{.4, .4}, []float64{.8, .8}, []float64{.4, .4}, []float64{.4, .4})
	found = Crossings(twice, flat, p95)
	require.Len(t, found, 2)
	assert.InDelta(t, 80, found[0].At, 1e-9)
	assert.InDelta(t, 120, found[1].At, 1e-9)

	nan := math.NaN()
	gap := curve("a", p95, levels, []float64{.4, .4}, []float64{nan, nan}, []float64{.8, nan}, []float64{.8, .8})
	found = Crossings(gap, flat, p95)
	require.Len(t, found, 1)
	assert.Equal(t, 1, found[0].Runs, "the second run is NaN at 140")
	assert.InDelta(t, 100, found[0].Low, 1e-9, "the first: between 60 and 140")
	assert.InDelta(t, 100, found[0].High, 1e-9)
}

func TestVerdictListsLevelsOfEachSide(t *testing.T) {
	levels := []int{60, 80, 100, 120, 140}
	b := curve("b", p95, levels, []float64{2, 3}, []float64{2, 3}, []float64{2, 3}, []float64{2, 3}, []float64{2, 3})
	const overlap = " the ranges of the runs overlap, and no difference is shown."
	for want, values := range map[string][]float64{
		"TTFT p95: lower under a at 60 to 140.":                                                {1, 1, 1, 1, 1},
		"TTFT p95: lower under b at 60 and 80; at 100 to 140" + overlap:                        {4, 4, 3, 2.5, 2},
		"TTFT p95: lower under a at 60 and 100, lower under b at 140; at 80 and 120" + overlap: {1, 2, 1, 3, 4},
		"TTFT p95: at no level is there a difference beyond the spread of the runs.":           {2, 2, 3, 2.5, 2},
	} {
		rows := make([][]float64, len(values))
		for i, v := range values {
			rows[i] = []float64{v, v}
		}
		c := compare(curve("a", p95, levels, rows...), b)
		assert.Equal(t, want, c.verdict(ttft95))
	}
	c := compare(curve("a", hit.Field, levels[:1], []float64{.9, .95}),
		curve("b", hit.Field, levels[:1], []float64{.8, .85}))
	assert.Equal(t, "The KV hit rate: higher under a at 60.", c.verdict(hit))
}

// figures returns the figures of one run that the explanation uses.
func figures(ttft95, queue, twice, spread, herding float64) closedloop.Figures {
	return closedloop.Figures{
		TTFTMean: ttft95 / 2, TTFT50: ttft95 / 2, TTFT95: ttft95, TPOT50: .04, TokensPerSecond: 3000, Hit: .9,
		Causes: closedloop.Causes{
			LargestQueue: queue, Twice: twice, Spread: spread, Skew: 1.1, Herding: herding, Full: herding / 2,
		},
	}
}

func point(level int, mode api.Mode, runs ...closedloop.Figures) Point {
	return Point{Level: api.AtConversations(level), Mode: mode, Runs: runs}
}

func TestExplainDescribesDifferencesAndCauses(t *testing.T) {
	points := []Point{
		point(60, api.ModeKV, figures(.4, .1, .02, 6, .01), figures(.42, .3, .03, 6, .02)),
		point(60, api.ModeRoundRobin, figures(.6, .2, .16, 2, 0), figures(.62, .2, .17, 2, 0)),
		point(180, api.ModeKV, figures(3, 20, .03, 12, .2), figures(4, 22, .03, 11, .3)),
		point(180, api.ModeRoundRobin, figures(.7, 2, .18, 4, 0), figures(.8, 1, .19, 5, 0)),
	}
	assert.Equal(t, []string{
		"Simulated, not measured: KV-aware against Round-robin, means over 2 runs at each level; " +
			"of the longest waits, the longest of all runs.",
		"Mean TTFT under KV-aware over that under Round-robin, with 95 % intervals over pairs of runs: " +
			"0.672 (0.607 to 0.744) at 60 and 4.629 (1.739 to 12.326) at 180.",
		"TTFT p50: lower under KV-aware at 60, lower under Round-robin at 180.",
		"The mean curves of TTFT p50 cross at about 68 conversations, those of single runs between 67 and 70, " +
			"all interpolated between levels; above that, KV-aware is the higher one.",
		"TTFT p95: lower under KV-aware at 60, lower under Round-robin at 180.",
		"The mean curves of TTFT p95 cross at about 68 conversations, those of single runs between 67 and 70, " +
			"all interpolated between levels; above that, KV-aware is the higher one.",
		"TPOT p50: at no level is there a difference beyond the spread of the runs.",
		"Output tokens per second: at no level is there a difference beyond the spread of the runs.",
		"The KV hit rate: at no level is there a difference beyond the spread of the runs.",
		"At 60, Round-robin is furthest behind KV-aware, with a TTFT p95 of 610 ms against 410 ms: " +
			"it recomputes more tokens; its queues are not shown to be longer. " +
			"The longest wait in a queue is 200 ms against 300 ms, " +
			"and 16.5 % of the prompt tokens are recomputed against 2.5 %.",
		"At 180, KV-aware is furthest behind Round-robin, with a TTFT p95 of 3,500 ms against 750 ms: " +
			"it waits longer in queues and does not recompute more tokens. " +
			"The longest wait in a queue is 22,000 ms against 2,000 ms, and 3.0 % of the prompt tokens are recomputed " +
			"against 18.5 %. " +
			"Its load is less even: its busiest worker has 11.5 more requests in flight than its least busy " +
			"(Round-robin: 4.5), in 12.5 % of the seconds some worker has more in flight than its batch holds " +
			"(Round-robin: 0.0 %) and 25.0 % of the first turns go to a worker more than 10 % busier than the average " +
			"(Round-robin: 0.0 %).",
		"At 60, KV-aware against Round-robin: TTFT p50 205 ms against 305 ms, p95 410 ms against 610 ms; " +
			"longest wait in a queue 300 ms against 200 ms; in-flight skew 1.10 against 1.10, spread 6.0 against 2.0; " +
			"first turns sent to the busiest worker 1.5 % against 0.0 %; prompt tokens recomputed 2.5 % against 16.5 %.",
		"At 180, KV-aware against Round-robin: TTFT p50 1,750 ms against 375 ms, p95 3,500 ms against 750 ms; " +
			"longest wait in a queue 22,000 ms against 2,000 ms; in-flight skew 1.10 against 1.10, spread 11.5 against 4.5; " +
			"first turns sent to the busiest worker 25.0 % against 0.0 %; prompt tokens recomputed 3.0 % against 18.5 %.",
	}, ExplainModes(points))
	assert.Empty(t, ExplainModes(points[:1]), "a single mode has no comparison")
	assert.Equal(t, []string{
		"KV-aware and Round-robin cross in TTFT p95 at about 68 conversations, interpolated between levels; " +
			"above that, KV-aware has the higher one.",
		"At 60, Round-robin is furthest behind KV-aware, with a TTFT p95 of 610 ms against 410 ms: " +
			"it recomputes more tokens; its queues are not shown to be longer.",
		"At 180, KV-aware is furthest behind Round-robin, with a TTFT p95 of 3,500 ms against 750 ms: " +
			"it waits longer in queues and does not recompute more tokens.",
	}, Reasons(points))
	assert.Empty(t, Reasons(points[:1]))
	equal := []Point{
		point(60, api.ModeKV, figures(.4, .1, .02, 6, .01)), point(60, api.ModeRoundRobin, figures(.4, .1, .02, 6, .01)),
	}
	noDifference := "TTFT p95: at no level is there a difference beyond the spread of the runs."
	assert.Equal(t, []string{noDifference}, Reasons(equal))

	other := Curve{"today", []Point{point(90, api.ModeKV, figures(1, 1, 1, 1, 1))}}
	assert.Equal(t, []string{"today and KV-aware share no level, so nothing can be compared."},
		Explain(other, Curves(points)[0]))
	alone := Explain(Curve{"A", points[:1]}, Curve{"B", points[:1]})
	assert.Contains(t, strings.Join(alone, "\n"), "TTFT p95: at no level")
	single := Explain(Curve{"A", []Point{point(60, api.ModeKV, points[0].Runs[0])}},
		Curve{"B", []Point{point(60, api.ModeKV, points[1].Runs[0])}})
	assert.Equal(t, "Simulated, not measured: A against B, one run at each level, "+
		"so chance cannot be separated from a real difference.", single[0])
}

func TestReasonNamesQueuesAndRecomputation(t *testing.T) {
	good := figures(.5, .2, .1, 5, .1)
	for want, bad := range map[string]closedloop.Figures{
		"it waits longer in queues and does not recompute more tokens":     figures(.9, .4, .1, 5, .1),
		"it recomputes more tokens; its queues are not shown to be longer": figures(.9, .2, .3, 5, .1),
		"it recomputes more tokens, and waits longer in queues":            figures(.9, .4, .3, 5, .1),
		"neither longer queues nor more tokens recomputed are shown":       figures(.9, .2, .1, 5, .1),
	} {
		c := compare(Curve{"A", []Point{point(60, api.ModeKV, bad, bad)}},
			Curve{"B", []Point{point(60, api.ModeKV, good, good)}})
		found := c.extremes()
		require.Len(t, found, 1)
		assert.Equal(t, "At 60, A is furthest behind B, with a TTFT p95 of 900 ms against 500 ms: "+want+".", found[0].reason)
		assert.NotContains(t, found[0].figures, "less even")
	}
}
