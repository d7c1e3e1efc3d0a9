package lane

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// other is a corpus that is not the small one.
func other() *corpus.Corpus {
	return &corpus.Corpus{Name: "other", Starters: []corpus.Starter{{ID: "tunnels", Topic: "The tunnels", Text: "All about tunnels."}}}
}

// Other texts are another workload: what was measured on the old ones is kept
// under their name, and the new step settles when the last conversation on them has
// ended.
func TestCorpusChanges(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
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
		own, _ := b.store.own(t)
		assert.Equal(t, "small", own.Workload.Corpus)
		assert.Equal(t, api.CorpusStatus{Name: "other", Starters: 1, Followup: "built-in questioner"}, b.view.Status().Lanes[0].Corpus)

		pass(10 * time.Second)
		assert.NotNil(t, b.lane.State().Step.Settled)
		for _, c := range b.lane.run.workload.(here).Conversations() {
			assert.Equal(t, "tunnels", c.Starter)
		}
		pass(65 * time.Second)
		own, _ = b.store.own(t)
		assert.Equal(t, "other", own.Workload.Corpus)
		b.events("start ann: 3 conversations, KV-aware", "settings corpus: corpus other: 1 starters")
	})
}

// A lane that is stopped takes the new texts for its next start.
func TestCorpusChangesWhileStopped(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.lane.SetCorpus(other())
		assert.Zero(t, b.lane.State().Step.ID)
		b.start(2)
		pass(time.Second)
		for _, c := range b.lane.run.workload.(here).Conversations() {
			assert.Equal(t, "tunnels", c.Starter)
		}
	})
}

// A starter is that of the corpus in force: one that another corpus had is there no
// more, and one of the same id is what the new corpus has under it.
func TestStarterOfTheCorpusInForce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		first := smallCorpus().Starters[0]
		got, err := b.lane.Starter(first.ID)
		require.NoError(t, err)
		assert.Equal(t, api.Starter{ID: first.ID, Topic: first.Topic, Text: first.Text}, got)

		for _, unknown := range []string{"tunnels", "", first.Topic} {
			_, err = b.lane.Starter(unknown)
			require.ErrorIs(t, err, api.ErrNotFound, unknown)
		}

		next := other()
		next.Starters = append(next.Starters, corpus.Starter{ID: first.ID, Topic: "Anew", Text: "Another text."})
		b.lane.SetCorpus(next)
		got, err = b.lane.Starter("tunnels")
		require.NoError(t, err)
		assert.Equal(t, "All about tunnels.", got.Text)
		got, err = b.lane.Starter(first.ID)
		require.NoError(t, err)
		assert.Equal(t, "Another text.", got.Text)
		_, err = b.lane.Starter(smallCorpus().Starters[1].ID)
		require.ErrorIs(t, err, api.ErrNotFound)
		require.ErrorContains(t, err, "the corpus in use, other, has no starter")
	})
}

// reporter is a questioner that counts.
type reporter struct{ corpus.BuiltinQuestioner }

func (reporter) Kind() api.QuestionerKind { return api.QuestionerModel }

func (reporter) Report() api.FollowupStatus {
	return api.FollowupStatus{Name: "a model", URL: "http://asker", ByModel: 7, Fallbacks: map[api.FollowupCause]int64{api.FollowupTimeout: 2}}
}

// What was read, and who asks, stand in the status and in the metrics.
func TestStatusOfCorpusAndQuestioner(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		l := b.view.Status().Lanes[0]
		assert.Equal(t, api.QuestionerModel, l.State.Questioner)
		assert.Equal(t, reporter{}.Report(), l.Followup)
		assert.Equal(t, api.CorpusStatus{Name: "small", Starters: 2, Followup: "built-in questioner", Cut: 3, Problem: "lost"}, l.Corpus)
		registry := prometheus.NewRegistry()
		registry.MustRegister(b.lane.Collector())
		assert.Contains(t, scrape(t, registry), "loadgen_followup_total cause=timeout,source=built_in")
	}, func(o *options) {
		o.Questioner = reporter{}
		o.CorpusStatus = func() api.CorpusStatus { return api.CorpusStatus{Cut: 3, Problem: "lost"} }
	})
}

// redirected is a client that goes to another address than the target's.
type redirected struct{ *fake }

func (redirected) Endpoint() string { return "http://rr.example:8000" }

// simulator is a driver that knows that its cluster is simulated.
type simulator struct{ *script }

func (simulator) Simulation() *api.Simulation { return nil }

// What is behind the target is a value: as configured, as the driver knows it, or
// not known.
func TestTargetKind(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*options)
		want   api.TargetKind
	}{
		"not known":                 {func(o *options) { o.Deployment.Engine = "simulated trtllm" }, api.TargetUnknown},
		"configured":                {func(o *options) { o.Target = api.TargetMocked }, api.TargetMocked},
		"known to the driver":       {func(o *options) { o.Driver = simulator{o.Driver.(*script)} }, api.TargetSimulated},
		"the driver against a user": {func(o *options) { o.Driver, o.Target = simulator{o.Driver.(*script)}, api.TargetReal }, api.TargetSimulated},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, _ *fake) {
				assert.Equal(t, row.want, b.snapshot().Target.Kind)
				assert.Equal(t, row.want, b.view.Status().Lanes[0].Target.Kind)
			}, row.change)
		})
	}
}

// The address in use is told; the target's own stands for both.
func TestEndpointInUse(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		target := b.snapshot().Target
		assert.Equal(t, "http://rr.example:8000", target.Endpoint)
		assert.Equal(t, "http://gpu.example:8000", target.URL)
	}, func(o *options) { o.Client = redirected{newFake()} })
}
