package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// one returns a deterministic cluster of one worker.
func one(t *testing.T, change ...func(*Profile)) *Cluster {
	t.Helper()
	p := steady()
	p.Workers = 1
	for _, f := range change {
		f(&p)
	}
	return start(t, p)
}

func near(t *testing.T, ms float64, got time.Duration, intent string) {
	t.Helper()
	assert.InDelta(t, ms, inMilliseconds(got), .01, intent)
}

func TestStagesOfOneRequest(t *testing.T) {
	c := one(t)
	r, _ := send(t, c, 3, text{1, 3700})
	drain(c)
	near(t, 25, r.end.Arrived, "the frontend's incoming time")
	assert.Equal(t, r.end.Arrived, r.end.Started, "an idle worker starts at once")
	prefill := 41 + .118*3700
	near(t, prefill, r.end.Prefilled-r.end.Started, "one chunk")
	decode := func(context float64) float64 { return 41 + .5 + 3.5e-5*context }
	near(t, .83*decode(3701)+8, r.end.FirstToken-r.end.Prefilled, "the hand-over and the frontend's outgoing time")
	require.Equal(t, []int{1, 1, 1}, r.n)
	step := r.at[1] - r.at[0] - milliseconds(.83*(decode(3702)-decode(3701)))
	near(t, decode(3701), step, "one decode step")
	assert.Equal(t, FinishLength, r.end.Reason)

	w := c.Workers()[0]
	assert.EqualValues(t, 3, w.Iterations)
	near(t, prefill+decode(3701)+decode(3702), w.Busy, "time in iterations")
	assert.EqualValues(t, 2, w.Steps)
	assert.EqualValues(t, 3, w.OutputTokens)
	assert.EqualValues(t, 3700, w.PrefilledTokens)
	assert.Equal(t, 3702/32, w.CachedBlocks, "full blocks of prompt and answer, without the last token")
	assert.Zero(t, w.CacheUse())
}

func TestComputingCountsCurrentIteration(t *testing.T) {
	c := one(t)
	send(t, c, 1, text{1, 3700})
	c.Advance(30 * time.Millisecond)
	near(t, 5, c.Workers()[0].Computing, "time since the request's arrival")
	drain(c)
	assert.Zero(t, c.Workers()[0].Computing)

	send(t, c, 1, text{2, 3700})
	c.Advance(c.Now() + 100*time.Millisecond)
	require.Positive(t, c.Workers()[0].Computing)
	require.NoError(t, c.LoseWorker(c.Workers()[0].ID, 0))
	assert.Zero(t, c.Workers()[0].Computing, "a lost worker computes nothing")
}

func TestPrefillTakesFloor(t *testing.T) {
	c := one(t)
	r, _ := send(t, c, 1, text{1, 64})
	drain(c)
	near(t, 92, r.end.Prefilled-r.end.Started, "64 tokens")
}

func TestLastTokenIsAlwaysComputed(t *testing.T) {
	c := one(t)
	for _, row := range []struct{ prompt, cached int }{{64, 0}, {64, 32}, {65, 64}} {
		r, _ := send(t, c, 1, text{1, row.prompt})
		drain(c)
		assert.Equal(t, row.cached, r.end.CachedTokens, "of %d", row.prompt)
	}
}

// TestLastTokenOfAnswerIsNotCached checks that a block is not registered if its last token is the answer's last.
func TestLastTokenOfAnswerIsNotCached(t *testing.T) {
	c := one(t)
	send(t, c, 32, text{1, 64})
	drain(c)
	assert.Equal(t, 2, c.Workers()[0].CachedBlocks)
	send(t, c, 33, text{2, 64})
	drain(c)
	assert.Equal(t, 2+3, c.Workers()[0].CachedBlocks)
}

// TestNextTurnReusesAnswer checks that a turn reuses prompt and answer of the previous one, or with ForgetAnswers
// only the blocks of the prompt.
func TestNextTurnReusesAnswer(t *testing.T) {
	history := []text{{1, 1000}, answerTo(500, []text{{1, 1000}}), {3, 100}}
	for _, forget := range []bool{false, true} {
		p := steady()
		p.Workers = 1
		c := start(t, p, func(o *Options) { o.ForgetAnswers = forget })
		send(t, c, 500, history[0])
		drain(c)
		r, _ := send(t, c, 10, history...)
		drain(c)
		want := 1499 / 32 * 32
		if forget {
			want = 1000 / 32 * 32
		}
		assert.Equal(t, want, r.end.CachedTokens)
		rest := float64(1600 - want)
		prefill := max(92, 41+.118*rest+2e-6*rest*float64(want))
		near(t, prefill, r.end.Prefilled-r.end.Started, "the rest is computed")
	}
}

func TestRequestJoinsNextIteration(t *testing.T) {
	c := one(t)
	send(t, c, 100, text{1, 1000})
	c.Advance(time.Second)
	r, _ := send(t, c, 10, text{2, 1000})
	c.Advance(c.Now() + time.Second)
	step := 41 + .5 + 3.5e-5*1020
	wait := inMilliseconds(r.end.Started - r.end.Arrived)
	assert.True(t, 0 < wait && wait <= step+.1, "waited %.1f ms, a step takes %.1f ms", wait, step)
}

// TestUnevenSpreadsWorkers checks that the first worker is the fastest and that the middle one has the profile's pace.
func TestUnevenSpreadsWorkers(t *testing.T) {
	p := steady()
	p.Uneven = .1
	assert.InDelta(t, .9033, p.pace(0), .0001, "the normal distribution's quantile of a sixth")
	assert.InDelta(t, 1, p.pace(1), 1e-9)
	assert.InDelta(t, 1.0967, p.pace(2), .0001)
	c := start(t, p, func(o *Options) { o.Mode = api.ModeRoundRobin })
	for i := range 3 {
		r, _ := send(t, c, 1, text{uint64(i), 1000})
		drain(c)
		near(t, p.pace(i)*(41+118), r.end.Prefilled-r.end.Started, "a prefill")
	}
}

// TestChunkedPrefillLeavesRoomForDecoding checks that decoding sequences continue during a long prefill. Each takes
// four tokens from a chunk: one and a draft of three.
func TestChunkedPrefillLeavesRoomForDecoding(t *testing.T) {
	c := one(t, func(p *Profile) { p.Speculation = H200().Speculation })
	var others []*recorder
	for i := range 10 {
		r, _ := send(t, c, 3000, text{uint64(i), 320})
		others = append(others, r)
	}
	c.Advance(10 * time.Second)
	before := c.Workers()[0].WorkerCounters
	r, _ := send(t, c, 5, text{99, 40_000})
	for c.Workers()[0].PrefilledTokens == before.PrefilledTokens {
		at, _ := c.Next()
		c.Advance(at)
	}
	assert.EqualValues(t, 16_384-4*10, c.Workers()[0].PrefilledTokens-before.PrefilledTokens)
	received := len(others[0].n)
	for r.end == nil {
		at, _ := c.Next()
		c.Advance(at)
	}
	assert.Greater(t, len(others[0].n), received+2)
	assert.Nil(t, others[0].end)
	const context = 16_344.0
	prefill := 3*(41+.5*10) + .118*40_000 + 2e-6*(context*context+(40_000-2*context)*2*context)
	assert.InEpsilon(t, prefill, inMilliseconds(r.end.Prefilled-r.end.Started), .01,
		"three chunks, each with the context before it")
}

func TestFullBatchQueuesInOrder(t *testing.T) {
	c := one(t)
	var all []*recorder
	for i := range 70 {
		r, _ := send(t, c, 100+i, text{uint64(i), 64})
		all = append(all, r)
		c.Advance(c.Now() + time.Millisecond)
	}
	c.Advance(3 * time.Second)
	w := c.Workers()[0]
	assert.Equal(t, 64, w.Running)
	assert.Equal(t, 6, w.Waiting)
	assert.Equal(t, 70, w.Inflight)
	drain(c)
	assert.Zero(t, all[0].end.QueueAhead)
	assert.Positive(t, all[69].end.QueueAhead)
	for i := 1; i < len(all); i++ {
		assert.GreaterOrEqual(t, all[i].end.Started, all[i-1].end.Started)
	}
	assert.GreaterOrEqual(t, all[64].end.Started, all[0].end.Ended-200*time.Millisecond,
		"the first waiting request takes the first free place")
}

// TestPreemptedSequenceResumes checks that the sequence admitted last is preempted when blocks run out, resumes before
// waiting requests, and delivers its tokens once.
func TestPreemptedSequenceResumes(t *testing.T) {
	c := one(t, func(p *Profile) { p.KV.Blocks = 64 })
	first, _ := send(t, c, 600, text{1, 800})
	second, _ := send(t, c, 600, text{2, 800})
	third, _ := send(t, c, 10, text{3, 1400})
	drain(c)
	w := c.Workers()[0]
	assert.EqualValues(t, 1, w.Preemptions)
	for _, r := range []*recorder{first, second} {
		require.NoError(t, r.end.Err)
		assert.Equal(t, 600, r.end.OutputTokens)
	}
	assert.Less(t, first.end.Ended, second.end.Ended)
	assert.Greater(t, third.end.Started, second.end.Ended-200*time.Millisecond, "both do not fit at once")
	assert.Greater(t, w.PrefilledTokens, int64(3000), "some tokens are computed again")
	assert.EqualValues(t, 3000, w.PromptTokens, "each prompt counts once")
	assertIdle(t, c)

	assert.Zero(t, first.end.Preemptions+third.end.Preemptions)
	assert.Equal(t, 1, second.end.Preemptions)
	// The prefilled tokens are the prompts, the recomputed tokens, and the latest token of the second sequence.
	assert.EqualValues(t, w.PrefilledTokens-3000-1, second.end.RecomputedTokens)
	assert.Greater(t, second.end.RecomputedTokens, 300, "at least its answer, which no other request has")
	assert.Zero(t, first.end.RecomputedTokens)
}

func TestRequestMayFillCache(t *testing.T) {
	c := one(t, func(p *Profile) { p.KV.Blocks = 200 })
	r, _ := send(t, c, 1, text{1, 6399})
	drain(c)
	assert.NoError(t, r.end.Err)
}
