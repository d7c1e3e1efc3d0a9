//go:build peers

package peers

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
)

//go:embed openai.py
var openaiScript string

// printed is the output of the script.
type printed struct {
	Models                []string
	Model                 string
	Whole, Stopped, Least reply
	Streams               []streamed
	Refused               map[string]refused
}

type reply struct {
	Text, Reason   string
	Tokens, Prompt int
}

type streamed struct {
	Text           string
	Tokens, Prompt int
	TTFT, Latency  float64 // seconds
	Timing         struct {
		TTFT  float64 `json:"ttft_ms"`
		Total float64 `json:"total_time_ms"`
	}
}

type refused struct {
	Error, Message string
	Status         int
}

// OpenAI's own library for Python lists models, sends requests, streams, stops and is refused.
func TestOpenAIClientWorks(t *testing.T) {
	python := boothtest.Interpreter(t, local.PythonPackage{Name: "openai", Version: "3.54.0", MB: 71})
	c := start(t)
	var s printed
	require.NoError(t, json.Unmarshal([]byte(run(t, python, "-c", openaiScript, c.url)), &s))
	assert.Equal(t, []string{sim.H200().Model}, s.Models)
	assert.Equal(t, sim.H200().Model, s.Model)

	assert.Equal(t, sim.Count(s.Whole.Text), s.Whole.Tokens)
	before, _, stops := strings.Cut(s.Whole.Text, " the")
	require.True(t, stops, s.Whole.Text)
	assert.Equal(t, before, s.Stopped.Text)
	assert.Equal(t, "stop", s.Stopped.Reason)
	assert.GreaterOrEqual(t, s.Least.Tokens, 79)

	output := s.Whole.Tokens + s.Stopped.Tokens + s.Least.Tokens
	var mean, theirs time.Duration
	for _, a := range s.Streams {
		assert.Equal(t, 150, a.Tokens)
		output += a.Tokens
		// The first token arrives after the cluster has generated it, but before half of the rest is generated,
		// however slow the client is.
		assert.GreaterOrEqual(t, 1000*a.TTFT, a.Timing.TTFT-1, "up to the clock's millisecond")
		assert.Less(t, 1000*a.TTFT, (a.Timing.TTFT+a.Timing.Total)/2)
		assert.GreaterOrEqual(t, 1000*a.Latency, a.Timing.Total-1)
		theirs += time.Duration(a.TTFT*float64(time.Second)) / time.Duration(len(s.Streams))
		mean += time.Duration(a.Timing.TTFT*float64(time.Millisecond)) / time.Duration(len(s.Streams))
	}
	figure.Report(t, "TTFT mean of %d streams: %v by the library, %v by the cluster", len(s.Streams), theirs, mean)
	f := c.figures()
	assert.InDelta(t, output, f.outputTokens, 0)
	assert.InDelta(t, 3+len(s.Streams), f.requests, 0)

	for what, want := range map[string]refused{
		"temperature": {"BadRequestError", "Temperature must be between 0 and 2, got 2.5", 400},
		"n":           {"BadRequestError", "n: 2 is not allowed: 1", 400},
		"unknown":     {"BadRequestError", "Unsupported parameter(s): `nonsense`", 400},
		"messages":    {"BadRequestError", "The 'messages' field cannot be empty", 400},
		"model":       {"NotFoundError", "Model not found", 404},
	} {
		got := s.Refused[what]
		assert.Equal(t, want.Error, got.Error, what)
		assert.Equal(t, want.Status, got.Status, what)
		assert.Contains(t, got.Message, want.Message, what)
	}
}
