package httpd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// How Dynamo's metrics class a request that failed (label error_type).
const (
	kindNone        = ""
	kindValidation  = "validation"
	kindNotFound    = "not_found"
	kindOverload    = "overload"
	kindUnavailable = "unavailable"
	kindCancelled   = "cancelled"
	kindInternal    = "internal"
)

// problem is an error as Dynamo answers it, within a stream too.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"` // the status in words
	Code    int    `json:"code"` // the status

	kind  string        // in the metrics
	after time.Duration // when to try again, on the wall clock; 0 says nothing of it
}

func (p *problem) Error() string { return p.Message }

func newProblem(status int, kind, format string, args ...any) *problem {
	return &problem{Message: fmt.Sprintf(format, args...), Type: http.StatusText(status), Code: status, kind: kind}
}

func invalid(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, kindValidation, format, args...)
}

// retryIn adds when to try again.
func (p *problem) retryIn(wait time.Duration) *problem {
	p.after = max(wait, time.Nanosecond)
	return p
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	if p.after > 0 {
		w.Header().Set("Retry-After", retrySeconds(p.after))
	}
	writeJSON(w, p.Code, p)
}

// event is the problem as the last event of a stream.
func (p *problem) event() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // two strings and a number
	}
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// explain makes a problem of any error that a request can end with.
func (s *Server) explain(err error) *problem {
	var p *problem
	var field *api.FieldError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &field):
		return invalid("%v", field)
	case errors.Is(err, sim.ErrRestarting):
		return newProblem(http.StatusServiceUnavailable, kindUnavailable, "%v", err).retryIn(s.readyIn())
	case errors.Is(err, sim.ErrNoWorkers):
		return newProblem(http.StatusServiceUnavailable, kindUnavailable, "%v", err).retryIn(time.Second)
	case errors.Is(err, sim.ErrNoInstance):
		return unusable(fmt.Errorf("nvext.backend_instance_id: %w", err))
	case errors.Is(err, sim.ErrWorkerLost):
		return newProblem(http.StatusInternalServerError, kindInternal, "%v before its answer was complete", err)
	case errors.Is(err, errClosing):
		return newProblem(http.StatusServiceUnavailable, kindUnavailable, "%v", err)
	}
	return newProblem(http.StatusInternalServerError, kindInternal, "%v", err)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // none of the documents has a value that JSON cannot hold
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that has gone needs no answer
}

// retrySeconds is the value of a Retry-After.
func retrySeconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}
