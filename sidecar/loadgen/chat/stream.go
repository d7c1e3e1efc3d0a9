package chat

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
)

const (
	// drainFor limits the wait for the end of the response after [DONE]. A connection can be reused only after that
	// end.
	drainFor = 250 * time.Millisecond
	// endFor limits the wait for usage and [DONE] after a finish reason. Some servers never send them and keep the
	// connection open.
	endFor = 2 * time.Second
	// maxErrorBody limits the kept part of an error's body.
	maxErrorBody = 16 << 10
	// maxText, leastText and tokenText limit the text of one answer in bytes: tokenText for each of max_tokens, more
	// than the longest token of the vocabularies in use, but at least leastText and at most maxText.
	maxText   = 8 << 20
	leastText = 64 << 10
	tokenText = 256
	// overMax and overChunks times max_tokens are the numbers of tokens and of content chunks that end an answer. Some
	// servers send a chunk for each character.
	overMax    = 4
	overChunks = 16
	// mostEmpty limits the chunks without text of an answer. Some servers send them while the model reasons.
	mostEmpty = 1 << 16
	// leastMax is the minimum of max_tokens in that product, so that a server that ignores max_tokens can still answer
	// the probe, which requests one token.
	leastMax = 16
)

// phase is the event that a stream waits for. Each phase has its own timeout.
type phase = int32

const (
	connecting phase = iota
	waiting          // for the first content chunk
	streaming
	finishing // between a finish reason and [DONE]
	draining  // after [DONE]
)

// Causes of a context that a timeout canceled.
var (
	errConnectTimeout = fmt.Errorf("connecting: %w", context.DeadlineExceeded)
	errFirstToken     = errors.New("no first token in time")
	errStall          = errors.New("the stream stalls")
	errTurn           = errors.New("the answer does not end in time")
	errDrained        = errors.New("the response goes on after the end of the answer")
)

// stream is one request with its answer in progress. Only its own goroutine uses it, except for the atomics: the
// watchdog reads them, and the connection writes them, also on net/http's goroutine that reads the head of the
// response.
type stream struct {
	req        Request
	res        Result
	live       *Live
	dog        *watchdog
	conn       *conn
	reused     bool // the connection carried an earlier request
	status     int  // of the response, 0 before its head
	header     http.Header
	instance   uint64 // Dynamo's, in the last chunk that had one
	workerFrom string // as in [Recognized]
	events     bool   // status 200 and a body of server-sent events
	sse        sseReader
	prompt     promptIDs
	pattern    pattern

	buf        *[bufferSize]byte // the buffer of a body read in progress, else nil
	fed        int               // parsed bytes of buf
	at         time.Duration     // of the current read, since sent
	usage      *counts           // nil before a report
	completion int               // usage.completion_tokens as of the last content chunk
	uncounted  bool              // the last content chunk had no usage
	memory     int               // reserved in the budget for text and chunks
	fell       bool              // completion was once less than before
	seen       streamed          // without chunks
	empty      int               // chunks without text so far
	begun      bool              // an event that is a chunk, or should be, arrived
	deltas     bool              // content arrived in a delta
	ending     bool              // the body ended; its rest is being parsed
	done       bool              // [DONE], or the end after a finish reason
	stray      []byte            // text that is neither a chunk nor certainly an error, at most maxNonData
	fail       *Error
	errBody    []byte // of a failed response, or the event that reports an error

	stamp    atomic.Int64 // of the connection's last read, ns since sent
	received atomic.Int64 // bytes read from the connection
	broken   atomic.Bool  // the connection ended or failed
	phase    atomic.Int32
	progress atomic.Int64 // of the last non-empty event, ns since sent
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

// connected sets the connection before the request is sent.
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

// arrived records a read. The connection calls it when the read returns.
func (s *stream) arrived(n int, err error) {
	if n > 0 {
		s.stamp.Store(int64(time.Since(s.res.Sent)))
		s.received.Add(int64(n))
	}
	if err != nil {
		s.broken.Store(true)
	}
}

// stale reports whether a reused connection ended before it delivered a byte.
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

// expired explains the timeout that passed, or returns nil.
func (s *stream) expired(ctx context.Context, o Options) *Error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errFirstToken):
		return &Error{Class: api.ErrorTimeout, Message: "no first token within " + o.FirstTokenTimeout.String() +
			"; the server is overloaded or hung, or target.first_token_timeout is too short"}
	case errors.Is(cause, errStall):
		return &Error{Class: api.ErrorStall, Message: "the stream fell silent for " + o.StallTimeout.String() +
			" in mid-answer; the worker may have exited, or target.stall_timeout is too short"}
	case errors.Is(cause, errTurn):
		return &Error{Class: api.ErrorOverrun, Message: "the answer had not ended " +
			"after " + o.TurnTimeout.String() + "; the server is too slow for max_tokens or never ends an answer, or " +
			"target.turn_timeout is too short"}
	}
	return nil
}

func unreadable(why string) *Error {
	return &Error{Class: api.ErrorMalformed, Message: "the server's answer cannot be " +
		"read: " + why + "; is target.url the address of an OpenAI-compatible API?"}
}

// read parses the response until its end or an error.
func (s *stream) read(ctx context.Context, o Options, res *http.Response) {
	defer res.Body.Close()
	defer s.sse.release()
	s.status, s.header = res.StatusCode, res.Header
	s.takeHeaders(o)
	s.events = s.status == http.StatusOK && isStream(res.Header.Get("Content-Type"))
	body, err := plainBody(res)
	switch {
	case err != nil:
	case s.events:
		err = s.readEvents(body)
	default:
		s.errBody, err = io.ReadAll(io.LimitReader(body, maxErrorBody))
		s.errBody = bytes.TrimPrefix(s.errBody, byteOrderMark)
	}
	switch {
	// The answer's end is known; only the connection failed.
	case s.done || s.fail != nil || err != nil && s.failedReason():
	case err == nil:
		s.ending = true
		s.feedError(s.sse.finish())
		s.done = s.done || s.finished()
		if !s.done && s.fail == nil && s.status == http.StatusOK {
			s.fail = s.expired(ctx, o) // over TLS, a server may end the answer when the request is canceled
		}
	case s.status != http.StatusOK: // only its explanation is incomplete
	case s.finished() && errors.Is(context.Cause(ctx), errDrained): // the server keeps the connection open
		s.done = true
	case errors.As(err, new(codingError)):
		s.fail = unreadable(err.Error())
	case s.expired(ctx, o) != nil:
		s.fail = s.expired(ctx, o)
	case s.broken.Load() || ctx.Err() != nil:
		s.fail = s.truncated("the answer was cut off before its end ([DONE]); the server or a proxy closed the " +
			"connection")
	default:
		s.fail = unreadable("the response's chunked framing is broken")
	}
}

// codingError describes a content coding that cannot be removed.
type codingError string

// Error returns the message.
func (e codingError) Error() string { return string(e) }

// plainBody returns a reader of the response without its content coding. No request asks for one, but some proxies
// apply one anyway. A [codingError] names a coding other than gzip, and one that is broken.
func plainBody(res *http.Response) (io.Reader, error) {
	switch coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
		return res.Body, nil
	case "gzip", "x-gzip":
		zipped, err := gzip.NewReader(res.Body)
		return gzipReader{zipped}, gzipError(err)
	default:
		return nil, codingError("it has the content coding " + clip(coding) + ", which the request does not ask for; turn " +
			"compression off in the server or proxy")
	}
}

type gzipReader struct{ zipped *gzip.Reader }

// Read implements [io.Reader].
func (r gzipReader) Read(p []byte) (int, error) {
	n, err := r.zipped.Read(p)
	return n, gzipError(err)
}

// gzipError returns err as a [codingError] if the compressed data is invalid.
func gzipError(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return codingError("its gzip coding is broken; turn compression off in the server or proxy")
	}
	return err
}

// takeHeaders reads the worker and the session's token from the response's headers.
func (s *stream) takeHeaders(o Options) {
	for _, name := range o.WorkerHeaders {
		if v := s.header.Get(name); v != "" {
			s.setWorker(workerName(v), name)
			break
		}
	}
	if o.Session.Kind == SessionReturned {
		s.res.Token = s.header.Get(o.Session.Name)
	}
}

// setWorker sets the worker and by what it is known, unless it is. A header precedes the stream.
func (s *stream) setWorker(name, from string) {
	if s.res.Worker == "" {
		s.res.Worker, s.workerFrom = name, from
		s.live.setWorker(name)
	}
}

// workerName returns the value of a header as a worker's name: of a URL, its host and port.
func workerName(v string) string {
	if _, rest, found := strings.Cut(v, "://"); found {
		v, _, _ = strings.Cut(rest, "/")
	}
	return clip(v)
}

// finished reports whether a finish reason, which ends an answer, arrived.
func (s *stream) finished() bool { return s.events && s.res.FinishReason != "" }

// isStream reports whether a content type is that of server-sent events. Some servers omit it, so only a clearly
// different type counts as no stream.
func isStream(contentType string) bool {
	t := strings.ToLower(contentType)
	return t == "" || strings.HasPrefix(t, "text/event-stream") || strings.HasPrefix(t, "text/plain")
}

// maxPromptIDs returns the maximum number of token ids of a prompt. A token has at least one byte, except for those
// that a chat template adds to the messages.
func maxPromptIDs(messages []Message) int {
	const template = 1 << 10
	most := template
	for i := range messages {
		most += len(messages[i].Text) + bpeWords.size(messages[i].Segments) + template/16
	}
	return most
}

// unread fills a buffer before a read of the body. UTF-8 never contains this byte.
const (
	unread     = 0xff
	bufferSize = 1 << 10
)

var blank = [bufferSize]byte(bytes.Repeat([]byte{unread}, bufferSize))

// readEvents reads the body to its end and parses its events.
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

// flush parses the bytes that the body has put into the buffer so far. The connection calls it before each read: the
// reader of an incomplete HTTP chunk continues reading, and earlier bytes would get the time of the later read.
func (s *stream) flush() {
	if s.buf == nil {
		return
	}
	if n := bytes.IndexByte(s.buf[s.fed:], unread); n > 0 {
		s.feed(s.buf[s.fed : s.fed+n])
		s.fed += n
	}
}

// feed parses a piece of the body that one read of the connection delivered.
func (s *stream) feed(p []byte) {
	s.at = time.Duration(s.stamp.Load())
	s.feedError(s.sse.feed(p))
}

func (s *stream) feedError(err error) {
	if err != nil && s.fail == nil && !s.done {
		s.fail = unreadable(err.Error())
	}
}

// event handles one event of the stream.
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
	c, err := s.pattern.decode(data)
	if ofAnotherKind(name, c, err) {
		return
	}
	s.begun = s.begun || !c.unknown
	switch {
	case isError(name) || c.isError:
		s.fail, s.errBody = streamError(c, data), bytes.Clone(data)
	case c.unknown:
		s.stray = appendLine(s.stray, data)
	case err != nil && s.ending: // incomplete, without [DONE]
	case err != nil:
		s.fail = &Error{Class: api.ErrorMalformed, Status: 200, Message: "an event of the stream is not a chat " +
			"completion chunk (" + clip(string(data)) + "); is target.url the address of an OpenAI-compatible API?"}
	default:
		s.take(c)
	}
}

// isDone reports whether the data is [DONE], also in lower case or in quotes.
func isDone(data []byte) bool {
	return len(data) < maxUnread && bytes.EqualFold(bytes.Trim(data, "\" \t"), []byte("[DONE]"))
}

// ofAnotherKind reports whether an event with an unknown name is not part of the answer.
func ofAnotherKind(name string, c chunk, err error) bool {
	return limit(name) < maxEvent && (err != nil || !c.choices && c.usage == nil && !c.errMember)
}

// end handles [DONE].
func (s *stream) end() {
	if s.done = s.begun; !s.done {
		s.fail = &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server's answer is empty: [DONE] came " +
			"without any chat completion chunk" + s.words() + "; check the server's log"}
		return
	}
	s.dog.wait(s, draining, drainFor)
}

// strayText handles lines that are not fields of an event. A failing server may write an error outside of events.
func (s *stream) strayText(lines []byte) {
	if c, err := decodeChunk(lines); err == nil && c.isError && s.fail == nil && !s.done {
		s.fail = streamError(c, lines)
	}
	s.stray = appendLine(s.stray, lines)
}

// words returns the text outside of chunks in parentheses, or "".
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
	return &Error{Class: api.ErrorStream, Status: 200, Code: c.errCode, Message: "the server reported an error " +
		"inside its answer: " + clip(message)}
}

// normalEnds are the finish reasons of a successful answer: those of the OpenAI API, and the names that engines and
// gateways use for an end-of-sequence token, a stop sequence, the limit of tokens and a tool call.
var normalEnds = map[string]bool{
	"stop": true, "length": true, "tool_calls": true, "function_call": true, "content_filter": true,
	"eos": true, "eos_token": true, "stop_sequence": true, "end_turn": true,
	"max_tokens": true, "model_length": true, "tool_use": true,
}

// failedReason reports whether the finish reason is not one of [normalEnds].
func (s *stream) failedReason() bool {
	return s.res.FinishReason != "" && !normalEnds[strings.ToLower(s.res.FinishReason)]
}

// verdict returns the error of an answer that reached its end, or nil. An answer of at most one token may have no text:
// the token can be the end itself. Without a finish reason, text outside of chunks is the reason of the end.
func (s *stream) verdict() *Error {
	r := &s.res
	switch {
	case s.failedReason():
		return streamError(chunk{errMessage: "finish_reason " + r.FinishReason}, nil)
	case r.FinishReason == "" && len(s.stray) > 0:
		return streamError(chunk{errMessage: excerpt(s.stray)}, nil)
	case len(r.Chunks) == 0 && s.req.MaxTokens != 1:
		return &Error{Class: api.ErrorEmpty, Status: 200, Message: "the answer ended without any content " +
			"(finish_reason " +
			cmp.Or(r.FinishReason, "missing") + "); check the server's log and its chat template"}
	}
	return nil
}

// take adds one chunk to the result.
func (s *stream) take(c chunk) {
	if c.content || c.finishReason != "" || c.usage != nil {
		s.progress.Store(int64(s.at))
	}
	if c.finishReason != "" {
		if !s.failedReason() {
			// An earlier one that reports an error stays. A copy, so that what keeps the reason does not keep its chunk.
			s.res.FinishReason = strings.Clone(c.finishReason)
		}
		s.dog.wait(s, finishing, endFor)
	}
	s.deltas = s.deltas || c.content
	if c.whole != "" && !s.deltas {
		c.text, c.content, c.answer = c.whole, true, true
	}
	if c.worker != 0 && c.worker != s.instance {
		s.instance = c.worker
		s.setWorker(strconv.FormatUint(c.worker, 10), "nvext.worker_id")
	}
	if c.timing != (Timing{}) {
		s.res.Timing = c.timing
	}
	if c.content {
		s.content(c)
		if s.usage != nil {
			s.usage.completion, s.usage.total = 0, 0 // the counts were not those of the complete answer
		}
	} else {
		s.empty++
	}
	if c.usage != nil {
		s.usage = s.usage.updated(c.usage)
	}
	s.fail = cmp.Or(s.fail, s.overrun())
}

// content records a content chunk. If every content chunk has usage, the tokens of a chunk are the increase of usage
// since the chunk before. Usage on the last content chunk alone counts the whole answer.
func (s *stream) content(c chunk) {
	tokens := 0
	counted := c.usage != nil && c.usage.completion > 0
	if counted {
		if !s.uncounted {
			tokens = max(0, c.usage.completion-s.completion)
		}
		s.fell = s.fell || c.usage.completion < s.completion
		s.completion = c.usage.completion
	}
	s.uncounted = !counted
	if c.answer && s.res.FirstAnswer == 0 {
		s.res.FirstAnswer = s.at
	}
	s.res.Chunks = append(s.res.Chunks, Chunk{At: s.at, Tokens: int32(min(tokens, 1<<20))})
	s.phase.CompareAndSwap(waiting, streaming)
	if s.fail = s.takeText(len(c.text), len(c.reasoning)); s.fail != nil {
		return
	}
	s.live.add(s.at, c)
	if s.req.OnChunk != nil {
		s.req.OnChunk(max(1, tokens))
	}
}

// takeText counts more bytes of the answer and of its reasoning, or explains the limit that they exceed.
func (s *stream) takeText(answer, reasoning int) *Error {
	n := answer + reasoning
	switch most := maxTextOf(s.req.MaxTokens); {
	case s.seen.text+n > most:
		return &Error{Class: api.ErrorOverrun, Status: 200, Message: fmt.Sprintf("the answer had more than %d KiB of "+
			"text, although max_tokens was %d; the server ignores it; check its settings", most>>10, s.req.MaxTokens)}
	case !s.req.Texts.take(TextMemory(s.seen.text+n) - TextMemory(s.seen.text) + chunkMemory):
		return outOfMemory()
	}
	s.seen.text += n
	s.seen.reasoning += reasoning
	s.seen.textless = s.seen.textless || n == 0
	if len(s.res.Chunks) == 1 {
		s.res.FirstTextBytes = n
	}
	s.memory = TextMemory(s.seen.text) + chunkMemory*len(s.res.Chunks)
	return nil
}

func outOfMemory() *Error {
	return &Error{Class: api.ErrorOverrun, Status: 200, Message: "all answers together hold more memory than " +
		"target.answer_memory allows; raise it, or run fewer conversations or shorter answers"}
}

// maxTextOf returns the maximum bytes of an answer with at most maxTokens tokens; 0 means any number.
func maxTextOf(maxTokens int) int {
	if maxTokens == 0 {
		return maxText
	}
	return min(maxText, max(leastText, tokenText*maxTokens))
}

// overrun explains the size limit that the answer exceeded, or returns nil.
func (s *stream) overrun() *Error {
	var what string
	var most int
	limit := max(s.req.MaxTokens, leastMax)
	switch {
	case s.empty > mostEmpty:
		return &Error{Class: api.ErrorOverrun, Status: 200, Message: fmt.Sprintf("the answer had more than %d chunks "+
			"without text; check the server's log", mostEmpty)}
	case s.req.MaxTokens > 0 && s.completion > overMax*limit:
		what, most = "tokens", overMax*limit
	case s.req.MaxTokens > 0 && len(s.res.Chunks) > overChunks*limit:
		what, most = "chunks", overChunks*limit
	default:
		return nil
	}
	return &Error{Class: api.ErrorOverrun, Status: 200, Message: fmt.Sprintf("the answer had more than %d %s, although "+
		"max_tokens was %d; the server ignores it; check its settings", most, what, s.req.MaxTokens)}
}

// result returns the outcome of the exchange.
func (s *stream) result(ctx context.Context, asked requested) Result {
	r := &s.res
	r.Ended = r.Sent.Add(time.Since(r.Sent)) // from the monotonic clock: the wall clock may be set during a turn
	r.Content = s.live.answer()
	s.setUsage()
	switch {
	case s.fail != nil:
		r.Err = s.fail
	case s.done || s.failedReason():
		r.Err = s.verdict()
	default:
		r.Err = s.incomplete(asked)
	}
	if r.Err != nil && ctx.Err() != nil {
		r.Err, r.Cancelled = nil, true
	}
	if r.OK() {
		s.memory -= TextMemory(len(r.Content))
	}
	s.req.Texts.Release(s.memory)
	return *r
}

// setUsage sets the counts of the result that agree with each other and with the stream.
func (s *stream) setUsage() {
	r := &s.res
	s.seen.chunks, r.TextBytes = len(r.Chunks), s.seen.text
	if s.usage != nil && s.usage.completion == s.completion && len(r.Chunks) > 1 {
		neverGrew := !s.uncounted && s.completion == int(r.Chunks[0].Tokens)
		s.seen.perChunk = s.fell || neverGrew
	}
	r.Usage, r.Hidden, r.Findings = s.usage.agreed(&s.seen)
}

// incomplete explains a response that ended without [DONE].
func (s *stream) incomplete(asked requested) *Error {
	answer, err := decodeChunk(s.errBody)
	switch {
	case s.status != 200:
		return statusError(s.status, s.header, excerpt(s.errBody), asked)
	case !s.events && err == nil && answer.isError:
		return streamError(answer, s.errBody)
	case !s.events:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server did not stream: it " +
			"sent " + clip(s.header.Get("Content-Type")) + " (" + excerpt(s.errBody) + "); is target.url the address " +
			"of an OpenAI-compatible API?"}
	case len(s.stray) > 0 && !s.begun:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server's answer is not a stream of " +
			"events" + s.words() + "; is target.url the address of an OpenAI-compatible API?"}
	}
	return s.truncated("the answer ended without [DONE]; the server or a proxy cut it off")
}

// watchdog cancels a stream that exceeds a timeout. Its timer fires at the earliest time at which a timeout can pass,
// so that chunks need not reset it.
type watchdog struct {
	mu     sync.Mutex
	timer  *time.Timer
	stream *stream // nil once stopped: the runtime may hold a stopped timer, and the answer with it, until it is due
}

func (c *Client) watch(s *stream, cancel context.CancelCauseFunc) *watchdog {
	d := &watchdog{stream: s}
	s.dog = d
	d.mu.Lock()
	defer d.mu.Unlock()
	first := min(c.opts.ConnectTimeout, c.opts.FirstTokenTimeout, c.opts.StallTimeout, c.opts.TurnTimeout)
	d.timer = time.AfterFunc(first, func() { d.look(c.opts, cancel) })
	return d
}

// look runs when the timer fires. It cancels the stream, with the timeout as the cause, if a timeout of the present
// phase or of the whole turn has passed. Otherwise it resets the timer to the time that is left, but to at most
// StallTimeout: before the first token, the phase may change at any moment, and a stall begin then. After stop it does
// nothing. No timeout of o is 0; [New] sets the defaults.
func (d *watchdog) look(o Options, cancel context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stream
	if s == nil {
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

// wait enters a phase after the end of the answer, with its timeout.
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
	d.stream = nil
	d.timer.Stop()
}
