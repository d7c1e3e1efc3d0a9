//go:build verify

package intervals

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
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
		s.lane = g.Lane(g.Cluster(o), workload.Settings{
			Level: api.AtConversations(level), Turns: api.Range{Min: 5, Max: 5}, MaxTokens: 1024, StartRate: 10,
			Output: &api.Distribution{Mean: 900, CV: .3}, Openings: workload.OpeningsOf(10),
		}, func(o *lane.Options) { o.RampedStart, o.Seed = true, seed })
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

// sentence is a headline, and when it was first shown after a switch.
type sentence struct {
	second int
	api.Headline
}

// certainAt returns the second from which the sentence or one of the lines with a reference is certain.
func certainAt(all []sentence, against api.HeadlineReference) float64 {
	for _, s := range all {
		for _, l := range s.Lines {
			if l.Against == against && (l.Kind == api.HeadlineBetter || l.Kind == api.HeadlineWorse) {
				return float64(s.second)
			}
		}
	}
	return math.Inf(1)
}

// The two modes are switched in place. The sentence is certain soon, and right: kv is sooner up to 120 conversations,
// and later at 180, where it collapses in waves of several minutes.
func TestSentenceAfterASwitch(t *testing.T) {
	for _, test := range []struct {
		level, switches, seconds int
		kvIsSooner               bool
	}{{60, 10, 300, true}, {120, 5, 300, true}, {180, 5, 1500, false}} {
		t.Run(fmt.Sprint(test.level), func(t *testing.T) {
			t.Parallel()
			var measured, recorded []float64
			wrong, takenBack := 0, 0
			onStage(t, test.level, 3, virtual.Options{}, func(s *stage) {
				mode := api.ModeKV
				for i := range test.switches {
					mode = map[api.Mode]api.Mode{api.ModeKV: api.ModeRoundRobin, api.ModeRoundRobin: api.ModeKV}[mode]
					s.switchTo(mode)
					var all []sentence
					last := ""
					for second := 1; second <= test.seconds; second++ {
						wait.Advance(time.Second)
						h := s.headline()
						all = append(all, sentence{second, h})
						words, _, _ := strings.Cut(h.Text, ",")
						if words != last && !strings.HasPrefix(words, "Settling") {
							t.Logf("switch %d to %s: %d s: %s (%s)", i+1, mode, second, h.Text, strings.Join(h.Detail, " · "))
						}
						last = words
						if h.Certain && h.Against == api.AgainstMeasured &&
							(h.Kind == api.HeadlineBetter) != (test.kvIsSooner == (mode == api.ModeKV)) {
							wrong++
						}
						if h.Since != nil && !h.Certain {
							takenBack++
						}
					}
					measured = append(measured, certainAt(all, api.AgainstMeasured))
					recorded = append(recorded, certainAt(all, api.AgainstRecorded))
				}
			})
			slices.Sort(measured)
			slices.Sort(recorded)
			half, most := (test.switches-1)/2, (test.switches*9-1)/10
			figure.Report(t, "%d switches at %d conversations: certain against the other mode as measured here after %.0f s "+
				"(half) and %.0f s (nine of ten), against the recording after %.0f and %.0f s; %d s with a wrong sentence, "+
				"%d s with one that was certain before", test.switches, test.level, measured[half], measured[most],
				recorded[half], recorded[most], wrong, takenBack)
			assert.Zero(t, wrong)
			if test.level == 60 {
				assert.LessOrEqual(t, measured[half], 100.)
				assert.LessOrEqual(t, measured[most], 150.)
				assert.LessOrEqual(t, recorded[half], 150.)
				assert.LessOrEqual(t, recorded[most], 300.)
			}
		})
	}
}

// A mode against itself, as it was measured here before, for an hour.
func TestEqualModesAreNotCalledDifferent(t *testing.T) {
	for _, test := range []struct{ level, hours int }{{60, 40}, {180, 10}} {
		different := make(chan string, test.hours)
		t.Run(fmt.Sprint(test.level), func(t *testing.T) {
			for i := range test.hours {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					onStage(t, test.level, uint64(100+i), virtual.Options{Alike: true}, func(s *stage) {
						s.switchTo(api.ModeRoundRobin)
						for second := range 3600 {
							wait.Advance(time.Second)
							for _, l := range s.headline().Lines {
								if l.Against == api.AgainstMeasured && (l.Kind == api.HeadlineBetter || l.Kind == api.HeadlineWorse) {
									different <- fmt.Sprintf("hour %d: %d s: %s", i, second, l.Text)
									return
								}
							}
						}
					})
				})
			}
		})
		close(different)
		n := 0
		for text := range different {
			t.Log(text)
			n++
		}
		figure.Report(t, "kv against kv as measured here at %d conversations, for an hour each: "+
			"called better or worse in %d of %d", test.level, n, test.hours)
		assert.LessOrEqual(t, n, max(1, test.hours/20))
	}
}
