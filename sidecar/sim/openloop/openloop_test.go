package openloop

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// list returns a source of the given arrivals.
func list(all ...Arrival) Source {
	return func() (Arrival, error) {
		if len(all) == 0 {
			return Arrival{}, io.EOF
		}
		first := all[0]
		all = all[1:]
		return first, nil
	}
}

func blocks(text uint64, n int) (all []uint64) {
	for i := range n {
		all = append(all, text<<32|uint64(i))
	}
	return all
}

// TestRunReusesPromptsAndCountsRefused sends the same prompt twice, an hour apart, and a prompt that no cache can
// hold.
func TestRunReusesPromptsAndCountsRefused(t *testing.T) {
	p, err := sim.OpenProfile("h200-tp1")
	require.NoError(t, err)
	size := p.KV.BlockTokens
	a := Arrival{PromptTokens: 100*size + 1, OutputTokens: 50, Blocks: blocks(1, 100)}
	b := a
	b.At = time.Hour
	large := Arrival{At: time.Hour, PromptTokens: p.KV.Tokens() + 1, OutputTokens: 1, Blocks: blocks(2, p.KV.Blocks+1)}
	f, err := Run(t.Context(), sim.DefaultOptions(p), list(a, b, large))
	require.NoError(t, err)
	assert.Equal(t, 2, f.Requests)
	assert.Equal(t, 1, f.Refused)
	assert.InDelta(t, .5, f.Hit, .001)
	assert.Greater(t, f.Seconds, time.Hour.Seconds())
	assert.Greater(t, f.TTFT95, f.TTFT50*1.3, "of two values")
	assert.InDelta(t, 100/f.Seconds, f.TokensPerSecond, 1e-9)
}

// TestNextIsSentAfterItsDelay checks that a following request is sent its delay after the end of the previous one,
// whatever other requests arrive.
func TestNextIsSentAfterItsDelay(t *testing.T) {
	p, err := sim.OpenProfile("h200-tp1")
	require.NoError(t, err)
	size := p.KV.BlockTokens
	turn := func(n int) Arrival {
		return Arrival{PromptTokens: n*size + 1, OutputTokens: 50, Blocks: blocks(1, n)}
	}
	alone, err := Run(t.Context(), sim.DefaultOptions(p), list(turn(100)))
	require.NoError(t, err)
	first, second, third, other := turn(100), turn(100), turn(100), turn(1)
	first.Next, second.Next, second.Delay, third.Delay = &second, &third, time.Hour, time.Hour
	other.At, other.Blocks = 90*time.Minute, blocks(2, 1)
	f, err := Run(t.Context(), sim.DefaultOptions(p), list(first, other))
	require.NoError(t, err)
	assert.Equal(t, 4, f.Requests)
	assert.InDelta(t, 2*time.Hour.Seconds()+3*alone.Latency50, f.Seconds, alone.Latency50)
	assert.InDelta(t, 200.0/301, f.Hit, .01)

	first.PromptTokens, first.Blocks = p.KV.Tokens()+1, blocks(3, p.KV.Blocks+1)
	f, err = Run(t.Context(), sim.DefaultOptions(p), list(first, other))
	require.NoError(t, err)
	assert.Equal(t, 3, f.Refused, "including the requests that follow")
}

func TestRunReturnsErrors(t *testing.T) {
	p, err := sim.OpenProfile("h200-tp1")
	require.NoError(t, err)
	_, err = Run(t.Context(), sim.DefaultOptions(p), func() (Arrival, error) { return Arrival{}, io.ErrUnexpectedEOF })
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, sim.DefaultOptions(p), func() (Arrival, error) { return Arrival{PromptTokens: 1}, nil })
	assert.ErrorIs(t, err, context.Canceled)
	o := sim.DefaultOptions(p)
	o.Mode = "sideways"
	_, err = Run(t.Context(), o, list())
	assert.ErrorAs(t, err, new(*api.FieldError))
}
