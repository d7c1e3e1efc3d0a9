package members

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// bucket is the largest relative width of a bucket of inter-token latencies.
const bucket = 1. / 128

// If turns are split among members, their reports give the percentiles that one process computes from all turns: within
// a bucket for inter-token latencies, and the same for all other figures.
func TestSplitTurnsGiveTheSamePercentiles(t *testing.T) {
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	settled := time.Now().Add(-time.Hour)
	o := new(orderOf("main", "r"))
	o.Settings = workload.Settings{Turns: api.Range{Min: 1, Max: 1}, MaxTokens: 1}
	o.Step = api.StepRecord{Lane: "main", ID: 3, Settled: &settled}
	slo := api.SLO{TTFT: .6, TPOT: .06}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		began := time.Now()
		now := began.Add(58 * time.Second)
		parts := make([]*part, 1+rng.IntN(8))
		for i := range parts {
			parts[i] = newPart(o, Share{Run: "r"}, texts, corpus.BuiltinQuestioner{}, nil, func(handedTurn, *atomic.Int64) {})
		}
		one, merged := stats.NewRecorder(began, slo), stats.NewRecorder(began, slo)
		for n := range 1 + rng.IntN(400) {
			turn := drawnTurn(rng, began, n)
			turn.Number = 1 + rng.IntN(7)
			p := parts[rng.IntN(len(parts))]
			p.TurnStarted(turn)
			p.TurnEnded(new(workload.Conversation), turn)
			one.Add(&turn.Turn.Turn, turn.Chunks, turn.ITL)
		}
		for _, p := range parts {
			data, err := json.Marshal(p.collect())
			require.NoError(t, err)
			var got report
			require.NoError(t, json.Unmarshal(data, &got))
			for i := range got.Turns {
				merged.Add(&got.Turns[i].Turn, got.Turns[i].Chunks, got.Turns[i].ITL)
			}
		}
		same(t, seed, one.Report(now), merged.Report(now))
		same(t, seed, one.Counted(now, o.Step.ID), merged.Counted(now, o.Step.ID))
		assert.Equal(t, one.Totals(), merged.Totals(), "seed %d", seed)
		assert.InDelta(t, one.TokensPerChunk(), merged.TokensPerChunk(), 1e-9, "seed %d", seed)
	}
}

// drawnTurn returns a random turn of a conversation: complete, without usage, of one chunk, failed, or cancelled.
func drawnTurn(rng *rand.Rand, began time.Time, conversation int) *workload.LiveTurn {
	t := new(workload.LiveTurn)
	t.Conversation, t.Draw.Number, t.Number = fmt.Sprint("c", conversation), int64(conversation), 1
	t.Status, t.Ended, t.AssistantMessage = api.TurnOK, began.Add(time.Duration(rng.Int64N(int64(57*time.Second)))), "text"
	ttft := .05 + rng.ExpFloat64()
	latency, tokens := ttft, 1
	scale := []float64{1e-6, .001, .025, 2}[rng.IntN(4)]
	for range rng.IntN(80) {
		gap := chat.Gap{Tokens: float64(1 + rng.IntN(3))}
		if rng.IntN(20) > 0 { // else the chunk comes with the one before
			gap.Seconds = scale * rng.ExpFloat64()
		}
		t.ITL = append(t.ITL, gap)
		latency, tokens = latency+gap.Seconds*gap.Tokens, tokens+int(gap.Tokens)
	}
	t.Chunks, t.ITLEstimated = 1+len(t.ITL), rng.IntN(4) == 0
	t.TTFT, t.Latency, t.OutputTokens, t.TokenSource = &ttft, &latency, &tokens, "chunks"
	if rng.IntN(4) > 0 {
		t.PromptTokens, t.TokenSource = new(1000+rng.IntN(5000)), "usage"
		if rng.IntN(2) == 0 {
			t.CachedTokens = new(rng.IntN(1000))
		}
	}
	switch rng.IntN(12) {
	case 0:
		t.Status, t.ErrorClass = api.TurnError, api.ErrorClasses[rng.IntN(len(api.ErrorClasses))]
	case 1:
		t.Status = api.TurnCancelled
	case 2:
		t.Status, t.ErrorClass, t.Chunks, t.ITL = api.TurnError, api.ErrorClasses[0], 0, nil
		t.TTFT, t.Latency, t.PromptTokens, t.CachedTokens, t.OutputTokens = nil, nil, nil, nil, nil
	}
	t.Started = t.Ended.Add(-time.Duration(latency * float64(time.Second)))
	return t
}

// same compares two reports.
func same(t *testing.T, seed uint64, one, merged stats.Report) {
	t.Helper()
	a, b := one.Window.Metrics.ITL, merged.Window.Metrics.ITL
	assert.Equal(t, a.N, b.N, "seed %d", seed)
	for name, pair := range map[string][2]*float64{"p50": {a.P50, b.P50}, "p95": {a.P95, b.P95}, "p99": {a.P99, b.P99}} {
		if pair[0] == nil || pair[1] == nil {
			assert.Equal(t, pair[0], pair[1], "seed %d: ITL %s", seed, name)
			continue
		}
		assert.InDelta(t, *pair[0], *pair[1], *pair[0]*bucket, "seed %d: ITL %s", seed, name)
	}
	one.Window.Metrics.ITL, merged.Window.Metrics.ITL = api.Quantiles{}, api.Quantiles{}
	assert.Equal(t, one, merged, "seed %d", seed)
}

// A turn includes its conversation, which is recorded if no report has contained it, and so ends with its member.
func TestTurnBeforeItsReportHasItsConversation(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	bring := func(c *Coordinator, member, run string, number int64, done int) {
		c.storeTurn(member, &handedTurn{
			Run: run, Turn: workload.Turn{Turn: api.Turn{Ended: began.Add(time.Second)}}, Conversation: api.Conversation{
				ID: fmt.Sprint(run, "-", number), Lane: "main", Number: number, Status: api.ConversationActive,
				TurnsDone: done, Started: began,
			},
		})
	}
	store := newMemoryStore()
	c := &Coordinator{opts: Options{Store: store}, members: map[string]*member{}}
	r := &remote{
		Coordinator: c, tally: newTally(nil, true), wanted: orderOf("main", "now"),
		holders: map[string]*holding{
			"here": {begun: 7, progress: map[int64]api.Conversation{6: {Number: 6, TurnsDone: 2}}},
			"gone": {expired: true},
		},
	}
	c.runs = map[string]*remote{"main": r}
	held := r.holders["here"].progress
	status := func() api.ConversationStatus { return store.fresh[len(store.fresh)-1].Status }

	bring(c, "here", "now", 8, 1)
	assert.Equal(t, api.ConversationActive, status())
	assert.Equal(t, 1, held[8].TurnsDone, "it ends with its member")
	bring(c, "here", "now", 8, 2)
	bring(c, "here", "now", 6, 1)
	assert.Equal(t, []int{2, 2}, []int{held[8].TurnsDone, held[6].TurnsDone}, "the latest is known")
	bring(c, "here", "now", 5, 4)
	assert.NotContains(t, held, int64(5), "a report contained its end")

	for member, run := range map[string]string{"gone": "now", "here": "before", "unknown": "now"} {
		bring(c, member, run, 9, 1)
		assert.Equal(t, api.ConversationCancelled, status(), "%s, %s", member, run)
		assert.Equal(t, began.Add(time.Second), *store.fresh[len(store.fresh)-1].Ended)
		assert.NotContains(t, held, int64(9))
	}
	assert.Len(t, store.turns, 1) // they have no id
}

// A report that exceeds the server's limit is divided into pieces, which contain everything once.
func TestLongReportIsDivided(t *testing.T) {
	f := newFleet(t, 0)
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	b, err := dial(t.Context(), accessOf(f.nats.Link), "member", log(t))
	require.NoError(t, err)
	t.Cleanup(b.close)
	m := &memberSession{MemberOptions: MemberOptions{Log: log(t)}, bus: b, id: "long", lease: newLease()}
	m.lease.renewed(time.Now().Add(time.Hour))
	p := newPart(new(orderOf("main", "r1")), Share{}, texts, corpus.BuiltinQuestioner{}, nil,
		func(handedTurn, *atomic.Int64) {})
	const turns = 1_500
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range turns {
		turn := drawnTurn(rng, time.Now(), n)
		p.TurnStarted(turn)
		p.TurnEnded(&workload.Conversation{ID: turn.Conversation, Draw: turn.Draw}, turn)
	}
	p.Arrived(7)
	r := p.collect()
	tokens, conversations, seq := r.Tokens, r.Conversations, int64(0)
	m.publishReport(t.Context(), r, &seq)
	require.Greater(t, seq, int64(1))
	receiver := newRunRecorder()
	one := &remote{
		Coordinator: f.coord, receiver: receiver, tally: newTally(receiver.Turn, false),
		holders:  map[string]*holding{"long": {progress: map[int64]api.Conversation{}}},
		unlisted: map[string]api.Conversation{},
	}
	for s := range seq {
		got, err := b.reports.GetMsg(t.Context(), uint64(s+1))
		require.NoError(t, err)
		var piece report
		require.NoError(t, json.Unmarshal(got.Data, &piece))
		assert.Equal(t, s+1, piece.Seq)
		one.takeReport(&piece)
		conversations = conversations[len(piece.Conversations):]
	}
	assert.Empty(t, conversations)
	assert.Equal(t, tokens, receiver.tokens)
	assert.Len(t, one.holders["long"].progress, len(r.Conversations))
}
