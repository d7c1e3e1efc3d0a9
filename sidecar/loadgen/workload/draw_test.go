package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// draws returns the draws of the conversations from 0 to n-1.
func draws(t testing.TB, seed uint64, n int, s Settings) []drawn {
	t.Helper()
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	all := make([]drawn, n)
	for k := range all {
		all[k] = newDraw(seed, int64(k), int64(k), 0, s, articles)
	}
	return all
}

// shape describes the properties of a draw that a target receives.
func (d *drawn) shape() string {
	return fmt.Sprint(d.starter.ID, d.Turns, d.MaxTokens[:d.Turns])
}

// Conversation k depends only on the seed and k, not on faults, answers or rates.
func TestDrawsDependOnSeedAndNumberAlone(t *testing.T) {
	busy, faults := booth(50), faulty(7, .1)
	busy.StartRate, busy.TargetRPS, busy.ThinkTime = 100, 9, 3*time.Second
	settings := []Settings{booth(7), busy}
	targets := []*server{{}, {fault: faults, text: func(int) string { return "Something else entirely." }}}
	want := draws(t, 42, 100, booth(1))
	for i, target := range targets {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, target, settings[i], func(o *Options) { o.Seed = 42 })
			advance(15 * time.Minute)
			r.stop()
			all, _ := r.ended()
			require.Greater(t, len(all), 80)
			sent := target.conversations()
			for _, e := range all {
				if e.Number >= int64(len(want)) {
					continue
				}
				d := want[e.Number]
				assert.Equal(t, d.starter.ID, e.Starter)
				assert.Equal(t, d.Turns, e.Planned)
				for n, turn := range sent[e.ID] {
					assert.Equal(t, d.MaxTokens[n], turn.MaxTokens, "turn %d of %s", n+1, e.ID)
				}
			}
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
		assert.Len(t, turns, 3, name)
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
		"turns":      func(s *Settings) { s.Turns = api.Range{Min: 1, Max: 50} },
		"max_tokens": func(s *Settings) { s.MaxTokens = 100 },
		"output":     func(s *Settings) { s.Output = nil },
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
				assert.Equal(t, want[k].MaxTokens, d.MaxTokens, "%s changes the lengths", name)
			}
		}
	}
}

// With no more openings than the corpus has, the corpus's own texts are drawn. With more, all of them are drawn, each
// about equally often. With OneEach, no text is drawn twice.
func TestOpeningsAreDrawnEvenly(t *testing.T) {
	articles, err := corpus.Builtin()
	require.NoError(t, err)
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
				assert.Contains(t, articles.Starters, d.starter)
			}
		}
		tolerance := float64(tt.texts) / 20 * max(0, float64(tt.openings-999))
		assert.InDelta(t, tt.texts, len(seen), tolerance, "%d openings", tt.openings)
		for text, n := range seen {
			assert.LessOrEqual(t, n, tt.most, "%d openings: %.60q", tt.openings, text)
		}
	}
}

// In the API, AsMany is the number of the corpus's texts, so that a baseline has the number that it was measured with.
func TestOpeningsInTheAPI(t *testing.T) {
	c := &corpus.Corpus{Starters: make([]corpus.Starter, 7)}
	assert.Equal(t, []int{7, 7, 0, 100}, []int{AsMany.Of(c), Openings(7).Of(c), OneEach.Of(c), OpeningsOf(100).Of(c)})
	assert.Equal(t, OneEach, OpeningsOf(0))
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
				title, _, _ := strings.Cut(turns[0].Messages[0].Content, "\n")
				assert.False(t, seen[title], "%s: %s", id, title)
				seen[title] = true
			}
		}
		assert.EqualValues(t, opened, len(seen))
		assert.Greater(t, len(seen), 40)
	})
}

func TestTurnsWithinRange(t *testing.T) {
	for _, want := range []api.Range{{Min: 1, Max: 1}, {Min: 3, Max: 5}, {Min: 50, Max: 50}} {
		s := booth(1)
		s.Turns = want
		least, most := api.MaxTurns+1, 0
		for _, d := range draws(t, 1, 100, s) {
			least, most = min(least, d.Turns), max(most, d.Turns)
		}
		assert.Equal(t, want, api.Range{Min: least, Max: most})
	}
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

// The first conversations of a workload can start in their middle. They have fewer turns, which are the first ones of
// those that they would have had.
func TestRampedStartShortensConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &server{}
		r := run(t, target, booth(20), func(o *Options) { o.Seed, o.RampedStart = 42, 20 })
		advance(5 * time.Minute)
		r.stop()
		want, short := draws(t, 42, 100, booth(20)), 0
		all, _ := r.ended()
		for _, e := range all {
			if e.status != api.ConversationCompleted {
				continue
			}
			if e.Number >= 20 {
				assert.Equal(t, want[e.Number].Turns, e.Planned)
				continue
			}
			if e.Planned < 3 {
				short++
			}
			turns := target.conversations()[e.ID]
			assert.Len(t, turns, e.Planned)
			for n, turn := range turns {
				assert.Equal(t, want[e.Number].MaxTokens[n], turn.MaxTokens)
			}
		}
		assert.InDelta(t, 10, short, 6, "half of them have less than three turns, which is the least of a whole one")
		assert.Greater(t, len(all), 40)
	})
}
