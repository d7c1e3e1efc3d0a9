package traffic

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/trace"
)

// few is a source of few conversations.
type few []Conversation

func (f few) Conversation(k int64) (Conversation, bool) {
	if k >= int64(len(f)) {
		return Conversation{}, false
	}
	return f[k], true
}

// randomPlan returns conversations of up to three turns whose prompts often begin alike.
func randomPlan(r *rand.Rand) (f few) {
	for i := range 40 {
		c := Conversation{At: time.Duration(i) * time.Second}
		if r.IntN(8) == 0 {
			c.Model = "other"
		}
		for range 1 + r.IntN(3) {
			var m Message
			for range 1 + r.IntN(3) {
				id := uint64(r.IntN(3))
				m.Segments = append(m.Segments, Segment{ID: id, Tokens: 1 + r.IntN(9)})
			}
			c.Turns = append(c.Turns, Turn{
				Messages: []Message{m}, Whole: r.IntN(6) == 0, MaxTokens: 1 + r.IntN(9), Think: time.Duration(r.IntN(4e9)),
			})
		}
		f = append(f, c)
	}
	return f
}

// tokens returns texts for the tokens of segments.
func tokens(segments []Segment) (all []string) {
	for _, s := range segments {
		for i := range s.Tokens {
			all = append(all, fmt.Sprintf("%d.%d", s.ID, i))
		}
	}
	return all
}

// bruteForce computes the hits of a plan token by token: with all blocks kept if size is 0, else with the ones used
// last. Within a prompt, the first is used last.
func bruteForce(f few, order []*trace.Record, block, size int) (hits int) {
	var kept []string // blocks with all tokens before them, the one used last at the end
	history := map[uint64][]Segment{}
	for _, r := range order {
		c := f[r.Session-1]
		turn := c.Turns[r.Turn-1]
		if turn.Whole {
			history[r.Session] = nil
		}
		for _, m := range turn.Messages {
			history[r.Session] = append(history[r.Session], m.Segments...)
		}
		prompt := len(tokens(history[r.Session]))
		history[r.Session] = append(history[r.Session], Segment{AnswerID(int64(r.Session), r.Turn), turn.MaxTokens})
		all := tokens(history[r.Session])
		missed := false
		var used []string
		for end := block; end <= len(all)-1 || end <= prompt; end += block {
			name := c.Model + fmt.Sprint(all[:end])
			if end <= prompt {
				if missed = missed || !slices.Contains(kept, name); !missed {
					hits += block
				}
			}
			used = append(used, name)
		}
		for _, name := range slices.Backward(used) {
			if i := slices.Index(kept, name); i >= 0 {
				kept = slices.Delete(kept, i, i+1)
			}
			kept = append(kept, name)
			if size > 0 && len(kept) > size {
				kept = kept[1:]
			}
		}
	}
	return hits
}

// TestHitRateOfPlans compares the hits of plans with those found token by token, in caches of any size.
func TestHitRateOfPlans(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, block := randomPlan(r), 1+r.IntN(4)
		o := PlanOptions{
			Source: f, BlockTokens: block, Until: time.Hour, FirstToken: time.Second, PerToken: 100 * time.Millisecond,
		}
		var order []*trace.Record
		for p := NewPlan(o); ; {
			record, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if n := len(order); n > 0 {
				require.GreaterOrEqual(t, record.At, order[n-1].At)
			}
			order = append(order, record)
		}
		for _, size := range []int{15, 60} {
			c, err := trace.Describe(NewPlan(o), trace.CacheSize{Blocks: size})
			require.NoError(t, err)
			assert.EqualValues(t, bruteForce(f, order, block, 0), c.Hits.HitTokens, "seed %d, unlimited", seed)
			assert.EqualValues(t, bruteForce(f, order, block, size), c.LimitedHits.HitTokens, "seed %d, %d blocks", seed, size)
		}
	}
}

// TestPlanOfAClosedLoop checks that a number of conversations is in progress, and that turns follow their answers.
func TestPlanOfAClosedLoop(t *testing.T) {
	s := shape(t, api.TrafficShape{Preset: api.ShapePrefix, Turns: 2})
	p := NewPlan(PlanOptions{
		Source: s, Load: arrival.NewClosedLoop(3, 0), BlockTokens: 16, Until: time.Minute, FirstToken: time.Second,
		PerToken: 0, ThinkTime: 2 * time.Second,
	})
	starts := map[time.Duration][]uint64{}
	for {
		r, err := p.Next()
		if err != nil {
			break
		}
		starts[r.At] = append(starts[r.At], r.Session)
	}
	assert.Equal(t, []uint64{1, 2, 3}, starts[0])
	assert.Equal(t, []uint64{1, 2, 3}, starts[3*time.Second], "one second of an answer and two of thought")
	assert.Equal(t, []uint64{4, 5, 6}, starts[4*time.Second])
	_, cut := p.End()
	assert.False(t, cut)
}

// TestHitRateOfGroups compares the hit rate of groups at random times with the one that follows from probabilities.
func TestHitRateOfGroups(t *testing.T) {
	const groups, blocks = 600, 62 // full blocks of 1,000 tokens
	s := shape(t, api.TrafficShape{
		Preset: api.ShapePrefix, Groups: groups, PrefixTokens: 1000, SuffixTokens: 100, AnswerTokens: 100,
	})
	describe := func(size int) *trace.Contents {
		load := arrival.NewOpen(0, 0, arrival.Ramp{To: 20}, arrival.Schedule{Gaps: api.ArrivalsPoisson, Seed: 1})
		c, err := trace.Describe(NewPlan(PlanOptions{
			Source: s, Load: load, BlockTokens: 16, Until: 10 * time.Minute, FirstToken: 300 * time.Millisecond,
			PerToken: 10 * time.Millisecond,
		}), trace.CacheSize{Blocks: size})
		require.NoError(t, err)
		return c
	}
	c := describe(groups * blocks)
	n := float64(c.Requests)
	assert.InDelta(t, 20*600, n, 4*110)
	assert.Equal(t, groups*blocks, c.Hits.Reused)
	assert.InDelta(t, (n-groups)/n*blocks*16/1100, c.Hits.Rate, 1e-9, "only the first of each group misses")
	// Each request stores 74 blocks of which 62 are its group's, so that about half of the cache is of single use.
	assert.Greater(t, c.Hits.Rate, c.LimitedHits.Rate)
	assert.Greater(t, c.LimitedHits.Rate, describe(groups*blocks/2).LimitedHits.Rate)
	assert.InDelta(t, c.Hits.Rate, describe(4*groups*blocks).LimitedHits.Rate, .02)
}
