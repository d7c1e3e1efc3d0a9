package trace

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// collect reads records until an error.
func collect(next func() (*Record, error)) (all []*Record, err error) {
	for {
		record, err := next()
		if err != nil {
			return all, err
		}
		all = append(all, record)
	}
}

func readAll(t *testing.T, text string, o Options) ([]*Record, Summary) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), o)
	require.NoError(t, err)
	all, err := collect(r.Next)
	require.ErrorIs(t, err, io.EOF)
	return all, r.Summary()
}

// readFiles reads the trace in files.
func readFiles(t *testing.T, names ...string) ([]*Record, Summary) {
	t.Helper()
	files, err := Find(names...)
	require.NoError(t, err)
	r, err := files.Open(Options{})
	require.NoError(t, err)
	defer r.Close()
	all, err := collect(r.Next)
	require.ErrorIs(t, err, io.EOF)
	return all, r.Summary()
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return packed.String()
}

// entry returns the line of a request at some milliseconds.
func entry(ms int) string {
	return fmt.Sprintf(`{"timestamp": %d, "input_length": 10, "output_length": 5, "hash_ids": [1]}`+"\n", ms)
}

// TestDynamoTrace reads six requests of a real Dynamo with mock workers. The lines are in the order of the requests'
// ends; the records must be in the order of their beginnings.
func TestDynamoTrace(t *testing.T) {
	all, s := readFiles(t, "testdata/dynamo.jsonl")
	assert.Equal(t, Summary{Form: Dynamo, BlockTokens: 32, Lines: 6, Requests: 6, Arrivals: all[5].At}, s)
	require.Len(t, all, 6)
	first := all[0]
	numbers := []int{int(first.Line), int(first.At), first.PromptTokens, first.OutputTokens, len(first.Blocks)}
	assert.Equal(t, []int{2, 0, 4273, 71, 134}, numbers)
	assert.Equal(t, "fa65c591-1912-492f-8320-47db8512109f", first.ID)
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

func TestMooncakeTracePlainAndCompressed(t *testing.T) {
	all, s := readAll(t, good, Options{})
	assert.Equal(t, Summary{Form: Mooncake, BlockTokens: 512, Lines: 2, Requests: 2, Arrivals: 40 * time.Millisecond}, s)
	assert.EqualValues(t, 2, s.Untimed())
	assert.Equal(t, []uint64{0, 1, 2}, all[0].Blocks)
	assert.Equal(t, 40*time.Millisecond, all[1].At)
	assert.Equal(t, -1, all[1].Cached)
	assert.Negative(t, all[1].Ended)

	packed := compressed(t, good)
	_, zipped := readAll(t, packed, Options{})
	assert.Equal(t, s, zipped)
	half, s := readAll(t, packed[:len(packed)-12], Options{})
	assert.True(t, s.Cut)
	assert.NotEmpty(t, half)
}

func TestBadLinesAreReportedAndSkipped(t *testing.T) {
	const whole = `{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [1]}`
	const bare = `{"event": {"event_type": "request_end", "request": {"request_received_ms": 1, "input_tokens": 4, ` +
		`"output_tokens": 1, "total_time_ms": 3}}}`
	for _, c := range []struct{ old, changed, note string }{
		{`, "hash_ids": [1]`, "", "hash_ids: 0 of them is not allowed: 1 or 2, for 600 tokens in blocks of 512"},
		{`"input_length": 600, `, "", "input_length is required: a whole number"},
		{`"timestamp": 1, `, "", "timestamp is required: a number, the time of the request"},
		{`"output_length": 1, `, "", "output_length is required: a whole number"},
		{"600", "0", "input_length: 0 is not allowed: 1 to 100000000"},
		{"600", `"x"`, `input_length: "x" is not allowed: a whole number`},
		{`"timestamp": 1`, `"timestamp": -1`, "timestamp: -1 is not allowed: 0 to 9e+12"},
		{"[1]", "[-1]", "hash_ids: [-1] is not allowed: a list of whole numbers from 0"},
		{whole, "[1]", `line: "[1]" is not allowed: a JSON object`},
	} {
		lines := strings.SplitAfter(good, "\n")
		all, s := readAll(t, lines[0]+strings.Replace(whole, c.old, c.changed, 1)+"\n"+lines[1], Options{})
		assert.Len(t, all, 2, c.note)
		assert.EqualValues(t, 1, s.Unused, c.note)
		require.Len(t, s.Notes, 1, c.note)
		assert.Equal(t, "line 2: "+c.note, s.Notes[0].Error())
		assert.False(t, s.Cut)
	}
	_, s := readAll(t, `{"event": {"event_type": "request_start"}}`+"\n"+
		`{"event": {"event_type": "request_end"}}`+"\n"+bare, Options{})
	assert.EqualValues(t, 1, s.Others)
	require.Len(t, s.Notes, 2)
	assert.Equal(t, "line 2: event.request is required: an object", s.Notes[0].Error())
	missing := "line 3: event.request.replay is required: an object with the prompt's block hashes"
	assert.Equal(t, missing, s.Notes[1].Error())
}

func TestTruncatedTraceIsReported(t *testing.T) {
	all, s := readAll(t, good+`{"timestamp": 50, "input_len`, Options{})
	assert.Len(t, all, 2)
	assert.True(t, s.Cut)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, `line 3: line: "{\"timestamp\": 50, \"input_len" is not allowed: `+
		`a complete line: the trace ends within this one`, s.Notes[0].Error())
}

// TestDisorderedLinesAreSorted checks that late lines are sorted within the allowed disorder, and reported beyond it.
func TestDisorderedLinesAreSorted(t *testing.T) {
	text := entry(1000) + entry(3000) + entry(2000) + entry(60_000) + entry(2500) + entry(50_000)
	all, s := readAll(t, text, Options{BlockTokens: 512, Unit: Milliseconds})
	var at []time.Duration
	for _, r := range all {
		at = append(at, r.At/time.Millisecond)
	}
	assert.Equal(t, []time.Duration{0, 1000, 2000, 49_000, 59_000}, at)
	assert.EqualValues(t, 2, s.Disordered)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "line 5: timestamp: 2500 is not allowed: 3000 or more: "+
		"58 s earlier than a previous line is too old", s.Notes[0].Error())
}

// TestScaleIsInferredOrRequired checks that units and block sizes come from a trace's lines, or from the options that
// an error names.
func TestScaleIsInferredOrRequired(t *testing.T) {
	line := func(format string, length, hashes, n int) (lines string) {
		for i := range n {
			ids := strings.TrimSuffix(strings.Repeat("1,", hashes), ",")
			entry := `{"timestamp": ` + format + `, "input_length": %d, "output_length": 1, "hash_ids": [%s]}` + "\n"
			lines += fmt.Sprintf(entry, i, length, ids)
		}
		return lines
	}
	bailian, err := os.ReadFile("testdata/bailian_seconds.jsonl")
	require.NoError(t, err)
	wholeSeconds := chat("0", "-1", "1") + chat("1", "0", "3")
	for _, c := range []struct {
		name, text string
		options    Options
		blocks     int
		last       time.Duration // time of the last request
		bad        string        // missing option
	}{
		{"Bailian", string(bailian), Options{}, 16, 18281 * time.Millisecond, ""},
		{"Bailian in milliseconds", string(bailian), Options{Unit: Milliseconds}, 16, 18281 * time.Microsecond, ""},
		{"Bailian, whole numbers", wholeSeconds, Options{}, 0, 0, "time_unit"},
		{"Bailian, whole seconds", wholeSeconds, Options{Unit: Seconds}, 16, 2 * time.Second, ""},
		{"decimals", line("%d.25", 600, 2, 3), Options{}, 0, 0, "time_unit"},
		{"decimals of milliseconds", line("%d.25", 600, 2, 3), Options{Unit: Milliseconds}, 512, 2 * time.Millisecond, ""},
		{"time of day in seconds", line("177731280%d", 600, 2, 3), Options{}, 0, 0, "time_unit"},
		{"time of day in milliseconds", line("177731280000%d", 600, 2, 3), Options{}, 512, 2 * time.Millisecond, ""},
		{"time of day in nanoseconds", line("177731280000000000%d", 600, 2, 3), Options{}, 0, 0, "time_unit"},
		{"one request a millisecond", line("%d", 600, 2, 20), Options{}, 0, 0, "time_unit"},
		{"one request a second", line("%d", 600, 2, 20), Options{Unit: Seconds}, 512, 19 * time.Second, ""},
		{"blocks of 64", line("%d", 600, 10, 3), Options{}, 64, 2 * time.Millisecond, ""},
		{"blocks of 24", line("%d", 24*400, 400, 3), Options{}, 24, 2 * time.Millisecond, ""},
		{"blocks of any of several sizes", line("%d", 40, 3, 3), Options{}, 16, 2 * time.Millisecond, ""},
		{"blocks of no single size", line("%d", 90, 4, 3), Options{}, 0, 0, "block_tokens"},
		{"blocks of a size that is given", line("%d", 90, 4, 3), Options{BlockTokens: 24}, 24, 2 * time.Millisecond, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewReader(strings.NewReader(c.text), c.options)
			require.NoError(t, err)
			all, err := collect(r.Next)
			if c.bad != "" {
				var bad *api.FieldError
				require.ErrorAs(t, err, &bad)
				assert.Equal(t, c.bad, bad.Field)
				return
			}
			require.ErrorIs(t, err, io.EOF)
			assert.Empty(t, r.Summary().Notes)
			assert.Equal(t, c.blocks, r.Summary().BlockTokens)
			assert.InDelta(t, c.last.Seconds(), all[len(all)-1].At.Seconds(), 1e-6)
		})
	}
}

// chat returns a line in Bailian's form.
func chat(id, parent, at string) string {
	const format = `{"chat_id": %s, "parent_chat_id": %s, "timestamp": %s, ` +
		`"input_length": 16, "output_length": 1, "hash_ids": [1]}` + "\n"
	return fmt.Sprintf(format, id, parent, at)
}

// TestChatsJoinSessionOfParent checks that chats of Bailian's form belong to the session of their parent.
func TestChatsJoinSessionOfParent(t *testing.T) {
	all, s := readFiles(t, "testdata/bailian_seconds.jsonl")
	require.Len(t, all, 40)
	assert.EqualValues(t, 40, s.Requests)
	assert.Equal(t, 376, all[0].PromptTokens)
	assert.Len(t, all[0].Blocks, 24)
	sessions := map[uint64]bool{}
	for _, r := range all {
		sessions[r.Session] = true
	}
	assert.Len(t, sessions, int(s.Sessions))
	text := chat("7", "-1", "1.5") + chat("8", "7", "2.5") + chat("9", "null", "3.5") + chat("10", "8", "4.5") +
		chat("11", "7", "5.5") + chat("13", "12", "6.5") + chat("14", "12", "7.5")
	all, s = readAll(t, text, Options{})
	require.Len(t, all, 7)
	for i, first := range []int{0, 0, 2, 0, 0, 5, 5} {
		assert.Equal(t, all[first].Session, all[i].Session, i)
	}
	assert.EqualValues(t, 3, s.Sessions)
}

// TestTurnsContinueTheirSession checks that prompts in AIPerf's form contain the earlier turns with their answers,
// and that turns with a delay follow the previous turn.
func TestTurnsContinueTheirSession(t *testing.T) {
	all, s := readFiles(t, "testdata/multiturn.jsonl")
	require.Len(t, all, 2, "the other turns follow these")
	want := Summary{
		Form: Mooncake, BlockTokens: 512, Lines: 5, Requests: 5, Sessions: 2, Arrivals: 100 * time.Millisecond,
	}
	assert.Equal(t, want, s)
	var turns [2][]*Record
	for i := range all {
		for r := all[i]; r != nil; r = r.Next {
			assert.Equal(t, all[i].Session, r.Session)
			turns[i] = append(turns[i], r)
		}
	}
	require.Len(t, turns[0], 3)
	require.Len(t, turns[1], 2)
	assert.Equal(t, 100*time.Millisecond, all[1].At)
	second, third := turns[0][1], turns[0][2]
	assert.Equal(t, 1500*time.Millisecond, second.Delay)
	assert.Equal(t, 4096+100+600, second.PromptTokens)
	assert.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7}, second.Blocks[:8])
	assert.Len(t, second.Blocks, 9, "the full blocks")
	assert.Equal(t, second.PromptTokens+100+600, third.PromptTokens)
	assert.Equal(t, second.Blocks, third.Blocks[:9])
	assert.NotEqual(t, second.Blocks[8], turns[1][1].Blocks[8])

	// A session whose lines contain the earlier prompts, and whose turns have times.
	all, s = readAll(t, `{"session_id": 3, "timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}
{"session_id": 3, "timestamp": 90, "input_length": 1536, "output_length": 5, "hash_ids": [1, 2, 3]}
{"session_id": 4, "delay": 90, "input_length": 1536, "output_length": 5, "hash_ids": [1, 2, 3]}
`, Options{})
	require.Len(t, all, 2)
	assert.Equal(t, []uint64{1, 2, 3}, all[1].Blocks)
	assert.Equal(t, 1536, all[1].PromptTokens)
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "line 3: timestamp is required: a number, the time of the session's first request", s.Notes[0].Error())
}

// TestDynamoTraceWithoutTracker reads a trace of Dynamo without the values of its tracker. The missing fields are
// A line of WEKA's form has all requests of a session, those of its agents too. Their hashes are the session's own
// unless the line says otherwise. Sessions overlap.
func TestSessionsInOneLineEach(t *testing.T) {
	const session = `{"id": "%s", "block_size": 64, "hash_id_scope": "%s", "requests": [` +
		`{"t": %d, "type": "s", "in": 150, "out": 7, "hash_ids": [1, 2, 3], "ttft": 0.8}, ` +
		`{"t": %[3]d, "type": "subagent", "requests": [{"t": %d, "in": 64, "out": 1, "hash_ids": [1]}]}, ` +
		`{"t": 60.5, "type": "n", "in": 130, "out": 8, "hash_ids": [1, 2, 9]}]}` + "\n"
	text := byteOrderMark + fmt.Sprintf(session, "a", "global", 0, 2) + fmt.Sprintf(session, "b", "global", 20, 21) +
		fmt.Sprintf(session, "c", "local", 20, 22) + `{"id": "d", "block_size": 64, "requests": [{"t": 70, "in": 64}]}`
	all, s := readAll(t, text, Options{})
	var moments []float64
	for _, r := range all {
		moments = append(moments, r.At.Seconds())
		assert.Equal(t, 64, r.BlockTokens)
	}
	assert.Equal(t, []float64{0, 2, 20, 20, 21, 22, 60.5, 60.5, 60.5}, moments)
	assert.Equal(t, []int64{3, 9, 0, 1}, []int64{s.Sessions, s.Requests, s.Disordered, s.Unused})
	require.Len(t, s.Notes, 1)
	assert.Equal(t, "requests.out", s.Notes[0].Field)
	assert.Equal(t, []uint64{1, 2, 3}, all[2].Blocks)
	assert.Equal(t, all[0].Session, all[1].Session)
	assert.NotEqual(t, all[0].Session, all[2].Session)
	assert.Len(t, all[3].Blocks, 3)
	assert.NotContains(t, all[3].Blocks, uint64(1), "the hashes of c are its own")
	assert.Equal(t, all[3].Blocks[0], all[5].Blocks[0], "but one in all of its requests")
}

// listed once.
func TestDynamoTraceWithoutTracker(t *testing.T) {
	all, s := readFiles(t, "testdata/dynamo_min.jsonl")
	require.Len(t, all, 2)
	assert.Equal(t, 128, all[0].PromptTokens)
	values := []any{all[0].Cached, all[0].FirstToken, all[0].Ended, all[0].Worker}
	assert.Equal(t, []any{-1, time.Duration(-1), time.Duration(-1), uint64(0)}, values)
	assert.Equal(t, 2*time.Second, all[1].At)
	assert.Equal(t, "The trace lacks input_tokens (replay.input_length is used), "+
		"cached_tokens, total_time_ms, ttft_ms, worker.", s.Lacking())
	assert.EqualValues(t, 2, s.Untimed())

	partly := `{"event": {"event_type": "request_end", "request": {"request_received_ms": 1, "input_tokens": 4, ` +
		`"output_tokens": 1, "total_time_ms": 3, %s "cached_tokens": 0, "worker": {"decode_worker_id": 9}, ` +
		`"replay": {"trace_block_size": 4, "input_sequence_hashes": [1]}}}}` + "\n"
	all, s = readAll(t, fmt.Sprintf(partly, "")+fmt.Sprintf(partly, `"ttft_ms": 2,`), Options{})
	require.Len(t, all, 2)
	assert.Equal(t, "The trace lacks ttft_ms (in 1 of 2 requests).", s.Lacking())
	assert.Equal(t, 3*time.Millisecond, all[0].Ended)
}

// TestFilesFormOneTrace checks that files are sorted by time, and that notes name the file.
func TestFilesFormOneTrace(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"t.0.jsonl": compressed(t, entry(60_000)+"{}\n"+entry(90_000)), "t.1.jsonl": entry(120_000)[:30],
		"t.2.jsonl": entry(0) + entry(30_000),
	} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(data), 0o600))
	}
	all, s := readFiles(t, dir+"/t.*.jsonl", dir+"/t.2.jsonl")
	require.Len(t, all, 4)
	assert.Equal(t, 90*time.Second, all[3].At)
	assert.EqualValues(t, 4, s.Requests)
	assert.True(t, s.Cut)
	require.Len(t, s.Notes, 2)
	note := "t.0.jsonl, line 2: timestamp is required: a number, the time of the request"
	assert.Equal(t, note, s.Notes[1].Error())
	for pattern, message := range map[string]string{
		dir + "/x*": "no file matches", dir + "/x": "no such file", dir: "is a directory",
	} {
		_, err := Find(pattern)
		assert.ErrorContains(t, err, message)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(good[:100]))
	f.Add([]byte{0x1f, 0x8b, 8})
	for _, name := range []string{"multiturn", "dynamo_min"} {
		text, err := os.ReadFile("testdata/" + name + ".jsonl")
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"event": {"event_type": "request_end", "request": {"request_received_ms": 1e9, "input_tokens": 4, ` +
		`"output_tokens": 1, "ttft_ms": 1, "total_time_ms": 3, "worker": {"prefill_worker_id": 18446744073709551615}, ` +
		`"replay": {"trace_block_size": 2, "input_sequence_hashes": [1, 18446744073709551615]}}}}`))
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
			for ; record != nil; record = record.Next {
				missing := len(record.Blocks) < record.PromptTokens/r.Summary().BlockTokens
				disordered := record.Ended >= 0 && record.Ended < record.FirstToken
				if record.PromptTokens < 1 || record.OutputTokens < 0 || missing || disordered {
					t.Fatalf("%+v", record)
				}
			}
		}
		s := r.Summary()
		if s.Unused+s.Others+s.Requests > s.Lines || len(s.Notes) > keptNotes {
			t.Fatalf("%+v", s)
		}
	})
}
