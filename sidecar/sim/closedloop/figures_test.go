package closedloop

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// three is a profile of three workers with 64 sequences and blocks of 32 tokens.
var three = sim.H200()

// endedTurn returns a turn with the given wait and the candidates of its decision.
func endedTurn(number, prompt, cached, chosen int, queue time.Duration, candidates ...sim.Candidate) Turn {
	t := Turn{Number: number}
	t.decided(&sim.Decision{Chosen: chosen, Candidates: candidates})
	t.PromptTokens, t.CachedTokens = prompt, cached
	t.Arrived, t.Started = time.Second, time.Second+queue
	return t
}

func TestHerdingCountsFirstTurnsToCrowdedWorkers(t *testing.T) {
	crowd := []sim.Candidate{{Requests: 23}, {Requests: 20}, {Requests: 17}}
	crowdLimit := []sim.Candidate{{Requests: 22}, {Requests: 18}}
	for name, c := range map[string]struct {
		turns []Turn
		want  float64
	}{
		"crowded worker":             {[]Turn{endedTurn(1, 100, 0, 0, 0, crowd...)}, 1},
		"average worker":             {[]Turn{endedTurn(1, 100, 0, 1, 0, crowd...)}, 0},
		"idlest worker":              {[]Turn{endedTurn(1, 100, 0, 2, 0, crowd...)}, 0},
		"exactly a tenth above mean": {[]Turn{endedTurn(1, 100, 0, 0, 0, crowdLimit...)}, 0},
		"idle cluster":               {[]Turn{endedTurn(1, 100, 0, 0, 0, make([]sim.Candidate, 3)...)}, 0},
		"later turns do not count": {
			[]Turn{endedTurn(1, 100, 0, 2, 0, crowd...), endedTurn(2, 100, 0, 0, 0, crowd...)}, 0,
		},
		"one of two": {[]Turn{endedTurn(1, 100, 0, 0, 0, crowd...), endedTurn(1, 100, 0, 1, 0, crowd...)}, .5},
	} {
		assert.Equal(t, c.want, causes(c.turns, nil, three).Herding, name)
	}
	herding := causes([]Turn{endedTurn(2, 100, 0, 0, 0, crowd...)}, nil, three).Herding
	assert.True(t, math.IsNaN(herding), "without a first turn")
}

func TestTwiceCountsTokensThatSomeCacheHeld(t *testing.T) {
	caches := []sim.Candidate{{OverlapBlocks: 0}, {OverlapBlocks: 3}, {OverlapBlocks: 2}}
	for name, c := range map[string]struct {
		turn Turn
		want float64
	}{
		"worker without the blocks":         {endedTurn(2, 128, 0, 0, 0, caches...), 96. / 128},
		"worker with the most blocks":       {endedTurn(2, 128, 96, 1, 0, caches...), 0},
		"worker with a part of them":        {endedTurn(2, 128, 64, 2, 0, caches...), 32. / 128},
		"evicted after routing":             {endedTurn(2, 128, 32, 1, 0, caches...), 64. / 128},
		"block of the last token":           {endedTurn(2, 96, 64, 1, 0, caches...), 0},
		"stored by others after routing":    {endedTurn(2, 128, 96, 0, 0, caches...), 0},
		"no worker held any block at first": {endedTurn(2, 128, 0, 0, 0, make([]sim.Candidate, 3)...), 0},
	} {
		assert.InDelta(t, c.want, causes([]Turn{c.turn}, nil, three).Twice, 1e-12, name)
	}
	both := []Turn{endedTurn(1, 128, 0, 0, 0, caches...), endedTurn(2, 384, 0, 0, 0, make([]sim.Candidate, 3)...)}
	assert.InDelta(t, 96./512, causes(both, nil, three).Twice, 1e-12, "of all prompt tokens")
}

func TestCausesFromQueuesAndSeconds(t *testing.T) {
	turns := []Turn{
		endedTurn(2, 9, 0, 0, 30*time.Millisecond, sim.Candidate{}),
		endedTurn(2, 9, 0, 0, 1360*time.Millisecond, sim.Candidate{}), endedTurn(2, 9, 0, 0, 0, sim.Candidate{}),
	}
	seconds := []Second{{Waiting: 4, Least: 40, Most: 70, All: 165}, {Waiting: 0, Least: 46, Most: 64, All: 165}, {}}
	c := causes(turns, seconds, three)
	assert.InDelta(t, 1.36, c.LargestQueue, 1e-9)
	assert.InDelta(t, 4./3, c.Waiting, 1e-12)
	assert.InDelta(t, 48./3, c.Spread, 1e-12)
	assert.InDelta(t, 1./3, c.Full, 1e-12, "a batch has 64 places")
	assert.InDelta(t, (70./55+64./55)/2, c.Skew, 1e-12, "an idle second does not count")
	empty := causes(nil, []Second{{}}, three)
	assert.True(t, math.IsNaN(empty.LargestQueue) && math.IsNaN(empty.Skew) && math.IsNaN(empty.Twice))
	assert.Zero(t, empty.Spread)
}

func TestMeanSkipsNaN(t *testing.T) {
	nan := math.NaN()
	m := Mean([]Figures{
		{TTFT50: 1, Hit: nan, Causes: Causes{LargestQueue: 3, Herding: nan}},
		{TTFT50: 3, Hit: .5, Causes: Causes{LargestQueue: nan, Herding: nan}},
		{TTFT50: 2, Hit: .7, Causes: Causes{LargestQueue: 1, Herding: nan}},
	})
	assert.Equal(t, 2., m.TTFT50)
	assert.InDelta(t, .6, m.Hit, 1e-12, "mean of the values that are not NaN")
	assert.Equal(t, 3., m.LargestQueue, "the largest of all")
	assert.True(t, math.IsNaN(m.Herding))
}

func TestBetweenMatchesTurnsAndSeconds(t *testing.T) {
	o, w := sim.DefaultOptions(sim.H200()), Recorded()
	w.Level, w.Turns, w.Output = api.AtConversations(5), api.Range{Min: 2, Max: 2}, &api.Distribution{Mean: 100}
	l, err := New(o, w)
	require.NoError(t, err)
	require.NoError(t, l.Run(40*time.Second))
	f := l.Between(10*time.Second, 40*time.Second)
	tokens, ended, latency := 0, 0, 0.
	for _, s := range l.Seconds()[10:] {
		tokens += s.Tokens
	}
	for _, turn := range l.Turns() {
		if turn.Ended > 10*time.Second {
			ended++
			latency += turn.Latency().Seconds()
		}
	}
	assert.InDelta(t, float64(tokens)/30, f.TokensPerSecond, 1e-9)
	assert.InDelta(t, float64(ended)/30, f.RequestsPerSecond, 1e-9)
	assert.InDelta(t, 100*ended, tokens, 5*100, "answers of 100 tokens, except those that cross an end of the span")
	assert.InDelta(t, latency/float64(ended), f.Queued+f.Prefill+f.Decode, 1e-9,
		"the parts of a turn add up to its latency")
	assert.Positive(t, f.Queued)
	assert.Greater(t, f.Decode, f.Prefill)
	assert.Greater(t, f.TTFT95, f.TTFT50)
	assert.GreaterOrEqual(t, f.Skew, 1.)
}
