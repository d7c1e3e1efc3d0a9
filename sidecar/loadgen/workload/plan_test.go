package workload

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/sim/traffic"
)

// planned is a source of conversations in a list.
type planned []traffic.Conversation

func (p planned) Conversation(k int64) (c traffic.Conversation, ok bool) {
	if k >= int64(len(p)) {
		return c, false
	}
	return p[k], true
}

func (p planned) at(k int64) (time.Duration, bool) {
	c, ok := p.Conversation(k)
	return c.At, ok
}

// made is a message of segments with so many tokens each, and their index from first on as the id.
func made(first uint64, tokens ...int) []chat.Message {
	m := chat.Message{Role: chat.RoleUser}
	for i, n := range tokens {
		m.Segments = append(m.Segments, traffic.Segment{ID: first + uint64(i), Tokens: n})
	}
	return []chat.Message{m}
}

// twoConversations has two conversations, of which the second one begins 10 s after the first. Its second turn has a
// time at which the first one has not ended, and its third one a time long after.
func twoConversations() planned {
	return planned{
		{Model: "adapter", Turns: []traffic.Turn{
			{Messages: []chat.Message{{Role: "system", Text: "s"}, {Role: chat.RoleUser, Text: "u"}}, Think: -1},
			{Messages: []chat.Message{{Role: chat.RoleUser, Text: "v"}}, Think: 4 * time.Second},
		}},
		{At: 10 * time.Second, Turns: []traffic.Turn{
			{Messages: made(1, 512, 88), MaxTokens: 101, Exact: true},
			{Messages: made(2, 512), Whole: true, Keep: 1, MaxTokens: 11, Exact: true, At: time.Second},
			{Messages: made(3, 8), Whole: true, Keep: 2, MaxTokens: 11, Exact: true, At: time.Minute},
		}},
	}
}

// A plan decides on starts, pauses, prompts, lengths and models. Twice its speed halves all times. The run ends with
// its last turn.
func TestPlan(t *testing.T) {
	for name, row := range map[string]struct {
		level float64
		speed time.Duration
	}{
		"recorded speed": {.2, 1}, "another rate is another speed": {.4, 2},
	} {
		virtual(t, name, func(t *testing.T) {
			source := twoConversations()
			target, observed := &server{}, &endedTurns{}
			s := open(row.level)
			s.ThinkTime = time.Hour
			r := run(t, target, s, func(o *Options) {
				o.Plan = &Plan{Timed: traffic.Timed{Source: source, Times: source.at, Rate: .2, Speed: 1}}
				o.Nonce = "[c01d]"
				observed.recorder, o.Observer = o.Observer.(*recorder), observed
			})
			advance(2 * time.Minute)
			assert.True(t, r.hasReturned())
			sent := target.requests()
			require.Len(t, sent, 5)
			answer := ttft + gap // two tokens
			for i, at := range []time.Duration{
				0, answer + 4*time.Second/row.speed, 10 * time.Second / row.speed,
				10*time.Second/row.speed + ttft + 100*gap, 70 * time.Second / row.speed,
			} {
				assert.Equal(t, at, sent[i].at.Sub(r.begun), "request %d", i)
			}
			assert.Equal(t, []chat.Message{
				{Role: "system", Text: "[c01d]\ns"},
				{Role: "user", Text: "u"},
				{Role: "assistant", Text: sent[0].answer},
				{Role: "user", Text: "v"},
			}, sent[1].Messages)
			assert.Equal(t, []string{"adapter", ""}, []string{sent[1].Model, sent[2].Model})
			assert.Equal(t, made(1, 512, 512, 8), sent[4].Messages)
			assert.NotEqual(t, sent[4].Salt, salt("another"))
			assert.Equal(t, []int{s.MaxTokens, 101}, []int{sent[1].MaxTokens, sent[2].MaxTokens})
			assert.Equal(t, []bool{false, true}, []bool{sent[1].Exact, sent[2].Exact})
			turns := observed.of(2, 3, 4)
			assert.Equal(t, []string{"1:512 2:88", "(1 as before) 2:512", "(2 as before) 3:8"},
				[]string{turns[0].UserMessage, turns[1].UserMessage, turns[2].UserMessage})
			assert.Equal(t, []int{600, 1024, 1032},
				[]int{*turns[0].PlannedInput, *turns[1].PlannedInput, *turns[2].PlannedInput})
			late := (ttft + 100*gap - time.Second/row.speed).Seconds()
			assert.InDelta(t, late, *turns[1].Behind, 1e-9, "the turn before had not ended")
			assert.Zero(t, *turns[1].Turn.Late, "the load generator was not late")
			assert.Zero(t, *turns[2].Behind)
		})
	}
}

// endedTurns keeps the turns in the order of their ends.
type endedTurns struct {
	*recorder
	mu    sync.Mutex
	turns []*LiveTurn
}

func (e *endedTurns) TurnEnded(c *Conversation, t *LiveTurn) {
	e.recorder.TurnEnded(c, t)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.turns = append(e.turns, t)
}

func (e *endedTurns) of(places ...int) (turns []*LiveTurn) {
	for _, at := range places {
		turns = append(turns, e.turns[at])
	}
	return turns
}

// A number of conversations in progress takes those of the plan in order, whatever their times.
func TestPlanUnderANumberOfConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := twoConversations()
		source[1].At = 24 * time.Hour
		target := &server{}
		s := booth(1)
		r := run(t, target, s, func(o *Options) {
			o.Plan = &Plan{Timed: traffic.Timed{Source: source, Times: source.at, Rate: 1, Speed: 1}}
		})
		advance(10 * time.Minute)
		assert.True(t, r.hasReturned())
		assert.Len(t, target.requests(), 5)
	})
}

// The level of a trace is its rate with three digits, which stands for exactly the recorded speed.
func TestLevelOfAPlan(t *testing.T) {
	p := &Plan{Timed: traffic.Timed{Times: planned{}.at, Rate: 1.23456, Speed: 2}}
	level, ok := p.Level()
	assert.True(t, ok)
	assert.Equal(t, api.AtRate(2.47), level)
	assert.InDelta(t, 2, p.speed(level), 0)
	assert.InDelta(t, 1, p.speed(api.AtRate(1.23456)), 1e-9)
	_, ok = (&Plan{Timed: traffic.Timed{Speed: 1}}).Level()
	assert.False(t, ok)
}
