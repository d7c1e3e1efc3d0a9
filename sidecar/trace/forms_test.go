package trace

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// words is a tokenizer for tests: a token for each word.
func words(text string) (ids []uint32) {
	for _, word := range strings.Fields(text) {
		id := uint32(0)
		for _, c := range word {
			id = 31*id + uint32(c)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestFormIsRecognizedByContent(t *testing.T) {
	for _, c := range []struct {
		text                       string
		form                       Form
		requests, sessions, prompt int
		lacking                    string
	}{
		{"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-02 03:04:05.25,480,10\n", Azure, 1, 0, 480, "block hashes"},
		{
			"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n5,ChatGPT,47,18,65,API log\r\n",
			BurstGPT, 1, 0, 47, "block hashes",
		},
		{
			`[{"id": "a", "conversations": [{"from": "system", "value": "be brief"}, {"from": "human", "value": "one two"},` +
				"\n" + `{"from": "gpt", "value": "three"}, {"from": "human", "value": "four"}]}]`,
			ShareGPT, 2, 1, 4, "times (in 1 of 2 requests), delays between turns (in 1 of 2 requests), output tokens",
		},
		{
			"{\n" + ` "messages": [{"role": "user", "content": [{"type": "text", "text": "a b"}]},` + "\n" +
				`{"role": "assistant", "content": "c d e"}]` + "\n}\n", Messages, 1, 1, 2, "times",
		},
		{`{"prompt": "a b c", "output_tokens": 7}`, Prompts, 1, 1, 3, "times"},
		{`{"turns": ["a", "b c"]}`, Prompts, 2, 1, 1, "times"},
		{`{"text": "a b", "timestamp": 5}`, Prompts, 1, 1, 2, "output tokens"},
		{`{"timestamp": 5, "text_input": "a b", "output_length": 4}`, Mooncake, 1, 0, 2, ""},
		{`{"timestamp": 5, "messages": [{"role": "user", "content": "a b"}], "output_length": 4}`, Mooncake, 1, 0, 2, ""},
		{`{"input_length": 30, "output_length": 4}`, Mooncake, 1, 0, 30, "times, block hashes"},
		{chat("1", "-1", "1.5"), Bailian, 1, 1, 16, ""},
		{`{"requests": [{"t": 1, "in": 64, "out": 1, "hash_ids": [1]}], "block_size": 64, "id": 1}`, Weka, 1, 1, 64, ""},
		{
			`{"schema": "dynamo.request.trace.v1", "event_type": "request_end", "agent_context": {"session_id": "x"}, ` +
				`"request": {"request_received_ms": 1, "output_tokens": 1, "model": "m", ` +
				`"replay": {"trace_block_size": 4, "input_length": 5, "input_sequence_hashes": [1]}}}`,
			Dynamo, 1, 1, 5, "input_tokens",
		},
	} {
		all, s := readAll(t, c.text, Options{Tokenize: words})
		require.NotEmpty(t, all, c.text)
		assert.Empty(t, s.Notes, c.text)
		assert.Equal(t, c.form, s.Form, c.text)
		assert.EqualValues(t, c.requests, s.Requests, c.text)
		assert.EqualValues(t, c.sessions, s.Sessions, c.text)
		assert.Equal(t, c.prompt, all[0].PromptTokens, c.text)
		if assert.Contains(t, s.Lacking(), c.lacking); c.lacking == "" {
			assert.Empty(t, s.Lacking(), c.text)
		}
	}
}

// TestRowsOfCSV checks sessions, models and times of both CSV forms.
func TestRowsOfCSV(t *testing.T) {
	all, s := readFiles(t, "testdata/burstgpt.csv")
	require.Len(t, all, 5)
	assert.EqualValues(t, 3, s.Sessions)
	third := all[2]
	assert.Equal(t, all[0].Session, third.Session)
	assert.Equal(t, []any{2, "GPT-4", 7500 * time.Millisecond, 3 * time.Second},
		[]any{third.Turn, third.Model, third.At, third.Ended})
	assert.Equal(t, 0, third.OutputTokens, "a failed request has no answer")
	assert.Negative(t, third.FirstToken)
	all, _ = readFiles(t, "testdata/azure.csv")
	require.Len(t, all, 4)
	assert.InDelta(t, .4, all[1].At.Seconds(), 1e-6)
	assert.InDelta(t, 60.5, all[3].At.Seconds(), 1e-6, "with a zone")
	assert.Zero(t, all[0].Session)
	assert.Zero(t, all[0].BlockTokens)
}

// TestTurnsOfDialogs checks which messages belong to a turn, and that the prompts of its turns share blocks.
func TestTurnsOfDialogs(t *testing.T) {
	text := `{"id": "d", "messages": [{"role": "assistant", "content": "greeting"}, {"role": "system", "content": "` +
		strings.Repeat("rule ", 16) + `"}, {"role": "user", "content": "what"}, {"role": "assistant", "content": null}, ` +
		`{"role": "tool", "content": "data"}, {"role": "assistant", "content": "it is so"}, ` +
		`{"role": "user", "content": "and"}]}` + "\n" + `{"turns": [{"text": "a"}, {"text": "b", "delay": 1500}]}`
	all, s := readAll(t, text, Options{Tokenize: words})
	require.Len(t, all, 1, "lines are of another form than the first one")
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "line 2: form: prompts is not allowed: messages, as in the lines before it", s.Notes[0].Error())
	first, second, third := all[0], all[0].Next, all[0].Next.Next
	assert.Equal(t, "what", first.Messages[1].Text)
	assert.Equal(t, []Message{{"tool", "data"}}, second.Messages)
	assert.Equal(t, "it is so", second.Answer)
	assert.Equal(t, []Message{{RoleUser, "and"}}, third.Messages)
	assert.Nil(t, third.Next)
	assert.Equal(t, []int{17, 18, 22}, []int{first.PromptTokens, second.PromptTokens, third.PromptTokens})
	assert.Equal(t, []int{-1, 3, -1}, []int{first.OutputTokens, second.OutputTokens, third.OutputTokens})
	assert.Equal(t, []int{1, 2, 3}, []int{first.Turn, second.Turn, third.Turn})
	assert.Equal(t, first.Blocks, third.Blocks[:1])
	assert.EqualValues(t, -1, first.At)

	all, _ = readAll(t, strings.SplitAfter(text, "\n")[1], Options{})
	assert.Equal(t, 1500*time.Millisecond, all[0].Next.Delay)
	assert.Equal(t, -1, all[0].PromptTokens, "without a tokenizer")
}

// TestStrictReadingStopsAtFirstBadLine checks the number of the line and what was expected there.
func TestStrictReadingStopsAtFirstBadLine(t *testing.T) {
	const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	const session = `{"session_id": 1, "timestamp": %d, "input_length": 600, "output_length": 1, "hash_ids": [%d], "turn": %d}` + "\n"
	for _, c := range []struct{ text, message string }{
		{`{"a": 1, "b": 2}`, "line 1: form: an object with a, b is not allowed: lines of Dynamo's request trace or"},
		{"hello\n", `line 1: form: "hello" is not allowed: lines of Dynamo's`},
		{entry(1) + "nonsense\n" + entry(2), `line 2: line: "nonsense" is not allowed: a JSON object`},
		{entry(10) + entry(5), "line 2: timestamp: 5.000 ms is not allowed: 10.000 ms or more: times go back"},
		{
			fmt.Sprintf(session, 10, 1, 2) + fmt.Sprintf(session, 20, 2, 1),
			"line 2: turn: 1 is not allowed: 3 or more, after that of the session's turn in line 1",
		},
		{
			fmt.Sprintf(session, 10, 1, 1) + fmt.Sprintf(session, 5, 2, 2),
			"line 2: timestamp: 5 ms is not allowed: 10 ms or more, the time of the session's turn in line 1",
		},
		{
			strings.Replace(chat("1", "-1", "1.5"), "{", `{"turn": 2, `, 1) + strings.Replace(chat("2", "1", "2.5"), "{", `{"turn": 1, `, 1),
			"line 2: turn: 1 is not allowed: 3 or more, after that of its parent, chat 1",
		},
		{`{"messages": [{"role": "system", "content": "x"}]}`, "line 1: messages: an object with messages is not allowed: a conversation with a text of the user"},
		{`{"prompt": " "}`, "line 1: prompts: turn 1 without a text is not allowed: a text in each turn of the user"},
		{"[{\"prompt\": \"a\"},\n {\"prompt\": \"b\", ", "a complete line: the trace ends within this one"},
		{azureHeader + "12,1,1\n", "line 2: TIMESTAMP: 12 is not allowed: a date and a time"},
		{azureHeader + "2024-01-01 00:00:00,1\n", "line 2: line: 2 columns is not allowed: 3, as in the header"},
		{azureHeader + "2024-01-01 00:00:00,x,1\n", "line 2: ContextTokens: x is not allowed: a whole number"},
		{entry(1) + `{"prompt": "a"}`, "line 2: form: prompts is not allowed: mooncake, as in the lines before it"},
	} {
		r, err := NewReader(strings.NewReader(c.text), Options{Strict: true})
		require.NoError(t, err)
		_, err = collect(r.Next)
		note := new(Note)
		require.ErrorAs(t, err, &note, c.text)
		assert.Contains(t, note.Error(), c.message)
		if strings.Contains(c.message, "the trace ends") {
			assert.EqualValues(t, 2, note.Line)
		}
		_, s := readAll(t, c.text, Options{})
		if !strings.Contains(c.message, "times go back") { // they are sorted
			assert.EqualValues(t, 1, s.Unused, c.text)
		}
	}
}

// TestUnknownFormEndsTheReading checks that a large file in no known form is not read to its end.
func TestUnknownFormEndsTheReading(t *testing.T) {
	r, err := NewReader(strings.NewReader(strings.Repeat("{}\n", 2*firstLines)), Options{})
	require.NoError(t, err)
	_, err = collect(r.Next)
	require.NotErrorIs(t, err, io.EOF)
	assert.EqualValues(t, firstLines, r.Summary().Lines)
	assert.ErrorContains(t, err, "line 1: form: an object without fields")
}

// TestLaggingTurnOfForgottenSession checks that a turn whose session was dropped is not taken for a whole prompt.
func TestLaggingTurnOfForgottenSession(t *testing.T) {
	var b strings.Builder
	line := `{"session_id": %d, "timestamp": %d, "input_length": 512, "output_length": 0, "hash_ids": [%d]}` + "\n"
	fmt.Fprintf(&b, line, 0, 0, 1)
	fmt.Fprintf(&b, line, 0, 1, 2)
	n := 3 * mostKept / 41
	for i := range n {
		fmt.Fprintf(&b, line, i+1, 20_000+100*i, i+3)
	}
	fmt.Fprintf(&b, line, 0, 20_000+100*n, 5)
	r, err := NewReader(strings.NewReader(b.String()), Options{Unit: Milliseconds})
	require.NoError(t, err)
	for err == nil {
		_, err = r.Next()
	}
	s := r.Summary()
	require.ErrorIs(t, err, io.EOF)
	assert.EqualValues(t, n+1, s.Sessions)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "session_id", s.Notes[0].Field)
	assert.LessOrEqual(t, len(r.sessions.turns)+len(r.sessions.oldTurns), 2*mostKept/41+2)
}

// TestFilledBlocksAreDistinct checks requests without hashes for a simulation.
func TestFilledBlocksAreDistinct(t *testing.T) {
	files, err := Find("testdata/azure.csv")
	require.NoError(t, err)
	r, err := files.Open(Options{FillTokens: 16})
	require.NoError(t, err)
	defer r.Close()
	all, err := collect(r.Next)
	require.ErrorIs(t, err, io.EOF)
	seen := map[uint64]bool{}
	for _, record := range all {
		assert.Len(t, record.Blocks, record.PromptTokens/16)
		for _, block := range record.Blocks {
			assert.False(t, seen[block])
			seen[block] = true
		}
		require.NoError(t, record.Require("trace", LacksTime, LacksBlocks))
	}
	lines, err := os.ReadFile("testdata/azure.csv")
	require.NoError(t, err)
	all, _ = readAll(t, string(lines), Options{})
	require.ErrorContains(t, all[0].Require("file", LacksTime, LacksBlocks),
		"file: one without block hashes (line 2) is not allowed: a trace with times, block hashes")
}
