//go:build !race

package openings

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim"
)

// cluster is a target in memory: a simulated cluster by the clock of a bubble of synctest.
type cluster struct {
	t     testing.TB
	began time.Time
	poke  chan struct{} // holds one word: there may be an earlier event

	mu    sync.Mutex
	model *sim.Cluster
	block int // tokens
	words *rand.Rand
	ids   map[string][]uint32 // of messages
	turns []turn
}

// turn is one that ended.
type turn struct {
	number int
	at     time.Duration // it was sent
	sim.Report
}

func newCluster(t testing.TB, mode api.Mode) *cluster {
	t.Helper()
	o := sim.DefaultOptions(sim.H200())
	o.Mode, o.Seed = mode, 1
	model, err := sim.New(o)
	require.NoError(t, err)
	return &cluster{
		t: t, began: time.Now(), poke: make(chan struct{}, 1), model: model, block: o.Profile.KV.BlockTokens,
		words: rand.New(rand.NewPCG(1, 2)), ids: map[string][]uint32{},
	}
}

// run lets the model live until ctx ends.
func (c *cluster) run(ctx context.Context) {
	for {
		c.mu.Lock()
		c.model.Advance(time.Since(c.began))
		next, ok := c.model.Next()
		c.mu.Unlock()
		var due <-chan time.Time
		if ok {
			due = time.After(next - time.Since(c.began))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.poke:
		case <-due:
		}
	}
}

// Do is one turn; its answer has as many words as it may have tokens.
func (c *cluster) Do(ctx context.Context, req chat.Request) chat.Result {
	w := &watch{first: make(chan struct{}), done: make(chan struct{})}
	r := chat.Result{Sent: time.Now()}
	job := c.submit(req, w, &r)
	for waits := w.first; waits != nil; {
		select {
		case <-waits:
			if waits == w.done {
				waits = nil
				continue
			}
			req.OnChunk(1)
			waits = w.done
		case <-ctx.Done():
			c.mu.Lock()
			c.model.Cancel(job)
			c.mu.Unlock()
			r.Cancelled, waits = true, nil
		}
	}
	r.Ended = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.Cancelled {
		number := (len(req.Messages) + 1) / 2
		c.turns = append(c.turns, turn{number, r.Sent.Sub(c.began), w.report})
	}
	return r
}

func (c *cluster) submit(req chat.Request, w *watch, r *chat.Result) *sim.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	var prompt []uint32
	for _, m := range req.Messages {
		prompt = append(prompt, c.message(sim.Message{Role: m.Role, Content: m.Content})...)
	}
	prompt = append(prompt, sim.Encode(sim.RenderChat(nil))...)
	r.Content = c.answer(req.MaxTokens)
	answer := sim.Encode(r.Content)
	c.model.Advance(time.Since(c.began))
	job, err := c.model.Submit(sim.NewRequest(req.ID, prompt, answer, len(answer), c.block), w)
	require.NoError(c.t, err)
	select {
	case c.poke <- struct{}{}:
	default:
	}
	return job
}

func (c *cluster) message(m sim.Message) []uint32 {
	ids, ok := c.ids[m.Content]
	if !ok {
		ids = sim.Encode(strings.TrimSuffix(sim.RenderChat([]sim.Message{m}), sim.RenderChat(nil)))
		c.ids[m.Content] = ids
	}
	return ids
}

var vocabulary = strings.Fields("river bridge water stone road town north south night day light sound work time house ship train field hill wall")

func (c *cluster) answer(words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = vocabulary[c.words.IntN(len(vocabulary))]
	}
	return strings.Join(all, " ")
}

// watch waits for a job.
type watch struct {
	first, done chan struct{}
	report      sim.Report
}

func (*watch) Routed(*sim.Decision)      {}
func (w *watch) FirstToken(sim.Report)   { close(w.first) }
func (*watch) Tokens(time.Duration, int) {}
func (w *watch) Finished(r sim.Report) {
	w.report = r
	close(w.done)
}

// nobody observes a workload.
type nobody struct{}

func (nobody) ConversationStarted(*workload.Conversation)                            {}
func (nobody) TurnStarted(*workload.Turn)                                            {}
func (nobody) Chunk(int)                                                             {}
func (nobody) TurnEnded(*workload.Turn, *chat.Result)                                {}
func (nobody) ConversationEnded(*workload.Conversation, api.ConversationStatus, int) {}
func (nobody) Active(int, int)                                                       {}

// run holds 60 conversations for so long, and a minute before it, against a cluster with
// cold caches, and gives the turns that were sent after that minute.
func run(t *testing.T, mode api.Mode, openings workload.Openings, long time.Duration) (turns []turn) {
	synctest.Test(t, func(t *testing.T) {
		texts, err := corpus.Builtin()
		require.NoError(t, err)
		target := newCluster(t, mode)
		w := workload.New(workload.Options{
			Lane: "main", Run: "r1", Seed: 1, Sender: target, Corpus: texts, Questioner: corpus.BuiltinQuestioner{}, Observer: nobody{},
		}, workload.Settings{
			Concurrency: 60, Turns: api.Range{Min: 3, Max: 5}, Openings: openings, MaxTokens: 1024,
			Output: &api.Distribution{Mean: 830, CV: .15}, StartRate: 10, TargetRPS: 25,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { target.run(ctx) })
		wg.Go(func() { w.Run(ctx) })
		time.Sleep(time.Minute + long)
		cancel()
		wg.Wait()
		for _, u := range target.turns {
			if u.at >= time.Minute {
				turns = append(turns, u)
			}
		}
	})
	return turns
}
