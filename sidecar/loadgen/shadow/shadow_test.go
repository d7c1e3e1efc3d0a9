package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
)

// path returns the hashes of n blocks of a text. The first common ones are equal in all texts.
func path(text uint64, common, n int) (blocks []uint64) {
	for i := range n {
		if i < common {
			blocks = append(blocks, uint64(i)+1)
		} else {
			blocks = append(blocks, text<<32|uint64(i))
		}
	}
	return blocks
}

func start(t *testing.T, change ...func(*Options)) *Shadow {
	t.Helper()
	o := DefaultOptions(10)
	o.Workers, o.Capacity, o.Answers = []sim.WorkerID{11, 22}, 100, AnswersForgotten
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	return s
}

// turn runs a request that gets its first token after half a second and ends half a second later.
func turn(s *Shadow, at time.Duration, r Request) {
	f := s.Begin(at, r)
	s.First(at+500*time.Millisecond, f)
	s.End(at+time.Second, f, 20, -1)
}

func hits(s *Shadow) map[string]int64 {
	all := map[string]int64{}
	for _, p := range s.Figures(s.now).Policies {
		all[p.Policy.Name] = p.Total.HitTokens
	}
	return all
}

// One prompt of 105 tokens is sent four times to two workers. All of its ten full blocks are found
// the second time on a worker.
func TestPolicyHits(t *testing.T) {
	s := start(t)
	for i := range 4 {
		turn(s, time.Duration(i)*time.Minute, Request{Blocks: path(1, 0, 10), PromptTokens: 105, Conversation: 7, Worker: 22})
	}
	h := hits(s)
	assert.EqualValues(t, 300, h["actual"])
	assert.EqualValues(t, 200, h["round_robin"])
	assert.EqualValues(t, 300, h["sticky"])
	assert.EqualValues(t, 300, h["opening_hash"])
	assert.EqualValues(t, 300, h["kv"])
	assert.EqualValues(t, 300, h["best"])
	for _, p := range s.Figures(s.now).Policies {
		assert.EqualValues(t, 4, p.Total.Requests, p.Policy.Name)
		assert.EqualValues(t, 420, p.Total.PromptTokens, p.Policy.Name)
	}
}

// Each policy has a title of its own.
func TestPoliciesHaveTitles(t *testing.T) {
	named := map[string]string{}
	for _, p := range DefaultPolicies() {
		assert.Empty(t, named[p.Title()], "%s has the title of another policy; see Policy.Title", p.Name)
		named[p.Title()] = p.Name
	}
}

// The last token of a prompt is always computed.
func TestLastTokenIsNoHit(t *testing.T) {
	s := start(t)
	turn(s, 0, Request{Blocks: path(1, 0, 10), PromptTokens: 100, Worker: 11})
	turn(s, time.Minute, Request{Blocks: path(1, 0, 10), PromptTokens: 100, Worker: 11})
	assert.EqualValues(t, 90, hits(s)["actual"])
}

// Each of three texts takes ten blocks of a cache of 25, one more for its last token and one for its
// answer. The third evicts seven blocks of the first, the last blocks first, as half of the answer's
// length is reserved at the first token.
func TestEviction(t *testing.T) {
	s := start(t, func(o *Options) { o.Capacity = 25 })
	for i, text := range []uint64{1, 2, 3} {
		turn(s, time.Duration(i)*time.Minute, Request{Blocks: path(text, 0, 10), PromptTokens: 101, Worker: 11})
	}
	turn(s, 10*time.Minute, Request{Blocks: path(2, 0, 10), PromptTokens: 101, Worker: 11})
	turn(s, 11*time.Minute, Request{Blocks: path(1, 0, 10), PromptTokens: 101, Worker: 11})
	h := hits(s)
	assert.EqualValues(t, 100+30, h["actual"], "text 2 is complete, and three blocks of text 1 are left")
	assert.EqualValues(t, 200, h["best"], "both caches' size holds all of them")
}

// The next turn of the conversation finds the blocks of an answer, on the worker that wrote it,
// if engines keep them.
func TestAnswerBlocksFoundByNextTurn(t *testing.T) {
	for _, found := range []bool{true, false} {
		s := start(t, func(o *Options) {
			if found {
				o.Answers = AnswersFound
			}
		})
		turn(s, 0, Request{Blocks: path(1, 0, 10), PromptTokens: 105, Conversation: 7, Worker: 11})
		turn(s, time.Minute, Request{Blocks: path(1, 0, 20), PromptTokens: 200, Conversation: 7, Worker: 11})
		turn(s, 2*time.Minute, Request{Blocks: path(1, 0, 10), PromptTokens: 105, Conversation: 8, Worker: 22})
		want := int64(100)
		if found {
			want = 120 // 105 + 20 tokens, without the last: 12 blocks
		}
		assert.Equal(t, want, hits(s)["actual"], "found: %v", found)
	}
}
