package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/traffic"
)

// A preview has the traffic of the request, in caches of its size, and changes nothing. It refuses what a start would.
func TestPreviewTraffic(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		before := b.lane.State()
		shape := api.TrafficShape{Preset: api.ShapePrefix, Groups: 5, PrefixTokens: 800}
		req := api.TrafficPreviewRequest{
			WorkloadPatch: api.WorkloadPatch{
				Level: new(api.AtRate(2)), TrafficShape: &shape, Arrivals: new(api.ArrivalsConstant),
				Ramp: &api.Ramp{From: api.AtRate(1), Seconds: 60},
			},
			Seconds: new(120), Workers: new(2), WorkerBlocks: new(2000),
		}
		p, err := b.lane.PreviewTraffic(t.Context(), req)
		require.NoError(t, err)
		assert.Equal(t, shape, p.Shape)
		assert.InDelta(t, 60*1.5+60*2, p.Requests, 1, "a ramp has the mean of its ends")
		assert.Equal(t, []int{3, 4}, []int{p.Bins[0], p.Bins[59]}, "in two seconds each, the first of which begin with one")
		assert.Equal(t, "constant", p.Arrivals)
		assert.Equal(t, 5*50, p.ReusedBlocks)
		assert.InDelta(t, .8, *p.HitRatio, .1)
		assert.Equal(t, 120., p.Seconds)
		assert.Len(t, p.Caches.Policies, 5)
		assert.Equal(t, before, b.lane.State())

		f.context = 500
		for message, change := range map[string]func(*api.TrafficPreviewRequest){
			"seconds: 0 is not allowed: 1 to 86400 seconds": func(r *api.TrafficPreviewRequest) { r.Seconds = new(0) },
			"shape.preset: recorded is not allowed: another shape: the recorded one draws its texts as it runs": func(
				r *api.TrafficPreviewRequest,
			) {
				r.TrafficShape = nil
			},
			"shape.prefix_tokens: 800, with prompts and answers of 1184 tokens, is not allowed: at most 500 tokens together, " +
				"the context of the model or shape.context_tokens": func(*api.TrafficPreviewRequest) {},
		} {
			bad := req
			change(&bad)
			_, err := b.lane.PreviewTraffic(t.Context(), bad)
			assert.EqualError(t, err, message)
		}
		f.context = 0
		b.start(2)
		_, err = b.lane.PreviewTraffic(t.Context(), req)
		assert.ErrorIs(t, err, api.ErrConflict)
	})
}

// A target that was probed for texts is probed for exact lengths when a shape is set.
func TestShapeProbesForExactLengths(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(1)
		before := f.Probes()
		b.patch(api.WorkloadPatch{TrafficShape: &api.TrafficShape{Preset: api.ShapeChat}})
		assert.Equal(t, before+1, f.Probes())
		b.patch(api.WorkloadPatch{TrafficShape: &api.TrafficShape{Preset: api.ShapeBatch}})
		assert.Equal(t, before+1, f.Probes(), "it knows by now")
	})
}

// sessions are 20 conversations, one in a second, whose second turn comes 10 s after the first answer.
type sessions struct{}

func (sessions) at(k int64) (time.Duration, bool) { return time.Duration(k) * time.Second, k < 20 }

// Conversation implements [traffic.Source].
func (s sessions) Conversation(k int64) (traffic.Conversation, bool) {
	at, ok := s.at(k)
	turn := traffic.Turn{
		Messages:  []traffic.Message{{Role: "user", Segments: []traffic.Segment{{ID: uint64(k), Tokens: 64}}}},
		MaxTokens: 1, Think: 10 * time.Second,
	}
	return traffic.Conversation{At: at, Turns: []traffic.Turn{turn, turn}}, ok
}

// A trace is previewed to its end, at the speed of the level. A shape and a ramp beside it are refused.
func TestPreviewTrace(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		patch := api.WorkloadPatch{Level: new(api.AtRate(2))}
		p, err := b.lane.PreviewTraffic(t.Context(), api.TrafficPreviewRequest{WorkloadPatch: patch})
		require.NoError(t, err)
		assert.Equal(t, []any{"trace t", "recorded", 40, 20}, []any{p.Trace, p.Arrivals, p.Requests, p.Conversations})
		assert.InDelta(t, 19/2.+.5+10/2.+.5, p.Seconds, 1e-9, "the last start, two answers and a pause at twice the speed")

		_, err = b.lane.Patch(t.Context(), ann, api.WorkloadPatch{
			TrafficShape: &api.TrafficShape{Preset: api.ShapeChat},
		})
		assert.ErrorContains(t, err, "shape.preset: chat is not allowed")
		patch.Ramp = &api.Ramp{From: api.AtRate(1), Seconds: 9}
		_, err = b.lane.Patch(t.Context(), ann, patch)
		assert.ErrorContains(t, err, "ramp.from: 1/s is not allowed")
	}, func(o *options) {
		o.Plan = &workload.Plan{Name: "trace t", Timed: traffic.Timed{
			Source: sessions{}, Times: sessions{}.at, Rate: 1, Speed: 1,
		}}
	})
}

// A shape that is set sends its plan: each prompt of a group begins with the same segment, and results say what it is.
func TestShapeRuns(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.context = 4096
		_, err := b.lane.Patch(t.Context(), ann, api.WorkloadPatch{
			TrafficShape: &api.TrafficShape{Preset: api.ShapePrefix, PrefixTokens: 5000},
		})
		assert.ErrorContains(t, err, "at most 4096 tokens together")
		shape := api.TrafficShape{Preset: api.ShapePrefix, Groups: 1, PrefixTokens: 100, SuffixTokens: 10}
		b.patch(api.WorkloadPatch{TrafficShape: &shape, Level: new(api.AtConversations(2))})
		assert.Equal(t, "shape prefix (groups 1, prefix_tokens 100, suffix_tokens 10); answers limited",
			b.lane.State().Shape.Traffic)
		b.start(2)
		sent := f.turns()
		require.NotEmpty(t, sent)
		for _, r := range sent {
			assert.Regexp(t, `^\[\{\d+ 100\}\]$`, r.first)
			assert.Equal(t, sent[0].first, r.first)
			assert.Equal(t, 256, r.maxTokens)
		}
		b.patch(api.WorkloadPatch{TrafficShape: &api.TrafficShape{}})
		recorded := f.turns()
		assert.NotContains(t, recorded[len(recorded)-1].first, " 100}]", "the recorded workload again")
	})
}
