package members

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// book notes conversations with what was asked in them, however they are held.
type book struct {
	mu    sync.Mutex
	held  map[int64]api.Conversation
	asked map[string]map[int]string // conversation → turn → the user's message
}

func newBook() *book {
	return &book{held: map[int64]api.Conversation{}, asked: map[string]map[int]string{}}
}

func (b *book) SaveEvent(_ context.Context, e api.Event) (api.Event, error) { return e, nil }

func (b *book) SaveTurn(t api.Turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked[t.Conversation] == nil {
		b.asked[t.Conversation] = map[int]string{}
	}
	b.asked[t.Conversation][t.Number] = t.UserMessage
}

func (b *book) Conversation(c api.Conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Ended != nil {
		b.held[c.Number] = c
	}
}

// A book is a Store, and hears of a run.
func (b *book) SaveConversation(api.Conversation)    {}
func (b *book) SaveNewConversation(api.Conversation) {}
func (b *book) LostTurns() int64                     { return 0 }
func (b *book) Flush(context.Context) error          { return nil }
func (b *book) Active(int, int)                      {}
func (b *book) Tokens(time.Time, int)                {}
func (b *book) Turn(lane.TurnElsewhere)              {}
func (b *book) Shadow() *live.Live                   { return nil }

// A book observes a workload of this process.
func (b *book) ConversationStarted(*workload.Conversation) {}
func (b *book) TurnStarted(*workload.Turn)                 {}
func (b *book) Chunk(int)                                  {}
func (b *book) ConversationEnded(c *workload.Conversation, status api.ConversationStatus, done int) {
	b.Conversation(lane.ConversationOf("main", c, status, done, new(time.Now())))
}

func (b *book) TurnEnded(t *workload.Turn, r *chat.Result) {
	_, row := lane.Measure("main", t, r, api.StepRecord{}, false)
	b.SaveTurn(row)
}

// conversation is what the seed decides of one, and the answers.
type conversation struct {
	Topic, Starter string
	Planned, Done  int
	Asked          map[int]string
}

// first gives the first n conversations once they have ended and are stored.
func (b *book) first(t *testing.T, n int) []conversation {
	t.Helper()
	var all []conversation
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		all = nil
		for k := range int64(n) {
			c, ok := b.held[k]
			if !ok || len(b.asked[c.ID]) < c.TurnsDone {
				return false
			}
			all = append(all, conversation{c.Topic, c.Starter, c.TurnsPlanned, c.TurnsDone, b.asked[c.ID]})
		}
		return true
	}, time.Minute, 10*time.Millisecond, "the first conversations end")
	return all
}

// The same seed gives the same conversations, whether this process holds them, one member does,
// or eight do.
func TestSameConversations(t *testing.T) {
	const n, together = 120, 40
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	task := lane.Task{
		Lane: "main", Run: "r1", Seed: 11, Opened: 5, Midway: together, Nonce: "again", Corpus: texts,
		Step:     api.StepRecord{Lane: "main", ID: 1, Concurrency: together},
		Settings: workload.Settings{Concurrency: together, Turns: api.Range{Min: 2, Max: 5}, MaxTokens: 64, StartRate: 1000},
	}
	out := &answers{takes: 20 * time.Millisecond, sent: map[string]int{}}
	alone := newBook()
	w := workload.New(workload.Options{
		Lane: task.Lane, Run: task.Run, Seed: task.Seed, Opened: task.Opened, Midway: task.Midway, Nonce: task.Nonce,
		Sender: out, Corpus: texts, Questioner: corpus.BuiltinQuestioner{}, Observer: alone,
	}, task.Settings)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	want := alone.first(t, n)
	cancel()
	<-done
	topics := map[string]bool{}
	for _, c := range want {
		topics[c.Topic] = true
		assert.Equal(t, c.Planned, c.Done)
		assert.Len(t, c.Asked, c.Planned)
	}
	require.Greater(t, len(topics), 3, "conversations differ")
	for _, members := range []int{1, 8} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			f := &fleet{t: t, nats: startServer(t), out: &answers{takes: 20 * time.Millisecond, sent: map[string]int{}}}
			b := newBook()
			c, err := Open(t.Context(), Options{Access: f.nats.access(), Name: "test", Version: "1", FilesEach: 1, Store: b, Log: log(t)})
			require.NoError(t, err)
			f.coord = c
			f.goes(func(ctx context.Context) { assert.NoError(t, c.Run(ctx)) })
			for i := range members {
				f.member(fmt.Sprint("m", i), "1")
			}
			require.Eventually(t, func() bool { all, _ := c.alive(time.Now()); return len(all) == members }, soon, 10*time.Millisecond)
			task := task
			task.Heard = b
			stop := f.goes(c.Engine(TargetOptions{}, FollowupOptions{}, nil).Begin(task).Run)
			assert.Equal(t, want, b.first(t, n))
			stop()
		})
	}
}
