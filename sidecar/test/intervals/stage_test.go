//go:build verify

package intervals

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// stage is a load generator on the simulated cluster with the workload of the demo, as on a stage.
type stage struct {
	*virtual.Generator

	t    *testing.T
	lane *lane.Lane
}

// onStage runs a load generator in kv mode at a level for ten minutes, and then play.
func onStage(t *testing.T, level int, seed uint64, o virtual.Options, play func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, virtual.Folder(t))
		defer g.End()
		o.Mode, o.Seed = api.ModeKV, seed
		s := &stage{Generator: g, t: t}
		s.lane = g.Lane(g.Cluster(o), demo(level), func(o *lane.Options) { o.RampedStart, o.Seed = true, seed })
		g.Run()
		recorded := api.SettingsPatch{DefaultBaseline: new("h200x3-tp1-llama70b-fp8")}
		_, err := g.Catalog.PatchSettings(g.Context, "test", recorded)
		require.NoError(t, err)
		_, err = s.lane.Start(g.Context, "test", api.StartRequest{})
		require.NoError(t, err)
		wait.Advance(10 * time.Minute)
		play(s)
	})
}

// headline returns the headline of this second.
func (s *stage) headline() api.Headline { return *s.View.Snapshot().Lanes[0].Baseline.Headline }

func (s *stage) switchTo(m api.Mode) {
	s.t.Helper()
	_, err := s.lane.SetMode(s.Context, "test", api.ModeRequest{Mode: m})
	require.NoError(s.t, err)
}

// certain reports whether the sentence or one of its lines is certain against a reference.
func certain(h api.Headline, against api.HeadlineReference) bool {
	return slices.ContainsFunc(h.Lines, func(l api.HeadlineLine) bool {
		return l.Against == against && (l.Kind == api.HeadlineBetter || l.Kind == api.HeadlineWorse)
	})
}

// onAStage are switches between two modes at a level, each watched for some seconds.
type onAStage struct {
	level, switches, seconds int
	kvIsSooner               bool
}

// The two modes are switched in place. The sentence is certain soon, and right: kv is sooner up to 120 conversations,
// and later at 180, where it collapses in waves of several minutes.
func TestSentenceAfterASwitch(t *testing.T) {
	references := []api.HeadlineReference{api.AgainstMeasured, api.AgainstRecorded}
	montecarlo.Run(t, "switches at", map[string]onAStage{
		"60": {60, 10, 300, true}, "120": {120, 5, 300, true}, "180": {180, 5, 1500, false},
	}, func(t *testing.T, of onAStage, r *montecarlo.Results) {
		const seconds, wrong, takenBack = "seconds until certain", "wrong", "certain before"
		onStage(t, of.level, 3, virtual.Options{}, func(s *stage) {
			for i := range of.switches {
				mode := []api.Mode{api.ModeRoundRobin, api.ModeKV}[i%2]
				s.switchTo(mode)
				last, first := "", map[api.HeadlineReference]float64{}
				for second := 1; second <= of.seconds; second++ {
					wait.Advance(time.Second)
					h := s.headline()
					for _, against := range references {
						if first[against] == 0 && certain(h, against) {
							first[against] = float64(second)
						}
					}
					words, _, _ := strings.Cut(h.Text, ",")
					if words != last && !strings.HasPrefix(words, "Settling") {
						t.Logf("switch %d to %s: %d s: %s (%s)", i+1, mode, second, h.Text, strings.Join(h.Detail, " · "))
					}
					last = words
					r.Cell("sentence").Count(wrong, h.Certain && h.Against == api.AgainstMeasured &&
						(h.Kind == api.HeadlineBetter) != (of.kvIsSooner == (mode == api.ModeKV)))
					r.Cell("sentence").Count(takenBack, h.Since != nil && !h.Certain)
				}
				for _, against := range references {
					r.Cell(string(against)).Sample(seconds, cmp.Or(first[against], math.Inf(1)))
				}
			}
		})
		r.Cell("sentence").AtMost(t, wrong, 0)
		if of.level == 60 {
			measured, recorded := r.Cell(string(api.AgainstMeasured)), r.Cell(string(api.AgainstRecorded))
			assert.LessOrEqual(t, measured.Quantile(seconds, .5), 100.)
			assert.LessOrEqual(t, measured.Quantile(seconds, .9), 150.)
			assert.LessOrEqual(t, recorded.Quantile(seconds, .5), 150.)
			assert.LessOrEqual(t, recorded.Quantile(seconds, .9), 300.)
		}
	})
}

// A mode against itself, as it was measured here before, for an hour.
func TestEqualModesAreNotCalledDifferent(t *testing.T) {
	for level, hours := range map[int]int{60: 40, 180: 10} {
		var mu sync.Mutex
		var of montecarlo.Results
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			for i := range hours {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					different := false
					onStage(t, level, uint64(100+i), virtual.Options{Alike: true}, func(s *stage) {
						s.switchTo(api.ModeRoundRobin)
						for second := 0; second < 3600 && !different; second++ {
							wait.Advance(time.Second)
							if h := s.headline(); certain(h, api.AgainstMeasured) {
								t.Logf("%d s: %s", second, h.Text)
								different = true
							}
						}
					})
					mu.Lock()
					defer mu.Unlock()
					of.Cell("kv against itself").Count("called better or worse within an hour", different)
				})
			}
		})
		figure.Report(t, "as measured here, at %d conversations: %v", level, &of)
		of.Cell("kv against itself").AtMost(t, "called better or worse within an hour", max(1, hours/20))
	}
}
