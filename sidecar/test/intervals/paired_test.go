//go:build verify

package intervals

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// onLane is a turn of one of two lanes.
type onLane struct {
	conversation int64
	number       int
	sent, ended  time.Duration
	side         workload.Outcome
}

// runLane runs a cluster and returns the turns that ended.
func runLane(mode api.Mode, concurrency int, draws, system uint64, until time.Duration) (all []onLane, err error) {
	l, _, err := virtual.Setting{
		Concurrency: concurrency, Mode: mode, Draws: draws, System: system, Turns: api.Range{Min: 3, Max: 5},
	}.Loop()
	if err != nil {
		return nil, err
	}
	l.OnTurn = func(t *closedloop.Turn) {
		tpot, _ := t.TPOT()
		all = append(all, onLane{t.Conversation, t.Number, t.Submitted, t.Ended, workload.Outcome{
			TTFT: t.TTFT().Seconds(), TPOT: tpot.Seconds(), Latency: t.Latency().Seconds(),
			PromptTokens: t.PromptTokens, CachedTokens: t.CachedTokens, HasCached: true,
		}})
	}
	return all, l.Run(until)
}

// looked is the result of comparing a pair of lanes every minute.
type looked struct {
	excluded map[string]time.Duration // when each interval first excluded 0
	missed   map[string]bool          // whether an interval excluded the truth at some time
	evidence api.TwinEvidence
	last     []api.PairedMetric
}

// pair pairs the turns of two lanes as the load generator does, from when both have settled, and calls look every
// minute.
func pair(lanes [2][]onLane, concurrency int, settled time.Duration, look func(at time.Duration, p *proof.Pairs)) {
	type key struct {
		conversation int64
		number       int
	}
	type both struct{ a, b onLane }
	first := map[key]onLane{}
	for _, t := range lanes[0] {
		first[key{t.conversation, t.number}] = t
	}
	var all []both
	for _, b := range lanes[1] {
		if a, ok := first[key{b.conversation, b.number}]; ok && min(a.sent, b.sent) >= settled {
			all = append(all, both{a, b})
		}
	}
	ended := func(t both) time.Duration { return max(t.a.ended, t.b.ended) }
	slices.SortFunc(all, func(x, y both) int { return cmp.Compare(ended(x), ended(y)) })
	p, next := proof.NewPairs(concurrency, 4), time.Minute
	for _, t := range all {
		for ; next <= ended(t); next += time.Minute {
			look(next, p)
		}
		p.Add(proof.PairedTurn{
			Conversation: t.b.conversation, Number: t.b.number, Ended: began.Add(ended(t)), Sides: [2]workload.Outcome{
				t.a.side, t.b.side,
			},
		})
	}
}

// runs simulates n pairs of lanes for an hour, each with its own draws and clusters. Truth is their difference.
func runs(t *testing.T, modes [2]api.Mode, concurrency, n int, truth map[string]float64) []looked {
	t.Helper()
	results := make([]looked, n)
	settled := time.Duration(float64(concurrency) / 10 * float64(time.Second)) // ten conversations start per second
	var group errgroup.Group
	group.SetLimit(2)
	for run := range n {
		group.Go(func() (err error) {
			var lanes [2][]onLane
			for i, mode := range modes {
				lanes[i], err = runLane(mode, concurrency, uint64(run+1), uint64(10_000+2*run+i), time.Hour)
				if err != nil {
					return err
				}
			}
			r, likeness := looked{map[string]time.Duration{}, map[string]bool{}, api.EvidenceNone, nil}, new(proof.Likeness)
			pair(lanes, concurrency, settled, func(at time.Duration, p *proof.Pairs) {
				r.last = nil
				for _, d := range p.Differences() {
					m := d.API()
					r.last = append(r.last, m)
					if m.Interval == nil {
						continue
					}
					if _, known := r.excluded[m.Metric]; !known && (m.Interval[0] > 0 || m.Interval[1] < 0) {
						r.excluded[m.Metric] = at
					}
					v, ok := truth[m.Metric]
					r.missed[m.Metric] = r.missed[m.Metric] || ok && (v < m.Interval[0] || m.Interval[1] < v)
				}
				if e, _ := likeness.Look(p); r.evidence == api.EvidenceNone {
					r.evidence = e
				}
			})
			results[run] = r
			return nil
		})
	}
	require.NoError(t, group.Wait())
	return results
}

// lanes are pairs of lanes, kv and another mode.
type lanes struct {
	other       api.Mode
	concurrency int
}

// String names the modes and the level.
func (l lanes) String() string { return fmt.Sprintf("kv and %s at %d", l.other, l.concurrency) }

// Two lanes in one mode are compared every minute for an hour, and are hardly ever found to differ in any metric. The
// intervals of kv against round-robin cover the mean of all runs, and exclude 0 soon. BENCH=1 adds runs, and other
// concurrencies.
func TestPairedIntervalsCoverTruth(t *testing.T) {
	n, levels := 40, []int{60}
	if os.Getenv("BENCH") != "" {
		n, levels = 200, []int{60, 120, 180}
	}
	var all []lanes
	for _, concurrency := range levels {
		all = append(all, lanes{api.ModeKV, concurrency}, lanes{api.ModeRoundRobin, concurrency})
	}
	most := n/20 + int(3*math.Sqrt(.05*.95*float64(n)))
	montecarlo.Run(t, "lanes", montecarlo.Each("%v", all...), func(t *testing.T, l lanes, r *montecarlo.Results) {
		equal, modes, truth := l.other == api.ModeKV, [2]api.Mode{api.ModeKV, l.other}, map[string]float64{}
		for _, m := range proof.PairedMetrics {
			truth[string(m)] = 0
		}
		all := runs(t, modes, l.concurrency, n, truth)
		if !equal {
			for _, run := range all {
				for _, m := range run.last {
					truth[m.Metric] += *m.Difference / float64(n)
				}
			}
			all = runs(t, modes, l.concurrency, n, truth)
		}
		c := r.Cell("within an hour")
		for _, run := range all {
			missed := slices.Contains(slices.Collect(maps.Values(run.missed)), true)
			c.Count("some interval wrong at some time", missed || equal && len(run.excluded) > 0)
			for _, e := range []api.TwinEvidence{api.EvidenceNone, api.EvidenceAlike, api.EvidenceDiffer} {
				c.Count(string(e), run.evidence == e)
			}
			for i, m := range proof.PairedMetrics {
				require.NotNil(t, run.last[i].Interval, "%s after an hour", m)
				at, minutes := run.excluded[string(m)], math.Inf(1)
				if at > 0 {
					minutes = at.Minutes()
				}
				r.Cell(string(m)).Mean("half width", (run.last[i].Interval[1]-run.last[i].Interval[0])/2)
				r.Cell(string(m)).Mean("variance ratio", *run.last[i].VarianceRatio)
				r.Cell(string(m)).Sample("minutes until it leaves out 0", minutes)
			}
		}
		c.AtMost(t, "some interval wrong at some time", most)
		if equal {
			c.AtMost(t, string(api.EvidenceDiffer), most/2)
		}
	})
}
