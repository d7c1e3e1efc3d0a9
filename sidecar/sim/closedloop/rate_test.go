package closedloop

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
)

// atRate returns a loop of conversations of two turns of 100 tokens on one worker that come at a rate, and the moments
// at which turns were sent, by conversation.
func atRate(t *testing.T, rate float64, change func(*Workload)) (*Loop, map[int64][]time.Duration) {
	p := sim.H200()
	p.Workers = 1
	w := Recorded()
	w.Level, w.Turns, w.MaxTokens, w.Output = api.AtRate(rate), api.Range{Min: 2, Max: 2}, 100, nil
	w.Arrivals, w.Burstiness = api.ArrivalsPoisson, 1
	change(&w)
	l, err := New(sim.DefaultOptions(p), w)
	require.NoError(t, err)
	sent := map[int64][]time.Duration{}
	l.OnAsk = func(turn *Turn, _ sim.Request) {
		sent[turn.Conversation] = append(sent[turn.Conversation], l.Cluster.Now())
	}
	return l, sent
}

// Conversations begin exactly at the moments of the schedule, which a live load with the same seed has too, however
// slow the cluster is. The load settles when the first conversation has ended.
func TestRateKeepsToTheSchedule(t *testing.T) {
	for name, rate := range map[string]float64{"sustained": .5, "overloaded": 20} {
		l, sent := atRate(t, rate, func(*Workload) {})
		assert.False(t, l.Settled(), name)
		require.NoError(t, l.Run(5*time.Minute))
		schedule := arrival.NewOpen(0, 0, arrival.Ramp{To: rate},
			arrival.Schedule{Gaps: api.ArrivalsPoisson, Burstiness: 1, Seed: 1})
		assert.InEpsilon(t, 300*rate, len(sent), .2, name)
		for k := range int64(len(sent)) {
			require.Equal(t, schedule.Begin(arrival.State{}), sent[k][0], "conversation %d, %s", k, name)
		}
		assert.True(t, l.Settled(), name)
		overloaded := 0.
		if name == "overloaded" {
			overloaded = 1
		}
		assert.Equal(t, overloaded, l.Recorded(0).Overloaded, name)
	}
}

// Beyond the limit of turns in flight, arrivals and further turns are dropped and counted; those that are left keep
// their moments.
func TestRateDropsBeyondTheLimit(t *testing.T) {
	full, all := atRate(t, 20, func(*Workload) {})
	require.NoError(t, full.Run(time.Minute))
	l, few := atRate(t, 20, func(w *Workload) { w.MaxInflight = 30 })
	require.NoError(t, l.Run(time.Minute))
	dropped := 0
	for _, s := range l.Seconds() {
		dropped += s.Dropped
		assert.LessOrEqual(t, s.All, 30)
	}
	notSent := int(l.begun) - len(few)
	for k, sent := range few {
		assert.Equal(t, all[k][0], sent[0], "conversation %d", k)
		if _, active := l.active[k]; len(sent) == 1 && !active {
			notSent++
		}
	}
	assert.Positive(t, notSent)
	assert.Equal(t, notSent, dropped)
	assert.Equal(t, 1., l.Recorded(0).Overloaded)
}

// On one worker that serves one turn at a time, with turns that all take equally long, utilization and mean wait are
// those of queueing theory: by Lindley's recursion on the gaps, and for poisson by the formula of Pollaczek and
// Khinchine.
func TestRateMatchesQueueingTheory(t *testing.T) {
	const load = .7
	run := func(rate float64, s arrival.Schedule, until time.Duration) (turns []Turn) {
		p := sim.H200()
		p.Workers, p.MaxSequences = 1, 1
		o, w := sim.DefaultOptions(p), Recorded()
		o.Speculation = api.SpeculationOff
		w.Level, w.Turns, w.MaxTokens, w.Output = api.AtRate(rate), api.Range{Min: 1, Max: 1}, 20, nil
		w.Openings, w.OpeningTokens = 0, []int{500}
		w.Arrivals, w.Burstiness = s.Gaps, s.Burstiness
		l, err := New(o, w)
		require.NoError(t, err)
		require.NoError(t, l.Run(until))
		return l.Turns()
	}
	busy := run(10, arrival.Schedule{Gaps: api.ArrivalsConstant}, time.Minute)
	service := (busy[len(busy)-1].Ended - busy[9].Ended).Seconds() / float64(len(busy)-10)
	const span = 5 * time.Hour
	for name, row := range map[string]struct {
		schedule  arrival.Schedule
		variation float64 // coefficient of variation of the gaps
	}{
		"constant": {arrival.Schedule{Gaps: api.ArrivalsConstant}, 0},
		"poisson":  {arrival.Schedule{Gaps: api.ArrivalsPoisson}, 1},
		"gamma":    {arrival.Schedule{Gaps: api.ArrivalsGamma, Burstiness: .5}, math.Sqrt2},
	} {
		turns := run(load/service, row.schedule, span)
		var wait, want, next float64
		var gaps []float64
		way := turns[0].Started - turns[0].Submitted // to an idle worker
		for i := range turns {
			if i > 0 {
				gaps = append(gaps, (turns[i].Submitted - turns[i-1].Submitted).Seconds())
				next = max(0, next+service-gaps[i-1])
			}
			want += next / service / float64(len(turns))
			wait += (turns[i].Started - turns[i].Submitted - way).Seconds() / service / float64(len(turns))
		}
		mean, deviation := stat.MeanStdDev(gaps, nil)
		utilization := float64(len(turns)) * service / span.Seconds()
		t.Logf("%s: utilization %.3f (%.1f), mean wait %.3f service times (%.3f), variation of the gaps %.3f (%.3f)", name,
			utilization, load, wait, want, deviation/mean, row.variation)
		assert.InDelta(t, load, utilization, .015, name)
		assert.InDelta(t, want, wait, .01+.02*want, name)
		assert.InDelta(t, row.variation, deviation/mean, .03, name)
		if name == "poisson" {
			assert.InEpsilon(t, utilization/(2*(1-utilization)), wait, .05)
		}
	}
}
