package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"kvbooth/sidecar/api"
)

// refused is an error with a status of its own.
type refused struct {
	status int
	detail string
	header http.Header
}

func (e *refused) Error() string { return e.detail }

// errInterrupted is a call whose caller went away, or whose session ended, before it was complete.
var errInterrupted = &refused{
	status: http.StatusServiceUnavailable,
	detail: "the call was interrupted before it was complete; repeat it",
}

// unread bounds the wait for a body that no handler reads. Otherwise, net/http would wait for it before it sends the
// answer.
func unread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(deadline(refusedTimeout)) // a failure leaves the server's deadline
	}
}

// fail answers with the problem document of an error, even if the caller has disconnected: without an answer, net/http
// would send an empty 200.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if unread(w, r); r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	var own *refused
	if errors.As(err, &own) {
		maps.Copy(w.Header(), own.header)
	}
	p := problem(err)
	if p.Status == http.StatusInternalServerError && r.Context().Err() != nil {
		p = problem(errInterrupted)
	}
	if p.Status == http.StatusInternalServerError {
		s.opts.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	} else {
		s.opts.Log.Debug("request rejected", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "status",
			p.Status, "error", err)
	}
	if err := reply(w, p.Status, "application/problem+json", p); err != nil {
		s.opts.Log.Error("writing the error response failed", "error", err)
	}
}

// problem returns the document of an error. An unknown error is internal, and its text is withheld.
func problem(err error) api.Problem {
	var (
		own      *refused
		field    *api.FieldError
		tooLarge *http.MaxBytesError
		p        = api.Problem{Type: "about:blank", Detail: err.Error()}
	)
	switch {
	case errors.As(err, &own):
		p.Status = own.status
	case errors.As(err, &field):
		p.Status, p.Field, p.Value, p.Allowed = http.StatusUnprocessableEntity, field.Field, field.Value, field.Allowed
	case errors.As(err, &tooLarge):
		p.Status, p.Detail = http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than %d bytes",
			tooLarge.Limit)
	case errors.Is(err, api.ErrNotFound):
		p.Status = http.StatusNotFound
	case errors.Is(err, api.ErrConflict):
		p.Status = http.StatusConflict
	case errors.Is(err, api.ErrUnavailable):
		p.Status = http.StatusServiceUnavailable
	default:
		p.Status, p.Detail = http.StatusInternalServerError, "internal error of the load generator; see its log"
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// reply writes v as JSON. It returns an error if v cannot be encoded; nothing has been sent then.
func reply(w http.ResponseWriter, status int, contentType string, v any) error {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // a reader that does not read has disconnected
	return nil
}
