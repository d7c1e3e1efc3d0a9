package httpd

import (
	"fmt"
	"net/http"

	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

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
	textBuf  []byte // reused
	eventBuf []byte // reused
}

// begin sets the headers and prepares the chunks.
func (s *streaming) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	model, worker := s.server.options.Cluster.Profile.Model, s.stream.routed().Worker().Worker
	s.writer = newChunks(s.id, model, s.received.Unix(), worker, s.request.wants("worker_id"))
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
	}
	for _, n := range sizes {
		s.textBuf = s.text.next(s.textBuf, s.answer.Tokens[s.done:s.done+n])
		s.done += n
		if text := s.visible(s.textBuf, s.sent); len(text) > 0 {
			s.eventBuf = s.writer.text(s.eventBuf, text)
			s.sent += len(text)
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
	s.eventBuf = s.writer.finish(s.eventBuf, r.Reason, s.timing(r))
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
	content := []byte("null")
	if text := u.exchange.text(); text != "" {
		content = quoted(text)
	}
	const choice = `{"id":%s,"choices":[{"index":0,"message":{"content":%s,"refusal":null,"role":"assistant"},` +
		`"finish_reason":%s,"logprobs":null}],`
	body := fmt.Appendf(nil, choice, quoted(u.id), content, quoted(string(r.Reason)))
	body = fmt.Appendf(body, `"created":%d,"model":%s,"object":"chat.completion","usage":`,
		u.received.Unix(), quoted(u.request.Model))
	body = appendUsage(body, r, metrics.ReportsCachedTokens(u.server.options.Engine))
	body = append(appendNVExt(body, worker, u.timing(r)), '}')
	u.w.Header().Set("Content-Type", "application/json")
	_, err := u.w.Write(body)
	return err
}

func (u *unary) fail(p *problem) { p.write(u.w) }
