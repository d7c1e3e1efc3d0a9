package httpd

import (
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kvbooth/sidecar/booth/httpd/answer"
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
	s.complete(w, r, q, err)
}

// complete answers a chat request, or reports why it could not be read.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, q *chatRequest, err error) {
	if err != nil {
		s.explain(err).write(w)
		return
	}
	meter := s.metrics.Begin(q.Stream)
	kind := kindInternal // if serve panics because the connection is aborted
	defer func() { meter.Ended(kind) }()
	e := &exchange{
		server: s, request: q, stream: newStream(meter), id: newID(), received: time.Now(), fault: s.faults.draw(),
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

// newID returns a random id in Dynamo's format.
func newID() string { return "chatcmpl-" + uuid.NewString() }

// exchange is a request with its answer.
type exchange struct {
	server   *Server
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
	parts, total := s.prompts.encode(messages)
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
