package shadow

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/trace"
)

// writeMooncake writes a trace like Mooncake's of conversations: prompts of 12,000 tokens in the
// mean, all of which begin with one block, and most of which go on from an earlier one; 40 requests a
// second.
func writeMooncake(w io.Writer, requests int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	type conversation struct {
		tokens int
		ids    []int
	}
	next := 1
	extend := func(c *conversation, tokens int) {
		c.ids = c.ids[:c.tokens/512] // a block that was not full gets another name
		c.tokens += tokens
		for len(c.ids) < (c.tokens+511)/512 {
			c.ids = append(c.ids, next)
			next++
		}
	}
	var active [1000]conversation
	var line []byte
	for i := range requests {
		c := &active[rng.IntN(len(active))]
		if c.tokens == 0 || c.tokens > 60_000 || rng.IntN(4) == 0 {
			*c = conversation{tokens: 512, ids: append(c.ids[:0], 0)}
			extend(c, 200+int(6000*rng.ExpFloat64()))
		} else {
			extend(c, 100+int(2500*rng.ExpFloat64()))
		}
		line = append(line[:0], `{"timestamp": `...)
		line = strconv.AppendInt(line, int64(i)*25, 10)
		line = append(line, `, "input_length": `...)
		line = strconv.AppendInt(line, int64(c.tokens), 10)
		line = append(line, `, "output_length": `...)
		line = strconv.AppendInt(line, int64(50+rng.IntN(600)), 10)
		line = append(line, `, "hash_ids": [`...)
		for k, id := range c.ids {
			if k > 0 {
				line = append(line, ", "...)
			}
			line = strconv.AppendInt(line, int64(id), 10)
		}
		line = append(line, "]}\n"...)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// replayed is a trace told to one shadow, all in one goroutine's order.
func replayed(t *testing.T, text string, options ...Options) []Figures {
	t.Helper()
	r, err := trace.NewReader(strings.NewReader(text), trace.Options{})
	require.NoError(t, err)
	f, err := Replay(t.Context(), r, DefaultService, options, nil)
	require.NoError(t, err)
	return f
}

// Policies are dealt out to goroutines, which changes no figure.
func TestReplayDealsOut(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, writeMooncake(&text, 5000))
	o := DefaultOptions(512)
	o.Workers, o.Capacity, o.Answers = MadeUp(4), 4000, AnswersFound
	several := replayed(t, text.String(), o)
	require.Len(t, several, 1)
	require.Len(t, several[0].Policies, 1+len(o.Policies))
	rates := map[string]float64{}
	for i, p := range several[0].Policies[1:] {
		assert.Equal(t, o.Policies[i].Name, p.Policy.Name)
		assert.EqualValues(t, 5000, p.Total.Requests)
		rates[p.Policy.Name] = p.Total.HitRatio()
	}
	assert.Greater(t, rates["best"], rates["round_robin"]+.1)
	assert.Greater(t, rates["kv"], rates["round_robin"]+.1)
	assert.Zero(t, several[0].Policies[0].Total.Requests, "nobody knows the real workers")

	for _, p := range o.Policies {
		if p.Kind == Random || p.Costs.Temperature > 0 || p.Kind == KV || p.Kind == LeastLoaded {
			continue // which draw
		}
		alone := o
		alone.Policies = []Policy{p}
		assert.Equal(t, rates[p.Name], replayed(t, text.String(), alone)[0].Policies[1].Total.HitRatio(), p.Name)
	}
}

// The requests of a real Dynamo: what its workers found is what the account of its real choices finds.
func TestReplayOfDynamo(t *testing.T) {
	text, err := os.ReadFile("../../trace/testdata/dynamo.jsonl")
	require.NoError(t, err)
	o := DefaultOptions(32)
	o.Capacity, o.Answers = 11119, AnswersForgotten
	f := replayed(t, string(text), o)[0]
	assert.Equal(t, 3, f.Workers)
	assert.EqualValues(t, 6, f.Account.Requests)
	assert.EqualValues(t, 4224+4256, f.Account.MeasuredTokens)
	assert.EqualValues(t, 4224+4256, f.Account.HitTokens)
	assert.EqualValues(t, 6, f.Policies[0].Total.Requests)
}

// A turn that goes on from an earlier prompt belongs to its conversation.
func TestThreads(t *testing.T) {
	threads := NewThreads()
	a := threads.Of([]uint64{1, 2})
	b := threads.Of([]uint64{1, 3})
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, threads.Of([]uint64{1, 2, 4, 5}))
	assert.Equal(t, a, threads.Of([]uint64{1, 2, 4, 5}), "the same prompt again")
	assert.NotEqual(t, a, threads.Of([]uint64{1, 2, 9}), "another one that goes on from the first turn")
	assert.Equal(t, b, threads.Of([]uint64{1, 3, 6}))
	assert.Zero(t, threads.Of(nil))
}

// An end of the caller's patience ends a replay.
func TestReplayStops(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, writeMooncake(&text, 5000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := trace.NewReader(&text, trace.Options{})
	require.NoError(t, err)
	o := DefaultOptions(512)
	o.Workers = MadeUp(2)
	_, err = Replay(ctx, endless{r}, DefaultService, []Options{o}, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// endless is a source without an end.
type endless struct{ *trace.Reader }

func (e endless) Next() (*trace.Record, error) {
	r, err := e.Reader.Next()
	if errors.Is(err, io.EOF) {
		r, err = &trace.Record{PromptTokens: 1, BlockTokens: 512}, nil
	}
	return r, err
}

// What a replay of a million requests may take, on two cores that nothing else wants.
const (
	mostSeconds = 60
	mostMemory  = 1 << 20 // KiB
)

// BenchmarkMooncake replays a million requests with all policies, on 8 workers of 2 million tokens
// (SHADOW_REQUESTS sets another number, for which nothing is asked).
func BenchmarkMooncake(b *testing.B) {
	requests := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("SHADOW_REQUESTS")); err == nil {
		requests = n
	}
	path := filepath.Join(b.TempDir(), "trace.jsonl")
	f, err := os.Create(path)
	require.NoError(b, err)
	require.NoError(b, writeMooncake(f, requests))
	require.NoError(b, f.Close())
	for b.Loop() {
		f, err := os.Open(path)
		require.NoError(b, err)
		r, err := trace.NewReader(f, trace.Options{})
		require.NoError(b, err)
		o := DefaultOptions(512)
		o.Workers, o.Capacity, o.Answers = MadeUp(8), 4096, AnswersFound
		began := time.Now()
		figures, err := Replay(b.Context(), r, DefaultService, []Options{o}, nil)
		require.NoError(b, err)
		took := time.Since(began).Seconds()
		b.ReportMetric(float64(requests)/took, "requests/s")
		if requests == 1_000_000 && took > mostSeconds {
			b.Errorf("%.0f s, more than %d", took, mostSeconds)
		}
		for _, p := range figures[0].Policies {
			b.Logf("%-20s %.2f %% spread %.1f crowded %d", p.Policy.Name, 100*p.Total.HitRatio(), p.Total.Spread(), p.Total.Crowded)
		}
		f.Close()
	}
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	b.ReportMetric(float64(usage.Maxrss)/1024, "MiB")
	if requests == 1_000_000 && usage.Maxrss > mostMemory {
		b.Errorf("%d KiB, more than %d", usage.Maxrss, mostMemory)
	}
	b.ReportMetric(time.Duration(usage.Utime.Nano()).Seconds(), "cpu-s") // with the trace's making
}
