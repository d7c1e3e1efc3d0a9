package traffic

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func shape(t *testing.T, s api.TrafficShape) *Shape {
	t.Helper()
	source, err := NewShape(s, 1, 0)
	require.NoError(t, err)
	return source
}

// drawn holds what many conversations of a shape have.
type drawn struct {
	turns, opening, added, answers []int // by conversation, or by turn
	groups                         map[Segment]int
	longest, longer                int // tokens of a context, and conversations with several turns
	prompts, outputs               float64
	pauses                         time.Duration
}

// drawMany draws conversations and checks what all have: equal numbers give equal plans, every segment has a length,
// and no context is above the limit.
func drawMany(t *testing.T, s *Shape, n int64) (d drawn) {
	t.Helper()
	d.groups = map[Segment]int{}
	for k := range n {
		c, ok := s.Conversation(k)
		if !ok || len(c.Turns) == 0 {
			require.Fail(t, "no turns")
		}
		if k < 50 {
			again, _ := s.Conversation(k)
			require.Equal(t, c, again)
		}
		d.turns = append(d.turns, len(c.Turns))
		if len(c.Turns) > 1 {
			d.longer++
		}
		d.groups[c.Turns[0].Messages[0].Segments[0]]++
		tokens := 0
		for i, turn := range c.Turns {
			added := 0
			for _, m := range turn.Messages {
				for _, segment := range m.Segments {
					if segment.Tokens < 1 || turn.Whole {
						require.Fail(t, "a segment without tokens, or a prompt that does not go on")
					}
				}
				added += Tokens(m.Segments)
			}
			if i == 0 {
				d.opening = append(d.opening, added)
			} else {
				d.added = append(d.added, added)
				d.pauses += max(turn.Think, 0)
			}
			tokens += added
			d.prompts += float64(tokens)
			d.outputs += float64(turn.MaxTokens)
			tokens += turn.MaxTokens
			d.answers = append(d.answers, turn.MaxTokens)
		}
		if tokens > s.limit {
			require.Fail(t, "a context above the limit")
		}
		d.longest = max(d.longest, tokens)
	}
	return d
}

func mean(values []int) float64 {
	sum := 0.
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

// TestShapesHaveStatedDistributions compares what is drawn with the published numbers of each preset.
func TestShapesHaveStatedDistributions(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeChat}), 60_000)
		assert.InEpsilon(t, 3.51, mean(d.turns), .02)
		assert.InDelta(t, .73, float64(d.longer)/60_000, .02, "share of conversations with several turns")
		assert.InEpsilon(t, 94.46, mean(d.opening), .05)
		assert.InEpsilon(t, 94.46, mean(d.added), .05)
		assert.InEpsilon(t, 348.45, mean(d.answers), .02)
		square := 0.
		for _, v := range d.answers {
			square += math.Pow(float64(v)-348.45, 2)
		}
		assert.InEpsilon(t, 269.93, math.Sqrt(square/float64(len(d.answers))), .05)
	})
	t.Run("prefix", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapePrefix}), 20_000)
		assert.Equal(t, []int{2048 + 128}, slices.Compact(d.opening))
		assert.Equal(t, []int{256}, slices.Compact(d.answers))
		assert.Len(t, d.groups, 64)
		for group, n := range d.groups {
			assert.InDelta(t, 20_000/64, n, 90, "%v", group) // five standard deviations
		}
	})
	t.Run("rag", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeRAG}), 20_000)
		counts := []int{}
		for document, n := range d.groups {
			counts = append(counts, n)
			assert.True(t, document.Tokens >= 2000 && document.Tokens <= 30_000, "%v", document)
		}
		slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
		assert.InDelta(t, .6, 30*mean(counts[:30])/20_000, .02, "share of the first 3 % of the documents")
		assert.InEpsilon(t, 30+28_000/math.Log(15), mean(d.opening), .1)
	})
	t.Run("agent", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeAgent}), 600)
		assert.InEpsilon(t, 100, d.prompts/d.outputs, .15, "tokens of prompts for one of answers")
		assert.Len(t, d.groups, 1)
		assert.Greater(t, d.longest, 125_000)
		assert.InEpsilon(t, 5.1, d.pauses.Seconds()/float64(len(d.added)), .1)
		for system := range d.groups {
			assert.True(t, system.Tokens >= 5000 && system.Tokens <= 20_000)
		}
	})
	t.Run("few-shot", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeFewShot}), 20_000)
		assert.Len(t, d.groups, 57)
	})
	t.Run("batch", func(t *testing.T) {
		d := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeBatch}), 20_000)
		assert.Len(t, d.groups, 20_000)
		assert.InEpsilon(t, 1738.3, mean(d.opening), .02)
		assert.InEpsilon(t, 90.7, mean(d.answers), .02)
	})
}

// TestAgentsOfAFamilyShareTheirTask checks that sub-agents begin with the prompt of their main agent and go on on their
// own.
func TestAgentsOfAFamilyShareTheirTask(t *testing.T) {
	s := shape(t, api.TrafficShape{Preset: api.ShapeAgent})
	begin := func(k int64) []Segment {
		c, _ := s.Conversation(k)
		var all []Segment
		for _, m := range c.Turns[0].Messages {
			all = append(all, m.Segments...)
		}
		return all
	}
	main := begin(0)
	require.Len(t, main, 2)
	for k := range int64(3) {
		side := begin(k + 1)
		require.Len(t, side, 3)
		assert.Equal(t, main, side[:2])
	}
	assert.Equal(t, main[0], begin(4)[0])
	assert.NotEqual(t, main[1], begin(4)[1], "another family")
	c, _ := s.Conversation(0)
	assert.Equal(t, "tool", c.Turns[1].Messages[0].Role)
}

// TestMixedHasItsWeights checks shares, models, and that parts share no text.
func TestMixedHasItsWeights(t *testing.T) {
	s := shape(t, api.TrafficShape{Preset: api.ShapeMixed, Mix: "prefix@a=3, prefix@b=1, batch=0", Groups: 2, Turns: 2})
	models, owners := map[string]float64{}, map[uint64]string{}
	for k := range int64(8000) {
		c, _ := s.Conversation(k)
		models[c.Model]++
		assert.Len(t, c.Turns, 2)
		id := c.Turns[0].Messages[0].Segments[0].ID
		assert.Equal(t, c.Model, cmp.Or(owners[id], c.Model))
		owners[id] = c.Model
	}
	assert.Len(t, owners, 4)
	assert.InDelta(t, .75, models["a"]/8000, .02)
	assert.InDelta(t, .25, models["b"]/8000, .02)
}

// TestShapeSettings checks that the numbers of the settings replace those of the preset.
func TestShapeSettings(t *testing.T) {
	d := drawMany(t, shape(t, api.TrafficShape{
		Preset: api.ShapeRAG, Groups: 10, PrefixTokens: 1000, SuffixTokens: 500, AnswerTokens: 40, Zipf: 3, Turns: 3,
		ContextTokens: 20_000,
	}), 5000)
	assert.Equal(t, []int{3}, slices.Compact(d.turns))
	assert.InEpsilon(t, 1500, mean(d.opening), .03)
	assert.InEpsilon(t, 40, mean(d.answers), .03)
	most := 0
	for document, n := range d.groups {
		assert.Equal(t, 1000, document.Tokens)
		most = max(most, n)
	}
	assert.InEpsilon(t, 5000/1.1975, float64(most), .03, "the first of ten, by a sum of n^-3")
	long := drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeAgent, ContextTokens: 30_000}), 200)
	assert.Greater(t, long.longest, 28_000)
	drawMany(t, shape(t, api.TrafficShape{Preset: api.ShapeChat, ContextTokens: 64}), 2000)
}

func TestShapeRefuses(t *testing.T) {
	for _, tt := range []struct {
		shape   api.TrafficShape
		model   int
		message string
	}{
		{api.TrafficShape{Preset: "chatty"}, 0, `shape.preset: "chatty" is not allowed: one of recorded, chat, prefix, rag, ` +
			`agent, few-shot, batch, mixed`},
		{api.TrafficShape{SuffixTokens: 3}, 0, "shape.suffix_tokens: 3 is not allowed: leave it out unless the shape " +
			"(shape.preset) is another one than recorded"},
		{api.TrafficShape{Preset: api.ShapeChat, Groups: 5}, 0, "shape.groups: 5 is not allowed: leave it out unless " +
			"prompts of the shape (shape.preset) begin with those of groups: prefix, rag, agent, few-shot, and mixed with " +
			"one of them"},
		{api.TrafficShape{Preset: api.ShapeChat, Turns: -1}, 0, "shape.turns: -1 is not allowed: 0 to 1000"},
		{api.TrafficShape{Preset: api.ShapeRAG, Zipf: math.NaN()}, 0, "shape.zipf: NaN is not allowed: 0 to 4"},
		{api.TrafficShape{Preset: api.ShapeChat, Mix: "chat=1"}, 0, "shape.mix: chat=1 is not allowed: leave it out " +
			"unless the shape (shape.preset) is mixed"},
		{api.TrafficShape{Preset: api.ShapeMixed, Mix: "chat=0,rag=0"}, 0, "shape.mix: chat=0,rag=0 is not allowed: parts " +
			"with weights of 0 or more, such as chat=3,agent@adapter=1, with presets from chat to batch (shape.preset) and a " +
			"sum above 0"},
		{api.TrafficShape{Preset: api.ShapeMixed, Mix: "chat=1,mixed=1"}, 0, `shape.mix: "mixed=1" is not allowed: parts ` +
			"with weights of 0 or more, such as chat=3,agent@adapter=1, with presets from chat to batch (shape.preset) and a " +
			"sum above 0"},
		{api.TrafficShape{Preset: api.ShapeRAG}, 16_384, "shape.preset: rag, with prompts and answers of 30002 tokens, is " +
			"not allowed: at most 16384 tokens together, the context of the model or shape.context_tokens"},
		{api.TrafficShape{Preset: api.ShapePrefix, PrefixTokens: 8000}, 8192, "shape.prefix_tokens: 8000, with prompts and " +
			"answers of 8384 tokens, is not allowed: at most 8192 tokens together, the context of the model or " +
			"shape.context_tokens"},
		{api.TrafficShape{Preset: api.ShapeAgent, ContextTokens: 200_000}, 131_072, "shape.context_tokens: 200000 is not " +
			"allowed: at most 131072, the context of the model"},
	} {
		_, err := NewShape(tt.shape, 1, tt.model)
		assert.EqualError(t, err, tt.message)
		assert.ErrorAs(t, err, new(*api.FieldError))
	}
}
