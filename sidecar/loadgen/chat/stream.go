package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

const (
	// drainFor bounds the wait for the response's end after [DONE], without which
	// the connection could not be used again.
	drainFor = 250 * time.Millisecond
	// endFor bounds the wait for usage and [DONE] after a finish reason, which some servers never
	// send: they hold the connection open.
	endFor = 2 * time.Second
	// maxErrorBody is what is kept of the body of an error.
	maxErrorBody = 16 << 10
	// maxText, leastText and tokenText bound the text of one answer in bytes: tokenText for each
	// of max_tokens, which is more than the longest token of the vocabularies in use, but at least
	// leastText and at most maxText.
	maxText   = 8 << 20
	leastText = 64 << 10
	tokenText = 256
	// overMax is how many chunks and tokens for each of max_tokens end an answer: some
	// servers send chunks without text, and none needs this many.
	overMax = 4
	// leastMax is what max_tokens counts as at least: a server that ignores it may still
	// answer the probe, which asks for one token.
	leastMax = 16
)

// phase is what a stream waits for; each has its limit.
type phase = int32

const (
	connecting phase = iota
	waiting          // for the first content chunk
	streaming
	finishing // a finish reason came, [DONE] has not
	draining  // [DONE] came
)

// The causes of a context that a limit has ended.
var (
	errConnectTimeout = fmt.Errorf("connecting: %w", context.DeadlineExceeded)
	errFirstToken     = errors.New("no first token in time")
	errStall          = errors.New("the stream stalls")
	errTurn           = errors.New("the answer does not end in time")
	errDrained        = errors.New("the response goes on after the end of the answer")
)

// stream is one request's answer in the making. Its goroutine alone touches it,
// but for the atomics: the watchdog reads them, and the connection writes them,
// whose first reads of a response are on a goroutine of the library's.
type stream struct {
	req    Request
	res    Result
	live   *Live
	dog    *watchdog
	conn   *conn
	reused bool // it had carried a request before
	status int  // of the response, 0 before it comes
	header http.Header
	events bool // a 200 whose body is a stream of events
	sse    sseReader
	prompt promptIDs

	buf        *[bufferSize]byte // into which the body is being read, else nil
	fed        int               // bytes of buf that have been taken
	at         time.Duration     // of the read at hand, since sent
	completion int               // usage.completion_tokens as of the last content chunk
	untold     bool              // that chunk carried no usage
	text       int               // bytes of content so far
	chunks     int               // so far, empty ones too
	begun      bool              // an event came that is a chunk, or should be
	choices    bool              // a choice came
	deltas     bool              // content came in a delta
	ending     bool              // the body has ended; what it left is looked at
	done       bool              // [DONE] came, or the end after a finish reason
	stray      []byte            // what came that is neither a chunk nor an error for certain, at most maxAside
	fail       *Error
	errBody    []byte // of a failed response, or the event that reports an error

	stamp    atomic.Int64 // of the connection's last read, ns since sent
	received atomic.Int64 // bytes that the connection brought
	broken   atomic.Bool  // the connection ended or failed
	phase    atomic.Int32
	progress atomic.Int64 // of the last event that carried something, ns since sent
}

func newStream(req Request) *stream {
	s := &stream{req: req, live: req.Live}
	if s.live == nil {
		s.live = new(Live)
	}
	s.res.Sent = time.Now()
	s.res.Chunks = make([]Chunk, 0, 64)
	s.live.start(s.res.Sent)
	s.sse.event, s.sse.text = s.event, s.strayText
	if req.OnPrompt != nil {
		s.prompt.most = maxPromptIDs(req.Messages)
		s.sse.prompt = s.prompt.read
	}
	return s
}

// connected takes note of the connection, before anything is sent over it.
func (s *stream) connected(info httptrace.GotConnInfo) {
	if s.conn != nil {
		s.conn.stream.CompareAndSwap(s, nil)
	}
	s.conn, s.reused = stamping(info.Conn), info.Reused
	s.received.Store(0)
	s.broken.Store(false)
	s.conn.stream.Store(s)
	s.phase.Store(waiting)
}

// arrived is called by the connection when a read returns.
func (s *stream) arrived(n int, err error) {
	if n > 0 {
		s.stamp.Store(int64(time.Since(s.res.Sent)))
		s.received.Add(int64(n))
	}
	if err != nil {
		s.broken.Store(true)
	}
}

// stale says that the connection was a kept one and ended before anything came.
func (s *stream) stale(ctx context.Context) bool {
	return s.reused && s.received.Load() == 0 && ctx.Err() == nil
}

// noResponse explains why there is no response.
func (s *stream) noResponse(ctx context.Context, c *Client, err error) *Error {
	switch {
	case s.expired(ctx, c.opts) != nil:
		return s.expired(ctx, c.opts)
	case s.conn == nil:
		if errors.Is(context.Cause(ctx), errConnectTimeout) {
			err = errConnectTimeout
		}
		return connectError(c.base.Host, err)
	case s.broken.Load() || ctx.Err() != nil:
		return answerError(err)
	}
	return notHTTP(err)
}

// expired explains the limit that was passed; nil where none was.
func (s *stream) expired(ctx context.Context, o Options) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errFirstToken):
		return &Error{Class: api.ErrorTimeout, Message: "no first token within " + o.FirstTokenTimeout.String() + "; the server is overloaded or hung, or target.first_token_timeout is too short"}
	case errors.Is(cause, errStall):
		return &Error{Class: api.ErrorStall, Message: "the stream fell silent for " + o.StallTimeout.String() + " in mid-answer; the worker may have died, or target.stall_timeout is too short"}
	case errors.Is(cause, errTurn):
		return &Error{Class: api.ErrorOverrun, Message: "the answer had not ended after " + o.TurnTimeout.String() + "; the server is too slow for max_tokens or never ends an answer, or target.turn_timeout is too short"}
	}
	return nil
}

func unreadable(why string) *Error {
	return &Error{Class: api.ErrorMalformed, Message: "the server's answer cannot be read: " + why + "; is target.url the address of an OpenAI-compatible API?"}
}

// read takes the response until its end or a fault.
func (s *stream) read(ctx context.Context, o Options, res *http.Response) {
	defer res.Body.Close()
	defer s.sse.release()
	s.status, s.header = res.StatusCode, res.Header
	s.events = s.status == http.StatusOK && isStream(res.Header.Get("Content-Type"))
	var err error
	if s.events {
		err = s.readEvents(res.Body)
	} else {
		s.errBody, err = io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // enough to say what is wrong
		s.errBody = bytes.TrimPrefix(s.errBody, byteOrderMark)
	}
	switch {
	case s.done || s.fail != nil || err != nil && s.failedReason(): // how the answer ended is known; only its connection is spoilt
	case err == nil:
		s.ending = true
		s.feedError(s.sse.finish())
		s.done = s.done || s.finished()
		if !s.done && s.fail == nil && s.status == http.StatusOK {
			s.fail = s.expired(ctx, o) // a server may end the answer when it is told, over TLS, that nobody waits
		}
	case s.status != http.StatusOK: // its explanation alone is cut off
	case s.finished() && errors.Is(context.Cause(ctx), errDrained): // the server keeps the connection open
		s.done = true
	case s.expired(ctx, o) != nil:
		s.fail = s.expired(ctx, o)
	case s.broken.Load() || ctx.Err() != nil:
		s.fail = s.truncated("the answer was cut off before its end ([DONE]); the server or a proxy closed the connection")
	default:
		s.fail = unreadable("the response's chunked framing is broken")
	}
}

// finished reports whether a finish reason came, which ends an answer.
func (s *stream) finished() bool { return s.events && s.res.FinishReason != "" }

// isStream says whether a content type is that of server-sent events. Some
// servers forget it, so only a plainly different type counts as no stream.
func isStream(contentType string) bool {
	t := strings.ToLower(contentType)
	return t == "" || strings.HasPrefix(t, "text/event-stream") || strings.HasPrefix(t, "text/plain")
}

// maxPromptIDs bounds the ids of a prompt by its text: no token is shorter than a byte, but
// for those with which a chat template surrounds the messages.
func maxPromptIDs(messages []openai.ChatCompletionMessage) int {
	const template = 1 << 10
	most := template
	for i := range messages {
		most += len(messages[i].Content) + template/16
	}
	return most
}

// unread fills a buffer before the body is read into it: a byte that UTF-8 never has.
const (
	unread     = 0xff
	bufferSize = 1 << 10
)

var blank = [bufferSize]byte(bytes.Repeat([]byte{unread}, bufferSize))

// readEvents reads the body to its end, and takes its events.
func (s *stream) readEvents(body io.Reader) error {
	buf := blank
	s.buf = &buf
	defer func() { s.buf = nil }()
	for s.fail == nil {
		s.fed = 0
		n, err := body.Read(buf[:])
		s.feed(buf[s.fed:n])
		copy(buf[:n], blank[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush takes what the body has put into the buffer so far. The connection calls it
// before each read: a body in HTTP chunks reads on as long as a chunk is not
// complete, and what it has already would get the next read's time.
func (s *stream) flush() {
	if s.buf == nil {
		return
	}
	if n := bytes.IndexByte(s.buf[s.fed:], unread); n > 0 {
		s.feed(s.buf[s.fed : s.fed+n])
		s.fed += n
	}
}

// feed takes a piece of the body, all of which one read of the connection brought.
func (s *stream) feed(p []byte) {
	s.at = time.Duration(s.stamp.Load())
	s.feedError(s.sse.feed(p))
}

func (s *stream) feedError(err error) {
	if err != nil && s.fail == nil && !s.done {
		s.fail = unreadable(err.Error())
	}
}

// event takes one event of the stream.
func (s *stream) event(name string, data []byte) {
	if name == promptEvent && s.req.OnPrompt != nil {
		if ids := s.prompt.take(); ids != nil {
			s.req.OnPrompt(ids)
		}
	}
	if s.done || s.fail != nil || len(data) == 0 && !isError(name) {
		return
	}
	if isDone(data) {
		s.end()
		return
	}
	c, err := decodeChunk(data)
	if ofAnotherKind(name, c, err) {
		return
	}
	s.begun = s.begun || !c.unknown
	switch {
	case isError(name) || c.isError:
		s.fail, s.errBody = streamError(c, data), bytes.Clone(data)
	case c.unknown:
		s.stray = appendLine(s.stray, data)
	case err != nil && s.ending: // cut off, and so is [DONE]
	case err != nil:
		s.fail = &Error{Class: api.ErrorMalformed, Status: 200, Message: "an event of the stream is not a chat completion chunk (" + clip(string(data)) + "); is target.url the address of an OpenAI-compatible API?"}
	default:
		s.take(c)
	}
}

// isDone reports whether the data is [DONE], also in lower case or in quotes.
func isDone(data []byte) bool {
	return len(data) < maxUnread && bytes.EqualFold(bytes.Trim(data, "\" \t"), []byte("[DONE]"))
}

// ofAnotherKind reports whether the event is none of the answer's: a name that is not known does
// not make it one.
func ofAnotherKind(name string, c chunk, err error) bool {
	return limit(name) < maxEvent && (err != nil || !c.choices && c.usage == nil && !c.errMember)
}

// end takes [DONE].
func (s *stream) end() {
	if s.done = s.begun; !s.done {
		s.fail = &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server's answer is empty: [DONE] came without any chat completion chunk" + s.words() + "; check the server's log"}
		return
	}
	s.dog.wait(s, draining, drainFor)
}

// strayText takes lines that are no fields of an event. A server that fails may write its error
// without the form of one.
func (s *stream) strayText(lines []byte) {
	if c, err := decodeChunk(lines); err == nil && c.isError && s.fail == nil && !s.done {
		s.fail = streamError(c, lines)
	}
	s.stray = appendLine(s.stray, lines)
}

// words is what came beside the chunks, in parentheses; "" for nothing.
func (s *stream) words() string {
	if len(s.stray) == 0 {
		return ""
	}
	return " (" + excerpt(s.stray) + ")"
}

func (s *stream) truncated(message string) *Error {
	return &Error{Class: api.ErrorTruncated, Status: s.status, Message: message + s.words()}
}

func streamError(c chunk, data []byte) *Error {
	message := c.errMessage
	if message == "" {
		message = string(data)
	}
	if message == "" {
		message = "it gave no reason"
	}
	if c.errType != "" {
		message += " (" + c.errType + ")"
	}
	return &Error{Class: api.ErrorStream, Status: 200, Code: c.errCode, Message: "the server reported an error inside its answer: " + clip(message)}
}

// normalEnds are the finish reasons of an answer that ended as it should: those of the OpenAI
// API, and what engines and gateways call the same: an end-of-sequence token, a stop sequence,
// the limit of tokens, a call of a tool.
var normalEnds = map[string]bool{
	"stop": true, "length": true, "tool_calls": true, "function_call": true, "content_filter": true,
	"eos": true, "eos_token": true, "stop_sequence": true, "end_turn": true,
	"max_tokens": true, "model_length": true, "tool_use": true,
}

// failedReason reports whether the finish reason is not one of [normalEnds].
func (s *stream) failedReason() bool {
	return s.res.FinishReason != "" && !normalEnds[strings.ToLower(s.res.FinishReason)]
}

// verdict gives the fault of an answer that came to its end; nil where it is whole. One token
// may be the end of the answer itself, which has no text. Without a finish reason, words that are
// no chunk are why the answer ended.
func (s *stream) verdict() *Error {
	r := &s.res
	n, _ := r.OutputTokens()
	switch {
	case s.failedReason():
		return streamError(chunk{errMessage: "finish_reason " + r.FinishReason}, nil)
	case r.FinishReason == "" && len(s.stray) > 0:
		return streamError(chunk{errMessage: excerpt(s.stray)}, nil)
	case len(r.Chunks) == 0 && (n <= 1 || !s.choices) && s.req.MaxTokens != 1:
		return &Error{Class: api.ErrorEmpty, Status: 200, Message: "the answer ended without any content (finish_reason " +
			cmp.Or(r.FinishReason, "missing") + "); check the server's log and its chat template"}
	}
	return nil
}

// take adds what one chunk says to the result.
func (s *stream) take(c chunk) {
	if c.content || c.finishReason != "" || c.usage != nil {
		s.progress.Store(int64(s.at))
	}
	if c.finishReason != "" {
		if !s.failedReason() {
			s.res.FinishReason = c.finishReason // one that reports a fault stays
		}
		s.dog.wait(s, finishing, endFor)
	}
	s.choices = s.choices || c.choices
	s.deltas = s.deltas || c.content
	if c.whole != "" && !s.deltas {
		c.text, c.content, c.answer = c.whole, true, true
	}
	if c.worker != 0 {
		s.res.Worker = c.worker
	}
	if c.timing != (Timing{}) {
		s.res.Timing = c.timing
	}
	if c.content {
		s.content(c)
		if s.res.Usage != nil {
			s.res.Usage.Completion = 0 // the count was not yet that of the whole answer
		}
	}
	if c.usage != nil {
		s.res.Usage = s.res.Usage.updated(c.usage)
	}
	s.chunks++
	s.fail = cmp.Or(s.fail, s.overrun())
}

// content records a content chunk. It tells its tokens where every content
// chunk carries usage: those that usage has grown by since the one before. Usage
// on the last content chunk alone counts the whole answer and tells nothing.
func (s *stream) content(c chunk) {
	tokens := 0
	counted := c.usage != nil && c.usage.Completion > 0
	if counted {
		if !s.untold {
			tokens = max(0, c.usage.Completion-s.completion)
		}
		s.completion = c.usage.Completion
	}
	s.untold = !counted
	if c.answer && s.res.FirstAnswer == 0 {
		s.res.FirstAnswer = s.at
	}
	s.res.Chunks = append(s.res.Chunks, Chunk{At: s.at, Tokens: int32(min(tokens, 1<<20))})
	s.phase.CompareAndSwap(waiting, streaming)
	if s.fail = s.takeText(len(c.text) + len(c.reasoning)); s.fail != nil {
		return
	}
	s.live.add(s.at, c)
	if s.req.OnChunk != nil {
		s.req.OnChunk(max(1, tokens))
	}
}

// takeText counts n more bytes of text, or explains the limit that they would pass.
func (s *stream) takeText(n int) *Error {
	switch most := maxTextOf(s.req.MaxTokens); {
	case s.text+n > most:
		return &Error{Class: api.ErrorOverrun, Status: 200, Message: fmt.Sprintf("the answer had more than %d KiB of text, although max_tokens was %d; the server ignores it; check its settings", most>>10, s.req.MaxTokens)}
	case !s.req.Texts.take(n):
		return &Error{Class: api.ErrorOverrun, Status: 200, Message: "all answers together hold more text than target.answer_memory allows; raise it, or run fewer conversations or shorter answers"}
	}
	s.text += n
	return nil
}

// maxTextOf bounds the text of an answer of at most so many tokens; 0: of any number.
func maxTextOf(maxTokens int) int {
	if maxTokens == 0 {
		return maxText
	}
	return min(maxText, max(leastText, tokenText*maxTokens))
}

// overrun explains the limit of an answer's size that was passed; nil where none was.
func (s *stream) overrun() *Error {
	switch n, most := max(s.chunks, s.completion), overMax*max(s.req.MaxTokens, leastMax); {
	case s.req.MaxTokens > 0 && n > most:
		return &Error{Class: api.ErrorOverrun, Status: 200, Message: fmt.Sprintf("the answer had more than %d chunks or tokens, although max_tokens was %d; the server ignores it; check its settings", most, s.req.MaxTokens)}
	}
	return nil
}

// result closes the book: what the whole exchange was.
func (s *stream) result(ctx context.Context, of requested) Result {
	r := &s.res
	r.Ended = r.Sent.Add(time.Since(r.Sent)) // a turn takes no hour because the machine's time was set in its middle
	r.Content = s.live.answer()
	if u := r.Usage; u != nil && u.Completion < len(r.Chunks) {
		if u.Completion = 0; *u == (Usage{}) { // a count per chunk, or of something else
			r.Usage = nil
		}
	}
	switch {
	case s.fail != nil:
		r.Err = s.fail
	case s.done || s.failedReason():
		r.Err = s.verdict()
	default:
		r.Err = s.incomplete(of)
	}
	if r.Err != nil && ctx.Err() != nil {
		r.Err, r.Cancelled = nil, true
	}
	if r.OK() {
		s.text -= len(r.Content)
	}
	s.req.Texts.Release(s.text)
	return *r
}

// incomplete explains a response that ended by itself without [DONE].
func (s *stream) incomplete(of requested) *Error {
	answer, err := decodeChunk(s.errBody)
	switch {
	case s.status != 200:
		return statusError(s.status, s.header, excerpt(s.errBody), of)
	case !s.events && err == nil && answer.isError:
		return streamError(answer, s.errBody)
	case !s.events:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server did not stream: it sent " + clip(s.header.Get("Content-Type")) + " (" + excerpt(s.errBody) + "); is target.url the address of an OpenAI-compatible API?"}
	case len(s.stray) > 0 && !s.begun:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server's answer is not a stream of events" + s.words() + "; is target.url the address of an OpenAI-compatible API?"}
	}
	return s.truncated("the answer ended without [DONE]; the server or a proxy cut it off")
}

// watchdog ends a stream that passes a limit. It sleeps until the limit could
// be passed at the earliest and looks again then, so that a chunk costs it nothing.
type watchdog struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (c *Client) watch(s *stream, cancel context.CancelCauseFunc) *watchdog {
	d := new(watchdog)
	s.dog = d
	d.mu.Lock()
	defer d.mu.Unlock()
	first := min(c.opts.ConnectTimeout, c.opts.FirstTokenTimeout, c.opts.StallTimeout, c.opts.TurnTimeout)
	d.timer = time.AfterFunc(first, func() { d.look(c.opts, s, cancel) })
	return d
}

// look ends the stream if a limit has passed, else sets the timer anew. Before the
// first token it comes back after StallTimeout at the latest: the token may come
// at once, and the stall begin then.
func (d *watchdog) look(o Options, s *stream, cancel context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	now, last := time.Since(s.res.Sent), time.Duration(s.progress.Load())
	left, why := o.FirstTokenTimeout-now, errFirstToken
	switch s.phase.Load() {
	case connecting:
		if dial := o.ConnectTimeout - now; dial < left {
			left, why = dial, errConnectTimeout
		}
	case streaming:
		left, why = o.StallTimeout-(now-last), errStall
	case finishing:
		left, why = endFor-(now-last), errDrained
	case draining:
		left, why = drainFor-(now-last), errDrained
	}
	if whole := o.TurnTimeout - now; whole < left {
		left, why = whole, errTurn
	}
	if left <= 0 {
		cancel(why)
		return
	}
	d.timer.Reset(min(left, o.StallTimeout))
}

// wait sets the limit of the wait in a phase after the end of the answer.
func (d *watchdog) wait(s *stream, p phase, limit time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.phase.Swap(p) != p {
		s.progress.Store(int64(time.Since(s.res.Sent)))
		d.timer.Reset(limit)
	}
}

// stop ends the watch.
func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
}
