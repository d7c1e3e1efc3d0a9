package httpd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kvbooth/sidecar/booth/httpd/answer"
	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

// Reasons for a handler to return before the end of the answer.
var (
	errClosing = errors.New("the cluster is shutting down")
	errGone    = errors.New("the client disconnected")
)

// chat serves /v1/chat/completions of the frontend.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	q, err := readChat(w, r, true)
	if err != nil {
		s.explain(err).write(w)
		return
	}
	s.complete(w, r, q, nil)
}

// complete answers a request that the frontend has received, or the given worker.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, q *chatRequest, worker *engine) {
	meter := s.metrics.Begin(q.Stream)
	kind := kindInternal // if serve panics because the connection is aborted
	defer func() { meter.Ended(kind) }()
	e := &exchange{server: s, worker: worker, request: q, stream: newStream(meter), id: q.newID(), received: time.Now()}
	if worker == nil {
		e.fault = s.faults.draw()
	} else {
		e.fault = worker.faults.draw()
	}
	requestID := idOf(r, e.id)
	w.Header().Set("X-Request-Id", requestID)
	e.out = e.delivery(w)
	kind = e.serve(r.Context(), requestID)
}

// idOf returns the id that the client gave its request, or otherwise the given one.
func idOf(r *http.Request, otherwise string) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= maxRequestID && utf8.ValidString(id) {
		return id
	}
	return otherwise
}

// newID returns a random id of an answer, as Dynamo and the engines give it.
func (q *chatRequest) newID() string {
	if q.plain() {
		return "cmpl-" + uuid.NewString()
	}
	return "chatcmpl-" + uuid.NewString()
}

// exchange is a request with its answer.
type exchange struct {
	server   *Server
	worker   *engine // that has received the request; nil for the frontend
	request  *chatRequest
	stream   *stream
	id       string // id of the answer
	received time.Time
	fault    fault
	out      delivery

	parts  [][]uint32 // the prompt's ids, if requested, until the answer begins
	answer answer.Answer
}

// delivery sends an answer to its client. Errors mean that the client cannot be reached.
type delivery interface {
	// routed sends what is known before the first token.
	routed() error
	// chunks sends the text of further tokens of the answer, given as the number of tokens per chunk.
	chunks(sizes []int) error
	// end completes the answer.
	end(sim.Report) error
	// fail ends the answer with a problem, even after some chunks.
	fail(*problem)
}

func (e *exchange) delivery(w http.ResponseWriter) delivery {
	if e.request.Stream {
		return &streaming{exchange: e, w: w, control: http.NewResponseController(w)}
	}
	return &unary{exchange: e, w: w}
}

// serve processes the request. It returns the error type for the metrics.
func (e *exchange) serve(ctx context.Context, requestID string) (kind string) {
	job, err := e.submit(requestID)
	if err == nil {
		defer e.server.clock.cancel(job) // has no effect on a job that has ended
		if err = errGone; e.out.routed() == nil {
			err = e.follow(ctx)
		}
	}
	if err == nil {
		return kindNone
	}
	if errors.Is(err, errGone) {
		return kindCancelled
	}
	p := e.server.explain(err)
	if e.worker != nil {
		if lost(err) {
			panic(http.ErrAbortHandler) // net/http aborts the connection
		}
		p = e.worker.problem(p)
	}
	e.out.fail(p)
	return p.kind
}

// submit passes the request to the cluster.
func (e *exchange) submit(requestID string) (*sim.Job, error) {
	s, q := e.server, e.request
	profile := &s.options.Cluster.Profile
	if err := q.check(profile.Model); err != nil {
		return nil, err
	}
	instance, named := q.instance()
	if named && instance == 0 {
		return nil, sim.ErrNoInstance // no worker has the id 0, which sim takes as unspecified
	}
	if p := e.fault.refusal(); p != nil {
		return nil, p
	}
	messages := q.conversation()
	parts, total := q.encode(s.prompts, messages)
	e.stream.meter.Tokenized()
	room := profile.KV.Tokens() - total
	if room < 1 {
		return nil, invalid("messages: the prompt has %d tokens; this model's maximum context length is %d tokens, "+
			"with one for the answer at least", total, profile.KV.Tokens())
	}
	asked := q.asked(room)
	asked.Seed = q.seed(requestID)
	e.answer = answer.Compose(messages, asked)
	if q.annotated("token_ids") {
		e.parts = parts
	}
	q.Messages = nil // frees the memory of a long prompt while its answer streams
	request := sim.Request{
		ID: requestID, PromptTokens: total, OutputTokens: len(e.answer.Tokens), Reason: e.answer.Reason,
		Instance: instance,
		Blocks:   sim.HashBlocks(profile.KV.BlockTokens, append(parts, e.answer.Tokens)...),
	}
	if s.options.Events != nil {
		request.Tokens = slices.Concat(append(parts, e.answer.Tokens)...)
	}
	var job *sim.Job
	var err error
	s.clock.do(func(c *sim.Cluster) { job, err = c.Submit(request, e.stream) })
	return job, err
}

// follow delivers the answer until its end.
func (e *exchange) follow(ctx context.Context) error {
	var chunks []int
	var report *sim.Report
	for delivered := 0; ; {
		select {
		case <-ctx.Done():
			return errGone
		case <-e.server.ctx.Done():
			return errClosing
		case <-e.stream.ready:
		}
		chunks, report = e.stream.take(chunks)
		if chunks, broken := e.fault.breaks(chunks, delivered, report != nil); broken {
			return e.breakOff(ctx, chunks)
		}
		if len(chunks) > 0 {
			delivered += len(chunks)
			if e.out.chunks(chunks) != nil {
				return errGone
			}
		}
		switch {
		case report == nil:
		case report.Err != nil:
			return report.Err
		default:
			return e.end(*report)
		}
	}
}

func (e *exchange) end(r sim.Report) error {
	if e.out.end(r) != nil {
		return errGone
	}
	if e.request.plain() {
		return nil
	}
	// The answer is part of the next turn's history.
	e.server.prompts.message(sim.Message{Role: "assistant", Content: e.text()})
	return nil
}

// text returns the whole answer.
func (e *exchange) text() string {
	var d detokenizer
	return string(e.visible(d.next(nil, e.answer.Tokens), 0))
}

// visible returns the part of a piece of text that precedes the stop sequence. from is the piece's offset in the
// answer.
func (e *exchange) visible(piece []byte, from int) []byte {
	return piece[:min(len(piece), len(e.answer.Text)-from)]
}

// breakOff delivers the last chunks before a fault. Then it stalls or aborts the connection.
func (e *exchange) breakOff(ctx context.Context, last []int) error {
	if len(last) > 0 && e.out.chunks(last) != nil {
		return errGone
	}
	if e.fault.kind == faultDisconnect {
		panic(http.ErrAbortHandler) // net/http aborts the connection
	}
	select {
	case <-ctx.Done():
		return errGone
	case <-e.server.ctx.Done():
		return errClosing
	}
}

// stream holds the events of a request that its handler has not yet delivered. It is the request's [sim.Observer]. Its
// methods are called while the cluster is locked, so they only record.
type stream struct {
	meter *metrics.Request
	ready chan struct{} // holds a value if there are events to take

	mu       sync.Mutex
	decision *sim.Decision
	chunks   []int // tokens per chunk
	report   *sim.Report
}

func newStream(meter *metrics.Request) *stream {
	return &stream{meter: meter, ready: make(chan struct{}, 1)}
}

// Routed records the router's decision.
func (s *stream) Routed(d *sim.Decision) {
	s.meter.Routed(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = d
}

// FirstToken updates the metrics only.
func (s *stream) FirstToken(r sim.Report) { s.meter.FirstToken(r) }

// Tokens records a chunk.
func (s *stream) Tokens(at time.Duration, n int) {
	s.meter.Tokens(at, n)
	s.mu.Lock()
	s.chunks = append(s.chunks, n)
	s.mu.Unlock()
	s.signal()
}

// Finished records the end.
func (s *stream) Finished(r sim.Report) {
	s.meter.Finished(r)
	s.mu.Lock()
	s.report = &r
	s.mu.Unlock()
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take returns the chunks since the previous call, and the report once the request has ended. The chunks are valid
// until the next call, to which the caller passes them for reuse.
func (s *stream) take(reuse []int) (chunks []int, report *sim.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks, s.chunks = s.chunks, reuse[:0]
	return chunks, s.report
}

func (s *stream) routed() *sim.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision
}

// streaming delivers an answer as server-sent events, one chunk per iteration of the worker. The response begins with
// the first chunk, so that earlier failures have their own status. If the ids of the prompt's tokens are requested,
// the response begins with these as soon as the request is routed, as Dynamo's does.
type streaming struct {
	*exchange
	w       http.ResponseWriter
	control *http.ResponseController

	writer   *chunks
	text     detokenizer
	done     int    // delivered tokens
	sent     int    // bytes of their text
	last     []byte // text of the last chunk, which vLLM sends with the finish reason
	textBuf  []byte // reused
	eventBuf []byte // reused
}

// begin sets the headers and prepares the chunks.
func (s *streaming) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	var worker []byte
	if s.request.wants("worker_id") {
		worker = workerMember(s.stream.routed().Worker().Worker)
	}
	model := s.server.options.Cluster.Profile.Model
	s.writer = newChunks(s.id, model, s.received.Unix(), s.request.plain(), worker)
}

func (s *streaming) routed() error {
	if s.parts == nil {
		return nil
	}
	s.begin()
	s.eventBuf = tokenIDs(s.eventBuf, s.parts)
	s.parts = nil
	err := s.flush()
	s.eventBuf = nil // frees the large buffer of the prompt, because chunks are small
	return err
}

func (s *streaming) chunks(sizes []int) error {
	if s.writer == nil {
		s.begin()
		if s.worker != nil && !s.request.plain() { // an engine sends the role first, alone
			s.eventBuf = s.writer.text(s.eventBuf, nil)
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	for _, n := range sizes {
		s.textBuf = s.text.next(s.textBuf, s.answer.Tokens[s.done:s.done+n])
		s.done += n
		text := s.visible(s.textBuf, s.sent)
		s.sent += len(text)
		switch {
		case len(text) == 0:
		case s.worker != nil && s.server.options.Engine == "vllm" && s.done == len(s.answer.Tokens):
			s.last = append(s.last, text...)
		default:
			s.eventBuf = s.writer.text(s.eventBuf, text)
		}
	}
	return s.flush()
}

// flush sends the buffered events.
func (s *streaming) flush() error {
	if len(s.eventBuf) == 0 {
		return nil
	}
	_, err := s.w.Write(s.eventBuf)
	s.eventBuf = s.eventBuf[:0]
	if err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *streaming) end(r sim.Report) error {
	s.eventBuf = s.writer.finish(s.eventBuf, s.last, r.Reason, s.timing(r))
	if s.request.includeUsage() {
		withCached := metrics.ReportsCachedTokens(s.server.options.Engine)
		s.eventBuf = s.writer.usage(s.eventBuf, s.id, r, withCached)
	}
	s.eventBuf = append(s.eventBuf, "data: [DONE]\n\n"...)
	return s.flush()
}

func (s *streaming) fail(p *problem) {
	if s.writer == nil {
		p.write(s.w)
		return
	}
	s.eventBuf = append(s.eventBuf, p.event()...)
	_ = s.flush() // the stream ends either way
}

// timing returns the member nvext.timing, nil if not requested.
func (e *exchange) timing(r sim.Report) []byte {
	if !e.request.wants("timing") {
		return nil
	}
	return newTiming(e.received.UnixMilli(), r, e.stream.routed()).member()
}

// unary delivers an answer as one document.
type unary struct {
	*exchange
	w http.ResponseWriter
}

func (u *unary) routed() error { return nil }

func (u *unary) chunks([]int) error { return nil }

func (u *unary) end(r sim.Report) error {
	d := u.stream.routed()
	var worker []byte
	if u.request.wants("worker_id") {
		worker = workerMember(d.Worker().Worker)
	}
	text, object := u.exchange.text(), "text_completion"
	content := fmt.Appendf(nil, `"text":%s`, quoted(text))
	if !u.request.plain() {
		object, content = "chat.completion", []byte("null")
		if text != "" {
			content = quoted(text)
		}
		content = fmt.Appendf(nil, `"message":{"content":%s,"refusal":null,"role":"assistant"}`, content)
	}
	const choice = `{"id":%s,"choices":[{"index":0,%s,"finish_reason":%s,"logprobs":null}],`
	body := fmt.Appendf(nil, choice, quoted(u.id), content, quoted(string(r.Reason)))
	body = fmt.Appendf(body, `"created":%d,"model":%s,"object":"%s","usage":`,
		u.received.Unix(), quoted(u.request.Model), object)
	body = appendUsage(body, r, metrics.ReportsCachedTokens(u.server.options.Engine))
	body = append(appendNVExt(body, worker, u.timing(r)), '}')
	u.w.Header().Set("Content-Type", "application/json")
	_, err := u.w.Write(body)
	return err
}

func (u *unary) fail(p *problem) { p.write(u.w) }
