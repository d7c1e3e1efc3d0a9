package workload

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// draws returns the draws of the conversations from 0 to n-1.
func draws(t testing.TB, seed uint64, n int, s Settings) []drawn {
	t.Helper()
	all, texts := make([]drawn, n), articles(t)
	for k := range all {
		all[k] = newDraw(seed, int64(k), int64(k), 0, s, texts)
	}
	return all
}

// shape describes the properties of a draw that a target receives.
func (d *drawn) shape() string {
	return fmt.Sprint(d.starter.ID, d.Turns, d.MaxTokens[:d.Turns])
}

// Conversation k depends only on the seed and k, not on faults, answers or rates. The first conversations of a workload
// can start in their middle. They have fewer turns, which are the first ones of those that they would have had.
func TestDrawsDependOnSeedAndNumberAlone(t *testing.T) {
	busy := booth(50)
	busy.StartRate, busy.TargetRPS, busy.ThinkTime = 100, 9, 3*time.Second
	want := draws(t, 42, 100, booth(1))
	for _, tt := range []struct {
		settings Settings
		target   *server
		ramped   int64
	}{
		{booth(7), &server{}, 0},
		{busy, &server{fault: faulty(7, .1), text: func(int) string { return "Something else entirely." }}, 0},
		{booth(20), &server{}, 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, tt.target, tt.settings, func(o *Options) { o.Seed, o.RampedStart = 42, tt.ramped })
			advance(15 * time.Minute)
			r.stop()
			all, _ := r.ended()
			require.Greater(t, len(all), 80)
			sent, short := tt.target.conversations(), 0
			for _, e := range all {
				if e.Number >= int64(len(want)) {
					continue
				}
				d := want[e.Number]
				assert.Equal(t, d.starter.ID, e.Starter)
				if e.Number >= tt.ramped {
					assert.Equal(t, d.Turns, e.Planned)
				} else if e.Planned < 3 {
					short++
				}
				for n, turn := range sent[e.ID] {
					assert.Equal(t, d.MaxTokens[n], turn.MaxTokens, "turn %d of %s", n+1, e.ID)
				}
			}
			assert.InDelta(t, float64(tt.ramped)/2, short, float64(tt.ramped)*.3, "less than three turns, as half of them have")
		})
	}
}

// All conversations are drawn differently. Starters and numbers of turns are uniform among the numbers of one seed, and
// among the first conversations of many seeds. The limits are those of chi-square at one in a thousand.
func TestDrawsAreUniform(t *testing.T) {
	bySeed := make([]drawn, 1000)
	for seed := range bySeed {
		bySeed[seed] = draws(t, uint64(seed)+2, 1, booth(1))[0]
	}
	seen := map[string]string{}
	for name, all := range map[string][]drawn{
		"numbers": draws(t, 1, 1000, booth(1)), "another seed's": draws(t, math.MaxUint64, 1000, booth(1)), "seeds": bySeed,
	} {
		starters, turns := map[string]int{}, map[int]int{}
		for _, d := range all {
			starters[d.starter.ID]++
			turns[d.Turns]++
			assert.Empty(t, seen[d.shape()], "one of %s is drawn like one of %s", name, seen[d.shape()])
			seen[d.shape()] = name
		}
		assert.Len(t, starters, 10, name)
		assert.Less(t, chiSquare(starters, 100), 27.88, "%s: %v", name, starters)
		assert.ElementsMatch(t, []int{3, 4, 5}, slices.Collect(maps.Keys(turns)), name)
		assert.Less(t, chiSquare(turns, 1000./3), 13.82, "%s: %v", name, turns)
		assert.Less(t, math.Abs(correlation(all)), .1, "%s: neighbors are alike", name)
	}
}

func chiSquare[K comparable](counts map[K]int, want float64) (sum float64) {
	for _, n := range counts {
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	return sum
}

// correlation returns the correlation between the first lengths of successive conversations.
func correlation(all []drawn) float64 {
	var xy, xx float64
	for i := 1; i < len(all); i++ {
		x, y := float64(all[i-1].MaxTokens[0]-830), float64(all[i].MaxTokens[0]-830)
		xy, xx = xy+x*y, xx+x*x
	}
	return xy / xx
}

// A setting changes its own property of a conversation, and no other.
func TestSettingsChangeOnlyTheirOwnDraws(t *testing.T) {
	want := draws(t, 1, 200, booth(1))
	for name, change := range map[string]func(*Settings){
		"turns":      func(s *Settings) { s.Turns = api.Range{Min: 1, Max: 300} },
		"max_tokens": func(s *Settings) { s.MaxTokens = 100 },
		"output":     func(s *Settings) { s.OutputTokens = api.Distribution{} },
		"openings":   func(s *Settings) { s.Openings = 1000 },
		"own":        func(s *Settings) { s.Openings = OneEach },
	} {
		s := booth(1)
		change(&s)
		for k, d := range draws(t, 1, 200, s) {
			if s.Openings == AsMany {
				assert.Equal(t, want[k].starter.ID, d.starter.ID, "%s changes the starter", name)
			}
			if s.Turns == booth(1).Turns {
				assert.Equal(t, want[k].Turns, d.Turns, "%s changes the turns", name)
			} else {
				assert.Equal(t, want[k].MaxTokens, d.MaxTokens[:50], "%s changes the lengths", name)
				assert.GreaterOrEqual(t, len(d.MaxTokens), d.Turns)
			}
		}
	}
}

// With no more openings than the corpus has, the corpus's own texts are drawn. With more, all of them are drawn, each
// about equally often. With OneEach, no text is drawn twice.
func TestOpeningsAreDrawnEvenly(t *testing.T) {
	texts := articles(t).Starters
	for _, tt := range []struct {
		openings Openings
		n, texts int
		most     int // conversations on one text
	}{
		{AsMany, 2000, 10, 260},
		{10, 2000, 10, 260},
		{3, 2000, 3, 750},
		{100, 4000, 100, 70},
		{1000, 1000, 630, 8},
		{OneEach, 1000, 1000, 1},
	} {
		s, seen := booth(1), map[string]int{}
		s.Openings = tt.openings
		for _, d := range draws(t, 1, tt.n, s) {
			seen[d.starter.Text]++
			if tt.openings >= 0 && tt.openings <= 10 {
				assert.Contains(t, texts, d.starter)
			}
		}
		tolerance := float64(tt.texts) / 20 * max(0, float64(tt.openings-999))
		assert.InDelta(t, tt.texts, len(seen), tolerance, "%d openings", tt.openings)
		for text, n := range seen {
			assert.LessOrEqual(t, n, tt.most, "%d openings: %.60q", tt.openings, text)
		}
	}
}

// With OneEach, all conversations of a process have different texts, also in a later run. The text is freed once it is
// part of the first message.
func TestOneEachOpeningsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seen, opened := booth(20), map[string]bool{}, int64(0)
		s.Openings = OneEach
		for range 2 {
			target := &server{}
			r := run(t, target, s, func(o *Options) { o.Opened = opened })
			advance(time.Minute)
			for _, c := range r.Conversations() {
				assert.Empty(t, c.draw.starter.Text)
			}
			opened += r.Pace().Begun
			r.stop()
			for id, turns := range target.conversations() {
				title, _, _ := strings.Cut(turns[0].Messages[0].Text, "\n")
				assert.False(t, seen[title], "%s: %s", id, title)
				seen[title] = true
			}
		}
		assert.EqualValues(t, opened, len(seen))
		assert.Greater(t, len(seen), 40)
	})
}

// The lengths have the mean and the variation of the recorded deployment, with and without a cap.
func TestLengthsMatchTheRecordedDeployment(t *testing.T) {
	for _, maxTokens := range []int{4096, 1024} {
		s := booth(1)
		s.MaxTokens = maxTokens
		var sum, squares, n float64
		for _, d := range draws(t, 1, 2000, s) {
			for _, tokens := range d.MaxTokens[:5] {
				assert.True(t, 1 <= tokens && tokens <= maxTokens, "%d tokens", tokens)
				sum, squares, n = sum+float64(tokens), squares+float64(tokens)*float64(tokens), n+1
			}
		}
		mean := sum / n
		cv := math.Sqrt(squares/n-mean*mean) / mean
		wantMean, wantCV := capped(830, .15, float64(maxTokens))
		assert.InEpsilon(t, wantMean, mean, .005)
		assert.InDelta(t, wantCV, cv, .005)
		assert.InEpsilon(t, 830, mean, .01, "as the recorded deployment has them")
		assert.InDelta(t, .15, cv, .01, "as the recorded deployment has them")
	}
}

// capped returns mean and coefficient of variation of min(X, most) for a normal X.
func capped(mean, cv, most float64) (float64, float64) {
	sd := mean * cv
	z := (most - mean) / sd
	density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	over := math.Erfc(z/math.Sqrt2) / 2
	first := z*over - density
	second := 1 - over - z*density + z*z*over
	m := mean + sd*first
	return m, sd * math.Sqrt(second-first*first) / m
}
