package chat

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
)

// drainFor bounds the wait for the response's end after [DONE], without which
// the connection could not be used again.
const drainFor = 250 * time.Millisecond

// buffer takes what one read gives, and what the kernel says besides.
type buffer struct {
	data    [16 << 10]byte
	control [64]byte
}

// buffers are held during one read only: a thousand waiting streams need none.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// stream is one request's answer in the making. Its goroutine alone touches it,
// but for the atomics, which the watchdog reads.
type stream struct {
	req  Request
	res  Result
	live *Live
	http response
	sse  sseReader
	c    chunk

	at         time.Duration // of the read at hand, since sent
	completion int           // usage.completion_tokens as of the last content chunk
	untold     bool          // that chunk carried no usage
	ending     bool          // the body has ended; what it left is looked at
	done       bool          // [DONE] came
	fail       *Error
	errBody    []byte

	progress atomic.Int64 // of the last event, ns since sent; 0: no response yet
	started  atomic.Bool  // a content chunk came
	expired  atomic.Int32 // which limit the watchdog found passed
}

const (
	expiredFirst = 1 + iota
	expiredStall
)

func newStream(req Request) *stream {
	s := &stream{req: req, live: req.Live}
	if s.live == nil {
		s.live = new(Live)
	}
	s.res.Sent = time.Now()
	s.res.Chunks = make([]Chunk, 0, 64)
	s.live.start(s.res.Sent)
	s.http.body = s.body
	s.sse.event = s.event
	return s
}

// exchange sends the request over one connection and reads the answer. stale
// says that the connection was a kept one and ended before anything came.
func (c *Client) exchange(ctx context.Context, s *stream, cn *conn, m message) (stale bool) {
	unwatch := context.AfterFunc(ctx, func() { expire(cn) })
	dog := c.watch(s, cn)
	err := m.write(cn)
	written := err == nil
	// A server may answer and close before it has read the whole request.
	if answer := s.read(cn); answer == nil || written {
		err = answer
	}
	dog.stop()
	// A connection whose deadline a late cancellation may still set is not kept.
	if unwatch() && written && err == nil && s.http.done && s.http.keep && s.expired.Load() == 0 {
		c.pool.put(cn)
	} else {
		cn.Close()
	}
	if err == nil || s.fail != nil || s.done {
		return false
	}
	if cn.reused && s.at == 0 && ctx.Err() == nil && s.expired.Load() == 0 {
		return true
	}
	s.fail = s.readError(err, c.opts)
	return false
}

// expire makes every read and write on the connection end now.
func expire(cn *conn) { _ = cn.SetDeadline(time.Unix(1, 0)) }

// read feeds the stream until the response's end, a fault, or the connection's end.
func (s *stream) read(cn *conn) error {
	err := s.readUntil(cn)
	if err == nil && s.done && !s.http.done && s.fail == nil {
		_ = cn.SetReadDeadline(time.Now().Add(drainFor))
		err = s.readUntil(cn)
	}
	if errors.Is(err, io.EOF) {
		if err = s.http.eof(); err == nil {
			s.finish()
		}
	}
	return err
}

func (s *stream) readUntil(cn *conn) error {
	if cn.direct() {
		return s.readRaw(cn.raw)
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := cn.Read(buf.data[:])
		if n > 0 && s.feed(buf.data[:n]) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// feed takes the time before anything else, then parses. enough says that
// reading can stop: the response is complete, or its stream is, or it failed.
func (s *stream) feed(p []byte) (enough bool) {
	s.at = time.Since(s.res.Sent)
	wasDone := s.done
	s.feedError(s.http.feed(p))
	if s.http.done {
		s.finish()
	}
	return s.http.done || s.fail != nil || s.done != wasDone
}

// finish takes an event that the body's end left without its blank line.
func (s *stream) finish() {
	s.ending = true
	s.feedError(s.sse.finish())
}

func (s *stream) feedError(err error) {
	switch {
	case err == nil || s.fail != nil:
	case s.done: // the answer is whole; only its connection is spoilt
		s.http.done, s.http.keep = true, false
	default:
		s.fail = &Error{Class: api.ErrorMalformed, Message: "the server's answer cannot be read: " + err.Error() + "; is target.url the address of an OpenAI-compatible API?"}
	}
}

// body takes a piece of the response's body.
func (s *stream) body(p []byte) error {
	if s.http.stream {
		return s.sse.feed(p)
	}
	s.errBody = append(s.errBody, p[:min(maxErrorBody-len(s.errBody), len(p))]...)
	if len(s.errBody) == maxErrorBody { // enough to say what is wrong
		s.http.done, s.http.keep = true, false
	}
	return nil
}

// event takes one event of the stream.
func (s *stream) event(name string, data []byte) {
	if s.done || s.fail != nil || len(data) == 0 {
		return
	}
	if string(data) == "[DONE]" {
		s.done = true
		return
	}
	if name != "" && name != "message" && name != "error" {
		return
	}
	s.progress.Store(int64(s.at))
	err := decodeChunk(data, &s.c)
	switch {
	case name == "error" || s.c.isError && err == nil:
		s.fail = streamError(&s.c, data)
	case err != nil && s.ending: // cut off, and so is [DONE]
	case err != nil:
		s.fail = &Error{Class: api.ErrorMalformed, Status: 200, Message: "an event of the stream is not a chat completion chunk (" + clip(string(data)) + "); is target.url the address of an OpenAI-compatible API?"}
	default:
		s.take(&s.c)
	}
}

func streamError(c *chunk, data []byte) *Error {
	message := c.errMessage
	if message == "" {
		message = string(data)
	}
	if c.errType != "" {
		message += " (" + c.errType + ")"
	}
	return &Error{Class: api.ErrorStream, Status: 200, Message: "the server reported an error inside its answer: " + clip(message)}
}

// take adds what one chunk says to the result.
func (s *stream) take(c *chunk) {
	if c.finishReason != "" {
		s.res.FinishReason = c.finishReason
	}
	if c.worker != 0 {
		s.res.Worker = c.worker
	}
	if c.hasTiming {
		s.res.Timing = c.timing
	}
	if c.content {
		s.content(c)
	}
	if c.hasUsage {
		if s.res.Usage == nil {
			s.res.Usage = new(Usage)
		}
		*s.res.Usage = c.usage
	}
}

// content records a content chunk. It tells its tokens where every content
// chunk carries usage: those that usage has grown by since the one before. Usage
// on the last content chunk alone counts the whole answer and tells nothing.
func (s *stream) content(c *chunk) {
	tokens := 0
	if c.hasUsage && !s.untold {
		tokens = max(0, c.usage.Completion-s.completion)
	}
	s.completion, s.untold = c.usage.Completion, !c.hasUsage
	s.res.Chunks = append(s.res.Chunks, Chunk{At: s.at, Tokens: int32(min(tokens, 1<<20))})
	s.started.Store(true)
	s.live.add(s.at, c)
	if s.req.OnChunk != nil {
		s.req.OnChunk(max(1, tokens))
	}
}

// readError classifies the end of the connection.
func (s *stream) readError(err error, o Options) *Error {
	switch {
	case s.http.header != nil && s.http.status != 200: // its explanation alone is cut off
		return nil // the status says what is wrong
	case s.expired.Load() == expiredFirst:
		return &Error{Class: api.ErrorTimeout, Message: "no first token within " + o.FirstTokenTimeout.String() + "; the server is overloaded or hangs, or target.first_token_timeout is too short"}
	case s.expired.Load() == expiredStall:
		return &Error{Class: api.ErrorStall, Message: "the stream fell silent for " + o.StallTimeout.String() + " in mid-answer; the worker may have died, or target.stall_timeout is too short"}
	case s.http.header == nil:
		return answerError(err)
	}
	return &Error{Class: api.ErrorTruncated, Status: s.http.status, Message: "the answer broke off before its end ([DONE]); the server or a proxy closed the connection"}
}

// result closes the book: what the whole exchange was.
func (s *stream) result(ctx context.Context, model string) Result {
	r := &s.res
	r.Ended = time.Now()
	r.Content = s.live.Text()
	r.Err = s.fail
	if r.Err == nil && !s.done {
		r.Err = s.incomplete(model)
	}
	if r.Err != nil && ctx.Err() != nil {
		r.Err, r.Cancelled = nil, true
	}
	return *r
}

// incomplete explains a response that ended by itself without [DONE].
func (s *stream) incomplete(model string) *Error {
	switch {
	case s.http.status != 200:
		return statusError(s.http.status, s.http.header, excerpt(s.errBody), model)
	case !s.http.stream && decodeChunk(s.errBody, &s.c) == nil && s.c.isError:
		return streamError(&s.c, s.errBody)
	case !s.http.stream:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server did not stream: it sent " + clip(s.http.header.Get("Content-Type")) + " (" + excerpt(s.errBody) + "); is target.url the address of an OpenAI-compatible API?"}
	case s.sse.stray != nil && s.progress.Load() == 0:
		return &Error{Class: api.ErrorMalformed, Status: 200, Message: "the server's answer is not a stream of events (" + excerpt(s.sse.stray) + "); is target.url the address of an OpenAI-compatible API?"}
	}
	return &Error{Class: api.ErrorTruncated, Status: 200, Message: "the answer ended without [DONE]; the server or a proxy cut it off"}
}

// lookEvery is how often the watchdog looks at least.
const lookEvery = time.Second

// watchdog ends a stream that passes a limit. It sleeps until the limit could
// be passed at the earliest and looks again then, so that a chunk costs it nothing.
type watchdog struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (c *Client) watch(s *stream, cn *conn) *watchdog {
	d := new(watchdog)
	d.mu.Lock()
	defer d.mu.Unlock()
	first := min(c.opts.FirstTokenTimeout-time.Since(s.res.Sent), c.opts.StallTimeout, lookEvery)
	d.timer = time.AfterFunc(first, func() { d.look(c.opts, s, cn) })
	return d
}

// look ends the stream if a limit has passed or the connection was reset, else
// sets the timer anew. Before the first token it comes back after StallTimeout
// at the latest: the token may come at once, and the stall begin then.
func (d *watchdog) look(o Options, s *stream, cn *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	now := time.Since(s.res.Sent)
	left, which := o.FirstTokenTimeout-now, int32(expiredFirst)
	if s.started.Load() {
		left, which = o.StallTimeout-(now-time.Duration(s.progress.Load())), expiredStall
	}
	switch {
	case left <= 0:
		s.expired.Store(which)
		expire(cn)
	case cn.reset():
		expire(cn) // ends the wait, and is no limit
	default:
		d.timer.Reset(min(left, o.StallTimeout, lookEvery))
	}
}

// stop ends the watch; after it the connection's deadline is not touched again.
func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
}
