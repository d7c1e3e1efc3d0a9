package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readAll(t *testing.T, text string, o Options) ([]*Record, Summary) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), o)
	require.NoError(t, err)
	var all []*Record
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, r.Summary()
		}
		require.NoError(t, err)
		all = append(all, record)
	}
}

// Six requests of a real Dynamo with mock workers: they come in the order of their ends, and
// are given in that of their beginnings.
func TestDynamo(t *testing.T) {
	text, err := os.ReadFile("testdata/dynamo.jsonl")
	require.NoError(t, err)
	all, s := readAll(t, string(text), Options{})
	assert.Equal(t, Summary{Form: Dynamo, BlockTokens: 32, Lines: 6, Requests: 6}, s)
	require.Len(t, all, 6)
	first := all[0]
	assert.Equal(t, "fa65c591-1912-492f-8320-47db8512109f", first.ID)
	assert.EqualValues(t, 2, first.Line)
	assert.Zero(t, first.At)
	assert.Equal(t, 4273, first.PromptTokens)
	assert.Equal(t, 71, first.OutputTokens)
	assert.Len(t, first.Blocks, 134)
	assert.Equal(t, uint64(7399410525784098815), first.Blocks[0])
	assert.Equal(t, uint64(17227454189940085661), first.Worker)
	assert.InDelta(t, .555757616, first.FirstToken.Seconds(), 1e-9)
	assert.InDelta(t, 1.877360308, first.Ended.Seconds(), .001)
	assert.Equal(t, 100*time.Millisecond, all[1].At)
	assert.Equal(t, 4224, all[4].Cached)
}

const good = `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 40, "input_length": 1024, "output_length": 6, "hash_ids": [0, 1]}
`

func TestMooncake(t *testing.T) {
	all, s := readAll(t, good, Options{})
	assert.Equal(t, Summary{Form: Mooncake, BlockTokens: 512, Lines: 2, Requests: 2}, s)
	assert.Equal(t, []uint64{0, 1, 2}, all[0].Blocks)
	assert.Equal(t, 40*time.Millisecond, all[1].At)
	assert.Equal(t, -1, all[1].Cached)
	assert.False(t, all[1].Timed)

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(good))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	_, zipped := readAll(t, packed.String(), Options{})
	assert.Equal(t, s, zipped)
	half, s := readAll(t, packed.String()[:packed.Len()-12], Options{})
	assert.True(t, s.Cut)
	assert.NotEmpty(t, half)
}

// What is wrong with a line is told with its number, and the other lines are used.
func TestBadLines(t *testing.T) {
	for _, c := range []struct{ line, note string }{
		{`{"timestamp": 1, "input_length": 600, "output_length": 1}`, "line 2: hash_ids: 0 of them is not allowed: 1 or 2, for 600 tokens in blocks of 512"},
		{`{"timestamp": 1, "output_length": 1, "hash_ids": [1]}`, "line 2: input_length is required: a whole number"},
		{`{"input_length": 600, "output_length": 1, "hash_ids": [1]}`, "line 2: timestamp is required: a number of milliseconds"},
		{`{"timestamp": 1, "input_length": 600, "hash_ids": [1]}`, "line 2: output_length is required: a whole number"},
		{`{"timestamp": 1, "input_length": 0, "output_length": 1, "hash_ids": []}`, "line 2: input_length: 0 is not allowed: 1 to 100000000"},
		{`{"timestamp": 1, "input_length": "x", "output_length": 1, "hash_ids": []}`, `line 2: input_length: "x" is not allowed: a whole number`},
		{`{"timestamp": -1, "input_length": 600, "output_length": 1, "hash_ids": [1]}`, "line 2: timestamp: -1 is not allowed: 0 to 1e+15"},
		{`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [-1]}`, "line 2: hash_ids: [-1] is not allowed: a list of whole numbers from 0"},
		{`[1]`, `line 2: line: "[1]" is not allowed: a JSON object`},
		{`{"event": {"event_type": "request_end"}}`, "line 2: event.request is required: an object"},
		{`{"event": {"event_type": "request_end", "request": {"request_received_ms": 1, "input_tokens": 4, "output_tokens": 1, "total_time_ms": 3}}}`, "line 2: event.request.replay is required: an object with the prompt's block hashes"},
	} {
		lines := strings.SplitAfter(good, "\n")
		all, s := readAll(t, lines[0]+c.line+"\n"+lines[1], Options{})
		assert.Len(t, all, 2, c.line)
		assert.EqualValues(t, 1, s.Unused, c.line)
		require.Len(t, s.Notes, 1, c.line)
		assert.Equal(t, c.note, s.Notes[0].Error())
		assert.False(t, s.Cut)
	}
	_, s := readAll(t, `{"event": {"event_type": "request_start"}}`, Options{})
	assert.EqualValues(t, 1, s.Others)
}

// A trace that was cut within its last line says so.
func TestCut(t *testing.T) {
	all, s := readAll(t, good+`{"timestamp": 50, "input_len`, Options{})
	assert.Len(t, all, 2)
	assert.True(t, s.Cut)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, `line 3: line: "{\"timestamp\": 50, \"input_len" is not allowed: a complete line: the trace ends within this one`, s.Notes[0].Error())
}

// Lines that come too late are put back into their places, as far as a bounded memory of them
// goes; beyond it they are told and left out.
func TestDisorder(t *testing.T) {
	line := func(ms int) string {
		return fmt.Sprintf(`{"timestamp": %d, "input_length": 10, "output_length": 5, "hash_ids": [1]}`+"\n", ms)
	}
	all, s := readAll(t, line(1000)+line(3000)+line(2000)+line(60_000)+line(2500)+line(50_000), Options{})
	var at []time.Duration
	for _, r := range all {
		at = append(at, r.At/time.Millisecond)
	}
	assert.Equal(t, []time.Duration{0, 1000, 2000, 49_000, 59_000}, at)
	assert.EqualValues(t, 2, s.Disordered)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "line 5: timestamp: 2500 is not allowed: 3000 or more: 58 s earlier than a previous line is too old", s.Notes[0].Error())
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(good[:100]))
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Add([]byte(`{"event": {"event_type": "request_end", "request": {"request_received_ms": 1e9, "input_tokens": 4, "output_tokens": 1, "ttft_ms": 1, "total_time_ms": 3, "worker": {"prefill_worker_id": 18446744073709551615}, "replay": {"trace_block_size": 2, "input_sequence_hashes": [1, 18446744073709551615]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data), Options{})
		if err != nil {
			return
		}
		last := time.Duration(0)
		for {
			record, err := r.Next()
			if err != nil {
				break
			}
			if record.At < last {
				t.Fatalf("%v after %v", record.At, last)
			}
			last = record.At
			if record.PromptTokens < 1 || record.OutputTokens < 0 || len(record.Blocks) < record.PromptTokens/r.Summary().BlockTokens || record.Ended < record.FirstToken {
				t.Fatalf("%+v", record)
			}
		}
		s := r.Summary()
		if s.Unused+s.Others+s.Requests > s.Lines || len(s.Notes) > keptNotes {
			t.Fatalf("%+v", s)
		}
	})
}
