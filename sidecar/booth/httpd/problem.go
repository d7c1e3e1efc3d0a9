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

// Types of failed requests in Dynamo's metrics (label error_type).
const (
	kindNone        = ""
	kindValidation  = "validation"
	kindNotFound    = "not_found"
	kindOverload    = "overload"
	kindUnavailable = "unavailable"
	kindCancelled   = "cancelled"
	kindInternal    = "internal"
)

// problem is an error in Dynamo's format, for responses and within streams.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"` // text of the status
	Code    int    `json:"code"` // the status

	kind  string        // error_type in the metrics
	form  errorForm     // of the document; nil for Dynamo's
	after time.Duration // wall-clock time until a retry; 0 omits Retry-After
}

// Error returns the message.
func (p *problem) Error() string { return p.Message }

func newProblem(status int, kind, format string, args ...any) *problem {
	return &problem{Message: fmt.Sprintf(format, args...), Type: http.StatusText(status), Code: status, kind: kind}
}

func invalid(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, kindValidation, format, args...)
}

// errorForm returns the document of a problem.
type errorForm func(*problem) any

// document returns the problem's document.
func (p *problem) document() any {
	if p.form == nil {
		return p
	}
	return p.form(p)
}

// retryIn sets the time until a retry.
func (p *problem) retryIn(wait time.Duration) *problem {
	p.after = max(wait, time.Nanosecond)
	return p
}

// write sends the problem as the response.
func (p *problem) write(w http.ResponseWriter) {
	if p.after > 0 {
		w.Header().Set("Retry-After", retrySeconds(p.after))
	}
	writeJSON(w, p.Code, p.document())
}

// event returns the problem as the last event of a stream.
func (p *problem) event() []byte {
	data, err := json.Marshal(p.document())
	if err != nil {
		panic(err) // cannot happen for two strings and a number
	}
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// explain converts any error of a request to a problem.
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
		panic(err) // cannot happen for these documents
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // fails only if the client has disconnected
}

// retrySeconds returns the value of a Retry-After header.
func retrySeconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}
