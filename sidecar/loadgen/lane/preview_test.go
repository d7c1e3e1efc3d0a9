package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A preview has the traffic of the request, in caches of its size, and changes nothing. It refuses what a start would.
func TestPreviewTraffic(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		before := b.lane.State()
		shape := api.TrafficShape{Preset: api.ShapePrefix, Groups: 5, PrefixTokens: 800}
		req := api.TrafficPreviewRequest{
			Level: new(api.AtRate(2)), Shape: &shape, Seconds: new(120), Workers: new(2), WorkerBlocks: new(2000),
		}
		p, err := b.lane.PreviewTraffic(t.Context(), req)
		require.NoError(t, err)
		assert.Equal(t, shape, p.Shape)
		assert.InDelta(t, 240, p.Requests, 60)
		assert.Equal(t, "poisson", p.Arrivals)
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
				r.Shape = nil
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
