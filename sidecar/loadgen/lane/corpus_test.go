package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// other returns a corpus that shares one id with the small one.
func other() *corpus.Corpus {
	return &corpus.Corpus{Name: "other", Starters: []corpus.Starter{
		{ID: "tunnels", Topic: "The tunnels", Text: "All about tunnels."},
		{ID: "rivers", Topic: "Anew", Text: "Another text."},
	}}
}

// Other texts are another workload. Results on the old texts are stored under their name, and the new step settles when
// the last conversation on them has ended.
func TestNewCorpusBeginsAStep(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		pass(70 * time.Second)
		assert.False(t, b.lane.State().Settling)
		b.lane.SetCorpus(smallCorpus())
		assert.EqualValues(t, 1, b.lane.State().Step.ID, "the same texts change nothing")

		b.lane.SetCorpus(other())
		state := b.lane.State()
		assert.EqualValues(t, 2, state.Step.ID)
		assert.Equal(t, "other", state.Shape.Corpus)
		assert.True(t, state.Running && state.Settling)
		assert.Nil(t, state.Step.Settled, "conversations on the old texts are in progress")
		assert.Equal(t, "small", b.store.own().Workload.Corpus)

		pass(10 * time.Second)
		assert.NotNil(t, b.lane.State().Step.Settled)
		for _, c := range b.lane.run.workload.Conversations() {
			assert.Contains(t, []string{"tunnels", "rivers"}, c.Starter)
		}
		pass(65 * time.Second)
		assert.Equal(t, "other", b.store.own().Workload.Corpus)
		status := api.CorpusStatus{Name: "other", Starters: 2, Followup: "built-in questioner", Cut: 3, Problem: "lost"}
		assert.Equal(t, status, b.view.Status().Lanes[0].Corpus)
		b.expectEvents("start ann: 3 conversations, KV-aware", "settings corpus: corpus other: 2 starters")

		b.stop()
		b.lane.SetCorpus(smallCorpus())
		assert.EqualValues(t, 2, b.lane.State().Step.ID, "a stopped lane takes them for its next start")
		b.start(1)
		for _, r := range f.turns() {
			assert.Contains(t, r.first, "All there is to know about")
		}
	}, func(o *options) {
		o.CorpusStatus = func() api.CorpusStatus { return api.CorpusStatus{Cut: 3, Problem: "lost"} }
	})
}

// A starter comes from the corpus in force, even if another corpus had one of the same id.
func TestStarterComesFromTheCorpusInForce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		got, err := b.lane.Starter("rivers")
		require.NoError(t, err)
		rivers := smallCorpus().Starters[0]
		assert.Equal(t, api.Starter{ID: "rivers", Topic: rivers.Topic, Text: rivers.Text}, got)
		_, err = b.lane.Starter("")
		require.ErrorIs(t, err, api.ErrNotFound)

		b.lane.SetCorpus(other())
		got, err = b.lane.Starter("rivers")
		require.NoError(t, err)
		assert.Equal(t, "Another text.", got.Text)
		_, err = b.lane.Starter("bridges")
		require.ErrorIs(t, err, api.ErrNotFound)
		require.ErrorContains(t, err, "the corpus in use, other, has no starter")
	})
}

// simulator is a driver of a simulated cluster.
type simulator struct{ *script }

func (simulator) Abilities() workload.Abilities {
	return workload.Abilities{Simulation: func() *api.Simulation { return nil }}
}

// The kind of the target is the one that the driver determines, else the configured one, else unknown.
func TestDriverOverridesConfiguredTargetKind(t *testing.T) {
	simulated := func(o *options) { o.Driver, o.Target = simulator{o.Driver.(*script)}, api.TargetReal }
	for want, change := range map[api.TargetKind]func(*options){
		api.TargetUnknown:   func(o *options) { o.Deployment.Engine = "simulated trtllm" },
		api.TargetMocked:    func(o *options) { o.Target = api.TargetMocked },
		api.TargetSimulated: simulated,
	} {
		t.Run(string(want), func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, _ *fake) {
				assert.Equal(t, want, b.snapshot().Target.Kind)
				assert.Equal(t, want, b.view.Status().Lanes[0].Target.Kind)
			}, change)
		})
	}
}
