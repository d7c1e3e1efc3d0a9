package chat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	await "kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// everyCut is a stream in one read, in two with the cut at every byte, and byte by byte.
func everyCut(in string) [][]string {
	cuts := [][]string{singles(in)}
	for i := range len(in) {
		cuts = append(cuts, []string{in[:i], in[i:]})
	}
	return cuts
}

// singles cuts s into pieces of one byte.
func singles(s string) (all []string) {
	for i := range len(s) {
		all = append(all, s[i:i+1])
	}
	return all
}

// Each stream comes to the same, wherever it is cut into reads.
func TestStreams(t *testing.T) {
	t.Parallel()
	const (
		finish    = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		zeros     = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` + "\n\n"
		noDone    = "the answer ended without [DONE]; the server or a proxy cut it off"
		noChunk   = "an event of the stream is not a chat completion chunk (lorem ipsum)"
		noEvents  = "the server's answer is not a stream of events (lorem ipsum dolor)"
		otherAPI  = "; is target.url the address of an OpenAI-compatible API?"
		nothing   = "the server's answer is empty: [DONE] came without any chat completion chunk; check the server's log"
		closedOff = "the answer was cut off before its end ([DONE]); the server or a proxy closed the connection"
	)
	a, b := event("a"), event("b")
	delta := func(d string) string { return `data: {"choices":[{"delta":{` + d + "}}]}\n\n" }
	part := func(kind, text string) string {
		return delta(`"content":[{"type":"` + kind + `","` + kind + `":"` + text + `"}]`)
	}
	message := func(text string) string { return strings.Replace(event(text), "delta", "message", 1) }
	finished := func(reason string) string { return strings.Replace(finish, "stop", reason, 1) }
	uncounted := func(text string) string { return strings.Replace(event(text), "}]}\n\n", "}],"+zeros, 1) }
	usageOnly := func(completion int) string {
		return strings.Replace(counted("", completion), `[{"delta":{"content":""}}]`, "[]", 1)
	}
	nullUsage := strings.Replace(usageOnly(2), `"completion_tokens":2`, `"completion_tokens":null`, 1)
	done := func(events ...string) string { return answerOf(append(events, doneEvent)...) }
	cut := func(events ...string) string { return streamHead + framed(events...) }

	var none Result
	gotA, gotAB := Result{Content: "a", Chunks: make([]Chunk, 1)}, Result{Content: "ab", Chunks: make([]Chunk, 2)}
	ends := func(r Result, reason string) Result { r.FinishReason = reason; return r }
	uses := func(r Result, completion int) Result { r.Usage = &Usage{9, completion, 4, true}; return r }
	counts := func(content string, completion int, tokens ...int32) Result {
		return uses(Result{Content: content, Chunks: chunksAt(make([]int, len(tokens)), tokens...)}, completion)
	}
	fails := func(r Result, class api.ErrorClass, message string) Result {
		r.Err = &Error{Class: class, Status: 200, Message: message}
		return r
	}
	reports := func(r Result, message string) Result {
		return fails(r, api.ErrorStream, "the server reported an error inside its answer: "+message)
	}
	coded := func(r Result, message string) Result { r = reports(r, message); r.Err.Code = "400"; return r }
	coded1000 := func(r Result) Result { r = reports(r, "unknown error"); r.Err.Code = "1000"; return r }
	empty := func(r Result, reason string) Result {
		return fails(r, api.ErrorEmpty, "the answer ended without any content (finish_reason "+reason+
			"); check the server's log and its chat template")
	}
	cutOff := func(r Result) Result { return fails(r, api.ErrorTruncated, noDone) }
	failedBy := func(reason string) Result { return reports(ends(gotAB, reason), "finish_reason "+reason) }

	for _, row := range []struct {
		name, in string
		want     Result
	}{
		{"role first, then tokens, finish, usage", done(roleOnly, a, b, finish, usageOnly(2)), uses(ends(gotAB, "stop"), 2)},
		{
			"usage on every chunk gives the tokens of each",
			done(delta(`"role":"assistant"`), counted("a", 1), counted("bcd", 4), counted("e", 5), usageOnly(5)),
			counts("abcde", 5, 1, 3, 1),
		},
		{
			"tokens without text go to the next chunk that has some", done(counted("a", 1), counted("", 2), counted("b", 3)),
			counts("ab", 3, 1, 2),
		},
		{"usage on the last token counts the whole answer", done(a, b, counted("c", 3)), counts("abc", 3, 0, 0, 0)},
		{"usage that goes backwards", done(counted("a", 5), counted("b", 2)), counts("ab", 0, 5, 0)},
		{
			"what is empty does not count", done(roleOnly, delta(`"content":null`), delta(`"tool_calls":[]`), delta(``)),
			empty(none, "missing"),
		},
		{
			"events of other names and comments",
			done(": hi\n\n", "event: token_ids\ndata: [1]\n\n", "event: message\n"+a, ": bye\n\n"), gotA,
		},
		{"[DONE] under a name", answerOf(a, "event: done\n"+doneEvent), gotA},
		{"[DONE] in another form", answerOf(a, "data:  \"[done]\" \n\n"), gotA},
		{"more after [DONE]", answerOf(a, doneEvent, b, `data: {"error":"late"}`+"\n\n", "data: garbage\n\n"), gotA},
		{"broken framing after [DONE]", cut(a, doneEvent) + "zzz\r\n", gotA},
		{"the connection ends after [DONE]", cut(a, doneEvent), gotA},
		{"[DONE] alone", done(": hi\n\n", "event: ping\ndata: 1\n\n"), fails(none, api.ErrorMalformed, nothing)},
		{
			"no text, but its end and one token, the end of sequence", done(finish, usageOnly(1)),
			empty(uses(ends(none, "stop"), 1), "stop"),
		},
		{"tokens that are not shown", done(finish, usageOnly(7)), empty(uses(ends(none, "stop"), 7), "stop")},
		{
			"empty deltas with usage", done(counted("", 1), counted("", 2), finish, usageOnly(2)),
			empty(uses(ends(none, "stop"), 2), "stop"),
		},
		{"more chunks than tokens", done(a, b, finish, usageOnly(1)), uses(ends(gotAB, "stop"), 1)},
		{
			"an error in a dialect, in place of an end",
			done(a, `data: {"object":"chat.completion.chunk","choices":null,"base_resp":{"status_code":1000,"status_msg":"unknown error"}}`+"\n\n"),
			coded1000(gotA),
		},
		{
			"a fault in an unknown dialect, in place of an end",
			done(a, `data: {"object":"chat.completion.chunk","choices":null,"fault":"out of memory"}`+"\n\n"),
			reports(gotA, `{"object":"chat.completion.chunk","choices":null,"fault":"out of memory"}`),
		},
		{
			"usage that cannot be true on the last chunk", done(counted("a", 1), counted("b", 1e9)),
			counts("ab", 0, 1, 0),
		},
		{
			"usage before the end is not that of the answer", done(counted("a", 1), b, event("c")),
			counts("abc", 0, 1, 0, 0),
		},
		{
			"usage of each chunk, not of the answer", done(counted("a", 1), counted("b", 1), usageOnly(1)),
			counts("ab", 0, 1, 0),
		},
		{"usage without a choice", done(usageOnly(7)), empty(uses(none, 7), "missing")},
		{"a message in place of each delta", done(message("a"), message("b"), finish), ends(gotAB, "stop")},
		{"the message after its deltas", done(a, b, message("ab")), gotAB},
		{"a byte order mark", done("\uFEFF"+a, b), gotAB},
		{"one event over several HTTP chunks", answerOf(a[:20], a[20:], "data: [DO", "NE]\n\n"), gotA},
		{"no blank line, by length", withLength(200, "", a+"data: [DONE]\n"), gotA},
		{"no blank line, until the connection ends", closingHead + a + "data: [DONE]\n", gotA},
		{
			"an error object in the stream", done(a, `data: {"error":{"message":"out of memory","type":"server_error"}}`+"\n\n"),
			reports(gotA, "out of memory (server_error)"),
		},
		{
			"an error by the event's name", answerOf("event: error\n: \"worker lost\"\ndata: worker lost\n\n"),
			reports(none, "worker lost"),
		},
		{"an error in a comment", done(a, b, "event: error\n: worker lost\n\n"), reports(gotAB, "worker lost")},
		{"an error in a comment, and the end", answerOf(a, "event: error\n: no workers\n\n"), reports(gotA, "no workers")},
		{"an error without words", done(a, "event: error\n\n"), reports(gotA, "it gave no reason")},
		{"a field named error", done(roleOnly, a, `error: {"code":400,"message":"too long"}`+"\n\n"), coded(gotA, "too long")},
		{"a field named error that is no JSON", done(a, "error: out of memory\n\n"), reports(gotA, "out of memory")},
		{
			"an error under another name", done(a, "event: response.Failed\ndata: {\"why\":7}\n\n"),
			reports(gotA, `{"why":7}`),
		},
		{
			"an event that is no chunk, in place of an end", done(a, "data: {\"status\":\"failed\"}\n\n"),
			reports(gotA, `{"status":"failed"}`),
		},
		{
			"an event that is no chunk, and an end", done(a, "data: {\"type\":\"keepalive\"}\n\n", finish),
			ends(gotA, "stop"),
		},
		{
			"lines that are no event, in place of an end", done(a, "<html>\n<h1>502 Bad Gateway</h1>\n", "\n</html>\n\n"),
			reports(gotA, "<html> <h1>502 Bad Gateway</h1> </html>"),
		},
		{
			"an error with a blank line in it", done(a, "{\n \"error\": {\n\n  \"message\": \"too long\"\n }\n}\n\n"),
			reports(gotA, "too long"),
		},
		{
			"lines that are no event, and the end", closingHead + a + "worker lost\n\n",
			fails(gotA, api.ErrorTruncated, noDone+" (worker lost)"),
		},
		{"a failure that the connection cuts off", cut(a, b, finished("error")), failedBy("error")},
		{"an error of no form", answerOf(`{"error":{"code":400,"message":"too long"}}`), coded(none, "too long")},
		{
			"an error of no form over several lines after tokens",
			done(a, "{\n \"error\": {\n  \"message\": \"too long\"\n }\n}\n", "\n"), reports(gotA, "too long"),
		},
		{"an aborted answer", done(a, b, finished("abort")), failedBy("abort")},
		{
			"an answer that ends by another failure, without [DONE]", answerOf(a, b, finished("insufficient_system_resource")),
			failedBy("insufficient_system_resource"),
		},
		{"a failure, then a normal end", done(a, b, finished("error"), finish), failedBy("error")},
		{"an end as TGI names it", done(a, finished("eos_token")), ends(gotA, "eos_token")},
		{"an end in capitals", done(a, finished("STOP")), ends(gotA, "STOP")},
		{"an end without [DONE]", answerOf(a, finish, usageOnly(1)), uses(ends(gotA, "stop"), 1)},
		{
			"an end without [DONE] that the connection cuts off", cut(a, finish),
			fails(ends(gotA, "stop"), api.ErrorTruncated, closedOff),
		},
		{
			"a name on every event",
			done("event: chat.completion.chunk\n"+a, "event: x\n"+finish, "event: y\n"+usageOnly(1)),
			uses(ends(gotA, "stop"), 1),
		},
		{"a message under another name is no error", done(a, "event: warning\ndata: {\"message\":\"slow\"}\n\n"), gotA},
		{"zeros as usage", done(uncounted("a"), uncounted("b"), finish), ends(gotAB, "stop")},
		{
			"zeros as usage, then counts", done(uncounted("a"), uncounted("b"), finish, usageOnly(2)),
			uses(ends(gotAB, "stop"), 2),
		},
		{"null in usage", done(a, b, finish, nullUsage), uses(ends(gotAB, "stop"), 0)},
		{
			"a content of parts", done(part("thinking", "T"), part("text", "a"), b),
			Result{Content: "ab", Chunks: make([]Chunk, 3)},
		},
		{
			"reasoning is no part of the answer", done(delta(`"reasoning_content":"T"`), a),
			Result{Content: "a", Chunks: make([]Chunk, 2)},
		},
		{
			"reasoning alone", done(delta(`"reasoning":"T","reasoning_content":"T"`), finish),
			Result{Chunks: make([]Chunk, 1), FinishReason: "stop"},
		},
		{"the stream ends without [DONE]", answerOf(a, b), cutOff(gotAB)},
		{"the connection ends without [DONE]", closingHead + a, cutOff(gotA)},
		{"the connection is cut between chunks", cut(a), fails(gotA, api.ErrorTruncated, closedOff)},
		{"the connection is cut in a chunk", cut(a) + "ff\r\n" + b[:20], fails(gotA, api.ErrorTruncated, closedOff)},
		{"an unmeasured body is cut in an event", closingHead + a + b[:20], cutOff(gotA)},
		{"an event that is no JSON", done(a, "data: lorem ipsum\n\n"), fails(gotA, api.ErrorMalformed, noChunk+otherAPI)},
		{"no events at all", answerOf("lorem ipsum\n", "dolor\n\n"), fails(none, api.ErrorMalformed, noEvents+otherAPI)},
		{"comments alone are a stream", answerOf(": ping\n\n"), cutOff(none)},
		{"an empty stream", answerOf(), cutOff(none)},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, pieces := range everyCut(row.in) {
				r, _ := replay(t, Request{}, io.EOF, pieces...)
				require.Equal(t, outcome(row.want), outcome(r), "cut %d", i)
			}
		})
	}
}

// The first token is that of the reasoning; when the answer itself begins is kept apart. Neither
// belongs to the text that the next request sends.
func TestFirstAnswer(t *testing.T) {
	for _, row := range []struct {
		reasoning, answer string
		ttft, first       time.Duration
	}{
		{`data: {"choices":[{"delta":{"reasoning_content":"T"}}]}` + "\n\n", event("a"), 200 * time.Millisecond, 400 * time.Millisecond},
		{event("b"), event("a"), 200 * time.Millisecond, 200 * time.Millisecond},
		{`data: {"choices":[{"delta":{"reasoning":"T"}}]}` + "\n\n", ": nothing\n\n", 200 * time.Millisecond, 0},
	} {
		r := inBubble(t, func(c net.Conn) {
			_ = after(c, 200*time.Millisecond, streamHead+framed(row.reasoning))
			_ = after(c, 200*time.Millisecond, framed(row.answer, doneEvent)+lastChunk)
		})
		if ttft, _ := r.TTFT(); ttft != row.ttft || r.FirstAnswer != row.first || !r.OK() {
			t.Errorf("%s: TTFT %v, answer after %v; want %v and %v; %s", row.reasoning, ttft, r.FirstAnswer, row.ttft,
				row.first, outcome(r))
		}
	}
}

// A stream as a real Dynamo sent it, in every framing and cut anywhere.
func TestDynamoStream(t *testing.T) {
	t.Parallel()
	body := strings.Join(dynamoEvents(t), "")
	want := outcome(Result{
		Content: "roughputsweeprove", Chunks: make([]Chunk, 3), FinishReason: "length", Usage: &Usage{13, 3, 0, true},
		Worker: "16549284283275536882", Timing: Timing{.210283415, 0, 0, true, true, true},
	})
	for name, in := range map[string]string{
		"one HTTP chunk an event": streamHead + framed(dynamoEvents(t)...) + lastChunk,
		"by length":               withLength(200, "Content-Type: text/event-stream\r\n", body),
		"until the end, CRLF":     closingHead + strings.ReplaceAll(body, "\n", "\r\n"),
	} {
		for i, pieces := range everyCut(in) {
			if i%5 != 0 && i != 1 {
				continue // the parser's own tests cut at every byte
			}
			r, _ := replay(t, Request{}, io.EOF, pieces...)
			require.Equal(t, want, outcome(r), "%s, cut %d", name, i)
		}
	}
}

// Wherever a connection dies, the answer is never taken for a whole one, nor for
// a malformed one, and what had come before is kept.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	in := streamHead + framed(dynamoEvents(t)...) + lastChunk
	whole := strings.Index(in, "data: [DONE]") + len(doneEvent)
	for i := range in {
		for _, end := range []error{io.EOF, errCut} {
			r, kept := replay(t, Request{}, end, in[:i])
			switch head := i < len(streamHead); {
			case i >= whole && r.OK() && !kept:
			case !head && i < whole && r.Err != nil && r.Err.Class == api.ErrorTruncated:
			case head && r.Err != nil && r.Err.Class == api.ErrorConnect:
			default:
				t.Fatalf("cut at %d of %d by %v: got %s, kept %v", i, len(in), end, outcome(r), kept)
			}
		}
	}
}

// Answers together take no more memory than their budget, with their chunks and their copies in a request. A failed one
// takes none afterwards.
func TestTextBudget(t *testing.T) {
	t.Parallel()
	texts := NewTextBudget(1000)
	ask := func(history int, chunks ...string) Result {
		messages := []Message{
			{Role: RoleUser, Text: strings.Repeat("u", 5000)},
			{Role: RoleAssistant, Text: strings.Repeat("a", history)},
		}
		var events []string
		for _, text := range chunks {
			events = append(events, event(text))
		}
		r, _ := replay(t, Request{Texts: texts, Messages: messages}, io.EOF, answerOf(append(events, doneEvent)...))
		return r
	}
	long := strings.Repeat("x", 400)
	require.Nil(t, ask(0, long).Err, "800 bytes of text and 32 of a chunk")
	assert.EqualValues(t, 800, texts.used.Load())
	wantError(t, ask(0, long).Err, api.ErrorOverrun, "target.answer_memory")
	wantError(t, ask(0, slices.Repeat([]string{"x"}, 25)...).Err, api.ErrorOverrun, "target.answer_memory")
	wantError(t, ask(122, "x").Err, api.ErrorOverrun, "target.answer_memory")
	assert.EqualValues(t, 800, texts.used.Load())
	assert.Nil(t, ask(121, "x").Err, "the request has been sent when the answer begins")
	texts.Release(TextMemory(400) + TextMemory(1))
	assert.Zero(t, texts.used.Load())
}

func TestLongEvent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	r, kept := replay(t, Request{}, io.EOF, answerOf(event("a"), event(long), doneEvent))
	if !r.OK() || r.Content != "a"+long || len(r.Chunks) != 2 || !kept {
		t.Errorf("an event of 200 KiB: %.300s", outcome(r))
	}
	pieces := append([]string{closingHead, "data: "}, slices.Repeat([]string{long}, 100)...)
	r, _ = replay(t, Request{}, io.EOF, pieces...)
	wantError(t, r.Err, api.ErrorMalformed, "longer than 1 MiB")
	ids := append([]string{closingHead, event("a"), "event: token_ids\ndata: ["},
		slices.Repeat([]string{"12345,\ndata: 6", long}, 100)...)
	r, _ = replay(t, Request{}, io.EOF, append(ids, "]\n\n", event("b"), doneEvent)...)
	if !r.OK() || r.Content != "ab" {
		t.Errorf("an event for others of 20 MB: %.300s", outcome(r))
	}
}

// What came before an answer grew too long is kept.
func TestOverrun(t *testing.T) {
	t.Parallel()
	empty := strings.Repeat(roleOnly, 5000)
	late, _ := replay(t, Request{MaxTokens: 20}, io.EOF, closingHead, empty, event("a"), doneEvent)
	assert.True(t, late.OK(), "chunks without text before the first token: %s", outcome(late))
	for _, row := range []struct{ maxTokens, sent, kept int }{
		{100, 1600, 1600}, // a server that sends a chunk for each character
		{100, 5000, 1601},
		{1, 256, 256},
		{1, 5000, 257}, // a probe, of a server that ignores max_tokens
		{0, 5000, 5000},
	} {
		r, _ := replay(t, Request{MaxTokens: row.maxTokens}, io.EOF, closingHead, strings.Repeat(event("a"), row.sent),
			doneEvent)
		if overrun := r.Err != nil && r.Err.Class == api.ErrorOverrun; r.OK() == overrun ||
			overrun != (row.kept < row.sent) || len(r.Content) != row.kept {
			t.Errorf("%d tokens for max_tokens %d: %d kept, %v", row.sent, row.maxTokens, len(r.Content), r.Err)
		}
	}
}

// A connection goes back to the pool only where nothing can be left on it.
func TestKept(t *testing.T) {
	for _, row := range []struct {
		name string
		in   string
		end  error
		kept bool
	}{
		{"whole", answerOf(event("a"), doneEvent), nil, true},
		{"whole, by length", withLength(200, "", event("a")+doneEvent), nil, true},
		{"an error with its body", withLength(429, "", "{}"), nil, true},
		{"the response goes on after [DONE]", streamHead + framed(event("a"), doneEvent), nil, false},
		{"the server will close", closingHead + event("a") + doneEvent, io.EOF, false},
		{"an error inside the stream", streamHead + framed(`data: {"error":"x"}`+"\n\n"), nil, false},
		{"an error's body beyond what is read", withLength(500, "", strings.Repeat("x", maxErrorBody+1)), nil, false},
	} {
		if r, kept := replay(t, Request{}, row.end, row.in); kept != row.kept {
			t.Errorf("%s: kept %v; %s", row.name, kept, outcome(r))
		}
	}
}

// An error that has a status keeps it, however its body ends.
func TestErrorBodies(t *testing.T) {
	const head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
	for name, in := range map[string]string{
		"whole":              head + "Content-Length: 13\r\n\r\nno capacity!\n",
		"cut off":            head + "Content-Length: 99\r\n\r\nno capacity!\n",
		"until the end":      head + "\r\nno capacity!\n",
		"JSON":               head + "\r\n" + `{"error":{"message":"no capacity!","type":"x"}}`,
		"JSON of Dynamo's":   head + "\r\n" + `{"message":"no capacity!","type":"x","code":503}`,
		"JSON, error string": head + "\r\n" + `{"error":"no capacity!"}`,
	} {
		r, _ := replay(t, Request{}, io.EOF, in)
		want := &Error{
			Class: api.ErrorHTTP5xx, Status: 503, RetryAfter: 2 * time.Second,
			Message: "the server failed (503, retry after 2s): no capacity!; check the server's log",
		}
		assert.Equal(t, outcome(Result{Err: want}), outcome(r), name)
	}
	r, _ := replay(t, Request{}, io.EOF, "HTTP/1.1 400 Bad Request\r\n\r\n"+strings.Repeat("long \n\x00\xff", 1<<20))
	if r.Err == nil || r.Err.Class != api.ErrorHTTP4xx || len(r.Err.Message) > 300 || strings.Contains(r.Err.Message,
		"\n") {
		t.Errorf("an endless body: got %s", outcome(r))
	}
}

func TestOnChunk(t *testing.T) {
	counted := func(n int) string {
		return fmt.Sprintf(`data: {"choices":[{"delta":{"content":"c"}}],"usage":{"completion_tokens":%d}}`+"\n\n", n)
	}
	for _, row := range []struct {
		in   string
		want []int
	}{
		{answerOf(roleOnly, event("a"), event("b"), counted(9), doneEvent), []int{1, 1, 1}},
		{answerOf(counted(2), counted(7), counted(7), doneEvent), []int{2, 5, 1}},
	} {
		var got []int
		replay(t, Request{OnChunk: func(n int) { got = append(got, n) }}, io.EOF, row.in)
		assert.Equal(t, row.want, got, row.in)
	}
}

// takeRequest reads one request to its end, as a server does before it answers.
func takeRequest(c net.Conn) error {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

// inBubble sends one request in virtual time to a server that serve plays.
func inBubble(t *testing.T, serve func(server net.Conn)) (r Result) {
	synctest.Test(t, func(t *testing.T) {
		r = piped(t, Options{Model: "m"}, func(far net.Conn) {
			if takeRequest(far) == nil {
				serve(far)
			}
		})
	})
	return r
}

// piped sends one request through a pipe to a server that serve plays.
func piped(t *testing.T, o Options, serve func(server net.Conn)) Result {
	near, far := net.Pipe()
	c := over(t, o, func() net.Conn { return near })
	var server sync.WaitGroup
	server.Go(func() {
		defer far.Close()
		serve(far)
	})
	r := c.Do(t.Context(), Request{Messages: hello()})
	c.Close()
	near.Close()
	server.Wait()
	return r
}

// after writes s once d has passed.
func after(c net.Conn, d time.Duration, s string) error {
	await.Advance(d)
	_, err := io.WriteString(c, s)
	return err
}

// The limits hold to the moment: 120 s to the first token, 30 s between
// events that carry something, 10 minutes in all.
func TestLimits(t *testing.T) {
	const first, stall, whole = 120 * time.Second, 30 * time.Second, 10 * time.Minute
	silence := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	sends := func(at time.Duration, what string) func(net.Conn) {
		return func(c net.Conn) { _ = after(c, at, what); silence(c) }
	}
	repeats := func(begin, what string) func(net.Conn) { // each second, for ever
		return func(c net.Conn) {
			for err := after(c, 0, begin); err == nil; err = after(c, time.Second, framed(what)) {
			}
		}
	}
	const ping, finish = ": ping\n\n", `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\n"
	const usage = `data: {"choices":[],"usage":{"completion_tokens":1}}` + "\n\n"
	token := streamHead + framed(event("a"))
	for _, row := range []struct {
		name  string
		serve func(net.Conn)
		class api.ErrorClass // "": none
		at    time.Duration
	}{
		{"nothing comes", silence, api.ErrorTimeout, first},
		{"half a head comes", sends(0, "HTTP/1.1 20"), api.ErrorTimeout, first},
		{"a role comes", sends(0, streamHead+framed(roleOnly)), api.ErrorTimeout, first},
		{"roles come for ever", repeats(streamHead, roleOnly), api.ErrorTimeout, first},
		{"comments come for ever", repeats(streamHead, ping), api.ErrorTimeout, first},
		{"a token comes at the last moment", sends(first-1, answerOf(event("a"), doneEvent)), "", first - 1},
		{"silence after a token", func(c net.Conn) {
			_ = after(c, 200*time.Millisecond, token)
			sends(25*time.Millisecond, framed(event("b")))(c)
		}, api.ErrorStall, 30225 * time.Millisecond},
		{
			"silence after the finish reason", sends(time.Second, streamHead+framed(event("a"), finish)), "",
			time.Second + endFor,
		},
		{"silence after a late token", sends(first-time.Second, token), api.ErrorStall, first - time.Second + stall},
		{"comments after a token", repeats(token, ping), api.ErrorStall, stall},
		{"half an event after a token", repeats(token, "x"), api.ErrorStall, stall},
		{"empty deltas after a token", repeats(token, roleOnly), api.ErrorStall, stall},
		{"events of other kinds after a token", repeats(token, "event: ping\ndata: {}\n\n"), api.ErrorStall, stall},
		{"tokens for ever", repeats(token, event("a")), api.ErrorOverrun, whole},
		{"usage for ever", repeats(token, usage), api.ErrorOverrun, whole},
		{"slow and steady for ten minutes", func(c net.Conn) {
			_ = after(c, 0, streamHead)
			for range 20 {
				_ = after(c, stall-1, framed(event("a")))
			}
			_ = after(c, 0, framed(doneEvent)+lastChunk)
		}, "", 20 * (stall - 1)},
		{
			"the response never ends after [DONE]", sends(time.Second, streamHead+framed(event("a"), doneEvent)), "",
			time.Second + drainFor,
		},
		{
			"a status comes, and half its reason", sends(0, "HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nwhy"),
			api.ErrorHTTP5xx, first,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := inBubble(t, row.serve)
			if r.Ended.Sub(r.Sent) != row.at || r.Cancelled {
				t.Errorf("after %v: %s; want %q after %v", r.Ended.Sub(r.Sent), outcome(r), row.class, row.at)
			}
			if row.class == "" && r.Err == nil {
				return
			}
			wantError(t, r.Err, row.class, map[api.ErrorClass]string{
				api.ErrorTimeout: "no first token within 2m0s; the server is overloaded or hung, or target.first_token_timeout",
				api.ErrorStall:   "silent for 30s in mid-answer; the worker may have exited, or target.stall_timeout",
				api.ErrorOverrun: "had not ended after 10m0s; the server is too slow for max_tokens or never ends an answer, " +
					"or target.turn_timeout",
			}[row.class])
		})
	}
}

// A limit, or a context, that ends after its request must not reach into the
// next one on the same connection.
func TestLimitsEndWithTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		dials := 0
		c := over(t, Options{Model: "m", IdleTimeout: time.Hour}, func() net.Conn { dials++; return near })
		var server sync.WaitGroup
		server.Go(func() {
			for takeRequest(far) == nil {
				_ = after(far, 119*time.Second, streamHead+framed(event("a"), doneEvent))
				_ = after(far, drainFor/2, lastChunk) // the wait for this has a limit, too
			}
		})
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			r := c.Do(ctx, Request{Messages: hello()})
			cancel()
			assert.True(t, r.OK(), outcome(r))
			await.Advance(100 * time.Second)
		}
		assert.Equal(t, 1, dials)
		c.Close()
		near.Close()
		server.Wait()
	})
}
