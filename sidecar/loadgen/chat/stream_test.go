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

	await "kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// ended makes the outcome of a failed answer out of what matters of it.
func ended(content string, tokens []int32, e *Error) string {
	return outcome(Result{Content: content, Chunks: chunksAt(make([]int, len(tokens)), tokens...), Err: e})
}

// everyCut is a stream in one read, in two with the cut at every byte, and byte by byte.
func everyCut(in string) [][]string {
	cuts := [][]string{strings.Split(in, "")}
	for i := range len(in) {
		cuts = append(cuts, []string{in[:i], in[i:]})
	}
	return cuts
}

// Each stream comes to the same, wherever it is cut into reads.
func TestStreams(t *testing.T) {
	t.Parallel()
	usageOnly := func(completion int) string {
		return strings.Replace(counted("", completion), `[{"delta":{"content":""}}]`, "[]", 1)
	}
	delta := func(d string) string { return `data: {"choices":[{"delta":{` + d + "}}]}\n\n" }
	const finish = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	streamFailed := func(message string) *Error {
		return &Error{
			Class: api.ErrorStream, Status: 200,
			Message: "the server reported an error inside its answer: " + message,
		}
	}
	malformed := func(message string) *Error { return &Error{Class: api.ErrorMalformed, Status: 200, Message: message} }
	noDone := &Error{
		Class: api.ErrorTruncated, Status: 200,
		Message: "the answer ended without [DONE]; the server or a proxy cut it off",
	}
	brokeOff := &Error{
		Class: api.ErrorTruncated, Status: 200,
		Message: "the answer was cut off before its end ([DONE]); the server or a proxy closed the connection",
	}
	empty := func(reason string) *Error {
		return &Error{
			Class: api.ErrorEmpty, Status: 200,
			Message: "the answer ended without any content (finish_reason " + reason + "); check the server's log " +
				"and its chat template",
		}
	}
	finished := func(reason string) string { return strings.Replace(finish, "stop", reason, 1) }
	failedBy := func(reason string) string {
		return outcome(Result{
			Content: "ab", Chunks: make([]Chunk, 2), FinishReason: reason,
			Err: streamFailed("finish_reason " + reason),
		})
	}
	coded := func(code, message string) *Error { e := streamFailed(message); e.Code = code; return e }
	part := func(kind, text string) string {
		return delta(`"content":[{"type":"` + kind + `","` + kind + `":"` + text + `"}]`)
	}
	const zeros = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` + "\n\n"
	uncounted := func(text string) string { return strings.Replace(event(text), "}]}\n\n", "}],"+zeros, 1) }
	message := func(text string) string { return strings.Replace(event(text), "delta", "message", 1) }
	one, two := []int32{0}, []int32{0, 0}
	for _, row := range []struct {
		name, in string
		want     string
	}{
		{
			"role first, then tokens, finish, usage", answerOf(roleOnly, event("a"), event("b"), finish, usageOnly(2),
				doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 2), FinishReason: "stop", Usage: &Usage{9, 2, 4, true}}),
		},
		{
			"usage on every chunk gives the tokens of each", answerOf(delta(`"role":"assistant"`), counted("a", 1), counted("bcd", 4), counted("e", 5), usageOnly(5), doneEvent),
			outcome(Result{Content: "abcde", Chunks: chunksAt([]int{0, 0, 0}, 1, 3, 1), Usage: &Usage{9, 5, 4, true}}),
		},
		{
			"tokens without text go to the next chunk that has some", answerOf(counted("a", 1), counted("", 2),
				counted("b", 3), doneEvent),
			outcome(Result{Content: "ab", Chunks: chunksAt([]int{0, 0}, 1, 2), Usage: &Usage{9, 3, 4, true}}),
		},
		{
			"usage on the last token counts the whole answer", answerOf(event("a"), event("b"), counted("c", 3), doneEvent),
			outcome(Result{Content: "abc", Chunks: make([]Chunk, 3), Usage: &Usage{9, 3, 4, true}}),
		},
		{
			"usage that goes backwards", answerOf(counted("a", 5), counted("b", 2), doneEvent),
			outcome(Result{Content: "ab", Chunks: chunksAt([]int{0, 0}, 5, 0), Usage: &Usage{9, 2, 4, true}}),
		},
		{"what is empty does not count", answerOf(roleOnly, delta(`"content":null`), delta(`"tool_calls":[]`), delta(``), doneEvent), ended("", nil, empty("missing"))},
		{
			"events of other names and comments", answerOf(": hi\n\n", "event: token_ids\ndata: [1]\n\n",
				"event: message\n"+event("a"), ": bye\n\n", doneEvent),
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1)}),
		},
		{"[DONE] under a name", answerOf(event("a"), "event: done\n"+doneEvent), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1),
		})},
		{"[DONE] in another form", answerOf(event("a"), "data:  \"[done]\" \n\n"), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1),
		})},
		{"more after [DONE]", answerOf(event("a"), doneEvent, event("b"), `data: {"error":"late"}`+"\n\n", "data: garbage\n\n"), outcome(Result{Content: "a", Chunks: make([]Chunk, 1)})},
		{
			"broken framing after [DONE]", streamHead + framed(event("a"), doneEvent) + "zzz\r\n",
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1)}),
		},
		{"the connection ends after [DONE]", streamHead + framed(event("a"), doneEvent), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1),
		})},
		{"[DONE] alone", answerOf(": hi\n\n", "event: ping\ndata: 1\n\n", doneEvent), ended("", nil,
			malformed("the server's answer is empty: [DONE] came without any chat completion chunk; check the server's log"))},
		{
			"no text, but its end and one token, the end of sequence", answerOf(finish, usageOnly(1), doneEvent),
			outcome(Result{FinishReason: "stop", Usage: &Usage{9, 1, 4, true}, Err: empty("stop")}),
		},
		{"tokens that are not shown", answerOf(finish, usageOnly(7), doneEvent), outcome(Result{
			FinishReason: "stop",
			Usage:        &Usage{9, 7, 4, true},
		})},
		{
			"usage that cannot be true on the last chunk", answerOf(counted("a", 1), counted("b", 1e9), doneEvent),
			outcome(Result{Content: "ab", Chunks: chunksAt([]int{0, 0}, 1, 0), Usage: &Usage{9, 0, 4, true}}),
		},
		{
			"usage before the end is not that of the answer", answerOf(counted("a", 1), event("b"), event("c"), doneEvent),
			outcome(Result{Content: "abc", Chunks: chunksAt([]int{0, 0, 0}, 1, 0, 0), Usage: &Usage{9, 0, 4, true}}),
		},
		{
			"usage of each chunk, not of the answer", answerOf(counted("a", 1), counted("b", 1), usageOnly(1), doneEvent),
			outcome(Result{Content: "ab", Chunks: chunksAt([]int{0, 0}, 1, 0), Usage: &Usage{9, 0, 4, true}}),
		},
		{"usage without a choice", answerOf(usageOnly(7), doneEvent), outcome(Result{
			Usage: &Usage{9, 7, 4, true},
			Err:   empty("missing"),
		})},
		{
			"a message in place of each delta", answerOf(message("a"), message("b"), finish, doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 2), FinishReason: "stop"}),
		},
		{
			"the message after its deltas", answerOf(event("a"), event("b"), message("ab"), doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 2)}),
		},
		{"a byte order mark", answerOf("\uFEFF"+event("a"), event("b"), doneEvent), outcome(Result{
			Content: "ab",
			Chunks:  make([]Chunk, 2),
		})},
		{
			"one event over several HTTP chunks", answerOf(event("a")[:20], event("a")[20:], "data: [DO", "NE]\n\n"),
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1)}),
		},
		{"no blank line, by length", withLength(200, "", event("a")+"data: [DONE]\n"), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1),
		})},
		{
			"no blank line, until the connection ends", closingHead + event("a") + "data: [DONE]\n",
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1)}),
		},
		{"an error object in the stream", answerOf(event("a"), `data: {"error":{"message":"out of memory","type":"server_error"}}`+"\n\n", doneEvent), ended("a", one, streamFailed("out of memory (server_error)"))},
		{"an error by the event's name", answerOf("event: error\n: \"worker lost\"\ndata: worker lost\n\n"), ended("",
			nil, streamFailed("worker lost"))},
		{
			"an error in a comment", answerOf(event("a"), event("b"), "event: error\n: worker lost\n\n", doneEvent),
			ended("ab", two, streamFailed("worker lost")),
		},
		{"an error in a comment, and the end", answerOf(event("a"), "event: error\n: no workers\n\n"), ended("a", one,
			streamFailed("no workers"))},
		{"an error without words", answerOf(event("a"), "event: error\n\n", doneEvent), ended("a", one,
			streamFailed("it gave no reason"))},
		{"a field named error", answerOf(roleOnly, event("a"), `error: {"code":400,"message":"too long"}`+"\n\n", doneEvent), ended("a", one, coded("400", "too long"))},
		{"a field named error that is no JSON", answerOf(event("a"), "error: out of memory\n\n", doneEvent), ended("a",
			one, streamFailed("out of memory"))},
		{"an error under another name", answerOf(event("a"), "event: response.Failed\ndata: {\"why\":7}\n\n", doneEvent), ended("a", one, streamFailed(`{"why":7}`))},
		{"an event that is no chunk, in place of an end", answerOf(event("a"), "data: {\"status\":\"failed\"}\n\n", doneEvent), ended("a", one, streamFailed(`{"status":"failed"}`))},
		{
			"an event that is no chunk, and an end", answerOf(event("a"), "data: {\"type\":\"keepalive\"}\n\n", finish,
				doneEvent),
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1), FinishReason: "stop"}),
		},
		{"lines that are no event, in place of an end", answerOf(event("a"), "<html>\n<h1>502 Bad Gateway</h1>\n",
			"\n</html>\n\n", doneEvent), ended("a", one, streamFailed("<html> <h1>502 Bad Gateway</h1> </html>"))},
		{"an error with a blank line in it", answerOf(event("a"),
			"{\n \"error\": {\n\n  \"message\": \"too long\"\n }\n}\n\n", doneEvent), ended("a", one, streamFailed("too long"))},
		{"lines that are no event, and the end", closingHead + event("a") + "worker lost\n\n", ended("a", one,
			&Error{Class: api.ErrorTruncated, Status: 200, Message: noDone.Message + " (worker lost)"})},
		{
			"a failure that the connection cuts off", streamHead + framed(event("a"), event("b"), finished("error")),
			failedBy("error"),
		},
		{"an error of no form", answerOf(`{"error":{"code":400,"message":"too long"}}`), ended("", nil, coded("400", "too long"))},
		{"an error of no form over several lines after tokens", answerOf(event("a"),
			"{\n \"error\": {\n  \"message\": \"too long\"\n }\n}\n", "\n", doneEvent), ended("a", one,
			streamFailed("too long"))},
		{"an aborted answer", answerOf(event("a"), event("b"), finished("abort"), doneEvent), failedBy("abort")},
		{"an answer that ends by another failure, without [DONE]", answerOf(event("a"), event("b"),
			finished("insufficient_system_resource")), failedBy("insufficient_system_resource")},
		{
			"a failure, then a normal end", answerOf(event("a"), event("b"), finished("error"), finish, doneEvent),
			failedBy("error"),
		},
		{"an end as TGI names it", answerOf(event("a"), finished("eos_token"), doneEvent), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1), FinishReason: "eos_token",
		})},
		{"an end in capitals", answerOf(event("a"), finished("STOP"), doneEvent), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1), FinishReason: "STOP",
		})},
		{"an end without [DONE]", answerOf(event("a"), finish, usageOnly(1)), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1), FinishReason: "stop", Usage: &Usage{9, 1, 4, true},
		})},
		{
			"an end without [DONE] that the connection cuts off", streamHead + framed(event("a"), finish),
			outcome(Result{Content: "a", Chunks: make([]Chunk, 1), FinishReason: "stop", Err: brokeOff}),
		},
		{"a name on every event", answerOf("event: chat.completion.chunk\n"+event("a"), "event: x\n"+finish,
			"event: y\n"+usageOnly(1), doneEvent), outcome(Result{
			Content: "a", Chunks: make([]Chunk, 1),
			FinishReason: "stop", Usage: &Usage{9, 1, 4, true},
		})},
		{"a message under another name is no error", answerOf(event("a"),
			"event: warning\ndata: {\"message\":\"slow\"}\n\n", doneEvent), outcome(Result{
			Content: "a",
			Chunks:  make([]Chunk, 1),
		})},
		{"zeros as usage", answerOf(uncounted("a"), uncounted("b"), finish, doneEvent), outcome(Result{
			Content: "ab",
			Chunks:  make([]Chunk, 2), FinishReason: "stop",
		})},
		{
			"zeros as usage, then counts", answerOf(uncounted("a"), uncounted("b"), finish, usageOnly(2), doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 2), FinishReason: "stop", Usage: &Usage{9, 2, 4, true}}),
		},
		{
			"null in usage", answerOf(event("a"), event("b"), finish, strings.Replace(usageOnly(2), `"completion_tokens":2`, `"completion_tokens":null`, 1), doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 2), FinishReason: "stop", Usage: &Usage{9, 0, 4, true}}),
		},
		{
			"a content of parts", answerOf(part("thinking", "T"), part("text", "a"), event("b"), doneEvent),
			outcome(Result{Content: "ab", Chunks: make([]Chunk, 3)}),
		},
		{"reasoning is no part of the answer", answerOf(delta(`"reasoning_content":"T"`), event("a"), doneEvent), outcome(Result{Content: "a", Chunks: make([]Chunk, 2)})},
		{"reasoning alone", answerOf(delta(`"reasoning":"T","reasoning_content":"T"`), finish, doneEvent), outcome(Result{Chunks: make([]Chunk, 1), FinishReason: "stop"})},
		{"the stream ends without [DONE]", answerOf(event("a"), event("b")), ended("ab", two, noDone)},
		{"the connection ends without [DONE]", closingHead + event("a"), ended("a", one, noDone)},
		{"the connection is cut between chunks", streamHead + framed(event("a")), ended("a", one, brokeOff)},
		{"the connection is cut in a chunk", streamHead + framed(event("a")) + "ff\r\n" + event("b")[:20], ended("a",
			one, brokeOff)},
		{"an unmeasured body is cut in an event", closingHead + event("a") + event("b")[:20], ended("a", one, noDone)},
		{"an event that is no JSON", answerOf(event("a"), "data: lorem ipsum\n\n", doneEvent), ended("a", one,
			malformed("an event of the stream is not a chat completion chunk (lorem ipsum); is target.url the "+
				"address of an OpenAI-compatible API?"))},
		{"no events at all", answerOf("lorem ipsum\n", "dolor\n\n"), ended("", nil,
			malformed("the server's answer is not a stream of events (lorem ipsum dolor); is target.url the address "+
				"of an OpenAI-compatible API?"))},
		{"comments alone are a stream", answerOf(": ping\n\n"), ended("", nil, noDone)},
		{"an empty stream", answerOf(), ended("", nil, noDone)},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, pieces := range everyCut(row.in) {
				r, _ := replay(t, Request{}, io.EOF, pieces...)
				if got := outcome(r); got != row.want {
					t.Fatalf("cut %d: got  %s\nwant %s", i, got, row.want)
				}
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
			if got := outcome(r); got != want {
				t.Fatalf("%s, cut %d: got  %s\nwant %s", name, i, got, want)
			}
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

// Answers together hold no more text than their budget, and a failed one holds nothing.
func TestTextBudget(t *testing.T) {
	t.Parallel()
	texts := NewTextBudget(5)
	ask := func(text string) Result {
		r, _ := replay(t, Request{Texts: texts}, io.EOF, answerOf(event(text), doneEvent))
		return r
	}
	if r := ask("abc"); !r.OK() {
		t.Fatalf("3 of 5 bytes: %s", outcome(r))
	}
	wantError(t, ask("def").Err, api.ErrorOverrun, "target.answer_memory")
	if r := ask("de"); !r.OK() {
		t.Errorf("2 more bytes: %s", outcome(r))
	}
	texts.Release(5)
	if r := ask("abcde"); !r.OK() {
		t.Errorf("5 bytes of an empty budget: %s", outcome(r))
	}
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
	for _, row := range []struct{ maxTokens, sent, kept int }{
		{100, 400, 400},
		{100, 5000, 401},
		{1, 64, 64},
		{1, 5000, 65}, // a probe, of a server that ignores max_tokens
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
		if got := outcome(r); got != ended("", nil, want) {
			t.Errorf("%s: got %s", name, got)
		}
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
		if !slices.Equal(got, row.want) {
			t.Errorf("got %v, want %v of %s", got, row.want, row.in)
		}
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
	comments := func(c net.Conn) {
		for after(c, time.Second, framed(": ping\n\n")) == nil {
		}
	}
	repeatedly := func(what string) func(net.Conn) {
		return func(c net.Conn) {
			for err := after(c, 0, streamHead+framed(event("a"))); err == nil; err = after(c, time.Second, framed(what)) {
			}
		}
	}
	silence := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for _, row := range []struct {
		name  string
		serve func(net.Conn)
		class api.ErrorClass // "": none
		at    time.Duration
	}{
		{"nothing comes", silence, api.ErrorTimeout, 120 * time.Second},
		{
			"half a head comes", func(c net.Conn) { _ = after(c, 0, "HTTP/1.1 20"); silence(c) }, api.ErrorTimeout,
			120 * time.Second,
		},
		{
			"a role comes", func(c net.Conn) { _ = after(c, 0, streamHead+framed(roleOnly)); silence(c) },
			api.ErrorTimeout, 120 * time.Second,
		},
		{"roles come for ever", func(c net.Conn) {
			for err := after(c, 0, streamHead); err == nil; err = after(c, time.Second, framed(roleOnly)) {
			}
		}, api.ErrorTimeout, 120 * time.Second},
		{
			"comments come for ever", func(c net.Conn) { _ = after(c, 0, streamHead); comments(c) }, api.ErrorTimeout,
			120 * time.Second,
		},
		{"a token comes at the last moment", func(c net.Conn) {
			_ = after(c, 120*time.Second-1, answerOf(event("a"), doneEvent))
		}, "", 120*time.Second - 1},
		{"silence after a token", func(c net.Conn) {
			_ = after(c, 200*time.Millisecond, streamHead+framed(event("a")))
			_ = after(c, 25*time.Millisecond, framed(event("b")))
			silence(c)
		}, api.ErrorStall, 30225 * time.Millisecond},
		{"silence after the finish reason", func(c net.Conn) {
			_ = after(c, time.Second, streamHead+framed(event("a"), `data: {"choices":[{"finish_reason":"stop"}]}`+"\n\n"))
			silence(c)
		}, "", time.Second + endFor},
		{"silence after a late token", func(c net.Conn) {
			_ = after(c, 119*time.Second,
				streamHead+framed(event("a")))
			silence(c)
		}, api.ErrorStall, 149 * time.Second},
		{
			"comments after a token", func(c net.Conn) { _ = after(c, 0, streamHead+framed(event("a"))); comments(c) },
			api.ErrorStall, 30 * time.Second,
		},
		{"half an event after a token", func(c net.Conn) {
			_ = after(c, 0, streamHead+framed(event("a")))
			for after(c, time.Second, framed("x")) == nil {
			}
		}, api.ErrorStall, 30 * time.Second},
		{"empty deltas after a token", repeatedly(roleOnly), api.ErrorStall, 30 * time.Second},
		{"events of other kinds after a token", repeatedly("event: ping\ndata: {}\n\n"), api.ErrorStall, 30 * time.Second},
		{"tokens for ever", repeatedly(event("a")), api.ErrorOverrun, 10 * time.Minute},
		{"usage for ever", repeatedly(`data: {"choices":[],"usage":{"completion_tokens":1}}` + "\n\n"), api.ErrorOverrun, 10 * time.Minute},
		{"slow and steady for ten minutes", func(c net.Conn) {
			_ = after(c, 0, streamHead)
			for range 20 {
				_ = after(c, 30*time.Second-1, framed(event("a")))
			}
			_ = after(c, 0, framed(doneEvent)+lastChunk)
		}, "", 20 * (30*time.Second - 1)},
		{"the response never ends after [DONE]", func(c net.Conn) {
			_ = after(c, time.Second,
				streamHead+framed(event("a"), doneEvent))
			silence(c)
		}, "", time.Second + drainFor},
		{"a status comes, and half its reason", func(c net.Conn) {
			_ = after(c, 0, "HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nwhy")
			silence(c)
		}, api.ErrorHTTP5xx, 120 * time.Second},
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
			if !r.OK() {
				t.Errorf("after %v: %s", r.Ended.Sub(r.Sent), outcome(r))
			}
			await.Advance(100 * time.Second)
		}
		if dials != 1 {
			t.Errorf("%d connections", dials)
		}
		c.Close()
		near.Close()
		server.Wait()
	})
}
