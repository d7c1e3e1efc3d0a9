package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// recorder is an observer that records all calls and checks their order.
type recorder struct {
	t        testing.TB
	cluster  *Cluster
	decision *Decision
	first    *Report
	end      *Report
	at       []time.Duration
	n        []int
	then     func()
}

func (r *recorder) Routed(d *Decision) {
	require.Nil(r.t, r.decision)
	r.decision = d
}

func (r *recorder) FirstToken(report Report) {
	require.NotNil(r.t, r.decision)
	require.Nil(r.t, r.first)
	require.Nil(r.t, r.end)
	require.Zero(r.t, report.OutputTokens)
	stages := []time.Duration{report.Submitted, report.Arrived, report.Started, report.Prefilled, report.FirstToken}
	require.True(r.t, slices.IsSorted(stages), stages)
	require.Equal(r.t, r.cluster.Now(), report.FirstToken)
	r.first = &report
}

func (r *recorder) Tokens(at time.Duration, n int) {
	require.NotNil(r.t, r.first)
	require.Nil(r.t, r.end)
	require.Positive(r.t, n)
	require.Equal(r.t, r.cluster.Now(), at)
	r.at, r.n = append(r.at, at), append(r.n, n)
}

func (r *recorder) Finished(report Report) {
	require.Nil(r.t, r.end)
	require.Equal(r.t, r.cluster.Now(), report.Ended)
	require.Equal(r.t, sum(r.n), report.OutputTokens)
	require.NotEqual(r.t, report.Err == nil, report.Reason == "")
	r.end = &report
	if r.then != nil {
		r.then()
	}
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// timed returns the H200 profile with round times, so that tests of the model do not depend on fitted values.
func timed() Profile {
	p := H200()
	p.Step = StepCost{
		Base: 41, PerSequence: .25, HostPerSequence: .25, PerContextToken: 3.5e-5, PerPrefillToken: .118,
		PerChunkContext: 2e-6, Jitter: .02,
		Floors: []Floor{{Milliseconds: 92, Prefill: true, Sequences: api.Range{Min: 33, Max: 63}}},
	}
	p.Uneven, p.HandOver, p.Frontend = 0, .83, Frontend{In: 25, Out: 8}
	return p
}

// steady returns a deterministic profile: no jitter, one token per step.
func steady() Profile {
	p := timed()
	p.Step.Jitter = 0
	p.Speculation = map[api.Speculation]Speculation{api.SpeculationNotRecorded: {StepScale: 1, Basis: "test"}}
	return p
}

func start(t testing.TB, p Profile, change ...func(*Options)) *Cluster {
	t.Helper()
	o := DefaultOptions(p)
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// send submits a request for an answer of the given length to a prompt.
func send(t testing.TB, c *Cluster, output int, prompt ...text) (*recorder, *Job) {
	t.Helper()
	return sendRequest(t, c, textRequest(c.profile.KV.BlockTokens, prompt, answerTo(output, prompt)))
}

// answerTo returns an answer that depends only on the prompt.
func answerTo(output int, prompt []text) text {
	return text{id: Mix(prompt[len(prompt)-1].id), tokens: output}
}

func sendRequest(t testing.TB, c *Cluster, q Request) (*recorder, *Job) {
	t.Helper()
	r := &recorder{t: t, cluster: c}
	j, err := c.Submit(q, r)
	require.NoError(t, err)
	require.NotNil(t, r.decision)
	return r, j
}

// drain advances the cluster until nothing is in progress.
func drain(c *Cluster) {
	for at, ok := c.Next(); ok; at, ok = c.Next() {
		c.Advance(at)
	}
}

// refuses requires an error of a field.
func refuses(t *testing.T, field string, err error, intent string) {
	t.Helper()
	var wrong *api.FieldError
	if assert.ErrorAs(t, err, &wrong, intent) {
		assert.Equal(t, field, wrong.Field, intent)
	}
}

func TestNewRequestHashesAndCuts(t *testing.T) {
	prompt, answer := make([]uint32, 100), make([]uint32, 50)
	for i := range prompt {
		prompt[i] = uint32(i)
	}
	q := NewRequest("a", prompt, answer, 1000, 32)
	assert.Equal(t, Request{ID: "a", PromptTokens: 100, OutputTokens: 50, Blocks: q.Blocks, Reason: FinishStop}, q)
	assert.Len(t, q.Blocks, 4, "full blocks of 150 tokens")

	cut := NewRequest("b", prompt, answer, 10, 32)
	assert.Equal(t, FinishLength, cut.Reason)
	assert.Equal(t, 10, cut.OutputTokens)
	assert.Equal(t, q.Blocks[:3], cut.Blocks)

	history := slices.Concat(prompt, answer, []uint32{1, 2, 3})
	assert.Equal(t, q.Blocks, HashBlocks(32, history)[:4], "the next turn has the same first blocks")
	history[0]++
	for i, hash := range HashBlocks(32, history) {
		assert.NotEqual(t, q.Blocks[i], hash, "a hash covers all tokens before the block too")
	}
}

func TestNewRefusesOptionsOutOfRange(t *testing.T) {
	for _, row := range []struct {
		field  string
		change func(*Options)
	}{
		{"mode", func(o *Options) { o.Mode = "random" }},
		{"speculation", func(o *Options) { o.Speculation = "medusa" }},
		{"overlap_weight", func(o *Options) { o.OverlapWeight = -1 }},
		{"temperature", func(o *Options) { o.Temperature = -1 }},
		{"restart", func(o *Options) { o.Restart = -1 }},
		{"kv.blocks", func(o *Options) { o.Profile.KV.Blocks = 0 }},
		{"router_decode_active_request_weight", func(o *Options) { o.Router.DecodeActiveRequestWeight = math.Inf(1) }},
		{"router_kv_overlap_score_credit", func(o *Options) { o.Router.OverlapScoreCredit = 1.1 }},
		{"router_kv_overlap_score_credit_decay", func(o *Options) { o.Router.OverlapScoreCreditDecay = math.NaN() }},
	} {
		o := DefaultOptions(H200())
		row.change(&o)
		_, err := New(o)
		refuses(t, row.field, err, row.field)
	}
}

func TestSubmitRefusesImpossibleRequests(t *testing.T) {
	c := start(t, steady())
	for _, row := range []struct {
		field string
		q     Request
	}{
		{"prompt_tokens", Request{OutputTokens: 1}},
		{"prompt_tokens", Request{PromptTokens: 355_808, OutputTokens: 1}},
		{"output_tokens", Request{PromptTokens: 1}},
		{"output_tokens", Request{PromptTokens: 1, OutputTokens: 355_808}},
		{"blocks", Request{PromptTokens: 64, OutputTokens: 1, Blocks: make([]BlockHash, 1)}},
	} {
		_, err := c.Submit(row.q, &recorder{t: t, cluster: c})
		refuses(t, row.field, err, row.field)
	}
	assert.Zero(t, c.State().Inflight)
}

func TestPinnedRequestIgnoresCosts(t *testing.T) {
	c := start(t, steady())
	for i, w := range c.Workers() {
		q := textRequest(32, []text{{1, 3700}}, text{2, 100})
		q.Instance = w.ID
		r, _ := sendRequest(t, c, q)
		assert.Equal(t, w.ID, r.decision.Worker().Worker)
		assert.True(t, r.decision.Pinned)
		assert.Zero(t, r.decision.OverlapBlocksLost(), "no other worker was eligible")
		drain(c)
		assert.EqualValues(t, 1, c.Workers()[i].Completed)
	}
	_, err := c.Submit(Request{PromptTokens: 1, OutputTokens: 1, Instance: 5}, nil)
	assert.ErrorIs(t, err, ErrNoInstance)
}

// TestSwitchRestartsCluster checks that requests in progress fail, that new ones are refused until the restart is
// over, and that the caches are cold afterwards.
func TestSwitchRestartsCluster(t *testing.T) {
	c := start(t, H200())
	old, _ := send(t, c, 10, text{1, 3700})
	drain(c)
	require.NoError(t, old.end.Err)
	running, _ := send(t, c, 500, text{1, 3700})
	c.Advance(c.Now() + time.Second)
	coming, _ := send(t, c, 500, text{1, 3700})
	coming.then = func() {
		_, err := c.Submit(Request{PromptTokens: 1, OutputTokens: 1}, nil)
		assert.ErrorIs(t, err, ErrRestarting, "from an observer during the switch")
	}

	require.Error(t, c.Switch("random", api.SpeculationOff))
	require.Nil(t, running.end, "a refused switch changes nothing")
	switched := c.Now()
	require.NoError(t, c.Switch(api.ModeRoundRobin, api.SpeculationOff))
	for _, r := range []*recorder{running, coming} {
		require.ErrorIs(t, r.end.Err, ErrRestarting)
	}
	assert.Nil(t, coming.first)
	want := State{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff, ReadyAt: switched + 5*time.Second}
	assert.Equal(t, want, c.State())
	assertIdle(t, c)

	require.NoError(t, c.LoseWorker(c.workers[0].id, time.Second))
	c.Advance(switched + 5*time.Second - 1)
	assert.False(t, c.Workers()[0].Ready, "a loss does not shorten the restart")
	_, err := c.Submit(Request{PromptTokens: 1, OutputTokens: 1}, nil)
	assert.ErrorIs(t, err, ErrRestarting)
	c.Advance(switched + 5*time.Second)
	assert.True(t, c.State().Ready)
	cold, _ := send(t, c, 10, text{1, 3700})
	drain(c)
	require.NoError(t, cold.end.Err)
	assert.Zero(t, cold.end.CachedTokens)
	assert.Len(t, cold.at, 10, "one token per step without speculation")
}

func TestRerouteKeepsCaches(t *testing.T) {
	c := start(t, H200())
	first, _ := send(t, c, 10, text{1, 3700})
	drain(c)
	require.NoError(t, first.end.Err)
	running, _ := send(t, c, 500, text{2, 3700})
	c.Advance(c.Now() + time.Second)
	coming, _ := send(t, c, 500, text{3, 3700})

	require.Error(t, c.Reroute("random"))
	require.Nil(t, running.end, "a refused mode changes nothing")
	require.NoError(t, c.Reroute(api.ModeRoundRobin))
	for _, r := range []*recorder{running, coming} {
		require.ErrorIs(t, r.end.Err, ErrRestarting)
	}
	assert.True(t, c.State().Ready)
	assert.Equal(t, api.ModeRoundRobin, c.State().Mode)
	require.NoError(t, c.Reroute(api.ModeKV))
	drain(c)
	assertIdle(t, c)
	again, _ := send(t, c, 10, text{1, 3700})
	drain(c)
	require.NoError(t, again.end.Err)
	assert.Greater(t, again.end.CachedTokens, 3000)
}

func TestRouteChangesInPlace(t *testing.T) {
	c := start(t, H200())
	running, _ := send(t, c, 500, text{2, 3700})
	c.Advance(c.Now() + time.Second)
	require.Error(t, c.Route("random"))
	require.NoError(t, c.Route(api.ModeRoundRobin))
	assert.Equal(t, api.ModeRoundRobin, c.State().Mode)
	drain(c)
	require.NoError(t, running.end.Err, "requests in progress go on")
	require.NoError(t, c.Route(api.ModeKV))
	again, _ := send(t, c, 10, text{2, 3700})
	drain(c)
	assert.Greater(t, again.end.CachedTokens, 3000)
}

// TestRestartOfZeroDurationEndsIterations checks that an iteration from before the restart does not end after it.
func TestRestartOfZeroDurationEndsIterations(t *testing.T) {
	c := start(t, steady(), func(o *Options) { o.Restart, o.Profile.Workers = 0, 1 })
	first, _ := send(t, c, 100, text{1, 3700})
	second, job := send(t, c, 100, text{1, 3700})
	first.then = func() { c.Cancel(job) }
	c.Advance(2 * time.Second)
	require.NoError(t, c.Switch(api.ModeKV, api.SpeculationNotRecorded))
	assert.ErrorIs(t, first.end.Err, ErrRestarting)
	assert.ErrorIs(t, second.end.Err, ErrCanceled, "canceled by the observer of the first")
	assert.EqualValues(t, 1, c.Workers()[0].Failed)

	r, _ := send(t, c, 100, text{2, 3700})
	drain(c)
	require.NoError(t, r.end.Err)
	for i := 2; i < len(r.at); i++ {
		require.Greater(t, inMilliseconds(r.at[i]-r.at[i-1]), 41.0, "one iteration at a time")
	}
}

func TestLostWorkerReturnsEmpty(t *testing.T) {
	c := start(t, steady(), func(o *Options) { o.Mode = api.ModeRoundRobin })
	var all []*recorder
	for i := range 3 {
		r, _ := send(t, c, 200, text{uint64(i), 3700})
		all = append(all, r)
	}
	c.Advance(5 * time.Second)
	lost := all[1].decision.Worker().Worker
	require.NoError(t, c.LoseWorker(lost, 10*time.Second))
	assert.ErrorIs(t, all[1].end.Err, ErrWorkerLost)
	assert.EqualValues(t, 1, c.Workers()[1].Failed)
	assert.Zero(t, c.Workers()[1].CachedBlocks)
	assert.False(t, c.Workers()[1].Ready)
	_, err := c.Submit(Request{PromptTokens: 1, OutputTokens: 1, Instance: lost}, nil)
	assert.ErrorIs(t, err, ErrNoInstance)
	for range 6 {
		r, _ := send(t, c, 10, text{7, 1000})
		assert.NotEqual(t, lost, r.decision.Worker().Worker)
	}
	c.Advance(15 * time.Second)
	drain(c)
	require.NoError(t, all[0].end.Err, "requests on other workers continue")
	back, _ := send(t, c, 10, text{1, 3700})
	for back.decision.Worker().Worker != lost {
		back, _ = send(t, c, 10, text{1, 3700})
	}
	drain(c)
	assert.NoError(t, back.end.Err)
	assert.Zero(t, back.end.CachedTokens)

	for _, w := range c.Workers() {
		require.NoError(t, c.LoseWorker(w.ID, time.Second))
	}
	_, err = c.Submit(Request{PromptTokens: 1, OutputTokens: 1}, nil)
	assert.ErrorIs(t, err, ErrNoWorkers)
	assert.ErrorIs(t, c.LoseWorker(5, time.Second), ErrNoInstance)
}

func TestCancelAtEveryStage(t *testing.T) {
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 600 * time.Millisecond, 2 * time.Second} {
		c := start(t, steady(), func(o *Options) { o.Profile.Workers = 1 })
		send(t, c, 5, text{1, 3000}) // makes the next request wait
		r, j := send(t, c, 500, text{2, 3700})
		c.Advance(after)
		c.Cancel(j)
		require.ErrorIs(t, r.end.Err, ErrCanceled, after)
		c.Cancel(j)
		drain(c)
		assertIdle(t, c)
		assert.EqualValues(t, 1, c.Workers()[0].Completed)
		assert.Zero(t, c.Workers()[0].Failed)
	}
}

// assertIdle checks that nothing is in progress and that all accounts are empty.
func assertIdle(t *testing.T, c *Cluster) {
	t.Helper()
	require.Zero(t, c.State().Inflight)
	for _, w := range c.Workers() {
		left := [6]int{w.Running, w.Waiting, w.Inflight, w.ActiveBlocks, w.ActivePrefillTokens, w.ActiveDecodeBlocks}
		require.Zero(t, left, "worker %d", w.Index)
	}
}

// assertConsistent checks caches against their capacity, and the router's view block by block against the caches and
// the requests in progress.
func assertConsistent(t *testing.T, c *Cluster) {
	t.Helper()
	r, held, active := c.router, 0, 0
	for _, w := range c.workers {
		require.GreaterOrEqual(t, w.cache.private, 0)
		require.LessOrEqual(t, w.cache.private+w.cache.registered(), w.cache.capacity)
		unused := 0
		for id := w.cache.blocks[0].next; id != 0; id = w.cache.blocks[id].next {
			unused++
		}
		require.Equal(t, w.cache.registered(), w.cache.used+unused)
		for _, n := range w.cache.tree.nodes[1:] {
			if n.holds > 0 {
				require.False(t, r.held.add(blockID(n.key), w.index))
			}
		}
		held += w.cache.registered()
		if m, ok := c.options.Caches.(*mirror); ok {
			require.Equal(t, w.cache.registered(), m.blocks(w.index), "blocks by the observer's calls")
		}
		require.LessOrEqual(t, len(w.running), c.profile.MaxSequences)

		blocks := map[blockID]bool{}
		for j := range c.jobs {
			if j.worker == w {
				for _, id := range j.prompt(r.BlockTokens) {
					blocks[id] = true
				}
			}
		}
		for id := range blocks {
			require.False(t, r.active.add(id, w.index))
		}
		require.Equal(t, len(blocks), r.loads[w.index].blocks)
		active += len(blocks)
	}
	require.Equal(t, held, members(r.held), "the router lists only blocks that caches hold")
	require.Equal(t, active, members(r.active))
	paths := map[blockID]bool{}
	for j := range c.jobs {
		for _, id := range j.path {
			paths[id] = true
		}
	}
	for id := range r.tree.nodes {
		if set := r.held.bits[id*r.held.words:][:r.held.words]; slices.Max(set) > 0 {
			paths[blockID(id)] = true
		}
	}
	require.Equal(t, len(paths), r.tree.count, "the tree has only blocks in use")
}

// members returns the total size of all sets.
func members(w workers) (n int) {
	for _, word := range w.bits {
		n += bits.OnesCount64(word)
	}
	return n
}

// mirror is a [CacheObserver] that counts what the caches hold, by worker and hash: in texts of other lengths, hashes
// occur behind several blocks.
type mirror struct {
	t    *testing.T
	held []map[BlockHash]int
}

func newMirror(t *testing.T, workers int) *mirror {
	m := &mirror{t: t, held: make([]map[BlockHash]int, workers)}
	for i := range workers {
		m.Cleared(i)
	}
	return m
}

func (m *mirror) Stored(worker int, r *Request, first, end int) {
	require.Less(m.t, first, end)
	require.True(m.t, first == 0 || m.held[worker][r.Blocks[first-1]] > 0, "the block before is held")
	for _, hash := range r.Blocks[first:end] {
		m.held[worker][hash]++
	}
}

func (m *mirror) Removed(worker int, blocks []BlockHash) {
	for _, hash := range blocks {
		m.held[worker][hash]--
		require.GreaterOrEqual(m.t, m.held[worker][hash], 0, "removed without being stored")
	}
}

func (m *mirror) Cleared(worker int) { m.held[worker] = map[BlockHash]int{} }

func (m *mirror) blocks(worker int) (n int) {
	for _, count := range m.held[worker] {
		n += count
	}
	return n
}

func TestClearCacheRefusesWhileInUse(t *testing.T) {
	p := steady()
	m := newMirror(t, p.Workers)
	c := start(t, p, func(o *Options) { o.Caches = m })
	r, _ := send(t, c, 3, text{1, 640})
	c.Advance(c.Now() + 100*time.Millisecond)
	used := r.decision.Worker().index
	assert.False(t, c.ClearCache(used))
	drain(c)
	assert.Equal(t, 20, m.blocks(used))
	assert.True(t, c.ClearCache(used))
	assert.Zero(t, m.blocks(used))
	assertConsistent(t, c)
}

// call is an action that calls a function.
type call func()

func (f call) run() { f() }

// chaos runs random traffic on a cluster whose caches are far too small: requests that share prefixes, canceled
// requests, lost workers, changes of mode. It returns a fingerprint of all observer calls.
func chaos(t *testing.T, seed uint64) uint64 {
	p := H200()
	p.KV.Blocks, p.MaxSequences, p.MaxBatchedTokens = 150, 8, 512
	c := start(t, p, func(o *Options) {
		o.Seed, o.Temperature = seed, .3
		o.Caches = newMirror(t, p.Workers)
	})
	rng := rand.New(rand.NewPCG(seed, 1))
	trace := fnv.New64a()
	for i := range 1500 {
		c.Advance(c.Now() + time.Duration(rng.ExpFloat64()*float64(100*time.Millisecond)))
		if i%5 == 0 {
			assertConsistent(t, c)
		}
		prompt := []text{{rng.Uint64N(5), 600}, {rng.Uint64N(20), 1 + rng.IntN(900)}}
		r := &recorder{t: t, cluster: c}
		j, err := c.Submit(textRequest(32, prompt, answerTo(1+rng.IntN(400), prompt)), r)
		if err != nil {
			require.Nil(t, r.decision)
			continue
		}
		r.then = func() { fmt.Fprintln(trace, *r.end, r.at, r.n) }
		switch action := rng.IntN(1000); {
		case action < 100:
			later := c.Now() + time.Duration(rng.Int64N(int64(20*time.Second)))
			c.clock.schedule(later, call(func() { c.Cancel(j) }))
		case action < 105:
			require.NoError(t, c.LoseWorker(j.worker.id, 2*time.Second))
		case action < 108:
			require.NoError(t, c.Switch(modes[rng.IntN(3)], speculations[rng.IntN(4)]))
		}
	}
	preempted := int64(0)
	for _, w := range c.Workers() {
		preempted += w.Preemptions
	}
	assert.Positive(t, preempted)
	drain(c)
	assertIdle(t, c)
	assertConsistent(t, c)
	return trace.Sum64()
}

// TestChaosIsConsistentAndRepeatable checks that no block or request is lost or counted twice, and that equal seeds
// give equal results.
func TestChaosIsConsistentAndRepeatable(t *testing.T) {
	first := chaos(t, 1)
	assert.Equal(t, first, chaos(t, 1))
	assert.NotEqual(t, first, chaos(t, 2))
}
