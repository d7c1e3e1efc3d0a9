package live

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Live with a simulated lane and cluster.
type rig struct {
	*Live
	t *testing.T

	mu      sync.Mutex
	cluster api.Cluster
	state   api.State
	ids     bool
	workers bool
	router  string
}

func (s *rig) set(change func(*rig)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// ready returns a cluster of two workers with 100 blocks of 32 tokens each.
func ready() api.Cluster {
	c := api.Cluster{Available: true, CacheBlocks: new(100.), BlockTokens: new(32.)}
	for i := range 2 {
		id, name := strconv.Itoa(11*(i+1)), fmt.Sprintf("pod-%d", i)
		c.Workers = append(c.Workers, api.Worker{ID: id, Name: name, Inflight: new(1.)})
	}
	return c
}

// on runs a test with a Live in virtual time.
func on(t *testing.T, test func(s *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &rig{t: t, cluster: ready(), ids: true, workers: true}
		s.state = api.State{Running: true, Mode: api.ModeKV, Concurrency: api.Concurrency{Target: api.AtConversations(10)}}
		locked := func(f func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			f()
		}
		s.Live = New(Options{
			Lane: "main", Log: slog.New(slog.DiscardHandler),
			Cluster: func() (c api.Cluster) { locked(func() { c = s.cluster }); return c },
			State:   func() (st api.State) { locked(func() { st = s.state }); return st },
			Capabilities: func() (ids, workers bool) {
				locked(func() { ids, workers = s.ids, s.workers })
				return ids, workers
			},
			Router:       func() (id string) { locked(func() { id = s.router }); return id },
			SendsSession: func() bool { return false },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		synctest.Wait()
		test(s)
		cancel()
		wg.Wait()
	})
}

func pass(d time.Duration) {
	wait.Advance(d)
	synctest.Wait()
}

// prompt returns the token ids of a text of n tokens.
func prompt(text, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(1000*text + i)
	}
	return ids
}

// turn runs a turn of 330 tokens, cached of which the worker finds in its cache.
func (s *rig) turn(text int, worker uint64, cached int) {
	messages := words("user", strings.Repeat("word ", 330))
	t := s.Follow(Sent{ID: "r", Conversation: strconv.Itoa(text), Concurrency: 10, Messages: messages})
	if t.WantsIDs() {
		t.Routed(prompt(text, 330))
	}
	pass(100 * time.Millisecond)
	t.FirstToken(strconv.FormatUint(worker, 10))
	pass(100 * time.Millisecond)
	t.end(Result{OK: true, Worker: worker, PromptTokens: 330, OutputTokens: 5, CachedTokens: cached, Bytes: 20})
	pass(100 * time.Millisecond)
}

// words returns a prompt of one message.
func words(role, text string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) { yield(role, text) }
}

func (s *rig) shadow() api.Shadow {
	pass(time.Second)
	return s.Shadow(time.Now())
}

func policy(t *testing.T, s api.Shadow, name string) api.ShadowPolicy {
	t.Helper()
	for _, p := range s.Policies {
		if p.Policy == name {
			return p
		}
	}
	t.Fatalf("the shadow has no policy %s", name)
	return api.ShadowPolicy{}
}

// One text is sent to one worker again and again. All of its ten full blocks are found but the first time, and every
// other time under round-robin.
func TestFigures(t *testing.T) {
	on(t, func(s *rig) {
		s.turn(1, 11, 0)
		for range 59 {
			s.turn(1, 11, 320)
		}
		got := s.shadow()
		require.Equal(t, api.ShadowTokenIDs, got.Source, got.Message)
		assert.Empty(t, got.Withheld)
		assert.Zero(t, got.Lost)
		assert.Equal(t, 60, got.Requests)
		assert.Equal(t, 60*330, got.PromptTokens)
		assert.Equal(t, []int{2, 32, 100}, []int{got.Workers, got.BlockTokens, got.WorkerBlocks})
		assert.InDelta(t, 0, *got.CacheError, 1e-9)
		assert.InDelta(t, 59*320./(60*330), *got.Measured.HitRatio, 1e-9)
		rr := policy(t, got, "round_robin")
		assert.InDelta(t, 58*320./(60*330), *rr.Figures.HitRatio, 1e-9)
		assert.Equal(t, 60*330-58*320, *rr.Figures.PrefillTokens)
		assert.False(t, rr.InForce)
		assert.True(t, policy(t, got, "kv").InForce)
		assert.Nil(t, policy(t, got, "best").Figures.InflightSpread)

		list := s.Decisions(3)
		require.Len(t, list.Decisions, 3)
		assert.Equal(t, api.DecisionsInferred, list.Source)
		d := list.Decisions[0]
		assert.Equal(t, "pod-0", d.Candidates[d.Chosen].Name)
		assert.Equal(t, 10, d.Candidates[d.Chosen].OverlapBlocks)
		assert.Equal(t, d.Chosen, *d.Ours)
		assert.False(t, d.Pinned)
		require.NotNil(t, list.Choices)
		assert.Equal(t, list.Choices.Clear, list.Choices.ClearAgreed)
		assert.Positive(t, list.Choices.Clear)
	})
}

// Figures are withheld where the account of the caches differs from what was measured, and after too few turns.
func TestFiguresWithheldWhileCacheModelIsWrong(t *testing.T) {
	on(t, func(s *rig) {
		for range 10 {
			s.turn(1, 11, 320)
		}
		assert.Contains(t, s.shadow().Withheld, "only 10 turns in the last 60 s")
		for range 50 {
			s.turn(1, 11, 256)
		}
		got := s.shadow()
		assert.Contains(t, got.Withheld, "more than 3 points apart")
		assert.InDelta(t, .16, *got.CacheError, .05)
	})
}

// There is no shadow of a cluster that reports too little. The message names what is missing.
func TestNoShadowNamesMissingMetrics(t *testing.T) {
	for want, change := range map[string]func(*rig){
		"no cluster data: down":               func(s *rig) { s.cluster = api.Cluster{Problem: "down"} },
		"the size of the workers' caches":     func(s *rig) { s.cluster.CacheBlocks = nil },
		"no workers are known":                func(s *rig) { s.cluster.Workers = nil },
		"worker pod-0 has no id":              func(s *rig) { s.cluster.Workers[0].ID = "" },
		"300 workers; the shadow follows 256": func(s *rig) { s.cluster.AllWorkers = &api.AllWorkers{Count: 300} },
		"which worker serves a turn: NVIDIA":  func(s *rig) { s.workers = false },
		"(vllm-router: not known, unless the engine sends a header of its own); set target.worker_header": func(s *rig) {
			s.workers, s.router = false, "vllm-router"
		},
		"name the page of each engine in cluster.metrics_urls": func(s *rig) {
			s.cluster.CacheBlocks, s.cluster.Router = nil, "vllm-router"
		},
		"impossible sizes": func(s *rig) { s.cluster.BlockTokens = new(1e9) },
	} {
		on(t, func(s *rig) {
			s.set(change)
			s.Live = New(s.opts) // the one of the rig has seen a cluster already
			s.adjust(time.Now())
			got := s.Shadow(time.Now())
			assert.Equal(t, api.ShadowNone, got.Source)
			assert.Contains(t, got.Message, want)
			assert.Contains(t, s.Decisions(1).Message, want)
			pass(clusterTimeout + time.Second)
			s.adjust(time.Now())
			assert.Nil(t, s.Follow(Sent{ID: "r"}), "no event is kept without an account")
		})
	}
	var none *Live
	assert.Equal(t, Disabled, none.Shadow(time.Now()).Message)
	assert.Contains(t, none.Decisions(1).Message, Disabled)
	none.Follow(Sent{}).FirstToken("1")
	none.Reset()
}

// Turns that are sent before the cluster has reported wait for it.
func TestTurnsWaitForTheCluster(t *testing.T) {
	on(t, func(s *rig) {
		s.set(func(s *rig) { s.cluster = api.Cluster{Problem: "not read yet"} })
		s.Live = New(s.opts)
		s.adjust(time.Now())
		s.turn(1, 11, 0)
		s.set(func(s *rig) { s.cluster = ready() })
		s.adjust(time.Now())
		s.turn(1, 11, 320)
		s.advance(time.Now())
		pass(time.Second)
		assert.Equal(t, 2, s.Shadow(time.Now()).Requests)
	})
}

// Turns that wait for the cluster keep few answers of conversations that may have ended.
func TestWaitingTurnsKeepFewAnswers(t *testing.T) {
	on(t, func(s *rig) {
		s.set(func(s *rig) { s.cluster = api.Cluster{Problem: "not read yet"} })
		s.Live = New(s.opts)
		s.adjust(time.Now())
		for range 4 {
			s.Follow(Sent{ID: "r", Answers: maxHeld / 4}).Routed(prompt(1, 330))
		}
		require.Nil(t, s.Follow(Sent{ID: "r"}), "one more is lost")
		s.set(func(s *rig) { s.cluster = ready() })
		s.adjust(time.Now())
		s.advance(time.Now())
		require.NotNil(t, s.Follow(Sent{ID: "r"}), "the queue is empty")
	})
}

// A reset begins with empty caches. Turns in flight are not followed any more.
func TestResetBeginsWithEmptyCaches(t *testing.T) {
	on(t, func(s *rig) {
		s.turn(1, 11, 0)
		flying := s.Follow(Sent{ID: "r", Conversation: "9"})
		flying.Routed(prompt(9, 330))
		before := *s.shadow().Since
		s.Reset()
		flying.FirstToken("11")
		flying.end(Result{OK: true, Worker: 11, PromptTokens: 330, CachedTokens: 0})
		s.turn(1, 11, 0)
		got := s.shadow()
		assert.Equal(t, 1, got.Requests)
		assert.True(t, got.Since.After(before))
		assert.InDelta(t, 0, *got.CacheError, 1e-9, "the caches are empty after the reset")
	})
}

// Turns beyond the limit and turns without the requested ids are lost. Failed and canceled turns leave
// nothing behind.
func TestLostTurnsAreCounted(t *testing.T) {
	on(t, func(s *rig) {
		silent := s.Follow(Sent{ID: "r"})
		silent.FirstToken("11")
		silent.end(Result{OK: true, Worker: 11, CachedTokens: -1})
		failed := s.Follow(Sent{ID: "r"})
		failed.Routed(prompt(1, 330))
		failed.end(Result{CachedTokens: -1})
		got := s.shadow()
		assert.Equal(t, 1, got.Lost)
		assert.Zero(t, got.Requests)
		assert.Zero(t, s.queue.followed)
		for range maxFollowed {
			require.NotNil(t, s.Follow(Sent{ID: "r"}))
		}
		require.Nil(t, s.Follow(Sent{ID: "r"}))
		assert.Equal(t, 2, s.shadow().Lost)
	})
}

// A target that reports the worker only at the end of an answer is followed too.
func TestWorkerIsReportedAtTheEnd(t *testing.T) {
	on(t, func(s *rig) {
		for i := range 3 {
			f := s.Follow(Sent{ID: "r", Conversation: "1"})
			f.Routed(prompt(1, 330))
			pass(100 * time.Millisecond)
			f.FirstToken("")
			pass(time.Second)
			cached := min(i, 1) * 320
			f.end(Result{OK: true, Worker: 22, PromptTokens: 330, OutputTokens: 9, CachedTokens: cached})
		}
		got := s.shadow()
		assert.Equal(t, 3, got.Requests)
		assert.InDelta(t, 0, *got.CacheError, 1e-9)
	})
}

// A router that names a worker by its address adds none to those whose metrics have ids, also while its page is not
// read.
func TestWorkerIsNamedByItsAddress(t *testing.T) {
	on(t, func(s *rig) {
		others := [][]api.Worker{nil, {}, {{ID: "pod-1", Name: "pod-1"}}} // as the page of a router shows it
		for i, other := range others {
			if i > 0 {
				s.set(func(s *rig) { s.cluster.Workers = slices.Concat(ready().Workers[:1], other) })
				pass(2 * time.Second)
			}
			f := s.Follow(Sent{ID: "r", Conversation: "1"})
			f.Routed(prompt(1, 330))
			f.FirstToken("pod-1")
			pass(time.Second)
			f.Ended(&api.Turn{
				Status: api.TurnOK, Worker: "pod-1", PromptTokens: new(330), OutputTokens: new(9),
				CachedTokens: new(min(i, 1) * 320),
			})
		}
		got := s.shadow()
		assert.Equal(t, 2, got.Workers)
		assert.InDelta(t, 0, *got.CacheError, 1e-9)
		assert.Equal(t, api.List[api.WorkerWork]{{Worker: "pod-0"}, {Worker: "pod-1", Turns: 3, UncachedTokens: 350}},
			got.Work.Workers)
	})
}

// Without token ids the text replaces them. The account keeps its caches while usage shows how many bytes a token has.
func TestTextReplacesTokenIDs(t *testing.T) {
	on(t, func(s *rig) {
		s.set(func(s *rig) { s.ids = false })
		pass(2 * time.Second)
		for range 25 {
			s.turn(1, 11, 320)
		}
		got := s.shadow()
		assert.Equal(t, api.ShadowText, got.Source)
		assert.Contains(t, got.Message, "(4.50 bytes a token on average)")
		assert.Equal(t, 25, got.Requests, "of one account")
		for range 60 {
			s.turn(1, 11, 320)
		}
		assert.InDelta(t, 0, *s.shadow().CacheError, .03)
	})
}

// A worker that is missing for a moment keeps its cache. A worker that is gone loses it.
func TestMissingWorkerKeepsItsCache(t *testing.T) {
	on(t, func(s *rig) {
		s.turn(1, 22, 0)
		s.set(func(s *rig) { s.cluster.Workers = s.cluster.Workers[:1] })
		pass(3 * time.Second)
		assert.Equal(t, 2, s.shadow().Workers)
		pass(workerExpiry)
		assert.Equal(t, 1, s.shadow().Workers)
	})
}

func TestBlocksOfText(t *testing.T) {
	long := strings.Repeat("The quick brown fox. ", 50)
	first, tokens, bytes := blocksOfText(32, 4, words("user", long))
	assert.Len(t, first, bytes/128)
	assert.Equal(t, bytes/4, tokens)
	again, _, _ := blocksOfText(32, 4, func(yield func(string, string) bool) {
		_ = yield("user", long) && yield("assistant", "Yes.") && yield("user", "Why?")
	})
	assert.Equal(t, first, again[:len(first)], "a continued history begins with the same blocks")
	other, _, _ := blocksOfText(32, 4, words("user", "x"+long))
	assert.NotEqual(t, first[0], other[0])
}
