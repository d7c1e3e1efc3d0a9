//go:build verify

package intervals

import (
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/sweep"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// demo is the workload of the demo at a level.
func demo(level int) workload.Settings {
	return workload.Settings{
		Level: api.AtConversations(level), Turns: api.Range{Min: 5, Max: 5}, MaxTokens: 1024, StartRate: 10,
		OutputTokens: api.Distribution{Mean: 900, CV: .3}, Openings: workload.OpeningsOf(10),
	}
}

// ranIn runs a trial on a simulated cluster until its end.
func ranIn(t *testing.T, level int, seed uint64, o virtual.Options, q api.SweepRequest) (s api.Sweep) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, virtual.Folder(t))
		defer g.End()
		o.Mode, o.Seed, o.Restart = api.ModeKV, seed, 5*time.Second
		l := g.Lane(g.Cluster(o), demo(level))
		desk, err := sweep.Open(g.Context, sweep.Options{
			Program: "test", Lane: l, Catalog: g.Catalog, Store: g.Store, Log: g.Log,
			Lag: func(time.Time, time.Time) (stats.Lag, bool) { return stats.Lag{}, false },
		})
		require.NoError(t, err)
		g.Run()
		g.Go(desk.Run)
		synctest.Wait()
		q.Kind, q.Levels, q.Seed = api.SweepTrial, api.LevelsOf(level), &seed
		begun, err := desk.StartSweep(g.Context, "test", api.DefaultLane, q)
		require.NoError(t, err)
		wait.Within(t, 3*time.Hour, "the end", func() (any, bool) {
			s, err = desk.Sweep(g.Context, begun.ID)
			require.NoError(t, err)
			return s.Reason, s.State != api.SweepRunning
		})
		require.Equal(t, api.SweepDone, s.State, s.Reason)
	})
	return s
}

// settledMean is the mean TTFT of a mode over an hour, once the load has settled.
func settledMean(t *testing.T, level int, mode api.Mode, seed uint64) (mean float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, virtual.Folder(t))
		defer g.End()
		c := g.Cluster(virtual.Options{Mode: mode, Seed: seed})
		l := g.Lane(c, demo(level))
		g.Run()
		_, err := l.Start(g.Context, "test", api.StartRequest{})
		require.NoError(t, err)
		wait.Advance(70 * time.Minute)
		n := 0.
		for _, turn := range c.Turns() {
			if turn.Sent > 10*time.Minute {
				mean += (turn.FirstToken - turn.Sent).Seconds()
				n++
			}
		}
		mean /= n
	})
	return mean
}

// A switchback finds the difference that two modes have each in an hour of its own, in fewer minutes than a trial on
// cold caches.
func TestSwitchbackAgainstTruth(t *testing.T) {
	montecarlo.Run(t, "switchbacks at", montecarlo.Each("%d conversations", 60, 120),
		func(t *testing.T, level int, r *montecarlo.Results) {
			c := r.Cell("trial")
			for seed := range switchbacks() / 4 {
				c.Mean("true log difference", math.Log(settledMean(t, level, api.ModeKV, seed))-
					math.Log(settledMean(t, level, api.ModeRoundRobin, seed)))
			}
			for seed := range switchbacks() {
				s := ranIn(t, level, seed, virtual.Options{}, api.SweepRequest{})
				require.True(t, s.Request.Warm())
				require.NotNil(t, s.Trial.Final)
				c.Mean("estimated log difference", math.Log1p(s.Trial.Final.Difference))
				c.Count("wrong", s.Trial.Verdict == "a_better")
				c.Count("undecided", s.Trial.Verdict != "a_better" && s.Trial.Verdict != "b_better")
				c.Sample("minutes", s.Progress.SecondsUsed/60)
				t.Logf("%s %.1f minutes, %d blocks: %s", s.Trial.Verdict, s.Progress.SecondsUsed/60, s.Trial.Blocks, s.Words[0])
			}
			c.AtMost(t, "wrong", 0)
		})
}

// switchbacks returns the number of trials of a case: 40 with BENCH=1, else a few.
func switchbacks() uint64 {
	if os.Getenv("BENCH") != "" {
		return 40
	}
	return 8
}
