package shadow

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/trace"
)

// writeMooncake writes a trace of conversations in Mooncake's form. Prompts have 12,000 tokens on average. All of
// them begin with one block, and most go on from an earlier one. There are 40 requests a second.
func writeMooncake(t testing.TB, w io.Writer, requests int) {
	t.Helper()
	type line struct {
		Timestamp int   `json:"timestamp"`
		Input     int   `json:"input_length"`
		Output    int   `json:"output_length"`
		IDs       []int `json:"hash_ids"`
	}
	rng, out, next := rand.New(rand.NewPCG(1, 2)), json.NewEncoder(w), 1
	var active [1000]line
	for i := range requests {
		c := &active[rng.IntN(len(active))]
		more := 100 + int(2500*rng.ExpFloat64())
		if c.Input == 0 || c.Input > 60_000 || rng.IntN(4) == 0 {
			*c, more = line{Input: 512, IDs: []int{0}}, 200+int(6000*rng.ExpFloat64())
		}
		c.IDs = c.IDs[:c.Input/512] // a block that was not full gets another name
		c.Input += more
		for len(c.IDs) < (c.Input+511)/512 {
			c.IDs = append(c.IDs, next)
			next++
		}
		c.Timestamp, c.Output = 25*i, 50+rng.IntN(600)
		require.NoError(t, out.Encode(c))
	}
}

var service = Service{FirstToken: 500 * time.Millisecond, PerToken: 25 * time.Millisecond}

// replayed returns the figures of one shadow of a trace.
func replayed(t *testing.T, text string, o Options) Figures {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), trace.Options{})
	require.NoError(t, err)
	f, err := Replay(t.Context(), r, service, []Options{o}, nil)
	require.NoError(t, err)
	require.Len(t, f, 1)
	return f[0]
}

// Policies are divided among goroutines. That changes no figure.
func TestReplayInParallel(t *testing.T) {
	const requests = 2000
	var text bytes.Buffer
	writeMooncake(t, &text, requests)
	o := DefaultOptions(512)
	o.Workers, o.Capacity, o.Answers = SyntheticWorkers(4), 4000, AnswersFound
	several := replayed(t, text.String(), o)
	require.Len(t, several.Policies, 1+len(o.Policies))
	rates := map[string]float64{}
	for i, p := range several.Policies[1:] {
		assert.Equal(t, o.Policies[i].Name, p.Policy.Name)
		assert.EqualValues(t, requests, p.Total.Requests)
		rates[p.Policy.Name] = p.Total.HitRatio()
	}
	assert.Greater(t, rates["best"], rates["round_robin"]+.1)
	assert.Greater(t, rates["kv"], rates["round_robin"]+.1)
	assert.Zero(t, several.Policies[0].Total.Requests, "the real workers are unknown")

	for _, p := range o.Policies {
		alone := o
		alone.Policies = []Policy{p}
		assert.Equal(t, rates[p.Name], replayed(t, text.String(), alone).Policies[1].Total.HitRatio(), p.Name)
	}
}

// A turn that continues an earlier prompt belongs to its conversation.
func TestThreads(t *testing.T) {
	threads := NewThreads()
	a := threads.Conversation([]uint64{1, 2})
	b := threads.Conversation([]uint64{1, 3})
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, threads.Conversation([]uint64{1, 2, 4, 5}))
	assert.Equal(t, a, threads.Conversation([]uint64{1, 2, 4, 5}), "the same prompt again")
	assert.NotEqual(t, a, threads.Conversation([]uint64{1, 2, 9}), "another request that continues the first turn")
	assert.Equal(t, b, threads.Conversation([]uint64{1, 3, 6}))
	assert.Zero(t, threads.Conversation(nil))
}

// A canceled context ends a replay.
func TestReplayIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := DefaultOptions(512)
	o.Workers = SyntheticWorkers(2)
	r, err := trace.NewReader(strings.NewReader(""), trace.Options{})
	require.NoError(t, err)
	_, err = Replay(ctx, endless{r}, service, []Options{o}, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// endless is a source without an end.
type endless struct{ *trace.Reader }

func (endless) Next() (*trace.Record, error) {
	return &trace.Record{PromptTokens: 1, BlockTokens: 512}, nil
}

// BenchmarkMooncake replays requests with all policies, on 8 workers of 2 million tokens.
func BenchmarkMooncake(b *testing.B) {
	const requests = 100_000
	var text bytes.Buffer
	writeMooncake(b, &text, requests)
	for b.Loop() {
		r, err := trace.NewReader(bytes.NewReader(text.Bytes()), trace.Options{})
		require.NoError(b, err)
		o := DefaultOptions(512)
		o.Workers, o.Capacity, o.Answers = SyntheticWorkers(8), 4096, AnswersFound
		_, err = Replay(b.Context(), r, service, []Options{o}, nil)
		require.NoError(b, err)
	}
	b.ReportMetric(requests*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
